//! The CPU share of one trial.

/// A trial's part of what a host's owner allows of the processor: above 0, at most 1.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct CpuShare(f64);

impl CpuShare {
    /// Nothing is held back.
    pub const FULL: Self = Self(1.0);

    /// The nearest CPU share that is allowed; `least` is above 0.
    pub(crate) const fn between(least: f64, cpu_share: f64) -> Self {
        // `clamp` panics where the least is above 1.
        Self(cpu_share.max(least).min(1.0))
    }

    /// As a number.
    #[must_use]
    pub const fn get(self) -> f64 {
        self.0
    }
}

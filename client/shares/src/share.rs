//! The share of one trial.

/// A share of what a host's owner allows of its processor: above 0, at most 1.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Share(f64);

impl Share {
    /// Nothing is held back.
    pub const FULL: Self = Self(1.0);

    /// The nearest share that is allowed; `least` is above 0.
    pub(crate) const fn between(least: f64, share: f64) -> Self {
        // `clamp` panics where the least is above 1.
        Self(share.max(least).min(1.0))
    }

    /// As a number.
    #[must_use]
    pub const fn get(self) -> f64 {
        self.0
    }
}

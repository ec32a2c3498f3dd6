//! Time as it comes in: microseconds of a clock that never goes back.

use sojourn_protocol::time::Millis;
use std::ops::{Add, Sub};

/// Microseconds: a length of time, or an instant of the clock whose readings come in with the events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Micros(pub u64);

impl Micros {
    /// None.
    pub const ZERO: Self = Self(0);

    /// A number of whole milliseconds.
    #[must_use]
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1_000))
    }

    /// A number of whole seconds.
    #[must_use]
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs.saturating_mul(1_000_000))
    }
}

impl From<Millis> for Micros {
    fn from(time: Millis) -> Self {
        Self::from_millis(time.0)
    }
}

impl Add for Micros {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Sub for Micros {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

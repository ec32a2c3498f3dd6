//! Numbers with a unit: times, sizes, rows, speeds and work.
//!
//! Each is a newtype over a `u64` that is written as that number. Arithmetic saturates: a sum that is too large
//! becomes the largest value, a difference below zero becomes zero. So an estimate may be wrong, but never wraps.
//!
//! ```
//! use sojourn_protocol::quantity::{Bytes, BytesPerSecond, Micros, Speed, Work};
//!
//! // A host of twice the reference speed takes half of the time.
//! assert_eq!(Work(3_000) / Speed(2 * Speed::REFERENCE.0), Micros(1_500));
//! assert_eq!(Bytes(500) / BytesPerSecond(1_000), Micros::from_millis(500));
//! assert_eq!(Micros(1) - Micros(2), Micros::ZERO);
//! assert_eq!(serde_json::to_string(&Micros(7)).unwrap(), "7");
//! ```

mod convert;

pub use convert::{SaturatingFrom, mul_div, mul_div_ceil, to_u64, to_usize};

use crate::time::Millis;
use serde::{Deserialize, Serialize};
use std::{
    fmt,
    iter::Sum,
    ops::{Add, AddAssign, Div, Mul, Sub, SubAssign},
    time::Duration,
};

macro_rules! quantity {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Default,
        )]
        #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
        #[serde(transparent)]
        pub struct $name(pub u64);

        impl $name {
            /// None of it.
            pub const ZERO: Self = Self(0);
            /// The largest value, which sums that are too large become.
            pub const MAX: Self = Self(u64::MAX);

            /// Is there none of it?
            #[must_use]
            pub const fn is_zero(self) -> bool {
                self.0 == 0
            }

            /// The difference; none where `other` is larger.
            #[must_use]
            pub const fn checked_sub(self, other: Self) -> Option<Self> {
                match self.0.checked_sub(other.0) {
                    Some(rest) => Some(Self(rest)),
                    None => None,
                }
            }

            /// `self * numerator / denominator`, rounded down, without overflow on the way.
            #[must_use]
            pub const fn mul_div(self, numerator: u64, denominator: u64) -> Self {
                Self(mul_div(self.0, numerator, denominator))
            }
        }

        impl Add for $name {
            type Output = Self;
            fn add(self, other: Self) -> Self {
                Self(self.0.saturating_add(other.0))
            }
        }

        impl AddAssign for $name {
            fn add_assign(&mut self, other: Self) {
                *self = *self + other;
            }
        }

        impl Sub for $name {
            type Output = Self;
            fn sub(self, other: Self) -> Self {
                Self(self.0.saturating_sub(other.0))
            }
        }

        impl SubAssign for $name {
            fn sub_assign(&mut self, other: Self) {
                *self = *self - other;
            }
        }

        impl Mul<u64> for $name {
            type Output = Self;
            fn mul(self, times: u64) -> Self {
                Self(self.0.saturating_mul(times))
            }
        }

        impl Div<u64> for $name {
            type Output = Self;
            /// The largest value where `parts` is 0.
            fn div(self, parts: u64) -> Self {
                Self(self.0.checked_div(parts).unwrap_or(u64::MAX))
            }
        }

        impl Sum for $name {
            fn sum<I: Iterator<Item = Self>>(each: I) -> Self {
                each.fold(Self::ZERO, Add::add)
            }
        }

    };
}

quantity!(
    /// A length of time in microseconds.
    Micros
);
quantity!(
    /// A length of time in nanoseconds.
    Nanos
);
quantity!(
    /// A size in bytes.
    Bytes
);
quantity!(
    /// A rate of transfer.
    BytesPerSecond
);
quantity!(
    /// Rows of data.
    Rows
);
quantity!(
    /// A share in thousandths.
    PerMille
);
quantity!(
    /// Floating-point operations.
    Flops
);
quantity!(
    /// How fast work is done, relative to [`Speed::REFERENCE`].
    Speed
);
quantity!(
    /// Work, as the microseconds that it takes at [`Speed::REFERENCE`].
    Work
);

impl Micros {
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

impl fmt::Display for Micros {
    /// In the largest unit that leaves it readable, with one decimal: `850 ms`, `1.2 s`, `3.0 min`, `2.0 h`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tenths = |unit: u64, name: &str, f: &mut fmt::Formatter<'_>| {
            let tenths = self.0 / (unit / 10);
            write!(f, "{}.{} {name}", tenths / 10, tenths % 10)
        };
        match self.0 {
            0..1_000_000 => write!(f, "{} ms", self.0 / 1_000),
            1_000_000..120_000_000 => tenths(1_000_000, "s", f),
            120_000_000..7_200_000_000 => tenths(60_000_000, "min", f),
            _ => tenths(3_600_000_000, "h", f),
        }
    }
}

impl From<Millis> for Micros {
    fn from(time: Millis) -> Self {
        Self::from_millis(time.0)
    }
}

impl From<Nanos> for Micros {
    /// Rounded down.
    fn from(time: Nanos) -> Self {
        Self(time.0 / 1_000)
    }
}

impl From<Duration> for Micros {
    fn from(time: Duration) -> Self {
        Self(u64::saturating_from(time.as_micros()))
    }
}

impl From<Micros> for Nanos {
    fn from(time: Micros) -> Self {
        Self(time.0.saturating_mul(1_000))
    }
}

impl From<Duration> for Nanos {
    fn from(time: Duration) -> Self {
        Self(u64::saturating_from(time.as_nanos()))
    }
}

impl From<Duration> for Millis {
    fn from(time: Duration) -> Self {
        Self(u64::saturating_from(time.as_millis()))
    }
}

impl Bytes {
    /// The size of what has this length.
    #[must_use]
    pub const fn of_len(len: usize) -> Self {
        Self(to_u64(len))
    }
}

impl PerMille {
    /// All of it.
    pub const WHOLE: Self = Self(1_000);

    /// This share of a number, rounded down.
    #[must_use]
    pub const fn of(self, number: u64) -> u64 {
        mul_div(number, self.0, Self::WHOLE.0)
    }
}

impl Speed {
    /// The speed at which [`Work`] takes exactly its microseconds.
    pub const REFERENCE: Self = Self(1 << 16);
}

impl Div<Speed> for Work {
    type Output = Micros;
    /// Rounded down. A speed of 0 counts as the lowest one.
    fn div(self, speed: Speed) -> Micros {
        Micros(mul_div(self.0, Speed::REFERENCE.0, speed.0.max(1)))
    }
}

impl Div<BytesPerSecond> for Bytes {
    type Output = Micros;
    /// Rounded down. A rate of 0 counts as one byte a second.
    fn div(self, rate: BytesPerSecond) -> Micros {
        Micros(mul_div(self.0, 1_000_000, rate.0.max(1)))
    }
}

impl Mul<Rows> for Nanos {
    type Output = Nanos;
    /// The time of so many rows, where `self` is that of one.
    fn mul(self, rows: Rows) -> Nanos {
        self * rows.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_saturates() {
        assert_eq!(Micros::MAX + Micros(1), Micros::MAX);
        assert_eq!(Bytes(1) - Bytes(2), Bytes::ZERO);
        assert_eq!(Bytes(1).checked_sub(Bytes(2)), None);
        assert_eq!(Rows(u64::MAX) * 2, Rows::MAX);
        assert_eq!(Rows(7) / 0, Rows::MAX);
        assert_eq!([Micros(1), Micros::MAX].into_iter().sum::<Micros>(), Micros::MAX);
        assert_eq!(Micros::from_secs(u64::MAX), Micros::MAX);
    }

    #[test]
    fn work_takes_its_time_at_the_reference_speed() {
        assert_eq!(Work(1_000) / Speed::REFERENCE, Micros(1_000));
        assert_eq!(Work(1_000) / (Speed::REFERENCE * 2), Micros(500));
        assert_eq!(Work(1) / Speed::ZERO, Micros(Speed::REFERENCE.0));
        assert_eq!(Work::MAX / Speed(1), Micros::MAX);
    }

    #[test]
    fn bytes_over_a_rate_take_a_time() {
        assert_eq!(Bytes(100_000_000) / BytesPerSecond(12_500_000), Micros::from_secs(8));
        assert_eq!(Bytes(1) / BytesPerSecond::ZERO, Micros::from_secs(1));
        assert_eq!(PerMille(250).of(8), 2);
    }

    #[test]
    fn units_of_time_convert() {
        assert_eq!(Micros::from(Millis(3)), Micros(3_000));
        assert_eq!(Micros::from(Nanos(2_999)), Micros(2));
        assert_eq!(Nanos::from(Duration::from_micros(2)), Nanos(2_000));
        assert_eq!(Millis::from(Duration::MAX), Millis(u64::MAX));
        assert_eq!(Micros::from(Nanos(1_500) * Rows(4)), Micros(6));
    }

    #[test]
    fn times_are_shown_in_a_readable_unit() {
        let times =
            [999, 1_000_000, 119_999_999, 7_200_000_000].map(|time| Micros(time).to_string());
        assert_eq!(times, ["0 ms", "1.0 s", "119.9 s", "2.0 h"]);
    }

    #[test]
    fn a_quantity_is_written_as_its_number() {
        assert_eq!(serde_json::to_string(&Bytes(1 << 60)).unwrap(), "1152921504606846976");
        assert_eq!(serde_json::from_str::<Nanos>("5").unwrap(), Nanos(5));
    }
}

//! Time as plain integers that can be stored and compared on any machine.

use serde::{Deserialize, Serialize};
use std::{
    fmt,
    ops::{Add, Sub},
    str::FromStr,
};

/// Milliseconds since the Unix epoch, as the server stamped them.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Default,
)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(transparent)]
pub struct UnixMillis(pub u64);

/// A length of time in milliseconds.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Default,
)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(transparent)]
pub struct Millis(pub u64);

impl Millis {
    /// A length given in whole seconds.
    #[must_use]
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs * 1000)
    }
}

/// Units of lengths of time as people write them, in milliseconds; the longer names first: `s` and `m` end others.
const UNITS: &[(&str, u64)] =
    &[("min", 60_000), ("s", 1000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];
/// The longest that people may write: a year.
const MAX_MILLIS: u64 = 366 * 86_400_000;

impl FromStr for Millis {
    type Err = &'static str;

    /// A whole number with its unit: `90s`, `10min`, `2h`, `1d`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim();
        let unit = UNITS.iter().find_map(|(unit, size)| Some((text.strip_suffix(unit)?, *size)));
        let millis = unit.and_then(|(number, size)| {
            let millis = number.trim().parse::<u64>().ok()?.checked_mul(size)?;
            (millis <= MAX_MILLIS).then_some(millis)
        });
        millis
            .map(Self)
            .ok_or("a length of time up to a year is wanted, e.g. `90s`, `10min` or `2h`")
    }
}

impl fmt::Display for Millis {
    /// In the largest unit that says all of it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = |size: u64| self.0 > 0 && self.0.is_multiple_of(size);
        let units = UNITS.iter().filter(|(unit, size)| *unit != "m" && whole(*size));
        match units.max_by_key(|(_, size)| *size) {
            Some((unit, size)) => write!(f, "{}{unit}", self.0 / size),
            None if self.0 == 0 => f.write_str("0s"),
            None => write!(f, "{}ms", self.0),
        }
    }
}

impl Add<Millis> for UnixMillis {
    type Output = UnixMillis;
    fn add(self, rhs: Millis) -> UnixMillis {
        UnixMillis(self.0.saturating_add(rhs.0))
    }
}

impl Sub for UnixMillis {
    type Output = Millis;
    /// Zero where `rhs` is later.
    fn sub(self, rhs: UnixMillis) -> Millis {
        Millis(self.0.saturating_sub(rhs.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_time_have_units() {
        for (text, millis, shown) in [
            ("90s", 90_000, "90s"),
            ("120s", 120_000, "2min"),
            ("90m", 5_400_000, "90min"),
            (" 2 h ", 7_200_000, "2h"),
            ("366d", 31_622_400_000, "366d"),
            ("0s", 0, "0s"),
        ] {
            let read: Millis = text.parse().unwrap();
            assert_eq!((read, read.to_string().as_str()), (Millis(millis), shown), "{text}");
        }
        for text in ["", "2", "h", "-1h", "367d", "1.5h", "99999999999999999999d"] {
            assert!(text.parse::<Millis>().unwrap_err().contains("up to a year"), "{text}");
        }
        assert_eq!(Millis(1500).to_string(), "1500ms");
    }
}

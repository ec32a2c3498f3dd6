//! Sizes and lengths of time as a scenario file writes them.

use serde::{Deserialize, Deserializer, Serialize, de::Error};
use std::str::FromStr;

/// Bytes: a number, or `"100MB"`, `"20GiB"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize)]
pub struct Bytes(pub u64);

/// Seconds, in whole microseconds: a number of seconds, or `"90s"`, `"10min"`, `"2h"`, `"1d"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize)]
pub struct Span(pub u64);

/// Left to the simulator, or given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub enum Auto<T> {
    /// `"auto"`.
    #[default]
    Auto,
    /// A value.
    Given(T),
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "a number or a text was wanted")]
enum Raw {
    Number(f64),
    Text(String),
}

const SIZES: [(&str, f64); 10] = [
    ("", 1.0),
    ("B", 1.0),
    ("kB", 1e3),
    ("KB", 1e3),
    ("MB", 1e6),
    ("GB", 1e9),
    ("TB", 1e12),
    ("KiB", 1_024.0),
    ("MiB", 1_048_576.0),
    ("GiB", 1_073_741_824.0),
];
const TIMES: [(&str, f64); 9] = [
    ("", 1e6),
    ("us", 1.0),
    ("ms", 1e3),
    ("s", 1e6),
    ("m", 60e6),
    ("min", 60e6),
    ("h", 3600e6),
    ("d", 86_400e6),
    ("days", 86_400e6),
];

/// No size and no time is larger: sums of some of them can be counted.
const MAX_BYTES: (f64, &str) = (1e18, "1,000,000 TB");
pub(crate) const MAX_SPAN: (f64, &str) =
    (1000.0 * 365.0 * 86_400e6, "365,000 days, which are 1000 years");

/// A number with one of these units, in whole parts of the smallest.
fn read(
    raw: Raw,
    units: &[(&str, f64)],
    (most, most_said): (f64, &str),
    wanted: &str,
) -> Result<u64, String> {
    let shown = match &raw {
        Raw::Number(number) if number.abs() >= 1e15 => format!("{number:e}"),
        Raw::Number(number) => number.to_string(),
        Raw::Text(text) => format!("\"{text}\""),
    };
    let refused = || format!("{shown} is no {wanted}");
    let value = match raw {
        Raw::Number(number) => units.first().map(|(_, factor)| number * factor),
        Raw::Text(text) => {
            let text = text.trim();
            let digits = text.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_'));
            let (number, unit) = text.split_at(digits.unwrap_or(text.len()));
            let number: Option<f64> = number.replace('_', "").parse().ok();
            let factor = units.iter().find(|(name, _)| *name == unit.trim());
            number.zip(factor).map(|(number, (_, factor))| number * factor)
        }
    };
    match value {
        Some(value) if value > most => Err(format!("{shown} is too large: at most {most_said}")),
        value => value.and_then(whole).ok_or_else(refused),
    }
}

/// The nearest whole number, where it is one that can be counted with.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the range is checked")]
pub(crate) fn whole(value: f64) -> Option<u64> {
    (0.0..9e18).contains(&value).then(|| libm::round(value) as u64)
}

/// As a number for arithmetic that may round.
#[expect(clippy::cast_precision_loss, reason = "rounding is meant")]
pub(crate) const fn float(value: u64) -> f64 {
    value as f64
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let wanted = "size (a number of bytes, or one like \"100MB\" or \"20GiB\")";
        read(Raw::deserialize(deserializer)?, &SIZES, MAX_BYTES, wanted)
            .map(Bytes)
            .map_err(D::Error::custom)
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let wanted = "length of time (a number of seconds, or one like \"90s\", \"10min\", \"2h\")";
        read(Raw::deserialize(deserializer)?, &TIMES, MAX_SPAN, wanted)
            .map(Span)
            .map_err(D::Error::custom)
    }
}

impl Span {
    /// In seconds.
    #[must_use]
    pub fn seconds(self) -> f64 {
        float(self.0) / 1e6
    }
}

impl<'de> Deserialize<'de> for Auto<Span> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Raw::deserialize(deserializer)? {
            Raw::Text(text) if text == "auto" => Ok(Auto::Auto),
            raw => read(raw, &TIMES, MAX_SPAN, "length of time (or \"auto\")")
                .map(|micros| Auto::Given(Span(micros)))
                .map_err(D::Error::custom),
        }
    }
}

impl<'de> Deserialize<'de> for Auto<u32> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Raw::deserialize(deserializer)? {
            Raw::Text(text) if text == "auto" => Ok(Auto::Auto),
            Raw::Number(number) if libm::trunc(number).to_bits() == number.to_bits() => {
                whole(number)
                    .and_then(|number| u32::try_from(number).ok())
                    .map(Auto::Given)
                    .ok_or_else(|| D::Error::custom(format!("{number} is too large or below 0")))
            }
            _ => Err(D::Error::custom("a whole number or \"auto\" was wanted")),
        }
    }
}

impl<T: Copy> Auto<T> {
    /// The value, or this one.
    #[must_use]
    pub fn or(self, auto: T) -> T {
        match self {
            Auto::Auto => auto,
            Auto::Given(value) => value,
        }
    }
}

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wanted = "length of time (one like \"500ms\", \"90s\", \"10min\", \"2h\", \"1d\")";
        read(Raw::Text(text.to_owned()), &TIMES, MAX_SPAN, wanted).map(Span)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(text: &str) -> Result<Span, String> {
        read(Raw::Text(text.into()), &TIMES, MAX_SPAN, "time").map(Span)
    }

    fn size(raw: Raw) -> Result<u64, String> {
        read(raw, &SIZES, MAX_BYTES, "size")
    }

    #[test]
    fn what_is_too_large_is_said_to_be() {
        for text in ["400_000d", "1e300", "99999999999999999999h"] {
            let error = span(text).unwrap_err();
            let is_number = text != "1e300";
            assert_eq!(error.contains("is too large: at most 365,000 days"), is_number, "{error}");
        }
        let error = size(Raw::Number(1e300)).unwrap_err();
        assert_eq!(error, "1e300 is too large: at most 1,000,000 TB");
        assert!(size(Raw::Text("2_000_000TB".into())).is_err());
    }

    #[test]
    fn quantities_have_units() {
        assert_eq!(span("90s"), Ok(Span(90_000_000)));
        assert_eq!(span("1.5 h"), Ok(Span(5_400_000_000)));
        assert_eq!(span("7"), Ok(Span(7_000_000)));
        assert!(span("7 fortnights").is_err() && span("").is_err() && span("-1s").is_err());
        assert_eq!(size(Raw::Text("20GiB".into())), Ok(20 << 30));
        assert_eq!(size(Raw::Number(1e9)), Ok(1_000_000_000));
    }
}

//! Sizes, rates, spans and the like as people write them, checked when they are read.

use serde::{Deserialize, Deserializer, Serialize, de};
use sojourn_protocol::{quantity::SaturatingFrom as _, time::Millis};
use std::{fmt, num::NonZeroU64, str::FromStr, time::Duration};

/// Units of bytes, the longer names first: `B` ends all of them.
const BYTES: &[(&str, u64)] = &[
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("B", 1),
];

/// A number of bytes with its unit: `500MB`, `20GiB`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size(pub u64);

impl FromStr for Size {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let bytes = bytes(text).ok_or("a size is wanted, e.g. `20GiB` or `500MB`")?;
        // `5` alone hardly means five bytes.
        if bytes > 0 && text.trim().bytes().all(|byte| byte.is_ascii_digit()) {
            return Err("a size with its unit is wanted, e.g. `20GiB` or `500MB`".to_owned());
        }
        Ok(Self(bytes))
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_bytes(f, self.0)
    }
}

/// Bytes in a second: `2MB/s`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rate(pub NonZeroU64);

impl FromStr for Rate {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let bytes = text.trim().strip_suffix("/s").and_then(bytes).and_then(NonZeroU64::new);
        bytes.map(Self).ok_or_else(|| "a rate above 0 is wanted, e.g. `2MB/s`".to_owned())
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_bytes(f, self.0.get())?;
        f.write_str("/s")
    }
}

pub(super) fn bytes(text: &str) -> Option<u64> {
    let text = text.trim();
    let end = |unit: &str| {
        let (number, end) = text.split_at_checked(text.len().checked_sub(unit.len())?)?;
        end.eq_ignore_ascii_case(unit).then_some(number)
    };
    let unit = BYTES.iter().find_map(|(unit, bytes)| Some((end(unit)?, *bytes)));
    let (number, bytes) = unit.unwrap_or((text, 1));
    number.trim().parse::<u64>().ok()?.checked_mul(bytes)
}

/// In the largest unit that says all of it.
pub(super) fn write_bytes(f: &mut fmt::Formatter<'_>, bytes: u64) -> fmt::Result {
    let whole = BYTES.iter().filter(|(_, size)| bytes > 0 && bytes.is_multiple_of(*size));
    let (unit, size) = whole.max_by_key(|(_, size)| *size).copied().unwrap_or(("B", 1));
    write!(f, "{}{unit}", bytes / size)
}

/// A length of time: `90s`, `10min`, `2h`, `1d`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span(pub Duration);

impl FromStr for Span {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let Millis(millis) = text.parse()?;
        Ok(Self(Duration::from_millis(millis)))
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", Millis(u64::saturating_from(self.0.as_millis())))
    }
}

/// A share of 1 to 100 percent: `50` or `50%`. To have none, pause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Percent(u8);

impl Percent {
    /// The share in percent.
    #[must_use]
    pub const fn get(self) -> u8 {
        self.0
    }
}

impl FromStr for Percent {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let number = text.strip_suffix('%').unwrap_or(text).trim().parse::<u8>().ok();
        let percent = number.filter(|percent| (1..=100).contains(percent));
        percent.map(Self).ok_or_else(|| "1 to 100 percent are wanted, e.g. `50`".to_owned())
    }
}

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// A nice level of 0 (as everybody) to 19 (only what nobody else wants).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Nice(u8);

impl Nice {
    /// The level.
    #[must_use]
    pub const fn get(self) -> u8 {
        self.0
    }
}

impl FromStr for Nice {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let level = text.trim().parse::<u8>().ok().filter(|level| *level <= 19);
        level.map(Self).ok_or_else(|| "a nice level of 0 to 19 is wanted".to_owned())
    }
}

impl fmt::Display for Nice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// Names of programs, as `ps -e` shows them: `steam, blender`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Programs(Vec<String>);

impl Programs {
    /// Is a running program one of these? The kernel keeps the first 15 bytes of a name.
    #[must_use]
    pub fn names(&self, running: &str) -> bool {
        self.0.iter().any(|name| {
            name == running
                || (running.len() == 15 && name.as_bytes().starts_with(running.as_bytes()))
        })
    }
}

impl FromStr for Programs {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let names: Vec<String> = text.split(',').map(|name| name.trim().to_owned()).collect();
        if names.iter().any(|name| name.is_empty() || name.contains('/')) {
            return Err("names of programs are wanted, e.g. `steam, blender`".to_owned());
        }
        Ok(Self(names))
    }
}

impl fmt::Display for Programs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(", "))
    }
}

/// Reads a value from its text; a number is as good as its digits.
pub(super) fn read<'de, T, D>(deserializer: D) -> Result<T, D::Error>
where
    T: FromStr<Err = String>,
    D: Deserializer<'de>,
{
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Given {
        Number(u64),
        Text(String),
        List(Vec<String>),
    }
    let given = Given::deserialize(deserializer);
    let text = match given.map_err(|_| de::Error::custom("a text or a whole number is wanted"))? {
        Given::Number(number) => number.to_string(),
        Given::Text(text) => text,
        Given::List(list) => list.join(","),
    };
    text.parse().map_err(|why| de::Error::custom(format!("`{text}`: {why}")))
}

/// Values that are written and read as text.
macro_rules! as_text {
    ($($name:ty),*) => {$(
        impl Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                read(deserializer)
            }
        }
    )*};
}

as_text!(
    Size,
    super::Memory,
    super::GpuMemory,
    Rate,
    Span,
    Percent,
    Nice,
    Programs,
    super::Hours,
    super::ZoneName
);

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Checks that texts are read so, and shown so again.
    pub(crate) fn shows<T: FromStr<Err = String> + fmt::Display>(cases: &[(&str, &str)]) {
        for (given, shown) in cases {
            let value: T = given.parse().unwrap_or_else(|why| panic!("{given}: {why}"));
            assert_eq!(value.to_string(), *shown);
            assert_eq!(
                shown.parse::<T>().unwrap_or_else(|why| panic!("{why}")).to_string(),
                *shown
            );
        }
    }

    pub(crate) fn refuses<T: FromStr<Err = String>>(cases: &[&str], wanted: &str) {
        for wrong in cases {
            let Err(why) = wrong.parse::<T>() else { panic!("`{wrong}` was taken") };
            assert!(why.contains(wanted), "{why}");
        }
    }

    #[test]
    fn sizes_are_numbers_with_units() {
        for (text, bytes) in [
            ("20GiB", 20 << 30),
            ("500 MB", 500_000_000),
            ("1gb", 1_000_000_000),
            ("0", 0),
            ("7B", 7),
        ] {
            assert_eq!(text.parse(), Ok(Size(bytes)), "{text}");
        }
        shows::<Size>(&[("0", "0B"), ("1024B", "1KiB"), ("1536MiB", "1536MiB"), ("2000kb", "2MB")]);
        refuses::<Size>(&["", "GiB", "-1GB", "1.5GB", "99999999TB", "é"], "a size is wanted");
        // Five bytes, or five somethings.
        refuses::<Size>(&["5", " 20 "], "a size with its unit is wanted");
    }

    #[test]
    fn the_other_units_are_read_and_shown() {
        shows::<Rate>(&[("2 MB/s", "2MB/s"), ("512KiB/s", "512KiB/s")]);
        refuses::<Rate>(&["2MB", "0/s", "fast", "2MB/min"], "a rate above 0 is wanted");
        shows::<Span>(&[
            ("120s", "2min"),
            ("2h", "2h"),
            ("90m", "90min"),
            ("0s", "0s"),
            ("1d", "1d"),
        ]);
        refuses::<Span>(&["", "2", "h", "-1h", "400d", "1.5h"], "a length of time");
        shows::<Percent>(&[("50", "50"), ("100 %", "100")]);
        refuses::<Percent>(&["0", "101", "", "half"], "1 to 100 percent");
        shows::<Nice>(&[("19", "19"), ("0", "0")]);
        refuses::<Nice>(&["20", "-5", ""], "nice level of 0 to 19");
        shows::<Programs>(&[("steam , blender", "steam, blender")]);
        refuses::<Programs>(&["", "a,,b", "/usr/bin/steam"], "names of programs");
    }

    #[test]
    fn a_long_name_is_known_by_what_the_kernel_keeps_of_it() {
        let programs: Programs = "steam, a-very-long-program".parse().unwrap();
        assert!(programs.names("steam") && programs.names("a-very-long-pro"));
        assert!(!programs.names("steamer") && !programs.names("a-very") && !programs.names(""));
    }
}

//! Why a policy chose a hop: kept as figures, and put into words where somebody reads them.

use super::DataLocality;
use std::fmt;

/// Why a hop was chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// By [`super::Ltrp`].
    Longest {
        /// Open trials that have more left, or as much and come first.
        before: u32,
        /// Microseconds that the place would need for all that the trial has left.
        work: u64,
        /// The same of the open trial that has the most left, of those that the place could take.
        longest: u64,
        /// How the place stands to the shard.
        standing: DataLocality,
        /// Visits that the shard still gets.
        visits: u64,
    },
    /// By [`super::Randomized`].
    Random {
        /// Hops among which chance chose.
        of: u32,
        /// How the place stands to their shards.
        standing: DataLocality,
    },
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Why::Longest { before, work, longest, standing, visits } => {
                let shard = shard(standing);
                write!(f, "ltrp: its trial has {} of work left here, ", Time(work))?;
                match before {
                    0 => write!(f, "the most of those open")?,
                    _ => write!(f, "{before} open ones have no less (at most {})", Time(longest))?,
                }
                write!(f, "; {shard}, visits to come: {visits}")
            }
            Why::Random { of, standing } => {
                write!(f, "randomized: one of {of} open hops, with {}", shard(standing))
            }
        }
    }
}

/// How a place stands to a shard, in words.
#[must_use]
pub const fn shard(standing: DataLocality) -> &'static str {
    match standing {
        DataLocality::Local => "a shard in the cache",
        DataLocality::Remote => "a shard to fetch",
        DataLocality::Excluded => "a shard of another host",
    }
}

/// Microseconds, in a few figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time(pub u64);

impl fmt::Display for Time {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_reads_well() {
        let standing = DataLocality::Local;
        let why = |before| Why::Longest {
            before,
            work: 1_260_000,
            longest: 180_000_000,
            standing,
            visits: 7,
        };
        assert_eq!(
            why(0).to_string(),
            "ltrp: its trial has 1.2 s of work left here, the most of those open; a shard in the cache, \
             visits to come: 7"
        );
        assert!(why(2).to_string().contains("here, 2 open ones have no less (at most 3.0 min); a"));
        let why = Why::Random { of: 3, standing: DataLocality::Remote };
        assert_eq!(why.to_string(), "randomized: one of 3 open hops, with a shard to fetch");
        let times = [999, 1_000_000, 119_999_999, 7_200_000_000].map(|time| Time(time).to_string());
        assert_eq!(times, ["0 ms", "1.0 s", "119.9 s", "2.0 h"]);
    }
}

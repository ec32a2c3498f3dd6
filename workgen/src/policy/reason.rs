//! Why a policy chose a hop: kept as numbers, and written as text where somebody reads it.

use super::DataLocality;
use sojourn_protocol::quantity::Micros;
use std::fmt;

/// Why a hop was chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PolicyReason {
    /// By [`super::Ltrp`].
    Longest {
        /// Open trials that have more left, or as much and come first.
        before: u32,
        /// The time that the machine would need for all that the trial has left.
        work: Micros,
        /// The same for the open trial with the most work left that the machine could take.
        longest: Micros,
        /// Where the shard lies.
        locality: DataLocality,
        /// Visits that the shard still gets; `None` where it comes next by a fixed order.
        visits: Option<u64>,
    },
    /// By [`super::Randomized`].
    Random {
        /// How many hops it was chosen from.
        of: u32,
        /// Where their shards lie.
        locality: DataLocality,
    },
}

impl fmt::Display for PolicyReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            PolicyReason::Longest { before, work, longest, locality, visits } => {
                let shard = locality_text(locality);
                write!(f, "ltrp: its trial has {work} of work left here, ")?;
                match before {
                    0 => write!(f, "the most of those open")?,
                    _ => write!(f, "{before} open ones have no less (at most {longest})")?,
                }
                match visits {
                    Some(visits) => write!(f, "; {shard}, visits to come: {visits}"),
                    None => write!(f, "; {shard}, {NEXT_BY_ORDER}"),
                }
            }
            PolicyReason::Random { of, locality } => {
                write!(f, "randomized: one of {of} open hops, with {}", locality_text(locality))
            }
        }
    }
}

/// The reason, as text, where the fixed order of a trial's visits leaves no choice.
pub const NEXT_BY_ORDER: &str = "the next by the fixed order of its visits";

/// Where a shard lies, as text.
#[must_use]
pub const fn locality_text(locality: DataLocality) -> &'static str {
    match locality {
        DataLocality::Local => "a shard in the cache",
        DataLocality::Remote => "a shard to fetch",
        DataLocality::Excluded => "a shard of another host",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_short_texts() {
        let locality = DataLocality::Local;
        let with = |before, visits| PolicyReason::Longest {
            before,
            work: Micros(1_260_000),
            longest: Micros(180_000_000),
            locality,
            visits,
        };
        let reason = |before| with(before, Some(7));
        assert_eq!(
            reason(0).to_string(),
            "ltrp: its trial has 1.2 s of work left here, the most of those open; a shard in the cache, \
             visits to come: 7"
        );
        assert!(
            reason(2).to_string().contains("here, 2 open ones have no less (at most 3.0 min); a")
        );
        let fixed = with(0, None).to_string();
        assert!(
            fixed.ends_with("; a shard in the cache, the next by the fixed order of its visits")
        );
        let reason = PolicyReason::Random { of: 3, locality: DataLocality::Remote };
        assert_eq!(reason.to_string(), "randomized: one of 3 open hops, with a shard to fetch");
    }
}

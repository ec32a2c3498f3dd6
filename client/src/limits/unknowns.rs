//! Facts that limits need and that aren't known, with what follows. Each is logged once, when it becomes unknown.

use super::Fact;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// A fact that a limit needs and that isn't known, for people and programs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnknownFact {
    /// The fact.
    pub fact: Fact,
    /// The same in words.
    pub why: String,
}

/// The facts that aren't known now.
#[derive(Debug, Default)]
pub(crate) struct Unknowns(Mutex<BTreeSet<Fact>>);

impl Unknowns {
    /// Of these facts, the ones in `unknown` aren't known, and the others are or aren't needed.
    pub(super) fn set(&self, of: &[Fact], unknown: &[Fact]) {
        let mut known = self.0.lock();
        for fact in of {
            if !unknown.contains(fact) {
                known.remove(fact);
            } else if known.insert(*fact) {
                let why = fact.unknown();
                tracing::warn!("{why}; the safe side is taken meanwhile");
            }
        }
    }

    /// All of them, in order.
    pub(crate) fn all(&self) -> Vec<UnknownFact> {
        let facts = self.0.lock();
        facts
            .iter()
            .map(|fact| UnknownFact { fact: *fact, why: fact.unknown().to_owned() })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_unknown_until_they_are_known_or_not_needed_any_more() {
        let unknowns = Unknowns::default();
        let facts = |unknowns: &Unknowns| -> Vec<Fact> {
            unknowns.all().into_iter().map(|unknown| unknown.fact).collect()
        };
        let looked = [Fact::TimeZone, Fact::Battery];
        unknowns.set(&looked, &[Fact::Battery]);
        unknowns.set(&[Fact::FreeDisk], &[Fact::FreeDisk]);
        assert_eq!(facts(&unknowns), [Fact::Battery, Fact::FreeDisk]);
        unknowns.set(&looked, &[Fact::TimeZone]);
        assert_eq!(facts(&unknowns), [Fact::TimeZone, Fact::FreeDisk]);
        unknowns.set(&looked, &[]);
        assert_eq!(facts(&unknowns), [Fact::FreeDisk]);
    }
}

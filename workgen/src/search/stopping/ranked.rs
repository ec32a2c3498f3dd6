//! Trials in the order of their values, and at which place one is among them.

use sojourn_protocol::{ids::TrialId, spec::Goal};

/// Elements of a chunk at most. One more splits it.
const MAX_CHUNK: usize = 512;
const SIGN: u64 = 1 << 63;

/// A value of the metric as a number that is the lower the better the value is. Nothing is worse than what isn't finite.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::search) struct ValueRank(u64);

impl ValueRank {
    /// Of what isn't finite.
    pub(super) const WORST: Self = Self(u64::MAX);

    pub(in crate::search) fn of(goal: Goal, value: f64) -> Self {
        if !value.is_finite() {
            return Self::WORST;
        }
        // The bits of numbers rise with them, those of negative ones fall.
        let bits = value.to_bits();
        let rising = if bits & SIGN == 0 { bits | SIGN } else { !bits };
        Self(match goal {
            Goal::Min => rising,
            Goal::Max => !rising,
        })
    }

    /// The value, where it is finite.
    pub(super) fn value(self, goal: Goal) -> Option<f64> {
        let rising = match goal {
            Goal::Min => self.0,
            Goal::Max => !self.0,
        };
        let bits = if rising & SIGN == 0 { !rising } else { rising & !SIGN };
        (self != Self::WORST).then(|| f64::from_bits(bits))
    }
}

/// A trial by a value of it: the better first, of equals the lower id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::search) struct Scored {
    pub(in crate::search) rank: ValueRank,
    pub(in crate::search) trial: TrialId,
}

/// Scored trials in order. It says the place of each, and who is at a place: of 65,536 after a look at some hundred chunks.
///
/// The chunks are as in a B-tree of two levels: to add or to remove one moves a few kilobytes at most.
#[derive(Debug, Clone, Default)]
pub(super) struct Ranked {
    chunks: Vec<Vec<Scored>>,
    len: usize,
}

impl Ranked {
    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(super) fn insert(&mut self, scored: Scored) {
        let at = self.chunk_of(scored);
        let Some(chunk) = self.chunks.get_mut(at) else {
            self.chunks.push(vec![scored]);
            self.len = 1;
            return;
        };
        let Err(place) = chunk.binary_search(&scored) else { return };
        chunk.insert(place, scored);
        self.len += 1;
        if chunk.len() > MAX_CHUNK {
            let upper = chunk.split_off(MAX_CHUNK / 2);
            self.chunks.insert(at + 1, upper);
        }
    }

    pub(super) fn remove(&mut self, scored: Scored) {
        let at = self.chunk_of(scored);
        let Some(chunk) = self.chunks.get_mut(at) else { return };
        let Ok(place) = chunk.binary_search(&scored) else { return };
        chunk.remove(place);
        self.len -= 1;
        if chunk.is_empty() {
            self.chunks.remove(at);
        }
    }

    /// How many come before it.
    pub(super) fn place(&self, scored: Scored) -> usize {
        let at = self.chunk_of(scored);
        let before: usize = self.chunks.iter().take(at).map(Vec::len).sum();
        let chunk = self.chunks.get(at).map_or(&[][..], Vec::as_slice);
        before + chunk.partition_point(|other| *other < scored)
    }

    /// The one before which so many come.
    pub(super) fn get(&self, place: usize) -> Option<Scored> {
        let mut place = place;
        for chunk in &self.chunks {
            match place.checked_sub(chunk.len()) {
                Some(behind) => place = behind,
                None => return chunk.get(place).copied(),
            }
        }
        None
    }

    fn iter(&self) -> impl Iterator<Item = &Scored> {
        self.chunks.iter().flatten()
    }

    /// The first chunk that doesn't end before it; of those that all do, the last.
    fn chunk_of(&self, scored: Scored) -> usize {
        let ends_before = |chunk: &Vec<Scored>| chunk.last().is_some_and(|last| *last < scored);
        let at = self.chunks.partition_point(ends_before);
        at.min(self.chunks.len().saturating_sub(1))
    }
}

/// The chunks may be others.
impl PartialEq for Ranked {
    fn eq(&self, other: &Self) -> bool {
        self.len == other.len && self.iter().eq(other.iter())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use sojourn_protocol::quantity::{SaturatingFrom as _, to_usize};
    use std::collections::BTreeSet;

    fn scored(rank: u64, trial: u32) -> Scored {
        Scored { rank: ValueRank(rank), trial: TrialId(trial) }
    }

    #[test]
    fn values_are_ordered_by_the_goal_and_come_back_as_they_were() {
        let rising = [f64::MIN, -1.5, -1e-310, -0.0, 0.0, 1e-310, 1.0, f64::MAX];
        for goal in [Goal::Min, Goal::Max] {
            let ranks = rising.map(|value| ValueRank::of(goal, value));
            let in_order = ranks.is_sorted_by(|a, b| match goal {
                Goal::Min => a < b,
                Goal::Max => a > b,
            });
            assert!(in_order, "{goal:?}: {ranks:?}");
            for (value, rank) in rising.into_iter().zip(ranks) {
                assert_eq!(rank.value(goal).map(f64::to_bits), Some(value.to_bits()));
                assert!(rank < ValueRank::WORST);
            }
            for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
                assert_eq!(ValueRank::of(goal, value), ValueRank::WORST);
            }
            assert_eq!(ValueRank::WORST.value(goal), None);
        }
    }

    proptest! {
        #[test]
        fn places_are_those_of_a_sorted_set(
            steps in prop::collection::vec((any::<bool>(), 0u64..60, 0u32..60), 1..4_000),
        ) {
            let (mut ranked, mut set) = (Ranked::default(), BTreeSet::new());
            for (adds, rank, trial) in steps {
                let scored = scored(rank, trial);
                if adds || rank % 2 == 0 {
                    ranked.insert(scored);
                    set.insert(scored);
                } else {
                    ranked.remove(scored);
                    set.remove(&scored);
                }
            }
            prop_assert!(ranked.iter().eq(&set));
            prop_assert_eq!(ranked.len(), set.len());
            for (place, scored) in set.iter().enumerate() {
                prop_assert_eq!(ranked.place(*scored), place);
                prop_assert_eq!(ranked.get(place), Some(*scored));
            }
            prop_assert_eq!(ranked.get(set.len()), None);
            prop_assert_eq!(ranked.place(scored(60, 0)), set.len());
        }

        #[test]
        fn many_are_split_into_chunks_and_found_again(factor in 1u32..1_000) {
            let all = 5_000u32;
            let mixed = |n: u32| scored(u64::from(n * (2 * factor + 1) % 4_096), n);
            let mut ranked = Ranked::default();
            (0..all).for_each(|n| ranked.insert(mixed(n)));
            prop_assert!(ranked.chunks.len() > 5);
            prop_assert!(ranked.chunks.iter().all(|chunk| (1..=MAX_CHUNK).contains(&chunk.len())));
            let set: BTreeSet<Scored> = (0..all).map(mixed).collect();
            prop_assert!(ranked.iter().eq(&set));
            for place in (0..to_usize(all)).step_by(97) {
                let found = ranked.get(place).unwrap();
                prop_assert_eq!(u32::saturating_from(ranked.place(found)), u32::saturating_from(place));
            }
            let mut again = Ranked::default();
            (0..all).rev().for_each(|n| again.insert(mixed(n)));
            prop_assert_eq!(&ranked, &again);
            (0..all).for_each(|n| ranked.remove(mixed(n)));
            prop_assert!(ranked.is_empty() && ranked.chunks.is_empty());
        }
    }
}

//! One figure for each voter, and the middle one of them: no single voter decides.

use std::collections::BTreeMap;

/// So many voters are asked, those who came first: more don't make the middle figure better.
const MAX_VOTERS: usize = 255;

/// Figures by voter, for example by host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Votes<K> {
    by_voter: BTreeMap<K, u64>,
    /// The same by size.
    sorted: Vec<(u64, K)>,
}

impl<K> Default for Votes<K> {
    fn default() -> Self {
        Self { by_voter: BTreeMap::new(), sorted: Vec::new() }
    }
}

impl<K: Copy + Ord> Votes<K> {
    /// A voter's figure, instead of the one that it gave before.
    pub(super) fn set(&mut self, voter: K, figure: u64) {
        match self.by_voter.get(&voter) {
            Some(before) if *before == figure => return,
            Some(_) => {
                self.remove(voter);
            }
            None if self.len() >= MAX_VOTERS => return,
            None => {}
        }
        self.by_voter.insert(voter, figure);
        let at = self.position((figure, voter));
        self.sorted.insert(at, (figure, voter));
    }

    /// Forgets a voter. True where it had given a figure.
    pub(super) fn remove(&mut self, voter: K) -> bool {
        let Some(figure) = self.by_voter.remove(&voter) else { return false };
        let at = self.position((figure, voter));
        self.sorted.remove(at);
        true
    }

    /// How many have given a figure.
    pub(super) fn len(&self) -> usize {
        self.sorted.len()
    }

    /// The smallest figure.
    pub(super) fn smallest(&self) -> Option<u64> {
        self.sorted.first().map(|(figure, _)| *figure)
    }

    /// The largest figure, and who gave it.
    pub(super) fn largest(&self) -> Option<(u64, K)> {
        self.sorted.last().copied()
    }

    /// The voters that have given a figure.
    pub(super) fn voters(&self) -> impl Iterator<Item = K> + '_ {
        self.by_voter.keys().copied()
    }

    /// The middle figure; the smaller of two.
    pub(super) fn lower_median(&self) -> Option<u64> {
        self.at(self.len().checked_sub(1)? / 2)
    }

    /// The middle figure; the larger of two.
    pub(super) fn upper_median(&self) -> Option<u64> {
        self.at(self.len() / 2)
    }

    /// The middle figure of all voters but one; the larger of two.
    pub(super) fn upper_median_without(&self, voter: K) -> Option<u64> {
        let Some(own) = self.by_voter.get(&voter) else { return self.upper_median() };
        let own = self.position((*own, voter));
        let middle = self.len().checked_sub(1)? / 2;
        self.at(if middle < own { middle } else { middle + 1 })
    }

    fn at(&self, index: usize) -> Option<u64> {
        self.sorted.get(index).map(|(figure, _)| *figure)
    }

    fn position(&self, of: (u64, K)) -> usize {
        self.sorted.partition_point(|other| *other < of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_figure_is_that_of_no_single_voter() {
        let mut votes = Votes::default();
        assert_eq!((votes.lower_median(), votes.upper_median()), (None, None));
        votes.set(1, 10);
        assert_eq!((votes.lower_median(), votes.upper_median_without(1)), (Some(10), None));
        votes.set(2, 30);
        assert_eq!((votes.lower_median(), votes.upper_median()), (Some(10), Some(30)));
        votes.set(3, u64::MAX);
        votes.set(4, 0);
        assert_eq!((votes.lower_median(), votes.upper_median()), (Some(10), Some(30)));
        let without: Vec<Option<u64>> = (1..=5).map(|of| votes.upper_median_without(of)).collect();
        assert_eq!(without, [30, 10, 10, 30, 30].map(Some));
        votes.set(3, 20);
        assert!(votes.remove(4) && !votes.remove(4));
        assert_eq!((votes.len(), votes.smallest(), votes.upper_median()), (3, Some(10), Some(20)));
        (0..1_000).for_each(|voter| votes.set(voter, 7));
        assert_eq!((votes.len(), votes.upper_median()), (MAX_VOTERS, Some(7)));
    }
}

//! Which open trial has the most work left: kept from event to event, so that a decision begins with the
//! trials that matter and needn't look at the others.

use sojourn_protocol::{ids::TrialId, time::UnixMillis};
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

/// A job's running trials by the work that they have left, in microseconds at the reference speed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RemainingWorkIndex {
    /// Those of which a hop could be granted, the longest first, and since when.
    open: BTreeMap<(Reverse<u64>, TrialId), UnixMillis>,
    /// All of them, likewise.
    running: BTreeSet<(Reverse<u64>, TrialId)>,
    /// What each one has left, and since when it is open.
    by_trial: BTreeMap<TrialId, (RemainingWork, Option<UnixMillis>)>,
    /// The work of all of them together.
    total: u64,
}

/// What a trial has left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RemainingWork {
    /// In microseconds at the reference speed.
    pub(crate) work: u64,
    /// Hops of it that one more host would make go on at once: it stands with this part of its work.
    pub(crate) at_once: u64,
}

impl RemainingWork {
    const fn rank(self) -> u64 {
        self.work.div_ceil(if self.at_once > 1 { self.at_once } else { 1 })
    }
}

impl RemainingWorkIndex {
    /// A trial has so much work left, and is open or not, now.
    pub(crate) fn set(&mut self, trial: TrialId, left: RemainingWork, open: bool, now: UnixMillis) {
        let work = left.rank();
        if let Some((_, since)) = self.by_trial.get_mut(&trial).filter(|(was, _)| *was == left) {
            if open == since.is_some() {
                return;
            }
            *since = open.then_some(now);
            if open {
                self.open.insert((Reverse(work), trial), now);
            } else {
                self.open.remove(&(Reverse(work), trial));
            }
            return;
        }
        let before = self.remove(trial);
        let since = open.then(|| before.unwrap_or(now));
        self.by_trial.insert(trial, (left, since));
        self.running.insert((Reverse(work), trial));
        self.total = self.total.saturating_add(left.work);
        if let Some(since) = since {
            self.open.insert((Reverse(work), trial), since);
        }
    }

    /// A trial has ended, or has nothing left to train. Since when it was open, where it was.
    pub(crate) fn remove(&mut self, trial: TrialId) -> Option<UnixMillis> {
        let (left, since) = self.by_trial.remove(&trial)?;
        self.running.remove(&(Reverse(left.rank()), trial));
        self.open.remove(&(Reverse(left.rank()), trial));
        self.total = self.total.saturating_sub(left.work);
        since
    }

    /// Open trials with what they have left, and since when they are open: the longest first, ties by id.
    pub(crate) fn open(&self) -> impl Iterator<Item = (TrialId, u64, UnixMillis)> + '_ {
        self.open.iter().map(|((Reverse(work), trial), since)| (*trial, *work, *since))
    }

    /// Running trials with what they have left, the longest first, ties by id.
    pub(crate) fn running(&self) -> impl Iterator<Item = (TrialId, u64)> + '_ {
        self.running.iter().map(|(Reverse(work), trial)| (*trial, *work))
    }

    /// How many trials are running.
    #[must_use]
    pub(crate) fn count(&self) -> usize {
        self.by_trial.len()
    }

    /// What a running trial has left, in microseconds at the reference speed.
    #[must_use]
    pub(crate) fn left_of(&self, trial: TrialId) -> u64 {
        self.by_trial.get(&trial).map_or(0, |(left, _)| left.work)
    }

    /// Is no trial running?
    #[must_use]
    pub(crate) fn is_empty(&self) -> bool {
        self.by_trial.is_empty()
    }

    /// The most that any running trial has left.
    #[must_use]
    pub(crate) fn longest(&self) -> u64 {
        self.running.first().map_or(0, |(Reverse(work), _)| *work)
    }

    /// What all running trials have left together.
    #[must_use]
    pub(crate) fn total(&self) -> u64 {
        self.total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trials_stand_by_what_they_have_left() {
        let (mut ranks, now) = (RemainingWorkIndex::default(), UnixMillis(5));
        let left = |work| RemainingWork { work, at_once: 1 };
        ranks.set(TrialId(2), left(50), true, now);
        ranks.set(TrialId(1), left(50), true, now);
        ranks.set(TrialId(0), left(90), false, now);
        let open = [(TrialId(1), 50, now), (TrialId(2), 50, now)];
        assert_eq!(ranks.open().collect::<Vec<_>>(), open);
        assert_eq!((ranks.longest(), ranks.total()), (90, 190));
        ranks.set(TrialId(0), left(40), true, UnixMillis(7));
        ranks.set(TrialId(0), left(30), true, UnixMillis(9));
        assert_eq!(ranks.open().map(|(trial, ..)| trial.0).collect::<Vec<_>>(), [1, 2, 0]);
        let last = (TrialId(0), 30, UnixMillis(7));
        assert_eq!(ranks.open().last(), Some(last), "it is open all the time");
        assert_eq!(ranks.remove(TrialId(1)), Some(now));
        assert_eq!(ranks.remove(TrialId(1)), None);
        assert_eq!((ranks.longest(), ranks.total()), (50, 80));
        ranks.set(TrialId(0), RemainingWork { work: 30, at_once: 3 }, true, now);
        let last = (TrialId(0), 10, UnixMillis(7));
        assert_eq!((ranks.open().last(), ranks.total()), (Some(last), 80));
    }
}

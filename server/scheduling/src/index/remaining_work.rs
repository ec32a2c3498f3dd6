//! A job's trials by their remaining work, kept up to date with each event. A decision begins with the trials that matter
//! and needn't look at the others.

use sojourn_protocol::{ids::TrialId, time::UnixMillis};
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

/// A job's running trials by their remaining work, in microseconds at the reference speed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RemainingWorkIndex {
    /// Trials with a runnable hop, the most remaining work first, and since when they have one.
    open: BTreeMap<(Reverse<u64>, TrialId), UnixMillis>,
    /// All running trials, likewise.
    running: BTreeSet<(Reverse<u64>, TrialId)>,
    /// The remaining work of each, and since when it has a runnable hop.
    by_trial: BTreeMap<TrialId, (RemainingWork, Option<UnixMillis>)>,
    /// The remaining work of all of them together.
    total: u64,
    /// How many of them merge results.
    merging: usize,
    /// Trials with a runnable hop that have begun, the least remaining work first.
    begun: BTreeSet<(u64, TrialId)>,
    /// Trials with a runnable hop that haven't.
    new: BTreeSet<TrialId>,
    /// How many running trials haven't begun, runnable or not.
    to_begin: usize,
}

/// The remaining work of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RemainingWork {
    /// In microseconds at the reference speed.
    pub work: u64,
    /// Hops of it that would run at once with one more host. The trial is ranked by this part of its work.
    pub at_once: u64,
    /// The trial merges results.
    pub merges: bool,
    /// Something of the trial is trained.
    pub begun: bool,
}

impl RemainingWork {
    const fn rank(self) -> u64 {
        self.work.div_ceil(if self.at_once > 1 { self.at_once } else { 1 })
    }
}

impl RemainingWorkIndex {
    /// Sets the remaining work of a trial, and whether it has a runnable hop now.
    pub fn set(&mut self, trial: TrialId, remaining: RemainingWork, open: bool, now: UnixMillis) {
        let work = remaining.rank();
        if let Some((_, since)) = self.by_trial.get_mut(&trial).filter(|(was, _)| *was == remaining)
        {
            if open == since.is_some() {
                return;
            }
            *since = open.then_some(now);
            if open {
                self.opens(trial, remaining, now);
            } else {
                self.closes(trial, remaining);
            }
            return;
        }
        let before = self.remove(trial);
        let since = open.then(|| before.unwrap_or(now));
        self.by_trial.insert(trial, (remaining, since));
        self.running.insert((Reverse(work), trial));
        self.total = self.total.saturating_add(remaining.work);
        self.merging += usize::from(remaining.merges);
        self.to_begin += usize::from(!remaining.begun);
        if let Some(since) = since {
            self.opens(trial, remaining, since);
        }
    }

    fn opens(&mut self, trial: TrialId, remaining: RemainingWork, since: UnixMillis) {
        self.open.insert((Reverse(remaining.rank()), trial), since);
        if remaining.begun {
            self.begun.insert((remaining.rank(), trial));
        } else {
            self.new.insert(trial);
        }
    }

    fn closes(&mut self, trial: TrialId, remaining: RemainingWork) {
        self.open.remove(&(Reverse(remaining.rank()), trial));
        self.begun.remove(&(remaining.rank(), trial));
        self.new.remove(&trial);
    }

    /// Sets the remaining work of all trials of the job at once, in order; it forgets others. Each map is built from a
    /// sorted list, which takes a fraction of the time that as many calls of [`RemainingWorkIndex::set`] do.
    pub fn set_all(
        &mut self,
        trials: impl IntoIterator<Item = (TrialId, RemainingWork, bool)>,
        now: UnixMillis,
    ) {
        let mut ranked = Vec::with_capacity(self.by_trial.len());
        let (mut total, mut merging, mut to_begin) = (0_u64, 0, 0);
        let (mut begun, mut new) = (Vec::new(), Vec::new());
        let mut known = self.by_trial.iter().peekable();
        let with_times = trials.into_iter().map(|(trial, remaining, open)| {
            while known.next_if(|(id, _)| **id < trial).is_some() {}
            let since = known.next_if(|(id, _)| **id == trial).and_then(|(_, (_, since))| *since);
            let since = open.then(|| since.unwrap_or(now));
            ranked.push(((Reverse(remaining.rank()), trial), since));
            total = total.saturating_add(remaining.work);
            merging += usize::from(remaining.merges);
            to_begin += usize::from(!remaining.begun);
            match since {
                Some(_) if remaining.begun => begun.push((remaining.rank(), trial)),
                Some(_) => new.push(trial),
                None => {}
            }
            (trial, (remaining, since))
        });
        let with_times: Vec<_> = with_times.collect();
        // As a rule these are the trials that are known: then only their figures are replaced.
        let is_known = with_times.len() == self.by_trial.len()
            && with_times.iter().map(|(trial, _)| trial).eq(self.by_trial.keys());
        if is_known {
            let figures = self.by_trial.values_mut().zip(with_times);
            figures.for_each(|(known, (_, new))| *known = new);
        } else {
            self.by_trial = with_times.into_iter().collect();
        }
        // Sorted once, for both.
        ranked.sort_unstable();
        let open = ranked.iter().filter_map(|(rank, since)| Some((*rank, (*since)?)));
        self.open = open.collect();
        self.running = ranked.into_iter().map(|(rank, _)| rank).collect();
        (self.begun, self.new) = (begun.into_iter().collect(), new.into_iter().collect());
        (self.total, self.merging, self.to_begin) = (total, merging, to_begin);
    }

    /// A trial has ended, or has nothing left to train. Since when it had a runnable hop.
    pub fn remove(&mut self, trial: TrialId) -> Option<UnixMillis> {
        let (remaining, since) = self.by_trial.remove(&trial)?;
        self.running.remove(&(Reverse(remaining.rank()), trial));
        self.closes(trial, remaining);
        self.total = self.total.saturating_sub(remaining.work);
        self.merging -= usize::from(remaining.merges);
        self.to_begin -= usize::from(!remaining.begun);
        since
    }

    /// Trials with a runnable hop, with their remaining work and since when: the most first, ties by id.
    pub fn open(&self) -> impl Iterator<Item = (TrialId, u64, UnixMillis)> + '_ {
        self.open.iter().map(|((Reverse(work), trial), since)| (*trial, *work, *since))
    }

    /// The entry of [`Self::open`] for a trial, where that has a runnable hop.
    pub fn open_trial(&self, trial: TrialId) -> Option<(TrialId, u64, UnixMillis)> {
        let (remaining, since) = self.by_trial.get(&trial)?;
        Some((trial, remaining.rank(), (*since)?))
    }

    /// The place of a trial with a runnable hop in [`Self::deepest_first`]: less is earlier.
    pub fn depth_of(&self, trial: TrialId) -> Option<impl Ord + use<>> {
        let (remaining, since) = self.by_trial.get(&trial)?;
        let work = if remaining.begun { remaining.rank() } else { 0 };
        since.map(|_| (!remaining.begun, work, trial))
    }

    /// Trials with a runnable hop: those that have begun, the least remaining work first; then the others by id.
    pub fn deepest_first(&self) -> impl Iterator<Item = TrialId> + '_ {
        self.begun.iter().map(|(_, trial)| *trial).chain(self.new.iter().copied())
    }

    /// How many running trials haven't begun.
    #[must_use]
    pub fn to_begin(&self) -> usize {
        self.to_begin
    }

    /// Running trials with their remaining work: the most first, ties by id.
    pub fn running(&self) -> impl Iterator<Item = (TrialId, u64)> + '_ {
        self.running.iter().map(|(Reverse(work), trial)| (*trial, *work))
    }

    /// Running trials, by id.
    pub fn trials(&self) -> impl Iterator<Item = TrialId> + Clone + '_ {
        self.by_trial.keys().copied()
    }

    /// How many trials are running.
    #[must_use]
    pub fn count(&self) -> usize {
        self.by_trial.len()
    }

    /// Does a running trial merge results?
    #[must_use]
    pub fn any_merges(&self) -> bool {
        self.merging > 0
    }

    /// The remaining work of a running trial, in microseconds at the reference speed.
    #[must_use]
    pub fn work_of(&self, trial: TrialId) -> u64 {
        self.by_trial.get(&trial).map_or(0, |(remaining, _)| remaining.work)
    }

    /// Is no trial running?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_trial.is_empty()
    }

    /// The most remaining work of a running trial.
    #[must_use]
    pub fn longest(&self) -> u64 {
        self.running.first().map_or(0, |(Reverse(work), _)| *work)
    }

    /// The remaining work of all running trials together.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.total
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn trials_stand_by_what_they_have_left() {
        let (mut index, now) = (RemainingWorkIndex::default(), UnixMillis(5));
        let remaining = |work| RemainingWork { work, at_once: 1, merges: false, begun: work < 60 };
        index.set(TrialId(2), remaining(50), true, now);
        index.set(TrialId(1), remaining(50), true, now);
        index.set(TrialId(0), remaining(90), false, now);
        let open = [(TrialId(1), 50, now), (TrialId(2), 50, now)];
        assert_eq!(index.open().collect::<Vec<_>>(), open);
        assert_eq!((index.longest(), index.total()), (90, 190));
        assert_eq!(
            (index.deepest_first().collect::<Vec<_>>(), index.to_begin()),
            (vec![TrialId(1), TrialId(2)], 1)
        );
        index.set(TrialId(0), remaining(40), true, UnixMillis(7));
        index.set(TrialId(0), remaining(30), true, UnixMillis(9));
        assert_eq!(index.open().map(|(trial, ..)| trial.0).collect::<Vec<_>>(), [1, 2, 0]);
        let last = (TrialId(0), 30, UnixMillis(7));
        assert_eq!(index.open().last(), Some(last), "it is open all the time");
        assert_eq!(index.remove(TrialId(1)), Some(now));
        assert_eq!(index.remove(TrialId(1)), None);
        assert_eq!((index.longest(), index.total()), (50, 80));
        let merging = RemainingWork { work: 30, at_once: 3, merges: true, begun: true };
        index.set(TrialId(0), merging, true, now);
        let last = (TrialId(0), 10, UnixMillis(7));
        assert_eq!((index.open().last(), index.total()), (Some(last), 80));
        assert!(index.any_merges());
        index.remove(TrialId(0));
        assert!(!index.any_merges());
    }

    proptest! {
        #[test]
        fn all_trials_at_once_are_set_as_one_by_one(
            before in prop::collection::vec((0u64..4, 1u64..3, any::<bool>(), any::<bool>()), 8),
            after in prop::collection::vec((0u64..4, 1u64..3, any::<bool>(), any::<bool>()), 8),
        ) {
            let all = |of: Vec<(u64, u64, bool, bool)>| {
                (0..).map(TrialId).zip(of).filter_map(|(trial, (work, at_once, merges, open))| {
                    let begun = (work + at_once) % 2 == 0;
                    let remaining = RemainingWork { work, at_once, merges, begun };
                    (work > 0).then_some((trial, remaining, open))
                })
            };
            let mut one_by_one = RemainingWorkIndex::default();
            for (trial, remaining, open) in all(before) {
                one_by_one.set(trial, remaining, open, UnixMillis(1));
            }
            let mut at_once = one_by_one.clone();
            let after: Vec<_> = all(after).collect();
            for trial in (0..8).map(TrialId) {
                match after.iter().find(|(id, ..)| *id == trial) {
                    Some((_, remaining, open)) => {
                        one_by_one.set(trial, *remaining, *open, UnixMillis(2));
                    }
                    None => drop(one_by_one.remove(trial)),
                }
            }
            at_once.set_all(after, UnixMillis(2));
            for (trial, work, since) in at_once.open() {
                prop_assert_eq!(at_once.open_trial(trial), Some((trial, work, since)));
            }
            let open = (0..8).map(TrialId).filter(|trial| at_once.open_trial(*trial).is_some());
            let mut by_depth: Vec<TrialId> = open.collect();
            by_depth.sort_by_key(|trial| at_once.depth_of(*trial));
            prop_assert_eq!(by_depth, at_once.deepest_first().collect::<Vec<_>>());
            prop_assert_eq!(at_once, one_by_one);
        }
    }
}

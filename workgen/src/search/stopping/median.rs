//! The median rule, as Optuna's `MedianPruner` has it: a trial ends whose best value so far is worse than the median of the others'
//! values after as many epochs as the trial has. The best value of a clone is that of its own epochs.
//!
//! Optuna compares with complete trials alone. Here trials that train or were stopped count as well, as far as they came: where
//! many trials train at once, none would be complete before the others have trained for long.
//!
//! For each number of epochs all values are kept in order, and the trials that have come so far and no farther by their bests. A
//! decision looks the median up, and at the trials whose bests are worse.

use super::{
    Decision, TrialProgress, judged,
    ranked::{Ranked, Scored, ValueRank},
};
use sojourn_protocol::{
    ids::TrialId,
    quantity::{SaturatingFrom as _, to_usize},
    spec::Goal,
};
use std::collections::{BTreeMap, BTreeSet};

/// The state that the rule keeps of a search.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Median {
    goal: Goal,
    /// Epochs of a trial that isn't stopped.
    epochs: u32,
    min_epochs: u32,
    min_trials: usize,
    /// By a number of epochs: the trials of which so many are evaluated.
    lengths: BTreeMap<u32, Length>,
    /// The lengths of which a trial is to end.
    due: BTreeSet<u32>,
}

#[derive(Debug, Clone, Default, PartialEq)]
struct Length {
    /// Values after so many epochs, of all trials that have as many or more.
    values: Ranked,
    /// Trials that have just as many and are judged by them: by the best value, with the last one.
    judged: BTreeMap<Scored, ValueRank>,
}

impl Median {
    pub(super) fn new(min_epochs: u32, min_trials: u32, epochs: u32, goal: Goal) -> Self {
        let (lengths, due) = (BTreeMap::new(), BTreeSet::new());
        let (min_epochs, min_trials) = (min_epochs.max(1), to_usize(min_trials));
        Self { goal, epochs, min_epochs, min_trials, lengths, due }
    }

    /// A trial was as `before` says, if it was there, and is as `now` says.
    pub(super) fn change(
        &mut self,
        trial: TrialId,
        before: Option<&TrialProgress>,
        now: &TrialProgress,
    ) {
        let was = before.map_or(&[][..], |of| &of.values);
        let same = was.iter().zip(&now.values).take_while(|(a, b)| a.to_bits() == b.to_bits());
        let same = same.count();
        let mut touched = BTreeSet::new();
        for (epochs, rank) in self.ranks(was, same) {
            self.length(epochs).values.remove(Scored { rank, trial });
            touched.insert(epochs);
        }
        for (epochs, rank) in self.ranks(&now.values, same) {
            self.length(epochs).values.insert(Scored { rank, trial });
            touched.insert(epochs);
        }
        let was = before.and_then(|of| self.judged(trial, of));
        let is = self.judged(trial, now);
        if was != is {
            if let Some((epochs, best, _)) = was {
                self.length(epochs).judged.remove(&best);
                touched.insert(epochs);
            }
            if let Some((epochs, best, last)) = is {
                self.length(epochs).judged.insert(best, last);
                touched.insert(epochs);
            }
        }
        touched.into_iter().for_each(|epochs| self.find_due(epochs));
    }

    pub(super) fn decide(&self, trials: &[TrialProgress]) -> Vec<Decision> {
        let lengths =
            self.due.iter().filter_map(|epochs| Some((*epochs, self.lengths.get(epochs)?)));
        let stops = lengths.flat_map(|(epochs, length)| {
            let others = length.others();
            let s = if epochs == 1 { "" } else { "s" };
            length.worse(self.goal, self.min_trials).map(move |(trial, median)| {
                let values = trials.get(to_usize(trial.0)).map_or(&[][..], |of| of.own_values());
                let best = best(self.goal, values);
                let why = format!(
                    "its best after {epochs} epoch{s} is {best:.6}, worse than the median of {others} others' values then, {median:.6}"
                );
                (trial, why)
            })
        });
        let stops: BTreeMap<TrialId, String> = stops.collect();
        stops.into_iter().map(|(trial, why)| Decision::Stop { trial, why }).collect()
    }

    fn length(&mut self, epochs: u32) -> &mut Length {
        self.lengths.entry(epochs).or_default()
    }

    /// The values after one epoch, two and so on, but for the first `skip`, as far as they count.
    fn ranks(&self, values: &[f64], skip: usize) -> Vec<(u32, ValueRank)> {
        let first = to_usize(self.min_epochs - 1);
        let counted = (1u32..).zip(values).skip(skip.max(first));
        counted.map(|(epochs, value)| (epochs, ValueRank::of(self.goal, *value))).collect()
    }

    /// The epochs by which the trial is judged, its best value over them and its last.
    fn judged(&self, trial: TrialId, of: &TrialProgress) -> Option<(u32, Scored, ValueRank)> {
        let epochs = u32::saturating_from(judged(of, self.min_epochs, self.epochs)?);
        let rank = ValueRank::of(self.goal, best(self.goal, of.own_values()));
        let last = ValueRank::of(self.goal, *of.values.last()?);
        Some((epochs, Scored { rank, trial }, last))
    }

    /// Finds anew whether a trial of so many epochs is to end.
    fn find_due(&mut self, epochs: u32) {
        let Some(length) = self.lengths.get(&epochs) else { return };
        if length.worse(self.goal, self.min_trials).next().is_some() {
            self.due.insert(epochs);
            return;
        }
        self.due.remove(&epochs);
        if length.values.is_empty() && length.judged.is_empty() {
            self.lengths.remove(&epochs);
        }
    }
}

impl Length {
    /// With how many others a trial is compared.
    fn others(&self) -> usize {
        self.values.len().saturating_sub(1)
    }

    /// The judged trials whose bests are worse than the median of the others' values, with that.
    fn worse(&self, goal: Goal, min_trials: usize) -> impl Iterator<Item = (TrialId, f64)> {
        // No median of all but one is better than this value.
        let least = self.values.get(self.others().saturating_sub(1) / 2);
        let least = least.filter(|_| self.others() >= min_trials.max(1));
        least.into_iter().flat_map(move |least| {
            let worst_first = self.judged.iter().rev();
            let worse = worst_first.take_while(move |(best, _)| least.rank < best.rank);
            worse.filter_map(move |(best, last)| {
                let median = self.median_but(goal, Scored { rank: *last, trial: best.trial })?;
                let is_worse = best.rank.value(goal).is_none_or(|best| match goal {
                    Goal::Min => median < best,
                    Goal::Max => median > best,
                });
                is_worse.then_some((best.trial, median))
            })
        })
    }

    /// The median of all values but this one: of two in the middle their mean, and none where one isn't finite.
    fn median_but(&self, goal: Goal, own: Scored) -> Option<f64> {
        let (own, others) = (self.values.place(own), self.others());
        let value = |at: usize| self.values.get(at + usize::from(own <= at))?.rank.value(goal);
        Some(f64::midpoint(value(others.saturating_sub(1) / 2)?, value(others / 2)?))
    }
}

fn best(goal: Goal, values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::NAN, |best, value| match goal {
        Goal::Min => best.min(value),
        Goal::Max => best.max(value),
    })
}

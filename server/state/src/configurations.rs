//! The configurations of a job, as its search compares them, and the best of them.

use super::{
    Job,
    trial::{Best, Trial, TrialEnd, is_better},
};
use sojourn_protocol::{
    cross_validation::mean_over_folds,
    ids::TrialId,
    quantity::{SaturatingFrom as _, to_usize},
};

impl Job {
    /// The best trial, ties to the lower id. Of a job with folds that of the best configuration: the one that was trained on all folds,
    /// once it is there, else its best fold.
    #[must_use]
    pub fn best(&self) -> Option<(TrialId, Best)> {
        match self.spec.search.folds {
            None => self.best_of(&self.trials),
            Some(_) => {
                let (trials, _) = self.best_configuration()?;
                self.refitted(trials).or_else(|| self.best_of(trials))
            }
        }
    }

    fn best_of(&self, trials: &[Trial]) -> Option<(TrialId, Best)> {
        let mut best: Option<(TrialId, Best)> = None;
        for trial in trials {
            if let Some(candidate) = trial.best
                && is_better(self.spec.search.goal, candidate.value, best.map(|(_, b)| b.value))
            {
                best = Some((trial.id, candidate));
            }
        }
        best
    }

    /// The job's configurations, as the search compares them: the trials of all folds, in order, or each trial for itself.
    pub fn configurations(&self) -> impl Iterator<Item = &[Trial]> {
        (0..self.configuration_count()).map(|number| self.configuration(number))
    }

    /// How many configurations there are.
    #[must_use]
    pub fn configuration_count(&self) -> u32 {
        let compared = self.trials.len().saturating_sub(self.refits.len());
        u32::saturating_from(compared.div_ceil(self.trials_per_comparison()))
    }

    /// The trials of a configuration by its number, counted from 0; none of a number that there isn't.
    #[must_use]
    pub fn configuration(&self, number: u32) -> &[Trial] {
        let of_each = self.trials_per_comparison();
        let mut first = to_usize(number).saturating_mul(of_each);
        for refit in &self.refits {
            first += usize::from(to_usize(refit.0) <= first);
        }
        let end = first.saturating_add(of_each).min(self.trials.len());
        self.trials.get(first..end).unwrap_or_default()
    }

    /// The number of the configuration that a trial is of. One that trains on all folds is of none: it gets the number of the next one.
    #[must_use]
    pub fn configuration_of(&self, trial: TrialId) -> u32 {
        let before = self.refits.iter().filter(|refit| **refit < trial).count();
        let compared = to_usize(trial.0).saturating_sub(before);
        u32::saturating_from(compared / self.trials_per_comparison())
    }

    /// How many trials are compared as one: those of all folds, at least 1.
    #[must_use]
    pub fn trials_per_comparison(&self) -> usize {
        to_usize(self.spec.search.folds.unwrap_or(1)).max(1)
    }

    /// The configuration with the best mean over its folds, of those that have a value for each and of which none has failed; ties to the
    /// first. With that mean.
    pub(super) fn best_configuration(&self) -> Option<(&[Trial], f64)> {
        let mut best: Option<(&[Trial], f64)> = None;
        for trials in self.configurations() {
            let Some(mean) = mean_of(trials) else { continue };
            if is_better(self.spec.search.goal, mean, best.map(|(_, mean)| mean)) {
                best = Some((trials, mean));
            }
        }
        best
    }

    /// Would a trial of the job with this value be the best, or as good? With folds: would its configuration by its mean, as soon as
    /// all folds have a value.
    #[must_use]
    pub fn may_be_best(&self, trial: TrialId, value: f64) -> bool {
        let goal = self.spec.search.goal;
        let (value, best) = match self.spec.search.folds {
            None => (value, self.best().map(|(_, best)| best.value)),
            Some(_) => {
                let of = |fold: &Trial| {
                    let known = fold.best.map(|best| best.value);
                    let is_it = fold.id == trial && is_better(goal, value, known);
                    if is_it { Some(value) } else { known }
                };
                let trials = self.configuration(self.configuration_of(trial));
                let Some(mean) = mean_by(trials, of) else { return true };
                (mean, self.best_configuration().map(|(_, mean)| mean))
            }
        };
        best == Some(value) || is_better(goal, value, best)
    }
}

/// The mean of the folds' best values; none where one has none, or has failed.
pub(super) fn mean_of(trials: &[Trial]) -> Option<f64> {
    mean_by(trials, |trial| Some(trial.best?.value))
}

fn mean_by(trials: &[Trial], value: impl Fn(&Trial) -> Option<f64>) -> Option<f64> {
    let failed = |trial: &Trial| matches!(trial.end, Some(TrialEnd::Failed(_)));
    let values = trials.iter().map(|trial| value(trial).filter(|_| !failed(trial)));
    let values = values.collect::<Option<Vec<f64>>>()?;
    (!values.is_empty()).then(|| mean_over_folds(&values))
}

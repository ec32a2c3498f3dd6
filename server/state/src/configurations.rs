//! The configurations of a job, as its search compares them, and the best of them.

use super::{
    Job,
    trial::{Best, Trial, TrialEnd, is_better},
};
use sojourn_protocol::{cross_validation::mean_over_folds, ids::TrialId, quantity::to_usize};

impl Job {
    /// The best trial, ties to the lower id. Of a job with folds the best trial of the best configuration.
    #[must_use]
    pub fn best(&self) -> Option<(TrialId, Best)> {
        match self.spec.search.folds {
            None => self.best_of(&self.trials),
            Some(_) => self.best_of(self.best_configuration()?.0),
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
        self.trials.chunks(self.trials_per_comparison())
    }

    /// How many trials are compared as one: those of all folds, at least 1.
    #[must_use]
    pub fn trials_per_comparison(&self) -> usize {
        to_usize(self.spec.search.folds.unwrap_or(1)).max(1)
    }

    /// The configuration with the best mean over its folds, of those that have a value for each and of which none has failed; ties to the
    /// first. With that mean.
    fn best_configuration(&self) -> Option<(&[Trial], f64)> {
        let mut best: Option<(&[Trial], f64)> = None;
        for trials in self.configurations() {
            let value = |trial: &Trial| Some(trial.best?.value);
            let Some(mean) = mean_of(trials, value) else { continue };
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
                let number = to_usize(trial.0) / self.trials_per_comparison();
                let trials = self.configurations().nth(number).unwrap_or_default();
                let Some(mean) = mean_of(trials, of) else { return true };
                (mean, self.best_configuration().map(|(_, mean)| mean))
            }
        };
        best == Some(value) || is_better(goal, value, best)
    }
}

/// The mean of the folds' values; none where one has none, or has failed.
fn mean_of(trials: &[Trial], value: impl Fn(&Trial) -> Option<f64>) -> Option<f64> {
    let failed = |trial: &Trial| matches!(trial.end, Some(TrialEnd::Failed(_)));
    let values = trials.iter().map(|trial| value(trial).filter(|_| !failed(trial)));
    let values = values.collect::<Option<Vec<f64>>>()?;
    (!values.is_empty()).then(|| mean_over_folds(&values))
}

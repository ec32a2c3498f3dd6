//! The final model of cross-validation: the best configuration, trained once more on the rows of all folds.
//!
//! ```text
//!   fold 0: best after epoch 7 --.
//!   fold 1: best after epoch 9 --+-- mean --> a trial of 8 epochs, over all shards, without evaluations
//!   fold 2: best after epoch 8 --'
//! ```
//!
//! Nothing is held out of it, so that nothing but the test rows can judge it: its value is the mean of its folds, as what is expected of
//! a model of this configuration.

use super::{
    Job,
    configurations::mean_of,
    trial::{Best, Trial, TrialEnd},
};
use crate::added_trial::AddedTrial;
use sojourn_protocol::{
    digest::BlobRef,
    ids::{Epoch, TrialId},
    quantity::SaturatingFrom as _,
    spec::FOLD,
};

impl Job {
    /// The trial that is to train the best configuration on all folds, where that is wanted, nothing else is left to train, and there is
    /// none of this configuration and length.
    #[must_use]
    pub fn refit_due(&self) -> Option<AddedTrial> {
        // Once its time or its budget is up nothing more is trained.
        let is_over = self.grace.is_some() || self.used_up.is_some();
        if !self.spec.search.refit || is_over || !self.is_running() || !self.search_ended() {
            return None;
        }
        let (trials, _) = self.best_configuration()?;
        let epochs = mean_length(trials)?;
        let is_there = self.refits_of(trials, epochs).any(|refit| {
            // One that ended while its folds were taken back has no value.
            refit.end != Some(TrialEnd::Finished) || refit.best.is_some() || refit.stopped.is_some()
        });
        if is_there {
            return None;
        }
        let first = trials.first()?;
        let mut choices = first.choices.clone();
        choices.remove(FOLD);
        let mut config = first.context.config.clone();
        config.training.epochs = epochs;
        let (model, seed) = (first.model, first.seed);
        let trial = sojourn_workgen::Trial { model, config, choices, seed, fold: None };
        let (refit, allowed) = (Some(first.id), Some(epochs));
        Some(AddedTrial { refit, allowed, ..AddedTrial::new(trial) })
    }

    /// The model that was trained on all folds of this configuration, for as long as its folds say now.
    pub(super) fn refitted(&self, trials: &[Trial]) -> Option<(TrialId, Best)> {
        let (value, epochs) = (mean_of(trials)?, mean_length(trials)?);
        let mut ended = self.refits_of(trials, epochs).filter(|refit| !refit.is_running());
        ended.find_map(|refit| Some((refit.id, Best { value, ..refit.best? })))
    }

    /// The trials that train a configuration on all folds for so many epochs, the latest first.
    fn refits_of(&self, trials: &[Trial], epochs: u32) -> impl Iterator<Item = &Trial> {
        let first = trials.first().map(|trial| trial.id);
        let refits = self.refits.iter().rev().filter_map(|refit| self.trial(*refit));
        refits.filter(move |refit| refit.refit == first && refit.epochs() == epochs)
    }

    /// The value of a trial that trains on all folds: the mean of them, where all have one.
    #[must_use]
    pub fn value_of_refit(&self, trial: &Trial) -> Option<f64> {
        mean_of(self.configuration(self.configuration_of(trial.refit?)))
    }
}

impl Trial {
    /// An epoch of it has ended, and it trains on all folds: with its last one it has finished.
    pub(super) fn refit_epoch_over(
        &mut self,
        epoch: Epoch,
        checkpoint: BlobRef,
        value: Option<f64>,
    ) {
        if self.is_trained() && self.end.is_none() {
            self.end = Some(TrialEnd::Finished);
            self.best = value.map(|value| Best { epoch, value, checkpoint });
        }
    }
}

/// The epochs of the best checkpoints of a configuration's folds, in the mean.
fn mean_length(trials: &[Trial]) -> Option<u32> {
    let lengths = trials.iter().map(|trial| Some(u64::from(trial.best?.epoch.0) + 1));
    let lengths = lengths.collect::<Option<Vec<u64>>>()?;
    let (sum, count) = (lengths.iter().sum::<u64>(), lengths.len() as u64);
    Some(u32::saturating_from((2 * sum + count).checked_div(2 * count)?).max(1))
}

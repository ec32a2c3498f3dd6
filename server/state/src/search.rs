//! How far a job's search has got, and the trials that it adds while others train.

use super::{FoldFault, Job, PendingEvaluation, State, Trial, is_default, job::new_trial};
use crate::added_trial::{AddedTrial, CloneOf};
use serde::{Deserialize, Serialize};
use sojourn_protocol::{
    api::Space,
    cross_validation::Fold,
    digest::BlobRef,
    ids::{Epoch, JobId, TrialId, Version},
    minibatches::Minibatches,
    quantity::{SaturatingFrom as _, to_usize},
    spec::{JobSpec, ModelSpace, SearchMethod, TrainingSpace},
    time::UnixMillis,
    unit::Origin,
};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Calls that are known again: a program repeats the last one whose answer it missed.
const KEPT_CALLS: usize = 256;

/// How far a search has got with the combinations that it tries. That of a job which began with all of them, and to which none was
/// added, is the default.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SearchProgress {
    /// Combinations that its procedure has tried, with each of the job's seeds and folds.
    pub suggested: u32,
    /// Combinations that there are to be in all, at most.
    pub wanted: u32,
    /// Why it tries no more of them, though there are fewer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over: Option<String>,
    /// Whether the search is over because its time was up, or its epochs used up.
    #[serde(default, skip_serializing_if = "is_default")]
    pub over_by_time: bool,
    /// The last calls that added trials, by the names that their callers gave them.
    #[serde(default, skip_serializing_if = "VecDeque::is_empty")]
    pub calls: VecDeque<Call>,
}

/// A call that added trials.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// The name that its caller gave it.
    pub nonce: String,
    /// The first trial that it added.
    pub first: TrialId,
    /// How many.
    pub trials: u32,
}

impl SearchProgress {
    /// Are there combinations to come?
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.over.is_none() && self.suggested < self.wanted
    }
}

impl Job {
    /// The epoch ends of a trial whose checkpoints are still there: epochs trained, with the version and its checkpoint; the latest
    /// first.
    fn ends_of(trial: &Trial) -> Vec<(u32, BlobRef)> {
        let now = trial.checkpoint.filter(|_| trial.chain.is_between_epochs());
        let now = now.map(|blob| (trial.chain.epoch().0, blob));
        let best = trial.best.map(|best| (best.epoch.0 + 1, best.checkpoint));
        let kept = trial.kept.iter().map(|(epoch, blob)| (epoch.0 + 1, *blob));
        let evaluations = trial.evaluations.iter();
        let pending = evaluations.map(|(epoch, of)| (epoch.0 + 1, of.checkpoint));
        let own = trial.blobs().collect::<Vec<_>>();
        let all = now.into_iter().chain(best).chain(kept).chain(pending);
        let mut all: Vec<(u32, BlobRef)> = all.filter(|(_, blob)| own.contains(blob)).collect();
        all.sort_by_key(|(epochs, _)| std::cmp::Reverse(*epochs));
        all
    }

    /// The latest epoch end of a trial that another can go on from: epochs trained by then.
    #[must_use]
    pub fn clonable_after(&self, trial: TrialId) -> Option<u32> {
        Self::ends_of(self.trial(trial)?).first().map(|(epochs, _)| *epochs)
    }

    /// Can another trial go on from this state?
    #[must_use]
    pub fn can_clone(&self, from: CloneOf) -> bool {
        let ends = self.trial(from.trial).map(Self::ends_of).unwrap_or_default();
        ends.iter().any(|(epochs, _)| *epochs == from.epochs)
    }

    /// Where a clone goes on from, if it has batches of this size.
    fn origin(
        &self,
        from: CloneOf,
        fold: Option<Fold>,
        minibatches: Minibatches,
    ) -> Option<Origin> {
        let trial = self.trial(from.trial)?;
        let mut ends = Self::ends_of(trial).into_iter();
        let (epochs, checkpoint) = ends.find(|(epochs, _)| *epochs == from.epochs)?;
        let last = Epoch(epochs.checked_sub(1)?);
        Some(Origin {
            trial: from.trial,
            epochs,
            version: trial.version_after(last).unwrap_or(Version(0)),
            checkpoint,
            // Schedules go on as if it had always had batches of this size.
            step: self.data.steps_per_epoch(fold, minibatches) * u64::from(epochs),
        })
    }

    fn added(&self, added: &AddedTrial) -> Result<Trial, FoldFault> {
        let id = TrialId(u32::saturating_from(self.trials.len()));
        let AddedTrial { model, mut config, choices, seed, fold, refit, from, replaces, allowed } =
            added.clone();
        let mut others = [replaces, refit].into_iter().flatten();
        if let Some(trial) = others.find(|trial| self.trial(*trial).is_none()) {
            return Err(FoldFault::UnknownTrial { job: self.id, trial });
        }
        self.spec.restore_graph(model, &mut config);
        let minibatches = config.training.minibatches();
        let trial = sojourn_workgen::Trial { model, config, choices, seed, fold };
        let new = new_trial(&self.spec, &self.data, id, self.configuration_of(id), trial);
        let mut new =
            new.map_err(|source| FoldFault::InvalidModel { job: self.id, trial: id, source })?;
        let epochs = allowed.unwrap_or_else(|| new.chain.epochs());
        if let Some(from) = from {
            let epoch = Epoch(from.epochs.saturating_sub(1));
            let unkept = FoldFault::NotKept { job: self.id, trial: from.trial, epoch };
            let origin = self.origin(from, new.fold, minibatches).ok_or(unkept)?;
            let parent = self.trial(from.trial);
            let curve = parent.map(|parent| parent.curve.iter()).unwrap_or_default();
            new.curve = curve.filter(|point| point.epoch.0 < origin.epochs).cloned().collect();
            new.evaluations = parent.map(|of| unevaluated(of, origin.epochs)).unwrap_or_default();
            (new.class, new.mixed) = parent.map_or((None, false), |of| (of.class, of.mixed));
            new.origin = Some(origin);
        }
        (new.replaces, new.refit) = (replaces, refit);
        new.chain = self.new_chain(&new, epochs);
        new.renew_merging();
        Ok(new)
    }
}

/// Evaluations that are left of a trial's first epochs, as another trial's that goes on from them.
fn unevaluated(trial: &Trial, epochs: u32) -> BTreeMap<Epoch, PendingEvaluation> {
    let left = trial.evaluations.iter().filter(|(epoch, _)| epoch.0 < epochs);
    let anew = |(epoch, left): (&Epoch, &PendingEvaluation)| {
        let (version, checkpoint, train) = (Version(0), left.checkpoint, left.train.clone());
        let (live, failures, verification) = (BTreeSet::new(), BTreeMap::new(), None);
        (*epoch, PendingEvaluation { version, checkpoint, train, live, failures, verification })
    };
    left.map(anew).collect()
}

impl State {
    /// Adds trials to a job, which runs again if it had ended.
    pub(super) fn trials_added(
        &mut self,
        job: JobId,
        added: &[AddedTrial],
        suggested: u32,
        nonce: Option<&String>,
        at: UnixMillis,
    ) -> Result<(), FoldFault> {
        let paid = self.paid_of_used_up(job, at);
        let known = self.known_job_mut(job)?;
        known.search = known.search_progress();
        let first = TrialId(u32::saturating_from(known.trials.len()));
        for one in added {
            let new = self.known_job(job)?.added(one)?;
            for blob in new.blobs() {
                self.blobs.retain(blob.sha256)?;
            }
            let known = self.known_job_mut(job)?;
            known.kept.change_checkpoints(0, new.kept_bytes());
            known.refits.extend(new.refit.map(|_| new.id));
            known.trials.push(new);
        }
        let replaced = added.iter().filter(|one| one.replaces.is_some());
        if let Some(over) = replaced.filter_map(|one| one.from).map(|from| from.epochs).max() {
            self.generation_over(job, over, at)?;
        }
        let known = self.known_job_mut(job)?;
        let search = &mut known.search;
        search.suggested = search.suggested.saturating_add(suggested);
        if let Some(nonce) = nonce {
            let trials = u32::saturating_from(added.len());
            search.calls.push_back(Call { nonce: nonce.clone(), first, trials });
            if search.calls.len() > KEPT_CALLS {
                search.calls.pop_front();
            }
        }
        if !added.is_empty() {
            // By its search it gets no more once its time is up: a user means that it goes on.
            let is_over = known.grace.is_some() || (!known.is_running() && known.is_time_up(at));
            known.run_again(at);
            if is_over {
                known.begin_anew(at, paid, false);
            }
        }
        known.recount_load();
        Ok(())
    }

    /// A search tries no more combinations.
    pub(super) fn search_over(
        &mut self,
        job: JobId,
        why: &str,
        at: UnixMillis,
    ) -> Result<(), FoldFault> {
        let known = self.known_job_mut(job)?;
        let (over, over_by_time) = (Some(why.to_owned()), false);
        known.search = SearchProgress { over, over_by_time, ..known.search_progress() };
        self.settle(job, at)
    }

    /// A search is to try so many combinations in all. Where its time was up, it has that once more for them.
    pub(super) fn search_extended(
        &mut self,
        job: JobId,
        trials: u32,
        at: UnixMillis,
    ) -> Result<(), FoldFault> {
        let paid = self.paid_of_used_up(job, at);
        let known = self.known_job_mut(job)?;
        let (over, over_by_time) = (None, false);
        let before = known.search_progress();
        known.search = SearchProgress { wanted: trials, over, over_by_time, ..before };
        if known.search.is_open() {
            let is_over = known.grace.is_some() || (!known.is_running() && known.is_time_up(at));
            known.run_again(at);
            if is_over {
                known.begin_anew(at, paid, true);
                known.recount_load();
            }
        }
        Ok(())
    }

    /// From now on combinations are of this space.
    pub(super) fn space_changed(
        &mut self,
        job: JobId,
        models: &[ModelSpace],
        training: &TrainingSpace,
    ) -> Result<(), FoldFault> {
        let known = self.known_job_mut(job)?;
        let spec = &mut known.spec;
        let models = std::mem::replace(&mut spec.models, models.to_vec());
        let training = std::mem::replace(&mut spec.training, training.clone());
        known.submitted.get_or_insert_with(|| Box::new(Space { models, training }));
        Ok(())
    }
}

impl Job {
    /// How far its search has got.
    #[must_use]
    pub fn search_progress(&self) -> SearchProgress {
        if self.search != SearchProgress::default() {
            return self.search.clone();
        }
        let all = u32::saturating_from(self.trials.len() / self.spec.trials_per_configuration());
        SearchProgress { suggested: all, wanted: all, ..SearchProgress::default() }
    }

    /// The job as it was submitted, and the space that combinations are taken from, where that was changed.
    #[must_use]
    pub fn submitted_spec(&self) -> (JobSpec, Option<Space>) {
        let mut spec = self.spec.clone();
        let Some(submitted) = self.submitted.as_deref().cloned() else { return (spec, None) };
        let models = std::mem::replace(&mut spec.models, submitted.models);
        let training = std::mem::replace(&mut spec.training, submitted.training);
        (spec, Some(Space { models, training }))
    }

    /// Why no more combinations are tried, where a program decides on trials epoch by epoch and the search was ended.
    #[must_use]
    pub fn ended_by_program(&self) -> Option<&str> {
        let by_epochs = matches!(self.spec.search.method, SearchMethod::Epochs { .. });
        self.search.over.as_deref().filter(|_| by_epochs && !self.search.over_by_time)
    }

    /// The trials that a call of this name has added.
    #[must_use]
    pub fn added_by(&self, nonce: &str) -> Option<Vec<TrialId>> {
        let call = self.search.calls.iter().find(|call| call.nonce == nonce)?;
        let ids = call.first.0..call.first.0.saturating_add(call.trials);
        Some(ids.map(TrialId).take(to_usize(call.trials)).collect())
    }
}

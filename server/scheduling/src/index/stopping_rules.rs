//! Rules of early stopping, with what each knows of its running job. They are told of the trials that events have changed, so a
//! decision doesn't look through all trials of its job.
//!
//! ```text
//!   event --Change::Work--> trials that have changed --decide--> Search: told of those alone, then asked
//! ```

use sojourn_protocol::{
    ids::{JobId, TrialId},
    quantity::{SaturatingFrom as _, to_usize},
    spec::{SearchSpec, Stopping},
};
use sojourn_state::{Job, Trial};
use sojourn_workgen::search::stopping::{Decision, Search, TrialProgress};
use std::collections::{BTreeMap, BTreeSet};

/// By job, of those that run and have a rule. Each is made from the job's trials when its rule is asked for the first time.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StoppingRules {
    jobs: BTreeMap<JobId, KnownSearch>,
}

/// A job's rule, with the trials that it knows of.
#[derive(Debug, Clone, PartialEq)]
struct KnownSearch {
    search: Search,
    /// Trials that have begun, and neither have ended nor wait for the rule.
    busy: BTreeSet<TrialId>,
    /// Trials that may have changed since the rule was asked.
    changed: BTreeSet<TrialId>,
}

impl StoppingRules {
    /// A trial of the job may have changed.
    pub fn trial_changed(&mut self, job: JobId, trial: TrialId) {
        if let Some(known) = self.jobs.get_mut(&job) {
            known.changed.insert(trial);
        }
    }

    /// All trials of the job may have changed, or it isn't there any more.
    pub fn job_changed(&mut self, job: JobId) {
        self.jobs.remove(&job);
    }

    /// The decisions of the job's rule now, where so many of its trials should train at once.
    pub fn decide(&mut self, job: &Job, rule: &Stopping, at_once: usize) -> Vec<Decision> {
        let known = self.jobs.entry(job.id).or_insert_with(|| KnownSearch::of(job, rule));
        known.renew(job);
        known.search.decide(at_once.saturating_sub(known.busy.len()))
    }

    /// How many trials of a job its rule hasn't let begin, as far as it was told.
    pub fn held_back(&self, job: JobId) -> usize {
        self.jobs.get(&job).map_or(0, |known| known.search.held_back())
    }

    /// Is what the job's rule knows, told of what has changed since, that which its trials say?
    pub fn agree_with(&self, job: &Job) -> bool {
        let Some(known) = self.jobs.get(&job.id) else { return true };
        let mut renewed = known.clone();
        renewed.renew(job);
        let rule = job.spec.search.stopping;
        rule.is_some_and(|rule| job.is_running() && renewed == KnownSearch::of(job, &rule))
    }
}

impl KnownSearch {
    fn of(job: &Job, rule: &Stopping) -> Self {
        let (search, epochs) = (&job.spec.search, job.spec.training.epochs);
        let trials = job.trials.iter().map(|trial| progress(trial, search, epochs));
        let mut search = Search::from_trials(rule, epochs, search.goal, trials);
        search.expect_more(job.search.is_open());
        Self {
            search,
            busy: job.trials.iter().filter(|trial| trial.is_busy()).map(|trial| trial.id).collect(),
            changed: BTreeSet::new(),
        }
    }

    /// Is told of the trials that have changed, and of those that have been added.
    fn renew(&mut self, job: &Job) {
        self.search.expect_more(job.search.is_open());
        let known = TrialId(u32::saturating_from(self.search.trials().len()));
        let mut changed = std::mem::take(&mut self.changed);
        let added = job.trials.get(to_usize(known.0)..).unwrap_or_default();
        drop(changed.split_off(&known));
        let changed = changed.into_iter().filter_map(|trial| job.trial(trial));
        for trial in changed.chain(added) {
            let now = progress(trial, &job.spec.search, job.spec.training.epochs);
            self.search.update(trial.id, now);
            if trial.is_busy() {
                self.busy.insert(trial.id);
            } else {
                self.busy.remove(&trial.id);
            }
        }
    }
}

/// A trial as its rule sees it. Rungs stay where they were when the job was submitted, with so many epochs.
fn progress(trial: &Trial, search: &SearchSpec, epochs: u32) -> TrialProgress {
    let inherited = trial.origin.map_or(0, |origin| origin.epochs);
    let mut values: Vec<f64> = Vec::with_capacity(trial.curve.len());
    for point in &trial.curve {
        // Epochs of the trial that it is a clone of may never be evaluated: they count as the one before.
        while values.len() < to_usize(point.epoch.0.min(inherited)) {
            values.push(values.last().copied().unwrap_or(f64::NAN));
        }
        // Epochs may be evaluated in another order than they were trained in.
        if values.len() != to_usize(point.epoch.0) {
            break;
        }
        values.push(search.value(&point.valid, point.f1, &point.own));
    }
    TrialProgress {
        // One that the user extended has passed all rungs.
        allowed: trial.chain.epochs().min(epochs),
        trained: trial.chain.epoch().0,
        values,
        has_ended: !trial.is_running(),
        inherited,
        is_exempt: trial.is_exempt,
    }
}

//! Rules of early stopping, with what each knows of its running job. They are told of the trials that events have changed, so a
//! decision doesn't look through all trials of its job.
//!
//! ```text
//!   event --Change::Work--> trials that have changed --decide--> Search: told of those alone, then asked
//! ```

use sojourn_protocol::{
    cross_validation::mean_over_folds,
    ids::{Epoch, JobId, TrialId},
    quantity::{SaturatingFrom as _, to_usize},
    spec::{SearchSpec, Stopping},
};
use sojourn_state::{Job, Trial, TrialEnd};
use sojourn_workgen::search::stopping::{Decision, Search, TrialProgress};
use std::collections::{BTreeMap, BTreeSet};

/// By job, of those that run and have a rule. Each is made from the job's trials when its rule is asked for the first time.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StoppingRules {
    jobs: BTreeMap<JobId, KnownSearch>,
}

/// A job's rule, with the configurations that it knows of: of a job without folds each trial is one.
#[derive(Debug, Clone, PartialEq)]
struct KnownSearch {
    /// How many trials a configuration has.
    of_each: usize,
    /// A configuration's number stands there for the id of its trial.
    search: Search,
    /// Trials that have begun, and neither have ended nor wait for the rule.
    busy: BTreeSet<TrialId>,
    /// Trials that may have changed since the rule was asked.
    changed: BTreeSet<TrialId>,
    /// Configurations of which a fold has failed, or ended before it was evaluated, while others go on: they will never have a mean.
    lost: BTreeSet<u32>,
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
        known.decide(job, at_once)
    }

    /// How many trials of a job its rule hasn't let begin, as far as it was told.
    pub fn held_back(&self, job: JobId) -> usize {
        self.jobs.get(&job).map_or(0, |known| known.search.held_back() * known.of_each)
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
        let all = job.configurations().map(|trials| progress_of(trials, job));
        let mut search = Search::from_trials(rule, epochs, search.goal, all);
        search.expect_more(job.search.is_open());
        Self {
            of_each: job.trials_per_comparison(),
            search,
            busy: job
                .trials
                .iter()
                .filter(|trial| trial.refit.is_none() && trial.is_busy())
                .map(|trial| trial.id)
                .collect(),
            changed: BTreeSet::new(),
            lost: (0..)
                .zip(job.configurations())
                .filter(|(_, of)| has_lost(of))
                .map(|(n, _)| n)
                .collect(),
        }
    }

    /// Is told of the configurations whose trials have changed, and of those that have been added.
    fn renew(&mut self, job: &Job) {
        self.search.expect_more(job.search.is_open());
        let known = u32::saturating_from(self.search.trials().len());
        let changed = std::mem::take(&mut self.changed);
        let changed: BTreeSet<u32> = changed
            .into_iter()
            .filter(|trial| !job.refits.contains(trial))
            .map(|trial| job.configuration_of(trial))
            .take_while(|of| *of < known)
            .collect();
        let added = known..job.configuration_count();
        for number in changed.into_iter().chain(added) {
            let trials = job.configuration(number);
            if trials.is_empty() {
                continue;
            }
            self.search.update(TrialId(number), progress_of(trials, job));
            for trial in trials {
                if trial.is_busy() {
                    self.busy.insert(trial.id);
                } else {
                    self.busy.remove(&trial.id);
                }
            }
            if has_lost(trials) {
                self.lost.insert(number);
            } else {
                self.lost.remove(&number);
            }
        }
    }

    /// The rule's decisions, each for all trials of its configuration that still run.
    fn decide(&self, job: &Job, at_once: usize) -> Vec<Decision> {
        let room = at_once.saturating_sub(self.busy.len());
        let decided = self.search.decide(room.div_ceil(self.of_each));
        if self.of_each == 1 {
            return decided;
        }
        let lost = self.lost.iter().map(|number| Decision::Stop {
            trial: TrialId(*number),
            why: "another fold of its configuration has ended without a value".to_owned(),
        });
        decided.into_iter().chain(lost).flat_map(|of| for_each_fold(job, of)).collect()
    }
}

/// A decision on a configuration, for each of its trials that still run: those that may train more already go on as they are, and those
/// that their user lets go on aren't ended.
fn for_each_fold(job: &Job, decision: Decision) -> Vec<Decision> {
    let (Decision::Continue { trial: number, .. } | Decision::Stop { trial: number, .. }) =
        decision;
    let trials = job.configuration(number.0);
    let running = trials.iter().filter(|trial| trial.is_running());
    let of = |of: &Trial| match &decision {
        Decision::Continue { epochs, why, .. } => (of.chain.epochs() < *epochs)
            .then(|| Decision::Continue { trial: of.id, epochs: *epochs, why: why.clone() }),
        Decision::Stop { why, .. } => {
            (!of.is_exempt).then(|| Decision::Stop { trial: of.id, why: why.clone() })
        }
    };
    running.filter_map(of).collect()
}

/// Has a fold failed, or ended before anything of it was evaluated? Its configuration has no mean then.
fn is_lost(trial: &Trial) -> bool {
    let failed = matches!(trial.end, Some(TrialEnd::Failed(_)));
    let is_evaluated = trial.curve.first().is_some_and(|point| point.epoch == Epoch(0));
    failed || !(trial.is_running() || is_evaluated)
}

/// Is a fold of a configuration lost while another goes on that a rule may end?
fn has_lost(trials: &[Trial]) -> bool {
    let goes_on = |trial: &Trial| trial.is_running() && !trial.is_exempt;
    trials.len() > 1 && trials.iter().any(is_lost) && trials.iter().any(goes_on)
}

/// A configuration as its rule sees it: its trial, or the mean of its folds as far as all have been evaluated. A fold that has ended early,
/// as it was as good as is wanted, counts as it was in the end.
fn progress_of(trials: &[Trial], job: &Job) -> TrialProgress {
    let (search, epochs) = (&job.spec.search, job.spec.training.epochs);
    if let [trial] = trials {
        return progress(trial, search, epochs);
    }
    let all: Vec<TrialProgress> =
        trials.iter().map(|trial| progress(trial, search, epochs)).collect();
    let running = || all.iter().filter(|of| !of.has_ended);
    let has_ended = trials.iter().any(is_lost) || running().next().is_none();
    let of_all = |of: fn(&TrialProgress) -> u32| {
        let of_running = running().map(of).min();
        of_running.or_else(|| all.iter().map(of).max()).unwrap_or(0)
    };
    let lengths = |of: &TrialProgress| of.values.len();
    let known = running().map(lengths).min().or_else(|| all.iter().map(lengths).max());
    let after = |n: usize| {
        let values = all.iter().map(|of| of.values.get(n).or_else(|| of.values.last()).copied());
        values.collect::<Option<Vec<f64>>>().map(|values| mean_over_folds(&values))
    };
    TrialProgress {
        allowed: of_all(|of| of.allowed),
        trained: of_all(|of| of.trained),
        values: (0..known.unwrap_or(0)).map_while(after).collect(),
        has_ended,
        inherited: 0,
        is_exempt: all.iter().any(|of| of.is_exempt),
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

//! The derived index: facts about the durable state that are kept up to date with each event.
//!
//! | file | holds |
//! |---|---|
//! | `owners.rs` | the jobs of each issued token, and the bytes that are kept because of them |
//! | `remaining_work.rs` | the running trials of a job by the work that they have left |
//! | `residents.rs` | trials that stay on hosts, by host and category |
//! | `searches.rs` | the jobs whose rule of early stopping is to be asked |
//! | `stopping_rules.rs` | what these rules know of the jobs' trials |

mod owners;
mod remaining_work;
mod residents;
mod searches;
mod stopping_rules;

pub use owners::Owners;
pub use remaining_work::{RemainingWork, RemainingWorkIndex};

use residents::Residents;
use searches::Searches;
use stopping_rules::StoppingRules;

use crate::cost::Estimates;
use sojourn_protocol::{
    ids::{JobId, TrialId, Version},
    quantity::SaturatingFrom as _,
    time::UnixMillis,
};
use sojourn_state::{Job, State, Trial};
use std::collections::{BTreeMap, BTreeSet};

/// The derived index. It can be made anew from the state and the estimates at any time.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DerivedIndex {
    /// By job, of those that have something left to train.
    remaining: BTreeMap<JobId, RemainingWorkIndex>,
    /// Grows with every job that comes to have something left to train, or has nothing left.
    version: u64,
    /// When the first wall-time limit of a job is reached. The job may have ended by then.
    wall_time: Option<UnixMillis>,
    searches: Searches,
    stopping_rules: StoppingRules,
    residents: Residents,
    /// Running jobs whose trials may move from host to host.
    movable: BTreeSet<JobId>,
    owners: Owners,
}

impl DerivedIndex {
    /// The remaining work of a job's trials, if some is left.
    pub fn remaining(&self, job: JobId) -> Option<&RemainingWorkIndex> {
        self.remaining.get(&job)
    }

    /// Jobs that have something left to train, in order.
    pub fn jobs(&self) -> impl Iterator<Item = JobId> + '_ {
        self.remaining.keys().copied()
    }

    /// How many jobs have something left to train.
    pub fn job_count(&self) -> usize {
        self.remaining.len()
    }

    /// The number of times at which a job came to have something left to train, or had nothing left any more. While it is
    /// the same, the jobs are the same.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Has the job something left to train?
    pub fn has_work(&self, job: JobId) -> bool {
        self.remaining.contains_key(&job)
    }

    /// How many trials are running, of all jobs.
    pub fn running_trials(&self) -> usize {
        self.remaining.values().map(RemainingWorkIndex::count).sum()
    }

    /// When the first wall-time limit is reached.
    pub fn wall_time(&self) -> Option<UnixMillis> {
        self.wall_time
    }

    /// Finds the first wall-time limit of all jobs.
    pub fn update_wall_time(&mut self, state: &State) {
        self.wall_time = state.jobs.values().filter_map(Job::time_up_at).min();
    }

    /// The searches to decide on.
    pub fn searches(&self) -> &Searches {
        &self.searches
    }

    /// The same, to be changed.
    pub fn searches_mut(&mut self) -> &mut Searches {
        &mut self.searches
    }

    /// Something of the job has changed; or it isn't there any more.
    pub fn job_changed(&mut self, id: JobId, job: Option<&Job>) {
        self.searches.changed(id, job);
        self.owners.job_changed(id, job);
        let moves =
            |job: &&Job| job.is_running() && job.spec.placement.residency.interval().is_some();
        match job.filter(moves) {
            Some(_) => self.movable.insert(id),
            None => self.movable.remove(&id),
        };
        if job.is_none() {
            self.residents.forget(id);
        }
        if !job.is_some_and(Job::is_running) {
            self.stopping_rules.job_changed(id);
        }
    }

    /// The jobs of issued tokens.
    pub fn owners(&self) -> &Owners {
        &self.owners
    }

    /// The same, to be changed.
    pub fn owners_mut(&mut self) -> &mut Owners {
        &mut self.owners
    }

    /// Trials that stay on hosts.
    pub fn residents(&self) -> &Residents {
        &self.residents
    }

    /// Running jobs whose trials may move from host to host.
    pub fn movable(&self) -> &BTreeSet<JobId> {
        &self.movable
    }

    /// The rules of early stopping, with what each knows of its job.
    pub fn stopping_rules(&self) -> &StoppingRules {
        &self.stopping_rules
    }

    /// The same, to be changed.
    pub fn stopping_rules_mut(&mut self) -> &mut StoppingRules {
        &mut self.stopping_rules
    }

    /// Updates all trials of all jobs: the estimates have changed.
    pub fn update_all(&mut self, state: &State, estimates: &mut Estimates, now: UnixMillis) {
        for job in state.jobs.values() {
            self.update_job(job, estimates, now);
        }
    }

    /// Updates all trials of a job.
    pub fn update_job(&mut self, job: &Job, estimates: &mut Estimates, now: UnixMillis) {
        estimates.register(job);
        self.residents.update_job(job);
        self.owners.job_changed(job.id, Some(job));
        let estimates = &*estimates;
        let with_work = job.trials.iter().filter_map(|trial| {
            let remaining = remaining_work(job.id, trial, estimates)?;
            Some((trial.id, remaining, trial.is_runnable()))
        });
        let mut with_work = with_work.peekable();
        if with_work.peek().is_some() {
            self.of_job(job.id).set_all(with_work, now);
        } else if self.remaining.remove(&job.id).is_some() {
            self.version += 1;
        }
    }

    /// Updates a trial, after an event that concerned it.
    pub fn update_trial(
        &mut self,
        job: JobId,
        trial: &Trial,
        estimates: &Estimates,
        now: UnixMillis,
    ) {
        self.residents.update(job, trial);
        match remaining_work(job, trial, estimates) {
            Some(remaining) => {
                self.of_job(job).set(trial.id, remaining, trial.is_runnable(), now);
            }
            None => self.remove(job, trial.id),
        }
    }

    /// The index of a job that has something left to train.
    fn of_job(&mut self, job: JobId) -> &mut RemainingWorkIndex {
        self.remaining.entry(job).or_insert_with(|| {
            self.version += 1;
            RemainingWorkIndex::default()
        })
    }

    fn remove(&mut self, job: JobId, trial: TrialId) {
        let Some(of_job) = self.remaining.get_mut(&job) else { return };
        of_job.remove(trial);
        if of_job.is_empty() {
            self.remaining.remove(&job);
            self.version += 1;
        }
    }
}

/// The remaining work of a trial; `None` where it has ended, or has nothing left to train.
fn remaining_work(job: JobId, trial: &Trial, estimates: &Estimates) -> Option<RemainingWork> {
    if !trial.trains() {
        return None;
    }
    let work = estimates.work_left(job, trial);
    let merges = trial.merging.is_some();
    let at_once = if merges { u64::saturating_from(trial.hops_in_flight() + 1) } else { 1 };
    Some(RemainingWork { work, at_once, merges, begun: trial.version != Version::default() })
}

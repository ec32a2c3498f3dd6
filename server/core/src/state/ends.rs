//! How trials, jobs and evaluations outside the search end, and what stands still meanwhile.

use super::{
    ExtraEnd, ExtraResult, FailedBy, JobEnd, Lease, RequestedEvaluation, State, Trial, TrialEnd,
};
use crate::event::MergeMode;
use sojourn_protocol::{
    ids::{HostId, JobId, TrialId},
    time::UnixMillis,
};
use std::{collections::BTreeMap, sync::Arc};

impl State {
    pub(super) fn end_extra(
        &mut self,
        job: JobId,
        name: RequestedEvaluation,
        end: ExtraEnd,
        at: UnixMillis,
    ) {
        let Some(known) = self.jobs.get_mut(&job) else { return };
        let Some(place) = known.extras.iter().position(|extra| extra.name == name) else { return };
        let checkpoint = known.extras.remove(place).checkpoint;
        if let Some(trial) = known.trial_mut(name.trial) {
            trial.extras.push(ExtraResult { name, checkpoint, at, end });
        }
        self.blobs.release(checkpoint.sha256, at);
        self.settle(job, at);
    }

    /// Says how a trial's results are taken in from now on.
    pub(super) fn ordered(&mut self, job: JobId, id: TrialId, order: MergeMode, at: UnixMillis) {
        let Some(trial) = self.trial(job, id) else { return };
        let live = trial.live.iter().filter_map(|lease| self.leases.get(lease).cloned());
        let live: Vec<Arc<Lease>> = live.collect();
        self.change_trial(job, id, at, |trial| match order {
            MergeMode::Merging => trial.begin_merging(&live),
            MergeMode::Draining => trial.drain(),
            MergeMode::Hop => trial.merging = None,
        });
    }

    /// Ends a job where it is the time, or opens its test.
    pub(super) fn settle(&mut self, job: JobId, at: UnixMillis) {
        let opened = self.jobs.get_mut(&job).and_then(|job| job.settle(at));
        if let Some(checkpoint) = opened {
            self.blobs.retain(checkpoint.sha256);
        }
    }

    /// Takes the marks back that hosts got for errors that turned out to be the job's.
    pub(super) fn pardon(&mut self, failures: &BTreeMap<HostId, FailedBy>) {
        for (host, failed) in failures {
            if let Some(host) = self.hosts.get_mut(host) {
                host.failures_in_a_row = host.failures_in_a_row.saturating_sub(failed.count);
            }
        }
    }

    pub(super) fn end_trial(&mut self, job: JobId, trial: TrialId, end: TrialEnd, at: UnixMillis) {
        self.change_trial(job, trial, at, |trial| trial.end_as(end));
        if let Some(job) = self.jobs.get_mut(&job) {
            job.recount_load();
        }
        self.settle(job, at);
    }

    pub(super) fn cancel(&mut self, job: JobId, at: UnixMillis) {
        let Some(known) = self.jobs.get_mut(&job) else { return };
        if known.is_running() {
            known.end_as(JobEnd::Cancelled, at);
        }
        for extra in std::mem::take(&mut known.extras) {
            self.blobs.release(extra.checkpoint.sha256, at);
        }
        let trials = known.trials.len();
        for trial in (0u32..).map(TrialId).take(trials) {
            if self.trial(job, trial).is_some_and(Trial::is_running) {
                self.end_trial(job, trial, TrialEnd::Cancelled, at);
            }
        }
    }

    pub(super) fn pause(&mut self, job: JobId, at: UnixMillis) {
        if let Some(job) = self.jobs.get_mut(&job) {
            job.paused_at = Some(at);
        }
    }

    pub(super) fn resume(&mut self, job: JobId, at: UnixMillis) {
        if let Some(job) = self.jobs.get_mut(&job) {
            job.resume(at);
        }
    }
}

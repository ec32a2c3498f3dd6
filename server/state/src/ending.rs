//! How trials, jobs and evaluations outside the search end, and what stands still meanwhile.

use super::{
    ExtraEnd, ExtraResult, FailedBy, FoldFault, JobEnd, Lease, RequestedEvaluation, State, Trial,
    TrialEnd, marks,
};
use crate::event::{HopUnit, MergeMode, UnitKey};
use sojourn_protocol::{
    digest::BlobRef,
    ids::{HostId, JobId, TrialId},
    time::UnixMillis,
};
use std::{collections::BTreeMap, sync::Arc};

impl State {
    /// Somebody asked for an evaluation.
    pub(super) fn extra_asked(
        &mut self,
        job: JobId,
        name: RequestedEvaluation,
    ) -> Result<(), FoldFault> {
        let checkpoint = self.known_job_mut(job)?.open_extra(name);
        let BlobRef { sha256, .. } =
            checkpoint.ok_or(FoldFault::UnknownEvaluation(UnitKey::Extra { job, name }))?;
        self.blobs.retain(sha256)
    }

    pub(super) fn end_extra(
        &mut self,
        job: JobId,
        name: RequestedEvaluation,
        end: ExtraEnd,
        at: UnixMillis,
    ) -> Result<(), FoldFault> {
        self.known_trial(job, name.trial)?;
        let known = self.known_job_mut(job)?;
        let open = known.extras.iter().position(|extra| extra.name == name);
        let open = open.ok_or(FoldFault::UnknownEvaluation(UnitKey::Extra { job, name }))?;
        let checkpoint = known.extras.remove(open).checkpoint;
        let trial = self.known_trial_mut(job, name.trial)?;
        // Of a checkpoint that was rolled back meanwhile nobody is to hear.
        if trial.has_ended_with(name.epoch, checkpoint) {
            trial.extras.push(ExtraResult { name, checkpoint, at, end });
        }
        self.blobs.release(checkpoint.sha256, at)?;
        self.settle(job, at)
    }

    pub(super) fn extra_failed(
        &mut self,
        job: JobId,
        name: RequestedEvaluation,
        error: &str,
        at: UnixMillis,
    ) -> Result<(), FoldFault> {
        let unit = UnitKey::Extra { job, name };
        let failures = self.known_job(job)?.failures_of(&unit);
        let failures = marks([failures.ok_or(FoldFault::UnknownEvaluation(unit))?]);
        self.clear_blame(&failures)?;
        self.end_extra(job, name, ExtraEnd::Failed { error: error.to_owned() }, at)
    }

    /// Says how a trial's results are taken in from now on.
    pub(super) fn ordered(
        &mut self,
        job: JobId,
        id: TrialId,
        order: MergeMode,
        at: UnixMillis,
    ) -> Result<(), FoldFault> {
        let live = self.known_trial(job, id)?.live.iter();
        let live = live.map(|id| {
            let lease = self.leases.get(id).ok_or(FoldFault::NotLive(*id))?;
            let hop = lease.unit.hop().ok_or(FoldFault::WrongUnit(*id))?;
            Ok((hop, Arc::clone(lease)))
        });
        let live: Vec<(HopUnit, Arc<Lease>)> = live.collect::<Result<_, FoldFault>>()?;
        let limit = self.known_job(job)?.spec.placement.merge_in_flight;
        self.change_trial(job, id, at, |trial| match order {
            MergeMode::Merging => trial.begin_merging(&live, limit),
            MergeMode::Draining => trial.drain(),
            MergeMode::Hop => trial.merging = None,
        })
    }

    /// Ends a job where it is the time, or opens its test.
    pub(super) fn settle(&mut self, job: JobId, at: UnixMillis) -> Result<(), FoldFault> {
        match self.known_job_mut(job)?.settle(at) {
            Some(checkpoint) => self.blobs.retain(checkpoint.sha256),
            None => Ok(()),
        }
    }

    /// The hosts whose errors turned out to be the job's: another party has failed as well. Who has failed alone isn't
    /// pardoned.
    pub fn pardoned(&self, failures: &BTreeMap<HostId, FailedBy>) -> Vec<HostId> {
        let parties = self.parties();
        let several = parties.behind(failures.keys().copied()).len() > 1;
        failures.keys().filter(|_| several).copied().collect()
    }

    /// Takes the marks back that hosts got for errors that turned out to be the job's.
    fn clear_blame(&mut self, failures: &BTreeMap<HostId, FailedBy>) -> Result<(), FoldFault> {
        // A host that was forgotten has no marks any more.
        let known = failures.keys().filter(|host| !self.is_forgotten(**host));
        known.map(|host| self.known_host(*host)).try_for_each(|known| known.map(drop))?;
        for host in self.pardoned(failures) {
            let Some(failed) = failures.get(&host).filter(|_| !self.is_forgotten(host)) else {
                continue;
            };
            let host = self.known_host_mut(host)?;
            // A result that was used since has set it to 0.
            host.failures_in_a_row = host.failures_in_a_row.saturating_sub(failed.count);
        }
        Ok(())
    }

    pub(super) fn trial_failed(
        &mut self,
        job: JobId,
        trial: TrialId,
        error: &str,
        at: UnixMillis,
    ) -> Result<(), FoldFault> {
        let failures = self.known_trial(job, trial)?.all_failures();
        self.clear_blame(&failures)?;
        self.end_trial(job, trial, TrialEnd::Failed(error.to_owned()), at)
    }

    pub(super) fn end_trial(
        &mut self,
        job: JobId,
        trial: TrialId,
        end: TrialEnd,
        at: UnixMillis,
    ) -> Result<(), FoldFault> {
        self.change_trial(job, trial, at, |trial| trial.end_as(end))?;
        self.known_job_mut(job)?.recount_load();
        self.settle(job, at)
    }

    pub(super) fn cancel(&mut self, job: JobId, at: UnixMillis) -> Result<(), FoldFault> {
        let known = self.known_job_mut(job)?;
        if known.is_running() {
            known.end_as(JobEnd::Cancelled, at);
        }
        let extras = std::mem::take(&mut known.extras);
        let running = known.trials.iter().filter(|trial| trial.is_running());
        let running: Vec<TrialId> = running.map(|trial: &Trial| trial.id).collect();
        for extra in extras {
            self.blobs.release(extra.checkpoint.sha256, at)?;
        }
        for trial in running {
            self.change_trial(job, trial, at, Trial::cancel)?;
        }
        // Once, not for each of what may be many thousands: both look at all trials.
        self.known_job_mut(job)?.recount_load();
        self.settle(job, at)
    }
}

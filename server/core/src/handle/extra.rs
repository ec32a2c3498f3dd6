//! Evaluations outside the search: asked for, taken, given up.

use crate::{
    command::ReplyTo,
    core::Core,
    effect::Answer,
    event::{Event, LeaseEnd, UnitKey},
    state::{ExtraEnd, Lease, RequestedEvaluation, marks},
};
use sojourn_protocol::{
    error::{ApiError, ErrorKind},
    ids::{HostId, JobId, LeaseId, TrialId},
    manifest::DataSplit,
    report::Evaluated,
};

impl Core {
    /// Opens an evaluation of the trial's best checkpoint, unless there is one already or it is done; one
    /// that failed begins anew.
    pub(crate) fn evaluate(&mut self, to: ReplyTo, job: JobId, trial: TrialId, split: DataSplit) {
        let name = match self.check_extra(job, trial, split) {
            Ok(name) => name,
            Err(error) => return self.reply(to, Err(error)),
        };
        let known = self.state.jobs.get(&job);
        let done = known.and_then(|job| job.extra_result(&name)).map(|result| &result.end);
        let open = known.is_some_and(|job| job.extra(&name).is_some());
        if !open && !matches!(done, Some(ExtraEnd::Evaluated { .. })) {
            self.emit(Event::ExtraAsked { job, name });
            self.soft.work_changed = true;
        }
        let view = self.state.jobs.get(&job).and_then(|job| self.evaluation_view(job, &name));
        match view {
            Some(view) => self.reply(to, Ok(Answer::Evaluation(Box::new(view)))),
            None => self.refuse(to, ErrorKind::Internal, "the evaluation was not opened"),
        }
    }

    /// The name of the evaluation, where it can be done.
    fn check_extra(
        &self,
        job: JobId,
        trial: TrialId,
        split: DataSplit,
    ) -> Result<RequestedEvaluation, ApiError> {
        let (known, of_job) = self.known_trial(job, trial)?;
        let conflict = |message| Err(ApiError::new(ErrorKind::Conflict, message));
        if known.data.split(split).is_empty() {
            return conflict(format!("job {job} has no {} data", split.name()));
        }
        let Some(best) = of_job.best else {
            return conflict(format!("trial {trial} of job {job} has no evaluated epoch yet"));
        };
        if self.state.blobs.is_lost(&best.checkpoint.sha256) {
            return conflict(format!(
                "the server's store has lost the best checkpoint of trial {trial}"
            ));
        }
        Ok(RequestedEvaluation { trial, split, epoch: best.epoch })
    }

    /// Takes the counts of a wanted evaluation.
    pub(crate) fn extra_evaluated(&mut self, lease: &Lease, evaluated: &Evaluated) {
        let others = self.live_attempts(&lease.unit);
        self.emit(Event::ExtraEvaluated { lease: lease.id, sums: evaluated.sums() });
        self.revoke(others);
    }

    /// Ends an open evaluation with an error, and what was under way for it.
    pub(crate) fn fail_extra(&mut self, job: JobId, name: RequestedEvaluation, error: String) {
        let unit = UnitKey::Extra { job, name };
        let failures = self.state.jobs.get(&job).and_then(|job| job.failures_of(&unit));
        let hosts: Vec<HostId> = marks(failures).into_keys().collect();
        for host in hosts {
            self.soft.resting.remove(&host);
        }
        let live = self.live_attempts(&unit);
        self.emit(Event::ExtraFailed { job, name, error });
        self.revoke(live);
    }

    /// Gives up those whose checkpoint the store has lost: it won't come back.
    pub(crate) fn fail_lost_extras(&mut self) {
        if !self.state.blobs.any_lost() {
            return;
        }
        let open = self.state.jobs.values().flat_map(|job| {
            let lost = |checkpoint| self.state.blobs.is_lost(checkpoint);
            let extras = job.extras.iter().filter(move |e| lost(&e.checkpoint.sha256));
            extras.map(|extra| (job.id, extra.name))
        });
        let lost: Vec<(JobId, RequestedEvaluation)> = open.collect();
        for (job, name) in lost {
            self.fail_extra(job, name, "the server's store has lost the checkpoint".into());
        }
    }

    /// The live leases of an open unit.
    pub(crate) fn live_attempts(&self, unit: &UnitKey) -> Vec<LeaseId> {
        let live = self.state.jobs.get(&unit.job()).and_then(|job| job.live_of(unit));
        live.map(|live| live.iter().copied().collect()).unwrap_or_default()
    }

    /// Revokes leases whose unit is settled.
    pub(crate) fn revoke(&mut self, leases: Vec<LeaseId>) {
        for lease in leases {
            self.end_lease(lease, LeaseEnd::Revoked);
        }
    }
}

//! Queries of the state that several modules use.

use super::{
    State,
    job::{Job, JobEnd},
    lease::{Lease, PastState},
    trial::Trial,
};
use crate::event::UnitKey;
use sojourn_protocol::{
    api::ReportAnswer,
    digest::Digest,
    error::{ApiError, ErrorKind},
    ids::{HostId, JobId, LeaseId, ShardId, TrialId},
    quantity::to_u64,
    report::{Evaluated, Outcome, ReportEnd, ReportState, Trained},
    view::HopRecord,
};
use std::sync::Arc;

impl State {
    /// Running trials with results that wait to be taken in.
    pub fn trials_with_results(&self) -> Vec<(JobId, TrialId)> {
        let trials = self.jobs.values().flat_map(|job| {
            let trials =
                job.trials.iter().filter(|trial| trial.is_running() && !trial.awaiting.is_empty());
            trials.map(|trial| (job.id, trial.id))
        });
        trials.collect()
    }

    /// Is there a result of this lease that can be assimilated now: the first that waits of its trial, not being verified?
    pub fn is_to_assimilate(&self, lease: LeaseId) -> bool {
        let Some(past) = self.past.get(&lease) else { return false };
        let unit = past.lease.unit;
        matches!(past.state, PastState::Acknowledged(_))
            && self.trial(unit.job(), unit.trial()).is_some_and(|trial| {
                trial.awaiting.front() == Some(&lease) && trial.verification.is_none()
            })
    }

    /// An acknowledged hop with its lease, whether it has been taken in or not.
    pub fn trained_result(&self, lease: LeaseId) -> Option<(&Lease, &Trained)> {
        let past = self.past.get(&lease)?;
        let PastState::Acknowledged(outcome) = &past.state else { return None };
        let Outcome::Trained(trained) = outcome.as_ref() else { return None };
        Some((&past.lease, trained))
    }

    /// An acknowledged evaluation that hasn't ended.
    pub fn evaluated_result(&self, lease: LeaseId) -> Option<(&Arc<Lease>, &Evaluated)> {
        let past = self.past.get(&lease)?;
        let PastState::Acknowledged(outcome) = &past.state else { return None };
        let Outcome::Evaluated(evaluated) = outcome.as_ref() else { return None };
        Some((&past.lease, evaluated))
    }

    /// Batches that a result has trained, and whether its lease's hops have more; `None` where it isn't wanted.
    pub fn trained_of(&self, lease: &Lease, trained: &Trained) -> Option<(u64, bool)> {
        let trial = self.trial(lease.unit.job(), lease.unit.trial())?;
        let whole: u64 =
            lease.visits().map(|shard| u64::from(trial.chain.remaining_in(shard))).sum();
        let (_, first) = trial.base_of(lease)?;
        let done = trained.end.step.saturating_sub(first);
        Some((done, done < whole))
    }

    /// The batches of a lease's first hop, as its trial stands.
    pub fn first_hop_batches(&self, lease: &Lease) -> Option<u64> {
        let UnitKey::Train { job, trial, shard, from, .. } = lease.unit else { return None };
        let remaining = self.trial(job, trial)?.chain.remaining_in(shard);
        let until = lease.until.filter(|_| lease.then.is_empty());
        Some(until.map_or(remaining, |until| remaining.min(until.saturating_sub(from))).into())
    }

    /// How many units could be granted.
    pub fn supply(&self) -> usize {
        self.jobs.values().map(Job::supply).sum()
    }

    /// Is it a live lease of a paused job?
    pub fn is_paused(&self, lease: LeaseId) -> bool {
        let lease = self.leases.get(&lease);
        let job = lease.and_then(|lease| self.jobs.get(&lease.unit.job()));
        job.is_some_and(|job| job.paused_at.is_some())
    }

    /// A job that hasn't ended.
    ///
    /// # Errors
    /// Where there is no such job, or it has ended: then there is nothing to `what`.
    pub fn find_running_job(&self, job: JobId, what: &str) -> Result<&Job, ApiError> {
        let known = self.find_job(job)?;
        let Some((end, _)) = known.end else { return Ok(known) };
        let ended = match end {
            JobEnd::Finished => "has finished",
            JobEnd::Failed => "has failed",
            JobEnd::Cancelled => "was cancelled",
        };
        let message = format!("job {job} {ended}: there is nothing to {what}");
        Err(ApiError::new(ErrorKind::Conflict, message))
    }

    /// The live leases of an open unit.
    pub fn live_leases_of(&self, unit: &UnitKey) -> Vec<LeaseId> {
        let live = self.jobs.get(&unit.job()).and_then(|job| job.live_of(unit));
        live.map(|live| live.iter().copied().collect()).unwrap_or_default()
    }

    /// The leases and results of a trial that are abandoned if the trial ends.
    pub fn in_flight(&self, job: JobId, trial: TrialId) -> InFlight {
        self.trial(job, trial).map(InFlight::of).unwrap_or_default()
    }

    /// Is a result of the unit being verified? Then others of it must end where that one did.
    pub fn is_being_verified(&self, unit: &UnitKey) -> bool {
        self.jobs.get(&unit.job()).is_some_and(|job| job.verification_of(unit).is_some())
    }

    /// Has the party behind a host lost trust?
    pub fn has_lost_trust(&self, host: HostId) -> bool {
        self.record_of(host).is_lost()
    }

    /// Hops of a job that a host has delivered and nobody has confirmed, if its party was refuted since.
    pub fn suspect_hops<'a>(
        &'a self,
        host: HostId,
        job: &'a Job,
    ) -> impl Iterator<Item = (&'a Trial, &'a HopRecord)> + 'a {
        self.suspect_hops_of_party(host, job).filter(move |(_, hop)| hop.host == host)
    }

    /// The same of all hosts of its party.
    pub fn suspect_hops_of_party<'a>(
        &'a self,
        host: HostId,
        job: &'a Job,
    ) -> impl Iterator<Item = (&'a Trial, &'a HopRecord)> + 'a {
        let record = self.record_of(host);
        let trials = job.trials.iter().filter(move |_| record.refuted > 0);
        let hops = trials.flat_map(|trial| trial.history.iter().map(move |hop| (trial, hop)));
        hops.filter(move |(_, hop)| record.doubts(hop) && self.are_of_one_party(hop.host, host))
    }

    /// Has nobody confirmed a hop whose party was refuted since?
    #[must_use]
    pub fn is_suspect(&self, hop: &HopRecord) -> bool {
        self.record_of(hop.host).doubts(hop)
    }

    /// The numeric class that the trial must stay in.
    pub fn required_class(&self, job: &Job, trial: &Trial) -> Option<Digest> {
        trial.class.filter(|_| job.spec.placement.reproducible)
    }

    /// The numeric class that the trial must stay in, or will have to once the result of its first hop is taken in.
    pub fn expected_class(&self, job: &Job, trial: &Trial) -> Option<Digest> {
        let in_hand = || self.in_hand(trial).find_map(|lease| lease.class);
        let class = trial.class.or_else(in_hand);
        class.filter(|_| job.spec.placement.reproducible)
    }

    /// May one more unit of the job go to that host?
    pub fn admits_host(&self, job: &Job, host: HostId) -> bool {
        let Some(most) = job.spec.placement.max_hosts else { return true };
        job.hosts.contains_key(&host) || u32::try_from(job.hosts.len()).is_ok_and(|has| has < most)
    }

    /// The priority of a job; 0 where there is no such job.
    pub fn priority(&self, job: JobId) -> i32 {
        self.jobs.get(&job).map_or(0, |job| job.spec.placement.priority)
    }

    /// Does somebody train the trial on that shard, or wait for the result to be taken in?
    pub fn is_shard_in_hand(&self, trial: &Trial, shard: ShardId) -> bool {
        self.in_hand(trial).any(|lease| lease.visits().any(|other| other == shard))
    }

    /// Leases of a trial's next hop, live ones and those whose results wait.
    pub fn in_hand<'a>(&'a self, trial: &'a Trial) -> impl Iterator<Item = &'a Arc<Lease>> {
        trial.in_hand().filter_map(|lease| self.lease(lease))
    }

    /// A blob of the job's data, or one that its trials start from, that the store has lost.
    pub fn lost_data(&self, job: &Job) -> Option<Digest> {
        if !self.blobs.any_lost() {
            return None;
        }
        self.blobs.first_lost(job.blobs().map(|blob| blob.sha256))
    }

    /// A trial with its job.
    ///
    /// # Errors
    /// Where there is no such job or trial.
    pub fn find_trial(&self, job: JobId, trial: TrialId) -> Result<(&Job, &Trial), ApiError> {
        let job = self.find_job(job)?;
        let known = job.trial(trial);
        let trial = known.ok_or_else(|| no_such(format!("job {} has no trial {trial}", job.id)))?;
        Ok((job, trial))
    }

    /// A job.
    ///
    /// # Errors
    /// Where there is no such job, or it was deleted.
    pub fn find_job(&self, job: JobId) -> Result<&Job, ApiError> {
        self.jobs.get(&job).ok_or_else(|| match self.is_deleted(job) {
            true => no_such(format!("job {job} was deleted")),
            false => no_such(format!("no job {job}")),
        })
    }

    /// Is this an enrolled host that wasn't revoked?
    pub fn check_host(&self, host: HostId) -> Result<(), ApiError> {
        match self.hosts.get(&host) {
            Some(known) if !known.revoked => Ok(()),
            Some(_) => {
                let message = format!("host {host} is revoked");
                Err(ApiError::new(ErrorKind::Unauthorized, message))
            }
            None => Err(ApiError::unknown_token(format!("host {host} is unknown"))),
        }
    }

    /// How these reports of a host ended, as far as they have. A report that is forgotten has ended long ago.
    pub fn ended_reports(&self, host: HostId, reported: &[LeaseId]) -> Vec<ReportAnswer> {
        let answers = reported.iter().filter_map(|lease| {
            let state = match self.past.get(lease) {
                Some(past) if past.lease.host == host => past.report_state()?,
                _ if self.leases.contains_key(lease) => return None,
                _ => ReportState::Ended(ReportEnd::Superseded),
            };
            Some(ReportAnswer { lease: *lease, state })
        });
        answers.filter(|answer| matches!(answer.state, ReportState::Ended(_))).collect()
    }

    /// Bytes of the checkpoint that a lease's result comes with.
    pub fn upload_bytes(&self, lease: &Lease) -> Option<u64> {
        match lease.unit {
            UnitKey::Train { job, trial, .. } => {
                self.trial(job, trial).map(|trial| trial.checkpoint_bytes)
            }
            UnitKey::Evaluate { .. } | UnitKey::Extra { .. } => None,
        }
    }
}

impl Lease {
    /// The shards that it visits, in order; none for an evaluation.
    pub fn visits(&self) -> impl Iterator<Item = ShardId> + '_ {
        let first = match self.unit {
            UnitKey::Train { shard, .. } => Some(shard),
            UnitKey::Evaluate { .. } | UnitKey::Extra { .. } => None,
        };
        first.into_iter().chain(self.then.iter().copied())
    }

    /// Of how many hops it is; 1 for an evaluation.
    pub fn hops(&self) -> u64 {
        to_u64(self.then.len()) + 1
    }
}

/// The leases and results of a trial that are in flight.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InFlight {
    /// The trial's live leases.
    pub live: Vec<LeaseId>,
    /// The trial's results that wait to be taken in.
    pub awaiting: Vec<LeaseId>,
}

impl InFlight {
    /// The leases and results of this trial that are in flight.
    pub(crate) fn of(trial: &Trial) -> Self {
        let awaiting = trial.waiting().chain(trial.evaluations_verified());
        Self { live: trial.live_leases(), awaiting: awaiting.collect() }
    }
}

/// The same of each of a job's running trials.
pub fn running_in_flight(job: &Job) -> Vec<InFlight> {
    job.trials.iter().filter(|trial| trial.is_running()).map(InFlight::of).collect()
}

fn no_such(what: String) -> ApiError {
    ApiError::new(ErrorKind::NotFound, what)
}

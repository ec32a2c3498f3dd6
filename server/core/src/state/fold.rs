//! How each event changes the state.

use super::{ExtraEnd, Host, Job, Lease, Open, PastState, State, Trial, TrialEnd, trial::marks};
use crate::event::{Event, Fault, Record, UnitKey};
use sojourn_protocol::{
    ids::{Epoch, JobId, TrialId},
    report::ReportEnd,
    view::Verification,
};

/// Whose open units an event may have changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Concern {
    /// Nobody's.
    Nothing,
    /// Those of any trial of the job.
    Job(JobId),
    /// A trial's next hop, or its evaluation of this epoch.
    Trial(JobId, TrialId, Epoch),
}

impl State {
    /// Takes one event in. It must be the one after [`State::position`].
    pub fn fold(&mut self, record: &Record) {
        self.take_in(record);
    }

    /// The same, and says whose open units may be others now.
    pub(crate) fn take_in(&mut self, record: &Record) -> Concern {
        self.position = record.position;
        self.at = self.at.max(record.at);
        let at = self.at;
        match &record.event {
            Event::HostEnrolled { host, name, token_sha256 } => {
                self.tokens.insert(*token_sha256, *host);
                self.hosts.insert(*host, Host::new(*host, name.clone(), *token_sha256, at));
            }
            Event::HostRevoked { host } => {
                if let Some(host) = self.hosts.get_mut(host) {
                    host.revoked = true;
                    self.tokens.remove(&host.token_sha256);
                }
            }
            Event::BlobPublished { blob } => self.blobs.published(*blob, at),
            Event::BlobCondemned { blob } => self.blobs.condemn(*blob, at),
            Event::BlobDoomed { blob } => self.blobs.doom(*blob, at),
            Event::BlobDeleted { blob } => self.blobs.deleted(*blob),
            Event::BlobLost { blob } => self.blobs.lost(*blob, at),
            Event::JobSubmitted { job, spec, data, key, nonce, at_end } => {
                let (spec, data) = (spec.as_ref().clone(), data.as_ref().clone());
                let new = Job::new(*job, spec, data, *key, *at_end, at);
                for blob in new.blobs() {
                    self.blobs.retain(blob.sha256);
                }
                self.jobs.insert(*job, new);
                self.job_keys.insert(*key, *job);
                if let Some(nonce) = nonce {
                    self.job_nonces.insert(nonce.clone(), *job);
                }
            }
            Event::JobCancelled { job } => self.cancel(*job, at),
            Event::JobPaused { job } => self.pause(*job, at),
            Event::JobResumed { job } => self.resume(*job, at),
            Event::JobTimeUp { job } => self.stop(*job, at),
            Event::JobExtended { job, trials, epochs } => {
                let until = self.last_lease;
                if let Some(job) = self.jobs.get_mut(job) {
                    job.extend(trials, *epochs, until, at);
                }
            }
            Event::JobPlaced { job, priority, share, max_hosts } => {
                if let Some(job) = self.jobs.get_mut(job) {
                    let placement = &mut job.spec.placement;
                    (placement.priority, placement.share) = (*priority, *share);
                    placement.max_hosts = *max_hosts;
                }
            }
            Event::LeaseGranted {
                lease,
                host,
                device,
                unit,
                then,
                until,
                base,
                class,
                copy_of,
                why: _,
            } => {
                self.granted(Lease {
                    id: *lease,
                    host: *host,
                    device: device.clone(),
                    unit: *unit,
                    then: then.clone(),
                    until: *until,
                    base: *base,
                    class: *class,
                    copy_of: *copy_of,
                    granted_at: at,
                });
            }
            Event::LeaseEnded { lease, end } => self.lease_ended(*lease, end, at),
            Event::ReportAcknowledged { report, host: _ } => self.acknowledged(report, at),
            Event::Assimilated { lease, version, checkpoint, merged } => {
                self.assimilated(*lease, *version, *checkpoint, *merged, at);
            }
            Event::Evaluated { lease, epoch, valid, f1 } => {
                self.evaluated(*lease, *epoch, *valid, *f1, at);
            }
            Event::Rejected { lease, reason, fault } => {
                let host = self.end_report(
                    *lease,
                    PastState::Ended(ReportEnd::Rejected { reason: reason.clone() }),
                    at,
                );
                self.count(*lease, |counters| counters.rejected += 1);
                if *fault == Fault::Host {
                    self.host_failed(host, reason);
                }
            }
            Event::Superseded { lease } => {
                self.end_report(*lease, PastState::Ended(ReportEnd::Superseded), at);
                self.count(*lease, |counters| counters.superseded += 1);
            }
            Event::UnitFailed { lease, failure } => self.unit_failed(*lease, failure, at),
            Event::Challenged { lease } => self.challenged(*lease),
            Event::Verified { confirmed, refuted } => self.verified(confirmed, refuted),
            Event::Unverified { lease } => self.end_check(*lease, Verification::Unverified),
            Event::TrialRolledBack { job, trial, epochs } => {
                self.rolled_back(*job, *trial, *epochs, at);
            }
            Event::TrialOrdered { job, trial, order } => self.ordered(*job, *trial, *order, at),
            Event::TrialFailed { job, trial, error } => {
                let failures = self.trial(*job, *trial).map(Trial::all_failures);
                self.pardon(&failures.unwrap_or_default());
                self.end_trial(*job, *trial, TrialEnd::Failed(error.clone()), at);
            }
            Event::ExtraAsked { job, name } => {
                let job = self.jobs.get_mut(job);
                if let Some(checkpoint) = job.and_then(|job| job.open_extra(*name)) {
                    self.blobs.retain(checkpoint.sha256);
                }
            }
            Event::ExtraEvaluated { lease, sums } => self.extra_evaluated(*lease, *sums, at),
            Event::ExtraFailed { job, name, error } => {
                let unit = UnitKey::Extra { job: *job, name: *name };
                let failures = self.jobs.get(job).and_then(|job| job.failures_of(&unit));
                self.pardon(&marks(failures));
                self.end_extra(*job, *name, ExtraEnd::Failed { error: error.clone() }, at);
            }
        }
        let concern = self.concern(&record.event);
        self.renew_open(concern);
        self.forget_old_leases();
        concern
    }

    /// Keeps the index of open units, after an event that concerned one.
    fn renew_open(&mut self, concern: Concern) {
        match concern {
            Concern::Nothing => {}
            Concern::Job(job) => {
                if let Some(job) = self.jobs.get_mut(&job) {
                    job.open = Open::of(&job.trials);
                }
            }
            Concern::Trial(job, trial, epoch) => {
                if let Some(job) = self.jobs.get_mut(&job) {
                    job.renew_open(trial, epoch);
                }
            }
        }
    }

    /// Whose open units may be others after an event that was just folded in.
    fn concern(&self, event: &Event) -> Concern {
        let lease = match event {
            Event::TrialFailed { job, .. }
            | Event::TrialOrdered { job, .. }
            | Event::TrialRolledBack { job, .. }
            | Event::JobSubmitted { job, .. }
            | Event::JobCancelled { job }
            | Event::JobTimeUp { job }
            | Event::JobExtended { job, .. } => return Concern::Job(*job),
            Event::LeaseGranted { lease, .. }
            | Event::LeaseEnded { lease, .. }
            | Event::Assimilated { lease, .. }
            | Event::Rejected { lease, .. }
            | Event::Superseded { lease }
            | Event::Challenged { lease }
            | Event::Unverified { lease }
            | Event::UnitFailed { lease, .. } => *lease,
            Event::Verified { confirmed, .. } => confirmed.first().copied().unwrap_or_default(),
            Event::Evaluated { lease, .. } => match self.stopped_by(*lease) {
                Some(job) => return Concern::Job(job),
                None => *lease,
            },
            Event::ReportAcknowledged { report, .. } => report.lease,
            Event::HostEnrolled { .. }
            | Event::HostRevoked { .. }
            | Event::BlobPublished { .. }
            | Event::BlobCondemned { .. }
            | Event::BlobDoomed { .. }
            | Event::BlobDeleted { .. }
            | Event::BlobLost { .. }
            | Event::JobPaused { .. }
            | Event::JobResumed { .. }
            | Event::JobPlaced { .. }
            | Event::ExtraAsked { .. }
            | Event::ExtraEvaluated { .. }
            | Event::ExtraFailed { .. } => return Concern::Nothing,
        };
        let past = || self.past.get(&lease).map(|past| past.lease.unit);
        let unit = self.leases.get(&lease).map(|lease| lease.unit).or_else(past);
        match unit {
            Some(unit @ (UnitKey::Train { epoch, .. } | UnitKey::Evaluate { epoch, .. })) => {
                Concern::Trial(unit.job(), unit.trial(), epoch)
            }
            Some(UnitKey::Extra { .. }) | None => Concern::Nothing,
        }
    }
}

//! How each event changes the state.

use super::{
    AskedRollback, Change, Changes, FoldError, FoldFault, Host, IssuedToken, Job, Lease,
    LeaseEndReason, Open, ResultEnd, State, results::Score,
};
use crate::event::{Event, Fault, Record, UnitKey};
use sojourn_protocol::{
    ids::{Epoch, JobId, LeaseId, TrialId},
    quantity::to_usize,
    time::UnixMillis,
};

/// A trial with the epoch of an evaluation; with any of them where there is none.
type UnitsOfTrial = (TrialId, Option<Epoch>);

impl State {
    /// Folds one event in, as [`crate::Folded::fold`] says. `made`: the job of a submission, where that was made before; it is
    /// used where the event says the same job.
    pub(crate) fn fold(
        &mut self,
        record: &Record,
        made: Option<Box<Job>>,
    ) -> Result<Changes, FoldError> {
        let at = self.at.max(record.at);
        let mut changes = Changes::none();
        let failed =
            |source| FoldError { position: record.position, event: record.event.name(), source };
        self.take_in(&record.event, at, &mut changes, made).map_err(failed)?;
        (self.position, self.at) = (record.position, at);
        for change in changes.iter() {
            if let Change::Work { job, trial, epoch } = change {
                self.renew_open(job, trial.map(|trial| (trial, epoch)));
            }
        }
        self.forget_old_leases().map_err(failed)?;
        Ok(changes)
    }

    /// Changes what an event says. Each of the functions looks everything up before it changes anything.
    fn take_in(
        &mut self,
        event: &Event,
        at: UnixMillis,
        changes: &mut Changes,
        made: Option<Box<Job>>,
    ) -> Result<(), FoldFault> {
        match event {
            Event::HostEnrolled { host, name, token_sha256, owner, token } => {
                if let Some(token) = token {
                    self.issued.count_host(*token)?;
                }
                let machine = token.and_then(|token| self.issued.machine(token)).cloned();
                if let Some(machine) = &machine {
                    self.machines.enrolled(machine, *host, at);
                }
                self.tokens.insert(*token_sha256, *host);
                self.owners.add(owner);
                let new = Host::new(*host, name.clone(), owner.clone(), *token_sha256, at);
                let trusted = token.is_some_and(|token| self.issued.is_trusted(token));
                self.hosts.insert(*host, Host { token: *token, trusted, machine, ..new });
            }
            Event::HostRevoked { host } => {
                let known = self.known_host(*host)?;
                let token = known.token_sha256;
                if !known.revoked {
                    let owner = known.owner.clone();
                    self.owners.remove(&owner)?;
                    self.known_host_mut(*host)?.revoked = true;
                }
                self.tokens.remove(&token);
                self.revoked_tokens.insert(token);
            }
            Event::HostBlocked { host, .. } | Event::HostUnblocked { host, .. } => {
                self.known_host_mut(*host)?.blocked = matches!(event, Event::HostBlocked { .. });
            }
            Event::HostsSeen { hosts } => self.hosts_seen(hosts, at)?,
            Event::HostForgotten { host } => {
                self.host_forgotten(*host)?;
            }
            Event::TokenCreated { token, sha256, label, grant, expires_at, by, quotas } => {
                if let Some(job) = grant.shared_job() {
                    self.known_job(job)?;
                }
                self.issued.create(IssuedToken {
                    id: *token,
                    sha256: *sha256,
                    label: label.clone(),
                    grant: grant.as_ref().clone(),
                    created_at: at,
                    expires_at: *expires_at,
                    revoked_at: None,
                    enrolled: 0,
                    by: *by,
                    quotas: *quotas,
                })?;
            }
            Event::TokenQuotasSet { token, quotas, .. } => {
                self.issued.set_quotas(*token, *quotas)?;
            }
            Event::TokenRotated { token, sha256 } => self.issued.rotate(*token, *sha256)?,
            Event::TokenRevoked { token, .. } => self.issued.revoke(*token, at)?,
            Event::TokenForgotten { token } => self.issued.forget(*token)?,
            Event::MachinesReported { machines } => self.machines_reported(machines, at),
            Event::BlobPublished { blob } => {
                self.blobs.published(*blob, at);
            }
            Event::BlobCondemned { blob } => {
                self.blobs.condemn(*blob, at)?;
            }
            Event::BlobDoomed { blob } => {
                self.blobs.doom(*blob, at)?;
            }
            Event::BlobDeleted { blob } => {
                self.blobs.deleted(*blob)?;
            }
            Event::BlobLost { blob } => {
                self.blobs.lost(*blob, at)?;
            }
            Event::TimeSkipped { skipped } => {
                self.skip_time(*skipped);
                changes.push(Change::WallTime);
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
                speculative_for,
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
                    speculative_for: *speculative_for,
                    granted_at: at,
                })?;
                changes.push(Change::LeaseGranted(*lease));
                changes.extend(self.work_of(*lease));
            }
            Event::LeaseEnded { lease, end } => {
                let host = self.lease_ended(*lease, end, at)?;
                let end = LeaseEndReason::of(end);
                changes.push(Change::LeaseEnded { lease: *lease, host, end });
                changes.extend(self.work_of(*lease));
            }
            Event::ReportAcknowledged { report, host: _ } => {
                self.acknowledged(report, at)?;
                changes.push(Change::Reported(report.lease));
                changes.extend(self.work_of(report.lease));
            }
            Event::Assimilated { lease, version, checkpoint, merged } => {
                self.assimilated(*lease, *version, *checkpoint, *merged, at)?;
                changes.settled(*lease, ResultEnd::Taken);
                // The shard may be runnable again, and with a new epoch all of them.
                changes.extend(merged.map(|_| Change::Runnable(None)));
                changes.extend(self.work_of(*lease));
                let unit = self.known_lease(*lease)?.unit;
                if self.trial(unit.job(), unit.trial()).is_some_and(|of| of.refit.is_some()) {
                    // No evaluation follows its epochs, after which its job may end, have used up its budget, or want another one.
                    changes.extend([Change::Job(unit.job()), Change::Runnable(None)]);
                }
            }
            Event::Evaluated { lease, epoch, valid, f1, own } => {
                let score = Score { valid: valid.clone(), f1: *f1, own: own.clone() };
                self.evaluated(*lease, *epoch, score, at)?;
                changes.settled(*lease, ResultEnd::Taken);
                changes.push(Change::Job(self.known_lease(*lease)?.unit.job()));
                changes.extend(self.work_of_evaluation(*lease));
            }
            Event::ExtraEvaluated { lease, sums } => {
                self.extra_evaluated(*lease, sums.clone(), at)?;
                changes.settled(*lease, ResultEnd::Taken);
                changes.push(Change::Job(self.known_lease(*lease)?.unit.job()));
            }
            Event::Rejected { lease, reason, fault } => {
                self.rejected(*lease, reason, *fault, at)?;
                let end = match fault {
                    Fault::Host => ResultEnd::Rejected,
                    Fault::Server => ResultEnd::Lost,
                };
                changes.settled(*lease, end);
                changes.extend(self.work_of(*lease));
            }
            Event::Superseded { lease } => {
                self.superseded(*lease, at)?;
                changes.settled(*lease, ResultEnd::Superseded);
                changes.extend(self.work_of(*lease));
            }
            Event::UnitFailed { lease, failure } => {
                self.unit_failed(*lease, failure, at)?;
                changes.settled(*lease, ResultEnd::Failed);
                changes.extend(self.work_of(*lease));
            }
            Event::Challenged { lease } => {
                self.challenged(*lease)?;
                changes.push(Change::Runnable(None));
                changes.extend(self.work_of(*lease));
            }
            Event::Verified { confirmed, refuted } => {
                self.verified(confirmed, refuted)?;
                changes.extend(confirmed.first().and_then(|first| self.work_of(*first)));
            }
            Event::Unverified { lease } => {
                self.unverified(*lease)?;
                changes.extend(self.work_of(*lease));
            }
            Event::JobSubmitted { job, spec, data, key, nonce, at_end, by } => {
                let new = match made.filter(|made| made.key == *key) {
                    Some(made) => Job { id: *job, submitted_at: at, ..*made },
                    None => {
                        let (spec, data) = (spec.as_ref().clone(), data.as_ref().clone());
                        Job::new(*job, spec, data, *key, *at_end, at)?
                    }
                };
                let new = Job { owner: *by, ..new };
                for blob in new.blobs() {
                    self.blobs.known(&blob.sha256)?;
                }
                for blob in new.blobs() {
                    self.blobs.retain(blob.sha256)?;
                }
                self.jobs.insert(*job, new);
                self.job_keys.insert(*key, *job);
                if let Some(nonce) = nonce {
                    self.job_nonces.insert(nonce.clone(), *job);
                }
                changes.extend([Change::Job(*job), Change::WallTime, Change::Runnable(None)]);
                changes.push(Change::all_work(*job));
            }
            Event::JobCancelled { job } => {
                self.cancel(*job, at)?;
                changes.extend([Change::Job(*job), Change::NothingFollows(*job)]);
                changes.push(Change::all_work(*job));
            }
            Event::JobTrainingOver { job, grace, used_up } => {
                self.end_training(*job, *grace, used_up.map(|budget| (budget, at)))?;
                changes.extend([Change::Job(*job), Change::WallTime, Change::Runnable(None)]);
                changes.extend([Change::NothingFollows(*job), Change::all_work(*job)]);
            }
            Event::JobTimeUp { job } => {
                self.stop(*job, at)?;
                changes.extend([Change::Job(*job), Change::Runnable(None)]);
                changes.push(Change::all_work(*job));
            }
            Event::JobPaused { job } => {
                self.known_job_mut(*job)?.paused_at = Some(at);
                changes.extend([Change::Job(*job), Change::WallTime, Change::NothingFollows(*job)]);
            }
            Event::JobResumed { job } => {
                self.known_job_mut(*job)?.resume(at);
                changes.extend([Change::Job(*job), Change::WallTime, Change::Runnable(None)]);
            }
            Event::JobExtended { job, trials, epochs, named, .. } => {
                for trial in trials {
                    self.known_trial(*job, *trial)?;
                }
                let until = self.last_lease;
                let paid = self.paid_of_used_up(*job, at);
                self.known_job_mut(*job)?.extend(trials, *epochs, *named, until, (at, paid));
                changes.extend([Change::Job(*job), Change::WallTime, Change::Runnable(None)]);
                changes.extend([Change::NothingFollows(*job), Change::all_work(*job)]);
            }
            Event::JobPlaced { job, priority, slot_share, max_hosts, budget, deadline } => {
                let placement = &mut self.known_job_mut(*job)?.spec.placement;
                (placement.priority, placement.slot_share) = (*priority, *slot_share);
                placement.max_hosts = *max_hosts;
                (placement.budget, placement.deadline) = (*budget, *deadline);
                changes.extend([Change::Job(*job), Change::Runnable(None)]);
            }
            Event::JobNoted { job, note } => self.known_job_mut(*job)?.note.clone_from(note),
            Event::JobThinned { job } => {
                self.job_thinned(*job, at)?;
                changes.push(Change::Job(*job));
            }
            Event::JobDeleted { job } => {
                self.job_deleted(*job, at)?;
                changes.extend([Change::Job(*job), Change::all_work(*job)]);
            }
            Event::RollbackAsked { job, host, lost } => {
                self.known_host(*host)?;
                let until = self.record_of(*host).suspect_until;
                let asked = AskedRollback { lost: *lost, until };
                self.known_job_mut(*job)?.asked.insert(*host, asked);
                changes.push(Change::Job(*job));
            }
            Event::TrialRolledBack { job, trial, epochs, why: _ } => {
                self.rolled_back(*job, *trial, *epochs, at)?;
                changes.extend([Change::Job(*job), Change::WallTime, Change::Runnable(None)]);
                changes.push(Change::all_work(*job));
            }
            Event::TrialsAdded { job, trials, suggested, nonce, .. } => {
                self.trials_added(*job, trials, *suggested, nonce.as_ref(), at)?;
                changes.extend([Change::Job(*job), Change::WallTime, Change::Runnable(None)]);
                changes.push(Change::all_work(*job));
            }
            Event::SearchExtended { job, trials, .. } => {
                self.search_extended(*job, *trials, at)?;
                changes.extend([Change::Job(*job), Change::WallTime, Change::all_work(*job)]);
            }
            Event::SearchEnded { job, why, .. } => {
                self.search_over(*job, why, at)?;
                changes.push(Change::Job(*job));
            }
            Event::SpaceChanged { job, models, training, .. } => {
                self.space_changed(*job, models, training)?;
            }
            Event::TrialPlaced { job, trial, priority, .. } => {
                self.known_trial(*job, *trial)?;
                let priorities = &mut self.known_job_mut(*job)?.priorities;
                if *priority == 0 {
                    priorities.remove(trial);
                } else {
                    priorities.insert(*trial, *priority);
                }
                changes.extend([Change::Job(*job), Change::all_work(*job)]);
            }
            Event::TrialCategorized { job, trial, category, .. } => {
                self.trial_categorized((*job, *trial), *category, at)?;
                changes.push(Change::work_of_trial(*job, *trial));
            }
            Event::TrialMoved { job, trial, to, kind, .. } => {
                self.trial_moved((*job, *trial), *to, *kind)?;
                changes.extend([Change::Runnable(None), Change::work_of_trial(*job, *trial)]);
            }
            Event::TrialContinued { job, trial, epochs, .. } => {
                self.trial_continued(*job, *trial, *epochs, at)?;
                let epoch = self.known_trial(*job, *trial)?.chain.epoch();
                changes.extend([Change::Job(*job), Change::Runnable(Some((*job, *trial)))]);
                changes.push(Change::Work { job: *job, trial: Some(*trial), epoch: Some(epoch) });
            }
            Event::TrialStopped { job, trial, why, .. } => {
                self.trial_stopped(*job, *trial, why, at)?;
                // Most trials of a job may be stopped: not all of them are looked at for each.
                changes.extend([Change::Job(*job), Change::work_of_trial(*job, *trial)]);
            }
            Event::TrialOrdered { job, trial, order, .. } => {
                self.ordered(*job, *trial, *order, at)?;
                changes.extend([Change::Runnable(None), Change::all_work(*job)]);
            }
            Event::TrialFailed { job, trial, error } => {
                self.trial_failed(*job, *trial, error, at)?;
                changes.extend([Change::Job(*job), Change::all_work(*job)]);
            }
            Event::TrialRetried { job, trial, .. } => {
                self.trial_retried(*job, *trial, at)?;
                changes.extend([Change::Job(*job), Change::WallTime, Change::Runnable(None)]);
                changes.push(Change::all_work(*job));
            }
            Event::ExtraAsked { job, name } => {
                self.extra_asked(*job, *name)?;
                changes.extend([Change::Job(*job), Change::Runnable(None)]);
            }
            Event::ExtraFailed { job, name, error } => {
                self.extra_failed(*job, *name, error, at)?;
                changes.push(Change::Job(*job));
            }
        }
        Ok(())
    }

    /// Keeps the index of open units: of a job's trials, or of one trial's hops and its evaluation of an epoch, or all of them.
    pub(super) fn renew_open(&mut self, job: JobId, of: Option<UnitsOfTrial>) {
        if let Some(job) = self.jobs.get_mut(&job) {
            match of {
                None => job.open = Open::of(&job.trials),
                Some((trial, Some(epoch))) => job.renew_open(trial, epoch),
                Some((trial, None)) => {
                    let trial = job.trials.get(to_usize(trial.0));
                    trial.into_iter().for_each(|trial| job.open.renew_all(trial));
                }
            }
        }
    }

    /// The open units that the end of a lease, its grant or its result may have changed.
    fn work_of(&self, lease: LeaseId) -> Option<Change> {
        match self.lease(lease)?.unit {
            UnitKey::Train { job, trial, epoch, .. } | UnitKey::Evaluate { job, trial, epoch } => {
                Some(Change::Work { job, trial: Some(trial), epoch: Some(epoch) })
            }
            UnitKey::Extra { .. } => None,
        }
    }

    /// The same of an evaluation: one that has ended its trial early has changed other units of the job too.
    fn work_of_evaluation(&self, lease: LeaseId) -> Option<Change> {
        self.stopped_by(lease).map(Change::all_work).or_else(|| self.work_of(lease))
    }
}

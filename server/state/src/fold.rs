//! How each event changes the state.

use super::{
    AskedRollback, Change, Changes, FoldError, FoldFault, Host, IssuedToken, Job, Lease, Open,
    State, results::Score,
};
use crate::event::{Event, Record, UnitKey};
use sojourn_protocol::{
    ids::{Epoch, JobId, TrialId},
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
        if let Some((job, of)) = self.work_of_event(&record.event) {
            self.renew_open(job, of);
            let (trial, epoch) = (of.map(|(trial, _)| trial), of.and_then(|(_, epoch)| epoch));
            changes.push(Change::Work { job, trial, epoch });
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
                changes.push(Change::Host(*host));
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
                changes.push(Change::Host(*host));
            }
            Event::HostBlocked { host, .. } | Event::HostUnblocked { host, .. } => {
                self.known_host_mut(*host)?.blocked = matches!(event, Event::HostBlocked { .. });
                changes.push(Change::Host(*host));
            }
            Event::HostsSeen { hosts } => self.hosts_seen(hosts, at)?,
            Event::HostForgotten { host } => {
                self.host_forgotten(*host)?;
                changes.push(Change::Host(*host));
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
                changes.push(Change::Blob(blob.sha256));
            }
            Event::BlobCondemned { blob } => {
                self.blobs.condemn(*blob, at)?;
                changes.push(Change::Blob(*blob));
            }
            Event::BlobDoomed { blob } => {
                self.blobs.doom(*blob, at)?;
                changes.push(Change::Blob(*blob));
            }
            Event::BlobDeleted { blob } => {
                self.blobs.deleted(*blob)?;
                changes.push(Change::Blob(*blob));
            }
            Event::BlobLost { blob } => {
                self.blobs.lost(*blob, at)?;
                changes.push(Change::Blob(*blob));
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
            }
            Event::LeaseEnded { lease, end } => {
                let host = self.lease_ended(*lease, end, at)?;
                changes.push(Change::LeaseClosed { lease: *lease, host });
            }
            Event::ReportAcknowledged { report, host: _ } => {
                let (host, was_live) = self.acknowledged(report, at)?;
                if was_live {
                    changes.push(Change::LeaseClosed { lease: report.lease, host });
                }
            }
            Event::Assimilated { lease, version, checkpoint, merged } => {
                let host = self.assimilated(*lease, *version, *checkpoint, *merged, at)?;
                changes.push(Change::ResultSettled { lease: *lease, host });
            }
            Event::Evaluated { lease, epoch, valid, f1, own } => {
                let score = Score { valid: valid.clone(), f1: *f1, own: own.clone() };
                let host = self.evaluated(*lease, *epoch, score, at)?;
                changes.push(Change::ResultSettled { lease: *lease, host });
                let unit = self.known_lease(*lease)?.unit;
                self.ended_of(unit.job(), &[unit.trial()], changes)?;
            }
            Event::ExtraEvaluated { lease, sums } => {
                let host = self.extra_evaluated(*lease, sums.clone(), at)?;
                changes.push(Change::ResultSettled { lease: *lease, host });
                changes.push(Change::Job(self.known_lease(*lease)?.unit.job()));
            }
            Event::Rejected { lease, reason, fault } => {
                let host = self.rejected(*lease, reason, *fault, at)?;
                changes.push(Change::ResultSettled { lease: *lease, host });
            }
            Event::Superseded { lease } => {
                let host = self.superseded(*lease, at)?;
                changes.push(Change::ResultSettled { lease: *lease, host });
            }
            Event::UnitFailed { lease, failure } => {
                let host = self.unit_failed(*lease, failure, at)?;
                changes.push(Change::ResultSettled { lease: *lease, host });
            }
            Event::Challenged { lease } => self.challenged(*lease)?,
            Event::Verified { confirmed, refuted } => self.verified(confirmed, refuted)?,
            Event::Unverified { lease } => self.unverified(*lease)?,
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
                changes.extend([Change::Job(*job), Change::WallTime]);
            }
            Event::JobCancelled { job } => {
                let running = self.running_trials(*job)?;
                self.cancel(*job, at)?;
                self.ended_of(*job, &running, changes)?;
            }
            Event::JobTrainingOver { job, grace, used_up } => {
                self.end_training(*job, *grace, used_up.map(|budget| (budget, at)))?;
                changes.extend([Change::Job(*job), Change::WallTime]);
            }
            Event::JobTimeUp { job } => {
                let running = self.running_trials(*job)?;
                self.stop(*job, at)?;
                self.ended_of(*job, &running, changes)?;
            }
            Event::JobPaused { job } => {
                self.known_job_mut(*job)?.paused_at = Some(at);
                changes.extend([Change::Job(*job), Change::WallTime]);
            }
            Event::JobResumed { job } => {
                self.known_job_mut(*job)?.resume(at);
                changes.extend([Change::Job(*job), Change::WallTime]);
            }
            Event::JobExtended { job, trials, epochs, named, .. } => {
                for trial in trials {
                    self.known_trial(*job, *trial)?;
                }
                let until = self.last_lease;
                let paid = self.paid_of_used_up(*job, at);
                self.known_job_mut(*job)?.extend(trials, *epochs, *named, until, (at, paid));
                changes.extend([Change::Job(*job), Change::WallTime]);
            }
            Event::JobPlaced { job, priority, share, max_hosts, budget, deadline } => {
                let placement = &mut self.known_job_mut(*job)?.spec.placement;
                (placement.priority, placement.share) = (*priority, *share);
                placement.max_hosts = *max_hosts;
                (placement.budget, placement.deadline) = (*budget, *deadline);
                changes.push(Change::Job(*job));
            }
            Event::JobNoted { job, note } => self.known_job_mut(*job)?.note.clone_from(note),
            Event::JobThinned { job } => {
                self.job_thinned(*job, at)?;
                changes.push(Change::Job(*job));
            }
            Event::JobDeleted { job } => {
                self.job_deleted(*job, at)?;
                changes.push(Change::Job(*job));
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
                changes.extend([Change::Job(*job), Change::WallTime]);
            }
            Event::TrialsAdded { job, trials, suggested, nonce, .. } => {
                self.trials_added(*job, trials, *suggested, nonce.as_ref(), at)?;
                changes.extend([Change::Job(*job), Change::WallTime]);
            }
            Event::SearchExtended { job, trials, .. } => {
                self.search_extended(*job, *trials, at)?;
                changes.extend([Change::Job(*job), Change::WallTime]);
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
                changes.push(Change::Job(*job));
            }
            Event::TrialCategorized { job, trial, category, .. } => {
                self.trial_categorized((*job, *trial), *category, at)?;
            }
            Event::TrialMoved { job, trial, to, kind, .. } => {
                self.trial_moved((*job, *trial), *to, *kind)?;
            }
            Event::TrialContinued { job, trial, epochs, .. } => {
                self.trial_continued(*job, *trial, *epochs, at)?;
                changes.push(Change::Job(*job));
            }
            Event::TrialStopped { job, trial, why, .. } => {
                self.trial_stopped(*job, *trial, why, at)?;
                changes.extend([Change::TrialEnded(*job, *trial), Change::Job(*job)]);
            }
            Event::TrialOrdered { job, trial, order, .. } => {
                self.ordered(*job, *trial, *order, at)?;
            }
            Event::TrialFailed { job, trial, error } => {
                self.trial_failed(*job, *trial, error, at)?;
                changes.extend([Change::TrialEnded(*job, *trial), Change::Job(*job)]);
            }
            Event::ExtraAsked { job, name } => {
                self.extra_asked(*job, *name)?;
                changes.push(Change::Job(*job));
            }
            Event::ExtraFailed { job, name, error } => {
                self.extra_failed(*job, *name, error, at)?;
                changes.push(Change::Job(*job));
            }
        }
        Ok(())
    }

    fn running_trials(&self, job: JobId) -> Result<Vec<TrialId>, FoldFault> {
        let trials = self.known_job(job)?.trials.iter();
        Ok(trials.filter(|trial| trial.is_running()).map(|trial| trial.id).collect())
    }

    /// Says which of these trials, which were running before, have ended.
    fn ended_of(
        &self,
        job: JobId,
        before: &[TrialId],
        changes: &mut Changes,
    ) -> Result<(), FoldFault> {
        let known = self.known_job(job)?;
        let ended = |id: &&TrialId| known.trial(**id).is_some_and(|trial| !trial.is_running());
        changes.extend(before.iter().filter(ended).map(|trial| Change::TrialEnded(job, *trial)));
        changes.push(Change::Job(job));
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

    /// The job, or the one trial of it with one epoch or all, whose open units the event that was just folded may have changed.
    fn work_of_event(&self, event: &Event) -> Option<(JobId, Option<UnitsOfTrial>)> {
        let lease = match event {
            Event::TrialContinued { job, trial, .. } => {
                let epoch = self.trial(*job, *trial)?.chain.epoch();
                return Some((*job, Some((*trial, Some(epoch)))));
            }
            // Most trials of a job may be stopped: not all of them are looked at for each.
            Event::TrialStopped { job, trial, .. }
            | Event::TrialCategorized { job, trial, .. }
            | Event::TrialMoved { job, trial, .. } => return Some((*job, Some((*trial, None)))),
            Event::TrialFailed { job, .. }
            | Event::TrialOrdered { job, .. }
            | Event::TrialRolledBack { job, .. }
            | Event::JobSubmitted { job, .. }
            | Event::JobCancelled { job }
            | Event::JobTrainingOver { job, .. }
            | Event::JobTimeUp { job }
            | Event::JobDeleted { job }
            | Event::TrialsAdded { job, .. }
            | Event::SearchExtended { job, .. }
            | Event::TrialPlaced { job, .. }
            | Event::JobExtended { job, .. } => return Some((*job, None)),
            Event::LeaseGranted { lease, .. }
            | Event::LeaseEnded { lease, .. }
            | Event::Assimilated { lease, .. }
            | Event::Rejected { lease, .. }
            | Event::Superseded { lease }
            | Event::Challenged { lease }
            | Event::Unverified { lease }
            | Event::UnitFailed { lease, .. } => *lease,
            Event::Verified { confirmed, .. } => *confirmed.first()?,
            Event::Evaluated { lease, .. } => match self.stopped_by(*lease) {
                Some(job) => return Some((job, None)),
                None => *lease,
            },
            Event::ReportAcknowledged { report, .. } => report.lease,
            Event::HostEnrolled { .. }
            | Event::HostRevoked { .. }
            | Event::HostBlocked { .. }
            | Event::HostUnblocked { .. }
            | Event::HostsSeen { .. }
            | Event::HostForgotten { .. }
            | Event::RollbackAsked { .. }
            | Event::TokenCreated { .. }
            | Event::TokenQuotasSet { .. }
            | Event::TokenRotated { .. }
            | Event::TokenRevoked { .. }
            | Event::TokenForgotten { .. }
            | Event::MachinesReported { .. }
            | Event::BlobPublished { .. }
            | Event::BlobCondemned { .. }
            | Event::BlobDoomed { .. }
            | Event::BlobDeleted { .. }
            | Event::BlobLost { .. }
            | Event::TimeSkipped { .. }
            | Event::JobPaused { .. }
            | Event::JobResumed { .. }
            | Event::JobPlaced { .. }
            | Event::SearchEnded { .. }
            | Event::SpaceChanged { .. }
            | Event::JobNoted { .. }
            | Event::JobThinned { .. }
            | Event::ExtraAsked { .. }
            | Event::ExtraEvaluated { .. }
            | Event::ExtraFailed { .. } => return None,
        };
        match self.lease(lease)?.unit {
            UnitKey::Train { job, trial, epoch, .. } | UnitKey::Evaluate { job, trial, epoch } => {
                Some((job, Some((trial, Some(epoch)))))
            }
            UnitKey::Extra { .. } => None,
        }
    }
}

//! How each event changes the state.

use super::{
    Best, ExtraEnd, FailedBy, Host, Job, Lease, Open, Past, PastState, PendingEvaluation, State,
    Trial, TrialEnd,
    trial::{is_better, marks},
};
use crate::event::{Event, Fault, LeaseEnd, Record, UnitKey};
use sojourn_protocol::{
    digest::{BlobRef, Digest},
    ids::{Epoch, HostId, JobId, LeaseId, ShardId, TrialId, Version},
    metrics::ByClass,
    report::{Failure, Outcome, Report, ReportEnd, Sums, Trained},
    time::{Millis, UnixMillis},
    view::{CurvePoint, HopRecord},
};
use sojourn_workgen::Advance;

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

/// A reported lease is forgotten this many times sooner than one that may yet be reported.
const REPORTED: u64 = 24;

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
            Event::JobPaused { job } => self.pause(*job, Some(at)),
            Event::JobResumed { job } => self.pause(*job, None),
            Event::JobExtended { job, trials, epochs } => {
                let until = self.last_lease;
                if let Some(job) = self.jobs.get_mut(job) {
                    job.extend(trials, *epochs, until);
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
                    base: *base,
                    class: *class,
                    copy_of: *copy_of,
                    granted_at: at,
                });
            }
            Event::LeaseEnded { lease, end } => self.lease_ended(*lease, end, at),
            Event::ReportAcknowledged { report, host: _ } => self.acknowledged(report, at),
            Event::Assimilated { lease, version, checkpoint } => {
                self.assimilated(*lease, *version, *checkpoint, at);
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
            | Event::JobSubmitted { job, .. }
            | Event::JobCancelled { job }
            | Event::JobExtended { job, .. } => return Concern::Job(*job),
            Event::LeaseGranted { lease, .. }
            | Event::LeaseEnded { lease, .. }
            | Event::Assimilated { lease, .. }
            | Event::Evaluated { lease, .. }
            | Event::Rejected { lease, .. }
            | Event::Superseded { lease }
            | Event::UnitFailed { lease, .. } => *lease,
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

    fn granted(&mut self, lease: Lease) {
        self.last_lease = self.last_lease.max(lease.id);
        if let Some(job) = self.jobs.get_mut(&lease.unit.job()) {
            job.counters.leases_live += 1;
            if lease.copy_of.is_some() {
                let work = job.work_of(&lease);
                job.counters.copies += 1;
                job.counters.copied = job.counters.copied.saturating_add(work);
            }
            job.employs(lease.host);
            if let Some((live, _)) = job.attempts_mut(&lease.unit) {
                live.insert(lease.id);
            }
        }
        if let Some(host) = self.hosts.get_mut(&lease.host) {
            host.live.insert(lease.id);
        }
        self.leases.insert(lease.id, lease);
    }

    /// Takes a lease out of the live ones; its state is for the caller to say.
    fn unlive(&mut self, lease: LeaseId) -> Option<Lease> {
        let lease = self.leases.remove(&lease)?;
        if let Some(host) = self.hosts.get_mut(&lease.host) {
            host.live.remove(&lease.id);
        }
        if let Some(job) = self.jobs.get_mut(&lease.unit.job()) {
            job.counters.leases_live -= 1;
            job.dismisses(lease.host);
            if let Some((live, _)) = job.attempts_mut(&lease.unit) {
                live.remove(&lease.id);
            }
        }
        Some(lease)
    }

    fn lease_ended(&mut self, id: LeaseId, end: &LeaseEnd, at: UnixMillis) {
        let Some(lease) = self.unlive(id) else { return };
        if *end != LeaseEnd::Revoked {
            self.lost_beside_a_copy(&lease);
        }
        let ran_out = matches!(end, LeaseEnd::Silent | LeaseEnd::Overdue);
        if let Some(host) = self.hosts.get_mut(&lease.host) {
            host.expired += u64::from(ran_out);
            if ran_out {
                host.reliability.break_one(at);
            }
        }
        let forget_at = at + self.remember;
        self.past_order.insert((forget_at, id));
        self.past.insert(id, Past { lease, state: PastState::Lapsed(end.clone()), forget_at });
        self.count(id, |counters| {
            counters.leases_expired += u64::from(ran_out);
            counters.leases_returned += u64::from(!ran_out);
        });
    }

    fn acknowledged(&mut self, report: &Report, at: UnixMillis) {
        let id = report.lease;
        let lease = match self.unlive(id) {
            Some(lease) => {
                self.kept_deadline(&lease, &report.outcome, at);
                lease
            }
            None => match self.past.remove(&id) {
                Some(past) => {
                    self.past_order.remove(&(past.forget_at, id));
                    past.lease
                }
                None => return,
            },
        };
        let wanted = self.is_wanted(&lease);
        let unit = lease.unit;
        let state = PastState::Acknowledged(Box::new(report.outcome.clone()));
        // Open until it ends; nothing forgets it before that.
        self.past.insert(id, Past { lease, state, forget_at: at });
        if wanted
            && matches!(report.outcome, Outcome::Trained(_))
            && let Some(trial) = self.trial_mut(unit.job(), unit.trial())
        {
            trial.awaiting.push_back(id);
        }
    }

    /// A live lease was reported. Trainer errors are counted elsewhere.
    fn kept_deadline(&mut self, lease: &Lease, outcome: &Outcome, at: UnixMillis) {
        if let Outcome::Failed(_) = outcome {
            self.lost_beside_a_copy(lease);
        } else if let Some(host) = self.hosts.get_mut(&lease.host) {
            host.reliability.keep(at);
        }
    }

    /// A lease came to nothing. Its copy, where it has one, repeats nothing any more: it is the only one.
    fn lost_beside_a_copy(&mut self, lost: &Lease) {
        let Some(job) = self.jobs.get(&lost.unit.job()) else { return };
        let live = job.live_of(&lost.unit).into_iter().flatten().copied();
        let copies: Vec<LeaseId> = live
            .filter(|id| self.leases.get(id).is_some_and(|lease| lease.copy_of == Some(lost.id)))
            .collect();
        for copy in copies {
            let Some(lease) = self.leases.get_mut(&copy) else { continue };
            lease.copy_of = None;
            if let Some(job) = self.jobs.get_mut(&lost.unit.job()) {
                let work = job.work_of(lease);
                job.counters.copied = job.counters.copied.saturating_sub(work);
            }
        }
    }

    /// Ends an acknowledged report, and says whose it was.
    fn end_report(&mut self, id: LeaseId, state: PastState, at: UnixMillis) -> Option<HostId> {
        let forget_at = at + Millis(self.remember.0 / REPORTED);
        let past = self.past.get_mut(&id)?;
        past.state = state;
        past.forget_at = forget_at;
        let (host, unit) = (past.lease.host, past.lease.unit);
        self.past_order.insert((forget_at, id));
        if let Some(trial) = self.trial_mut(unit.job(), unit.trial()) {
            trial.awaiting.retain(|waiting| *waiting != id);
        }
        Some(host)
    }

    fn assimilated(&mut self, id: LeaseId, version: Version, checkpoint: BlobRef, at: UnixMillis) {
        let Some((lease, trained)) = self.trained(id) else { return };
        let Lease { host, unit, class, .. } = *lease;
        let (way, trained) = (lease.then.clone(), trained.clone());
        self.end_report(id, PastState::Ended(ReportEnd::Assimilated { version }), at);
        self.host_used(host, unit.job(), trained.train_micros);
        let UnitKey::Train { job, trial, shard, .. } = unit else { return };
        let visited = self.change_trial(job, trial, at, |trial| {
            let start = trial.chain.next(shard)?;
            let through = trial.chain.advance_through(start, &way, trained.end).ok()?;
            let then: Vec<ShardId> = way.into_iter().take(through.further).collect();
            trial.history.push(HopRecord {
                version,
                lease: id,
                host,
                start,
                end: trained.end,
                checkpoint,
                then: then.clone(),
            });
            if trial.history.len() == 1 {
                trial.class = class;
            }
            trial.mixed |= class.is_none() || class != trial.class;
            trial.version = version;
            trial.checkpoint = Some(checkpoint);
            trial.failures.clear();
            trial.train_sums = trial.train_sums.plus(trained.sums);
            if let Advance::Epoch(epoch) = through.last {
                let train = std::mem::take(&mut trial.train_sums);
                trial.evaluations.insert(
                    epoch,
                    PendingEvaluation {
                        version,
                        checkpoint,
                        train,
                        live: Default::default(),
                        failures: Default::default(),
                    },
                );
            }
            Some((then, through.last))
        });
        let Some(Some((then, last))) = visited else { return };
        let ended = usize::from(last != Advance::Part);
        let whole = std::iter::once(shard).chain(then.iter().copied()).take(then.len() + ended);
        let Some(job) = self.jobs.get_mut(&job) else { return };
        for shard in whole {
            job.visited(shard);
        }
    }

    fn evaluated(
        &mut self,
        id: LeaseId,
        epoch: Epoch,
        valid: Sums,
        f1: Option<f64>,
        at: UnixMillis,
    ) {
        let Some((lease, _)) = self.take_evaluation(id, at) else { return };
        self.count(id, |counters| counters.evaluations += 1);
        let Some(job) = self.jobs.get(&lease.unit.job()) else { return };
        let search = job.spec.search.clone();
        self.change_trial(lease.unit.job(), lease.unit.trial(), at, |trial| {
            let Some(done) = trial.evaluations.remove(&epoch) else { return };
            let place = trial.curve.partition_point(|point| point.epoch < epoch);
            trial.curve.insert(place, CurvePoint { epoch, train: done.train, valid, f1 });
            let value = search.metric.value(&valid, f1);
            let current = trial.best.map(|best| (best.value, best.epoch));
            let earlier = current.is_some_and(|(best, at)| best == value && epoch < at);
            if earlier || is_better(search.goal, value, current.map(|(best, _)| best)) {
                trial.best = Some(Best { epoch, value, checkpoint: done.checkpoint });
            }
            if trial.chain.is_done() && trial.evaluations.is_empty() && trial.end.is_none() {
                trial.end = Some(TrialEnd::Finished);
            }
        });
        self.settle(lease.unit.job(), at);
    }

    /// Ends an acknowledged evaluation as one that was used; says what was counted by class.
    fn take_evaluation(&mut self, id: LeaseId, at: UnixMillis) -> Option<(Lease, Option<ByClass>)> {
        let past = self.past.get(&id)?;
        let lease = past.lease.clone();
        let (micros, by_class) = match &past.state {
            PastState::Acknowledged(outcome) => match outcome.as_ref() {
                Outcome::Evaluated(evaluated) => {
                    (evaluated.train_micros, evaluated.by_class.clone())
                }
                Outcome::Trained(_) | Outcome::Failed(_) => (0, None),
            },
            PastState::Lapsed(_) | PastState::Failed(_) | PastState::Ended(_) => (0, None),
        };
        let end = ReportEnd::Assimilated { version: lease.base };
        self.end_report(id, PastState::Ended(end), at);
        self.host_used(lease.host, lease.unit.job(), micros);
        Some((lease, by_class))
    }

    fn extra_evaluated(&mut self, id: LeaseId, sums: Sums, at: UnixMillis) {
        let Some((lease, by_class)) = self.take_evaluation(id, at) else { return };
        let UnitKey::Extra { job, name } = lease.unit else { return };
        self.end_extra(job, name, ExtraEnd::Evaluated { sums, by_class }, at);
    }

    fn unit_failed(&mut self, id: LeaseId, failure: &Failure, at: UnixMillis) {
        let Some(unit) = self.past.get(&id).map(|past| past.lease.unit) else { return };
        let host = self.end_report(id, PastState::Failed(failure.clone()), at);
        self.host_failed(host, &failure.message);
        let Some(host) = host else { return };
        if !failure.kind.blames_host()
            && let Some(host) = self.hosts.get_mut(&host)
        {
            // The unit's doing, whoever computes it.
            host.failures_in_a_row = host.failures_in_a_row.saturating_sub(1);
        }
        let job = self.jobs.get_mut(&unit.job());
        if let Some((_, failures)) = job.and_then(|job| job.attempts_mut(&unit)) {
            let entry = failures
                .entry(host)
                .or_insert_with(|| FailedBy { count: 0, last: failure.clone() });
            entry.count += 1;
            entry.last = failure.clone();
        }
    }

    /// Changes a trial and keeps the blob references with it.
    pub(super) fn change_trial<T>(
        &mut self,
        job: JobId,
        trial: TrialId,
        at: UnixMillis,
        change: impl FnOnce(&mut Trial) -> T,
    ) -> Option<T> {
        let trial = self.jobs.get_mut(&job)?.trial_mut(trial)?;
        let mut before: Vec<Digest> = trial.blobs().collect();
        let out = change(trial);
        let mut after: Vec<Digest> = trial.blobs().collect();
        // What it refers to as before needn't be found.
        before.retain(|blob| {
            let same = after.iter().position(|other| other == blob);
            same.map(|index| after.swap_remove(index)).is_none()
        });
        for blob in after {
            self.blobs.retain(blob);
        }
        for blob in before {
            self.blobs.release(blob, at);
        }
        Some(out)
    }

    fn trained(&self, id: LeaseId) -> Option<(&Lease, &Trained)> {
        let past = self.past.get(&id)?;
        match &past.state {
            PastState::Acknowledged(outcome) => match outcome.as_ref() {
                Outcome::Trained(trained) => Some((&past.lease, trained)),
                Outcome::Evaluated(_) | Outcome::Failed(_) => None,
            },
            PastState::Lapsed(_) | PastState::Failed(_) | PastState::Ended(_) => None,
        }
    }

    fn host_used(&mut self, host: HostId, job: JobId, micros: u64) {
        if let Some(host) = self.hosts.get_mut(&host) {
            host.used += 1;
            host.failures_in_a_row = 0;
            host.train_micros = host.train_micros.saturating_add(micros);
        }
        if let Some(job) = self.jobs.get_mut(&job) {
            job.counters.train_micros = job.counters.train_micros.saturating_add(micros);
        }
    }

    fn host_failed(&mut self, host: Option<HostId>, error: &str) {
        if let Some(host) = host.and_then(|host| self.hosts.get_mut(&host)) {
            host.failures += 1;
            host.failures_in_a_row += 1;
            host.last_error = Some(error.to_owned());
        }
    }

    fn count(&mut self, id: LeaseId, change: impl FnOnce(&mut super::Counters)) {
        let job = self.past.get(&id).map(|past| past.lease.unit.job());
        if let Some(job) = job.and_then(|job| self.jobs.get_mut(&job)) {
            change(&mut job.counters);
        }
    }

    fn forget_old_leases(&mut self) {
        while let Some((at, id)) = self.past_order.first().copied()
            && at < self.at
        {
            self.past_order.pop_first();
            self.past.remove(&id);
        }
    }
}

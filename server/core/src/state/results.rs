//! What reported results change: versions, evaluations, failures, and what hosts have done.

use super::{
    Best, ExtraEnd, FailedBy, Lease, PastState, PendingEvaluation, State, Trial, TrialEnd,
    trial::is_better,
};
use crate::event::UnitKey;
use sojourn_protocol::{
    digest::{BlobRef, Digest},
    ids::{Epoch, HostId, JobId, LeaseId, ShardId, TrialId, Version},
    metrics::ByClass,
    report::{Failure, Outcome, ReportEnd, Sums, Trained},
    time::{Millis, UnixMillis},
    view::{CurvePoint, HopRecord, MergeRecord},
};
use sojourn_workgen::Advance;
use std::sync::Arc;

/// A reported lease is forgotten this many times sooner than one that may yet be reported.
const REPORTED: u64 = 24;

impl State {
    /// Ends an acknowledged report, and says whose it was.
    pub(super) fn end_report(
        &mut self,
        id: LeaseId,
        state: PastState,
        at: UnixMillis,
    ) -> Option<HostId> {
        let forget_at = at + Millis(self.remember.0 / REPORTED);
        let past = self.past.get_mut(&id)?;
        past.state = state;
        past.forget_at = forget_at;
        let lease = past.lease.clone();
        self.past_order.insert((forget_at, id));
        self.hop_over(&lease);
        if let Some(trial) = self.trial_mut(lease.unit.job(), lease.unit.trial()) {
            trial.verdicts.remove(&id);
        }
        Some(lease.host)
    }

    pub(super) fn assimilated(
        &mut self,
        id: LeaseId,
        version: Version,
        checkpoint: BlobRef,
        merged: Option<MergeRecord>,
        at: UnixMillis,
    ) {
        let Some((lease, trained)) = self.trained(id) else { return };
        let Lease { host, unit, class, .. } = *lease;
        let (way, trained) = (lease.then.clone(), trained.clone());
        let verified = self.trial(unit.job(), unit.trial()).and_then(|trial| trial.verdict_of(id));
        self.end_report(id, PastState::Ended(ReportEnd::Assimilated { version }), at);
        self.host_used(host, unit.job(), trained.train_micros);
        let UnitKey::Train { job, trial, shard, .. } = unit else { return };
        let keeps = self.jobs.get(&job).is_some_and(|job| job.spec.placement.verify.is_some());
        let visited = self.change_trial(job, trial, at, |trial| {
            let start = trial.chain.next(shard)?;
            let mut end = trained.end;
            if merged.is_some() {
                // Its own steps count from its base.
                end.step = start.step + u64::from(end.batch.saturating_sub(start.batch));
            }
            let through = trial.chain.advance_through(start, &way, end).ok()?;
            let then: Vec<ShardId> = way.into_iter().take(through.further).collect();
            trial.history.push(HopRecord {
                version,
                lease: id,
                host,
                start,
                end,
                checkpoint,
                then: then.clone(),
                merged,
                verified,
            });
            if trial.history.len() == 1 {
                trial.class = class;
            }
            trial.mixed |= class.is_none() || class != trial.class;
            trial.version = version;
            trial.checkpoint = Some(checkpoint);
            trial.failures.clear();
            trial.train_sums = trial.train_sums.plus(trained.sums);
            if let Some(MergeRecord { state, flush, .. }) = merged {
                let epoch_ended = matches!(through.last, Advance::Epoch(_));
                trial.merged(shard, state, flush, epoch_ended);
            }
            if let Advance::Epoch(epoch) = through.last {
                let train = std::mem::take(&mut trial.train_sums);
                if keeps {
                    trial.keep_epoch(epoch, checkpoint);
                }
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

    pub(super) fn evaluated(
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
            trial.stop_at_target(&search, epoch, value);
        });
        self.recount_if_stopped(id);
        self.settle(lease.unit.job(), at);
    }

    /// Ends an acknowledged evaluation as one that was used; says what was counted by class.
    fn take_evaluation(
        &mut self,
        id: LeaseId,
        at: UnixMillis,
    ) -> Option<(Arc<Lease>, Option<ByClass>)> {
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

    pub(super) fn extra_evaluated(&mut self, id: LeaseId, sums: Sums, at: UnixMillis) {
        let Some((lease, by_class)) = self.take_evaluation(id, at) else { return };
        let UnitKey::Extra { job, name } = lease.unit else { return };
        self.end_extra(job, name, ExtraEnd::Evaluated { sums, by_class }, at);
    }

    pub(super) fn unit_failed(&mut self, id: LeaseId, failure: &Failure, at: UnixMillis) {
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

    pub(super) fn trained(&self, id: LeaseId) -> Option<(&Lease, &Trained)> {
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

    pub(super) fn host_failed(&mut self, host: Option<HostId>, error: &str) {
        if let Some(host) = host.and_then(|host| self.hosts.get_mut(&host)) {
            host.failures += 1;
            host.failures_in_a_row += 1;
            host.last_error = Some(error.to_owned());
        }
    }

    pub(super) fn count(&mut self, id: LeaseId, change: impl FnOnce(&mut super::Counters)) {
        let job = self.past.get(&id).map(|past| past.lease.unit.job());
        if let Some(job) = job.and_then(|job| self.jobs.get_mut(&job)) {
            change(&mut job.counters);
        }
    }
}

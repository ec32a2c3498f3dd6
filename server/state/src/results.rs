//! How reported results change versions, evaluations, failures and the counts of hosts.

use super::{
    Best, Counters, ExtraEnd, FailedBy, FoldFault, Lease, PastState, PendingEvaluation, State,
    Trial, TrialEnd, disk::distinct_bytes, rollback::KeptEnds, trial::is_better,
};
use crate::event::{Fault, HopUnit, UnitKey};
use smallvec::SmallVec;
use sojourn_protocol::{
    digest::BlobRef,
    ids::{Epoch, HostId, JobId, LeaseId, ShardId, TrialId, Version},
    metrics::ByClass,
    position::Position,
    report::{Evaluated, Failure, FailureKind, Outcome, ReportEnd, Sums, Trained},
    sum_array::SumArray,
    time::{Millis, UnixMillis},
    view::{CurvePoint, HopRecord, MergeRecord},
};
use sojourn_workgen::{Advance, Chain, ChainError, Through};
use std::{collections::BTreeMap, sync::Arc};

/// The part of an evaluation that its trial's curve keeps.
pub(super) struct Score {
    pub(super) valid: Sums,
    pub(super) f1: Option<f64>,
    pub(super) own: BTreeMap<String, f64>,
}

/// The time for which an ended lease is remembered is divided by this once it has been reported.
const REPORTED_DIVISOR: u64 = 24;

/// A trained part, found to be what comes next in its trial's chain.
struct NextPart {
    start: Position,
    end: Position,
    /// The chain with the part taken in.
    chain: Chain,
    through: Through,
    /// The shards that it goes through after its first.
    then: Vec<ShardId>,
    /// The visits that shards still get after it.
    load: Vec<u64>,
}

impl State {
    /// Ends an acknowledged report, and gives its lease.
    fn end_report(
        &mut self,
        id: LeaseId,
        state: PastState,
        at: UnixMillis,
    ) -> Result<Arc<Lease>, FoldFault> {
        let (lease, _) = self.reported(id)?;
        let lease = Arc::clone(lease);
        let (job, trial) = (lease.unit.job(), lease.unit.trial());
        self.known_host(lease.host)?;
        self.known_trial(job, trial)?;
        let forget_at = at + Millis(self.remember.0 / REPORTED_DIVISOR);
        let past = self.past.get_mut(&id).ok_or(FoldFault::UnknownLease(id))?;
        (past.state, past.forget_at) = (state, forget_at);
        self.past_order.insert((forget_at, id));
        self.hop_over(&lease, at)?;
        self.evaluation_over(&lease);
        self.known_trial_mut(job, trial)?.verdicts.remove(&id);
        Ok(lease)
    }

    pub(super) fn rejected(
        &mut self,
        id: LeaseId,
        reason: &str,
        fault: Fault,
        at: UnixMillis,
    ) -> Result<(), FoldFault> {
        let end = ReportEnd::Rejected { reason: reason.to_owned() };
        let lease = self.end_report(id, PastState::Ended(end), at)?;
        self.count(&lease, |counters| counters.rejected += 1)?;
        if fault == Fault::Host {
            self.host_failed(lease.host, reason, true)?;
        }
        Ok(())
    }

    pub(super) fn superseded(&mut self, id: LeaseId, at: UnixMillis) -> Result<(), FoldFault> {
        let lease = self.end_report(id, PastState::Ended(ReportEnd::Superseded), at)?;
        self.count(&lease, |counters| counters.superseded += 1)?;
        Ok(())
    }

    pub(super) fn assimilated(
        &mut self,
        id: LeaseId,
        version: Version,
        checkpoint: BlobRef,
        merged: Option<MergeRecord>,
        at: UnixMillis,
    ) -> Result<(), FoldFault> {
        let (lease, hop, trained) = self.trained(id)?;
        let part = self.next_part(lease, hop, trained, merged.is_some())?;
        let (train_micros, sums) = (trained.train_micros, trained.sums.clone());
        let Lease { host, class, .. } = **lease;
        let HopUnit { job, trial, shard } = hop;
        self.known_host(host)?;
        for blob in std::iter::once(checkpoint).chain(merged.map(|merged| merged.state)) {
            self.blobs.known(&blob.sha256)?;
        }
        let known = self.known_trial(job, trial)?;
        let verified = known.verdict_of(id);
        if merged.is_some() && known.merging.is_none() {
            return Err(FoldFault::NotMerging(id));
        }
        let ends = KeptEnds::of(&self.known_job(job)?.spec, self.owners.has_issued());
        let value_of_refit = self.known_job(job)?.value_of_refit(known);
        // Nothing was changed before, and nothing fails from here on.
        let NextPart { start, end, chain, through, then, load } = part;
        self.end_report(id, PastState::Ended(ReportEnd::Assimilated { version }), at)?;
        self.host_used(host, job, train_micros)?;
        self.change_trial(job, trial, at, |trial| {
            trial.chain = chain;
            trial.history.push(HopRecord {
                version,
                lease: id,
                host,
                start,
                end,
                checkpoint,
                then,
                merged,
                verified,
            });
            // A clone is of the class of the trial that it goes on from.
            if trial.history.len() == 1 && trial.origin.is_none() {
                trial.class = class;
            }
            trial.mixed |= class.is_none() || class != trial.class;
            trial.version = version;
            trial.checkpoint = Some(checkpoint);
            trial.failures.clear();
            trial.train_sums = std::mem::take(&mut trial.train_sums).plus(&sums);
            if let Some(MergeRecord { state, flush, .. }) = merged {
                let epoch_ended = matches!(through.last, Advance::Epoch(_));
                trial.merged(shard, state, flush, epoch_ended);
            }
            if let Advance::Epoch(epoch) = through.last {
                let train = std::mem::take(&mut trial.train_sums);
                trial.keep_epoch(epoch, checkpoint, ends);
                if trial.refit.is_some() {
                    trial.refit_epoch_over(epoch, checkpoint, value_of_refit);
                    return;
                }
                trial.evaluations.insert(
                    epoch,
                    PendingEvaluation {
                        version,
                        checkpoint,
                        train,
                        live: Default::default(),
                        failures: Default::default(),
                        verification: None,
                    },
                );
            }
        })?;
        self.known_job_mut(job)?.load = load;
        if self.known_trial(job, trial)?.end.is_some() {
            // Others end with an evaluation.
            self.settle(job, at)?;
        }
        Ok(())
    }

    /// Takes a trained part into a copy of its trial's chain, and of its job's visits.
    fn next_part(
        &self,
        lease: &Lease,
        hop: HopUnit,
        trained: &Trained,
        is_merged: bool,
    ) -> Result<NextPart, FoldFault> {
        let trial = self.known_trial(hop.job, hop.trial)?;
        let start = trial.chain.next(hop.shard).ok_or_else(|| {
            let start = Position { batch: 0, shard: hop.shard, ..trained.end };
            FoldFault::Chain(ChainError::NotNext { start, expected: None })
        })?;
        let mut end = trained.end;
        if is_merged {
            // Its report counts steps from its own base, not from the trial's version.
            end.step = start.step + u64::from(end.batch.saturating_sub(start.batch));
        }
        let mut chain = trial.chain.clone();
        let through = chain.advance_through(start, &lease.then, end).map_err(FoldFault::Chain)?;
        let then: Vec<ShardId> = lease.then.iter().copied().take(through.further).collect();
        let ended = usize::from(through.last != Advance::Part);
        let all = std::iter::once(hop.shard).chain(then.iter().copied());
        let load = self.known_job(hop.job)?.load_after(all.take(then.len() + ended))?;
        Ok(NextPart { start, end, chain, through, then, load })
    }

    pub(super) fn evaluated(
        &mut self,
        id: LeaseId,
        epoch: Epoch,
        Score { valid, f1, own }: Score,
        at: UnixMillis,
    ) -> Result<(), FoldFault> {
        let (lease, _) = self.evaluation(id)?;
        let unit = lease.unit;
        let (job, trial) = (unit.job(), unit.trial());
        if !matches!(unit, UnitKey::Evaluate { epoch: of, .. } if of == epoch) {
            return Err(FoldFault::WrongUnit(id));
        }
        let known = self.known_trial(job, trial)?;
        if !known.evaluations.contains_key(&epoch) {
            return Err(FoldFault::UnknownEvaluation(unit));
        }
        let verified = known.verdict_of(id);
        self.take_evaluation(id, at)?;
        let job_of = self.known_job_mut(job)?;
        job_of.counters.evaluations += 1;
        let search = job_of.spec.search.clone();
        let stopped = self.change_trial(job, trial, at, |trial| {
            let done = trial.evaluations.remove(&epoch);
            let done = done.ok_or(FoldFault::UnknownEvaluation(unit))?;
            let place = trial.curve.partition_point(|point| point.epoch < epoch);
            let value = search.value(&valid, f1, &own);
            let point = CurvePoint { epoch, train: done.train, valid, f1, own, verified, at };
            trial.curve.insert(place, point);
            let current = trial.best.map(|best| (best.value, best.epoch));
            let earlier = current.is_some_and(|(best, of)| best == value && epoch < of);
            if earlier || is_better(search.goal, value, current.map(|(best, _)| best)) {
                trial.best = Some(Best { epoch, value, checkpoint: done.checkpoint });
            }
            if trial.is_trained() && trial.evaluations.is_empty() && trial.end.is_none() {
                trial.end = Some(TrialEnd::Finished);
            }
            trial.stop_at_target(&search, epoch, value);
            Ok(trial.stopped.is_some())
        })??;
        if stopped {
            // Visits to shards that the trial still owed are owed no more.
            self.known_job_mut(job)?.recount_load();
        }
        self.settle(job, at)?;
        Ok(())
    }

    /// An acknowledged evaluation that waits for its end.
    fn evaluation(&self, id: LeaseId) -> Result<(&Arc<Lease>, &Evaluated), FoldFault> {
        match self.reported(id)? {
            (lease, Outcome::Evaluated(evaluated)) => {
                self.known_host(lease.host)?;
                Ok((lease, evaluated))
            }
            (_, Outcome::Trained(_) | Outcome::Failed(_)) => Err(FoldFault::WrongUnit(id)),
        }
    }

    /// Ends an acknowledged evaluation as one that was used; says what was counted by class, and the arrays.
    fn take_evaluation(
        &mut self,
        id: LeaseId,
        at: UnixMillis,
    ) -> Result<(Option<ByClass>, BTreeMap<String, SumArray>), FoldFault> {
        let (lease, evaluated) = self.evaluation(id)?;
        let micros = evaluated.train_micros;
        let counts = (evaluated.by_class.clone(), evaluated.arrays.clone());
        let end = ReportEnd::Assimilated { version: lease.base };
        let lease = self.end_report(id, PastState::Ended(end), at)?;
        self.host_used(lease.host, lease.unit.job(), micros)?;
        Ok(counts)
    }

    pub(super) fn extra_evaluated(
        &mut self,
        id: LeaseId,
        sums: Sums,
        at: UnixMillis,
    ) -> Result<(), FoldFault> {
        let (lease, _) = self.evaluation(id)?;
        let UnitKey::Extra { job, name } = lease.unit else {
            return Err(FoldFault::WrongUnit(id));
        };
        if self.known_job(job)?.extra(&name).is_none() {
            return Err(FoldFault::UnknownEvaluation(lease.unit));
        }
        let verified = self.known_trial(job, name.trial)?.verdict_of(id);
        let (by_class, arrays) = self.take_evaluation(id, at)?;
        self.end_extra(job, name, ExtraEnd::Evaluated { sums, by_class, arrays, verified }, at)
    }

    pub(super) fn unit_failed(
        &mut self,
        id: LeaseId,
        failure: &Failure,
        at: UnixMillis,
    ) -> Result<(), FoldFault> {
        let (lease, _) = self.reported(id)?;
        let unit = lease.unit;
        if self.known_job(unit.job())?.failures_of(&unit).is_none() && unit.hop().is_none() {
            return Err(FoldFault::UnknownEvaluation(unit));
        }
        let lease = self.end_report(id, PastState::Failed(failure.clone()), at)?;
        self.host_failed(lease.host, &failure.message, failure.kind != FailureKind::NonFinite)?;
        if !failure.kind.blames_host() {
            // The unit is to blame, not the host.
            let host = self.known_host_mut(lease.host)?;
            host.failures_in_a_row = host.failures_in_a_row.saturating_sub(1);
        }
        if failure.kind == FailureKind::Unsupported {
            // It says nothing about the unit, and other devices of the host may support it.
            return Ok(());
        }
        let attempts = self.known_job_mut(unit.job())?.attempts_mut(&unit);
        let (_, failures) = attempts.ok_or(FoldFault::UnknownEvaluation(unit))?;
        let entry = failures
            .entry(lease.host)
            .or_insert_with(|| FailedBy { count: 0, last: failure.clone() });
        entry.count += 1;
        entry.last = failure.clone();
        Ok(())
    }

    /// Changes a trial and keeps the blob references with it.
    pub(super) fn change_trial<T>(
        &mut self,
        job: JobId,
        trial: TrialId,
        at: UnixMillis,
        change: impl FnOnce(&mut Trial) -> T,
    ) -> Result<T, FoldFault> {
        let known = self.known_trial_mut(job, trial)?;
        let mut before: SmallVec<[BlobRef; 8]> = known.blobs().collect();
        let out = change(known);
        let mut after: SmallVec<[BlobRef; 8]> = known.blobs().collect();
        let (less, more) = (distinct_bytes(&before), distinct_bytes(&after));
        if less != more {
            self.known_job_mut(job)?.kept.change_checkpoints(less, more);
        }
        // References that stay need no update.
        before.retain(|blob| {
            let same = after.iter().position(|other| other == blob);
            same.map(|index| after.swap_remove(index)).is_none()
        });
        for blob in after {
            self.blobs.retain(blob.sha256)?;
        }
        for blob in before {
            self.blobs.release(blob.sha256, at)?;
        }
        Ok(out)
    }

    fn host_used(&mut self, host: HostId, job: JobId, micros: u64) -> Result<(), FoldFault> {
        let host = self.known_host_mut(host)?;
        host.used += 1;
        host.failures_in_a_row = 0;
        host.train_micros = host.train_micros.saturating_add(micros);
        let counters = &mut self.known_job_mut(job)?.counters;
        counters.train_micros = counters.train_micros.saturating_add(micros);
        Ok(())
    }

    /// A unit failed on a host. A trial that diverges does so anywhere: its error says nothing about the host.
    fn host_failed(
        &mut self,
        host: HostId,
        error: &str,
        is_of_host: bool,
    ) -> Result<(), FoldFault> {
        let host = self.known_host_mut(host)?;
        host.failures += 1;
        host.failures_in_a_row += 1;
        if is_of_host {
            host.last_error = Some(error.to_owned());
        }
        Ok(())
    }

    fn count(
        &mut self,
        lease: &Lease,
        change: impl FnOnce(&mut Counters),
    ) -> Result<(), FoldFault> {
        change(&mut self.known_job_mut(lease.unit.job())?.counters);
        Ok(())
    }
}

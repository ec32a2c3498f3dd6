//! What is asked of the core, and what it wants done.

use super::{NOBODY, PROGRESS_EVERY, Run};
use crate::fleet::{
    job::SimJob,
    quantity::float,
    queue::Event,
    training::{Merged, Point, Score},
};
use rand_core::Rng as _;
use sojourn_core::{
    Answer, AssimilationUnit, Command, Effect, Envelope, Event as Decided, Fault, MergeOffer,
    Offered, Record, ReplyTo, TrialOrder,
};
use sojourn_protocol::{
    digest::BlobRef,
    ids::LeaseId,
    manifest::DataSplit,
    metrics::ByClass,
    report::{Outcome, Sums},
    time::UnixMillis,
    unit::{Evaluation, Merge, Unit},
};
use std::sync::Arc;

impl Run<'_> {
    pub(super) fn submit(&mut self, job: usize) -> Result<(), String> {
        let Some(of) = self.plan.jobs.get(job) else { return Ok(()) };
        self.first_at = self.first_at.min(self.now);
        for blob in of.data.blobs().chain(of.spec.blobs()) {
            self.apply(Command::Published { to: NOBODY, blob })?;
        }
        let (spec, data) = (Box::new(of.spec.clone()), Box::new(of.data.clone()));
        self.apply(Command::Submit { to: NOBODY, spec, data, again: true, nonce: None })?;
        match self.answer.take() {
            Some(Answer::Submitted(_)) => self.submitted += 1,
            _ => return Err(format!("the job `{}` was refused", of.name)),
        }
        Ok(())
    }

    pub(super) fn assimilate(&mut self) -> Result<(), String> {
        self.assimilating = false;
        loop {
            self.apply(Command::TakeAssimilation { to: NOBODY })?;
            let Some(Answer::Assimilation(Some(unit))) = self.answer.take() else { return Ok(()) };
            let (lease, version) = (unit.lease, unit.version);
            if let Some(reason) = self.screen(&unit)? {
                self.refuse(lease, &reason)?;
                continue;
            }
            let (checkpoint, merged) = match &unit.merge {
                None => (unit.trained.checkpoint, None),
                Some(merge) => match self.merge(&unit, merge)? {
                    Merged::Made { checkpoint, state } => (
                        checkpoint,
                        Some(MergeOffer { state, flush: merge.flush, in_flight: merge.in_flight }),
                    ),
                    Merged::Refused(reason) => {
                        self.refuse(lease, &reason)?;
                        continue;
                    }
                },
            };
            self.apply(Command::OfferAssimilated {
                to: NOBODY,
                lease,
                version,
                checkpoint,
                merged,
            })?;
            if let Some(Answer::Offered(Offered::Taken)) = self.answer.take() {
                self.tell();
                self.measure(&unit, checkpoint)?;
            }
        }
    }

    fn refuse(&mut self, lease: LeaseId, reason: &str) -> Result<(), String> {
        let (reason, fault) = (reason.to_owned(), Fault::Host);
        self.apply(Command::OfferRejected { to: NOBODY, lease, reason, fault })
    }

    /// Looks at a version beside the fleet, where its job asks for that.
    fn measure(&mut self, of: &AssimilationUnit, checkpoint: BlobRef) -> Result<(), String> {
        let (hop, version) = (&of.hop, of.version);
        let (Some(trains), Some(job)) = (&mut self.trains, self.plan.job(hop.job)) else {
            return Ok(());
        };
        if !job.curve.is_some_and(|every| version.0.is_multiple_of(every)) {
            return Ok(());
        }
        let evaluation = Unit::Evaluate(Evaluation {
            job: hop.job,
            trial: hop.trial,
            epoch: hop.start.epoch,
            version,
            checkpoint,
            shards: job.data.valid.clone(),
            split: DataSplit::Valid,
            counting: job.spec.search.counting(&job.data.labels),
            context: Arc::clone(&hop.context),
        });
        let Outcome::Evaluated(evaluated) = trains.run(&evaluation, None)? else { return Ok(()) };
        let f1 = evaluated.by_class.as_ref().map(ByClass::macro_f1);
        let value = job.spec.search.metric.value(&evaluated.sums(), f1);
        let at = float(self.now - self.first_at.min(self.now)) / 1e6;
        let (job, trial, results) = (hop.job, hop.trial, version.0);
        self.curve.push(Point { at, job, trial, results, value });
        Ok(())
    }

    /// Why a result is refused, where what was really trained is looked at.
    fn screen(&mut self, unit: &AssimilationUnit) -> Result<Option<String>, String> {
        match &mut self.trains {
            Some(trains) if self.plan.is_trained(unit.hop.job) => trains.screen(unit),
            _ => Ok(None),
        }
    }

    fn merge(&mut self, unit: &AssimilationUnit, merge: &Merge) -> Result<Merged, String> {
        match &mut self.trains {
            Some(trains) if self.plan.is_trained(unit.hop.job) => trains.merge(unit, merge),
            _ => Ok(Merged::made_up(unit)),
        }
    }

    fn tell(&mut self) {
        if self.tally.assimilated.is_multiple_of(PROGRESS_EVERY) {
            let hops = self.plan.jobs.iter().map(SimJob::hops).sum();
            self.watch.progress(self.tally.assimilated, hops);
        }
    }

    /// Has the core take a command in, and carries out what it wants done.
    pub(super) fn apply(&mut self, command: Command) -> Result<(), String> {
        let (at, seed) = (UnixMillis(self.now / 1000), self.chance.next_u64());
        let before = self.watch.clock();
        let effects = self.core.apply(Envelope { at, seed, command });
        self.tally.in_core += self.watch.clock() - before;
        self.tally.commands += 1;
        self.answer = None;
        for effect in effects {
            self.carry_out(effect);
        }
        while let Some(blob) = self.deleted.pop() {
            self.apply(Command::Deleted { blob })?;
        }
        // A plan is made in no time: it is for the next instant as much as for this one.
        while let Some(plan) = self.planned.pop() {
            let answer = self.answer.take();
            self.apply(plan)?;
            self.answer = answer;
        }
        match self.check_every {
            Some(every) if self.tally.commands.is_multiple_of(every) => {
                self.core.check_invariants().map_err(|violation| violation.to_string())
            }
            _ => Ok(()),
        }
    }

    fn carry_out(&mut self, effect: Effect) {
        match effect {
            Effect::Persist(record) => self.decided(&record),
            Effect::Reply { to, answer, .. } => self.answered(to, answer.ok()),
            Effect::Assimilate => {
                if !std::mem::replace(&mut self.assimilating, true) {
                    self.queue.add(self.now + self.plan.assimilation, Event::Assimilate);
                }
            }
            Effect::Delete(blob) => self.deleted.push(blob),
            Effect::Plan { job, version, problem, seed, iterations } => {
                let before = self.watch.clock();
                let limit = self.plan.milp_limit;
                let schedule = self.policy.plan(&problem, seed, iterations, limit).map(Box::new);
                self.tally.planning += self.watch.clock() - before;
                self.tally.plans += 1;
                self.planned.push(Command::PlanReady { job, version, schedule });
            }
            // What was uploaded is nowhere.
            Effect::DropUpload(_) => {}
        }
    }

    fn decided(&mut self, record: &Record) {
        self.watch.record(record);
        match &record.event {
            Decided::LeaseGranted { .. } => self.tally.granted += 1,
            Decided::LeaseEnded { lease, .. }
            | Decided::Rejected { lease, .. }
            | Decided::UnitFailed { lease, .. } => {
                self.tally.loses(*lease);
            }
            Decided::Superseded { lease } => self.tally.is_superseded(*lease),
            Decided::TrialOrdered { order, .. } => {
                self.tally.order_switches += u64::from(*order != TrialOrder::Draining);
            }
            Decided::Evaluated { lease, epoch, valid, f1 } => {
                self.tally.evaluated += 1;
                self.tally.takes(*lease);
                self.scored(*lease, epoch.0, valid, *f1);
                self.count_ended();
            }
            // With one of these a job may have ended.
            Decided::TrialFailed { .. } => self.count_ended(),
            Decided::Assimilated { lease, merged, .. } => {
                self.tally.assimilated += 1;
                self.tally.takes(*lease);
                if let Some(merged) = merged {
                    self.tally.merges(merged.staleness);
                }
                self.count_ended();
            }
            _ => {}
        }
    }

    fn count_ended(&mut self) {
        let jobs = self.core.state().jobs.values();
        self.ended = jobs.filter(|job| job.end.is_some()).count();
    }

    /// Keeps the metric of what was really trained.
    fn scored(&mut self, lease: LeaseId, epoch: u32, valid: &Sums, f1: Option<f64>) {
        let state = self.core.state();
        let Some(unit) = state.past.get(&lease).map(|past| past.lease.unit) else { return };
        let (id, trial) = (unit.job(), unit.trial());
        let Some(job) = self.plan.job(id).filter(|job| job.is_trained) else { return };
        let value = job.spec.search.metric.value(valid, f1);
        let at = float(self.now - self.first_at.min(self.now)) / 1e6;
        self.scores.push(Score { at, job: id, trial, epoch, value });
    }

    fn answered(&mut self, to: ReplyTo, answer: Option<Box<Answer>>) {
        let Some(host) = (to.0 >> 32).checked_sub(1) else {
            self.answer = answer.map(|answer| *answer);
            return;
        };
        let host = usize::try_from(host).unwrap_or(usize::MAX);
        let Some(Answer::Work(answer)) = answer.map(|answer| *answer) else { return };
        let (now, every) = (self.now, self.plan.heartbeat);
        let Some(of) = self.hosts.get_mut(host).filter(|of| of.asked == Some(to)) else { return };
        let latency = of.latency(self.plan);
        if !answer.leases.is_empty() && !std::mem::replace(&mut of.beat_due, true) {
            let (host, boot) = (of.index, of.boot);
            self.queue.add(now + every, Event::Beat { host, boot });
        }
        if latency > 0 {
            let (host, boot) = (of.index, of.boot);
            self.queue.add(now + latency, Event::Heard { host, boot, answer });
        } else {
            self.with(host, |host, around| host.hear(*answer, around));
        }
    }
}

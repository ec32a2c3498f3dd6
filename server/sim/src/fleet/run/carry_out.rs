//! Commands that the core is given, and effects that it wants done.

use super::{NOBODY, Run};
use crate::fleet::{quantity::float, queue::Event, training::Score};
use rand_core::Rng as _;
use sojourn_client_core::{self as client, CallError};
use sojourn_core::{
    Answer, Command, Effect, Envelope, Event as Decided, MergeMode, Record, ReplyTo, UnitKey,
};
use sojourn_protocol::{
    error::{ApiError, error_chain},
    ids::LeaseId,
    quantity::to_usize,
    report::Sums,
    time::UnixMillis,
};

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
            Some(Ok(Answer::Submitted(_))) => self.submitted += 1,
            _ => return Err(format!("the job `{}` was refused", of.name)),
        }
        Ok(())
    }

    /// Has the core take a command in, and carries out what it wants done.
    pub(super) fn apply(&mut self, command: Command) -> Result<(), String> {
        let (at, seed) = (UnixMillis(self.now / 1000), self.chance.next_u64());
        self.tally.is_told(&command);
        let before = self.watch.clock();
        let effects = self.core.apply(Envelope { at, seed, command });
        let effects = effects.map_err(|fault| error_chain(&fault))?;
        self.tally.in_core += self.watch.clock() - before;
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
        let Some(every) = self.check_every else { return Ok(()) };
        self.liveness.check(&self.core, at)?;
        match self.tally.commands.is_multiple_of(every) {
            true => self.core.check_invariants().map_err(|violation| violation.to_string()),
            false => Ok(()),
        }
    }

    fn carry_out(&mut self, effect: Effect) {
        match effect {
            Effect::Persist(record) => self.decided(&record),
            Effect::Reply { to, answer, .. } => self.answered(to, answer),
            Effect::Assimilate => {
                // Whoever is at work looks again when that is done.
                if self.idle > 0 && !std::mem::replace(&mut self.woken, true) {
                    self.queue.add(self.now, Event::Assimilate);
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
        self.tally.events += 1;
        match &record.event {
            Decided::LeaseGranted { .. } => self.tally.granted += 1,
            Decided::LeaseEnded { lease, .. }
            | Decided::Rejected { lease, .. }
            | Decided::UnitFailed { lease, .. } => {
                self.tally.loses(*lease);
            }
            Decided::Superseded { lease } => self.tally.is_superseded(*lease),
            Decided::TrialOrdered { order, .. } => {
                self.tally.order_switches += u64::from(*order != MergeMode::Draining);
            }
            Decided::Evaluated { lease, epoch, valid, f1, own: _ } => {
                self.tally.evaluated += 1;
                self.tally.takes(*lease);
                self.scored(*lease, epoch.0, valid, *f1);
                self.count_ended();
            }
            Decided::ExtraEvaluated { lease, .. } => {
                self.tally.takes(*lease);
                self.count_ended();
            }
            // With one of these a job may have ended.
            Decided::TrialFailed { .. }
            | Decided::ExtraFailed { .. }
            | Decided::JobCancelled { .. } => self.count_ended(),
            Decided::Assimilated { lease, merged, .. } => {
                self.tally.assimilated += 1;
                self.tally.takes(*lease);
                self.is_taken(*lease);
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

    /// A hop's result was taken: if it is the last of its epoch, then the epoch ends now.
    fn is_taken(&mut self, lease: LeaseId) {
        let Some(past) = self.core.state().past.get(&lease) else { return };
        if let UnitKey::Train { job, epoch, .. } = past.lease.unit {
            self.epoch_ends.insert((job, epoch), self.now);
        }
    }

    /// Keeps the metric of what was really trained, or of what a surrogate stands for.
    fn scored(&mut self, lease: LeaseId, epoch: u32, valid: &Sums, f1: Option<f64>) {
        let state = self.core.state();
        let Some(unit) = state.past.get(&lease).map(|past| past.lease.unit) else { return };
        let (id, trial) = (unit.job(), unit.trial());
        let Some(job) = self.plan.job(id).filter(|job| job.has_metrics()) else { return };
        let value = job.spec.search.value(valid, f1, &[].into());
        let at = float(self.now - self.first_at.min(self.now)) / 1e6;
        self.scores.push(Score { at, job: id, trial, epoch, value });
    }

    fn answered(&mut self, to: ReplyTo, answer: Result<Box<Answer>, ApiError>) {
        let Some(host) = (to.0 >> 32).checked_sub(1) else {
            self.answer = Some(answer.map(|answer| *answer));
            return;
        };
        let index = to_usize(host);
        let Some(ask) = self.hosts.get_mut(index).and_then(|host| host.answered(to)) else {
            return;
        };
        let answer = match answer.map(|answer| *answer) {
            Ok(Answer::Work(answer)) => Ok(*answer),
            Ok(_) | Err(_) => Err(CallError::default()),
        };
        self.with(index, |host, around| host.hears(client::Event::Work(ask, answer), around));
    }
}

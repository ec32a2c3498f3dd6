//! The ledger: the one way in which events are decided and effects are requested.
//!
//! ```text
//!   handler --record(event)--> Folded::fold --changes--> index, provisional leases, plans, wake-ups
//!                                   '------> Output: Persist(record), and the effects of the handler
//! ```

use crate::{
    clock::Clock,
    effect::{Answer, Effect},
    fault::CoreFault,
    figures::Totals,
    quotas::QuotaBook,
};
use sojourn_protocol::{error::ApiError, time::Millis};
use sojourn_scheduling::{
    config::CoreConfig,
    index::DerivedIndex,
    leases::{Leases, ProvisionalLease},
    schedule::Planner,
    waiters::{ReplyTo, Waiters, Wake},
};
use sojourn_state::{Change, Event, Folded, Job, JournalPosition, Record, ResultEnd};

/// The pause between two looks for hops that are worth a second lease.
pub(crate) const SPECULATION_INTERVAL: Millis = Millis::from_secs(1);
/// A part of a hop with fewer batches says nothing of a device's speed.
pub(crate) const MIN_MEASURED_BATCHES: u64 = 8;

/// The effects of the step under way.
#[derive(Debug, Default)]
pub(crate) struct Output {
    effects: Vec<Effect>,
}

impl Output {
    /// Takes the effects out.
    pub(crate) fn take(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.effects)
    }

    /// Asks for an effect.
    pub(crate) fn push(&mut self, effect: Effect) {
        self.effects.push(effect);
    }
}

/// The durable state with what is derived from it. Every handler holds one.
pub(crate) struct Ledger<'a> {
    pub(crate) clock: &'a Clock,
    pub(crate) config: &'a CoreConfig,
    pub(crate) state: &'a mut Folded,
    pub(crate) index: &'a mut DerivedIndex,
    pub(crate) leases: &'a mut Leases,
    pub(crate) planner: &'a mut Planner,
    pub(crate) waiters: &'a mut Waiters,
    pub(crate) totals: &'a mut Totals,
    pub(crate) output: &'a mut Output,
}

impl Ledger<'_> {
    /// Decides an event: folds it into the state, updates what is derived, and has it journalled.
    pub(crate) fn record(&mut self, event: Event) -> Result<(), CoreFault> {
        self.record_with(event, None)
    }

    /// The same of a job's submission, with the job as it was made before.
    pub(crate) fn record_submitted(
        &mut self,
        event: Event,
        made: Box<Job>,
    ) -> Result<(), CoreFault> {
        self.record_with(event, Some(made))
    }

    fn record_with(&mut self, event: Event, made: Option<Box<Job>>) -> Result<(), CoreFault> {
        let position = JournalPosition(self.state.position.0 + 1);
        let record = Record { position, at: self.clock.now(), event };
        let changes = match made {
            Some(made) => self.state.fold_submitted(&record, made)?,
            None => self.state.fold(&record)?,
        };
        for change in changes.iter() {
            self.apply(change);
            self.totals.count(change, self.state);
            self.waiters.take_note(change);
            self.withdraw_provisional(change);
        }
        self.output.push(Effect::Persist(record));
        Ok(())
    }

    /// The quotas of users' tokens, and what is used of them.
    pub(crate) fn quotas(&self) -> QuotaBook<'_> {
        let (state, index, config) = (&**self.state, &*self.index, self.config);
        QuotaBook { state, index, config, now: self.clock.now() }
    }

    /// Hosts wait, or a hop has been granted: speculative leases may be worth while.
    pub(crate) fn consider_speculation(&mut self) {
        if self.config.most_copied > 0 && !self.state.leases.is_empty() {
            let next = self.planner.last_speculation() + SPECULATION_INTERVAL;
            self.planner.speculate_at(self.clock.now().max(next));
        }
    }

    /// Estimates were measured: where they have changed by much, the remaining work of all trials is another, and plans are.
    pub(crate) fn take_in_estimates(&mut self) {
        let now = self.clock.now();
        let estimates = self.planner.estimates_mut();
        if estimates.have_changed() {
            self.index.update_all(self.state, estimates, now);
            self.planner.misjudged_plans();
        }
    }

    /// Has the shell do something, in the order of the step's effects.
    pub(crate) fn effect(&mut self, effect: Effect) {
        self.output.push(effect);
    }

    /// Answers, once everything so far is durable.
    pub(crate) fn reply(&mut self, to: ReplyTo, answer: Result<Answer, ApiError>) {
        let after = self.state.position;
        self.output.push(Effect::Reply { to, after, answer: answer.map(Box::new) });
    }

    /// The same for a shorter time, to be passed on.
    pub(crate) fn reborrow(&mut self) -> Ledger<'_> {
        Ledger {
            clock: self.clock,
            config: self.config,
            state: self.state,
            index: self.index,
            leases: self.leases,
            planner: self.planner,
            waiters: self.waiters,
            totals: self.totals,
            output: self.output,
        }
    }

    /// Updates what is derived from the state.
    fn apply(&mut self, change: Change) {
        let now = self.clock.now();
        match change {
            Change::Work { job, trial: None, .. } => {
                self.index.stopping_rules_mut().job_changed(job);
                let estimates = self.planner.estimates_mut();
                match self.state.jobs.get(&job) {
                    Some(job) => self.index.update_job(job, estimates, now),
                    None => estimates.forget_job(job),
                }
            }
            Change::Work { job, trial: Some(trial), .. } => {
                self.index.stopping_rules_mut().trial_changed(job, trial);
                self.index.owners_mut().job_changed(job, self.state.jobs.get(&job));
                if let Some(trial) = self.state.trial(job, trial) {
                    self.index.update_trial(job, trial, self.planner.estimates(), now);
                }
            }
            Change::WallTime => self.index.update_wall_time(self.state),
            Change::Job(job) => {
                self.index.job_changed(job, self.state.jobs.get(&job));
            }
            Change::Runnable(_)
            | Change::LeaseGranted(_)
            | Change::LeaseEnded { .. }
            | Change::Reported(_)
            | Change::ResultSettled { .. }
            | Change::NothingFollows(_) => {}
        }
    }

    /// Withdraws provisional leases whose result before them won't be taken in.
    fn withdraw_provisional(&mut self, change: Change) {
        let provisional = self.leases.provisional_mut();
        let withdrawn = match change {
            Change::LeaseEnded { lease, .. } => provisional.take_after(lease).into_iter().collect(),
            Change::ResultSettled { lease, end } => match end {
                ResultEnd::Taken => Vec::new(),
                ResultEnd::Rejected
                | ResultEnd::Lost
                | ResultEnd::Superseded
                | ResultEnd::Failed => provisional.take_after(lease).into_iter().collect(),
            },
            Change::NothingFollows(job) => provisional.take_of(job),
            Change::Work { .. }
            | Change::Runnable(_)
            | Change::LeaseGranted(_)
            | Change::Reported(_)
            | Change::Job(_)
            | Change::WallTime => Vec::new(),
        };
        for lease in withdrawn {
            self.withdrawn(&lease);
        }
    }

    /// A provisional lease isn't granted: its host is to hear so, and its hops go to somebody else.
    pub(crate) fn withdrawn(&mut self, provisional: &ProvisionalLease) {
        self.waiters.wake(Wake::Host(provisional.lease.host));
        self.planner.outdate_plan(provisional.lease.unit.job());
    }
}

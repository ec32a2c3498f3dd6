//! Which unit a slot gets: jobs in the order of their fair shares, hops by the policy, evaluations where they fit.

use super::{
    assignment::{Assignment, Pick},
    budgets::price_of_slot,
    deferred::Deferred,
    depth::Depth,
    evaluations::Evaluations,
    hops::HopPick,
    priority::Priorities,
    scheduler::Scheduler,
    verifiers::Verifiers,
};
use crate::hosts::DeviceRef;
use rand_chacha::ChaCha8Rng;
use sojourn_protocol::{
    ids::{HostId, JobId},
    money::MicroUsd,
    quantity::Micros,
    time::Millis,
};
use sojourn_state::Job;

impl<'a> Scheduler<'a> {
    /// Can anything be assigned to a host: a unit that is open, or one that a plan has it go on with?
    pub fn has_work_for(&self, host: HostId) -> bool {
        !self.hosts.is_cooling_down(host, self.now)
            && (self.state.supply() > 0
                || self.planner.has_stragglers()
                || self.planner.plans().any(|(_, plan)| plan.is_followed()))
    }

    /// The unit that a slot gets, or what it goes on with when it has ended its own: of a job of a priority above
    /// `above`, where one is given. It decides and changes nothing.
    pub fn pick(&self, at: DeviceRef<'_>, above: Option<i32>, rng: &mut ChaCha8Rng) -> Pick {
        let priorities = Priorities::of(self);
        let mut deferred = Deferred::default();
        // Those that come first and have nothing for the slot as it is.
        let mut passed_over: Vec<&Job> = Vec::new();
        let mut jobs = self.by_fair_share().into_iter().filter(|job| {
            above.is_none_or(|above| job.spec.placement.priority > above)
                && self.state.lost_data(job).is_none()
                && self.state.admits_host(job, at.host)
                && self.affords(job.id, at, 0)
        });
        let assignment = jobs.find_map(|job| {
            let Some(assignment) = self.pick_of(job, at, rng, &mut deferred) else {
                passed_over.push(job);
                return None;
            };
            if !self.affords(job.id, at, priorities.time_of(&assignment, at)) {
                return None;
            }
            let free_for = priorities.free_for(job.spec.placement.priority, at, deferred.expected);
            match free_for.filter(|micros| priorities.time_of(&assignment, at) > *micros) {
                Some(micros) => {
                    deferred.wait(micros);
                    None
                }
                None => Some(assignment),
            }
        });
        let is_left = at.ahead
            && assignment.is_some()
            && passed_over.into_iter().any(|job| self.waits_for_idle_slot(job, at, rng));
        match (assignment.filter(|_| !is_left), deferred.wait) {
            (Some(assignment), _) => Pick::Assign(Box::new(assignment), deferred.evaluations),
            (None, Some(micros)) => Pick::Defer {
                until: self.now + Millis(micros.div_ceil(1000).max(1)),
                evaluations: deferred.evaluations,
            },
            (None, None) => Pick::Nothing,
        }
    }

    /// The unit of a job that a slot gets.
    fn pick_of(
        &self,
        job: &Job,
        at: DeviceRef<'_>,
        rng: &mut ChaCha8Rng,
        deferred: &mut Deferred,
    ) -> Option<Assignment> {
        let (evaluations, verifiers) = (Evaluations::of(self), Verifiers::of(&self.eligible));
        let requested = evaluations.requested_evaluation_for(job, at, deferred);
        if requested.is_some() {
            return requested;
        }
        if !job.is_running() {
            return verifiers.verification_for(job, at);
        }
        if let Some(Micros(delay)) = self.local.grant_delay(job, at) {
            deferred.wait(delay);
            return None;
        }
        if let Some(first) =
            verifiers.verification_for(job, at).or_else(|| evaluations.backlog_for(job, at))
        {
            return Some(first);
        }
        if let Some(second) = self.second_lease_for(job, at) {
            return Some(second);
        }
        if let Some(micros) = Depth::of(self).keeps_slot_for(job, at) {
            deferred.wait(micros);
            return None;
        }
        if let Some(first) = evaluations.own_evaluation_for(job, at) {
            return Some(first);
        }
        match self.hop_for(job, at, rng) {
            HopPick::Assign(assignment) => return Some(*assignment),
            HopPick::Defer(micros) => deferred.wait(micros),
            HopPick::Expect(micros) => deferred.expect(job.spec.placement.priority, micros),
            HopPick::Nothing => {}
        }
        evaluations.evaluation_for(job, at, deferred)
    }

    /// Has a job a unit for a busy slot that it gets once the slot is idle, and not before: one that verifies a result, one of a
    /// job in depth, or one whose result is merged? Where others had theirs wait in the slot, it would never be idle.
    fn waits_for_idle_slot(&self, job: &Job, at: DeviceRef<'_>, rng: &ChaCha8Rng) -> bool {
        if job.supply() == 0 {
            return false;
        }
        let idle = DeviceRef { ahead: false, ..at };
        let picked = self.pick_of(job, idle, &mut rng.clone(), &mut Deferred::default());
        picked.is_some_and(|unit| {
            self.affords(job.id, idle, Priorities::of(self).time_of(&unit, idle))
        })
    }

    /// May a unit of the job be trained there, as far as its budget goes, if it takes so many microseconds?
    fn affords(&self, job: JobId, at: DeviceRef<'_>, micros: u64) -> bool {
        let Some(left) = self.planner.budgets().left(job) else { return true };
        let slots = self.hosts.session(at.host).map_or(1, |session| session.slots);
        let Some(price) = price_of_slot(self.state, slots, at.host) else { return true };
        left > MicroUsd(0) && price.for_time(Millis(micros / 1000)) <= left
    }
}

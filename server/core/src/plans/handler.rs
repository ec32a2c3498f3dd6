//! Plans: when one is requested, and what happens when it is ready or a lease was granted.

use crate::{effect::Effect, ledger::Ledger};
use rand_chacha::ChaCha8Rng;
use sojourn_protocol::{ids::JobId, seeds};
use sojourn_scheduling::{
    data::DataPlacement,
    hosts::Hosts,
    schedule::{PLAN_INTERVAL, PlanProblems, PlanRequest, PlannedHop, Scheduler},
    waiters::Wake,
};
use sojourn_state::Job;
use sojourn_workgen::{Policy, plan::Schedule};

/// Forward simulations for one plan, times its hops.
const PLANNING_EFFORT: u64 = 1 << 17;
/// The fewest forward simulations for one plan.
const MIN_ITERATIONS: u64 = 16;
/// The most forward simulations for one plan.
const MAX_ITERATIONS: u64 = 4_000;

/// Requests plans, and takes them in.
pub(crate) struct PlanHandler<'a> {
    pub(crate) ledger: Ledger<'a>,
    pub(crate) hosts: &'a Hosts,
    pub(crate) data: &'a DataPlacement,
    pub(crate) policy: &'a dyn Policy,
    pub(crate) rng: &'a mut ChaCha8Rng,
}

impl PlanHandler<'_> {
    fn scheduler(&self) -> Scheduler<'_> {
        self.ledger.scheduler(self.hosts, self.data, self.policy)
    }

    /// Requests the plans that are due.
    pub(crate) fn request_due(&mut self) {
        if !self.ledger.config.policy.plans() {
            return;
        }
        let Ledger { clock, state, index, planner, .. } = &mut self.ledger;
        let is_open = |job: &JobId| state.jobs.get(job).is_some_and(Job::is_open);
        planner.set_active_jobs(|| index.jobs().filter(|job| is_open(job)));
        let fleet = self.hosts.fleet().version() + planner.sharing_version();
        let mut due = Vec::new();
        for job in index.jobs() {
            let plan = planner.plan_entry(job);
            plan.for_fleet(fleet);
            if plan.is_due(clock.now(), PLAN_INTERVAL) {
                due.push(job);
            }
        }
        // Each job that has work has a plan by now: any others have none.
        if planner.plan_count() > index.job_count() {
            planner.keep_plans(|job| index.has_work(job));
        }
        for job in due {
            self.request(job);
        }
    }

    fn request(&mut self, job: JobId) {
        if !self.scheduler().can_be_planned(job) {
            return;
        }
        let known = self.ledger.state.jobs.get(&job);
        let problem = known.and_then(|job| PlanProblems::of(&self.scheduler()).plan_problem(job));
        let seed = u64::from(seeds::below(self.rng, u32::MAX));
        let fleet = self.hosts.fleet().version() + self.ledger.planner.sharing_version();
        let Some(plan) = self.ledger.planner.plan_mut(job) else { return };
        let Some((problem, request)) = problem else {
            // There will be none for this fleet.
            let version = plan.request(PlanRequest::empty(self.ledger.clock.now(), fleet));
            plan.ready(version, &Schedule::default(), self.ledger.clock.now(), |_| true);
            return;
        };
        let iterations = PLANNING_EFFORT / problem.hops().max(1);
        let iterations = iterations.clamp(MIN_ITERATIONS, MAX_ITERATIONS);
        let version = plan.request(request);
        let problem = Box::new(problem);
        self.ledger.planner.plan_requested();
        self.ledger.effect(Effect::Plan { job, version, problem, seed, iterations });
    }

    /// A plan is ready: it is followed, if it is the one that was requested last and better than the one before.
    pub(crate) fn ready(&mut self, job: JobId, version: u64, schedule: &Schedule) {
        let Some(mut plan) = self.ledger.planner.take_plan(job) else {
            self.ledger.planner.plan_ready(false);
            return;
        };
        let is_first = !plan.is_followed();
        let scheduler = self.scheduler();
        let known = scheduler.state.jobs.get(&job);
        let is_over =
            |hop: &PlannedHop| known.is_none_or(|known| scheduler.is_planned_hop_over(known, hop));
        let is_taken = plan.ready(version, schedule, scheduler.now, is_over);
        self.ledger.planner.plan_ready(is_taken);
        self.ledger.planner.put_plan(job, plan);
        if is_taken {
            let scheduler = self.scheduler();
            let known = scheduler.state.jobs.get(&job);
            if known.is_some_and(|known| scheduler.is_planned_in_other_class(known)) {
                self.ledger.planner.outdate_plan(job);
            }
            self.ledger.waiters.wake(Wake::All);
            if is_first {
                // The other jobs were planned as if this one had nothing to do.
                self.ledger.planner.outdate_plans_but(Some(job));
            }
        }
    }
}

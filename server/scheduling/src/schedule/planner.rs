//! The soft state behind the choice of units: estimates, plans, fair shares, the time of the next speculation.

use super::{budgets::Budgets, job_plan::JobPlan, owner_slot_shares::OwnerSlotShares};
use crate::{
    cost::{Estimates, PreferredClasses},
    memo::Memo,
};
use sojourn_protocol::{
    ids::{HostId, JobId, LeaseId},
    time::UnixMillis,
};
use sojourn_state::State;
use std::collections::{BTreeMap, BTreeSet};

/// Plans since the core began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PlanCounts {
    /// Plans that were requested.
    pub requested: u64,
    /// Made, and followed from then on.
    pub followed: u64,
    /// Made, and of no use: a newer one was requested, or the one before is as good.
    pub dropped: u64,
}

/// All of it. It is soft state: after a start it comes back by itself.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Planner {
    /// How long units take.
    estimates: Estimates,
    /// The numeric classes that jobs prefer.
    preferred: PreferredClasses,
    /// Plans, by job.
    plans: BTreeMap<JobId, JobPlan>,
    /// Jobs that have something to train, and how often others had before.
    active_jobs: (Vec<JobId>, u64),
    /// Slot time that each owner and each job was given, by priority.
    slot_shares: BTreeMap<i32, OwnerSlotShares>,
    /// When to look whether speculative leases are worth while.
    next_speculation: Option<UnixMillis>,
    /// When that was done last.
    last_speculation: UnixMillis,
    /// The lease by which its job would end later, as of that time.
    stragglers: BTreeMap<JobId, LeaseId>,
    /// The fleet and the number of trials for which merge modes were chosen.
    merge_modes: Memo<(u64, usize)>,
    /// The amounts that jobs may still spend.
    budgets: Budgets,
    /// Plans so far.
    counts: PlanCounts,
}

impl Planner {
    /// How long units take.
    pub fn estimates(&self) -> &Estimates {
        &self.estimates
    }

    /// The same, to take measurements in.
    pub fn estimates_mut(&mut self) -> &mut Estimates {
        &mut self.estimates
    }

    /// The numeric classes that jobs prefer.
    pub fn preferred(&self) -> &PreferredClasses {
        &self.preferred
    }

    /// The same, to choose them.
    pub fn preferred_mut(&mut self) -> &mut PreferredClasses {
        &mut self.preferred
    }

    /// The amounts that jobs may still spend.
    pub fn budgets(&self) -> &Budgets {
        &self.budgets
    }

    /// The same, to count it anew.
    pub fn budgets_mut(&mut self) -> &mut Budgets {
        &mut self.budgets
    }

    /// Plans so far.
    pub fn counts(&self) -> PlanCounts {
        self.counts
    }

    /// A plan was requested.
    pub fn plan_requested(&mut self) {
        self.counts.requested += 1;
    }

    /// A requested plan is ready. `is_taken`: it is followed from now on.
    pub fn plan_ready(&mut self, is_taken: bool) {
        let count = if is_taken { &mut self.counts.followed } else { &mut self.counts.dropped };
        *count += 1;
    }

    /// Forgets what was measured on hosts.
    pub fn forget_hosts(&mut self, hosts: &BTreeSet<HostId>) {
        self.estimates.forget(hosts);
    }

    /// A job's plan.
    pub fn plan(&self, job: JobId) -> Option<&JobPlan> {
        self.plans.get(&job)
    }

    /// The same, to change it.
    pub fn plan_mut(&mut self, job: JobId) -> Option<&mut JobPlan> {
        self.plans.get_mut(&job)
    }

    /// The plans of all jobs.
    pub fn plans(&self) -> impl Iterator<Item = (JobId, &JobPlan)> {
        self.plans.iter().map(|(job, plan)| (*job, plan))
    }

    /// How many jobs have a plan, or wait for their first one.
    pub fn plan_count(&self) -> usize {
        self.plans.len()
    }

    /// Forgets a job's plan.
    pub fn forget_plan(&mut self, job: JobId) {
        self.plans.remove(&job);
    }

    /// Takes a job's plan out, to be put back.
    pub fn take_plan(&mut self, job: JobId) -> Option<JobPlan> {
        self.plans.remove(&job)
    }

    /// Puts a job's plan back.
    pub fn put_plan(&mut self, job: JobId, plan: JobPlan) {
        self.plans.insert(job, plan);
    }

    /// Forgets the plans of jobs that have nothing left to train.
    pub fn keep_plans(&mut self, has_work: impl Fn(JobId) -> bool) {
        self.plans.retain(|job, _| has_work(*job));
    }

    /// The plan of a job that has something to train.
    pub fn plan_entry(&mut self, job: JobId) -> &mut JobPlan {
        self.plans.entry(job).or_default()
    }

    /// The plan of a job doesn't fit any more: what it counted on has not happened.
    pub fn outdate_plan(&mut self, job: JobId) {
        if let Some(plan) = self.plans.get_mut(&job) {
            plan.outdate();
        }
    }

    /// A lease of a job was lost: its plan doesn't fit any more.
    pub fn plan_overtaken(&mut self, job: JobId, now: UnixMillis) {
        if let Some(plan) = self.plans.get_mut(&job) {
            plan.overtaken(now);
        }
    }

    /// No plan fits any more, but perhaps this one.
    pub fn outdate_plans_but(&mut self, kept: Option<JobId>) {
        let others = self.plans.iter_mut().filter(|(job, _)| kept != Some(**job));
        others.for_each(|(_, plan)| plan.outdate());
    }

    /// The times that plans rest on were far from what was measured.
    pub fn misjudged_plans(&mut self) {
        self.plans.values_mut().for_each(JobPlan::misjudged);
    }

    /// A device is idle that wasn't: plans may go on there.
    pub fn resume_plans(&mut self) {
        self.plans.values_mut().for_each(JobPlan::resume);
    }

    /// Does a plan say who trains which of a job's trials?
    pub fn pins_trials(&self, job: JobId) -> bool {
        self.plan(job).is_some_and(JobPlan::pins_trials)
    }

    /// Does a plan say where each hop of a job is trained, one after the other?
    pub fn orders_hops(&self, job: JobId) -> bool {
        self.plan(job).is_some_and(|plan| plan.is_followed() && !plan.pins_trials())
    }

    /// Jobs that share the fleet.
    pub fn active_jobs(&self) -> &[JobId] {
        &self.active_jobs.0
    }

    /// These jobs share the fleet from now on.
    pub fn set_active_jobs<I: Iterator<Item = JobId>>(&mut self, jobs: impl Fn() -> I) {
        if !jobs().eq(self.active_jobs.0.iter().copied()) {
            self.active_jobs = (jobs().collect(), self.active_jobs.1 + 1);
        }
    }

    /// How often other jobs have come to share the fleet: what was planned for others is stale.
    pub fn sharing_version(&self) -> u64 {
        self.active_jobs.1
    }

    /// Slot time of the jobs of a priority, if one of them was given some.
    pub fn slot_shares(&self, priority: i32) -> Option<&OwnerSlotShares> {
        self.slot_shares.get(&priority)
    }

    /// The same, to count slot time.
    pub fn slot_shares_mut(&mut self, priority: i32) -> &mut OwnerSlotShares {
        self.slot_shares.entry(priority).or_default()
    }

    /// Forgets the slot time of jobs that don't run any more, and of owners without others.
    pub fn keep_slot_shares(&mut self, state: &State) {
        self.slot_shares.values_mut().for_each(|slot_shares| slot_shares.keep(state));
    }

    /// When to look whether speculative leases are worth while.
    pub fn next_speculation(&self) -> Option<UnixMillis> {
        self.next_speculation
    }

    /// When that was done last.
    pub fn last_speculation(&self) -> UnixMillis {
        self.last_speculation
    }

    /// Has it looked at then, or sooner where that was decided before.
    pub fn speculate_at(&mut self, at: UnixMillis) {
        self.next_speculation = Some(self.next_speculation.map_or(at, |before| before.min(at)));
    }

    /// Is it the time to look? Then it counts as done.
    pub fn begin_speculation(&mut self, now: UnixMillis) -> bool {
        let due = self.next_speculation.is_some_and(|at| at <= now);
        if due {
            self.next_speculation = None;
            self.last_speculation = now;
        }
        due
    }

    /// The lease by which a job would end later, as of the last look.
    pub fn straggler(&self, job: JobId) -> Option<LeaseId> {
        self.stragglers.get(&job).copied()
    }

    /// Are there such leases of any job?
    pub fn has_stragglers(&self) -> bool {
        !self.stragglers.is_empty()
    }

    /// These are the leases by which jobs would end later.
    pub fn set_stragglers(&mut self, stragglers: BTreeMap<JobId, LeaseId>) {
        self.stragglers = stragglers;
    }

    /// The fleet and the number of trials for which merge modes were chosen.
    pub fn merge_modes(&mut self) -> &mut Memo<(u64, usize)> {
        &mut self.merge_modes
    }
}

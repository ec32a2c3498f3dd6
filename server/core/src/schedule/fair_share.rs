//! The order in which jobs are served: higher priority first, jobs of one priority in fair shares of slot time.

use super::{planner::Planner, scheduler::Scheduler, shares::FairShares};
use crate::state::{Job, Lease, State};
use sojourn_protocol::{
    ids::{JobId, LeaseId},
    time::UnixMillis,
};
use std::cmp::Reverse;

impl<'a> Scheduler<'a> {
    /// Jobs that may have units, in the order in which the next slot is offered to them.
    pub(crate) fn by_fair_share(&self) -> Vec<&'a Job> {
        let open = self.state.jobs.values().filter(|job| job.is_open() || job.has_open_extras());
        let mut jobs: Vec<&Job> = open.collect();
        jobs.sort_by_key(|job| {
            let priority = job.spec.placement.priority;
            let tag = self.planner.shares(priority).map_or(0, |shares| shares.tag(job.id));
            (Reverse(priority), tag, job.id)
        });
        jobs
    }
}

impl Planner {
    /// A lease is granted to a job, for about so many microseconds of a slot.
    pub(crate) fn charge(&mut self, state: &State, job: JobId, lease: LeaseId, micros: u64) {
        let micros = weighted(state, job, micros);
        self.shares_of(state, job).give(job, lease, micros);
    }

    /// A lease has ended; its unit took so many microseconds of a slot.
    pub(crate) fn settle(&mut self, state: &State, lease: &Lease, micros: u64) {
        let job = lease.unit.job();
        let micros = weighted(state, job, micros);
        self.shares_of(state, job).settle(job, lease.id, micros);
    }

    /// A lease ends without anything that can be used. It counts for no longer than it was held, nor for more than it
    /// was expected to take: the loss isn't the job's doing.
    pub(crate) fn settle_held(&mut self, state: &State, lease: &Lease, now: UnixMillis) {
        let job = lease.unit.job();
        let held = (now - lease.granted_at).0.saturating_mul(1000);
        let held = weighted(state, job, held);
        let shares = self.shares_of(state, job);
        let counted = shares.counted(lease.id);
        shares.settle(job, lease.id, held.min(counted));
    }

    /// A job gets a slot. Those that came before it in the order could not use the slot.
    pub(crate) fn pass_over_before(&mut self, state: &State, chosen: JobId) {
        let priority = state.priority(chosen);
        let shares = self.shares_mut(priority);
        let tag = shares.tag(chosen);
        for job in state.jobs.values() {
            let open = job.is_open() || job.has_open_extras();
            if open && job.spec.placement.priority == priority && shares.tag(job.id) < tag {
                shares.pass_over(job.id, tag, job.supply() > 0);
            }
        }
    }

    /// A job that stood still goes on: it isn't owed what others got meanwhile.
    pub(crate) fn enter(&mut self, state: &State, job: JobId) {
        self.shares_of(state, job).enter(job);
    }

    /// A job may have left this priority for another one, with its live leases.
    pub(crate) fn change_priority(&mut self, state: &State, job: JobId, before: i32) {
        if state.priority(job) != before {
            let leases = state.leases.values().filter(|lease| lease.unit.job() == job);
            self.shares_mut(before).leave(job, leases.map(|lease| lease.id));
            self.enter(state, job);
        }
    }

    /// Slot time of jobs of the same priority as this one.
    fn shares_of(&mut self, state: &State, job: JobId) -> &mut FairShares {
        self.shares_mut(state.priority(job))
    }
}

/// Slot time as it counts for a job: half for one that has twice the share of others.
fn weighted(state: &State, job: JobId, micros: u64) -> u64 {
    let share = state.jobs.get(&job).map_or(1, |job| job.spec.placement.share);
    micros / u64::from(share.max(1))
}

//! The order in which jobs are served: higher priority first; of one priority owners in fair shares of slot time, and of each owner
//! its jobs.

use super::{
    owner_slot_shares::{Owner, OwnerSlotShares, SlotShareholder, owner_of},
    planner::Planner,
    scheduler::Scheduler,
};
use sojourn_protocol::{
    ids::{JobId, LeaseId},
    time::UnixMillis,
};
use sojourn_state::{Job, Lease, State};
use std::{cmp::Reverse, collections::BTreeMap};

impl<'a> Scheduler<'a> {
    /// Jobs that may have units, in the order in which the next slot is offered to them.
    pub fn by_fair_share(&self) -> Vec<&'a Job> {
        let mut jobs: Vec<&Job> = self.state.jobs.values().filter(|job| is_open(job)).collect();
        jobs.sort_by_cached_key(|job| {
            let (priority, owner) = (job.spec.placement.priority, owner_of(job));
            let slot_shares = self.planner.slot_shares(priority);
            let owner_tag = slot_shares.map_or(0, |slot_shares| slot_shares.owner_tag(owner));
            let tag = slot_shares.map_or(0, |slot_shares| slot_shares.job_tag(owner, job.id));
            (Reverse(priority), owner_tag, owner, tag, job.id)
        });
        jobs
    }
}

/// Has a job units to hand out, now or later?
fn is_open(job: &Job) -> bool {
    job.is_open() || job.has_open_extras()
}

impl Planner {
    /// A lease is granted to a job, for about so many microseconds of a slot.
    pub fn charge(&mut self, state: &State, job: JobId, lease: LeaseId, micros: u64) {
        self.slot_shares_of(state, job).give(SlotShareholder::of(state, job), lease, micros);
    }

    /// A lease has ended; its unit took so many microseconds of a slot.
    pub fn settle(&mut self, state: &State, lease: &Lease, micros: u64) {
        let job = lease.unit.job();
        self.slot_shares_of(state, job).settle(SlotShareholder::of(state, job), lease.id, micros);
    }

    /// A lease ends without anything that can be used. It counts for no longer than it was held, nor for more than it
    /// was expected to take: the loss isn't the job's doing.
    pub fn settle_held(&mut self, state: &State, lease: &Lease, now: UnixMillis) {
        let job = lease.unit.job();
        let held = (now - lease.granted_at).0.saturating_mul(1000);
        self.slot_shares_of(state, job).settle_held(
            SlotShareholder::of(state, job),
            lease.id,
            held,
        );
    }

    /// A job gets a slot. Those that came before it in the order could not use the slot.
    pub fn pass_over_before(&mut self, state: &State, chosen: JobId) {
        let priority = state.priority(chosen);
        let owner = state.jobs.get(&chosen).and_then(owner_of);
        let slot_shares = self.slot_shares_mut(priority);
        let (tag, owner_tag) = (slot_shares.job_tag(owner, chosen), slot_shares.owner_tag(owner));
        // Other owners that came before, and whether one of their jobs has units.
        let mut owners: BTreeMap<Owner, bool> = BTreeMap::new();
        let open = state.jobs.values().filter(|job| is_open(job));
        for job in open.filter(|job| job.spec.placement.priority == priority) {
            let other = owner_of(job);
            if other == owner {
                if slot_shares.job_tag(owner, job.id) < tag {
                    slot_shares.pass_over_job(owner, job.id, tag, job.supply() > 0);
                }
            } else if slot_shares.owner_tag(other) < owner_tag {
                let has_units = owners.entry(other).or_default();
                *has_units = *has_units || job.supply() > 0;
            }
        }
        for (other, has_units) in owners {
            slot_shares.pass_over_owner(other, owner_tag, has_units);
        }
    }

    /// A job that stood still goes on: it isn't owed what others got meanwhile.
    pub fn enter(&mut self, state: &State, job: JobId) {
        self.slot_shares_of(state, job).enter_job(SlotShareholder::of(state, job));
        self.enter_owner(state, job);
    }

    /// A job is there from now on. Where its owner had no other of its priority, the owner isn't owed what others got meanwhile.
    pub fn enter_owner(&mut self, state: &State, job: JobId) {
        let Some(known) = state.jobs.get(&job) else { return };
        let (owner, priority) = (owner_of(known), known.spec.placement.priority);
        let is_beside = |other: &Job| {
            other.id != job
                && owner_of(other) == owner
                && other.spec.placement.priority == priority
                && is_open(other)
        };
        if !state.jobs.values().any(is_beside) {
            self.slot_shares_mut(priority).enter_owner(owner);
        }
    }

    /// A job may have left this priority for another one, with its live leases.
    pub fn change_priority(&mut self, state: &State, job: JobId, before: i32) {
        if state.priority(job) != before {
            let leases = state.leases.values().filter(|lease| lease.unit.job() == job);
            let leases: Vec<LeaseId> = leases.map(|lease| lease.id).collect();
            self.slot_shares_mut(before).leave(SlotShareholder::of(state, job), &leases);
            self.enter(state, job);
        }
    }

    /// Slot time of jobs of the same priority as this one.
    fn slot_shares_of(&mut self, state: &State, job: JobId) -> &mut OwnerSlotShares {
        self.slot_shares_mut(state.priority(job))
    }
}

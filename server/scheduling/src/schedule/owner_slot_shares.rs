//! Slot shares of the owners of jobs, and of each owner's jobs: slot time is divided in proportion to them.
//!
//! Hierarchical start-time fair queueing (Goyal, Vin and Cheng, SIGCOMM 1996, section 3): a free slot goes to the owner with the
//! lowest tag, and there to the job with the lowest tag. Both tags grow by the slot time of the unit. Where all jobs are of one
//! owner, the order is that of the jobs' tags alone.
//!
//! ```text
//!   alice  --[ 1.1 ][ 1.2 ][ 1.3 ]------>|        has had 3 units with three jobs
//!   bob    --[ 2.1 ]->|                           is served now, though it has one job alone
//! ```

use super::slot_shares::SlotShares;
use sojourn_protocol::ids::{JobId, LeaseId, TokenId};
use sojourn_state::{By, Job, State};
use std::collections::BTreeMap;

/// The owner of jobs, as slot time is shared: an issued token; `None`: the operator, to whom jobs of the server's own token belong,
/// and those that were submitted before jobs had owners.
pub(super) type Owner = Option<TokenId>;

/// A job and its owner, with their slot shares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SlotShareholder {
    owner: Owner,
    job: JobId,
    owner_slot_share: u64,
    slot_share: u64,
}

impl SlotShareholder {
    pub(super) fn of(state: &State, id: JobId) -> Self {
        let job = state.jobs.get(&id);
        let owner = job.and_then(owner_of);
        let token = owner.and_then(|token| state.issued.get(token));
        let owner_slot_share = token.and_then(|token| token.quotas.slot_share).unwrap_or(1);
        let slot_share = job.map_or(1, |job| job.spec.placement.slot_share);
        let part = |slot_share: u32| u64::from(slot_share.max(1));
        Self {
            owner,
            job: id,
            owner_slot_share: part(owner_slot_share),
            slot_share: part(slot_share),
        }
    }
}

/// The owner of a job.
pub(super) fn owner_of(job: &Job) -> Owner {
    job.owner.and_then(By::token)
}

/// The slot time of the jobs of one priority, and of their owners.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OwnerSlotShares {
    owners: SlotShares<Owner>,
    jobs: BTreeMap<Owner, SlotShares<JobId>>,
}

impl OwnerSlotShares {
    /// An owner's tag: the lowest is served first.
    pub(super) fn owner_tag(&self, owner: Owner) -> u64 {
        self.owners.tag(owner)
    }

    /// A job's tag among those of its owner: the lowest is served first.
    pub(super) fn job_tag(&self, owner: Owner, job: JobId) -> u64 {
        self.jobs.get(&owner).map_or(0, |slot_shares| slot_shares.tag(job))
    }

    fn jobs_of(&mut self, owner: Owner) -> &mut SlotShares<JobId> {
        self.jobs.entry(owner).or_default()
    }

    /// A slot is given to a job for about `micros`.
    pub(super) fn give(&mut self, of: SlotShareholder, lease: LeaseId, micros: u64) {
        self.owners.give(of.owner, lease, micros / of.owner_slot_share);
        self.jobs_of(of.owner).give(of.job, lease, micros / of.slot_share);
    }

    /// A live lease has ended; its unit took `micros` of a slot.
    pub(super) fn settle(&mut self, of: SlotShareholder, lease: LeaseId, micros: u64) {
        self.owners.settle(of.owner, lease, micros / of.owner_slot_share);
        self.jobs_of(of.owner).settle(of.job, lease, micros / of.slot_share);
    }

    /// A lease has ended that was held for `micros`. It counts for no more than it was expected to take.
    pub(super) fn settle_held(&mut self, of: SlotShareholder, lease: LeaseId, micros: u64) {
        let counted = self.owners.counted(lease);
        self.owners.settle(of.owner, lease, (micros / of.owner_slot_share).min(counted));
        let jobs = self.jobs_of(of.owner);
        let counted = jobs.counted(lease);
        jobs.settle(of.job, lease, (micros / of.slot_share).min(counted));
    }

    /// A slot went to a job, though another one of its owner has a lower tag: it had nothing to grant, or (`has_units`) nothing for
    /// that host.
    pub(super) fn pass_over_job(&mut self, owner: Owner, job: JobId, to: u64, has_units: bool) {
        self.jobs_of(owner).pass_over(job, to, has_units);
    }

    /// The same of an owner with a lower tag than that of the owner whose job got the slot.
    pub(super) fn pass_over_owner(&mut self, owner: Owner, to: u64, has_units: bool) {
        self.owners.pass_over(owner, to, has_units);
    }

    /// A job goes on that stood still: it isn't owed what others of its owner got meanwhile.
    pub(super) fn enter_job(&mut self, of: SlotShareholder) {
        self.jobs_of(of.owner).enter(of.job);
    }

    /// An owner has jobs again: it isn't owed what other owners got meanwhile.
    pub(super) fn enter_owner(&mut self, owner: Owner) {
        self.owners.enter(owner);
    }

    /// A job leaves for another priority, and so do its live leases, uncounted.
    pub(super) fn leave(&mut self, of: SlotShareholder, leases: &[LeaseId]) {
        self.jobs_of(of.owner).leave(of.job, leases.iter().copied());
        self.owners.forget_leases(leases.iter().copied());
    }

    /// Forgets jobs that have ended, and owners without others.
    pub(super) fn keep(&mut self, state: &State) {
        let runs = |job: JobId| state.jobs.get(&job).is_some_and(Job::is_running);
        self.jobs.values_mut().for_each(|slot_shares| slot_shares.keep(runs));
        let mut owners: Vec<Owner> =
            state.jobs.values().filter(|job| job.is_running()).map(owner_of).collect();
        owners.sort_unstable();
        owners.dedup();
        let has_jobs = |owner: Owner| owners.binary_search(&owner).is_ok();
        self.owners.keep(has_jobs);
        self.jobs.retain(|owner, slot_shares| has_jobs(*owner) || !slot_shares.is_empty());
    }
}

//! Slot shares, kept fairly: which job gets the next slot, of all owners' jobs or of one owner's.
//!
//! Start-time fair queueing (Goyal, Vin and Cheng, SIGCOMM 1996, section 2) with equal weights, over many
//! slots at once as SFQ(D) does it (Jin, Chase and Kaur, SIGMETRICS 2004). Every job has a tag: the slot
//! time that it was given. A free slot goes to the job with the lowest tag that can use it, whose tag then
//! grows by what the unit should take; when the unit has ended, by what it did take instead. Virtual time
//! is the tag at which the last slot was given.
//!
//! ```text
//!   job 1  ----[ unit of 4 s ]--------------------->|            is served at 4 s
//!   job 2  ----[ 1 s ][ 1 s ][ 1 s ]->|                          is served now, at 3 s
//!   job 3                             '- is new: begins at virtual time
//! ```
//!
//! While two jobs both have units to hand out, the slot time that they got differs by no more than the
//! units that are under way and one more of each, however long the units are. Slot time that a job
//! couldn't use is not owed to it.

use sojourn_protocol::ids::{JobId, LeaseId};
use std::collections::BTreeMap;

/// Microseconds that a unit counts at least.
const MIN_COUNTED: u64 = 1_000;
/// Microseconds that a job is owed at most, while it has units but none for the hosts that ask.
const MAX_OWED: u64 = 600_000_000;

/// The slot time that each job was given, or each owner of jobs (`K`). It is soft state: after a start all begin alike.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SlotShares<K = JobId> {
    /// Virtual time, in microseconds of slot time. It never goes back.
    now: u64,
    /// Each job's tag, on the same scale.
    tags: BTreeMap<K, u64>,
    /// The slot time that was charged for each live lease. Leases from before a start are missing.
    counted: BTreeMap<LeaseId, u64>,
}

impl<K> Default for SlotShares<K> {
    fn default() -> Self {
        Self { now: 0, tags: BTreeMap::new(), counted: BTreeMap::new() }
    }
}

impl<K: Ord + Copy> SlotShares<K> {
    /// A job's tag: the lowest is served first.
    #[must_use]
    pub(super) fn tag(&self, job: K) -> u64 {
        self.tags.get(&job).copied().unwrap_or(self.now)
    }

    /// A slot is given to a job for about `micros`.
    pub(super) fn give(&mut self, job: K, lease: LeaseId, micros: u64) {
        let (tag, micros) = (self.tag(job), micros.max(MIN_COUNTED));
        self.now = self.now.max(tag);
        self.tags.insert(job, tag.saturating_add(micros));
        self.counted.insert(lease, micros);
    }

    /// A slot went to a job with the tag `to`, though this one has a lower tag: it had nothing to grant, or (`has_units`)
    /// nothing for that host.
    pub(super) fn pass_over(&mut self, job: K, to: u64, has_units: bool) {
        let least = if has_units { to.saturating_sub(MAX_OWED) } else { to };
        let tag = self.tag(job).max(least);
        self.tags.insert(job, tag);
    }

    /// The slot time that was charged for a live lease.
    #[must_use]
    pub(super) fn counted(&self, lease: LeaseId) -> u64 {
        self.counted.get(&lease).copied().unwrap_or(0)
    }

    /// A live lease has ended; its unit took `micros` of a slot.
    pub(super) fn settle(&mut self, job: K, lease: LeaseId, micros: u64) {
        let counted = self.counted.remove(&lease).unwrap_or(0);
        let tag = self.tag(job).saturating_add(micros.max(MIN_COUNTED)).saturating_sub(counted);
        self.tags.insert(job, tag);
    }

    /// A job goes on that stood still: it isn't owed what others got meanwhile.
    pub(super) fn enter(&mut self, job: K) {
        let tag = self.tag(job).max(self.now);
        self.tags.insert(job, tag);
    }

    /// A job leaves for another priority, and so do its live leases, uncounted.
    pub(super) fn leave(&mut self, job: K, leases: impl Iterator<Item = LeaseId>) {
        self.tags.remove(&job);
        self.forget_leases(leases);
    }

    /// Live leases count no more.
    pub(super) fn forget_leases(&mut self, leases: impl Iterator<Item = LeaseId>) {
        for lease in leases {
            self.counted.remove(&lease);
        }
    }

    /// Was none given any slot time?
    pub(super) fn is_empty(&self) -> bool {
        self.tags.is_empty() && self.counted.is_empty()
    }

    /// Forgets jobs that have ended.
    pub(super) fn keep(&mut self, runs: impl Fn(K) -> bool) {
        self.tags.retain(|job, _| runs(*job));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: JobId = JobId(1);
    const B: JobId = JobId(2);

    #[test]
    fn a_unit_counts_as_what_it_took() {
        let mut slot_shares = SlotShares::<JobId>::default();
        slot_shares.give(A, LeaseId(1), 50_000);
        assert_eq!((slot_shares.tag(A), slot_shares.tag(B)), (50_000, 0));
        slot_shares.settle(A, LeaseId(1), 80_000);
        assert_eq!(slot_shares.tag(A), 80_000);
        slot_shares.give(A, LeaseId(2), 0);
        slot_shares.settle(A, LeaseId(2), 0);
        assert_eq!(slot_shares.tag(A), 80_000 + MIN_COUNTED, "nothing is for nothing");
        // From before a start: nothing was counted yet.
        slot_shares.settle(B, LeaseId(3), 7_000);
        assert_eq!(slot_shares.tag(B), 80_000 + 7_000, "it begins at virtual time");
    }

    #[test]
    fn what_could_not_be_used_is_not_owed() {
        let mut slot_shares = SlotShares::<JobId>::default();
        let hour = 3_600_000_000;
        slot_shares.settle(A, LeaseId(1), 1_000);
        slot_shares.give(B, LeaseId(2), hour);
        slot_shares.give(B, LeaseId(3), hour);
        slot_shares.pass_over(A, hour, true);
        assert_eq!(slot_shares.tag(A), hour - MAX_OWED);
        slot_shares.pass_over(A, hour, false);
        assert_eq!(slot_shares.tag(A), hour);
        slot_shares.give(B, LeaseId(4), hour);
        slot_shares.enter(A);
        assert_eq!(slot_shares.tag(A), 2 * hour, "where the last slot was given");
        slot_shares.enter(B);
        assert_eq!(slot_shares.tag(B), 3 * hour, "what it has had stays");
        slot_shares.keep(|job| job == A);
        assert_eq!(slot_shares.tag(B), 2 * hour);
    }
}

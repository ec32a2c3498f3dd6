//! Keeps the units together within the disk that the owner lends: one that has no room beside those begun waits in
//! [`LeaseState::Queued`], and holds nothing until it has. A unit that is alone begins in any case: one that takes more by
//! itself is given back when its lease comes.

use super::{Agent, Turn};
use crate::{
    event::TransferView,
    lease::{HeldLease, LeaseEvent, LeaseState},
    needs::Rest,
};
use sojourn_protocol::{digest::Digest, ids::LeaseId};
use std::collections::BTreeMap;

impl Agent {
    /// Begins units in the order of their leases, as far as there is room for all that they fetch. None overtakes
    /// another, or one that takes much would wait for ever.
    pub(super) fn begin_queued<V: TransferView>(&mut self, turn: &mut Turn<'_, V>) {
        let is_queued = |lease: &&HeldLease| matches!(lease.state(), LeaseState::Queued(_));
        while let Some(first) = self.leases.iter().find(is_queued)
            && self.has_disk_for(first, turn.view.capacity_for_units())
        {
            let id = first.id();
            self.apply(id, LeaseEvent::FetchStarted, turn);
        }
    }

    /// Is there room for the blobs of a unit beside those of the units that are begun?
    fn has_disk_for(&self, lease: &HeldLease, capacity: u64) -> bool {
        let is_begun =
            |lease: &&HeldLease| lease.is_work() && !matches!(lease.state(), LeaseState::Queued(_));
        let mut blobs: BTreeMap<Digest, u64> = BTreeMap::new();
        let mut add = |lease: &HeldLease| {
            blobs.extend(lease.needs.all().map(|need| (need.blob.sha256, need.blob.bytes)));
        };
        let mut begun = self.leases.iter().filter(is_begun).peekable();
        if begun.peek().is_none() {
            return true;
        }
        begun.for_each(&mut add);
        add(lease);
        blobs.into_values().fold(0, u64::saturating_add) <= capacity
    }

    /// Ends a running unit with what is trained, where the shard that it waits for isn't fetched any more.
    pub(super) fn end_without_room<V: TransferView>(
        &mut self,
        id: LeaseId,
        shard: &Digest,
        turn: &mut Turn<'_, V>,
    ) {
        let is_over = self.lease(id).is_some_and(|lease| matches!(lease.needs.rest, Rest::Over));
        if is_over && !self.fetches.is_asked(shard) {
            self.apply(id, LeaseEvent::StopAsked, turn);
        }
    }
}

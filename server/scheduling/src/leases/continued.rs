//! The hop that a host may train next while its result is uploaded.

use super::provisional::ProvisionalLease;
use crate::{hosts::DeviceRef, leases::Occupancy};
use sojourn_protocol::{digest::BlobRef, ids::LeaseId, position::Position};
use sojourn_state::{Lease, Trial};
use sojourn_workgen::Chain;
use std::sync::Arc;

/// The result that a unit goes on from.
#[derive(Debug, Clone, Copy)]
pub struct ResultBefore {
    /// The lease whose result that is.
    pub lease: LeaseId,
    /// The checkpoint that the lease has produced, as its host reports it.
    pub produced: BlobRef,
    /// Where the unit begins.
    pub start: Position,
}

/// A trial as it will be on a device, when its lease there has been taken in.
pub struct ContinuedTrial {
    /// The trial's chain by then.
    pub chain: Chain,
    /// The lease that it goes on from, with the checkpoint that it has produced. `None` while that isn't trained.
    pub after: Option<(LeaseId, BlobRef)>,
}

impl Occupancy<'_> {
    /// A trial that one device has in hand, as it will be when the result has been taken in. `None` where another
    /// device has it, or a provisional lease goes on from it already.
    pub fn continued_on(&self, trial: &Trial, at: DeviceRef<'_>) -> Option<ContinuedTrial> {
        if trial.merging.is_some() {
            return None;
        }
        let mut in_hand = trial.in_hand();
        let (lease, None) = (in_hand.next()?, in_hand.next()) else { return None };
        let known = self.state.lease(lease)?;
        let here = known.host == at.host && known.device == at.slots.device.name;
        if !here || self.leases.provisional().after(lease).is_some() {
            return None;
        }
        let mut chain = trial.chain.clone();
        advance(&mut chain, known)?;
        let deadline = self.leases.deadline(lease);
        let deadline = deadline.filter(|deadline| deadline.is_finished() && !deadline.is_to_stop());
        let produced = deadline.and_then(|deadline| deadline.produced);
        let produced = produced.filter(|produced| produced.bytes == trial.checkpoint_bytes);
        Some(ContinuedTrial { chain, after: produced.map(|produced| (lease, produced)) })
    }

    /// A trial's chain as it will be when everything in hand, provisional leases too, has been taken in.
    pub fn expected_chain(&self, trial: &Trial) -> Chain {
        let mut chain = trial.chain.clone();
        // Of two leases of one hop the first one counts.
        let in_hand = trial.in_hand().next();
        let lease = in_hand.and_then(|lease| self.state.lease(lease)).map(Arc::as_ref);
        let provisional = in_hand.and_then(|lease| self.leases.provisional().after(lease));
        for lease in lease.into_iter().chain(provisional.map(|provisional| &provisional.lease)) {
            if advance(&mut chain, lease).is_none() {
                break;
            }
        }
        chain
    }

    /// The provisional lease of a trial.
    pub fn provisional_of(&self, trial: &Trial) -> Option<&'_ ProvisionalLease> {
        trial.in_hand().find_map(|lease| self.leases.provisional().after(lease))
    }

    /// The id of the next lease.
    pub fn next_lease_id(&self) -> LeaseId {
        self.state.last_lease.max(self.leases.provisional().last()).next()
    }
}

/// Takes all of a lease's hops into a chain.
fn advance(chain: &mut Chain, lease: &Lease) -> Option<()> {
    for shard in lease.visits() {
        let start = chain.next(shard)?;
        let batches = chain.remaining_in(shard);
        let end = Position {
            batch: start.batch + batches,
            step: start.step + u64::from(batches),
            ..start
        };
        chain.advance(start, end).ok()?;
    }
    Some(())
}

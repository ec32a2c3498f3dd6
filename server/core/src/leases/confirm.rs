//! A host goes on with a trial while its result is uploaded: what it may train next, and whether that is granted.
//!
//! The lease is provisional until the result before it was taken in. Then it is granted, or else withdrawn.

use super::{deadline::Deadline, handler::LeaseHandler, provisional::ProvisionalLease};
use crate::{cost::Occupancy, fault::CoreFault, hosts::DeviceRef, schedule::consider_speculation};
use sojourn_protocol::{
    digest::BlobRef, ids::LeaseId, manifest::DataSplit, position::Position, unit::shard_index,
};
use sojourn_state::{Event, Lease, Trial, UnitKey};
use sojourn_workgen::Chain;
use std::sync::Arc;

/// The result that a unit goes on from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ResultBefore {
    pub(crate) lease: LeaseId,
    /// The checkpoint that the lease has produced, as its host reports it.
    pub(crate) produced: BlobRef,
    /// Where the unit begins.
    pub(crate) start: Position,
}

/// A trial as it will be on a device, when its lease there has been taken in.
pub(crate) struct ContinuedTrial {
    pub(crate) chain: Chain,
    /// The lease that it goes on from, with the checkpoint that it has produced. `None` while that isn't trained.
    pub(crate) after: Option<(LeaseId, BlobRef)>,
}

impl LeaseHandler<'_> {
    /// A lease's result has been taken in: the provisional lease that goes on from it is granted, where it can be.
    pub(crate) fn confirm(&mut self, after: LeaseId) -> Result<(), CoreFault> {
        let Some(provisional) = self.ledger.leases.provisional.take_after(after) else {
            return Ok(());
        };
        if !self.may_confirm(&provisional) {
            self.ledger.withdrawn(&provisional);
            return Ok(());
        }
        let ProvisionalLease { lease, takes, why, .. } = provisional;
        let (id, sent_at) = (lease.id, lease.granted_at);
        let job = lease.unit.job();
        self.ledger.planner.pass_over_before(self.ledger.state, job);
        self.ledger.record(Event::LeaseGranted {
            lease: id,
            host: lease.host,
            device: lease.device,
            unit: lease.unit,
            then: lease.then,
            until: lease.until,
            base: lease.base,
            class: lease.class,
            speculative_for: None,
            why,
        })?;
        let deadline = Deadline { sent_at, ..self.occupancy().new_deadline(id) };
        self.ledger.leases.deadlines.set(id, deadline);
        consider_speculation(&mut self.ledger);
        self.ledger.planner.charge(self.ledger.state, job, id, takes);
        Ok(())
    }

    fn may_confirm(&self, provisional: &ProvisionalLease) -> bool {
        let state = &*self.ledger.state;
        let lease = &provisional.lease;
        let UnitKey::Train { job, trial, shard, .. } = lease.unit else { return false };
        let Some(job) = state.jobs.get(&job).filter(|job| job.is_open()) else { return false };
        let Some(trial) = job.trial(trial) else { return false };
        state.hosts.get(&lease.host).is_some_and(|host| !host.revoked)
            && self.hosts.session(lease.host).is_some()
            && trial.is_runnable()
            && trial.version == lease.base
            && trial.checkpoint == Some(provisional.base)
            && trial.chain.next(shard) == Some(provisional.start)
            && !state.blobs.is_lost(&provisional.base.sha256)
            && state.lost_data(job).is_none()
            && state.admits_host(job, lease.host)
            && state.lease(lease.id).is_none()
    }

    /// The host will hold the shards that a lease needs by the time that it runs.
    pub(crate) fn expect_shards(&mut self, lease: &Lease) {
        let Some(session) = self.hosts.session_mut(lease.host) else { return };
        let Some(job) = self.ledger.state.jobs.get(&lease.unit.job()) else { return };
        let train = &job.data.train;
        let evaluated = match lease.unit {
            UnitKey::Train { .. } => &[],
            UnitKey::Evaluate { .. } => job.data.split(DataSplit::Valid),
            UnitKey::Extra { name, .. } => job.data.split(name.split),
        };
        let visited = lease.visits().filter_map(|shard| train.get(shard_index(shard)));
        for shard in visited.chain(evaluated) {
            session.will_have(job.id, train, shard.blob.sha256);
        }
    }
}

impl Occupancy<'_> {
    /// A trial that one device has in hand, as it will be when the result has been taken in. `None` where another
    /// device has it, or a provisional lease goes on from it already.
    pub(crate) fn continued_on(&self, trial: &Trial, at: DeviceRef<'_>) -> Option<ContinuedTrial> {
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
        let deadline = deadline.filter(|deadline| deadline.finished && !deadline.is_to_stop());
        let produced = deadline.and_then(|deadline| deadline.produced);
        let produced = produced.filter(|produced| produced.bytes == trial.checkpoint_bytes);
        Some(ContinuedTrial { chain, after: produced.map(|produced| (lease, produced)) })
    }

    /// A trial's chain as it will be when everything in hand, provisional leases too, has been taken in.
    pub(crate) fn expected_chain(&self, trial: &Trial) -> Chain {
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
    pub(crate) fn provisional_of(&self, trial: &Trial) -> Option<&'_ ProvisionalLease> {
        trial.in_hand().find_map(|lease| self.leases.provisional().after(lease))
    }

    /// The id of the next lease.
    pub(crate) fn next_lease_id(&self) -> LeaseId {
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

//! The status for the owner: each unit with its task and its pace, and the agent's own state.

use super::Driver;
use crate::{
    control::{Resting, Task, UnitStatus, Work},
    message::AgentStatus,
    meter::Meter,
};
use sojourn_protocol::{
    api::{Held, HeldState},
    ids::LeaseId,
    unit::{Lease, Unit},
    usage::UnitUsage,
};
use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

/// The units of held leases.
#[derive(Debug, Default)]
pub(super) struct Units(BTreeMap<LeaseId, Known>);

#[derive(Debug)]
struct Known {
    work: Work,
    /// From its start in a slot.
    meter: Option<Meter>,
    /// Bytes that have come over the network, for each of its blobs of which any have.
    received: Vec<Arc<AtomicU64>>,
}

impl Units {
    /// Adds a lease.
    pub(super) fn insert(&mut self, lease: &Lease) {
        let known = Known { work: work_of(lease), meter: None, received: Vec::new() };
        self.0.insert(lease.id, known);
    }

    /// A blob of the unit is fetched; `received` counts its bytes.
    pub(super) fn receives(&mut self, lease: LeaseId, received: Arc<AtomicU64>) {
        let Some(known) = self.0.get_mut(&lease) else { return };
        // A download that is taken up again goes on counting.
        if !known.received.iter().any(|other| Arc::ptr_eq(other, &received)) {
            known.received.push(received);
        }
    }

    /// Bytes that have come over the network for a unit.
    fn received(&self, lease: LeaseId) -> Option<u64> {
        let counts = self.0.get(&lease)?.received.iter();
        Some(counts.map(|count| count.load(Ordering::Relaxed)).fold(0, u64::saturating_add))
    }

    /// The unit has started in a slot.
    pub(super) fn started(&mut self, lease: LeaseId) {
        if let Some(known) = self.0.get_mut(&lease) {
            known.meter = Some(Meter::new(0));
        }
    }

    pub(super) fn retain(&mut self, is_held: impl Fn(LeaseId) -> bool) {
        self.0.retain(|lease, _| is_held(*lease));
    }

    /// The status of a lease.
    fn status(&self, held: Held, usage: Option<UnitUsage>) -> UnitStatus {
        let known = self.0.get(&held.lease);
        let rate = known.and_then(|known| match held.state {
            HeldState::Running { done, .. } => known.meter.as_ref()?.rate(u64::from(done)),
            // A unit that doesn't train has no rate.
            _ => None,
        });
        UnitStatus {
            lease: held.lease,
            state: held.state,
            work: known.map(|known| known.work.clone()),
            batches_per_second: rate,
            usage,
            cpu_share: held.cpu_share,
        }
    }
}

impl<R> Driver<R> {
    /// The resources that a unit takes, where it runs and its trainer has said so.
    pub(super) fn usage(&self, lease: LeaseId) -> Option<UnitUsage> {
        let usage = self.context.trainers.usages.get(lease)?;
        Some(UnitUsage { received: self.units.received(lease), ..usage })
    }

    pub(super) fn status(&self) -> AgentStatus {
        let held = self.agent.holding(&self.view);
        let resting = self.agent.cooldown().map(|(left, reason)| Resting {
            reason: reason.to_owned(),
            seconds_left: left.0 / 1_000_000,
        });
        let unit = |held: Held| self.units.status(held, self.usage(held.lease));
        AgentStatus {
            units: held.into_iter().map(unit).collect(),
            out_of_use: u32::try_from(self.agent.slots_out_of_use()).unwrap_or(u32::MAX),
            resting,
            waiting: self.waiting.clone(),
            is_budget_closed: !self.agent.is_budget_open(),
        }
    }
}

fn work_of(lease: &Lease) -> Work {
    let task = match &lease.unit {
        Unit::Train(hop) => Task::Train {
            epoch: hop.start.epoch,
            shard: hop.start.shard,
            then: hop.then.iter().map(|leg| leg.shard_id).collect(),
        },
        Unit::Evaluate(evaluation) => Task::Evaluate { epoch: evaluation.epoch },
    };
    let bytes = lease.unit.blobs().iter().map(|blob| blob.bytes).fold(0, u64::saturating_add);
    Work { job: lease.unit.job(), trial: lease.unit.trial(), task, download: bytes }
}

//! The status for the owner: each unit with its task and its pace, and the agent's own state.

use super::Driver;
use crate::{
    control::{Resting, Task, UnitStatus, Work},
    message::AgentStatus,
    meter::Meter,
    trainers::usage::UnitUsage,
};
use sojourn_protocol::{
    api::{Held, HeldState},
    ids::LeaseId,
    unit::{Lease, Unit},
};
use std::collections::BTreeMap;

/// The units of held leases.
#[derive(Debug, Default)]
pub(super) struct Units(BTreeMap<LeaseId, Known>);

#[derive(Debug)]
struct Known {
    work: Work,
    /// From its start in a slot.
    meter: Option<Meter>,
}

impl Units {
    /// Adds a lease.
    pub(super) fn insert(&mut self, lease: &Lease) {
        self.0.insert(lease.id, Known { work: work_of(lease), meter: None });
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
            share: held.share,
        }
    }
}

impl<R> Driver<R> {
    pub(super) fn status(&self) -> AgentStatus {
        let held = self.agent.holding(&self.view);
        let resting = self.agent.cooldown().map(|(left, reason)| Resting {
            reason: reason.to_owned(),
            seconds_left: left.0 / 1_000_000,
        });
        let usages = &self.context.trainers.usages;
        let unit = |held: Held| {
            let usage = usages.get(held.lease);
            self.units.status(held, usage)
        };
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

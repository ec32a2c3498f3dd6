//! What the owner is shown of each unit beside its lease: what it is, and how fast it goes.

use super::words::{Task, UnitStatus, Work};
use crate::meter::Meter;
use sojourn_protocol::{
    api::{Held, HeldState},
    ids::LeaseId,
    unit::{Lease, Unit},
};
use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// The units that are worked on.
#[derive(Debug, Default)]
pub(crate) struct Units(Mutex<BTreeMap<LeaseId, Known>>);

#[derive(Debug)]
struct Known {
    work: Work,
    /// From when it is in a slot.
    meter: Option<Meter>,
}

/// A unit that is known by its name for as long as this lives.
#[derive(Debug)]
pub(crate) struct Named<'a> {
    units: &'a Units,
    lease: LeaseId,
}

impl Units {
    /// A unit is worked on.
    pub(crate) fn name(&self, lease: &Lease) -> Named<'_> {
        self.lock().insert(lease.id, Known { work: work_of(lease), meter: None });
        Named { units: self, lease: lease.id }
    }

    /// It is in a slot from now on.
    pub(crate) fn started(&self, lease: LeaseId) {
        if let Some(known) = self.lock().get_mut(&lease) {
            known.meter = Some(Meter::new(0));
        }
    }

    /// What is known of a lease.
    pub(super) fn status(&self, held: Held) -> UnitStatus {
        let units = self.lock();
        let known = units.get(&held.lease);
        let rate = known.and_then(|known| match held.state {
            HeldState::Running { done, .. } => known.meter.as_ref()?.rate(u64::from(done)),
            // Standing still, it has none.
            _ => None,
        });
        UnitStatus {
            lease: held.lease,
            state: held.state,
            work: known.map(|known| known.work.clone()),
            batches_per_second: rate,
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<LeaseId, Known>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Named<'_> {
    fn drop(&mut self) {
        self.units.lock().remove(&self.lease);
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

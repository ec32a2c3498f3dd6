//! A lease as its host gets it.

use super::provisional::ProvisionalLease;
use crate::leases::Occupancy;
use sojourn_protocol::{
    ids::{Epoch, HostId, LeaseId, ShardId},
    manifest::DataSplit,
    position::Position,
    seeds,
    unit::{self, Base, Evaluation, Hop, NextHop, Unit},
};
use sojourn_state::{Job, Lease, State, Trial, UnitKey};
use std::collections::BTreeSet;

impl Occupancy<'_> {
    /// The message of a live lease.
    pub fn lease_message(&self, lease: LeaseId) -> Option<unit::Lease> {
        let known = self.state.leases.get(&lease)?;
        let deadline = self.leases.deadline(lease);
        Some(unit::Lease {
            id: lease,
            unit: unit_message(self.state, known)?,
            device: known.device.clone(),
            instructions: self.instructions_of(known),
            renew_by: deadline
                .map_or(self.now + self.cost.config.lease_term, |deadline| deadline.renew_by),
            heartbeat_every: self.cost.config.heartbeat_every,
            upload_bytes: match known.unit {
                UnitKey::Train { job, trial, .. } => self.state.trial(job, trial)?.checkpoint_bytes,
                UnitKey::Evaluate { .. } | UnitKey::Extra { .. } => 0,
            },
            cpu_shares: self.leases.cpu_shares().of_lease(self.state, known),
        })
    }

    /// The message of a provisional lease.
    pub fn provisional_message(&self, provisional: &ProvisionalLease) -> Option<unit::Lease> {
        let lease = &provisional.lease;
        let base = Base::Checkpoint { version: lease.base, blob: provisional.base };
        let hop = hop_from(self.state, lease, base, provisional.start.step)?;
        Some(unit::Lease {
            id: lease.id,
            unit: Unit::Train(hop),
            device: lease.device.clone(),
            instructions: self.instructions_of(lease),
            renew_by: self.now + self.cost.config.lease_term,
            heartbeat_every: self.cost.config.heartbeat_every,
            upload_bytes: provisional.base.bytes,
            cpu_shares: self.leases.cpu_shares().of_lease(self.state, lease),
        })
    }

    /// The instruction set of the class in which a reproducible unit is to be computed, where its device names it.
    fn instructions_of(&self, lease: &Lease) -> Option<String> {
        let job = self.state.jobs.get(&lease.unit.job())?;
        let class = lease.class.filter(|_| job.spec.placement.reproducible)?;
        let slots = self.hosts.device(lease.host, &lease.device)?;
        slots.instructions(class).map(str::to_owned)
    }

    /// The provisional leases that a host should hold and doesn't: the answer was lost, or the host has restarted.
    pub fn missing_provisional(&self, host: HostId, held: &BTreeSet<LeaseId>) -> Vec<unit::Lease> {
        let provisional = self.leases.provisional().of(host);
        let missing = provisional.filter(|of| !held.contains(&of.lease.id));
        missing.filter_map(|provisional| self.provisional_message(provisional)).collect()
    }
}

fn unit_message(state: &State, lease: &Lease) -> Option<Unit> {
    let job = state.jobs.get(&lease.unit.job())?;
    let trial = job.trial(lease.unit.trial())?;
    Some(match lease.unit {
        UnitKey::Train { .. } => Unit::Train(hop_message(state, lease)?),
        UnitKey::Evaluate { epoch, .. } => {
            let evaluation = trial.evaluations.get(&epoch)?;
            Unit::Evaluate(Evaluation {
                job: job.id,
                trial: trial.id,
                epoch,
                version: evaluation.version,
                checkpoint: evaluation.checkpoint,
                shards: job.evaluated_shards(trial, DataSplit::Valid).into_owned(),
                split: DataSplit::Valid,
                counting: job.counting(trial),
                context: trial.context_of(lease.id),
            })
        }
        UnitKey::Extra { name, .. } => {
            let extra = job.extra(&name)?;
            Unit::Evaluate(Evaluation {
                job: job.id,
                trial: trial.id,
                epoch: name.epoch,
                version: extra.version,
                checkpoint: extra.checkpoint,
                shards: job.evaluated_shards(trial, name.split).into_owned(),
                split: name.split,
                counting: job.full_counting(trial),
                context: trial.context_of(lease.id),
            })
        }
    })
}

/// The hop of a lease whose result would be taken in, with those that follow it.
pub fn hop_message(state: &State, lease: &Lease) -> Option<Hop> {
    let trial = state.trial(lease.unit.job(), lease.unit.trial())?;
    let (base, step) = trial.base_of(lease)?;
    hop_from(state, lease, base, step)
}

/// The hop of a lease, with those that follow it, from a base and a step.
pub(super) fn hop_from(state: &State, lease: &Lease, base: Base, step: u64) -> Option<Hop> {
    let UnitKey::Train { job, trial, epoch, shard, from } = lease.unit else { return None };
    let job = state.jobs.get(&job)?;
    let trial = job.trial(trial)?;
    let leg = |shard: ShardId| leg(job, trial, epoch, shard);
    let NextHop { shard_id, shard, seed } = leg(shard)?;
    Some(Hop {
        job: job.id,
        trial: trial.id,
        base,
        start: Position { epoch, shard: shard_id, batch: from, step },
        shard,
        seed,
        context: trial.context_of(lease.id),
        then: lease.then.iter().copied().map(leg).collect::<Option<_>>()?,
        until: lease.until,
    })
}

/// A hop over a shard that follows under the same lease.
fn leg(job: &Job, trial: &Trial, epoch: Epoch, shard_id: ShardId) -> Option<NextHop> {
    let shard = *job.data.train.get(unit::shard_index(shard_id))?;
    Some(NextHop {
        shard_id,
        shard,
        seed: seeds::hop(trial.seed_in(job), trial.id, epoch, shard_id),
    })
}

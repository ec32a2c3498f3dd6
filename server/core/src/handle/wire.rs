//! A lease as its host gets it, and how long it should take there.

use crate::{
    core::Core,
    event::UnitKey,
    schedule::PlaceName,
    state::{Job, Lease},
};
use sojourn_protocol::{
    ids::{Epoch, LeaseId, ShardId, TrialId},
    manifest::DataSplit,
    position::Position,
    seeds,
    time::Millis,
    unit::{self, Base, Evaluation, Hop, Leg, Unit},
};

impl Core {
    /// A live lease as it goes over the wire.
    pub(crate) fn wire_lease(&self, lease: LeaseId) -> Option<unit::Lease> {
        let known = self.state.leases.get(&lease)?;
        let term = self.soft.terms.get(&lease);
        Some(unit::Lease {
            id: lease,
            unit: self.wire_unit(known)?,
            device: known.device.clone(),
            renew_by: term.map_or(self.now + self.config.lease_term, |term| term.renew_by),
            heartbeat_every: self.config.heartbeat_every,
            upload_bytes: match known.unit {
                UnitKey::Train { job, trial, .. } => self.state.trial(job, trial)?.checkpoint_bytes,
                UnitKey::Evaluate { .. } | UnitKey::Extra { .. } => 0,
            },
        })
    }

    fn wire_unit(&self, lease: &Lease) -> Option<Unit> {
        let job = self.state.jobs.get(&lease.unit.job())?;
        let trial = job.trial(lease.unit.trial())?;
        Some(match lease.unit {
            UnitKey::Train { .. } => Unit::Train(self.wire_hop(lease)?),
            UnitKey::Evaluate { epoch, .. } => {
                let evaluation = trial.evaluations.get(&epoch)?;
                Unit::Evaluate(Evaluation {
                    job: job.id,
                    trial: trial.id,
                    epoch,
                    version: evaluation.version,
                    checkpoint: evaluation.checkpoint,
                    shards: job.data.valid.clone(),
                    split: DataSplit::Valid,
                    counting: job.spec.search.counting(&job.data.labels),
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
                    shards: job.data.split(name.split).to_vec(),
                    split: name.split,
                    counting: job.spec.search.full_counting(&job.data.labels),
                    context: trial.context_of(lease.id),
                })
            }
        })
    }

    /// The hop of a lease whose result would be taken in, with those that follow it.
    pub(crate) fn wire_hop(&self, lease: &Lease) -> Option<Hop> {
        let trial = self.state.trial(lease.unit.job(), lease.unit.trial())?;
        let (base, step) = trial.base_of(lease)?;
        self.hop_of(lease, base, step)
    }

    /// The hop of a lease, with those that follow it, from a base and a step.
    pub(crate) fn hop_of(&self, lease: &Lease, base: Base, step: u64) -> Option<Hop> {
        let UnitKey::Train { job, trial, epoch, shard, from } = lease.unit else { return None };
        let job = self.state.jobs.get(&job)?;
        let trial = job.trial(trial)?;
        let leg = |shard: ShardId| leg(job, trial.id, epoch, shard);
        let Leg { shard_id, shard, seed } = leg(shard)?;
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

    /// Microseconds that a lease's unit should take on its host.
    pub(crate) fn estimate_micros(&self, lease: LeaseId) -> u64 {
        let Some(lease) = self.state.leases.get(&lease) else { return 0 };
        self.unit_micros(self.place_of(lease), lease.unit, &lease.then)
    }

    /// Microseconds that a unit, with hops that follow, should take at a place.
    pub(crate) fn unit_micros(&self, place: PlaceName<'_>, unit: UnitKey, then: &[ShardId]) -> u64 {
        let Some(job) = self.state.jobs.get(&unit.job()) else { return 0 };
        let evaluated =
            |split| job.data.split(split).iter().map(|shard| u64::from(shard.rows)).sum();
        let rows_of = |shard| {
            job.data.train.get(unit::shard_index(shard)).map_or(0, |shard| u64::from(shard.rows))
        };
        let rows = match unit {
            UnitKey::Train { shard, .. } => {
                rows_of(shard) + then.iter().map(|shard| rows_of(*shard)).sum::<u64>()
            }
            UnitKey::Evaluate { .. } => evaluated(DataSplit::Valid),
            UnitKey::Extra { name, .. } => evaluated(name.split),
        };
        self.soft.schedule.estimates.micros(place, job.id, unit.trial(), rows)
    }

    /// How long a lease's unit should take on its host.
    pub(crate) fn estimate(&self, lease: LeaseId) -> Millis {
        Millis(self.estimate_micros(lease) / 1000)
    }

    /// Where a lease's unit runs.
    pub(crate) fn place_of<'a>(&self, lease: &'a Lease) -> PlaceName<'a> {
        let contact = self.soft.contacts.get(&lease.host);
        let device = contact.and_then(|contact| contact.device(&lease.device));
        let flops = device.map_or(0.0, |device| device.flops);
        PlaceName { host: lease.host, device: &lease.device, flops }
    }

    /// By how much a lease's unit may take longer than estimated, in thousandths of that.
    pub(crate) fn spread(&self, lease: &Lease) -> u64 {
        let (job, trial) = (lease.unit.job(), lease.unit.trial());
        self.soft.schedule.estimates.spread(self.place_of(lease), job, trial)
    }

    /// How long to wait for progress of a lease's unit, of which `estimate` is left: longer by its estimate's
    /// own spread, of which a host that breaks deadlines gets less, but no less than half.
    pub(crate) fn patience(&self, lease: LeaseId, estimate: Millis) -> Millis {
        let spread = self.state.leases.get(&lease).map_or(0, |lease| {
            self.spread(lease).saturating_mul(self.reliability(lease.host).max(500)) / 1000
        });
        let patience = estimate.0.saturating_mul(1000 + spread) / 1000;
        Millis(patience.max(self.config.least_due.0))
    }
}

/// A hop over a shard that follows under the same lease.
fn leg(job: &Job, trial: TrialId, epoch: Epoch, shard_id: ShardId) -> Option<Leg> {
    let shard = *job.data.train.get(unit::shard_index(shard_id))?;
    Some(Leg { shard_id, shard, seed: seeds::hop(job.spec.seed, trial, epoch, shard_id) })
}

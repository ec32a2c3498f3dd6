//! The time of a unit and of a lease, and how long to wait for it.

use super::view::Cost;
use crate::hosts::DeviceKey;
use sojourn_protocol::{
    ids::{LeaseId, ShardId},
    manifest::DataSplit,
    time::Millis,
};
use sojourn_state::{Lease, UnitKey};

/// Bytes per millisecond of a link on which a host may still deliver: 100 kB/s.
const MIN_UPLOAD_SPEED: u64 = 100;

impl Cost<'_> {
    /// How long a host may take to upload a result. One that never arrives must not hold its unit for ever: there are
    /// proxies that let no large request through.
    pub fn delivery_time(&self, lease: LeaseId) -> Millis {
        let lease = self.state.leases.get(&lease);
        let bytes = lease.and_then(|lease| self.state.upload_bytes(lease));
        let upload = bytes.unwrap_or(0) / MIN_UPLOAD_SPEED;
        Millis(self.config.start_grace.0.saturating_add(upload))
    }

    /// Microseconds that a lease's unit should take on its host.
    pub fn lease_time(&self, lease: LeaseId) -> u64 {
        let Some(lease) = self.state.leases.get(&lease) else { return 0 };
        self.unit_time(self.device_of(lease), lease.unit, &lease.then)
    }

    /// Microseconds that a unit, with hops that follow, should take on a device.
    pub fn unit_time(&self, device: DeviceKey<'_>, unit: UnitKey, then: &[ShardId]) -> u64 {
        let Some(job) = self.state.jobs.get(&unit.job()) else { return 0 };
        let evaluated = |split| {
            let Some(trial) = job.trial(unit.trial()) else { return 0 };
            job.evaluated_shards(trial, split).iter().map(|shard| u64::from(shard.rows)).sum()
        };
        let rows_of = |shard| job.rows_of_hop(shard);
        let rows = match unit {
            UnitKey::Train { shard, .. } => {
                rows_of(shard) + then.iter().map(|shard| rows_of(*shard)).sum::<u64>()
            }
            UnitKey::Evaluate { .. } => evaluated(DataSplit::Valid),
            UnitKey::Extra { name, .. } => evaluated(name.split),
        };
        self.estimates.micros(device, job.id, unit.trial(), rows)
    }

    /// How long a lease's unit should take on its host.
    pub fn lease_estimate(&self, lease: LeaseId) -> Millis {
        Millis(self.lease_time(lease) / 1000)
    }

    /// The device that a lease's unit runs on.
    pub fn device_of<'l>(&self, lease: &'l Lease) -> DeviceKey<'l> {
        let session = self.hosts.session(lease.host);
        let device = session.and_then(|session| session.device(&lease.device));
        let flops = device.map_or(0.0, |device| device.flops);
        let speed = self.lease_speed(lease);
        DeviceKey { host: lease.host, device: &lease.device, flops, speed }
    }

    /// By how much a lease's unit may take longer than estimated, in thousandths of that.
    pub fn spread(&self, lease: &Lease) -> u64 {
        let (job, trial) = (lease.unit.job(), lease.unit.trial());
        self.estimates.spread(self.device_of(lease), job, trial)
    }

    /// How long to wait for progress of a lease's unit, whose remaining time is `estimate`: longer by the spread of the
    /// estimate. A host that breaks deadlines gets less of that spread, but no less than half.
    pub fn patience(&self, lease: LeaseId, estimate: Millis) -> Millis {
        let spread = self.state.leases.get(&lease).map_or(0, |lease| {
            self.spread(lease).saturating_mul(self.reliability(lease.host).max(500)) / 1000
        });
        let patience = estimate.0.saturating_mul(1000 + spread) / 1000;
        Millis(patience.max(self.config.least_due.0))
    }
}

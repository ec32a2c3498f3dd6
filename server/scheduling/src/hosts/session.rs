//! The session of a host: the devices, slots, links and cache that it has reported since the server started.

use super::device_key::DeviceKey;
use super::{classes::DeviceClasses, incarnations::Incarnations};
use sojourn_protocol::{
    digest::Digest,
    engine::Engine,
    ids::{HostId, JobId},
    inventory::{Demand, Device, Inventory, Links, Measured, Workload},
    manifest::Shard,
    time::UnixMillis,
};
use sojourn_state::Job;
use std::collections::{BTreeMap, BTreeSet};

/// Devices that one host may have.
const MAX_DEVICES: usize = 16;
/// Measured workloads of one device that are remembered, and refused ones.
const MAX_MEASURED: usize = 256;

/// The reports of a host since the server started.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Session {
    /// When it was last heard of.
    pub seen_at: UnixMillis,
    /// Has it said what it wants? Its slots are known since then.
    pub has_asked: bool,
    /// Slots in all.
    pub slots: u32,
    /// Since when it reports an idle slot.
    pub idle_since: Option<UnixMillis>,
    /// The bandwidth of its links.
    pub links: Links,
    /// Bytes that its cache may hold, if it is limited.
    pub cache: Option<u64>,
    /// Whether the host's disk has less room left than its owner keeps free.
    pub disk_is_low: bool,
    /// Digests in its cache.
    pub cached: BTreeSet<Digest>,
    /// By job and shard, is it in the cache? Of jobs for which that is indexed.
    shards: BTreeMap<JobId, Vec<bool>>,
    /// The host's devices by name; none until its inventory came.
    pub devices: BTreeMap<String, DeviceSlots>,
    /// The starts of its client.
    pub incarnations: Incarnations,
}

/// A device of a host that asks.
#[derive(Debug, Clone, Copy)]
pub struct DeviceRef<'a> {
    /// The host.
    pub host: HostId,
    /// The device's slots.
    pub slots: &'a DeviceSlots,
    /// Whether the device's slots are busy: then what is chosen waits there.
    pub ahead: bool,
}

impl<'a> DeviceRef<'a> {
    /// The device's name for estimates, computing in that class.
    pub fn key(self, class: Digest) -> DeviceKey<'a> {
        self.slots.key(self.host, class)
    }
}

/// The slots of one device.
#[derive(Debug, Clone, PartialEq)]
pub struct DeviceSlots {
    /// How many, as the host reported last.
    pub count: u32,
    /// The device.
    pub device: Device,
    /// The numeric classes that it offers.
    pub classes: DeviceClasses,
    /// Peak bytes of memory by workload.
    pub peaks: BTreeMap<Workload, u64>,
    /// Workloads for which the memory wasn't enough.
    pub ran_out: BTreeSet<Workload>,
    /// Workloads that its engines have refused as unsupported.
    pub unsupported: BTreeSet<Workload>,
}

impl Session {
    /// Takes an inventory in. True where the devices or their measurements have changed. The number of slots comes with
    /// the demand.
    pub fn set_inventory(&mut self, inventory: &Inventory) -> bool {
        let cached = inventory.cached.iter().copied().collect();
        if self.cached != cached {
            self.cached = cached;
            self.shards.clear();
        }
        self.links = inventory.links;
        (self.cache, self.disk_is_low) = (inventory.cache, inventory.disk_is_low);
        let devices = inventory.devices.get(..MAX_DEVICES).unwrap_or(&inventory.devices);
        let known = |device: &Device| {
            self.devices.get(&device.name).is_some_and(|slots| slots.device == *device)
        };
        if devices.len() == self.devices.len() && devices.iter().all(known) {
            return false;
        }
        let count = |name: &str| self.devices.get(name).map_or(0, |slots| slots.count);
        let devices = devices.iter().map(|device| {
            let count = count(&device.name);
            (device.name.clone(), DeviceSlots::of(device.clone(), count))
        });
        self.devices = devices.collect();
        true
    }

    /// By device: the memory, the engines, and the workloads that these have refused.
    pub fn capabilities(&self) -> Vec<(Option<u64>, Vec<Engine>, Vec<Workload>)> {
        let devices = self.devices.values().map(|slots| &slots.device);
        devices.map(|of| (of.memory, of.engines.clone(), of.unsupported.clone())).collect()
    }

    /// Takes the demand of its slots in. True where a slot has become idle and none was.
    pub fn set_demand(&mut self, demand: &[Demand], now: UnixMillis) -> bool {
        let idle = demand.iter().any(|demand| demand.idle > 0);
        let is_new = idle && self.idle_since.is_none();
        self.idle_since = idle.then(|| self.idle_since.unwrap_or(now));
        self.has_asked = true;
        self.slots = demand.iter().fold(0, |all, demand| all.saturating_add(demand.slots));
        for slots in self.devices.values_mut() {
            slots.count = 0;
        }
        for demand in demand {
            if let Some(slots) = self.devices.get_mut(&demand.device) {
                slots.count = demand.slots;
            }
        }
        is_new
    }

    /// Has the host said that it ends? One with slots, or whose disk is low, is there.
    pub const fn has_stopped(&self) -> bool {
        self.has_asked && self.slots == 0 && !self.disk_is_low
    }

    /// Finds the shards of open jobs in its cache, where that isn't known yet.
    pub fn index_cache(&mut self, jobs: &BTreeMap<JobId, Job>) {
        self.shards.retain(|job, _| jobs.get(job).is_some_and(Job::is_open));
        let cached = &self.cached;
        for job in jobs.values().filter(|job| job.is_open()) {
            self.shards.entry(job.id).or_insert_with(|| {
                let train = job.data.train.iter();
                train.map(|shard| cached.contains(&shard.blob.sha256)).collect()
            });
        }
    }

    /// By shard of a job, is it in the cache? Where that is indexed.
    #[must_use]
    pub fn shards_of(&self, job: JobId) -> Option<&[bool]> {
        self.shards.get(&job).map(Vec::as_slice)
    }

    /// Is a blob in its cache?
    #[must_use]
    pub fn has_blob(&self, blob: &Digest) -> bool {
        self.cached.contains(blob)
    }

    /// A shard of a job will be in its cache.
    pub fn will_have(&mut self, job: JobId, train: &[Shard], blob: Digest) {
        if self.cached.insert(blob) {
            // Other jobs may have the same one.
            self.shards.retain(|other, _| *other == job);
            let known = self.shards.values_mut().flatten().zip(train);
            known.filter(|(_, shard)| shard.blob.sha256 == blob).for_each(|(has, _)| *has = true);
        }
    }

    /// Is the host known well enough to be given work?
    #[must_use]
    pub fn is_known(&self) -> bool {
        !self.devices.is_empty()
    }

    /// The device of that name.
    #[must_use]
    pub fn device(&self, name: &str) -> Option<&Device> {
        self.devices.get(name).map(|slots| &slots.device)
    }

    /// The host's devices.
    pub fn devices(&self) -> impl Iterator<Item = &Device> + Clone {
        self.devices.values().map(|slots| &slots.device)
    }
}

impl DeviceSlots {
    fn of(mut device: Device, count: u32) -> Self {
        device.measured.truncate(MAX_MEASURED);
        device.unsupported.truncate(MAX_MEASURED);
        let measured = || device.measured.iter();
        let peak = |of: &Measured| Some((of.workload.clone(), of.peak_memory?));
        let ran_out = measured().filter(|of| of.out_of_memory).map(|of| of.workload.clone());
        Self {
            count,
            peaks: measured().filter_map(peak).collect(),
            ran_out: ran_out.collect(),
            unsupported: device.unsupported.iter().cloned().collect(),
            classes: DeviceClasses::of(&device),
            device,
        }
    }

    /// The device's name for estimates on a host, computing in that class.
    pub fn key(&self, host: HostId, class: Digest) -> DeviceKey<'_> {
        let Device { name, flops, .. } = &self.device;
        DeviceKey { host, device: name, flops: *flops, speed: self.classes.speed(class) }
    }

    /// The instruction set of a class that it offers, where it names one.
    pub fn instructions(&self, class: Digest) -> Option<&str> {
        let offered = self.device.classes.iter().find(|offered| offered.numeric_class == class);
        offered.map(|offered| offered.instructions.as_str())
    }
}

//! Which hosts keep the shards of a job that fixes the number of replicas.

use crate::{
    data::{ReplicaHost, ReplicaMap, replica_class},
    hosts::{DeviceClasses, DevicePool},
    schedule::Eligibility,
};
use sojourn_protocol::{
    digest::{BlobRef, Digest},
    ids::{HostId, ShardId},
    quantity::to_usize,
    unit::shard_index,
};
use sojourn_state::{Job, Trial};
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

impl<'a> Eligibility<'a> {
    /// Assigns a job's shards to the hosts in session that don't cool down.
    pub fn assign_replicas(&self, job: &Job, copies: u32, mut replicas: ReplicaMap) -> ReplicaMap {
        let ids: BTreeMap<Digest, ShardId> = job
            .data
            .train
            .iter()
            .map(|shard| shard.blob.sha256)
            .zip((0u32..).map(ShardId))
            .collect();
        let mut candidates: BTreeMap<Option<Digest>, Vec<ReplicaHost>> = BTreeMap::new();
        let kept = self.kept_classes(job);
        let running = job.trials.iter().filter(|trial| trial.is_running());
        let models = running.map(|trial| trial.context.config.model.name()).collect();
        let fleet = self.hosts.fleet().hosts();
        let takes =
            |host| self.hosts.cooldown(host).is_none() && self.lends_disk_for_all_hops(job, host);
        for (host, pools) in fleet.filter(|(host, _)| takes(*host)) {
            let cached = self.hosts.session(host).map(|session| &session.cached);
            let cached = cached.into_iter().flatten().filter_map(|blob| ids.get(blob)).copied();
            let cached: BTreeSet<ShardId> = cached.collect();
            let mut speeds: BTreeMap<Option<Digest>, u64> = BTreeMap::new();
            for pool in pools.iter().filter(|pool| self.fits_all_trials(job, &models, host, pool)) {
                for class in self.replica_classes(job, &kept, pool) {
                    *speeds.entry(class).or_default() += pool.speed;
                }
            }
            let room = self.free_cache(job, host);
            for (class, speed) in speeds {
                let candidate = ReplicaHost { host, speed, room, cached: cached.clone() };
                candidates.entry(class).or_default().push(candidate);
            }
        }
        for (class, candidates) in &mut candidates {
            candidates.sort_by_key(|of| (Reverse(of.speed), of.host));
            if let Some(most) = job.spec.placement.max_hosts {
                candidates.truncate(to_usize(most));
            }
            replicas.assign(*class, &job.data.train, copies, candidates);
        }
        replicas.keep(&candidates.into_keys().collect());
        replicas
    }

    /// Bytes of a job's shards that fit a host's cache beside its replicas for other jobs and one checkpoint. `None`
    /// where no limit is known.
    fn free_cache(&self, job: &Job, host: HostId) -> Option<u64> {
        let cache = self.hosts.session(host)?.cache?;
        let replicas = self.data.all_replicas().filter(|(other, _)| *other != job.id);
        let kept = replicas.filter_map(|(other, replicas)| {
            let train = &self.state.jobs.get(&other)?.data.train;
            let shards = replicas.all_of(host).filter_map(|shard| train.get(shard_index(shard)));
            Some(shards.map(|shard| shard.blob.bytes).sum::<u64>())
        });
        let checkpoint = job.trials.iter().map(|trial| trial.checkpoint_bytes).max().unwrap_or(0);
        Some(kept.fold(cache.saturating_sub(checkpoint), u64::saturating_sub))
    }

    /// A shard for which no host has room, of a job that fixes its replicas.
    pub fn unplaced_shard(&self, job: &Job, trial: &Trial) -> Option<ShardId> {
        let replicas = self.data.replicas(job.id)?;
        let class = self.state.required_class(job, trial).or_else(|| {
            // A trial that hasn't begun may go to any class.
            let reproducible = job.spec.placement.reproducible;
            replicas.first_class().filter(|_| reproducible)
        });
        replicas.unplaced_shard(class)
    }

    /// Could a device train every running trial? One that isn't capable of some would keep shards from them.
    /// `models`: the words of their models.
    fn fits_all_trials(
        &self,
        job: &Job,
        models: &BTreeSet<&str>,
        host: HostId,
        pool: &DevicePool,
    ) -> bool {
        let session = self.hosts.session(host);
        let Some(slots) = session.and_then(|session| session.devices.get(&pool.device)) else {
            return false;
        };
        let unlimited = slots.device.memory.is_none()
            && slots.ran_out.is_empty()
            && slots.unsupported.is_empty();
        let mut running = job.trials.iter().filter(|trial| trial.is_running());
        models.iter().all(|model| slots.device.trains(model))
            && (unlimited || running.all(|trial| self.is_capable(slots, trial)))
    }

    /// May a host train this shard on a device of these classes? One that keeps it for a class of the device has its bytes.
    pub fn keeps_replica(
        &self,
        job: &Job,
        classes: &DeviceClasses,
        shard: ShardId,
        host: HostId,
    ) -> bool {
        let replicas = self.data.replicas(job.id);
        replicas.is_none_or(|replicas| {
            let mut classes = classes.iter().map(|of| replica_class(job, of.class));
            classes.any(|class| replicas.keeps(class, shard, host))
        })
    }

    /// Does a host lend the disk for the hops of every running trial? One that doesn't trains none of them, whatever shards fit.
    fn lends_disk_for_all_hops(&self, job: &Job, host: HostId) -> bool {
        let running = job.trials.iter().filter(|trial| trial.is_running());
        let largest = running.max_by_key(|trial| trial.checkpoint_bytes);
        largest.is_none_or(|trial| self.lends_disk_for_hops(job, trial, host))
    }

    /// The numeric classes that running trials of a job are kept in.
    fn kept_classes(&self, job: &Job) -> BTreeSet<Digest> {
        let running = job.trials.iter().filter(|trial| trial.is_running());
        running.filter_map(|trial| self.state.required_class(job, trial)).collect()
    }

    /// The classes for which a device keeps shards: the one that it trains new trials in, and those of trials that it may
    /// have to go on with. `kept`: the classes of running trials.
    fn replica_classes(
        &self,
        job: &Job,
        kept: &BTreeSet<Digest>,
        pool: &DevicePool,
    ) -> BTreeSet<Option<Digest>> {
        let own = Some(self.cost.class_for(job, &pool.classes));
        let own = own.filter(|class| self.cost.is_proved(job, *class));
        let offered = kept.iter().copied().filter(|class| pool.classes.offers(*class));
        offered.chain(own).map(|class| replica_class(job, class)).collect()
    }

    /// Does the job fix where its shards are kept?
    pub fn has_replicas(&self, job: &Job) -> bool {
        self.data.has_replicas(job.id)
    }

    /// Shards that a host is to keep and doesn't have.
    pub fn missing_replicas(&self, job: &Job, host: HostId) -> Vec<BlobRef> {
        let Some(replicas) = self.data.replicas(job.id) else { return Vec::new() };
        let cached = self.hosts.session(host).map(|session| &session.cached);
        let pools = self.hosts.fleet().pools(host).iter();
        let trials = self.kept_classes(job);
        let classes: BTreeSet<_> =
            pools.flat_map(|pool| self.replica_classes(job, &trials, pool)).collect();
        let kept = classes.into_iter().flat_map(|class| replicas.of(class, host));
        let blobs = kept.filter_map(|shard| job.data.train.get(shard_index(*shard)));
        let blobs = blobs.map(|shard| shard.blob);
        blobs.filter(|blob| cached.is_none_or(|has| !has.contains(&blob.sha256))).collect()
    }
}

//! Shards of jobs that fix their replicas find homes, anew whenever hosts come and go.

use crate::{
    core::Core,
    schedule::{FleetPlace, Homes, Keeper},
    state::{Job, Trial},
};
use sojourn_protocol::{
    digest::{BlobRef, Digest},
    ids::{HostId, JobId, ShardId},
    spec::Replicas,
    unit::shard_index,
};
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

impl Core {
    /// Assigns homes where the fleet has changed, and to jobs that have none yet.
    pub(crate) fn renew_homes(&mut self) {
        let fleet = self.soft.schedule.fleet.version();
        let resting = self.soft.resting.keys();
        let housed = &self.soft.schedule.housed;
        let changed = housed.0 != fleet || !housed.1.iter().eq(resting.clone());
        if changed {
            self.soft.schedule.housed = (fleet, resting.copied().collect());
        }
        let ranked = self.soft.schedule.ranks.keys();
        let due = ranked.filter_map(|job| {
            let job = self.state.jobs.get(job)?;
            let Replicas::Fixed(copies) = job.spec.placement.replicas else { return None };
            (changed || !self.soft.schedule.homes.contains_key(&job.id)).then_some((job.id, copies))
        });
        let due: Vec<(JobId, u32)> = due.collect();
        for (job, copies) in due {
            let before = self.soft.schedule.homes.remove(&job).unwrap_or_default();
            let homes = self.assign_homes(job, copies, before);
            self.soft.schedule.homes.insert(job, homes);
            self.soft.work_changed = true;
            self.soft.rehoused = true;
        }
        let ranks = &self.soft.schedule.ranks;
        self.soft.schedule.homes.retain(|job, _| ranks.contains_key(job));
    }

    fn assign_homes(&self, job: JobId, copies: u32, mut homes: Homes) -> Homes {
        let Some(job) = self.state.jobs.get(&job) else { return homes };
        let ids: BTreeMap<Digest, ShardId> = job
            .data
            .train
            .iter()
            .map(|shard| shard.blob.sha256)
            .zip((0u32..).map(ShardId))
            .collect();
        let mut keepers: BTreeMap<Option<Digest>, Vec<Keeper>> = BTreeMap::new();
        let fleet = self.soft.schedule.fleet.hosts();
        for (host, places) in fleet.filter(|(host, _)| !self.soft.resting.contains_key(host)) {
            let cached = self.soft.contacts.get(&host).map(|contact| &contact.cached);
            let cached = cached.into_iter().flatten().filter_map(|blob| ids.get(blob)).copied();
            let cached: BTreeSet<ShardId> = cached.collect();
            let mut speeds: BTreeMap<Option<Digest>, u64> = BTreeMap::new();
            for place in places.iter().filter(|place| self.has_room_for_all(job, host, place)) {
                *speeds.entry(group(job, place.class)).or_default() += place.speed;
            }
            let room = self.room_for(job, host);
            for (class, speed) in speeds {
                let keeper = Keeper { host, speed, room, cached: cached.clone() };
                keepers.entry(class).or_default().push(keeper);
            }
        }
        for (class, keepers) in &mut keepers {
            keepers.sort_by_key(|keeper| (Reverse(keeper.speed), keeper.host));
            if let Some(most) = job.spec.placement.max_hosts {
                keepers.truncate(usize::try_from(most).unwrap_or(usize::MAX));
            }
            homes.assign(*class, &job.data.train, copies, keepers);
        }
        homes.keep(&keepers.into_keys().collect());
        homes
    }

    /// Bytes of a job's shards for which a host's cache has room, beside those that it keeps of other jobs and the
    /// checkpoint of a unit.
    fn room_for(&self, job: &Job, host: HostId) -> Option<u64> {
        let cache = self.soft.contacts.get(&host)?.cache?;
        let homes = self.soft.schedule.homes.iter().filter(|(other, _)| **other != job.id);
        let kept = homes.filter_map(|(other, homes)| {
            let train = &self.state.jobs.get(other)?.data.train;
            let shards = homes.all_of(host).filter_map(|shard| train.get(shard_index(shard)));
            Some(shards.map(|shard| shard.blob.bytes).sum::<u64>())
        });
        let checkpoint = job.trials.iter().map(|trial| trial.checkpoint_bytes).max().unwrap_or(0);
        Some(kept.fold(cache.saturating_sub(checkpoint), u64::saturating_sub))
    }

    /// A shard that no host has the room to keep, of a job that fixes its replicas.
    pub(crate) fn homeless(&self, job: &Job, trial: &Trial) -> Option<ShardId> {
        let homes = self.soft.schedule.homes.get(&job.id)?;
        let class = self.kept_class(job, trial).or_else(|| {
            // One that hasn't begun may go to any class that is there.
            let reproducible = job.spec.placement.reproducible;
            homes.first_class().filter(|_| reproducible)
        });
        homes.homeless(class)
    }

    /// Could a place train every trial that is left? One that lacks the memory for some would keep shards from
    /// them.
    fn has_room_for_all(&self, job: &Job, host: HostId, place: &FleetPlace) -> bool {
        let contact = self.soft.contacts.get(&host);
        let Some(slots) = contact.and_then(|contact| contact.devices.get(&place.device)) else {
            return false;
        };
        let unlimited = slots.device.memory.is_none() && slots.ran_out.is_empty();
        let mut running = job.trials.iter().filter(|trial| trial.is_running());
        unlimited || running.all(|trial| self.has_room(slots, trial))
    }

    /// May a host train this shard on a device of this class?
    pub(crate) fn is_home(&self, job: &Job, class: Digest, shard: ShardId, host: HostId) -> bool {
        let homes = self.soft.schedule.homes.get(&job.id);
        homes.is_none_or(|homes| homes.keeps(group(job, class), shard, host))
    }

    /// Does the job fix where its shards are kept?
    pub(crate) fn has_homes(&self, job: &Job) -> bool {
        self.soft.schedule.homes.contains_key(&job.id)
    }

    /// Tells hosts that wait of shards that have become theirs to keep, so that they don't fetch them only when
    /// one of them is needed.
    pub(crate) fn tell_new_homes(&mut self) {
        if !std::mem::take(&mut self.soft.rehoused) {
            return;
        }
        let housed = self.soft.schedule.homes.keys().filter_map(|job| self.state.jobs.get(job));
        let housed: Vec<&Job> = housed.filter(|job| job.is_open()).collect();
        let lacks = |host: &HostId| housed.iter().any(|job| !self.to_house(job, *host).is_empty());
        let hosts: Vec<HostId> = self.soft.parked.fastest().filter(lacks).collect();
        for host in hosts {
            let fetch = self.fetch_ahead(host);
            if !fetch.is_empty() {
                self.answer_with(host, fetch);
            }
        }
    }

    /// Shards that a host is to keep and doesn't have.
    pub(crate) fn to_house(&self, job: &Job, host: HostId) -> Vec<BlobRef> {
        let Some(homes) = self.soft.schedule.homes.get(&job.id) else { return Vec::new() };
        let cached = self.soft.contacts.get(&host).map(|contact| &contact.cached);
        let places = self.soft.schedule.fleet.places(host).iter();
        let classes: BTreeSet<_> = places.map(|place| group(job, place.class)).collect();
        let kept = classes.into_iter().flat_map(|class| homes.of(class, host));
        let blobs = kept.filter_map(|shard| job.data.train.get(shard_index(*shard)));
        let blobs = blobs.map(|shard| shard.blob);
        blobs.filter(|blob| cached.is_none_or(|has| !has.contains(&blob.sha256))).collect()
    }
}

/// The class whose hosts keep all of a job's shards among them.
pub(super) fn group(job: &Job, class: Digest) -> Option<Digest> {
    job.spec.placement.reproducible.then_some(class)
}

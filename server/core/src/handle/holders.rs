//! Shards that must be fetched, and hosts that have them: what a fetch costs, and who needs none.

use super::fit::Place;
use crate::{
    core::Core,
    schedule::takes,
    state::{Job, Trial},
};
use sojourn_protocol::{
    digest::Digest,
    ids::{HostId, ShardId},
    unit::shard_index,
};
use sojourn_workgen::Sooner;
use std::collections::BTreeSet;

/// Hosts that are looked at, the fastest of those that there are.
const LOOKED_AT: usize = 64;
/// Smaller shards are fetched by whoever is fastest. Bytes.
const SMALL: u64 = 1 << 20;

impl Core {
    /// Microseconds until a host would have fetched a shard of a job. Twice as many where one that it needs again
    /// would have to go for it: that is fetched again then.
    pub(crate) fn fetch_of(&self, job: &Job, host: HostId, shard: ShardId) -> u64 {
        let Some(shard) = job.data.train.get(shard_index(shard)) else { return 0 };
        let micros = self.fetching(host, shard.blob.bytes);
        let times = if self.has_room_beside(job, host, shard.blob.bytes) { 1 } else { 2 };
        micros.saturating_mul(times)
    }

    /// Has a host's cache room for so many bytes, and for the shards of the job there that are needed again?
    fn has_room_beside(&self, job: &Job, host: HostId, bytes: u64) -> bool {
        let Some(contact) = self.soft.contacts.get(&host) else { return true };
        let Some(cache) = contact.cache else { return true };
        let needed = job.data.train.iter().zip(&job.load);
        let needed = needed
            .filter(|(shard, load)| **load > 0 && contact.cached.contains(&shard.blob.sha256));
        needed.fold(bytes, |all, (shard, _)| all.saturating_add(shard.blob.bytes)) <= cache
    }

    /// Other places that hold a shard which the trial may visit next, and would be through with so much work within
    /// so many microseconds. Slower ones don't count: they leave it to faster ones in their turn.
    pub(crate) fn sooner(
        &self,
        job: &Job,
        trial: &Trial,
        beside: Place<'_>,
        (work, within): (u64, u64),
        enough: u32,
    ) -> Option<Sooner> {
        let class = job.spec.placement.reproducible.then(|| beside.class());
        let open = open_blobs(job, trial);
        let fleet = &self.soft.schedule.fleet;
        let own = fleet.places(beside.host).iter();
        let own = own.filter(|place| place.device == beside.slots.device.name);
        let least = own.map(|place| place.speed).max().unwrap_or(0);
        let mut seen = BTreeSet::from([beside.host]);
        let mut sooner: Option<Sooner> = None;
        for host in fleet.by_speed(class, LOOKED_AT) {
            if sooner.is_some_and(|found| found.places >= enough) {
                break;
            }
            let new = seen.insert(host);
            let may = !self.soft.is_resting(host, self.now) && self.may_employ(job, host);
            let Some(contact) = self.soft.contacts.get(&host).filter(|_| new && may) else {
                continue;
            };
            if !open.iter().any(|blob| contact.cached.contains(blob)) {
                continue;
            }
            for place in fleet.places(host).iter().filter(|place| place.speed >= least) {
                let may = contact.devices.get(&place.device).is_some_and(|slots| {
                    self.may_train(job, trial, Place { host, slots, ahead: false })
                        && self.has_room(slots, trial)
                });
                let free = self.slots_free_at(host, &place.device, place.slots);
                let trains = takes(work, place.speed);
                for free_in in
                    free.into_iter().filter(|free| may && free.saturating_add(trains) < within)
                {
                    let all = sooner.get_or_insert(Sooner { places: 0, free_in });
                    all.places += 1;
                    all.free_in = all.free_in.min(free_in);
                }
            }
        }
        sooner
    }

    /// Hosts that wait and hold a shard which the trial may visit next, where shards aren't small.
    pub(crate) fn waiting_holders<'a>(
        &'a self,
        job: &'a Job,
        trial: &'a Trial,
    ) -> impl Iterator<Item = HostId> + 'a {
        let large = job.data.train.first().is_some_and(|shard| shard.blob.bytes > SMALL);
        let open = if large { open_blobs(job, trial) } else { Vec::new() };
        let waiting = self.soft.parked.fastest().take(if large { LOOKED_AT } else { 0 });
        waiting.filter(move |host| {
            let contact = self.soft.contacts.get(host);
            contact.is_some_and(|contact| open.iter().any(|blob| contact.cached.contains(blob)))
        })
    }
}

/// The shards that a trial may visit next.
fn open_blobs(job: &Job, trial: &Trial) -> Vec<Digest> {
    let open = trial.open_chain().open().filter_map(|shard| job.data.train.get(shard_index(shard)));
    open.map(|shard| shard.blob.sha256).collect()
}

//! Data locality: how long a device would fetch, and which other devices have the data already.

use super::eligibility::Eligibility;
use crate::{
    cost::Cost,
    data::DataPlacement,
    hosts::{DeviceRef, Hosts},
    leases::Occupancy,
};
use sojourn_protocol::{
    digest::Digest,
    ids::{HostId, ShardId},
    quantity::{Micros, Speed, Work},
    unit::shard_index,
};
use sojourn_state::{Job, State, Trial};
use sojourn_workgen::EarlierFinish;
use std::collections::BTreeSet;

/// Hosts that are looked at: the fastest.
const MAX_HOSTS: usize = 64;
/// Bytes. Smaller shards are fetched by the fastest host, whoever holds them.
const MIN_LARGE_SHARD: u64 = 1 << 20;

/// Microseconds a lease for a busy slot is granted before the slot is free, in transfers of the checkpoint.
const LEAD_TRANSFERS: u64 = 2;

/// Data locality: the view of fetch times, and of the hosts that hold blobs. It reads, and changes nothing.
#[derive(Clone, Copy)]
pub struct Locality<'a> {
    /// The durable state.
    pub state: &'a State,
    /// Hosts in contact.
    pub hosts: &'a Hosts,
    /// Data on hosts.
    pub data: &'a DataPlacement,
    /// How long things take.
    pub cost: Cost<'a>,
    /// When running work ends.
    pub occupancy: Occupancy<'a>,
    /// Which hosts may do a unit.
    pub eligible: Eligibility<'a>,
}

impl<'a> Locality<'a> {
    /// The view over these parts.
    pub fn new(eligible: Eligibility<'a>) -> Self {
        let Eligibility { state, hosts, data, cost, occupancy, .. } = eligible;
        Self { state, hosts, data, cost, occupancy, eligible }
    }

    /// How long to wait before a busy slot is granted its next unit; `None` if now is right. A unit that waits there can't go elsewhere.
    pub fn grant_delay(&self, job: &Job, at: DeviceRef<'_>) -> Option<Micros> {
        if !at.ahead {
            return None;
        }
        let trial = job.trials.iter().find(|trial| trial.is_running())?;
        let transfer = self.cost.transfer_time(trial, at.host);
        if transfer.is_negligible() {
            return None;
        }
        let slots = self.occupancy.slots_free_at(
            (at.host, &at.slots.device.name),
            at.slots.count,
            job.spec.placement.priority,
        );
        let free_at = slots.into_iter().min()?;
        let lead = transfer.send.saturating_add(transfer.fetch).saturating_mul(LEAD_TRANSFERS);
        free_at.checked_sub(lead).filter(|delay| *delay > 0).map(Micros)
    }

    /// Microseconds until a host would have fetched a shard of a job. Twice as many where another shard would have to be
    /// evicted for it that is needed again: that one is fetched again then.
    pub fn fetch_cost(&self, job: &Job, host: HostId, shard: ShardId) -> u64 {
        let Some(shard) = job.data.train.get(shard_index(shard)) else { return 0 };
        let micros = self.cost.fetch_time(host, shard.blob.bytes);
        let times = if self.has_cache_for(job, host, shard.blob.bytes) { 1 } else { 2 };
        micros.saturating_mul(times)
    }

    /// Has a host's cache room for so many bytes, and for the shards of the job there that are needed again?
    fn has_cache_for(&self, job: &Job, host: HostId, bytes: u64) -> bool {
        let Some(session) = self.hosts.session(host) else { return true };
        let Some(cache) = session.cache else { return true };
        let needed = job.data.train.iter().zip(&job.load);
        let needed = needed
            .filter(|(shard, load)| **load > 0 && session.cached.contains(&shard.blob.sha256));
        needed.fold(bytes, |all, (shard, _)| all.saturating_add(shard.blob.bytes)) <= cache
    }

    /// Other devices that hold a shard which the trial may visit next, and would complete so much work within so many
    /// microseconds. Slower ones don't count: they leave it to faster ones themselves.
    pub fn earlier_finish(
        &self,
        job: &Job,
        trial: &Trial,
        beside: DeviceRef<'_>,
        (work, within): (Work, Micros),
        enough: u32,
    ) -> Option<EarlierFinish> {
        let class = self.state.required_class(job, trial).or_else(|| {
            let reproducible = job.spec.placement.reproducible;
            reproducible.then(|| self.cost.class_for(job, &beside.slots.classes))
        });
        let priority = job.spec.placement.priority;
        let open = open_blobs(job, trial);
        let fleet = &self.hosts.fleet();
        let own = fleet.pools(beside.host).iter();
        let own = own.filter(|pool| pool.device == beside.slots.device.name);
        let least = own.map(|pool| pool.speed).max().unwrap_or(0);
        let mut seen = BTreeSet::from([beside.host]);
        let mut earlier: Option<EarlierFinish> = None;
        for host in fleet.by_speed(class, MAX_HOSTS) {
            if earlier.is_some_and(|found| found.slots >= enough) {
                break;
            }
            let new = seen.insert(host);
            let may = !self.hosts.is_cooling_down(host, self.cost.now)
                && self.state.admits_host(job, host);
            let Some(session) = self.hosts.session(host).filter(|_| new && may) else {
                continue;
            };
            if !open.iter().any(|blob| session.cached.contains(blob)) {
                continue;
            }
            for pool in fleet.pools(host).iter().filter(|pool| pool.speed >= least) {
                let may = session.devices.get(&pool.device).is_some_and(|slots| {
                    self.eligible.may_train(job, trial, DeviceRef { host, slots, ahead: false })
                        && self.eligible.is_capable(slots, trial)
                });
                let free = self.occupancy.slots_free_at((host, &pool.device), pool.slots, priority);
                let trains = work / Speed(pool.speed);
                let free = free.into_iter().map(Micros);
                for free_in in free.filter(|free| may && *free + trains < within) {
                    let all = earlier.get_or_insert(EarlierFinish { slots: 0, free_in });
                    all.slots += 1;
                    all.free_in = all.free_in.min(free_in);
                }
            }
        }
        earlier
    }

    /// Hosts that wait and hold a shard which the trial may visit next, where shards aren't small.
    pub fn waiting_holders(&self, job: &Job, trial: &Trial) -> impl Iterator<Item = HostId> {
        let large = job.data.train.first().is_some_and(|shard| shard.blob.bytes > MIN_LARGE_SHARD);
        let open = if large { open_blobs(job, trial) } else { Vec::new() };
        let waiting =
            self.eligible.waiters.polls().fastest().take(if large { MAX_HOSTS } else { 0 });
        waiting.filter(move |host| {
            let session = self.hosts.session(*host);
            session.is_some_and(|session| open.iter().any(|blob| session.cached.contains(blob)))
        })
    }
}

/// The shards that a trial may visit next.
fn open_blobs(job: &Job, trial: &Trial) -> Vec<Digest> {
    let next = trial.open_chain().next_shards();
    let next = next.filter_map(|shard| job.data.train.get(shard_index(shard)));
    next.map(|shard| shard.blob.sha256).collect()
}

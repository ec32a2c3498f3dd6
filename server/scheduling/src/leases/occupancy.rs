//! When running work ends: the remaining time of a lease, when each slot of a device becomes free, when a trial's next
//! version arrives.

use crate::{
    cost::Cost,
    hosts::Hosts,
    leases::{Deadline, Leases, ProvisionalLease},
};
use sojourn_protocol::{
    ids::{HostId, LeaseId},
    quantity::{mul_div, to_usize},
    time::{Millis, UnixMillis},
    unit::shard_index,
};
use sojourn_state::{Lease, State, Trial};

/// When running work ends. It reads, and changes nothing.
#[derive(Clone, Copy)]
pub struct Occupancy<'a> {
    /// The durable state.
    pub state: &'a State,
    /// Hosts in contact.
    pub hosts: &'a Hosts,
    /// Live leases.
    pub leases: &'a Leases,
    /// The time of the step.
    pub now: UnixMillis,
    /// How long things take.
    pub cost: Cost<'a>,
}

impl<'a> Occupancy<'a> {
    /// The view over these parts.
    pub fn new(cost: Cost<'a>, leases: &'a Leases) -> Self {
        let Cost { state, hosts, now, .. } = cost;
        Self { state, hosts, leases, now, cost }
    }
}

impl Occupancy<'_> {
    /// Microseconds that a live lease's unit should still be in its slot, from when it starts there: by its pace so far,
    /// where that is known.
    pub fn remaining_time(&self, lease: LeaseId) -> u64 {
        let (Some(known), Some(deadline)) =
            (self.state.leases.get(&lease), self.leases.deadline(lease))
        else {
            return 0;
        };
        if deadline.is_finished() {
            return 0;
        }
        let estimate = self.cost.lease_time(lease);
        let to_do = u64::from(deadline.of.saturating_sub(deadline.done));
        if let Some((so_far, gained)) = deadline.pace() {
            let remaining = mul_div(so_far, to_do, gained.into());
            return remaining.saturating_sub(self.elapsed(deadline.done_at));
        }
        if deadline.started && deadline.of > 0 {
            let remaining = mul_div(estimate, to_do, deadline.of.into());
            return remaining.saturating_sub(self.elapsed(deadline.done_at));
        }
        let begun = self.is_next_in_slot(lease).then_some(known.granted_at);
        estimate.saturating_sub(begun.map_or(0, |at| self.elapsed(at)))
    }

    /// Microseconds until a live lease's unit should have ended.
    pub fn ends_in(&self, lease: LeaseId) -> u64 {
        self.begins_in(lease).saturating_add(self.remaining_time(lease))
    }

    /// Microseconds until a live lease's unit should begin: it waits for the units before it, and for its bytes.
    pub fn begins_in(&self, lease: LeaseId) -> u64 {
        let waits = self.leases.deadline(lease).is_some_and(|deadline| !deadline.started);
        if waits { self.queue_time(lease).max(self.fetched_in(lease)) } else { 0 }
    }

    /// Microseconds until each slot of a host's device should be free for a job of this priority. Units that wait there go
    /// to the first free one.
    pub fn slots_free_at(
        &self,
        (host, device): (HostId, &str),
        slots: u32,
        priority: i32,
    ) -> Vec<u64> {
        self.free_after((host, device), slots, priority, |lease| {
            (0, self.occupied_for(lease, priority))
        })
    }

    /// The same for a plan, which has trials follow each other in a slot: a lease begins when its bytes are there, and keeps
    /// its slot until those shards have come for which the cache has no room.
    pub fn planned_slots_free_at(
        &self,
        device: (HostId, &str),
        slots: u32,
        priority: i32,
    ) -> Vec<u64> {
        self.free_after(device, slots, priority, |lease| {
            let occupied = self.occupied_for(lease, priority);
            let begins = if occupied > 0 { self.fetched_in(lease) } else { 0 };
            (begins, occupied.max(self.fetches_for(lease, priority)))
        })
    }

    /// When each slot is free, where a live lease begins at such a time at the earliest, and keeps its slot for so long.
    fn free_after(
        &self,
        (host, device): (HostId, &str),
        slots: u32,
        priority: i32,
        occupied: impl Fn(LeaseId) -> (u64, u64),
    ) -> Vec<u64> {
        let leases = self.leases_on(host, device).map(occupied);
        let mut free = vec![0u64; to_usize(slots)];
        let provisional = self.leases.provisional().of(host).filter(|of| {
            of.lease.device == device && self.state.priority(of.lease.unit.job()) >= priority
        });
        let provisional: Vec<_> = provisional.map(|of| (0, self.provisional_time(of))).collect();
        for (begins, remaining) in leases.chain(provisional) {
            if let Some(first) = free.iter_mut().min() {
                *first = begins.max(*first).saturating_add(remaining);
            }
        }
        free
    }

    /// Microseconds for which a live lease keeps its slot from a job of this priority: of a lease of lower priority only the
    /// hop that runs, as the hops after it give way.
    fn occupied_for(&self, lease: LeaseId, priority: i32) -> u64 {
        let remaining = self.remaining_time(lease);
        let Some(known) = self.state.leases.get(&lease) else { return 0 };
        if self.state.priority(known.unit.job()) >= priority {
            return remaining;
        }
        let gives_way =
            |deadline: &Deadline| !deadline.started || deadline.is_to_stop() || remaining == 0;
        if self.leases.deadline(lease).is_none_or(gives_way) {
            return 0;
        }
        (remaining - 1) % self.hop_time(known).max(1) + 1
    }

    /// Microseconds until a host should have fetched those shards of a live lease for which its cache has no room, since it
    /// got the lease. The unit isn't done before. 0 for a lease of lower priority, which gives way.
    fn fetches_for(&self, lease: LeaseId, priority: i32) -> u64 {
        let Some(lease) = self.state.leases.get(&lease) else { return 0 };
        if self.state.priority(lease.unit.job()) < priority {
            return 0;
        }
        let is_done = self.leases.deadline(lease.id).is_none_or(Deadline::is_finished);
        let session = self.hosts.session(lease.host).filter(|_| !is_done);
        let cache = session.and_then(|session| session.cache);
        let (Some(cache), Some(job)) = (cache, self.state.jobs.get(&lease.unit.job())) else {
            return 0;
        };
        let shards = lease.visits().filter_map(|shard| job.data.train.get(shard_index(shard)));
        let bytes = shards.fold(0_u64, |all, shard| all.saturating_add(shard.blob.bytes));
        let fetches = self.cost.fetch_time(lease.host, bytes.saturating_sub(cache));
        fetches.saturating_sub(self.elapsed(lease.granted_at))
    }

    /// Microseconds of one of a lease's hops, where all take as long.
    pub fn hop_time(&self, lease: &Lease) -> u64 {
        self.cost.lease_time(lease.id).div_ceil(lease.hops())
    }

    /// Microseconds that other leases of the same slots should still take, where one must wait for them.
    pub fn queue_time(&self, lease: LeaseId) -> u64 {
        let Some(known) = self.state.leases.get(&lease) else { return 0 };
        let older = self.leases_on(known.host, &known.device).filter(|other| *other < lease);
        let session = self.hosts.session(known.host);
        let slots = session.and_then(|session| session.devices.get(&known.device));
        let slots = u64::from(slots.map_or(1, |slots| slots.count).max(1));
        let (count, remaining) = older.fold((0u64, 0u64), |(count, remaining), other| {
            (count + 1, remaining.saturating_add(self.remaining_time(other)))
        });
        if count < slots { 0 } else { remaining / slots }
    }

    /// Microseconds that a provisional lease's unit should still be in its slot.
    fn provisional_time(&self, provisional: &ProvisionalLease) -> u64 {
        provisional.takes.saturating_sub(self.elapsed(provisional.lease.granted_at))
    }

    /// Microseconds until a trial's next hop could begin on the host that has it in hand: the running one has ended.
    pub fn next_hop_in(&self, trial: &Trial) -> u64 {
        match self.provisional_of(trial) {
            Some(provisional) => self.provisional_time(provisional),
            // Of two leases of one hop the first that ends counts.
            None => trial.live.iter().map(|lease| self.ends_in(*lease)).min().unwrap_or(0),
        }
    }

    /// Microseconds until a trial's next hop could begin somewhere: the running one has ended, and is uploaded, which takes
    /// `send` from its host.
    pub fn next_version_in(&self, trial: &Trial, send: u64) -> u64 {
        if let Some(provisional) = self.provisional_of(trial) {
            return self.provisional_time(provisional).saturating_add(send);
        }
        trial.live.iter().map(|lease| self.result_in(*lease, send)).min().unwrap_or(0)
    }

    /// Microseconds until the result of a live lease should be at the server, whose upload takes `send`. It waits for the
    /// uploads before it.
    pub fn result_in(&self, lease: LeaseId, send: u64) -> u64 {
        if self.leases.deadline(lease).is_some_and(Deadline::is_finished) {
            return if send > 0 { self.sent_in(lease) } else { 0 };
        }
        let line = self.state.leases.get(&lease).map_or(0, |known| self.line_free_in(known.host));
        self.ends_in(lease).max(if send > 0 { line } else { 0 }).saturating_add(send)
    }

    /// Does no other lease of the same device come before it?
    fn is_next_in_slot(&self, lease: LeaseId) -> bool {
        let Some(known) = self.state.leases.get(&lease) else { return false };
        let older = self.leases_on(known.host, &known.device).filter(|other| *other < lease);
        let session = self.hosts.session(known.host);
        let slots = session.and_then(|session| session.devices.get(&known.device));
        let slots = slots.map_or(1, |slots| slots.count).max(1);
        let running = |other: &LeaseId| {
            self.leases.deadline(*other).is_some_and(|deadline| !deadline.is_finished())
        };
        u32::try_from(older.filter(running).count()).is_ok_and(|older| older < slots)
    }

    /// Live leases of a device, the oldest first.
    pub fn leases_on(&self, host: HostId, device: &str) -> impl Iterator<Item = LeaseId> {
        let live = self.state.hosts.get(&host).map(|host| &host.live);
        let live = live.into_iter().flatten();
        live.copied().filter(move |lease| {
            self.state.leases.get(lease).is_some_and(|lease| lease.device == device)
        })
    }

    pub(super) fn elapsed(&self, since: UnixMillis) -> u64 {
        micros(self.now - since)
    }

    /// Has a device a slot in which nothing runs, as far as its host has reported?
    pub fn has_idle_slot(&self, host: HostId, device: &str) -> bool {
        let session = self.hosts.session(host);
        let slots = session.and_then(|session| session.devices.get(device));
        let running = self.leases_on(host, device).filter(|lease| {
            self.leases.deadline(*lease).is_some_and(|deadline| deadline.is_running())
        });
        slots.is_some_and(|slots| running.count() < to_usize(slots.count))
    }

    /// How many leases the host runs in its slots, as far as it has reported.
    pub fn running_leases(&self, host: HostId) -> usize {
        let Some(host) = self.state.hosts.get(&host) else { return 0 };
        let deadlines = host.live.iter().filter_map(|lease| self.leases.deadline(*lease));
        deadlines.filter(|deadline| deadline.is_running()).count()
    }
}

const fn micros(time: Millis) -> u64 {
    time.0.saturating_mul(1000)
}

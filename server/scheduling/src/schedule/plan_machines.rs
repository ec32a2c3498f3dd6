//! The machines of a plan: one for each slot that a job may have, with what each may train and what it fetches.

use super::{
    depth::Depth, eligibility::Eligibility, plan_request::DeviceId, planner::Planner,
    scheduler::Scheduler,
};
use crate::{
    cost::Cost,
    hosts::{DevicePool, Hosts},
    index::DerivedIndex,
    leases::Occupancy,
};
use sojourn_protocol::{
    digest::Digest,
    ids::{HostId, ShardId},
    quantity::{SaturatingFrom as _, mul_div, to_u64, to_usize},
    time::UnixMillis,
};
use sojourn_state::{Job, State};
use sojourn_workgen::plan::Machine;
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

/// A host of a job that limits its hosts counts as faster by this part of its speed, so that hosts aren't exchanged for
/// nothing.
const INCUMBENT_PART: u64 = 8;

/// A slot: its device, the operations per second that the device reports, and its speed in the class that it works in.
pub(super) type Slot = (DeviceId, (f64, u64));

/// The remaining work of jobs, as a planner sees it. It reads, and changes nothing.
#[derive(Clone, Copy)]
pub struct PlanProblems<'a> {
    /// The durable state.
    pub state: &'a State,
    /// Hosts in contact.
    pub hosts: &'a Hosts,
    /// The derived index.
    pub index: &'a DerivedIndex,
    /// Estimates, plans and fair shares.
    pub planner: &'a Planner,
    /// The time of the step.
    pub now: UnixMillis,
    /// How long things take.
    pub cost: Cost<'a>,
    /// When running work ends.
    pub occupancy: Occupancy<'a>,
    /// Which hosts may do a unit.
    pub eligible: Eligibility<'a>,
    /// Jobs in depth.
    pub depth: Depth<'a>,
}

impl<'a> PlanProblems<'a> {
    /// The view that a wider one has the parts for.
    pub fn of(from: &Scheduler<'a>) -> Self {
        Self {
            state: from.state,
            hosts: from.hosts,
            index: from.index,
            planner: from.planner,
            now: from.now,
            cost: from.cost,
            occupancy: from.occupancy,
            eligible: from.eligible,
            depth: Depth::of(from),
        }
    }
}

impl PlanProblems<'_> {
    /// One machine for each slot that the job may have, and when it is free. Also the numeric classes by which machines
    /// are numbered.
    pub(super) fn plan_machines(&self, job: &Job) -> (Vec<Slot>, Vec<Machine>, Vec<Digest>) {
        let (mut slots, mut machines, mut classes) = (Vec::new(), Vec::new(), Vec::new());
        let begun = self.planned_trials(job).filter_map(|of| self.state.expected_class(job, of));
        let begun: BTreeSet<Digest> = match job.verified_quorum() {
            Some(_) => begun.collect(),
            None => BTreeSet::new(),
        };
        for (host, devices) in self.plan_hosts(job) {
            let session = self.hosts.session(host);
            let line = self.cost.line(host, devices.iter().map(|pool| pool.slots).sum());
            let line_free_at = self.occupancy.line_free_in(host);
            for pool in devices {
                let device = session.and_then(|session| session.device(&pool.device));
                let flops = device.map_or(0.0, |device| device.flops);
                let works_in = self.cost.class_for(job, &pool.classes);
                // No trial may begin there, and none is to go on.
                if !self.cost.is_proved(job, works_in) && !begun.contains(&works_in) {
                    continue;
                }
                let class = number_of(&mut classes, works_in);
                let figures = (flops, pool.classes.speed(works_in));
                let priority = job.spec.placement.priority;
                let free = self.occupancy.planned_slots_free_at(
                    (host, &pool.device),
                    pool.slots,
                    priority,
                );
                for free_at in free {
                    slots.push(((host, pool.device.clone()), figures));
                    machines.push(Machine {
                        free_at,
                        line_free_at,
                        class,
                        line,
                        ..Machine::default()
                    });
                }
            }
        }
        (slots, machines, classes)
    }

    /// The hosts to plan for: all that don't cool down; for a job that limits its hosts the fastest of them.
    fn plan_hosts(&self, job: &Job) -> Vec<(HostId, &[DevicePool])> {
        let fleet = self.hosts.fleet().hosts();
        let mut hosts: Vec<_> =
            fleet.filter(|(host, _)| !self.hosts.is_cooling_down(*host, self.now)).collect();
        if let Some(most) = job.spec.placement.max_hosts {
            let speed = |(host, pools): &(HostId, &[DevicePool])| {
                let speed = pools.iter().map(|pool| pool.speed.saturating_mul(pool.slots.into()));
                let speed = speed.fold(0, u64::saturating_add);
                let is_incumbent = job.hosts.contains_key(host);
                speed.saturating_add(if is_incumbent { speed / INCUMBENT_PART } else { 0 })
            };
            hosts.sort_by_key(|host| (Reverse(speed(host)), host.0));
            hosts.truncate(to_usize(most));
            hosts.sort_by_key(|(host, _)| *host);
        }
        hosts
    }

    /// By slot: is it of a class that isn't proved? Nothing where the job's results aren't verified.
    pub(super) fn unproved_slots(&self, job: &Job, slots: &[Slot]) -> Vec<bool> {
        if job.verified_quorum().is_none() {
            return Vec::new();
        }
        let may_begin = |host: HostId, device: &str| {
            let slots = self.hosts.device(host, device);
            slots.is_some_and(|slots| self.cost.may_begin(job, &slots.classes))
        };
        slots.iter().map(|((host, device), _)| !may_begin(*host, device)).collect()
    }

    /// Slots whose hosts keep a shard.
    pub(super) fn holders(&self, job: &Job, shard: ShardId, slots: &[Slot]) -> Vec<u32> {
        let keeps = |host: HostId, device: &str| {
            let mut pools = self.hosts.fleet().pools(host).iter();
            let pool = pools.find(|pool| pool.device == device);
            pool.is_some_and(|pool| self.eligible.keeps_replica(job, &pool.classes, shard, host))
        };
        let holders = (0u32..).zip(slots).filter(|(_, ((host, device), _))| keeps(*host, device));
        holders.map(|(slot, _)| slot).collect()
    }

    /// By slot: microseconds until its host should have all shards, or as many as its cache has room for.
    pub(super) fn first_fetches(&self, job: &Job, slots: &[Slot]) -> Vec<u64> {
        let mut known: BTreeMap<HostId, u64> = BTreeMap::new();
        let fetches = slots.iter().map(|((host, _), _)| {
            *known.entry(*host).or_insert_with(|| {
                let session = self.hosts.session(*host);
                let is_cached = |blob: &Digest| session.is_some_and(|of| of.cached.contains(blob));
                let lacking = job.data.train.iter().map(|shard| shard.blob);
                let lacking = lacking.filter(|blob| !is_cached(&blob.sha256));
                let bytes = lacking.fold(0_u64, |all, blob| all.saturating_add(blob.bytes));
                let room = session.and_then(|session| session.cache).unwrap_or(u64::MAX);
                self.cost.fetch_time(*host, bytes.min(room))
            })
        });
        fetches.collect()
    }

    /// By slot: microseconds of its host's line for the shards of a hop, where a host trains whole trials.
    ///
    /// A trial that is trained on one host visits all shards there. Where the cache is smaller than they are, most visits
    /// fetch one; the slots of a host share what it fetches.
    pub(super) fn fetches_per_hop(&self, job: &Job, slots: &[Slot]) -> Vec<u64> {
        let shards = &job.data.train;
        let data = shards.iter().fold(0_u64, |all, shard| all.saturating_add(shard.blob.bytes));
        let mean = data / to_u64(shards.len()).max(1);
        let mut counts: BTreeMap<HostId, u64> = BTreeMap::new();
        for ((host, _), _) in slots {
            *counts.entry(*host).or_default() += 1;
        }
        let fetch = slots.iter().map(|((host, _), _)| {
            let cache = self.hosts.session(*host).and_then(|session| session.cache);
            let missing = cache.map_or(0, |cache| data.saturating_sub(cache));
            let fetch = mul_div(self.cost.fetch_time(*host, mean), missing, data.max(1));
            fetch / counts.get(host).copied().unwrap_or(1)
        });
        fetch.collect()
    }
}

/// The number of a class among these, at the end where it is new.
fn number_of(classes: &mut Vec<Digest>, class: Digest) -> u32 {
    let known = classes.iter().position(|other| *other == class);
    u32::saturating_from(known.unwrap_or_else(|| {
        classes.push(class);
        classes.len() - 1
    }))
}

//! Jobs of higher priority: slots that are kept for their next units, and leases of other jobs that give way to them: those
//! that haven't begun are revoked, and running ones of several hops end early.
//!
//! ```text
//!   slot      [ hop, priority 0 ][ hop, priority 50 ]........[ hop, priority 50 ]
//!                                ^                   ^ its result is on its way, and the trial goes on here:
//!   waits     [ hop, priority 0 ]  revoked: it         the slot is kept, for units that end sooner
//!                                  had not begun
//! ```

use super::{assignment::Assignment, scheduler::Scheduler};
use crate::{
    cost::Cost,
    hosts::DeviceRef,
    index::DerivedIndex,
    leases::{Leases, Occupancy},
    waiters::Waiters,
};
use sojourn_protocol::{
    api::{HeldState, WorkRequest},
    ids::{HostId, LeaseId},
    quantity::to_usize,
};
use sojourn_state::{Job, Lease, State, Trial};
use std::cmp::Reverse;

/// Trials of a job that are asked whether they go on in a slot: those with the most work left.
const MAX_TRIALS: usize = 256;
/// Hosts that are asked whether they give up what they haven't begun.
const MAX_HOSTS: usize = 256;

/// A lease that its host hasn't begun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotBegun {
    /// The priority of the lease's job.
    pub priority: i32,
    /// The lease.
    pub lease: LeaseId,
    /// The name of the device that holds it.
    pub device: String,
}

/// Slots and leases that jobs of higher priority get. It reads, and changes nothing.
#[derive(Clone, Copy)]
pub struct Priorities<'a> {
    /// The durable state.
    pub state: &'a State,
    /// Live leases.
    pub leases: &'a Leases,
    /// Requests that wait.
    pub waiters: &'a Waiters,
    /// The derived index.
    pub index: &'a DerivedIndex,
    /// How long things take.
    pub cost: Cost<'a>,
    /// When running work ends.
    pub occupancy: Occupancy<'a>,
}

impl<'a> Priorities<'a> {
    /// The view that a wider one has the parts for.
    pub fn of(from: &Scheduler<'a>) -> Self {
        Self {
            state: from.state,
            leases: from.leases,
            waiters: from.waiters,
            index: from.index,
            cost: from.cost,
            occupancy: from.occupancy,
        }
    }
}

impl Priorities<'_> {
    /// Microseconds that a unit chosen for a job of this priority should take.
    pub(super) fn time_of(&self, assignment: &Assignment, at: DeviceRef<'_>) -> u64 {
        let class = self.state.jobs.get(&assignment.unit.job());
        let class = class.map(|job| self.cost.class_of(job, assignment, at.slots));
        let class = class.unwrap_or(at.slots.device.numeric_class);
        self.cost.unit_time(at.key(class), assignment.unit, &assignment.then)
    }

    /// For how many microseconds a slot is free for a job of this priority: until a trial of a job of higher priority goes
    /// on there, or the hop is due that a plan has for it (`expected`, with the priority of its job). `None`: for any time.
    pub(super) fn free_for(
        &self,
        priority: i32,
        at: DeviceRef<'_>,
        expected: Option<(i32, u64)>,
    ) -> Option<u64> {
        let planned = expected.filter(|(theirs, _)| *theirs > priority).map(|(_, micros)| micros);
        let higher = self.state.jobs.values().filter(|job| {
            job.spec.placement.priority > priority && job.is_open() && job.is_running()
        });
        let mut returning: Vec<u64> = Vec::new();
        for job in higher {
            let Some(remaining) = self.index.remaining(job.id) else { continue };
            let trials = remaining.running().take(MAX_TRIALS);
            let trials = trials.filter_map(|(trial, _)| job.trial(trial));
            returning.extend(trials.filter_map(|trial| self.returns_in(trial, at)));
        }
        let slots = to_usize(at.slots.count);
        let in_slots = self.unfinished_on(at.host, &at.slots.device.name).count();
        // A unit that waits would begin in the slot that such a trial leaves for a moment.
        let is_kept = at.ahead || in_slots + returning.len() >= slots;
        let kept = returning.iter().copied().min().filter(|_| is_kept);
        [planned, kept].into_iter().flatten().min()
    }

    /// Microseconds for which a slot is free before a trial goes on there whose hop that device has in hand: the time that
    /// the result is on its way. `None` where it doesn't go on there, or still runs, and the slot beside it is idle.
    fn returns_in(&self, trial: &Trial, at: DeviceRef<'_>) -> Option<u64> {
        let here = |lease: &Lease| lease.host == at.host && lease.device == at.slots.device.name;
        let lease = self.state.in_hand(trial).next().filter(|lease| here(lease))?;
        let is_in_slot =
            self.leases.deadline(lease.id).is_some_and(|deadline| !deadline.is_finished());
        let goes_on = trial.merging.is_none() && (at.ahead || !is_in_slot);
        goes_on.then(|| {
            let send = self.cost.transfer_time(trial, at.host).send;
            if is_in_slot { send } else { self.occupancy.next_version_in(trial, send) }
        })
    }

    /// Leases that a host said it hasn't begun, of jobs that others come before: those of the lowest priority first, and
    /// the youngest of these.
    pub fn not_begun(&self, host: HostId, request: &WorkRequest) -> Vec<NotBegun> {
        let Some(first) = self.first_supply() else { return Vec::new() };
        let waits = request
            .holding
            .iter()
            .filter(|held| matches!(held.state, HeldState::Waiting | HeldState::Fetching { .. }));
        let mut found: Vec<NotBegun> = waits
            .filter_map(|held| {
                let lease = match self.state.leases.get(&held.lease) {
                    Some(live) => {
                        let deadline = self.leases.deadline(live.id)?;
                        Some(&**live).filter(|_| !deadline.started && !deadline.is_finished())?
                    }
                    None => &self.leases.provisional().get(host, held.lease)?.lease,
                };
                let priority = self.state.priority(lease.unit.job());
                let device = lease.device.clone();
                (lease.host == host && priority < first).then_some(NotBegun {
                    priority,
                    lease: lease.id,
                    device,
                })
            })
            .collect();
        found.sort_by_key(|lease| (lease.priority, Reverse(lease.lease)));
        found
    }

    /// Running leases of a device that should end early: of several hops, with more than one of them to go, while a unit of
    /// higher priority waits for a slot there. Those of the lowest priority come first, of these the ones with the most left.
    pub fn leases_to_shorten(&self, host: HostId, device: &str) -> Vec<LeaseId> {
        let priority = |lease: &Lease| self.state.priority(lease.unit.job());
        let leases = || {
            let known = self.unfinished_on(host, device);
            known.filter_map(|id| Some((self.state.leases.get(&id)?, self.leases.deadline(id)?)))
        };
        let waits = leases().filter(|(_, deadline)| !deadline.started);
        let mut waiting: Vec<i32> = waits.map(|(lease, _)| priority(lease)).collect();
        // As at nearly every request.
        if waiting.is_empty() {
            return Vec::new();
        }
        let mut running = Vec::new();
        for (lease, deadline) in leases().filter(|(_, deadline)| deadline.started) {
            let (id, priority) = (lease.id, priority(lease));
            let remaining = self.occupancy.remaining_time(id);
            let is_long = lease.hops() > 1 && remaining > self.occupancy.hop_time(lease);
            // A slot that is to be free soon is for the first of those that wait.
            if deadline.is_to_stop() || is_long {
                running.push((!deadline.is_to_stop(), priority, Reverse(remaining), id));
            }
        }
        waiting.sort_unstable_by_key(|priority| Reverse(*priority));
        running.sort_unstable();
        let pairs = waiting.into_iter().zip(running);
        let lower = pairs.filter(|(waits, (_, runs, ..))| runs < waits);
        lower.map(|(_, (.., lease))| lease).collect()
    }

    /// The highest priority of a job that has units to hand out.
    fn first_supply(&self) -> Option<i32> {
        let supplied = self.state.jobs.values().filter(|job| job.supply() > 0);
        supplied.map(|job| job.spec.placement.priority).max()
    }

    /// Hosts that have all that they want, and among it leases that should give way: those whose slots are free soonest
    /// come first.
    pub fn hosts_to_yield(&self) -> Vec<HostId> {
        let Some(first) = self.first_supply() else { return Vec::new() };
        let is_lower = |job: &Job| job.spec.placement.priority < first && job.is_open();
        if !self.state.jobs.values().any(is_lower) {
            return Vec::new();
        }
        let polls = self.waiters.polls();
        let hosts = polls.supplied().take(MAX_HOSTS).filter_map(|host| {
            let leases = self.not_begun(host, polls.request(host)?);
            let free = leases.iter().map(|lease| self.slot_free_in(host, lease));
            Some((free.min()?, host))
        });
        let mut hosts: Vec<(u64, HostId)> = hosts.collect();
        hosts.sort_unstable();
        hosts.into_iter().map(|(_, host)| host).collect()
    }

    /// Microseconds until a lease that hasn't begun could begin.
    fn slot_free_in(&self, host: HostId, lease: &NotBegun) -> u64 {
        let running = self
            .unfinished_on(host, &lease.device)
            .filter(|id| self.leases.deadline(*id).is_some_and(|deadline| deadline.started));
        running.map(|id| self.occupancy.remaining_time(id)).min().unwrap_or(0)
    }

    /// Live leases of a device that are or will be in its slots.
    fn unfinished_on<'b>(
        &'b self,
        host: HostId,
        device: &'b str,
    ) -> impl Iterator<Item = LeaseId> + 'b {
        let unfinished =
            |lease: &LeaseId| self.leases.deadline(*lease).is_some_and(|of| !of.is_finished());
        self.occupancy.leases_on(host, device).filter(unfinished)
    }
}

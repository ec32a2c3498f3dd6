//! Trials that stay on hosts: which host keeps one, and which is loaded less.
//!
//! A trial stays on the host that trained its first hop, until it moves (`residency/`). Its host keeps it from others while it is in
//! contact and may train it: where it isn't, any host goes on with the trial, which stays there from then on. So does a host that has room
//! for the trial where its own has none, or has left it waiting for long: no slot is left idle for a trial that stays elsewhere.

use super::{eligibility::Eligibility, scheduler::Scheduler};
use crate::{hosts::Hosts, index::DerivedIndex, leases::Occupancy, waiters::Waiters};
use sojourn_protocol::{
    ids::HostId,
    quantity::{SaturatingFrom as _, mul_div},
    time::{Millis, UnixMillis},
};
use sojourn_state::{Host, Job, State, Trial};
use sojourn_workgen::residency::HostLoad;

/// Waiting hosts that are looked at for ones that are loaded less.
const MAX_LOOKED_AT: usize = 256;
/// For so long at most, from when it can go on, a trial that stays nowhere is left to a host that is loaded less.
pub(super) const MAX_LEFT: Millis = Millis::from_secs(1);
/// A trial that can go on and that its own host has left waiting for so long may go to a host with room.
const MAX_KEPT: Millis = Millis::from_secs(30);
/// Loads are compared in thousandths of the mean host's capacity.
const MEAN: u64 = 1000;

/// The hosts on which trials stay. It reads, and changes nothing.
#[derive(Clone, Copy)]
pub struct Homes<'a> {
    /// The durable state.
    pub state: &'a State,
    /// Hosts in contact.
    pub hosts: &'a Hosts,
    /// Requests that wait.
    pub waiters: &'a Waiters,
    /// The derived index.
    pub index: &'a DerivedIndex,
    /// The time of the step.
    pub now: UnixMillis,
    /// When running work ends.
    pub occupancy: Occupancy<'a>,
    /// Which hosts may do a unit.
    pub eligible: Eligibility<'a>,
}

impl<'a> Homes<'a> {
    /// The view that a wider one has the parts for.
    pub fn of(from: &Scheduler<'a>) -> Self {
        Self {
            state: from.state,
            hosts: from.hosts,
            waiters: from.waiters,
            index: from.index,
            now: from.now,
            occupancy: from.occupancy,
            eligible: from.eligible,
        }
    }
}

impl Homes<'_> {
    /// Could a trial stay on a host: is that in contact, does it take work, and could it train the trial?
    pub fn may_stay(&self, job: &Job, trial: &Trial, host: HostId) -> bool {
        self.eligible.is_live(host)
            && self.state.hosts.get(&host).is_some_and(Host::is_admitted)
            && !self.hosts.is_cooling_down(host, self.now)
            && self.hosts.leaves_at(self.state, host).is_none()
            && self.state.admits_host(job, host)
            && self.eligible.lends_disk_for_hops(job, trial, host)
            && self.eligible.has_device_for_hops(job, trial, host)
            && self.eligible.may_begin_on(job, trial, host)
            && !trial.hop_failures().contains_key(&host)
    }

    /// Is a trial left to the host on which it stays, rather than trained by another one? `waited`: since when it can go on.
    pub fn is_kept_at_home(&self, job: &Job, trial: &Trial, host: HostId, waited: Millis) -> bool {
        let Some(home) = trial.home().filter(|home| *home != host) else { return false };
        let is_crowded = self.residents_on(home) > self.slots_for(job, trial, home);
        let may_leave = is_crowded || waited >= MAX_KEPT;
        !(may_leave && self.has_room(job, trial, host)) && self.may_stay(job, trial, home)
    }

    /// Has a host a slot for a trial that would come to stay there?
    pub fn has_room(&self, job: &Job, trial: &Trial, host: HostId) -> bool {
        let running = u32::saturating_from(self.occupancy.running_leases(host));
        self.residents_on(host).max(running) < self.slots_for(job, trial, host)
    }

    fn residents_on(&self, host: HostId) -> u32 {
        self.index.residents().on(host).into_iter().sum()
    }

    /// The slots of a host's devices that could train a trial.
    fn slots_for(&self, job: &Job, trial: &Trial, host: HostId) -> u32 {
        let kept = self.state.required_class(job, trial);
        let devices =
            self.hosts.session(host).into_iter().flat_map(|session| session.devices.values());
        let could = devices.filter(|slots| {
            self.eligible.may_train_on(job, kept, slots) && self.eligible.is_capable(slots, trial)
        });
        could.map(|slots| slots.count).sum()
    }

    /// The capacity of a host beside that of the mean one, which is 1.
    pub fn capacity_of(&self, host: HostId) -> f64 {
        let fleet = self.hosts.fleet();
        let own = fleet.capacity_of(host);
        let hosts = u64::saturating_from(fleet.count());
        let beside = mul_div(own.saturating_mul(hosts), MEAN, fleet.capacity().max(1));
        f64::from(u32::saturating_from(beside.max(1))) / f64::from(u32::saturating_from(MEAN))
    }

    /// The trials that stay on a host, beside its capacity; it isn't said how busy it is, nor whether it takes another.
    pub fn load_of(&self, host: HostId) -> HostLoad {
        HostLoad {
            host,
            trials: self.index.residents().on(host),
            capacity: self.capacity_of(host),
            busy: 0.0,
            takes: false,
        }
    }

    /// The share of a host's slots that are in use.
    pub fn busy_of(&self, host: HostId) -> f64 {
        let running = f64::from(u32::saturating_from(self.occupancy.running_leases(host)));
        running / f64::from(self.all_slots(host).max(1))
    }

    fn all_slots(&self, host: HostId) -> u32 {
        self.hosts.fleet().pools(host).iter().map(|pool| pool.slots).sum()
    }

    /// Hosts with idle slots that wait for work and are loaded less than this one, in jobs whose trials stay on hosts.
    pub(super) fn lighter_hosts(&self, job: &Job, host: HostId) -> Vec<HostId> {
        if !job.spec.placement.residency.keeps_trials() {
            return Vec::new();
        }
        let own = self.load_of(host).score();
        let polls = self.waiters.polls();
        let waiting = polls.fastest().take(MAX_LOOKED_AT).filter(|other| *other != host);
        let is_idle = |other: &HostId| polls.demand(*other).iter().any(|demand| demand.idle > 0);
        let lighter = |other: &HostId| self.load_of(*other).score() < own;
        waiting.filter(is_idle).filter(lighter).collect()
    }
}

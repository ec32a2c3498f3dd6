//! Trials that stay on hosts: which host keeps one, and which is loaded less.
//!
//! A trial stays on the host that trained its first hop, until it moves (`residency/`). Its host keeps it from others while it is in
//! contact and may train it: where it isn't, any host goes on with the trial, which stays there from then on. So does a host with room
//! where the trial's own has more of them than slots: then a trial that stays would leave a slot idle.

use super::scheduler::Scheduler;
use crate::state::{Job, Trial};
use sojourn_protocol::{
    ids::HostId,
    quantity::{SaturatingFrom as _, mul_div},
    time::Millis,
};
use sojourn_workgen::residency::HostLoad;

/// Waiting hosts that are looked at for ones that are loaded less.
const MAX_LOOKED_AT: usize = 256;
/// For so long at most a trial that hasn't begun is left to a host that is loaded less.
pub(super) const MAX_LEFT: Millis = Millis::from_secs(1);
/// Loads are compared in thousandths of the mean host's capacity.
const MEAN: u64 = 1000;

impl Scheduler<'_> {
    /// Could a trial stay on a host: is that in contact, does it take work, and could it train the trial?
    pub(crate) fn may_stay(&self, job: &Job, trial: &Trial, host: HostId) -> bool {
        let class = self.state.required_class(job, trial);
        self.is_live(host)
            && !self.hosts.is_cooling_down(host, self.now)
            && self.hosts.leaves_at(self.state, host).is_none()
            && self.state.admits_host(job, host)
            && self.lends_disk_for_hops(job, trial, host)
            && self.has_device_for(trial, class, host)
            && !trial.hop_failures().contains_key(&host)
    }

    /// Is a trial left to the host on which it stays, rather than trained by another one?
    pub(crate) fn is_kept_at_home(&self, job: &Job, trial: &Trial, host: HostId) -> bool {
        let Some(home) = trial.home().filter(|home| *home != host) else { return false };
        let is_crowded = self.residents_on(home) > self.slots_of(home);
        let has_room = self.residents_on(host) < self.slots_of(host);
        !(is_crowded && has_room) && self.may_stay(job, trial, home)
    }

    /// Has a host a slot for another trial that stays there?
    pub(crate) fn has_room(&self, host: HostId) -> bool {
        let running = u32::saturating_from(self.running_leases(host));
        self.residents_on(host).max(running) < self.slots_of(host)
    }

    fn residents_on(&self, host: HostId) -> u32 {
        self.index.residents().on(host).into_iter().sum()
    }

    fn slots_of(&self, host: HostId) -> u32 {
        let pools = self.hosts.fleet().pools(host);
        pools.iter().map(|pool| pool.slots).sum()
    }

    /// The capacity of a host beside that of the mean one, which is 1.
    pub(crate) fn capacity_of(&self, host: HostId) -> f64 {
        let fleet = self.hosts.fleet();
        let hosts = u64::saturating_from(fleet.hosts().count());
        let own = fleet.pools(host).iter().map(|pool| pool.speed.saturating_mul(pool.slots.into()));
        let beside = mul_div(own.sum::<u64>().saturating_mul(hosts), MEAN, fleet.capacity().max(1));
        f64::from(u32::saturating_from(beside.max(1))) / f64::from(u32::saturating_from(MEAN))
    }

    /// The trials that stay on a host, beside its capacity.
    pub(crate) fn load_of(&self, host: HostId, takes: bool) -> HostLoad {
        let slots = f64::from(self.slots_of(host).max(1));
        let running = f64::from(u32::saturating_from(self.running_leases(host)));
        HostLoad {
            host,
            trials: self.index.residents().on(host),
            capacity: self.capacity_of(host),
            busy: running / slots,
            takes,
        }
    }

    /// Hosts with idle slots that wait for work and are loaded less than this one, in jobs whose trials stay on hosts.
    pub(super) fn lighter_hosts(&self, job: &Job, host: HostId) -> Vec<HostId> {
        if !job.spec.placement.residency.keeps_trials() {
            return Vec::new();
        }
        let own = self.load_of(host, true).score();
        let polls = self.waiters.polls();
        let waiting = polls.fastest().take(MAX_LOOKED_AT).filter(|other| *other != host);
        let is_idle = |other: &HostId| polls.demand(*other).iter().any(|demand| demand.idle > 0);
        let lighter = |other: &HostId| self.load_of(*other, true).score() < own;
        waiting.filter(is_idle).filter(lighter).collect()
    }
}

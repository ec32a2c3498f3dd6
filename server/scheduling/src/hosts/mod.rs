//! Hosts as the server hears of them: sessions, the fleet, cool-downs, release histories.
//!
//! | file | holds |
//! |---|---|
//! | `classes.rs` | the numeric classes of a device, and its speed in each |
//! | `device_key.rs` | a device as estimates know it |
//! | `session.rs` | what one host has said since the server started |
//! | `fleet.rs` | the hosts in contact with their devices and speeds |
//! | `offers.rs` | which of them offer each numeric class, and how many parties that are |
//! | `incarnations.rs` | restarts of a client, told from two clients with one identity |
//! | `strikes.rs` | failures of trainers, by workload before they are counted by host |
//!
//! All of it is soft state: it is lost with the server, and hosts say it again.

mod classes;
mod device_key;
mod fleet;
mod incarnations;
mod offers;
mod session;
mod strikes;

pub use classes::DeviceClasses;
pub use device_key::{DeviceKey, PACE_ONE};
pub use fleet::{DevicePool, Fleet, next_presence_check, reliable_speed, training_time};
pub use incarnations::{Heard, Incarnations, Verdict};
pub use offers::ClassOffers;
pub use session::{DeviceRef, DeviceSlots, Session};
pub use strikes::{Blame, HeldBack, MAX_FAILURES, Refusals, Strikes, WorkloadOfJob, workload_of};

use sojourn_protocol::{
    ids::HostId,
    machines::MachineName,
    reason::ReleaseReason,
    time::{Millis, UnixMillis},
};
use sojourn_state::State;
use std::collections::{BTreeMap, BTreeSet};

/// How often the sessions of hosts are looked for that were silent for long.
const SILENT_SWEEP_INTERVAL: Millis = Millis::from_secs(3600);

/// Releases of a host since its last report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReleaseHistory {
    /// Calls that released leases since the last report.
    pub count: u32,
    /// Why the last time.
    pub last_reason: ReleaseReason,
}

/// All hosts that were heard of since the server started.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Hosts {
    sessions: BTreeMap<HostId, Session>,
    /// Hosts that get no work, and until when.
    cooldowns: BTreeMap<HostId, UnixMillis>,
    /// The same by time.
    cooldown_ends: BTreeSet<(UnixMillis, HostId)>,
    /// Grows with every cool-down that begins or ends.
    cooldown_version: u64,
    releases: BTreeMap<HostId, ReleaseHistory>,
    /// Failures of trainers, by workload.
    strikes: Strikes,
    fleet: Fleet,
    offers: ClassOffers,
    /// When to look for silent hosts next.
    next_silent_sweep: UnixMillis,
    /// Bought machines that are given back, and when: also such as haven't enrolled yet.
    drains: BTreeMap<MachineName, UnixMillis>,
}

impl Hosts {
    /// A host's session, if it was heard of.
    pub fn session(&self, host: HostId) -> Option<&Session> {
        self.sessions.get(&host)
    }

    /// The same, to change it.
    pub fn session_mut(&mut self, host: HostId) -> Option<&mut Session> {
        self.sessions.get_mut(&host)
    }

    /// A host's session, with what follows from the sessions of all hosts, to change it.
    pub fn session_in_fleet(
        &mut self,
        host: HostId,
    ) -> Option<(&Session, &mut Fleet, &mut ClassOffers)> {
        Some((self.sessions.get(&host)?, &mut self.fleet, &mut self.offers))
    }

    /// The session of a host that has just been heard of.
    pub fn open_session(&mut self, host: HostId) -> &mut Session {
        self.sessions.entry(host).or_default()
    }

    /// Forgets the session of a host that is no host any more.
    pub fn end_session(&mut self, host: HostId) {
        self.sessions.remove(&host);
        self.releases.remove(&host);
        self.fleet.leave(host);
    }

    /// All sessions, by host.
    pub fn sessions(&self) -> impl ExactSizeIterator<Item = (HostId, &Session)> {
        self.sessions.iter().map(|(host, session)| (*host, session))
    }

    /// The slots of a host's device.
    pub fn device(&self, host: HostId, device: &str) -> Option<&DeviceSlots> {
        self.session(host)?.devices.get(device)
    }

    /// Does the host get no work just now?
    pub fn is_cooling_down(&self, host: HostId, now: UnixMillis) -> bool {
        self.cooldown(host).is_some_and(|until| until > now)
    }

    /// Until when a host gets no work.
    pub fn cooldown(&self, host: HostId) -> Option<UnixMillis> {
        self.cooldowns.get(&host).copied()
    }

    /// Hosts with a cool-down, and until when it lasts.
    pub fn cooldowns(&self) -> impl Iterator<Item = (HostId, UnixMillis)> {
        self.cooldowns.iter().map(|(host, until)| (*host, *until))
    }

    /// Gives a host no work until then.
    pub fn cool_down(&mut self, host: HostId, until: UnixMillis) {
        self.end_cooldown(host);
        self.cooldowns.insert(host, until);
        self.cooldown_ends.insert((until, host));
        self.cooldown_version += 1;
    }

    /// Ends a host's cool-down at once.
    pub fn end_cooldown(&mut self, host: HostId) {
        if let Some(until) = self.cooldowns.remove(&host) {
            self.cooldown_ends.remove(&(until, host));
            self.cooldown_version += 1;
        }
    }

    /// Ends the cool-downs that are over by `now`. True where there were some.
    pub fn expire_cooldowns(&mut self, now: UnixMillis) -> bool {
        let before = self.cooldowns.len();
        while let Some((until, host)) = self.cooldown_ends.first().copied()
            && until <= now
        {
            self.end_cooldown(host);
        }
        self.cooldowns.len() != before
    }

    /// When the first cool-down ends.
    pub fn first_cooldown_end(&self) -> Option<UnixMillis> {
        self.cooldown_ends.first().map(|(until, _)| *until)
    }

    /// The number of cool-downs that have begun or ended so far. While it is the same, the same hosts cool down.
    pub fn cooldown_version(&self) -> u64 {
        self.cooldown_version
    }

    /// The releases of a host since its last report.
    pub fn releases(&self, host: HostId) -> Option<&ReleaseHistory> {
        self.releases.get(&host)
    }

    /// Counts a release. The number of them since the last report.
    pub fn count_release(&mut self, host: HostId, reason: ReleaseReason) -> u32 {
        let count = self.releases.get(&host).map_or(0, |history| history.count) + 1;
        self.releases.insert(host, ReleaseHistory { count, last_reason: reason });
        count
    }

    /// Forgets a host's releases: it has reported.
    pub fn clear_releases(&mut self, host: HostId) {
        self.releases.remove(&host);
    }

    /// Failures of trainers, by workload.
    pub fn strikes(&self) -> &Strikes {
        &self.strikes
    }

    /// The same, to change them.
    pub fn strikes_mut(&mut self) -> &mut Strikes {
        &mut self.strikes
    }

    /// The hosts in contact.
    pub fn fleet(&self) -> &Fleet {
        &self.fleet
    }

    /// The same, to change them.
    pub fn fleet_mut(&mut self) -> &mut Fleet {
        &mut self.fleet
    }

    /// The numeric classes that trusted hosts in contact offer.
    pub fn offers(&self) -> &ClassOffers {
        &self.offers
    }

    /// The same, to change them.
    pub fn offers_mut(&mut self) -> &mut ClassOffers {
        &mut self.offers
    }

    /// Is it time to look for silent hosts? Then the next time is set.
    pub fn is_silent_sweep_due(&mut self, now: UnixMillis) -> bool {
        let due = self.next_silent_sweep <= now;
        if due {
            self.next_silent_sweep = now + SILENT_SWEEP_INTERVAL;
        }
        due
    }

    /// A bought machine is given back then.
    pub fn drain(&mut self, machine: MachineName, until: UnixMillis) {
        self.drains.insert(machine, until);
    }

    /// A bought machine has ended.
    pub fn end_drain(&mut self, machine: &MachineName) {
        self.drains.remove(machine);
    }

    /// When a bought machine is given back, where it is to be.
    pub fn drained_at(&self, machine: &MachineName) -> Option<UnixMillis> {
        self.drains.get(machine).copied()
    }

    /// When a host is given back, where it is a bought machine that is to be.
    pub fn leaves_at(&self, state: &State, host: HostId) -> Option<UnixMillis> {
        self.drained_at(state.machine_of(host)?)
    }

    /// Forgets hosts that were silent since `before` and don't wait for an answer. They are returned.
    pub fn forget_silent(
        &mut self,
        before: UnixMillis,
        waits: impl Fn(HostId) -> bool,
    ) -> BTreeSet<HostId> {
        let silent = |(host, session): (&HostId, &Session)| {
            (session.seen_at < before && !waits(*host)).then_some(*host)
        };
        let silent: BTreeSet<HostId> = self.sessions.iter().filter_map(silent).collect();
        for host in &silent {
            self.sessions.remove(host);
            self.releases.remove(host);
        }
        silent
    }
}

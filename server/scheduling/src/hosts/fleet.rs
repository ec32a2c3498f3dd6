//! The fleet: the hosts in contact with their devices and speeds, kept up to date with each change.
//!
//! A host joins with its first inventory and slots. It leaves when it wasn't heard of for a lease's term, when it has no
//! slots any more, or when it is revoked. Every change has a number, so that a plan for another fleet is known as stale.

use super::classes::DeviceClasses;
use super::device_key::PACE_ONE;
use sojourn_protocol::{
    digest::Digest,
    ids::HostId,
    quantity::{Speed, mul_div},
    time::{Millis, UnixMillis},
};
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

/// The fastest that a device counts as, relative to [`Speed::REFERENCE`].
const MAX_SPEED: u64 = 1 << 44;

/// The slots of one device of a host in contact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DevicePool {
    /// The device's name.
    pub device: String,
    /// How many slots, at least one.
    pub slots: u32,
    /// The numeric classes that each offers.
    pub classes: DeviceClasses,
    /// How fast each is in its fastest class, relative to [`Speed::REFERENCE`].
    pub speed: u64,
}

impl DevicePool {
    /// By class that it offers: its speed there.
    fn entries(&self, host: HostId) -> impl Iterator<Item = (Digest, (Reverse<u64>, HostId))> + '_ {
        let speed = |class| self.classes.speed_in(class, self.speed);
        self.classes.iter().map(move |of| (of.class, (Reverse(speed(of.class)), host)))
    }

    /// The classes that it offers, in order.
    fn kind(&self) -> Vec<Digest> {
        let mut kind: Vec<Digest> = self.classes.iter().map(|of| of.class).collect();
        kind.sort_unstable();
        kind
    }
}

/// All hosts in contact.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Fleet {
    hosts: BTreeMap<HostId, Vec<DevicePool>>,
    /// Devices by speed, the fastest first, of each numeric class.
    by_speed: BTreeMap<Digest, BTreeSet<(Reverse<u64>, HostId)>>,
    /// Devices by the classes that they offer: how many of each kind.
    kinds: BTreeMap<Vec<Digest>, u64>,
    /// When to check whether a host is still present.
    check_at: BTreeSet<(UnixMillis, HostId)>,
    /// The sum of the speeds of all slots.
    capacity: u64,
    /// All slots.
    slots: u64,
    /// Grows with every host that joins, leaves or has other slots.
    version: u64,
}

impl Fleet {
    /// A host has these devices now. True where the fleet is another one; speeds alone don't make it so.
    pub fn set(&mut self, host: HostId, pools: Vec<DevicePool>, check_at: UnixMillis) -> bool {
        if pools.is_empty() {
            return self.leave(host);
        }
        let same = self.hosts.get(&host).is_some_and(|known| {
            known.len() == pools.len()
                && known
                    .iter()
                    .zip(&pools)
                    .all(|(known, pool)| DevicePool { speed: pool.speed, ..known.clone() } == *pool)
        });
        let is_new = self.uncount(host).is_none();
        self.capacity = self.capacity.saturating_add(capacity(&pools));
        self.slots += slots(&pools);
        for pool in &pools {
            self.index(pool, host);
            *self.kinds.entry(pool.kind()).or_default() += 1;
        }
        self.hosts.insert(host, pools);
        if is_new {
            self.check_at.insert((check_at, host));
        }
        self.version += u64::from(!same);
        !same
    }

    /// A host's devices, in order, have these speeds now.
    pub fn set_speeds(&mut self, host: HostId, speeds: impl Iterator<Item = u64>) {
        let Some(pools) = self.hosts.get_mut(&host) else { return };
        self.capacity = self.capacity.saturating_sub(capacity(pools));
        for pool in pools.iter() {
            for (class, entry) in pool.entries(host) {
                if let Some(of_class) = self.by_speed.get_mut(&class) {
                    of_class.remove(&entry);
                }
            }
        }
        for (pool, speed) in pools.iter_mut().zip(speeds) {
            pool.speed = speed;
        }
        for pool in pools.iter() {
            for (class, entry) in pool.entries(host) {
                self.by_speed.entry(class).or_default().insert(entry);
            }
        }
        self.capacity = self.capacity.saturating_add(capacity(pools));
    }

    /// A host leaves. True where it was in the fleet.
    pub fn leave(&mut self, host: HostId) -> bool {
        let there = self.uncount(host).is_some();
        self.version += u64::from(there);
        there
    }

    /// The hosts are the same, but may not be used as before.
    pub fn touch(&mut self) {
        self.version += 1;
    }

    fn uncount(&mut self, host: HostId) -> Option<Vec<DevicePool>> {
        let pools = self.hosts.remove(&host)?;
        self.capacity = self.capacity.saturating_sub(capacity(&pools));
        self.slots -= slots(&pools);
        for pool in &pools {
            for (class, entry) in pool.entries(host) {
                if let Some(of_class) = self.by_speed.get_mut(&class) {
                    of_class.remove(&entry);
                    if of_class.is_empty() {
                        self.by_speed.remove(&class);
                    }
                }
            }
            let kind = pool.kind();
            if let Some(count) = self.kinds.get_mut(&kind) {
                *count = count.saturating_sub(1);
                if *count == 0 {
                    self.kinds.remove(&kind);
                }
            }
        }
        Some(pools)
    }

    fn index(&mut self, pool: &DevicePool, host: HostId) {
        for (class, entry) in pool.entries(host) {
            self.by_speed.entry(class).or_default().insert(entry);
        }
    }

    /// Hosts whose presence is to be checked by `now`. The caller calls `present_until` or `leave` for each.
    pub fn due_for_check(&mut self, now: UnixMillis) -> Vec<HostId> {
        let mut due = Vec::new();
        while let Some((at, host)) = self.check_at.first().copied().filter(|(at, _)| *at <= now) {
            self.check_at.remove(&(at, host));
            if self.hosts.contains_key(&host) {
                due.push(host);
            }
        }
        due
    }

    /// A host is present: check again then.
    pub fn present_until(&mut self, host: HostId, at: UnixMillis) {
        self.check_at.insert((at, host));
    }

    /// When the next check is due.
    #[must_use]
    pub fn next_check(&self) -> Option<UnixMillis> {
        self.check_at.first().map(|(at, _)| *at)
    }

    /// How many slots there are.
    #[must_use]
    pub fn slots(&self) -> u64 {
        self.slots
    }

    /// Every host with its devices.
    pub fn hosts(&self) -> impl Iterator<Item = (HostId, &[DevicePool])> + '_ {
        self.hosts.iter().map(|(host, pools)| (*host, pools.as_slice()))
    }

    /// How many hosts there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.hosts.len()
    }

    /// A host's devices; none where it isn't in the fleet.
    #[must_use]
    pub fn pools(&self, host: HostId) -> &[DevicePool] {
        self.hosts.get(&host).map_or(&[], Vec::as_slice)
    }

    /// The speeds of a host's slots together; 0 where it isn't in the fleet.
    #[must_use]
    pub fn capacity_of(&self, host: HostId) -> u64 {
        capacity(self.pools(host))
    }

    /// The speed of a host's fastest device; 0 where it isn't in the fleet.
    #[must_use]
    pub fn speed(&self, host: HostId) -> u64 {
        self.pools(host).iter().map(|pool| pool.speed).max().unwrap_or(0)
    }

    /// The speed of the fastest device, of a numeric class where one is given; 0 where there is none.
    #[must_use]
    pub fn fastest(&self, class: Option<Digest>) -> u64 {
        let first = |of_class: &BTreeSet<(Reverse<u64>, HostId)>| {
            of_class.first().map_or(0, |(Reverse(speed), _)| *speed)
        };
        match class {
            Some(class) => self.by_speed.get(&class).map_or(0, first),
            None => self.by_speed.values().map(first).max().unwrap_or(0),
        }
    }

    /// The hosts of so many of the fastest devices, of a numeric class where one is given. A host with several devices
    /// comes several times.
    #[must_use]
    pub fn by_speed(&self, class: Option<Digest>, most: usize) -> Vec<HostId> {
        let classes = self.by_speed.iter().filter(|(of, _)| class.is_none_or(|c| c == **of));
        let mut pools: Vec<&(Reverse<u64>, HostId)> =
            classes.flat_map(|(_, of_class)| of_class.iter().take(most)).collect();
        pools.sort_unstable();
        pools.into_iter().take(most).map(|(_, host)| *host).collect()
    }

    /// Are there devices that don't offer the same numeric classes?
    #[must_use]
    pub fn has_several_kinds(&self) -> bool {
        self.kinds.len() > 1
    }

    /// Does a device offer several numeric classes?
    #[must_use]
    pub fn offers_choice(&self) -> bool {
        self.kinds.keys().any(|kind| kind.len() > 1)
    }

    /// The sum of the speeds of all slots.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Microseconds until the fleet could be done with so much work, if it had nothing else to do: all of it on all slots, or
    /// that of the longest trial on the fastest device.
    #[must_use]
    pub fn time_for(&self, total: u64, longest: u64) -> u64 {
        training_time(longest, self.fastest(None)).max(training_time(total, self.capacity))
    }

    /// The fleet's version: it grows with every host that joins, leaves or has other slots.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version
    }
}

fn slots(pools: &[DevicePool]) -> u64 {
    pools.iter().map(|pool| u64::from(pool.slots)).sum()
}

fn capacity(pools: &[DevicePool]) -> u64 {
    pools
        .iter()
        .fold(0, |all, pool| all.saturating_add(pool.speed.saturating_mul(u64::from(pool.slots))))
}

/// Microseconds that work takes at a speed.
#[must_use]
pub fn training_time(work: u64, speed: u64) -> u64 {
    mul_div(work, Speed::REFERENCE.0, speed.max(1))
}

/// When to check a host that was heard of at `seen_at`.
#[must_use]
pub fn next_presence_check(seen_at: UnixMillis, term: Millis) -> UnixMillis {
    seen_at + Millis(term.0.saturating_add(1))
}

/// The speed of a device of this pace. A host that breaks deadlines counts as slower by the share of those that it breaks:
/// as often its units are done again.
pub fn reliable_speed(pace: u64, reliability: u64) -> u64 {
    mul_div(speed_of(pace), reliability, 1000).max(1)
}

fn speed_of(pace: u64) -> u64 {
    mul_div(PACE_ONE, Speed::REFERENCE.0, pace.max(1)).clamp(1, MAX_SPEED)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(slots: u32, speed: u64) -> DevicePool {
        DevicePool {
            device: "cpu".into(),
            slots,
            classes: DeviceClasses::only(Digest([0; 32])),
            speed,
        }
    }

    #[test]
    fn it_counts_who_is_there() {
        let mut fleet = Fleet::default();
        assert!(fleet.set(HostId(1), vec![pool(2, 10)], UnixMillis(50)));
        assert!(fleet.set(HostId(2), vec![pool(1, 30)], UnixMillis(60)));
        assert_eq!((fleet.capacity(), fleet.fastest(None), fleet.version()), (50, 30, 2));
        assert_eq!(fleet.by_speed(None, 9), [HostId(2), HostId(1)]);
        assert_eq!(fleet.by_speed(Some(Digest([0; 32])), 1), [HostId(2)]);
        assert!(!fleet.set(HostId(2), vec![pool(1, 40)], UnixMillis(70)), "a speed alone");
        assert_eq!((fleet.capacity(), fleet.fastest(None), fleet.version()), (60, 40, 2));
        assert_eq!(fleet.due_for_check(UnixMillis(60)), [HostId(1), HostId(2)]);
        fleet.present_until(HostId(2), UnixMillis(90));
        assert!(fleet.leave(HostId(1)) && !fleet.leave(HostId(1)));
        assert_eq!((fleet.capacity(), fleet.next_check()), (40, Some(UnixMillis(90))));
        assert!(fleet.set(HostId(2), Vec::new(), UnixMillis(0)), "no slots: gone");
        assert_eq!((fleet.capacity(), fleet.fastest(None), fleet.version()), (0, 0, 4));
        assert_eq!(training_time(1_000, 2 * Speed::REFERENCE.0), 500);
    }
}

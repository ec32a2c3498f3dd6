//! How long what is under way should still take: leases, the slots that they hold, the way of what they make.

use crate::{core::Core, promises::Promise, state::Trial};
use sojourn_protocol::{
    ids::{HostId, LeaseId},
    time::{Millis, UnixMillis},
};

impl Core {
    /// Microseconds that a live lease's unit should still be in its slot, once it is its turn there: as it went on
    /// so far, where that is known.
    pub(crate) fn still_takes(&self, lease: LeaseId) -> u64 {
        let (Some(known), Some(term)) =
            (self.state.leases.get(&lease), self.soft.terms.get(&lease))
        else {
            return 0;
        };
        if term.finished {
            return 0;
        }
        let estimate = self.estimate_micros(lease);
        let to_do = u128::from(term.of.saturating_sub(term.done));
        if let Some((so_far, gained)) = term.pace() {
            let left = u128::from(so_far) * to_do / u128::from(gained);
            let left = u64::try_from(left).unwrap_or(u64::MAX);
            return left.saturating_sub(self.passed(term.done_at));
        }
        if term.started && term.of > 0 {
            let left = u128::from(estimate) * to_do / u128::from(term.of);
            let left = u64::try_from(left).unwrap_or(u64::MAX);
            return left.saturating_sub(self.passed(term.done_at));
        }
        let begun = self.is_first(lease).then_some(known.granted_at);
        estimate.saturating_sub(begun.map_or(0, |at| self.passed(at)))
    }

    /// Microseconds until a live lease's unit should have ended.
    pub(crate) fn ends_in(&self, lease: LeaseId) -> u64 {
        let waits = self.soft.terms.get(&lease).is_some_and(|term| !term.started);
        let before = if waits { self.before(lease) } else { 0 };
        before.saturating_add(self.still_takes(lease))
    }

    /// Microseconds until each slot of a host's device should be free; units that wait there for their turn
    /// go to the first one.
    pub(crate) fn slots_free_at(&self, host: HostId, device: &str, slots: u32) -> Vec<u64> {
        let leases = self.leases_of(host, device);
        let mut free = vec![0u64; usize::try_from(slots).unwrap_or(0)];
        let promised = self.soft.promises.of(host).filter(|promise| promise.lease.device == device);
        let promised: Vec<u64> = promised.map(|promise| self.promise_takes(promise)).collect();
        for left in leases.map(|lease| self.still_takes(lease)).chain(promised) {
            if let Some(first) = free.iter_mut().min() {
                *first = first.saturating_add(left);
            }
        }
        free
    }

    /// Microseconds that other leases of the same slots should still take, where one must wait for them.
    pub(crate) fn before(&self, lease: LeaseId) -> u64 {
        let Some(known) = self.state.leases.get(&lease) else { return 0 };
        let older = self.leases_of(known.host, &known.device).filter(|other| *other < lease);
        let contact = self.soft.contacts.get(&known.host);
        let slots = contact.and_then(|contact| contact.devices.get(&known.device));
        let slots = u64::from(slots.map_or(1, |slots| slots.count).max(1));
        let (count, left) = older.fold((0u64, 0u64), |(count, left), other| {
            (count + 1, left.saturating_add(self.still_takes(other)))
        });
        if count < slots { 0 } else { left / slots }
    }

    /// Microseconds that a promised unit should still be in its slot.
    fn promise_takes(&self, promise: &Promise) -> u64 {
        promise.takes.saturating_sub(self.passed(promise.lease.granted_at))
    }

    /// Microseconds until a trial's next hop could begin somewhere: what is under way has ended, and has come.
    pub(crate) fn opens_in(&self, trial: &Trial, send: u64) -> u64 {
        if let Some(promise) = self.promised(trial) {
            return self.promise_takes(promise).saturating_add(send);
        }
        let live = trial.live.iter().map(|lease| {
            let sent = self.soft.terms.get(lease).filter(|term| term.finished);
            let sent = sent.map_or(0, |term| term.sent.min(trial.checkpoint_bytes));
            let part = u128::from(trial.checkpoint_bytes - sent) * u128::from(send);
            let way = part / u128::from(trial.checkpoint_bytes.max(1));
            self.ends_in(*lease).saturating_add(u64::try_from(way).unwrap_or(send))
        });
        // The first one of two copies opens the next hop.
        live.min().unwrap_or(0)
    }

    /// Does no other lease of the same device come before it?
    fn is_first(&self, lease: LeaseId) -> bool {
        let Some(known) = self.state.leases.get(&lease) else { return false };
        let older = self.leases_of(known.host, &known.device).filter(|other| *other < lease);
        let contact = self.soft.contacts.get(&known.host);
        let slots = contact.and_then(|contact| contact.devices.get(&known.device));
        let slots = slots.map_or(1, |slots| slots.count).max(1);
        let running =
            |other: &LeaseId| self.soft.terms.get(other).is_some_and(|term| !term.finished);
        u32::try_from(older.filter(running).count()).is_ok_and(|older| older < slots)
    }

    fn leases_of(&self, host: HostId, device: &str) -> impl Iterator<Item = LeaseId> {
        let live = self.state.hosts.get(&host).map(|host| &host.live);
        let live = live.into_iter().flatten();
        live.copied().filter(move |lease| {
            self.state.leases.get(lease).is_some_and(|lease| lease.device == device)
        })
    }

    fn passed(&self, since: UnixMillis) -> u64 {
        micros(self.now - since)
    }
}

const fn micros(time: Millis) -> u64 {
    time.0.saturating_mul(1000)
}

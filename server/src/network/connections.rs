//! How many connections there may be, in all and from one address. Each needs a file descriptor, and so do the files behind it.
//!
//! A connection beyond a limit is still accepted, as one of a few that are told so: they get an answer with `Retry-After`, and
//! health checks get theirs. Beyond these a connection is closed at once. So the accepting of connections never stops, and
//! descriptors are left for the journal, the blobs and the health checks.

use super::address::AddressKey;
use crate::traffic::{Refusal, Traffic};
use parking_lot::Mutex;
use std::{
    collections::{BTreeMap, btree_map::Entry},
    sync::Arc,
};

/// Connections of one address, by default: those of a thousand clients behind one router.
pub const DEFAULT_MAX_CONNECTIONS_PER_ADDRESS: usize = 4_096;
/// Descriptors that no connection takes: journal, blobs, threads, listeners. At most half of all.
const RESERVED_DESCRIPTORS: usize = 256;
/// Descriptors of a connection: its own, and that of a file that is uploaded or downloaded over it.
const DESCRIPTORS_PER_CONNECTION: usize = 2;
/// Most connections at one time that are told that there are too many.
const MAX_REFUSING_CONNECTIONS: usize = 256;
/// And of one address.
const MAX_REFUSING_PER_ADDRESS: usize = 8;

/// How many connections one address may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PerAddress {
    /// [`DEFAULT_MAX_CONNECTIONS_PER_ADDRESS`], and no more than half of all.
    #[default]
    Default,
    /// So many.
    Most(usize),
}

/// How many connections there may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ConnectionLimits {
    pub(crate) total: usize,
    /// `None` where all come from a proxy.
    pub(crate) per_address: Option<usize>,
    pub(crate) refusing: usize,
}

impl ConnectionLimits {
    /// The limits of a process with so many descriptors.
    pub(crate) fn of(descriptors: usize, per_address: Option<PerAddress>) -> Self {
        let reserved = RESERVED_DESCRIPTORS.min(descriptors / 2);
        let free = descriptors.saturating_sub(reserved);
        let refusing = (free / 16).clamp(1, MAX_REFUSING_CONNECTIONS);
        let total = (free.saturating_sub(refusing) / DESCRIPTORS_PER_CONNECTION).max(1);
        let per_address = per_address.map(|per_address| match per_address {
            PerAddress::Default => DEFAULT_MAX_CONNECTIONS_PER_ADDRESS.min(total / 2).max(1),
            PerAddress::Most(most) => most,
        });
        Self { total, per_address, refusing }
    }
}

/// The purpose of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Admission {
    /// The connection is for requests.
    Requests,
    /// Nothing but to say that there are too many, for this reason.
    Refusal(Refusal),
}

#[derive(Debug, Default, Clone, Copy)]
struct Open {
    requests: usize,
    refusing: usize,
}

impl Open {
    const fn of(&mut self, admission: Admission) -> &mut usize {
        match admission {
            Admission::Requests => &mut self.requests,
            Admission::Refusal(_) => &mut self.refusing,
        }
    }
}

#[derive(Debug, Default)]
struct Counts {
    all: Open,
    /// Addresses without a connection aren't in it.
    by_address: BTreeMap<AddressKey, Open>,
}

/// The open connections.
#[derive(Debug)]
pub(crate) struct Connections {
    limits: ConnectionLimits,
    counts: Mutex<Counts>,
    traffic: Arc<Traffic>,
}

impl Connections {
    pub(crate) fn new(limits: ConnectionLimits, traffic: Arc<Traffic>) -> Self {
        Self { limits, counts: Mutex::default(), traffic }
    }

    pub(crate) const fn limits(&self) -> ConnectionLimits {
        self.limits
    }

    /// A place for a connection from this address; `None` where it must be closed at once.
    pub(crate) fn admit(self: &Arc<Self>, address: AddressKey) -> Option<Permit> {
        let admission = self.count(address);
        match admission {
            Some(Admission::Requests) => self.traffic.connected(),
            Some(Admission::Refusal(reason)) => self.traffic.refused(reason),
            None => self.traffic.refused(Refusal::ConnectionClosed),
        }
        Some(Permit { connections: Arc::clone(self), address, admission: admission? })
    }

    fn count(&self, address: AddressKey) -> Option<Admission> {
        let mut counts = self.counts.lock();
        let Counts { all, by_address } = &mut *counts;
        let of_address = by_address.get(&address).copied().unwrap_or_default();
        let is_over = self.limits.per_address.is_some_and(|most| of_address.requests >= most);
        let admission = if all.requests >= self.limits.total {
            Admission::Refusal(Refusal::Connections)
        } else if is_over {
            Admission::Refusal(Refusal::ConnectionsOfAddress)
        } else {
            Admission::Requests
        };
        let most_refusing = match self.limits.per_address {
            Some(_) => MAX_REFUSING_PER_ADDRESS,
            None => usize::MAX,
        };
        if admission != Admission::Requests
            && (all.refusing >= self.limits.refusing || of_address.refusing >= most_refusing)
        {
            return None;
        }
        *all.of(admission) += 1;
        *by_address.entry(address).or_default().of(admission) += 1;
        Some(admission)
    }

    fn end(&self, address: AddressKey, admission: Admission) {
        let mut counts = self.counts.lock();
        let all = counts.all.of(admission);
        *all = all.saturating_sub(1);
        if let Entry::Occupied(mut entry) = counts.by_address.entry(address) {
            let open = entry.get_mut();
            let of_address = open.of(admission);
            *of_address = of_address.saturating_sub(1);
            if open.requests == 0 && open.refusing == 0 {
                entry.remove();
            }
        }
        drop(counts);
        if admission == Admission::Requests {
            self.traffic.disconnected();
        }
    }
}

/// A connection's place, until it is dropped.
#[derive(Debug)]
pub(crate) struct Permit {
    connections: Arc<Connections>,
    address: AddressKey,
    admission: Admission,
}

impl Permit {
    pub(crate) const fn admission(&self) -> Admission {
        self.admission
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.connections.end(self.address, self.admission);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> AddressKey {
        AddressKey::of([10, 0, 0, last].into())
    }

    #[test]
    fn connections_leave_descriptors_for_the_rest_however_few_there_are() {
        let of = |descriptors| ConnectionLimits::of(descriptors, Some(PerAddress::Default));
        assert_eq!(of(1 << 20).total, 524_032);
        assert_eq!(of(1 << 20).refusing, 256);
        assert_eq!((of(1_024).total, of(1_024).refusing), (360, 48));
        assert_eq!(of(1_024).per_address, Some(180), "half of all");
        assert_eq!((of(256).total, of(256).refusing), (60, 8));
        for descriptors in 0..5_000 {
            let limits = of(descriptors);
            let used = DESCRIPTORS_PER_CONNECTION * limits.total + limits.refusing;
            let least = (descriptors / 2).min(RESERVED_DESCRIPTORS);
            assert!(used <= descriptors.saturating_sub(least) + 3, "{descriptors}: {limits:?}");
            assert!(limits.total >= 1 && limits.refusing >= 1);
        }
        assert_eq!(of(1 << 20).per_address, Some(4_096));
        let given = ConnectionLimits::of(1_024, Some(PerAddress::Most(300)));
        assert_eq!(given.per_address, Some(300), "as the operator says");
        assert_eq!(ConnectionLimits::of(1 << 20, None).per_address, None);
    }

    #[test]
    fn one_address_can_take_neither_all_connections_nor_all_refusals() {
        let limits = ConnectionLimits { total: 100, per_address: Some(20), refusing: 30 };
        let traffic = Arc::<Traffic>::default();
        let connections = Arc::new(Connections::new(limits, Arc::clone(&traffic)));
        let greedy: Vec<Permit> = (0..200).filter_map(|_| connections.admit(address(1))).collect();
        let of = |admission| greedy.iter().filter(|one| one.admission() == admission).count();
        assert_eq!(of(Admission::Requests), 20);
        assert_eq!(of(Admission::Refusal(Refusal::ConnectionsOfAddress)), MAX_REFUSING_PER_ADDRESS);
        assert_eq!(traffic.totals().open_connections, 20);
        let honest = connections.admit(address(2)).unwrap();
        assert_eq!(honest.admission(), Admission::Requests);
        // Its places come back, and nothing is kept of an address that is gone.
        drop(greedy);
        assert_eq!(connections.counts.lock().by_address.len(), 1);
        assert_eq!(connections.admit(address(1)).unwrap().admission(), Admission::Requests);
    }

    #[test]
    fn beyond_all_connections_a_few_are_told_so() {
        let limits = ConnectionLimits { total: 4, per_address: Some(2), refusing: 3 };
        let connections = Arc::new(Connections::new(limits, Arc::default()));
        let open: Vec<Option<Permit>> =
            (0..10).map(|last| connections.admit(address(last))).collect();
        let admissions: Vec<Option<Admission>> =
            open.iter().map(|permit| permit.as_ref().map(Permit::admission)).collect();
        let refusal = Some(Admission::Refusal(Refusal::Connections));
        assert_eq!(admissions[..4], [Some(Admission::Requests); 4]);
        assert_eq!(admissions[4..7], [refusal; 3]);
        assert_eq!(admissions[7..], [None; 3]);
    }

    #[test]
    fn a_proxy_has_as_many_connections_as_there_are() {
        let limits = ConnectionLimits { total: 50, per_address: None, refusing: 20 };
        let connections = Arc::new(Connections::new(limits, Arc::default()));
        let open: Vec<Permit> = (0..100).filter_map(|_| connections.admit(address(1))).collect();
        assert_eq!(open.len(), 70);
    }
}

//! Provisional leases: a host that has trained a trial's hops goes on with the trial while their result is uploaded.
//!
//! ```text
//!   host      [ train A ][ train B ............................ ]
//!   link                 [ A's checkpoint ]
//!   server               ^ B is given      ^ A is assimilated: B is granted, on the version that A produced
//!                          provisionally
//! ```
//!
//! A provisional lease is soft state: nothing durable knows of it. Where A's result isn't taken in, the host is told to
//! drop B.

use sojourn_protocol::{
    digest::BlobRef,
    ids::{HostId, JobId, LeaseId},
    position::Position,
};
use sojourn_state::Lease;
use std::collections::BTreeMap;

/// An unknown id that a host names counts as given provisionally by an earlier server, where it is no further than this
/// beyond those that were given. Ids that hosts have named don't count as given: else they would grow without a bound.
const MAX_UNKNOWN_IDS: u64 = 1 << 16;

/// A lease that is granted when the result before it was taken in.
#[derive(Debug, Clone, PartialEq)]
pub struct ProvisionalLease {
    /// The lease as it will be.
    pub lease: Lease,
    /// Where it begins.
    pub start: Position,
    /// The checkpoint that it begins with: that of the lease before it, as its host reports.
    pub base: BlobRef,
    /// Microseconds that it should take.
    pub takes: u64,
    /// Why it was chosen, in words.
    pub why: String,
}

/// All open provisional leases.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ProvisionalLeases {
    by_host: BTreeMap<(HostId, LeaseId), ProvisionalLease>,
    /// By the lease before it, whose result is awaited.
    after: BTreeMap<LeaseId, (HostId, LeaseId)>,
    /// The last id that was given provisionally, or that a host has named.
    last: LeaseId,
    /// The last id that this server has given provisionally.
    given: LeaseId,
}

impl ProvisionalLeases {
    /// The last id that was given provisionally.
    pub fn last(&self) -> LeaseId {
        self.last
    }

    /// Adds a lease, which goes on from the result of another.
    pub fn insert(&mut self, after: LeaseId, provisional: ProvisionalLease) {
        let key = (provisional.lease.host, provisional.lease.id);
        self.last = self.last.max(provisional.lease.id);
        self.given = self.given.max(provisional.lease.id);
        self.after.insert(after, key);
        self.by_host.insert(key, provisional);
    }

    /// The provisional lease that goes on from a lease's result.
    pub fn after(&self, lease: LeaseId) -> Option<&ProvisionalLease> {
        self.by_host.get(self.after.get(&lease)?)
    }

    /// Takes it out.
    pub fn take_after(&mut self, lease: LeaseId) -> Option<ProvisionalLease> {
        let key = self.after.remove(&lease)?;
        self.by_host.remove(&key)
    }

    /// A host's provisional lease.
    pub fn get(&self, host: HostId, lease: LeaseId) -> Option<&ProvisionalLease> {
        self.by_host.get(&(host, lease))
    }

    /// Takes a host's provisional lease out.
    pub fn take(&mut self, host: HostId, lease: LeaseId) -> Option<ProvisionalLease> {
        let provisional = self.by_host.remove(&(host, lease))?;
        self.after.retain(|_, key| *key != (host, lease));
        Some(provisional)
    }

    /// Each with the lease whose result is awaited.
    pub fn all(&self) -> impl Iterator<Item = (LeaseId, Option<&ProvisionalLease>)> {
        self.after.iter().map(|(after, key)| (*after, self.by_host.get(key)))
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.by_host.len()
    }

    /// Takes those of a job out.
    pub fn take_of(&mut self, job: JobId) -> Vec<ProvisionalLease> {
        let of_job = |(_, key): &(&LeaseId, &(HostId, LeaseId))| {
            self.by_host.get(key).is_some_and(|provisional| provisional.lease.unit.job() == job)
        };
        let after: Vec<LeaseId> =
            self.after.iter().filter(of_job).map(|(after, _)| *after).collect();
        after.into_iter().filter_map(|after| self.take_after(after)).collect()
    }

    /// Does the host have this provisional lease?
    pub fn has(&self, host: HostId, lease: LeaseId) -> bool {
        self.by_host.contains_key(&(host, lease))
    }

    /// The provisional leases of a host.
    pub fn of(&self, host: HostId) -> impl Iterator<Item = &ProvisionalLease> {
        let all = (host, LeaseId(0))..=(host, LeaseId(u64::MAX));
        self.by_host.range(all).map(|(_, provisional)| provisional)
    }

    /// All ids.
    pub fn ids(&self) -> impl Iterator<Item = LeaseId> {
        self.by_host.keys().map(|(_, lease)| *lease)
    }

    /// A host names an unknown id: an earlier server may have given it provisionally. No other lease gets this id, as the
    /// host would take that for the one that it has.
    pub fn was_provisional(&mut self, lease: LeaseId, last_lease: LeaseId) {
        let given = self.given.max(last_lease);
        if lease > self.last && lease > given && lease.0 - given.0 <= MAX_UNKNOWN_IDS {
            self.last = lease;
        }
    }
}

//! Parties: the owners that stand behind hosts, where what several hosts say is counted.
//!
//! Hosts that enrolled with the server's own token are the operator's, and each counts by itself; so do bought machines, and those
//! of owners whom the operator has vouched for. In a deployment with hosts of
//! several owners, the hosts of an issued token's owner count as one: an owner who has ten hosts says everything once. Where
//! all hosts are of one owner, each host counts. Then a quorum guards against broken machines, not against that owner.

use super::{FoldFault, Host, State};
use sojourn_protocol::{
    ids::{HostId, JobId},
    names::OwnerName,
};
use std::collections::{BTreeMap, BTreeSet};

/// The owners of the hosts that aren't revoked, and how many hosts each has. An index, kept with each event, so that
/// nobody has to look through all hosts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Owners {
    hosts: BTreeMap<OwnerName, usize>,
}

impl Owners {
    /// The owners of these hosts.
    pub(super) fn of<'a>(hosts: impl IntoIterator<Item = &'a Host>) -> Self {
        let mut owners = Self::default();
        for host in hosts.into_iter().filter(|host| !host.revoked) {
            owners.add(&host.owner);
        }
        owners
    }

    /// Have hosts enrolled with the tokens of other owners than the operator?
    pub(super) fn has_issued(&self) -> bool {
        self.hosts.keys().any(|owner| !owner.is_default())
    }

    /// A host of this owner has enrolled.
    pub(super) fn add(&mut self, owner: &OwnerName) {
        *self.hosts.entry(owner.clone()).or_default() += 1;
    }

    /// A host of this owner was revoked, or forgotten while it wasn't.
    pub(super) fn remove(&mut self, owner: &OwnerName) -> Result<(), FoldFault> {
        let count =
            self.hosts.get_mut(owner).ok_or(FoldFault::CountBelowZero("hosts of an owner"))?;
        *count -= 1;
        if *count == 0 {
            self.hosts.remove(owner);
        }
        Ok(())
    }
}

/// An owner; or a host of the operator, or where all are of one owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Party<'a> {
    /// A host that counts by itself.
    Host(HostId),
    /// An owner, all hosts together.
    Owner(&'a OwnerName),
}

/// The parties of a deployment.
#[derive(Debug, Clone, Copy)]
pub struct Parties<'a> {
    state: &'a State,
    by_owner: bool,
}

impl<'a> Parties<'a> {
    /// The party that stands behind a host.
    pub fn of(self, host: HostId) -> Party<'a> {
        let known = self.state.hosts.get(&host);
        match known.filter(|host| self.by_owner && host.is_strangers()) {
            Some(host) => Party::Owner(&host.owner),
            None => Party::Host(host),
        }
    }

    /// Are there several owners, so that the hosts of one count as one?
    pub const fn are_owners(self) -> bool {
        self.by_owner
    }

    /// The parties that stand behind these hosts.
    pub fn behind(self, hosts: impl IntoIterator<Item = HostId>) -> BTreeSet<Party<'a>> {
        hosts.into_iter().map(|host| self.of(host)).collect()
    }
}

impl State {
    /// The parties of the deployment: the hosts of one party count as one, where what several hosts say is counted.
    pub fn parties(&self) -> Parties<'_> {
        Parties { state: self, by_owner: self.owners.hosts.len() > 1 }
    }

    /// The parties where results of a job are verified. A stranger doesn't confirm itself by default, also where nobody else
    /// has hosts.
    pub fn parties_for(&self, job: JobId) -> Parties<'_> {
        let job = self.jobs.get(&job);
        match job.is_some_and(|job| job.spec.placement.verifies_strangers()) {
            true => Parties { state: self, by_owner: true },
            false => self.parties(),
        }
    }
}

//! Who stands behind a host, where what several hosts say is counted.
//!
//! In a deployment with hosts of several owners it is the owner: one who has ten hosts says everything once. Where all hosts
//! are of one owner, each host counts by itself. Then a quorum guards against broken machines, not against that owner.

use super::State;
use sojourn_protocol::{ids::HostId, names::OwnerName};
use std::collections::BTreeSet;

/// An owner, or a host where all are of one owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Party<'a> {
    Host(HostId),
    Owner(&'a OwnerName),
}

/// The parties of a deployment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Parties<'a> {
    state: &'a State,
    by_owner: bool,
}

impl<'a> Parties<'a> {
    /// Who stands behind a host.
    pub(crate) fn of(self, host: HostId) -> Party<'a> {
        match self.state.owner_of(host).filter(|_| self.by_owner) {
            Some(owner) => Party::Owner(owner),
            None => Party::Host(host),
        }
    }

    /// Are they owners?
    pub(crate) const fn are_owners(self) -> bool {
        self.by_owner
    }

    /// Who stands behind these hosts.
    pub(crate) fn behind(self, hosts: impl IntoIterator<Item = HostId>) -> BTreeSet<Party<'a>> {
        hosts.into_iter().map(|host| self.of(host)).collect()
    }
}

impl State {
    /// Who counts as one, where what several hosts say is counted.
    pub(crate) fn parties(&self) -> Parties<'_> {
        let mut owners = self.hosts.values().filter(|host| !host.revoked).map(|host| &host.owner);
        let first = owners.next();
        Parties { state: self, by_owner: owners.any(|other| Some(other) != first) }
    }
}

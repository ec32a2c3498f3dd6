//! Figures of hosts, counted by party: the hosts of one owner say everything once.
//!
//! The figure of a party is the median of its hosts'. Where all figures are of one party, its hosts count one by one.

use super::votes::Votes;
use sojourn_protocol::{ids::HostId, names::OwnerName};
use std::collections::BTreeMap;

/// The party behind a host's figures: the owner of an issued token, or a machine of the operator by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum PartyKey {
    Host(HostId),
    Owner(usize),
}

/// A host that gives figures, and its party.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Reporter {
    pub(super) host: HostId,
    pub(super) party: PartyKey,
}

/// The owners of hosts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct HostOwners {
    ids: BTreeMap<OwnerName, usize>,
    by_host: BTreeMap<HostId, usize>,
}

impl HostOwners {
    /// A host is of this owner.
    pub(super) fn note(&mut self, host: HostId, owner: &OwnerName) {
        if owner.is_default() || self.by_host.contains_key(&host) {
            return;
        }
        let next = self.ids.len();
        let id = *self.ids.entry(owner.clone()).or_insert(next);
        self.by_host.insert(host, id);
    }

    /// The host with its party.
    pub(super) fn reporter(&self, host: HostId) -> Reporter {
        let owner = self.by_host.get(&host);
        Reporter { host, party: owner.map_or(PartyKey::Host(host), |id| PartyKey::Owner(*id)) }
    }

    /// Forgets a host.
    pub(super) fn forget(&mut self, host: HostId) {
        self.by_host.remove(&host);
    }
}

/// Figures by party, and of each party by host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct PartyVotes {
    by_party: BTreeMap<PartyKey, Votes<HostId>>,
    figures: Votes<PartyKey>,
}

impl PartyVotes {
    /// A host's figure, instead of the one that it gave before.
    pub(super) fn set(&mut self, of: Reporter, figure: u64) {
        let hosts = self.by_party.entry(of.party).or_default();
        hosts.set(of.host, figure);
        if let Some(figure) = hosts.lower_median() {
            self.figures.set(of.party, figure);
        }
    }

    /// Forgets a host. True where it had given a figure.
    pub(super) fn remove(&mut self, of: Reporter) -> bool {
        let Some(hosts) = self.by_party.get_mut(&of.party) else { return false };
        let had = hosts.remove(of.host);
        match hosts.lower_median() {
            Some(figure) => self.figures.set(of.party, figure),
            None => {
                self.figures.remove(of.party);
                self.by_party.remove(&of.party);
            }
        }
        had
    }

    /// How many parties have given a figure; how many hosts, where all are of one party.
    pub(super) fn len(&self) -> usize {
        self.only().map_or_else(|| self.figures.len(), Votes::len)
    }

    /// The smallest figure.
    pub(super) fn smallest(&self) -> Option<u64> {
        self.only().map_or_else(|| self.figures.smallest(), Votes::smallest)
    }

    /// The middle figure; the smaller of two.
    pub(super) fn lower_median(&self) -> Option<u64> {
        self.only().map_or_else(|| self.figures.lower_median(), Votes::lower_median)
    }

    /// The middle figure; the larger of two.
    pub(super) fn upper_median(&self) -> Option<u64> {
        self.only().map_or_else(|| self.figures.upper_median(), Votes::upper_median)
    }

    /// The middle figure of all parties but a host's; the larger of two.
    pub(super) fn upper_median_without(&self, of: Reporter) -> Option<u64> {
        match self.only().filter(|_| self.by_party.contains_key(&of.party)) {
            Some(hosts) => hosts.upper_median_without(of.host),
            None => self.figures.upper_median_without(of.party),
        }
    }

    /// The hosts' figures, where all are of one party.
    fn only(&self) -> Option<&Votes<HostId>> {
        let mut parties = self.by_party.values();
        let first = parties.next();
        first.filter(|_| parties.next().is_none())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn votes(of: &[(u64, &str, u64)]) -> (HostOwners, PartyVotes) {
        let (mut owners, mut votes) = (HostOwners::default(), PartyVotes::default());
        for (host, owner, figure) in of {
            owners.note(HostId(*host), &owner.parse().unwrap());
            votes.set(owners.reporter(HostId(*host)), *figure);
        }
        (owners, votes)
    }

    #[test]
    fn ten_hosts_of_an_owner_have_one_figure_beside_others() {
        let mut of = vec![(1, "", 100), (2, "", 110)];
        of.extend((3..13).map(|host| (host, "lab-3", 1)));
        let (owners, mut votes) = votes(&of);
        assert_eq!((votes.len(), votes.lower_median()), (3, Some(100)));
        assert_eq!(votes.upper_median_without(owners.reporter(HostId(5))), Some(110));
        assert_eq!(votes.upper_median_without(owners.reporter(HostId(1))), Some(110));
        (3..13).for_each(|host| assert!(votes.remove(owners.reporter(HostId(host)))));
        assert_eq!((votes.len(), votes.smallest()), (2, Some(100)));
    }

    #[test]
    fn hosts_of_the_only_owner_count_one_by_one() {
        let (owners, votes) = votes(&[(1, "lab-3", 10), (2, "lab-3", 20), (3, "lab-3", 30)]);
        assert_eq!((votes.len(), votes.upper_median()), (3, Some(20)));
        assert_eq!(votes.upper_median_without(owners.reporter(HostId(3))), Some(20));
        let other = HostOwners::default().reporter(HostId(9));
        assert_eq!(votes.upper_median_without(other), Some(20), "it is of another party");
    }
}

//! Which hosts in contact offer each numeric class, and how many parties that are.
//!
//! A class is the digest of a calibration training. So hosts of several parties that offer the same class have come to the same
//! bytes; a class that one party alone offers may be invented. A host that has lost trust proves no class.

use sojourn_protocol::{digest::Digest, ids::HostId, names::OwnerName};
use sojourn_state::Parties;
use std::collections::{BTreeMap, BTreeSet};

/// The classes that hosts in contact offer. Soft state, kept with each change of the fleet.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ClassOffers {
    by_class: BTreeMap<Digest, BTreeMap<OwnerName, BTreeSet<HostId>>>,
    by_host: BTreeMap<HostId, BTreeSet<Digest>>,
}

impl ClassOffers {
    /// A host of this owner offers these classes now; none where it isn't in contact, or isn't trusted. True where it offered
    /// others before.
    pub fn set(&mut self, host: HostId, owner: &OwnerName, classes: BTreeSet<Digest>) -> bool {
        if self.of(host) == Some(&classes) || (self.of(host).is_none() && classes.is_empty()) {
            return false;
        }
        self.leave(host);
        for class in &classes {
            let owners = self.by_class.entry(*class).or_default();
            owners.entry(owner.clone()).or_default().insert(host);
        }
        if !classes.is_empty() {
            self.by_host.insert(host, classes);
        }
        true
    }

    /// A host offers nothing any more.
    pub fn leave(&mut self, host: HostId) {
        for class in self.by_host.remove(&host).unwrap_or_default() {
            let Some(owners) = self.by_class.get_mut(&class) else { continue };
            for hosts in owners.values_mut() {
                hosts.remove(&host);
            }
            owners.retain(|_, hosts| !hosts.is_empty());
            if owners.is_empty() {
                self.by_class.remove(&class);
            }
        }
    }

    /// The classes that a host offers, where it is in contact and trusted.
    pub fn of(&self, host: HostId) -> Option<&BTreeSet<Digest>> {
        self.by_host.get(&host)
    }

    /// How many parties offer a class.
    pub fn parties(&self, class: Digest, parties: Parties<'_>) -> usize {
        self.counts(class, parties).sum()
    }

    /// Do so many parties offer a class?
    pub fn has_parties(&self, class: Digest, parties: Parties<'_>, wanted: usize) -> bool {
        // Each owner counts for one at least, so few of many are looked at.
        let mut sums = self.counts(class, parties).scan(0_usize, |sum, of_owner| {
            *sum = sum.saturating_add(of_owner);
            Some(*sum)
        });
        wanted == 0 || sums.any(|sum| sum >= wanted)
    }

    /// By owner of hosts that offer a class: how many parties they are.
    fn counts<'a>(
        &'a self,
        class: Digest,
        parties: Parties<'a>,
    ) -> impl Iterator<Item = usize> + 'a {
        let owners = self.by_class.get(&class).into_iter().flat_map(BTreeMap::values);
        // Hosts of an owner may have enrolled with tokens that the operator vouches for, and with others.
        owners.map(move |hosts| parties.behind(hosts.iter().copied()).len())
    }
}

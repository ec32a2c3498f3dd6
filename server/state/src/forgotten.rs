//! Hosts that weren't heard of for long: when they were there, and how the state loses them.

use super::{FoldFault, State};
use sojourn_protocol::{ids::HostId, time::UnixMillis};
use std::collections::BTreeSet;

impl State {
    /// The id of the next host. One that was forgotten doesn't give its id to another.
    #[must_use]
    pub fn next_host(&self) -> HostId {
        let last = self.hosts.keys().next_back().copied().unwrap_or_default();
        last.max(self.last_forgotten).next()
    }

    /// Was a host of this id there, and is no more?
    #[must_use]
    pub fn is_forgotten(&self, host: HostId) -> bool {
        host > HostId(0) && host < self.next_host() && !self.hosts.contains_key(&host)
    }

    /// The hosts among these that hold no lease, and had none that is remembered.
    pub fn without_work(&self, mut hosts: BTreeSet<HostId>) -> BTreeSet<HostId> {
        hosts.retain(|host| self.hosts.get(host).is_some_and(|host| host.live.is_empty()));
        for past in self.past.values() {
            hosts.remove(&past.lease.host);
        }
        hosts
    }

    pub(super) fn hosts_seen(&mut self, hosts: &[HostId], at: UnixMillis) -> Result<(), FoldFault> {
        for host in hosts {
            self.known_host(*host)?;
        }
        for host in hosts {
            self.known_host_mut(*host)?.seen_at = at;
        }
        Ok(())
    }

    pub(super) fn host_forgotten(&mut self, host: HostId) -> Result<(), FoldFault> {
        let known = self.known_host(host)?;
        let (token, is_revoked, owner) = (known.token_sha256, known.revoked, known.owner.clone());
        if self.without_work(BTreeSet::from([host])).is_empty() {
            return Err(FoldFault::HostNeeded(host));
        }
        if !is_revoked {
            self.owners.remove(&owner)?;
        }
        self.hosts.remove(&host);
        self.machines.host_forgotten(host);
        self.tokens.remove(&token);
        self.revoked_tokens.remove(&token);
        self.last_forgotten = self.last_forgotten.max(host);
        Ok(())
    }
}

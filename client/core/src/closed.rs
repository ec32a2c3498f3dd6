//! Leases that this host has had.

use sojourn_protocol::ids::LeaseId;
use std::collections::BTreeSet;

/// How many leases are remembered. Ids are never used again; only answers that were under way when a lease ended can
/// name it once more.
const MAX_CLOSED: usize = 4096;

/// The leases that ended last, so that none is taken again.
#[derive(Debug, Clone, Default)]
pub struct ClosedLeases(BTreeSet<LeaseId>);

impl ClosedLeases {
    /// A lease has ended.
    pub fn insert(&mut self, lease: LeaseId) {
        self.0.insert(lease);
        while self.0.len() > MAX_CLOSED {
            self.0.pop_first();
        }
    }

    /// Has the lease ended, as far as is remembered?
    #[must_use]
    pub fn contains(&self, lease: LeaseId) -> bool {
        self.0.contains(&lease)
    }
}

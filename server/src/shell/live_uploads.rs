//! Which leases' uploads may still be needed.

use sojourn_core::{
    Core,
    state::{Past, PastState},
};
use sojourn_protocol::ids::LeaseId;
use std::collections::BTreeSet;

/// The leases whose uploads the core needed at one moment. It is sent once that moment is durable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveUploads {
    leases: BTreeSet<LeaseId>,
    last: LeaseId,
}

impl LiveUploads {
    pub(super) fn of(core: &Core) -> Self {
        let state = core.state();
        let may_come = |past: &Past| match &past.state {
            PastState::Acknowledged(_) => true,
            PastState::Closed(_) => state.is_wanted(&past.lease),
            PastState::Failed(_) | PastState::Ended(_) => false,
        };
        let past = state.past.iter().filter(|(_, past)| may_come(past));
        let leases = state.leases.keys().chain(past.map(|(lease, _)| lease)).copied();
        // A provisional lease may be granted after leases with higher ids.
        let leases = leases.chain(core.provisional_leases()).collect();
        Self { leases, last: state.last_lease }
    }

    /// May this lease's upload still be needed? Leases that were granted since then are.
    #[must_use]
    pub fn wants(&self, lease: LeaseId) -> bool {
        lease > self.last || self.leases.contains(&lease)
    }
}

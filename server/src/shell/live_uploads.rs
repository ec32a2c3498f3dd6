//! Which leases' uploads may still be needed, whose they are, and which of them were reported.

use sojourn_core::{
    Core,
    state::{Past, PastState},
};
use sojourn_protocol::ids::{HostId, LeaseId};
use std::collections::BTreeMap;

/// The leases whose uploads the core needed at one moment. It is sent once that moment is durable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveUploads {
    leases: BTreeMap<LeaseId, LiveUpload>,
    last: LeaseId,
}

/// The core's knowledge of a lease's upload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LiveUpload {
    /// An acknowledged report names it.
    Reported,
    /// A report of this host may name it.
    Unreported(HostId),
    /// The upload's lease isn't granted yet.
    Provisional,
}

impl LiveUploads {
    pub(super) fn of(core: &Core) -> Self {
        let state = core.state();
        let of_past = |past: &Past| match &past.state {
            PastState::Acknowledged(_) => Some(LiveUpload::Reported),
            PastState::Closed(_) => {
                state.is_wanted(&past.lease).then_some(LiveUpload::Unreported(past.lease.host))
            }
            PastState::Failed(_) | PastState::Ended(_) => None,
        };
        let past = state.past.iter();
        let past = past.filter_map(|(lease, past)| Some((*lease, of_past(past)?)));
        let live = state.leases.iter();
        let live = live.map(|(lease, of)| (*lease, LiveUpload::Unreported(of.host)));
        // A provisional lease may be granted after leases with higher ids.
        let provisional = core.provisional_leases().map(|lease| (lease, LiveUpload::Provisional));
        let leases = provisional.chain(past).chain(live).collect();
        Self { leases, last: state.last_lease }
    }

    /// Some leases that hosts may report, and some that are reported.
    #[cfg(test)]
    pub(crate) fn with(live: &[(LeaseId, HostId)], reported: &[LeaseId], last: LeaseId) -> Self {
        let live = live.iter().map(|(lease, host)| (*lease, LiveUpload::Unreported(*host)));
        let reported = reported.iter().map(|lease| (*lease, LiveUpload::Reported));
        Self { leases: live.chain(reported).collect(), last }
    }

    /// May this lease's upload still be needed? Leases that were granted since then are.
    #[must_use]
    pub fn wants(&self, lease: LeaseId) -> bool {
        lease > self.last || self.leases.contains_key(&lease)
    }

    /// Does an acknowledged report name this lease's upload?
    #[must_use]
    pub fn is_reported(&self, lease: LeaseId) -> bool {
        self.leases.get(&lease) == Some(&LiveUpload::Reported)
    }

    /// The host that may report this lease's upload.
    #[must_use]
    pub fn unreported_of(&self, lease: LeaseId) -> Option<HostId> {
        match self.leases.get(&lease) {
            Some(LiveUpload::Unreported(host)) => Some(*host),
            Some(LiveUpload::Reported | LiveUpload::Provisional) | None => None,
        }
    }
}

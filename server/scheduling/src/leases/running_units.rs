//! The last reports of hosts on the units that they run: what each takes of its host, and its CPU share.
//!
//! The reports are shown, and nothing is decided by them. None is journalled: after a restart they are unknown until the hosts
//! are heard.

use sojourn_protocol::{api::Held, cpu_shares::HeldCpuShare, ids::LeaseId, usage::UnitUsage};
use std::collections::BTreeMap;

/// The last report of a host on a unit that it runs.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct RunningUnit {
    /// The unit's use of the host, in the last heartbeat that said so: requests for work don't.
    pub usage: Option<UnitUsage>,
    /// The unit's CPU share.
    pub cpu_share: Option<HeldCpuShare>,
}

/// Live leases whose units run, as far as their hosts have said anything of them.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct RunningUnits(BTreeMap<LeaseId, RunningUnit>);

impl RunningUnits {
    /// The host of a live lease has told of it.
    pub(super) fn heard(&mut self, held: &Held) {
        if held.state.progress().is_none() {
            self.end(held.lease);
        } else if held.usage.is_some() || held.cpu_share.is_some() {
            let unit = self.0.entry(held.lease).or_default();
            unit.usage = held.usage.or(unit.usage);
            unit.cpu_share = held.cpu_share.or(unit.cpu_share);
        }
    }

    /// A lease is live no more, or its unit has ended.
    pub(super) fn end(&mut self, lease: LeaseId) {
        self.0.remove(&lease);
    }

    /// The leases of whose units something is known.
    pub(super) fn leases(&self) -> impl Iterator<Item = LeaseId> {
        self.0.keys().copied()
    }

    /// The last report on a unit; empty where there is none.
    pub(super) fn of(&self, lease: LeaseId) -> RunningUnit {
        self.0.get(&lease).copied().unwrap_or_default()
    }
}

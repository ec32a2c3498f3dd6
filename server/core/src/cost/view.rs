//! The lowest view: what every estimate of time rests on.

use super::{Estimates, PreferredClasses};
use crate::{config::CoreConfig, hosts::Hosts, ledger::Ledger, state::State};
use sojourn_protocol::{ids::HostId, time::UnixMillis};

/// How long things take. It reads, and changes nothing.
#[derive(Clone, Copy)]
pub(crate) struct Cost<'a> {
    pub(crate) state: &'a State,
    pub(crate) hosts: &'a Hosts,
    pub(crate) estimates: &'a Estimates,
    pub(crate) preferred: &'a PreferredClasses,
    pub(crate) config: &'a CoreConfig,
    pub(crate) now: UnixMillis,
}

impl<'a> Cost<'a> {
    /// The view of a handler.
    pub(crate) fn new(ledger: &'a Ledger<'_>, hosts: &'a Hosts) -> Self {
        Self {
            state: ledger.state,
            hosts,
            estimates: ledger.planner.estimates(),
            preferred: ledger.planner.preferred(),
            config: ledger.config,
            now: ledger.clock.now(),
        }
    }

    /// The share of deadlines that a host may be expected to keep, in thousandths.
    pub(crate) fn reliability(&self, host: HostId) -> u64 {
        self.state.hosts.get(&host).map_or(1000, |host| host.reliability.share(self.now))
    }
}

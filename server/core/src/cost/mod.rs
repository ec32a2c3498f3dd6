//! How long things take: units, transfers, the work that is running.
//!
//! | file | holds |
//! |---|---|
//! | `estimate/` | how long units take, measured and guessed |
//! | `unit_time.rs` | the time of a unit and of a lease, and how long to wait for it |
//! | `transfer.rs` | the time of checkpoints and shards between server and hosts |
//! | `occupancy.rs` | when running work ends |

mod estimate;
mod occupancy;
mod transfer;
mod unit_time;

pub(crate) use estimate::{DeviceKey, Estimates, PACE_ONE};
pub(crate) use occupancy::Occupancy;

use crate::{config::CoreConfig, hosts::Hosts, ledger::Ledger, state::State};
use sojourn_protocol::{ids::HostId, time::UnixMillis};

/// How long things take. It reads, and changes nothing.
#[derive(Clone, Copy)]
pub(crate) struct Cost<'a> {
    pub(crate) state: &'a State,
    pub(crate) hosts: &'a Hosts,
    pub(crate) estimates: &'a Estimates,
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
            config: ledger.config,
            now: ledger.clock.now(),
        }
    }

    /// The share of deadlines that a host may be expected to keep, in thousandths.
    pub(crate) fn reliability(&self, host: HostId) -> u64 {
        self.state.hosts.get(&host).map_or(1000, |host| host.reliability.share(self.now))
    }
}

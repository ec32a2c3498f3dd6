//! Machines that come and go as somebody decides while a fleet works: whoever buys them takes part in a run.
//!
//! ```text
//!   Run --act(now, FleetView)--> Machines      at the times that it names, and when a client has ended
//!    ^                              |
//!    '---- MachineChange, ... ------'          a machine comes, is to end, goes
//! ```
//!
//! A scenario's `[[hosts]]` are the kinds of machine then: their `count`s are of those that shards and the lower bound are
//! made for, and none of them is there by itself.

use super::{demand, host::Host};
use sojourn_core::Core;
use sojourn_protocol::{
    demand::DemandView,
    machines::MachineName,
    time::{Millis, UnixMillis},
};
use std::collections::BTreeMap;

/// Whoever buys machines. Time is virtual: milliseconds since the run's beginning.
pub trait Machines {
    /// When it is to be asked next; none: only when something happens.
    fn next_at(&self) -> Option<UnixMillis>;

    /// It is asked, at a time that it named or when a machine's client has ended. What it says happens at once, in this order.
    ///
    /// # Errors
    /// Why the run can't go on.
    fn act(&mut self, now: UnixMillis, fleet: &FleetView<'_>)
    -> Result<Vec<MachineChange>, String>;

    /// A machine's client has ended in good order, as it was told: it has given everything back.
    fn exited(&mut self, now: UnixMillis, machine: &MachineName);

    /// Is nothing more to come, once all jobs have ended? The run goes on until then.
    fn is_done(&self) -> bool;

    /// Can't the server be reached? Then hosts' calls fail.
    fn server_is_away(&self, now: UnixMillis) -> bool {
        let _ = now;
        false
    }
}

/// Something that happens to a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MachineChange {
    /// Its client starts, on a host of the scenario's group of this number. A machine of one name comes once.
    Comes {
        /// Its name.
        machine: MachineName,
        /// Which of the scenario's `[[hosts]]` it is like.
        group: usize,
    },
    /// Its client hears that the machine ends in so long: by its cloud, or as it is drained.
    Ending {
        /// Its name.
        machine: MachineName,
        /// In how long.
        left: Millis,
    },
    /// It is gone.
    Goes {
        /// Its name.
        machine: MachineName,
    },
}

/// What whoever buys machines may look at.
pub struct FleetView<'a> {
    pub(super) core: &'a Core,
    pub(super) hosts: &'a [Host],
    /// Where each machine that is there stands among the hosts.
    pub(super) machines: &'a BTreeMap<MachineName, usize>,
    pub(super) now: UnixMillis,
    pub(super) all_ended: bool,
}

impl FleetView<'_> {
    /// Have all jobs ended?
    #[must_use]
    pub const fn all_ended(&self) -> bool {
        self.all_ended
    }

    /// The work that there is, as the server says it.
    #[must_use]
    pub fn demand(&self) -> DemandView {
        let machines =
            self.machines.iter().filter_map(|(name, index)| Some((name, self.hosts.get(*index)?)));
        demand::view(self.core, machines, self.now)
    }

    /// Since when no unit runs on a machine that is there.
    #[must_use]
    pub fn idle_since(&self, machine: &MachineName) -> Option<UnixMillis> {
        let host = self.hosts.get(*self.machines.get(machine)?)?;
        host.idle_since().map(|at| UnixMillis(at / 1000))
    }

    /// The core that decides in this run.
    #[must_use]
    pub const fn core(&self) -> &Core {
        self.core
    }
}

//! Budgets: a job whose money is used up gets nothing more done on bought machines. Hosts that cost nothing go on with it.
//!
//! The amount that a job may still spend is its budget, less its costs so far. The expected costs of its units that run on
//! bought machines are taken off as well. A unit is granted there only if its own cost fits in.

use sojourn_protocol::{
    ids::{HostId, JobId, LeaseId},
    money::MicroUsd,
    time::{Millis, UnixMillis},
};
use sojourn_state::State;
use std::collections::BTreeMap;

/// How old the count may be, while nothing is granted.
const COUNT_INTERVAL: Millis = Millis::from_secs(5);

/// The amounts that jobs with a budget may still spend. Soft state: it is counted anew again and again.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Budgets {
    left: BTreeMap<JobId, MicroUsd>,
    /// When it is counted next.
    next: UnixMillis,
    /// The last lease that is counted.
    last_lease: LeaseId,
}

impl Budgets {
    /// Counted at this time, after this lease.
    pub fn counted(left: BTreeMap<JobId, MicroUsd>, now: UnixMillis, last_lease: LeaseId) -> Self {
        Self { left, next: now + COUNT_INTERVAL, last_lease }
    }

    /// The amount that a job may still spend; none where it has no budget, or nothing was bought.
    pub fn left(&self, job: JobId) -> Option<MicroUsd> {
        self.left.get(&job).copied()
    }

    /// A budget has changed.
    pub fn changed(&mut self) {
        self.next = UnixMillis(0);
    }

    /// Is it to be counted anew?
    pub fn is_due(&self, state: &State, now: UnixMillis) -> bool {
        !state.machines.is_empty() && (self.next <= now || self.last_lease != state.last_lease)
    }
}

/// The price of an hour of one slot of a bought machine, as its slots share it.
pub fn price_of_slot(state: &State, slots: u32, host: HostId) -> Option<MicroUsd> {
    let machine = state.machines.get(state.machine_of(host)?)?;
    let price = machine.report.as_ref()?.price;
    Some(MicroUsd(price.0.div_ceil(u64::from(slots.max(1)))))
}

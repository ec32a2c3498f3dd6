//! Budgets: a job whose money is used up gets nothing more done on bought machines. Hosts that cost nothing go on with it.
//!
//! What a job may still spend is its budget, less what it has cost, less what its units that run on bought machines should
//! still cost. A unit is granted there only if its own cost fits in.

use super::{plans::PlanHandler, scheduler::Scheduler};
use crate::{cost::Occupancy, hosts::DeviceRef, state::State};
use sojourn_protocol::{
    ids::{HostId, JobId, LeaseId},
    money::MicroUsd,
    time::{Millis, UnixMillis},
};
use std::collections::BTreeMap;

/// How old the count may be, while nothing is granted.
const COUNT_INTERVAL: Millis = Millis::from_secs(5);

/// What jobs with a budget may still spend. Soft state: it is counted anew again and again.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Budgets {
    left: BTreeMap<JobId, MicroUsd>,
    /// When it is counted next.
    next: UnixMillis,
    /// The last lease that is counted.
    last_lease: LeaseId,
}

impl Budgets {
    /// What a job may still spend; none where it has no budget, or nothing was bought.
    pub(crate) fn left(&self, job: JobId) -> Option<MicroUsd> {
        self.left.get(&job).copied()
    }

    /// A budget has changed.
    pub(crate) fn changed(&mut self) {
        self.next = UnixMillis(0);
    }

    fn is_due(&self, state: &State, now: UnixMillis) -> bool {
        !state.machines.is_empty() && (self.next <= now || self.last_lease != state.last_lease)
    }
}

/// The price of an hour of one slot of a bought machine, as its slots share it.
pub(crate) fn price_of_slot(state: &State, slots: u32, host: HostId) -> Option<MicroUsd> {
    let machine = state.machines.get(state.machine_of(host)?)?;
    let price = machine.report.as_ref()?.price;
    Some(MicroUsd(price.0.div_ceil(u64::from(slots.max(1)))))
}

impl PlanHandler<'_> {
    /// Counts what jobs may still spend, where that is due.
    pub(crate) fn count_budgets(&mut self) {
        let (now, state) = (self.ledger.clock.now(), &*self.ledger.state);
        if !self.ledger.planner.budgets().is_due(state, now) {
            return;
        }
        let with_budget = state.jobs.values().filter(|job| job.is_open());
        let with_budget = with_budget.filter_map(|job| Some((job.id, job.spec.placement.budget?)));
        let mut left: BTreeMap<JobId, MicroUsd> = with_budget.collect();
        if !left.is_empty() {
            let costs = state.costs(now);
            for (job, left) in &mut left {
                *left = left.saturating_sub(costs.of_job(*job).paid);
            }
            let occupancy = Occupancy::new(&self.ledger, self.hosts);
            for lease in state.leases.values() {
                let Some(left) = left.get_mut(&lease.unit.job()) else { continue };
                let slots = self.hosts.session(lease.host).map_or(1, |session| session.slots);
                let price = price_of_slot(state, slots, lease.host).unwrap_or_default();
                let time = Millis(occupancy.remaining_time(lease.id) / 1000);
                *left = left.saturating_sub(price.for_time(time));
            }
        }
        let last_lease = state.last_lease;
        *self.ledger.planner.budgets_mut() =
            Budgets { left, next: now + COUNT_INTERVAL, last_lease };
    }
}

impl Scheduler<'_> {
    /// May a unit of the job be trained there, as far as its budget goes, if it takes so many microseconds?
    pub(super) fn affords(&self, job: JobId, at: DeviceRef<'_>, micros: u64) -> bool {
        let Some(left) = self.planner.budgets().left(job) else { return true };
        let slots = self.hosts.session(at.host).map_or(1, |session| session.slots);
        let Some(price) = price_of_slot(self.state, slots, at.host) else { return true };
        left > MicroUsd(0) && price.for_time(Millis(micros / 1000)) <= left
    }
}

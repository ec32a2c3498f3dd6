//! Counts what jobs with a budget may still spend, and finds searches that have cost as much as they may.

use super::PlanHandler;
use sojourn_protocol::{ids::JobId, money::MicroUsd, time::Millis};
use sojourn_scheduling::schedule::{Budgets, price_of_slot};
use std::collections::BTreeMap;

impl PlanHandler<'_> {
    /// Counts what jobs may still spend, where that is due; gives those whose search has cost as much as it may, with that
    /// limit.
    pub(crate) fn count_budgets(&mut self) -> Vec<(JobId, MicroUsd)> {
        let (now, state) = (self.ledger.clock.now(), &*self.ledger.state);
        if !self.ledger.planner.budgets().is_due(state, now) {
            return Vec::new();
        }
        let open = || state.jobs.values().filter(|job| job.is_open());
        let with_budget = open().filter_map(|job| Some((job.id, job.spec.placement.budget?)));
        let mut left: BTreeMap<JobId, MicroUsd> = with_budget.collect();
        let training = open().filter(|job| job.grace.is_none());
        let mut used_up: Vec<(JobId, MicroUsd)> =
            training.filter_map(|job| Some((job.id, job.cost_limit()?))).collect();
        if !left.is_empty() || !used_up.is_empty() {
            let costs = state.costs(now);
            used_up.retain(|(job, limit)| costs.of_job(*job).paid >= *limit);
            for (job, left) in &mut left {
                *left = left.saturating_sub(costs.of_job(*job).paid);
            }
            let occupancy = self.ledger.occupancy(self.hosts);
            for lease in state.leases.values() {
                let Some(left) = left.get_mut(&lease.unit.job()) else { continue };
                let slots = self.hosts.session(lease.host).map_or(1, |session| session.slots);
                let price = price_of_slot(state, slots, lease.host).unwrap_or_default();
                let time = Millis(occupancy.remaining_time(lease.id) / 1000);
                *left = left.saturating_sub(price.for_time(time));
            }
        }
        let last_lease = state.last_lease;
        *self.ledger.planner.budgets_mut() = Budgets::counted(left, now, last_lease);
        used_up
    }
}

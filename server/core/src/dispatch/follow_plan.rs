//! Plans after a lease was granted, by the plan or without it.

use super::Dispatcher;
use sojourn_scheduling::schedule::PlannedHop;
use sojourn_state::{Lease, UnitKey};

impl Dispatcher<'_> {
    /// A lease was granted, by the plan or without it.
    pub(crate) fn follow_plan(&mut self, lease: &Lease, planned: Option<PlannedHop>) {
        let UnitKey::Train { job, trial, .. } = lease.unit else { return };
        let Some(mut plan) = self.leases.ledger.planner.take_plan(job) else { return };
        match planned {
            Some(hop) => {
                // A shard with replicas is trained on their hosts alone: devices can't exchange it.
                if !self.data.has_replicas(job) {
                    plan.exchange(&lease.device, &hop, lease.visits());
                }
                plan.granted(&hop, self.leases.ledger.clock.now());
            }
            None if plan.is_followed() => plan.departed(),
            None => {}
        }
        if let Some(known) = self.leases.ledger.state.jobs.get(&job) {
            let scheduler = self.scheduler();
            let is_over = |hop: &PlannedHop| scheduler.is_planned_hop_over(known, hop);
            plan.clear((lease.host, &lease.device), trial, is_over);
        }
        self.leases.ledger.planner.put_plan(job, plan);
    }
}

//! The views of scheduling, as handlers make them from the ledger and the parts that they hold.

use crate::ledger::Ledger;
use sojourn_scheduling::{
    cost::Cost,
    data::DataPlacement,
    hosts::Hosts,
    leases::Occupancy,
    schedule::{Eligibility, Locality, Scheduler},
};
use sojourn_workgen::Policy;

impl Ledger<'_> {
    /// How long things take.
    pub(crate) fn cost<'a>(&'a self, hosts: &'a Hosts) -> Cost<'a> {
        Cost {
            state: self.state,
            hosts,
            estimates: self.planner.estimates(),
            preferred: self.planner.preferred(),
            config: self.config,
            now: self.clock.now(),
        }
    }

    /// When running work ends.
    pub(crate) fn occupancy<'a>(&'a self, hosts: &'a Hosts) -> Occupancy<'a> {
        Occupancy::new(self.cost(hosts), self.leases)
    }

    /// Which hosts may do a unit.
    pub(crate) fn eligibility<'a>(
        &'a self,
        hosts: &'a Hosts,
        data: &'a DataPlacement,
    ) -> Eligibility<'a> {
        Eligibility::new(self.occupancy(hosts), data, self.waiters)
    }

    /// Which unit a device gets.
    pub(crate) fn scheduler<'a>(
        &'a self,
        hosts: &'a Hosts,
        data: &'a DataPlacement,
        policy: &'a dyn Policy,
    ) -> Scheduler<'a> {
        let local = Locality::new(self.eligibility(hosts, data));
        Scheduler::new(local, self.index, self.planner, policy)
    }
}

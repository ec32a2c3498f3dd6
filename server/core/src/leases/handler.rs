//! The handler of leases: it borrows the ledger and the hosts.

use crate::ledger::Ledger;
use sojourn_scheduling::{cost::Cost, hosts::Hosts, leases::Occupancy};

/// Grants, deadlines and ends of leases.
pub(crate) struct LeaseHandler<'a> {
    pub(crate) ledger: Ledger<'a>,
    pub(crate) hosts: &'a mut Hosts,
}

impl LeaseHandler<'_> {
    /// How long things take.
    pub(crate) fn cost(&self) -> Cost<'_> {
        self.ledger.cost(self.hosts)
    }

    /// When running work ends.
    pub(crate) fn occupancy(&self) -> Occupancy<'_> {
        self.ledger.occupancy(self.hosts)
    }
}

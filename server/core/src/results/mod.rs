//! Results of hosts: reports, trainer errors, verification by other hosts.
//!
//! | file | holds |
//! |---|---|
//! | `report.rs` | a report is acknowledged once, and ended once |
//! | `refuted.rs` | what a refuted party delivered is taken back |
//! | `validate.rs` | what can't be the result of a lease |
//! | `failures.rs` | trainer errors: whose fault they are, and what they end |
//! | `strikes.rs` | what failures and successes of a workload mean for hosts, and for the workload |
//! | `verification.rs` | results that other hosts are asked to reproduce |

mod failures;
mod refuted;
mod report;
mod strikes;
mod validate;
mod verification;

use crate::{assimilation_queue::AssimilationQueue, leases::LeaseHandler, ledger::Ledger};
use rand_chacha::ChaCha8Rng;
use sojourn_scheduling::{data::DataPlacement, hosts::Hosts, schedule::Eligibility};

/// Reports, failures and verification.
pub(crate) struct ResultHandler<'a> {
    pub(crate) ledger: Ledger<'a>,
    pub(crate) hosts: &'a mut Hosts,
    pub(crate) data: &'a mut DataPlacement,
    pub(crate) queue: &'a mut AssimilationQueue,
    pub(crate) rng: &'a mut ChaCha8Rng,
}

impl ResultHandler<'_> {
    /// Grants, deadlines and ends of leases.
    pub(crate) fn leases(&mut self) -> LeaseHandler<'_> {
        LeaseHandler { ledger: self.ledger.reborrow(), hosts: self.hosts }
    }

    /// The rules of who may do a unit.
    pub(crate) fn eligibility(&self) -> Eligibility<'_> {
        self.ledger.eligibility(self.hosts, self.data)
    }
}

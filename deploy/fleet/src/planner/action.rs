//! The actions that a plan can ask for: purchases and ends.

use super::reason::{EndReason, PurchaseReason};
use crate::cloud::{NewMachine, Order, Pool};
use sojourn_protocol::{
    ids::JobId,
    machines::{MachineName, Market},
    money::MicroUsd,
    time::Millis,
};

/// One thing to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Machines are bought.
    Buy(Purchase),
    /// The server is asked to have a machine give its units back and end.
    Drain {
        /// The machine.
        machine: Victim,
        /// How long it has for that.
        within: Millis,
        /// The reason for the drain.
        reason: EndReason,
    },
    /// The cloud is asked to end a machine.
    End {
        /// The machine.
        machine: Victim,
        /// The reason for the end.
        reason: EndReason,
    },
}

/// A machine that is to end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Victim {
    /// The machine's name, where it has one.
    pub name: Option<MachineName>,
    /// The cloud's id of it.
    pub instance: String,
    /// Where it is.
    pub pool: Pool,
}

/// Machines that are bought alike: an [`Order`] without enrolment tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Purchase {
    /// The machines' names.
    pub machines: Vec<MachineName>,
    /// How they are bought.
    pub market: Market,
    /// Where, the best first; all of one region.
    pub pools: Vec<Pool>,
    /// The most that an hour of one may cost. Limits count each machine with this price until its own is known.
    pub price_limit: MicroUsd,
    /// The job that they are for; others may use them too.
    pub job: JobId,
    /// The reason for the purchase.
    pub reason: PurchaseReason,
}

impl Purchase {
    /// The region of its pools.
    #[must_use]
    pub fn region(&self) -> &str {
        self.pools.first().map_or("", |pool| pool.region.as_str())
    }

    /// The order, with the tokens for the machines, in their order. Machines without a token are left out.
    #[must_use]
    pub fn order(&self, tokens: impl IntoIterator<Item = String>) -> Order {
        let machines = self.machines.iter().cloned().zip(tokens);
        Order {
            machines: machines
                .map(|(name, enrolment_token)| NewMachine { name, enrolment_token })
                .collect(),
            market: self.market,
            pools: self.pools.clone(),
            price_limit: self.price_limit,
        }
    }
}

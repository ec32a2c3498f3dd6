//! What a plan asks for.

use super::reason::{EndReason, Note, PurchaseReason};
use crate::{
    cloud::{NewMachine, Order, Pool},
    planner::memory::Memory,
};
use sojourn_protocol::{
    ids::JobId,
    machines::{MachineName, Market},
    money::MicroUsd,
    time::Millis,
};

/// What is to be done now, and what is to be remembered until the next plan.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// What is to be done, in this order: what ends machines comes first.
    pub actions: Vec<Action>,
    /// What wasn't done although there would be a use for it, and why.
    pub notes: Vec<Note>,
    /// For the next plan. The machines of `actions` are in it as if all had been done.
    pub memory: Memory,
    /// What the plan is based on, for people and metrics.
    pub outlook: Outlook,
}

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
        /// Why.
        reason: EndReason,
    },
    /// The cloud is asked to end a machine.
    End {
        /// The machine.
        machine: Victim,
        /// Why.
        reason: EndReason,
    },
}

/// A machine that is to end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Victim {
    /// Its name, where it has one.
    pub name: Option<MachineName>,
    /// The cloud's id of it.
    pub instance: String,
    /// Where it is.
    pub pool: Pool,
}

/// Machines that are bought alike: an [`Order`] without enrolment tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Purchase {
    /// Their names.
    pub machines: Vec<MachineName>,
    /// How they are bought.
    pub market: Market,
    /// Where, the best first; all of one region.
    pub pools: Vec<Pool>,
    /// The most that an hour of one may cost. Limits count each machine with this price until its own is known.
    pub price_limit: MicroUsd,
    /// The job that they are for; others may use them too.
    pub job: JobId,
    /// Why.
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

/// What a plan is based on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outlook {
    /// Slots that would be of use now.
    pub wanted_slots: u32,
    /// Slots of machines that train or could.
    pub working_slots: u32,
    /// Machines that are alive, draining ones too.
    pub machines: u32,
    /// Machines that were ordered and aren't seen yet.
    pub ordered: u32,
    /// Virtual processors of both.
    pub vcpus: u32,
    /// What an hour of both costs.
    pub hourly: MicroUsd,
    /// What was spent in all, up to now.
    pub spent: MicroUsd,
}

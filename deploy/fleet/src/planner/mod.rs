//! The planner: from what is known to what is to be done.
//!
//! [`plan`] is a pure function. It is called every few seconds with all that is known, and carries a [`Memory`] from call to
//! call, which may be lost.
//!
//! ```text
//!   cloud: machines, offers --.
//!   server: demand -----------+--> plan --> actions, each with its reason
//!   settings, memory, seed ---'      '----> memory for the next plan
//! ```
//!
//! | module | answers |
//! |---|---|
//! | [`answer`], [`action`], [`reason`] | what is done, and why |
//! | [`memory`] | what is carried from plan to plan: machines, orders, pauses, what was learned |
//! | `pools` | how often a pool takes machines back; pauses after failures |
//! | `fleet` | the machines, as cloud and server know them |
//! | `need` | how many slots are of use, by demand and deadlines |
//! | `assign` | which machines serve which work |
//! | `worth` | what a row costs on a machine |
//! | `market` | which pools sell what is needed |
//! | `costs` | what work has cost at best, lately: whether it is worth waiting |
//! | `money` | what is left to spend, until all machines have ended |
//! | `sweep` | machines that have to go whatever the demand is |
//! | `shrink` | machines that are given back |
//! | `purchase` | machines that are bought |

pub mod action;
pub mod answer;
mod assign;
mod costs;
mod fleet;
mod market;
pub mod memory;
mod money;
mod need;
mod pools;
mod purchase;
pub mod reason;
mod shrink;
mod sweep;
#[cfg(test)]
mod tests;
mod worth;

pub use action::{Action, Purchase, Victim};
pub use answer::{Outlook, Plan};
pub use memory::Memory;
pub use reason::{EndReason, Note, PurchaseReason};

use crate::{
    cloud::{CloudMachine, Offers},
    settings::Settings,
};
use fleet::{Fleet, Phase};
use sojourn_protocol::{demand::DemandView, time::UnixMillis};

/// All that a plan is made from.
#[derive(Debug, Clone, Copy)]
pub struct Situation<'a> {
    /// The time.
    pub now: UnixMillis,
    /// Chance: names of machines and the jitter of pauses follow from it. Two plans of different processes need
    /// different seeds.
    pub seed: u64,
    /// All machines of the fleet, as the cloud has them; those that have ended lately too.
    pub machines: &'a [CloudMachine],
    /// The types and prices that the cloud sells.
    pub offers: &'a Offers,
    /// The work that there is.
    pub demand: &'a DemandView,
    /// Are work or offers those of before, since server or cloud didn't answer? Nothing is known then of machines that came meanwhile.
    pub is_old: bool,
    /// The owner's settings.
    pub settings: &'a Settings,
    /// The memory that the last plan left; the default at the start.
    pub memory: &'a Memory,
}

/// Plans the actions for now.
///
/// The plan's memory takes each action as done. Whoever carries them out says what came of orders with
/// [`Memory::answered`], and of those that were never sent with [`Memory::not_ordered`].
#[must_use]
pub fn plan(situation: &Situation<'_>) -> Plan {
    let Situation { now, machines, offers, demand, settings, .. } = *situation;
    let mut memory = situation.memory.clone();
    memory.look(now, situation.seed, machines, settings);
    let workloads: Vec<_> = demand.jobs.iter().flat_map(|job| &job.workloads).collect();
    worth::learn(&mut memory, &workloads, offers, settings);

    let mut fleet = Fleet::read(situation, &mut memory);
    let mut actions = sweep::sweep(situation, &mut fleet, &mut memory);
    let wants = need::wants(situation, &memory);
    let (ends, kept) = shrink::shrink(situation, &mut fleet, &wants, &mut memory);
    actions.extend(ends);
    let spent = kept.total.spent;
    let (buys, notes) = purchase::purchase(situation, &fleet, &wants, kept, &mut memory);
    actions.extend(buys);

    let taken = fleet.taken();
    let working = fleet.machines.iter().filter(|machine| machine.phase == Phase::Working);
    let outlook = Outlook {
        wanted_slots: wants.iter().map(|want| want.buy).sum(),
        working_slots: working.map(|machine| machine.slots).sum(),
        machines: u32::try_from(fleet.machines.len()).unwrap_or(u32::MAX),
        ordered: u32::try_from(fleet.coming.len()).unwrap_or(u32::MAX),
        vcpus: taken.vcpus,
        hourly: taken.hourly,
        spent,
    };
    Plan { actions, notes, memory, outlook }
}

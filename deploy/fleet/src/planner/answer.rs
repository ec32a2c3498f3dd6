//! The plan: the planner's answer.

use super::{action::Action, memory::Memory, reason::Note};
use sojourn_protocol::money::MicroUsd;

/// The actions that are to be done now, and the memory for the next plan.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The actions, in the order in which they are to be done: those that end machines come first.
    pub actions: Vec<Action>,
    /// The purchases that weren't made although there would be a use for them, and why.
    pub notes: Vec<Note>,
    /// For the next plan. The machines of `actions` are in it as if all had been done.
    pub memory: Memory,
    /// The numbers that the plan is based on, for people and metrics.
    pub outlook: Outlook,
}

/// The numbers that a plan is based on.
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
    /// The price of an hour of both.
    pub hourly: MicroUsd,
    /// The money that was spent in all up to now, with the rest of drains that have begun.
    pub spent: MicroUsd,
}

//! What a plan says.

use super::{action::Action, memory::Memory, reason::Note};
use sojourn_protocol::money::MicroUsd;

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

//! A machine of the made-up cloud, from its launch to its end.

use super::world::Fate;
use crate::cloud::{CloudMachine, MachineState, Pool};
use sojourn_protocol::{
    machines::{MachineEnd, MachineName, MachineReport, Market},
    money::MicroUsd,
    time::{Millis, UnixMillis},
};

/// Something that happens to a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FakeEvent {
    /// When.
    pub at: UnixMillis,
    /// Which machine.
    pub machine: MachineName,
    /// The cloud's id of it.
    pub instance: String,
    /// Where it is.
    pub pool: Pool,
    /// What.
    pub happens: Happens,
}

/// What happens to a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Happens {
    /// Its program starts.
    Starts,
    /// It is told that it will be taken back in so long.
    Noticed(Millis),
    /// It has ended.
    Ends(MachineEnd),
}

/// A machine.
#[derive(Debug)]
pub(super) struct FakeMachine {
    pub(super) name: MachineName,
    pub(super) pool: Pool,
    pub(super) market: Market,
    pub(super) vcpus: u32,
    pub(super) price: MicroUsd,
    pub(super) on_demand_price: MicroUsd,
    pub(super) launched_at: UnixMillis,
    pub(super) starts_at: UnixMillis,
    pub(super) listed_at: UnixMillis,
    /// Of a spot machine: its place in its pool.
    pub(super) place: Option<u32>,
    pub(super) fate: Fate,
    /// What it will come to next.
    pub(super) next: Stage,
    pub(super) ended: Option<(UnixMillis, MachineEnd)>,
}

/// How far a machine has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// Its program hasn't started.
    Boot,
    /// It works, and wasn't told anything.
    Work,
    /// It was told, or won't be.
    Last,
}

impl FakeMachine {
    /// What happens to it next by itself, and when.
    pub(super) fn next(&self) -> Option<(UnixMillis, Happens)> {
        if self.ended.is_some() {
            return None;
        }
        let taken = self.fate.taken_at;
        let end = taken.map(|at| (at, Happens::Ends(MachineEnd::Interrupted)));
        let starts = (self.starts_at, Happens::Starts);
        let noticed = self.fate.noticed_at.zip(taken).map(|(told, taken)| {
            let told = told.max(self.starts_at);
            (told, Happens::Noticed(taken - told))
        });
        let first = match self.next {
            Stage::Boot => Some(starts),
            Stage::Work => noticed,
            Stage::Last => None,
        };
        match (first, end) {
            (Some(first), Some(end)) if first.0 < end.0 => Some(first),
            (Some(first), None) => Some(first),
            (_, end) => end,
        }
    }

    pub(super) fn state(&self, now: UnixMillis) -> MachineState {
        match self.ended {
            Some(_) => MachineState::Ended,
            None if now < self.starts_at => MachineState::Pending,
            None => MachineState::Running,
        }
    }

    pub(super) fn view(&self, instance: &str, now: UnixMillis) -> CloudMachine {
        CloudMachine {
            name: Some(self.name.clone()),
            instance: instance.to_owned(),
            pool: self.pool.clone(),
            market: self.market,
            state: self.state(now),
            launched_at: self.launched_at,
            ended_at: self.ended.map(|(at, _)| at),
            end: self.ended.map(|(_, end)| end),
        }
    }

    pub(super) fn report(&self, instance: &str) -> MachineReport {
        MachineReport {
            name: self.name.clone(),
            instance: instance.to_owned(),
            instance_type: self.pool.instance_type.clone(),
            zone: self.pool.zone.clone(),
            market: self.market,
            price: self.price,
            on_demand_price: self.on_demand_price,
            launched_at: self.launched_at,
            ended_at: self.ended.map(|(at, _)| at),
            end: self.ended.map(|(_, end)| end),
        }
    }
}

//! A machine of the made-up cloud, from its launch to its end.

use super::world::Fate;
use sojourn_fleet::cloud::{CloudMachine, MachineState, Pool};
use sojourn_protocol::{
    machines::{MachineEnd, MachineName, MachineReport, Market},
    money::MicroUsd,
    time::{Millis, UnixMillis},
};

/// Something that happens to a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FakeEvent {
    /// The time of the event.
    pub at: UnixMillis,
    /// Which machine.
    pub machine: MachineName,
    /// The cloud's id of it.
    pub instance: String,
    /// Where it is.
    pub pool: Pool,
    /// The kind of the event.
    pub happens: Happens,
}

/// The kinds of events of a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Happens {
    /// The machine's program starts.
    Starts,
    /// The machine is told that it will be taken back in so long.
    Noticed(Millis),
    /// The machine has ended.
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
    /// The stage from which the machine's next event follows.
    pub(super) next: Stage,
    pub(super) ended: Option<(UnixMillis, MachineEnd)>,
}

/// How far a machine has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// The machine's program hasn't started.
    Boot,
    /// The machine works, and has no notice of its end.
    Work,
    /// The machine has notice of its end.
    Last,
}

impl FakeMachine {
    /// The next event that comes to the machine by itself, with its time.
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

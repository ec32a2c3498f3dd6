//! The machines that are alive, as cloud, server and memory together know them.

use super::{
    action::Victim,
    memory::{Known, Memory},
};
use crate::{
    cloud::{CloudMachine, InstanceType, MachineState},
    limits::Taken,
    planner::Situation,
};
use sojourn_protocol::{
    demand::MachineLoad,
    ids::JobId,
    machines::{MachineName, Market},
    money::MicroUsd,
    time::UnixMillis,
};
use std::collections::BTreeMap;

/// How far a machine is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    /// The machine trains, or could.
    Working,
    /// The machine has not enrolled, or hasn't said its slots.
    Starting,
    /// The machine is to end.
    Draining,
}

/// A machine that is alive and has a name.
#[derive(Debug, Clone)]
pub(super) struct Machine<'a> {
    pub(super) name: &'a MachineName,
    pub(super) cloud: &'a CloudMachine,
    pub(super) load: Option<&'a MachineLoad>,
    pub(super) known: Known,
    pub(super) phase: Phase,
    /// The machine's slots, or those that it will have.
    pub(super) slots: u32,
    /// Bytes of memory of each; 0 where its type isn't known.
    pub(super) slot_memory: u64,
    pub(super) vcpus: u32,
    /// The price of an hour; that of now, where the one at its launch isn't known.
    pub(super) price: MicroUsd,
}

impl Machine<'_> {
    /// The machine, for an action.
    pub(super) fn victim(&self) -> Victim {
        victim(self.cloud)
    }

    /// Units that it holds.
    pub(super) fn held(&self) -> u32 {
        self.load.map_or(0, |load| load.held)
    }

    pub(super) fn is_on_demand(&self) -> bool {
        self.cloud.market == Market::OnDemand
    }
}

pub(super) fn victim(machine: &CloudMachine) -> Victim {
    Victim {
        name: machine.name.clone(),
        instance: machine.instance.clone(),
        pool: machine.pool.clone(),
    }
}

/// A machine that was ordered and isn't seen yet.
#[derive(Debug, Clone)]
pub(super) struct Coming {
    pub(super) at: UnixMillis,
    pub(super) market: Market,
    pub(super) slots: u32,
    pub(super) slot_memory: u64,
    pub(super) vcpus: u32,
    pub(super) price: MicroUsd,
    pub(super) job: JobId,
    pub(super) replaces: Option<MachineName>,
}

/// All that is alive or may be.
#[derive(Debug, Clone, Default)]
pub(super) struct Fleet<'a> {
    pub(super) machines: Vec<Machine<'a>>,
    pub(super) coming: Vec<Coming>,
}

impl<'a> Fleet<'a> {
    /// After [`Memory::look`]. What server and fleet say is noted in the memory.
    pub(super) fn read(situation: &Situation<'a>, memory: &mut Memory) -> Self {
        let loads: BTreeMap<&MachineName, &MachineLoad> =
            situation.demand.machines.iter().map(|load| (&load.machine, load)).collect();
        let machines = situation.machines.iter().filter_map(|cloud| {
            let (name, known) = memory.machines.get_key_value(cloud.name.as_ref()?)?;
            // Others of the same name, and what has ended.
            let alive = matches!(cloud.state, MachineState::Pending | MachineState::Running);
            (alive && known.instance == cloud.instance)
                .then(|| (name.clone(), cloud, loads.get(name).copied()))
        });
        let machines: Vec<_> = machines.collect();
        let machines = machines.into_iter().filter_map(|(name, cloud, load)| {
            let known = memory.machines.get_mut(&name)?;
            let enrols = !known.enrolled && load.is_some();
            note_load(known, load, situation);
            let machine = machine(situation, cloud, load, known.clone());
            if enrols {
                memory.machine_enrolled(cloud.launched_at);
            }
            machine
        });
        let machines = machines.collect();
        let coming = memory.ordered.values().map(|ordered| Coming {
            at: ordered.at,
            market: ordered.market,
            slots: ordered.slots,
            slot_memory: ordered.memory,
            vcpus: ordered.vcpus,
            price: ordered.price.unwrap_or(ordered.price_limit),
            job: ordered.job,
            replaces: ordered.replaces.clone(),
        });
        Self { machines, coming: coming.collect() }
    }

    /// The share of the limits that the fleet takes.
    pub(super) fn taken(&self) -> Taken {
        let mut taken = Taken::default();
        for machine in &self.machines {
            taken.add(1, machine.vcpus, machine.price);
        }
        for coming in &self.coming {
            taken.add(1, coming.vcpus, coming.price);
        }
        taken
    }

    /// Machines on demand that aren't to end.
    pub(super) fn on_demand(&self) -> u32 {
        let alive = self.machines.iter();
        let alive =
            alive.filter(|machine| machine.phase != Phase::Draining && machine.is_on_demand());
        let coming = self.coming.iter().filter(|coming| coming.market == Market::OnDemand);
        u32::try_from(alive.count() + coming.count()).unwrap_or(u32::MAX)
    }
}

fn note_load(known: &mut Known, load: Option<&MachineLoad>, situation: &Situation<'_>) {
    let now = situation.now;
    // While the server doesn't answer, nobody knows.
    let heard_of = situation.is_old || load.is_some_and(|load| load.seen_at.is_some());
    known.unheard = if heard_of { None } else { known.unheard.or(Some(now)) };
    let Some(load) = load else { return };
    known.enrolled = true;
    known.worked |= load.held > 0;
    if load.draining || load.stopped {
        known.drained = known.drained.or(Some(now));
    }
}

/// The price of an hour of such a machine now, or on demand where there is no spot price; 0 where its pool has no prices.
fn price_now(situation: &Situation<'_>, cloud: &CloudMachine) -> MicroUsd {
    let quote = situation.offers.quotes.get(&cloud.pool);
    let price = quote.map(|quote| match cloud.market {
        Market::Spot => quote.spot.unwrap_or(quote.on_demand),
        Market::OnDemand => quote.on_demand,
    });
    price.unwrap_or_default()
}

fn machine<'a>(
    situation: &Situation<'a>,
    cloud: &'a CloudMachine,
    load: Option<&'a MachineLoad>,
    known: Known,
) -> Option<Machine<'a>> {
    let types = &situation.settings.types;
    let kind = situation.offers.types.get(&cloud.pool.instance_type);
    let expected = kind.map_or(1, |kind| types.slots(kind));
    let said = load.map(|load| load.slots).filter(|slots| *slots > 0);
    let slots = said.unwrap_or(expected);
    let phase = if known.drained.is_some() || known.ended.is_some() {
        Phase::Draining
    } else if said.is_some() {
        Phase::Working
    } else {
        Phase::Starting
    };
    Some(Machine {
        name: cloud.name.as_ref()?,
        cloud,
        load,
        phase,
        slots,
        slot_memory: kind.map_or(0, |kind| types.slot_memory(kind, slots)),
        vcpus: kind.map_or(0, |kind: &InstanceType| kind.vcpus),
        price: known.price.unwrap_or_else(|| price_now(situation, cloud)),
        known,
    })
}

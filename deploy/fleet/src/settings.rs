//! The choices of a fleet's owner: limits, types of machines, markets and times.

use crate::{cloud::InstanceType, limits::Limits};
use serde::{Deserialize, Serialize};
use sojourn_protocol::{machines::MachineName, time::Millis};
use std::collections::BTreeMap;

/// How a fleet is planned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Names of machines begin with it: lower-case letters, digits and `-`, at most 24 of them.
    pub prefix: String,
    /// The limits of the fleet's machines and costs.
    pub limits: Limits,
    /// How machines are bought.
    pub markets: Markets,
    /// Which types are bought, and what is known of them before anything is measured.
    pub types: Types,
    /// How long things take and are waited for.
    pub times: Times,
    /// How likely a spot machine is taken back within an hour, in thousandths, before anything is learned.
    pub interruptions: u32,
}

impl Settings {
    /// Settings with these limits, and else with the defaults.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self {
            prefix: "m".to_owned(),
            limits,
            markets: Markets::default(),
            types: Types::default(),
            times: Times::default(),
            interruptions: 50,
        }
    }

    /// The name of a machine of this fleet; `unique` is a number that no other has.
    pub(crate) fn machine_name(&self, unique: u64) -> Option<MachineName> {
        format!("{}-{unique:016x}", self.prefix).parse().ok()
    }

    /// Is it a name that this fleet gives its machines? Another fleet's prefix may begin with this one's.
    #[must_use]
    pub fn names(&self, machine: &MachineName) -> bool {
        let rest =
            machine.as_str().strip_prefix(&self.prefix).and_then(|rest| rest.strip_prefix('-'));
        rest.and_then(|digits| u64::from_str_radix(digits, 16).ok())
            .is_some_and(|unique| self.machine_name(unique).as_ref() == Some(machine))
    }
}

/// How machines are bought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Markets {
    /// Are spot machines bought at all?
    pub spot: bool,
    /// While there is work, so many machines are on demand, which nobody takes back.
    pub floor: u32,
    /// Are machines bought on demand where no spot machine can be had?
    pub fallback: bool,
    /// For how long no spot machine can be had before that is done. A job that would else be late doesn't wait.
    pub fallback_after: Millis,
    /// For how long spot machines can be had again before they replace those on demand.
    pub return_after: Millis,
    /// No spot machine is bought that costs more than this share of the price on demand, in percent.
    pub max_spot_percent: u32,
    /// How far the price may rise between plan and purchase, in percent.
    pub price_margin_percent: u32,
    /// Machines that are replaced by cheaper ones at a time, in percent of the fleet; 0: none ever is.
    pub replace_percent: u32,
}

impl Default for Markets {
    fn default() -> Self {
        Self {
            spot: true,
            floor: 0,
            fallback: true,
            fallback_after: Millis::from_secs(300),
            return_after: Millis::from_secs(600),
            max_spot_percent: 90,
            price_margin_percent: 20,
            replace_percent: 100,
        }
    }
}

/// Which types of machines are bought.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Types {
    /// These alone, where any are named.
    pub names: Vec<String>,
    /// These never.
    pub except: Vec<String>,
    /// Virtual processors, from and to.
    pub vcpus: (u32, u32),
    /// Bytes of memory, from and to.
    pub memory: (u64, u64),
    /// GPUs, from and to.
    pub gpus: (u32, u32),
    /// Virtual processors for each slot; none: a machine is one slot, or one for each GPU.
    pub vcpus_per_slot: Option<u32>,
    /// Bytes of memory of a machine that units can't have: system and client.
    pub reserved_memory: u64,
    /// The speed of one virtual processor, in GFLOP/s, before anything is measured.
    pub vcpu_gflops: u32,
    /// The speed of one GPU, in GFLOP/s, before anything is measured.
    pub gpu_gflops: u32,
    /// The speed of one slot of a type, in GFLOP/s, where that is known better.
    pub gflops: BTreeMap<String, u32>,
}

impl Default for Types {
    fn default() -> Self {
        Self {
            names: Vec::new(),
            except: Vec::new(),
            vcpus: (1, u32::MAX),
            memory: (0, u64::MAX),
            gpus: (0, u32::MAX),
            vcpus_per_slot: None,
            reserved_memory: 512 << 20,
            vcpu_gflops: 10,
            gpu_gflops: 2000,
            gflops: BTreeMap::new(),
        }
    }
}

impl Types {
    /// May machines of this type be bought?
    #[must_use]
    pub fn admit(&self, machine: &InstanceType) -> bool {
        let within = |value: u64, (least, most): (u64, u64)| (least..=most).contains(&value);
        let wide = |(least, most): (u32, u32)| (u64::from(least), u64::from(most));
        (self.names.is_empty() || self.names.contains(&machine.name))
            && !self.except.contains(&machine.name)
            && within(u64::from(machine.vcpus), wide(self.vcpus))
            && within(machine.memory, self.memory)
            && within(u64::from(machine.gpus), wide(self.gpus))
    }

    /// The slots of such a machine.
    #[must_use]
    pub fn slots(&self, machine: &InstanceType) -> u32 {
        if machine.gpus > 0 {
            return machine.gpus;
        }
        self.vcpus_per_slot.map_or(1, |vcpus| (machine.vcpus / vcpus.max(1)).max(1))
    }

    /// Bytes of memory that a unit can have where so many run.
    #[must_use]
    pub fn slot_memory(&self, machine: &InstanceType, slots: u32) -> u64 {
        let usable = machine.memory.saturating_sub(self.reserved_memory);
        let per_slot = usable / u64::from(slots.max(1));
        if machine.gpus > 0 { per_slot.min(machine.gpu_memory) } else { per_slot }
    }

    /// GFLOP/s of one slot, before anything is measured; never 0.
    #[must_use]
    pub fn nominal_gflops(&self, machine: &InstanceType) -> u32 {
        let known = self.gflops.get(&machine.name).copied();
        let guess = if machine.gpus > 0 {
            self.gpu_gflops
        } else {
            self.vcpu_gflops.saturating_mul(machine.vcpus) / self.slots(machine)
        };
        known.unwrap_or(guess).max(1)
    }
}

/// How long things take, and how long they are waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Times {
    /// Between two plans, at most.
    pub interval: Millis,
    /// From purchase until a machine trains: starting, enrolling, fetching shards.
    pub boot: Millis,
    /// A machine that hasn't enrolled so long after its launch is ended.
    pub enrol: Millis,
    /// How long a machine has to give its units back.
    pub drain: Millis,
    /// Training that is lost when a machine is taken back, on average.
    pub lost: Millis,
    /// For how long machines may go on with nobody there who ends them: after a crash, until another process leads. Money is
    /// kept for that.
    pub alone: Millis,
    /// How long a machine without a unit is kept for work that is to come.
    pub idle: Millis,
    /// How long a machine is of no use before it is given back, so that passing lulls don't count.
    pub settle: Millis,
    /// A machine is only bought where there is money for it to train so long.
    pub min_use: Millis,
    /// How long after an order its machines are seen at the cloud.
    pub visible: Millis,
    /// A machine that the server hasn't heard of for so long is ended.
    pub silent: Millis,
    /// A pool without capacity isn't asked again for so long, and for twice as long after each further failure.
    pub no_capacity: Millis,
    /// The longest of these pauses.
    pub no_capacity_max: Millis,
    /// After an interruption other pools come first for so long.
    pub avoid: Millis,
}

impl Default for Times {
    fn default() -> Self {
        Self {
            interval: Millis::from_secs(30),
            boot: Millis::from_secs(150),
            enrol: Millis::from_secs(900),
            drain: Millis::from_secs(180),
            lost: Millis::from_secs(90),
            alone: Millis::from_secs(600),
            idle: Millis::from_secs(300),
            settle: Millis::from_secs(120),
            min_use: Millis::from_secs(600),
            visible: Millis::from_secs(180),
            silent: Millis::from_secs(900),
            no_capacity: Millis::from_secs(180),
            no_capacity_max: Millis::from_secs(3600),
            avoid: Millis::from_secs(600),
        }
    }
}

impl Times {
    /// From the decision to end a machine until it costs nothing more, at most: until the next plan, the drain, and the
    /// plan after it; and once nobody is there for a while.
    #[must_use]
    pub const fn stop(&self) -> Millis {
        let usual = self.drain.0.saturating_add(self.interval.0.saturating_mul(3));
        Millis(usual.saturating_add(self.alone.0))
    }

    /// From the order of a machine until it trains; and until it is seen, which is when it can be ended.
    #[must_use]
    pub fn start(&self) -> Millis {
        self.boot.max(self.visible)
    }

    /// The shortest time for which a machine is bought.
    #[must_use]
    pub fn min_life(&self) -> Millis {
        let use_and_start = self.min_use.0.saturating_add(self.start().0);
        Millis(use_and_start.saturating_add(self.stop().0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(name: &str, vcpus: u32, gpus: u32) -> InstanceType {
        let memory = u64::from(vcpus) << 31;
        InstanceType { name: name.into(), vcpus, memory, gpus, gpu_memory: u64::from(gpus) << 34 }
    }

    #[test]
    fn slots_are_gpus_or_as_many_as_the_processors_give() {
        let mut types = Types::default();
        assert_eq!(types.slots(&machine("c", 8, 0)), 1);
        assert_eq!(types.slots(&machine("g", 8, 2)), 2);
        types.vcpus_per_slot = Some(4);
        assert_eq!(types.slots(&machine("c", 8, 0)), 2);
        assert_eq!(types.slots(&machine("c", 2, 0)), 1);
        assert_eq!(types.slot_memory(&machine("c", 8, 0), 2), (8 << 30) - (256 << 20));
        assert_eq!(types.nominal_gflops(&machine("c", 8, 0)), 40);
    }

    #[test]
    fn types_are_admitted_by_name_and_size() {
        let mut types = Types { vcpus: (2, 8), gpus: (0, 0), ..Types::default() };
        assert!(types.admit(&machine("c", 8, 0)));
        assert!(!types.admit(&machine("c", 16, 0)) && !types.admit(&machine("g", 8, 1)));
        types.except = vec!["c".into()];
        assert!(!types.admit(&machine("c", 8, 0)));
        types = Types { names: vec!["d".into()], ..Types::default() };
        assert!(types.admit(&machine("d", 8, 0)) && !types.admit(&machine("c", 8, 0)));
    }
}

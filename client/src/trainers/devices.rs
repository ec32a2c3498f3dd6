//! The kinds of processor that the machine lends, each with its slots.

use crate::{
    limits::Kind,
    storage::measurements::{Measurements, Took},
    trainers::{
        pool::{Trainer, TrainerPool},
        runner::{RunnerError, UnitRunner},
    },
};
use parking_lot::Mutex;
use sojourn_protocol::{
    digest::Digest,
    engine::Engine,
    inventory::{self, COMMON_SPEED, CPU, OfferedClass, Workload, class_speed},
    quantity::mul_div,
    report::{Failure, FailureKind, Outcome},
    trainer::{Hello, InstructionSet},
    unit::Lease,
};
use std::collections::VecDeque;

/// How often the first trainer of a device is started before a person is told.
const MAX_FIRST_TRIES: u32 = 3;
/// Refused workloads of one device that are remembered.
const MAX_UNSUPPORTED: usize = 128;
/// The most by which an instruction set is taken to be faster than the one before it, as a factor.
const MAX_GAIN: f64 = 1.5;

/// All devices of the machine; at least one.
#[derive(Debug)]
pub(crate) struct Devices<R>(Vec<Device<R>>);

/// Processors of one kind, with slots whose trainers calculate alike.
#[derive(Debug)]
pub(crate) struct Device<R> {
    /// `cpu`, or the GPUs' name.
    pub(crate) name: String,
    /// The engine that trains on it, as its first trainer said.
    engine: Engine,
    /// Workloads that its trainers have refused as unsupported, the latest last. They are asked again when the client
    /// starts again, as it does after an update.
    unsupported: Mutex<VecDeque<Workload>>,
    /// The numeric classes of its trainers.
    classes: DeviceClasses,
    /// Bytes of memory that there are for one unit.
    memory: Option<u64>,
    pub(crate) trainers: TrainerPool<R>,
}

/// The numeric classes of a device, as its first trainer measured.
#[derive(Debug)]
struct DeviceClasses {
    /// In the instruction set that all machines have.
    common: DeviceClass,
    /// In the other ones that its trainers can be pinned to, from the slowest to the fastest.
    faster: Vec<DeviceClass>,
    /// The trainers can be pinned to instruction sets, so the inventory names those.
    is_named: bool,
}

/// A numeric class of a device.
#[derive(Debug, Clone, Copy)]
struct DeviceClass {
    instructions: InstructionSet,
    numeric_class: Digest,
    flops: f64,
}

impl<R: UnitRunner> Devices<R> {
    /// Sorts the slots by what they are on, and has the first trainer of each device say what it is in each instruction
    /// set that it has.
    ///
    /// # Errors
    /// A trainer that doesn't come up.
    pub(crate) async fn find(runners: Vec<R>) -> Result<Self, RunnerError> {
        let mut kinds: Vec<(String, Vec<R>)> = Vec::new();
        for runner in runners {
            let name = runner.device().name;
            match kinds.iter_mut().find(|(known, _)| *known == name) {
                Some((_, runners)) => runners.push(runner),
                None => kinds.push((name, vec![runner])),
            }
        }
        let mut devices = Vec::with_capacity(kinds.len());
        for (name, mut runners) in kinds {
            let memory = runners.iter().filter_map(|runner| runner.device().memory).min();
            // The last: it is the first to be given a unit.
            let Some(first) = runners.last_mut() else { continue };
            let (classes, engine) = DeviceClasses::measure(first).await?;
            let unsupported = Mutex::default();
            let trainers = TrainerPool::new(runners);
            devices.push(Device { name, engine, unsupported, classes, memory, trainers });
        }
        Ok(Self(devices))
    }

    /// The device of that name.
    pub(crate) fn get(&self, name: &str) -> Option<&Device<R>> {
        self.0.iter().find(|device| device.name == name)
    }

    /// As the server is told of them, where the owner lends so many bytes of the machine's memory.
    pub(crate) fn inventory(
        &self,
        measurements: &Measurements,
        lent: Option<u64>,
    ) -> Vec<inventory::Device> {
        let devices = self.0.iter().map(|device| {
            let memory = device.memory(lent);
            let common = device.classes.common;
            inventory::Device {
                memory,
                measured: measurements.of(&device.name, memory),
                classes: device.classes.offered(),
                engines: vec![device.engine.clone()],
                unsupported: device.unsupported(),
                ..inventory::Device::new(&device.name, common.numeric_class, common.flops)
            }
        });
        devices.collect()
    }
}

impl<R> Devices<R> {
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Device<R>> {
        self.0.iter()
    }

    /// Each device's name, and how many slots it has.
    pub(crate) fn slots(&self) -> Vec<(&str, u32)> {
        self.0.iter().map(|device| (device.name.as_str(), device.trainers.usable())).collect()
    }

    /// The kind of the first device.
    pub(crate) fn kind(&self) -> Kind {
        self.0.first().map_or(Kind::Cpu, Device::kind)
    }

    /// All of them, for people.
    pub(crate) fn names(&self) -> String {
        let names: Vec<&str> = self.0.iter().map(|device| device.name.as_str()).collect();
        names.join(", ")
    }
}

impl<R> Device<R> {
    /// Is it the machine's cores, or GPUs?
    pub(crate) fn kind(&self) -> Kind {
        if self.name == CPU { Kind::Cpu } else { Kind::Gpu }
    }

    /// Bytes of memory that one unit may take, where the owner lends so many of the machine's.
    pub(crate) fn memory(&self, lent: Option<u64>) -> Option<u64> {
        let lent = lent.filter(|_| self.kind() == Kind::Cpu);
        let lent = lent.and_then(|lent| lent.checked_div(u64::from(self.trainers.usable())));
        self.memory.into_iter().chain(lent).min()
    }
}

impl<R: UnitRunner> Device<R> {
    /// Remembers what a unit took there, where the owner lends so many bytes of the machine's memory, or that it isn't
    /// supported.
    pub(crate) fn measure(
        &self,
        measurements: &Measurements,
        lease: &Lease,
        outcome: &Outcome,
        (peak_memory, lent): (Option<u64>, Option<u64>),
    ) {
        let took = match outcome {
            Outcome::Trained(trained) => Took {
                // As it would have been in the common class.
                nanos_per_row: mul_div(
                    trained.train_micros.saturating_mul(1000),
                    self.speed_of(lease),
                    COMMON_SPEED,
                )
                .checked_div(trained.sums.rows),
                peak_memory,
                out_of_memory: None,
            },
            Outcome::Failed(Failure { kind: FailureKind::OutOfMemory, .. }) => {
                Took { out_of_memory: Some(self.memory(lent).unwrap_or(0)), ..Took::default() }
            }
            Outcome::Failed(Failure { kind: FailureKind::Unsupported, .. }) => {
                return self.exclude(Workload::of(lease.unit.context()));
            }
            // An evaluation takes less than training, of both.
            Outcome::Evaluated(_) | Outcome::Failed(_) => return,
        };
        measurements.took(&self.name, Workload::of(lease.unit.context()), took);
    }

    /// Starts a slot's trainer where it isn't, pinned to the instruction set that a lease names, and makes sure that it
    /// calculates as the others do: the server knows this device by one numeric class for each instruction set.
    pub(crate) async fn check(
        &self,
        trainer: &mut Trainer<R>,
        lease: &Lease,
    ) -> Result<(), RunnerError> {
        let class = self.class_of(lease)?;
        trainer.runner.set_instructions(class.instructions);
        let is_pinned = lease.unit.context().pinned_threads.is_some();
        if !is_pinned && !trainer.checked.is_empty() {
            return Ok(());
        }
        self.check_class(trainer, class).await
    }

    /// The same before the first lease, in the fastest class: most units are computed in it.
    pub(crate) async fn check_fastest(&self, trainer: &mut Trainer<R>) -> Result<(), RunnerError> {
        let class = self.classes.fastest();
        trainer.runner.set_instructions(class.instructions);
        self.check_class(trainer, class).await
    }

    async fn check_class(
        &self,
        trainer: &mut Trainer<R>,
        known: DeviceClass,
    ) -> Result<(), RunnerError> {
        if trainer.checked.contains(&known.instructions) {
            return Ok(());
        }
        let found = trainer.runner.hello().await?.numeric_class;
        if found != known.numeric_class {
            let (name, found, known) = (&self.name, found.short(), known.numeric_class.short());
            let message = format!(
                "a slot on `{name}` is of numeric class {found}, another of {known}; start the client again, or \
                 one for each with `--gpus` and a `--data` folder of its own"
            );
            return Err(RunnerError::new(message).for_good());
        }
        trainer.checked.insert(known.instructions);
        Ok(())
    }
}

impl<R> Device<R> {
    /// No unit of that workload is wanted again.
    fn exclude(&self, workload: Workload) {
        let mut unsupported = self.unsupported.lock();
        unsupported.retain(|known| *known != workload);
        unsupported.push_back(workload);
        if unsupported.len() > MAX_UNSUPPORTED {
            unsupported.pop_front();
        }
    }

    /// The workloads that are not wanted. Their order stays while nothing is new.
    fn unsupported(&self) -> Vec<Workload> {
        let mut unsupported: Vec<Workload> = self.unsupported.lock().iter().cloned().collect();
        unsupported.sort();
        unsupported
    }

    /// The class in which a lease's unit is computed. A lease of a server that knows of one class names none. A unit that
    /// pins nothing is computed as fast as in the fastest class.
    fn class_of(&self, lease: &Lease) -> Result<DeviceClass, RunnerError> {
        let classes = &self.classes;
        if lease.unit.context().pinned_threads.is_none() {
            return Ok(classes.fastest());
        }
        let Some(name) = &lease.instructions else { return Ok(classes.common) };
        let known = classes.fastest_first().find(|class| class.instructions.name() == name);
        known
            .ok_or_else(|| RunnerError::new(format!("`{}` doesn't compute in `{name}`", self.name)))
    }

    /// How fast it computes a lease's unit, in thousandths of its speed in the common class.
    fn speed_of(&self, lease: &Lease) -> u64 {
        let common = self.classes.common.flops;
        self.class_of(lease).map_or(COMMON_SPEED, |class| class_speed(class.flops, common))
    }
}

impl DeviceClasses {
    /// The classes of a device whose first trainer this is: one for each instruction set in which it calculates otherwise
    /// than in the slower ones; and what trains there. Its trainer stays in the fastest.
    async fn measure<R: UnitRunner>(first: &mut R) -> Result<(Self, Engine), RunnerError> {
        let sets = first.instructions();
        first.set_instructions(InstructionSet::COMMON);
        let hello = greeted(first).await?;
        let common = DeviceClass::of(InstructionSet::COMMON, &hello);
        let mut classes = Self { common, faster: Vec::new(), is_named: !sets.is_empty() };
        for instructions in sets.into_iter().filter(|set| *set != InstructionSet::COMMON) {
            first.set_instructions(instructions);
            let class = match greeted(first).await {
                Ok(hello) => DeviceClass::of(instructions, &hello),
                Err(error) if !error.is_for_good() => {
                    tracing::warn!(%error, %instructions, "no trainer comes up in this instruction set");
                    continue;
                }
                Err(error) => return Err(error),
            };
            let is_new = classes.fastest_first().all(|of| of.numeric_class != class.numeric_class);
            if is_new {
                // The calibration is short, and other programs compute beside it. Where the set seems slower than one with
                // fewer instructions, or faster than such sets are, that is chance.
                let slower = classes.fastest().flops;
                let flops = class.flops.max(slower).min(slower * MAX_GAIN);
                classes.faster.push(DeviceClass { flops, ..class });
            }
        }
        Ok((classes, hello.engine))
    }

    fn fastest(&self) -> DeviceClass {
        self.faster.last().copied().unwrap_or(self.common)
    }

    fn fastest_first(&self) -> impl Iterator<Item = DeviceClass> + '_ {
        self.faster.iter().rev().copied().chain([self.common])
    }

    /// As the inventory names them, the fastest first.
    fn offered(&self) -> Vec<OfferedClass> {
        let offered = self.fastest_first().filter(|_| self.is_named).map(|class| OfferedClass {
            instructions: class.instructions.name().to_owned(),
            numeric_class: class.numeric_class,
            flops: class.flops,
        });
        offered.collect()
    }
}

impl DeviceClass {
    fn of(instructions: InstructionSet, hello: &Hello) -> Self {
        Self { instructions, numeric_class: hello.numeric_class, flops: hello.flops }
    }
}

/// The first trainer's hello. It may be killed as it starts, as it may later, so it is tried again.
async fn greeted<R: UnitRunner>(runner: &mut R) -> Result<Hello, RunnerError> {
    for _ in 1..MAX_FIRST_TRIES {
        match runner.hello().await {
            Err(error) if !error.is_for_good() => {
                tracing::warn!(%error, "the trainer does not come up; trying again");
            }
            greeted => return greeted,
        }
    }
    runner.hello().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_share_the_memory_that_the_owner_lends() {
        let device = |name: &str, memory, slots: usize| Device {
            name: name.into(),
            engine: Engine { name: "none".into(), framework: "none".into(), models: Vec::new() },
            unsupported: Mutex::default(),
            classes: DeviceClasses {
                common: DeviceClass {
                    instructions: InstructionSet::COMMON,
                    numeric_class: Digest::of(b"class"),
                    flops: 1e9,
                },
                faster: Vec::new(),
                is_named: false,
            },
            memory,
            trainers: TrainerPool::new(vec![(); slots]),
        };
        let gibibytes = |count: u64| Some(count << 30);
        for (name, memory, lent, slots, each) in [
            (CPU, gibibytes(4), None, 2, gibibytes(4)),
            (CPU, gibibytes(4), gibibytes(2), 2, gibibytes(1)),
            (CPU, gibibytes(1), gibibytes(2), 1, gibibytes(1)),
            (CPU, None, gibibytes(2), 1, gibibytes(2)),
            (CPU, None, None, 1, None),
            (CPU, gibibytes(4), gibibytes(2), 0, gibibytes(4)),
            ("NVIDIA L4", gibibytes(22), gibibytes(2), 1, gibibytes(22)),
        ] {
            assert_eq!(device(name, memory, slots).memory(lent), each, "{name} {lent:?} {slots}");
        }
    }
}

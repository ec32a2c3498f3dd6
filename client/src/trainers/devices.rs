//! The kinds of processor that the machine lends, each with its slots.

use crate::{
    limits::Kind,
    storage::measurements::{Measurements, Took},
    trainers::{
        pool::{Trainer, TrainerPool},
        runner::{RunnerError, UnitRunner},
    },
};
use sojourn_protocol::{
    digest::Digest,
    inventory::{self, CPU, Workload},
    report::{Failure, FailureKind, Outcome},
    trainer::Hello,
    unit::Unit,
};

/// How often the first trainer of a device is started before a person is told.
const MAX_FIRST_TRIES: u32 = 3;

/// All devices of the machine; at least one.
#[derive(Debug)]
pub(crate) struct Devices<R>(Vec<Device<R>>);

/// Processors of one kind, with slots whose trainers are of one numeric class.
#[derive(Debug)]
pub(crate) struct Device<R> {
    /// `cpu`, or the GPUs' name.
    pub(crate) name: String,
    /// The numeric class of its trainers, for the inventory.
    numeric_class: Digest,
    flops: f64,
    /// Bytes of memory that there are for one unit.
    memory: Option<u64>,
    pub(crate) trainers: TrainerPool<R>,
}

impl<R: UnitRunner> Devices<R> {
    /// Sorts the slots by what they are on, and has the first trainer of each device say what it is.
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
            let Hello { numeric_class, flops, .. } = greeted(first).await?;
            let trainers = TrainerPool::new(runners);
            devices.push(Device { name, numeric_class, flops, memory, trainers });
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
            inventory::Device {
                name: device.name.clone(),
                numeric_class: device.numeric_class,
                flops: device.flops,
                memory,
                measured: measurements.of(&device.name, memory),
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
    fn memory(&self, lent: Option<u64>) -> Option<u64> {
        let lent = lent.filter(|_| self.kind() == Kind::Cpu);
        let lent = lent.and_then(|lent| lent.checked_div(u64::from(self.trainers.usable())));
        self.memory.into_iter().chain(lent).min()
    }
}

impl<R: UnitRunner> Device<R> {
    /// Remembers what a unit took there, where the owner lends so many bytes of the machine's memory.
    pub(crate) fn measure(
        &self,
        measurements: &Measurements,
        unit: &Unit,
        outcome: &Outcome,
        (peak_memory, lent): (Option<u64>, Option<u64>),
    ) {
        let took = match outcome {
            Outcome::Trained(trained) => Took {
                nanos_per_row: trained
                    .train_micros
                    .saturating_mul(1000)
                    .checked_div(trained.sums.rows),
                peak_memory,
                out_of_memory: None,
            },
            Outcome::Failed(Failure { kind: FailureKind::OutOfMemory, .. }) => {
                Took { out_of_memory: Some(self.memory(lent).unwrap_or(0)), ..Took::default() }
            }
            // An evaluation takes less than training, of both.
            Outcome::Evaluated(_) | Outcome::Failed(_) => return,
        };
        measurements.took(&self.name, Workload::of(unit.context()), took);
    }

    /// Starts a slot's trainer where it isn't, and makes sure that it calculates as the others do: the server knows
    /// this device by one numeric class.
    pub(crate) async fn check(&self, trainer: &mut Trainer<R>) -> Result<(), RunnerError> {
        if trainer.is_checked {
            return Ok(());
        }
        let found = trainer.runner.hello().await?.numeric_class;
        if found != self.numeric_class {
            let (name, found, known) = (&self.name, found.short(), self.numeric_class.short());
            let message = format!(
                "a slot on `{name}` is of numeric class {found}, another of {known}; start the client again, or \
                 one for each with `--gpus` and a `--data` folder of its own"
            );
            return Err(RunnerError::new(message).for_good());
        }
        trainer.is_checked = true;
        Ok(())
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
            numeric_class: Digest::of(b"class"),
            flops: 1e9,
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

//! The real runner: a slot of `sojourn-slot`.

use crate::trainers::runner::{RunnerDevice, RunnerError, UnitRunner};
use sojourn_protocol::{
    inventory::CPU,
    report::Outcome,
    trainer::{CLASS_THREADS, Hello, InstructionSet, Pace, RunUnit, ShardArrived, TrainerUpdate},
};
use sojourn_slot::{Slot, SlotError, supported_instructions};
use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};
use tokio::sync::{mpsc::UnboundedReceiver, watch};

/// A [`Slot`] as the daemon wants it.
#[derive(Debug)]
pub(crate) struct SlotRunner {
    slot: Slot,
    device: RunnerDevice,
    /// Threads of units that pin none, as the owner says.
    threads: Arc<AtomicU32>,
}

impl SlotRunner {
    /// A runner in the slot, which is on that device.
    pub(crate) fn new(slot: Slot, device: RunnerDevice, threads: Arc<AtomicU32>) -> Self {
        Self { slot, device, threads }
    }
}

impl UnitRunner for SlotRunner {
    fn device(&self) -> RunnerDevice {
        self.device.clone()
    }

    fn instructions(&self) -> Vec<InstructionSet> {
        if self.device.name == CPU { supported_instructions() } else { Vec::new() }
    }

    fn set_instructions(&mut self, instructions: InstructionSet) {
        self.slot.set_instructions(instructions);
    }

    async fn hello(&mut self) -> Result<Hello, RunnerError> {
        self.slot.hello(Some(CLASS_THREADS)).await.map_err(runner_error)
    }

    async fn run(
        &mut self,
        unit: RunUnit,
        on_update: impl FnMut(TrainerUpdate) + Send,
        stop: impl Future<Output = ()> + Send,
        pace: watch::Receiver<Pace>,
        files: UnboundedReceiver<ShardArrived>,
    ) -> Result<Outcome, RunnerError> {
        self.slot.set_threads(self.threads.load(Ordering::Relaxed));
        self.slot.run_with(unit, on_update, stop, pace, files).await.map_err(runner_error)
    }
}

fn runner_error(error: SlotError) -> RunnerError {
    match error {
        error @ SlotError::Class { .. } => RunnerError::from_source(error).for_good(),
        error => RunnerError::from_source(error),
    }
}

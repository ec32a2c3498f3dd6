//! The real runner: a slot of `sojourn-slot`.

use crate::runner::{RunnerDevice, RunnerError, UnitRunner};
use sojourn_protocol::{
    report::Outcome,
    trainer::{CLASS_THREADS, Hello, Pace, RunUnit, Told},
};
use sojourn_slot::{Slot, SlotError};
use tokio::sync::watch;

/// A [`Slot`] as the daemon wants it.
#[derive(Debug)]
pub(crate) struct SlotRunner {
    slot: Slot,
    device: RunnerDevice,
}

impl SlotRunner {
    /// A runner in the slot, which is on that device.
    pub(crate) fn new(slot: Slot, device: RunnerDevice) -> Self {
        Self { slot, device }
    }
}

impl UnitRunner for SlotRunner {
    fn device(&self) -> RunnerDevice {
        self.device.clone()
    }

    async fn hello(&mut self) -> Result<Hello, RunnerError> {
        self.slot.hello(Some(CLASS_THREADS)).await.map_err(runner_error)
    }

    async fn run(
        &mut self,
        unit: RunUnit,
        on_told: impl FnMut(Told) + Send,
        stop: impl Future<Output = ()> + Send,
        pace: watch::Receiver<Pace>,
    ) -> Result<Outcome, RunnerError> {
        self.slot.run(unit, on_told, stop, pace).await.map_err(runner_error)
    }
}

fn runner_error(error: SlotError) -> RunnerError {
    match error {
        error @ SlotError::Class { .. } => RunnerError::from_source(error).for_good(),
        error => RunnerError::from_source(error),
    }
}

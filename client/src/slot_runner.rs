//! The real runner: a slot of `sojourn-slot`.

use crate::runner::{RunnerError, UnitRunner};
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
    /// The name of its GPU.
    device: Option<String>,
}

impl SlotRunner {
    /// A runner in the slot; `device` is the name of its GPU, where it is on one.
    pub(crate) fn new(slot: Slot, device: Option<String>) -> Self {
        Self { slot, device }
    }
}

impl UnitRunner for SlotRunner {
    async fn hello(&mut self) -> Result<Hello, RunnerError> {
        let hello = self.slot.hello(Some(CLASS_THREADS)).await.map_err(runner_error)?;
        let device = self.device.clone().unwrap_or(hello.device);
        Ok(Hello { device, ..hello })
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

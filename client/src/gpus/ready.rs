//! GPUs that a trainer has been seen to work on: found, chosen and tried before a unit depends on them.

use super::{GpuChoice, Gpus, Surroundings, find};
use crate::{error::ClientError, runner::RunnerError};
use sojourn_protocol::trainer::CLASS_THREADS;
use sojourn_slot::{Slot, SlotConfig};
use tokio::task::spawn_blocking;

/// GPUs that work.
#[derive(Debug)]
pub(crate) struct Ready {
    pub(crate) gpus: Gpus,
    /// The slot of the trainer that tried the first of them.
    first: Option<Slot>,
}

impl Ready {
    /// Slot number `number`; the first has its trainer already.
    pub(crate) fn slot(&mut self, number: u32, base: &SlotConfig) -> Slot {
        let tried = if number == 0 { self.first.take() } else { None };
        tried.unwrap_or_else(|| {
            Slot::new(SlotConfig { device: self.gpus.device(number), ..base.clone() })
        })
    }
}

/// The GPUs for the slots; none where the CPU is to train, or where the choice is free and they don't work.
pub(crate) async fn ready(
    choice: &GpuChoice,
    base: &SlotConfig,
) -> Result<Option<Ready>, ClientError> {
    let wanted = choice.clone();
    let found = spawn_blocking(move || find(&wanted, &Surroundings::of_this_process())).await;
    let Some(gpus) = found
        .map_err(|error| RunnerError::new(error.to_string()))
        .map_err(ClientError::Trainer)??
    else {
        return Ok(None);
    };
    let mut first = Slot::new(SlotConfig { device: gpus.device(0), ..base.clone() });
    match first.hello(Some(CLASS_THREADS)).await {
        Ok(_) => Ok(Some(Ready { gpus, first: Some(first) })),
        Err(error) if *choice == GpuChoice::Auto => {
            let reason = error.to_string();
            tracing::warn!(gpu = gpus.name, reason, "the GPU can't be used: training on the CPU");
            Ok(None)
        }
        Err(error) => Err(ClientError::Trainer(RunnerError::from_source(error))),
    }
}

/// A slot on the first of the GPUs of a choice, its trainer started; none as for the daemon: where the
/// CPU is to train, or where the choice is free and no GPU can be used.
///
/// # Errors
/// GPUs that were asked for by number and can't be used.
pub async fn gpu_slot(choice: &GpuChoice, base: &SlotConfig) -> Result<Option<Slot>, ClientError> {
    let ready = ready(choice, base).await?;
    Ok(ready.map(|mut ready| ready.slot(0, base)))
}

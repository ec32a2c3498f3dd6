//! The real runner: a slot of `sojourn-slot`, with the trainer that the configuration names.

use crate::{
    config::ClientConfig,
    daemon::run_with,
    error::ClientError,
    gpus::{self, GpuChoice, Gpus},
    runner::{RunnerError, UnitRunner},
};
use sojourn_protocol::{
    report::Outcome,
    trainer::{CLASS_THREADS, Hello, Progress, RunUnit},
};
use sojourn_slot::{Device, Slot, SlotConfig, SlotError};
use std::{num::NonZero, path::Path, pin::pin, thread};
use tokio::task::spawn_blocking;

/// Runs a daemon with a trainer child for each slot, until `shutdown` ends: units are then stopped,
/// leases given back, and results that can't be sent any more kept for the next start.
///
/// # Errors
/// What only the owner of the machine can mend: a configuration that can't work (address, slots, token,
/// trainer, data folder), another daemon on the same data folder, or a server that no longer takes this
/// host.
pub async fn run(
    mut config: ClientConfig,
    shutdown: impl Future<Output = ()>,
) -> Result<(), ClientError> {
    config.validate()?;
    let base = slot_config(config.trainer.as_deref()).map_err(RunnerError::from_source);
    let base = base.map_err(ClientError::Trainer)?;
    let mut shutdown = pin!(shutdown);
    let mut ready = tokio::select! {
        () = &mut shutdown => return Ok(()),
        gpus = gpus(&config.gpus, &base) => gpus?,
    };
    let cards = ready.as_ref().map_or(1, |ready| ready.gpus.count());
    let slots = config.slots.unwrap_or_else(|| u32::try_from(cards).unwrap_or(u32::MAX));
    config.slots = Some(slots);
    let base = SlotConfig { threads: free_threads(slots), ..base };
    let make = |slot: u32| {
        let Some(Ready { gpus, name, first }) = &mut ready else {
            return Ok(SlotRunner { slot: Slot::new(base.clone()), device: None });
        };
        // The one that was tried is on the first GPU.
        let tried = if slot == 0 { first.take() } else { None };
        let new = || Slot::new(SlotConfig { device: gpus.device(slot), ..base.clone() });
        Ok(SlotRunner { slot: tried.unwrap_or_else(new), device: Some(name.clone()) })
    };
    run_with(config, make, shutdown).await
}

/// GPUs that a trainer has been seen to work on.
struct Ready {
    gpus: Gpus,
    name: String,
    /// The slot of that trainer.
    first: Option<Slot>,
}

/// The GPUs for the slots; none where the CPU is to train, or where the choice is free and they don't work.
async fn gpus(choice: &GpuChoice, base: &SlotConfig) -> Result<Option<Ready>, ClientError> {
    let wanted = choice.clone();
    let found = spawn_blocking(move || gpus::find(&wanted)).await;
    let Some(gpus) = found
        .map_err(|error| RunnerError::new(error.to_string()))
        .map_err(ClientError::Trainer)??
    else {
        return Ok(None);
    };
    let mut first = Slot::new(SlotConfig { device: gpus.device(0), ..base.clone() });
    match first.hello(Some(CLASS_THREADS)).await {
        Ok(_) => Ok(Some(Ready { name: gpus.name.clone(), gpus, first: Some(first) })),
        Err(error) if *choice == GpuChoice::Auto => {
            let reason = error.to_string();
            tracing::warn!(gpu = gpus.name, reason, "the GPU can't be used: training on the CPU");
            Ok(None)
        }
        Err(error) => Err(ClientError::Trainer(RunnerError::from_source(error))),
    }
}

/// A [`Slot`] as the daemon wants it.
#[derive(Debug)]
struct SlotRunner {
    slot: Slot,
    /// The name of its GPU.
    device: Option<String>,
}

impl UnitRunner for SlotRunner {
    async fn hello(&mut self) -> Result<Hello, RunnerError> {
        let hello = self.slot.hello(Some(CLASS_THREADS)).await.map_err(RunnerError::from_source)?;
        let device = self.device.clone().unwrap_or(hello.device);
        Ok(Hello { device, ..hello })
    }

    async fn run(
        &mut self,
        unit: RunUnit,
        on_progress: impl FnMut(Progress) + Send,
    ) -> Result<Outcome, RunnerError> {
        self.slot.run(unit, on_progress).await.map_err(RunnerError::from_source)
    }
}

fn slot_config(trainer: Option<&Path>) -> Result<SlotConfig, SlotError> {
    match trainer {
        Some(trainer) if trainer.is_file() => {
            Ok(SlotConfig { trainer: trainer.to_owned(), threads: 1, device: Device::Cpu })
        }
        Some(trainer) => Err(SlotError::Missing { trainer: trainer.to_owned() }),
        None => SlotConfig::find(),
    }
}

/// Threads of a unit that pins none: the slots share the cores.
fn free_threads(slots: u32) -> u32 {
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let cores = u32::try_from(cores).unwrap_or(u32::MAX);
    cores.checked_div(slots).unwrap_or(1).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Timing;

    fn config(dir: &Path, trainer: &Path) -> ClientConfig {
        ClientConfig {
            server: "http://127.0.0.1:1".into(),
            ca: None,
            token: Some("t".into()),
            name: "m".into(),
            data: dir.join("data"),
            slots: None,
            gpus: GpuChoice::Off,
            cache_bytes: 1,
            trainer: Some(trainer.to_owned()),
            timing: Timing::default(),
        }
    }

    #[tokio::test]
    async fn a_trainer_that_cannot_start_is_named_before_the_server_is_asked() {
        let dir = tempfile::tempdir().unwrap();
        let missing = dir.path().join("no-trainer");
        let text = dir.path().join("not-a-program");
        std::fs::write(&text, "this is no program").unwrap();
        for trainer in [missing, text] {
            let error =
                run(config(dir.path(), &trainer), std::future::pending()).await.unwrap_err();
            let ClientError::Trainer(why) = error else { panic!("{error}") };
            let name = trainer.file_name().unwrap().to_str().unwrap();
            assert!(why.to_string().contains(name), "{why}");
        }
    }
}

//! The real runner: a slot of `sojourn-slot`, with the trainer that the configuration names.

use crate::{
    config::ClientConfig,
    daemon::run_with,
    error::ClientError,
    runner::{RunnerError, UnitRunner},
};
use sojourn_protocol::{
    report::Outcome,
    trainer::{CLASS_THREADS, Hello, Progress, RunUnit},
};
use sojourn_slot::{Slot, SlotConfig, SlotError};
use std::{num::NonZero, path::Path, thread};

/// Runs a daemon with a trainer child for each slot, until `shutdown` ends: units are then stopped,
/// leases given back, and results that can't be sent any more kept for the next start.
///
/// # Errors
/// What only the owner of the machine can mend: a configuration that can't work (address, slots, token,
/// trainer, data folder), another daemon on the same data folder, or a server that no longer takes this
/// host.
pub async fn run(
    config: ClientConfig,
    shutdown: impl Future<Output = ()>,
) -> Result<(), ClientError> {
    let (trainer, slots) = (config.trainer.clone(), config.slots);
    let make = |_| {
        let config = slot_config(trainer.as_deref(), slots).map_err(RunnerError::from_source)?;
        Ok(SlotRunner(Slot::new(config)))
    };
    run_with(config, make, shutdown).await
}

/// A [`Slot`] as the daemon wants it.
#[derive(Debug)]
struct SlotRunner(Slot);

impl UnitRunner for SlotRunner {
    async fn hello(&mut self) -> Result<Hello, RunnerError> {
        self.0.hello(Some(CLASS_THREADS)).await.map_err(RunnerError::from_source)
    }

    async fn run(
        &mut self,
        unit: RunUnit,
        on_progress: impl FnMut(Progress) + Send,
    ) -> Result<Outcome, RunnerError> {
        self.0.run(unit, on_progress).await.map_err(RunnerError::from_source)
    }
}

fn slot_config(trainer: Option<&Path>, slots: u32) -> Result<SlotConfig, SlotError> {
    let found = match trainer {
        Some(trainer) if trainer.is_file() => {
            SlotConfig { trainer: trainer.to_owned(), threads: 1 }
        }
        Some(trainer) => return Err(SlotError::Missing { trainer: trainer.to_owned() }),
        None => SlotConfig::find()?,
    };
    Ok(SlotConfig { threads: free_threads(slots), ..found })
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
            slots: 1,
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

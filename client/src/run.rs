//! The daemon with real trainers: finds the trainer program and the GPUs, and says which slot is on what.

use crate::{
    config::ClientConfig,
    core_use::CoreUse,
    daemon::run_by,
    error::ClientError,
    forgotten::{Attempt, SetAside},
    limits::LimitEnforcement,
    trainers::{
        gpus::{Ready, ready},
        runner::{RunnerDevice, RunnerError},
        slot_runner::SlotRunner,
    },
};
use futures::future::{FusedFuture as _, FutureExt as _};
use sojourn_protocol::{inventory::CPU, quantity::SaturatingFrom as _};
use sojourn_slot::{Slot, SlotConfig, SlotError};
use std::{
    path::{Path, PathBuf},
    pin::pin,
    sync::{Arc, atomic::Ordering},
};

/// Runs a daemon with a trainer child for each slot, until `shutdown` ends: units are then stopped,
/// leases given back, and results that can't be sent any more kept for the next start.
///
/// # Errors
/// An error that only the owner of the machine can repair: a configuration that can't work (address, slots, token,
/// trainer, data folder), another daemon on the same data folder, a trainer that was changed under the
/// daemon, or a server that no longer takes this host.
pub async fn run(
    config: ClientConfig,
    shutdown: impl Future<Output = ()>,
) -> Result<(), ClientError> {
    let mut shutdown = pin!(shutdown.fuse());
    let ended = run_once(config.clone(), Attempt::First, shutdown.as_mut()).await;
    match SetAside::after(&ended, &config)? {
        None => ended,
        Some(aside) if shutdown.is_terminated() => aside.settle(ended),
        Some(aside) => aside.settle(run_once(config, Attempt::Again, shutdown).await),
    }
}

async fn run_once(
    mut config: ClientConfig,
    attempt: Attempt,
    shutdown: impl Future<Output = ()>,
) -> Result<(), ClientError> {
    config.validate()?;
    let base = slot_config(config.trainer.as_deref()).map_err(RunnerError::from_source);
    let base = base.map_err(ClientError::Trainer)?;
    let mut enforcement = LimitEnforcement::find(config.allowance.limits().cgroup != Some(false));
    let base = SlotConfig { trainer_group: Arc::clone(enforcement.trainer_group()), ..base };
    let mut shutdown = pin!(shutdown);
    let mut ready = tokio::select! {
        () = &mut shutdown => return Ok(()),
        ready = ready(&config.gpus, &base) => ready?,
    };
    let cards = ready.as_ref().map_or(1, Ready::count);
    let slots = config.slots.unwrap_or_else(|| u32::saturating_from(cards));
    // Without GPUs the slots are on the cores already.
    let cpu_slots = if ready.is_some() { config.cpu_slots } else { 0 };
    let slots = match (&ready, config.slots, config.cpu_slots) {
        (None, None, asked @ 1..) => asked,
        (None, Some(slots), asked @ 1..) => {
            tracing::warn!(
                slots,
                asked,
                "there are no GPUs, so that all slots are on the cores: `cpu_slots` isn't used"
            );
            slots
        }
        _ => slots,
    };
    let all = slots.saturating_add(cpu_slots);
    config.slots = Some(all);
    let on_cores = if ready.is_some() { cpu_slots } else { slots };
    enforcement.divide(on_cores);
    let group = enforcement.group();
    let threads = enforcement.threads();
    // Trainers of units that pin none start with these.
    let limits = config.allowance.limits();
    enforcement.set_threads(all, limits);
    let core_use = CoreUse {
        on_gpus: all.saturating_sub(on_cores),
        on_cores,
        threads: threads.load(Ordering::Relaxed),
        cores: LimitEnforcement::allowed_cores(limits),
    };
    tracing::info!("{}", core_use.text());
    let gpu_memory = limits.gpu_memory;
    if gpu_memory.is_some() && ready.as_ref().is_some_and(|ready| !ready.says_memory()) {
        tracing::warn!(
            "a GPU's driver doesn't say how much memory it has: `gpu_memory` isn't kept there"
        );
    }
    let memory = memory_of_machine().and_then(|memory| memory.checked_div(u64::from(on_cores)));
    let mut number_on_cores = 0;
    let places: Vec<Option<PathBuf>> =
        (0..on_cores).map(|slot| enforcement.place_of(slot)).collect();
    let make = |number: u32| {
        let on_gpu = ready.as_mut().filter(|_| number < slots);
        let (slot, device) = on_gpu
            .and_then(|ready| ready.slot((number, slots), gpu_memory, &base))
            .unwrap_or_else(|| {
                let device = RunnerDevice { name: CPU.to_owned(), memory };
                let own_group = places.get(number_on_cores).cloned().flatten();
                number_on_cores += 1;
                (Slot::new(SlotConfig { own_group, ..base.clone() }), device)
            });
        Ok(SlotRunner::new(slot, device, Arc::clone(&threads)))
    };
    let ended = run_by(config, attempt, enforcement, make, shutdown).await;
    // Its trainers are gone, or about to be.
    if let Some(group) = group.and_then(Arc::into_inner) {
        group.close().await;
    }
    ended
}

fn slot_config(trainer: Option<&Path>) -> Result<SlotConfig, SlotError> {
    match trainer {
        Some(trainer) if trainer.is_file() => Ok(SlotConfig::new(trainer.to_owned())),
        Some(trainer) => Err(SlotError::Missing { trainer: trainer.to_owned() }),
        None => SlotConfig::find(),
    }
}

/// Bytes of memory that the machine has.
fn memory_of_machine() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        config::{CacheFor, Timing},
        limits::Allowance,
        log::LogChoice,
        storage::folder::Folder,
        trainers::gpus::GpuChoice,
        transfer::Rates,
    };

    fn config(dir: &Path, trainer: &Path) -> ClientConfig {
        ClientConfig {
            server: "http://127.0.0.1:1".into(),
            ca: None,
            token: Some("t".into()),
            name: "m".into(),
            data: dir.join("data"),
            slots: None,
            cpu_slots: 0,
            gpus: GpuChoice::Off,
            cache_bytes: 1,
            cache_for: CacheFor::default(),
            rates: Rates::default(),
            allowance: Allowance::default(),
            log: LogChoice::Off,
            trainer: Some(trainer.to_owned()),
            metadata: None,
            send_log: true,
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

    #[tokio::test]
    async fn a_client_whose_folder_is_in_use_leaves_a_forgotten_identity_aside() {
        let dir = tempfile::tempdir().unwrap();
        // Not reached: the folder comes first.
        let trainer = dir.path().join("trainer");
        std::fs::write(&trainer, "this is no program").unwrap();
        let config = config(dir.path(), &trainer);
        let held = Folder::open(&config.data).unwrap();
        let aside = config.data.join("identity.forgotten");
        std::fs::write(&aside, "{}").unwrap();
        let error = run(config.clone(), std::future::pending()).await.unwrap_err();
        assert!(matches!(error, ClientError::FolderInUse { .. }), "{error}");
        assert!(aside.exists() && !held.identity().exists());
    }
}

//! GPUs that a trainer has been seen to work on: found, chosen and tried before a unit depends on them.

use super::{GpuChoice, Gpus, Surroundings, find};
use crate::{
    error::ClientError,
    limits::GpuMemory,
    trainers::runner::{RunnerDevice, RunnerError},
};
use sojourn_protocol::{quantity::SaturatingFrom as _, trainer::CLASS_THREADS};
use sojourn_slot::{Slot, SlotConfig};
use std::collections::BTreeMap;

/// GPUs that work.
#[derive(Debug)]
pub(crate) struct Ready {
    gpus: Gpus,
    /// The slots of the trainers that tried the first GPU of each kind, by its UUID.
    tried: BTreeMap<String, Slot>,
}

impl Ready {
    /// How many there are, at least 1.
    pub(crate) fn count(&self) -> usize {
        self.gpus.count()
    }

    /// Does the driver say of each how much memory it has?
    pub(crate) fn says_memory(&self) -> bool {
        self.gpus.gpus.iter().all(|gpu| gpu.memory.is_some())
    }

    /// Slot number `number` of `slots`, and what it is on, with what the owner lends of the memory of each; the
    /// first of each kind has its trainer already, where its memory isn't limited.
    pub(crate) fn slot(
        &mut self,
        (number, slots): (u32, u32),
        lent: Option<GpuMemory>,
        base: &SlotConfig,
    ) -> Option<(Slot, RunnerDevice)> {
        let gpu = self.gpus.of_slot(number)?;
        let sharing = (0..slots).filter(|other| self.gpus.of_slot(*other) == Some(gpu)).count();
        let sharing = u32::saturating_from(sharing);
        let ratio = gpu.memory.zip(lent).map(|(total, lent)| lent.of_slot(total, sharing));
        let memory = gpu.memory.map(|total| match ratio {
            Some(ratio) => ratio.bytes(total),
            None => total / u64::from(sharing.max(1)),
        });
        let device = RunnerDevice { name: gpu.name.clone(), memory };
        // A trainer that was tried has no limit yet.
        let tried = self.tried.remove(&gpu.uuid).filter(|_| ratio.is_none());
        let slot = tried.unwrap_or_else(|| {
            let device = self.gpus.device(gpu);
            Slot::new(SlotConfig { device, gpu_memory: ratio, ..base.clone() })
        });
        Some((slot, device))
    }
}

/// The GPUs for the slots; none where the CPU is to train, or where the choice is free and none works.
pub(crate) async fn ready(
    choice: &GpuChoice,
    base: &SlotConfig,
) -> Result<Option<Ready>, ClientError> {
    let Some(mut gpus) = find(choice, &Surroundings::of_this_process()).await? else {
        return Ok(None);
    };
    let mut tried = BTreeMap::new();
    let mut kinds: Vec<_> = gpus.gpus.clone();
    kinds.sort_by(|a, b| a.name.cmp(&b.name));
    kinds.dedup_by(|a, b| a.name == b.name);
    for gpu in kinds {
        let mut slot = Slot::new(SlotConfig { device: gpus.device(&gpu), ..base.clone() });
        match slot.hello(Some(CLASS_THREADS)).await {
            Ok(_) => drop(tried.insert(gpu.uuid, slot)),
            Err(error) if *choice == GpuChoice::Auto => {
                let (gpu, reason) = (gpu.name, error.to_string());
                tracing::warn!(gpu, reason, "GPUs of this kind can't be used, and are left out");
                gpus.without(&gpu);
            }
            Err(error) => return Err(ClientError::Trainer(RunnerError::from_source(error))),
        }
    }
    if gpus.count() == 0 {
        tracing::warn!("training on the CPU");
        return Ok(None);
    }
    Ok(Some(Ready { gpus, tried }))
}

/// A slot on the first of the GPUs of a choice, its trainer started; none as for the daemon: where the
/// CPU is to train, or where the choice is free and no GPU can be used.
///
/// # Errors
/// GPUs that were asked for by number and can't be used.
pub async fn gpu_slot(choice: &GpuChoice, base: &SlotConfig) -> Result<Option<Slot>, ClientError> {
    let ready = ready(choice, base).await?;
    Ok(ready.and_then(|mut ready| ready.slot((0, 1), None, base)).map(|(slot, _)| slot))
}

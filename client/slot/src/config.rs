//! Which trainer program a slot starts, with how many threads, on which device.

use crate::{
    device::{Device, MemoryRatio},
    error::SlotError,
    trainer_group::TrainerGroup,
};
use sojourn_protocol::trainer::{InstructionSet, TRAINER_PROGRAM};
use std::{path::PathBuf, sync::Arc};

/// How a slot runs its trainer.
#[derive(Debug, Clone)]
pub struct SlotConfig {
    /// The trainer program.
    pub trainer: PathBuf,
    /// Threads of units that don't pin them, at least 1.
    pub threads: u32,
    /// The instruction set of units that pin their arithmetic.
    pub instructions: InstructionSet,
    /// The trainer's device.
    pub device: Device,
    /// How much of a GPU's memory the trainer may take; all of it where nothing is said.
    pub gpu_memory: Option<MemoryRatio>,
    /// The trainers among which it is; of slots that are looked after together it is one.
    pub trainer_group: Arc<TrainerGroup>,
    /// A control group of the slot's own: its trainers enter through this file once they work, where the others of the
    /// trainer group enter through [`Places::at_work`](crate::Places::at_work).
    pub own_group: Option<PathBuf>,
}

impl SlotConfig {
    /// The configuration for that trainer: one thread, the common instruction set, on the CPU, looked after by nobody.
    #[must_use]
    pub fn new(trainer: PathBuf) -> Self {
        let (threads, instructions, device) = (1, InstructionSet::COMMON, Device::Cpu);
        let (gpu_memory, trainer_group) = (None, Arc::default());
        let own_group = None;
        Self { trainer, threads, instructions, device, gpu_memory, trainer_group, own_group }
    }

    /// The trainer beside the running program (or, for a test program, one folder above), one thread,
    /// on the CPU; the variable `SOJOURN_TRAINER` names another.
    ///
    /// # Errors
    /// [`SlotError::Missing`] where there is no such file.
    pub fn find() -> Result<Self, SlotError> {
        let trainer = match std::env::var_os("SOJOURN_TRAINER").filter(|path| !path.is_empty()) {
            Some(path) => PathBuf::from(path),
            None => beside_this_program()?,
        };
        if !trainer.is_file() {
            return Err(SlotError::Missing { trainer });
        }
        Ok(Self::new(trainer))
    }
}

fn beside_this_program() -> Result<PathBuf, SlotError> {
    let program = std::env::current_exe().map_err(SlotError::OwnPath)?;
    let folders = program.ancestors().skip(1).take(2);
    let mut places = folders.map(|folder| folder.join(TRAINER_PROGRAM));
    let first = places.next().unwrap_or_else(|| PathBuf::from(TRAINER_PROGRAM));
    if first.is_file() {
        return Ok(first);
    }
    Ok(places.find(|place| place.is_file()).unwrap_or(first))
}

/// The arithmetic that a trainer was started for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Pinned instruction set and threads, for reproducible units.
    Pinned {
        /// Threads of each operation.
        threads: u32,
        /// The instruction set.
        instructions: InstructionSet,
    },
    /// The fastest arithmetic of the machine.
    Free {
        /// Threads of each operation.
        threads: u32,
    },
}

impl Mode {
    /// Threads of each operation.
    #[must_use]
    pub const fn threads(self) -> u32 {
        match self {
            Mode::Pinned { threads, .. } | Mode::Free { threads } => threads,
        }
    }
}

/// The instruction sets that trainers can be pinned to on this machine, from the slowest to the fastest. The common one is
/// always among them.
#[must_use]
pub fn supported_instructions() -> Vec<InstructionSet> {
    InstructionSet::ALL.into_iter().filter(|set| is_supported(*set)).collect()
}

#[cfg(target_arch = "x86_64")]
fn is_supported(set: InstructionSet) -> bool {
    match set {
        InstructionSet::Avx2 => true,
        InstructionSet::Avx512 => {
            std::arch::is_x86_feature_detected!("avx512f")
                && std::arch::is_x86_feature_detected!("avx512bw")
                && std::arch::is_x86_feature_detected!("avx512dq")
                && std::arch::is_x86_feature_detected!("avx512vl")
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn is_supported(set: InstructionSet) -> bool {
    set == InstructionSet::COMMON
}

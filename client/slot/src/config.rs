//! Which trainer program a slot starts, with how many threads, on which device.

use crate::{
    device::{Device, MemoryShare},
    error::SlotError,
    trainer_group::TrainerGroup,
};
use sojourn_protocol::trainer::TRAINER_PROGRAM;
use std::{path::PathBuf, sync::Arc};

/// How a slot runs its trainer.
#[derive(Debug, Clone)]
pub struct SlotConfig {
    /// The trainer program.
    pub trainer: PathBuf,
    /// Threads of units that don't pin them, at least 1.
    pub threads: u32,
    /// The trainer's device.
    pub device: Device,
    /// How much of a GPU's memory the trainer may take; all of it where nothing is said.
    pub gpu_memory: Option<MemoryShare>,
    /// The trainers among which it is; of slots that are looked after together it is one.
    pub trainer_group: Arc<TrainerGroup>,
}

impl SlotConfig {
    /// That trainer, one thread, on the CPU, looked after by nobody.
    #[must_use]
    pub fn new(trainer: PathBuf) -> Self {
        let (threads, device) = (1, Device::Cpu);
        Self { trainer, threads, device, gpu_memory: None, trainer_group: Arc::default() }
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
            Mode::Pinned { threads } | Mode::Free { threads } => threads,
        }
    }
}

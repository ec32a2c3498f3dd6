//! Why there is no trainer to run a unit with. What goes wrong in a unit is an outcome, no error.

use sojourn_protocol::{digest::Digest, trainer::TRAINER_PROTOCOL};
use std::{io, path::PathBuf};

/// No trainer.
#[derive(Debug, thiserror::Error)]
pub enum SlotError {
    /// There is no such program.
    #[error("there is no trainer at `{}`; build it, or name it with SOJOURN_TRAINER", .trainer.display())]
    Missing {
        /// Where it was looked for.
        trainer: PathBuf,
    },
    /// This program doesn't know where it lies itself.
    #[error("this program's own path is unknown")]
    OwnPath(#[source] io::Error),
    /// The program can't be started.
    #[error("the trainer `{}` can't be started", .trainer.display())]
    Start {
        /// The program.
        trainer: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The program started and ended, or said something else than hello.
    #[error("the trainer `{}` doesn't come up: {why}", .trainer.display())]
    Hello {
        /// The program.
        trainer: PathBuf,
        /// Its answer, with the end of its log.
        why: String,
    },
    /// The program is of another version.
    #[error("the trainer `{}` speaks version {found}, this program {TRAINER_PROTOCOL}", .trainer.display())]
    Protocol {
        /// The program.
        trainer: PathBuf,
        /// Its version.
        found: u32,
    },
    /// Its arithmetic isn't that of the slot's trainers before it.
    #[error(
        "the trainer `{}` is now of numeric class {}, and was of {}: the program, libtorch or a driver \
         has been changed since; start this program again", .trainer.display(), .found.short(), .was.short()
    )]
    Class {
        /// The program.
        trainer: PathBuf,
        /// The class of those before it, in the same mode.
        was: Digest,
        /// Its class.
        found: Digest,
    },
}

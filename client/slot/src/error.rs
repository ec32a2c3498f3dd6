//! Why there is no trainer to run a unit with. What goes wrong in a unit is an outcome, no error.

use sojourn_protocol::{digest::Digest, trainer::TRAINER_PROTOCOL};
use std::{io, path::PathBuf};

/// No trainer.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says it")]
pub enum SlotError {
    #[error("there is no trainer at `{}`; build it, or name it with SOJOURN_TRAINER", .trainer.display())]
    Missing { trainer: PathBuf },
    #[error("this program's own path is unknown")]
    OwnPath(#[source] io::Error),
    #[error("the trainer `{}` can't be started", .trainer.display())]
    Start { trainer: PathBuf, source: io::Error },
    #[error("the trainer `{}` doesn't come up: {why}", .trainer.display())]
    Hello { trainer: PathBuf, why: String },
    #[error("the trainer `{}` speaks version {found}, this program {TRAINER_PROTOCOL}", .trainer.display())]
    Protocol { trainer: PathBuf, found: u32 },
    /// The trainer's arithmetic isn't that of the slot's trainers before it.
    #[error(
        "the trainer `{}` is now of numeric class {}, and was of {}: the program, libtorch or a driver \
         has been changed since; start this program again", .trainer.display(), .found.short(), .was.short()
    )]
    Class { trainer: PathBuf, was: Digest, found: Digest },
}

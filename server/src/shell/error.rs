//! Why the shell can't start.

use crate::journal::JournalError;
use sojourn_core::{CoreFault, JournalPosition, RecoverError, SnapshotError};

/// Why the state could not be brought back.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ShellError {
    /// The journal was refused.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The journal's snapshot or events don't make a state.
    #[error(transparent)]
    Recover(#[from] RecoverError),
    /// The core can't go on.
    #[error(transparent)]
    Core(#[from] CoreFault),
    /// A snapshot can't be made.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    /// A snapshot is of another position than it says.
    #[error("the snapshot at position {} holds the state at {}", position.0, holds.0)]
    Misplaced {
        /// Where it should be.
        position: JournalPosition,
        /// Where it is.
        holds: JournalPosition,
    },
    /// A snapshot can't be packed or unpacked.
    #[error("a snapshot can't be packed or unpacked")]
    Pack(#[source] std::io::Error),
    /// A thread could not be started.
    #[error("can't start a thread")]
    Thread(#[source] std::io::Error),
}

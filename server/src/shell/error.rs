//! Why the shell can't start.

use crate::journal::JournalError;
use sojourn_core::{CoreFault, JournalPosition, RecoverError, SnapshotError, Violation};

/// Why the state could not be brought back.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "each variant's message says it")]
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
    /// The recovered state breaks invariants that the operator hasn't accepted.
    #[error(
        "{}; to serve this state nevertheless, name what to accept: `--accept-violation {}`",
        each(.0, Violation::to_string).join("; "),
        each(.0, |violation| violation.id.to_string()).join(" --accept-violation ")
    )]
    Violated(Vec<Violation>),
    #[error("the snapshot at position {} holds the state at {}", position.0, holds.0)]
    Misplaced { position: JournalPosition, holds: JournalPosition },
    #[error("a snapshot can't be packed or unpacked")]
    Pack(#[source] std::io::Error),
    #[error("can't start a thread")]
    Thread(#[source] std::io::Error),
}

impl ShellError {
    /// May the same server be able to go on in a moment?
    pub(super) const fn is_passing(&self) -> bool {
        match self {
            Self::Journal(error) => error.is_passing(),
            Self::Thread(_) => true,
            Self::Recover(_)
            | Self::Core(_)
            | Self::Snapshot(_)
            | Self::Violated(_)
            | Self::Misplaced { .. }
            | Self::Pack(_) => false,
        }
    }
}

fn each(violations: &[Violation], text: impl Fn(&Violation) -> String) -> Vec<String> {
    violations.iter().map(text).collect()
}

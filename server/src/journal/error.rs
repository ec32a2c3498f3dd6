//! Errors of a journal.

use rusqlite::ErrorCode;
use sojourn_core::JournalPosition;
use std::{io, path::PathBuf};

/// Why the journal was refused or could not do something.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "each variant's message says it")]
pub enum JournalError {
    #[error("the journal has {what} `{found}`, but this program knows only `{known}`")]
    UnknownVersion { what: &'static str, found: String, known: String },
    #[error("the journal is damaged at position {}: {reason}", position.0)]
    Corrupt { position: JournalPosition, reason: String },
    /// The storage holds no journal, or is damaged.
    #[error("the journal can't be read")]
    Unreadable(#[source] Box<dyn std::error::Error + Send + Sync>),
    #[error("expected an event at position {}, was given one at {}", expected.0, given.0)]
    OutOfOrder { expected: JournalPosition, given: JournalPosition },
    /// An event that could not be read again: a fault of the program.
    #[error("the event at position {} can't be written so that it reads back: {reason}", position.0)]
    Unwritable { position: JournalPosition, reason: String },
    #[error("a snapshot at position {} lies beyond the journal's tail {}", position.0, tail.0)]
    BeyondTail { position: JournalPosition, tail: JournalPosition },
    #[error("events below position {} can't be dropped: no verified snapshot covers them", below.0)]
    NotCovered { below: JournalPosition },
    /// The storage failed. The records of an append may or may not be there.
    #[error("the journal's storage failed")]
    Storage(#[source] Box<dyn std::error::Error + Send + Sync>),
    #[error("another server is active{}", at(active))]
    Standby {
        /// The URL of the active server; empty if it set none.
        active: String,
    },
    /// A sync has failed. The system may have dropped what it couldn't write, so that what is read now isn't what a power cut leaves.
    #[error(
        "the disk has failed to keep what was written to the journal: the server must start again from what is there"
    )]
    Unsynced(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The journal's folder was deleted while it was open: what was appended last isn't kept.
    #[error("`{}` was deleted: its folder is gone", .0.display())]
    Gone(PathBuf),
    /// Another server has taken over: this one can't write any more.
    #[error("another server has taken over the journal")]
    Fenced,
    #[error("`{place}` can't be reached")]
    Unreachable { place: String, source: Box<dyn std::error::Error + Send + Sync> },
    #[error("`{place}` refuses")]
    Refused { place: String, source: Box<dyn std::error::Error + Send + Sync> },
    #[error("Redis can't keep the journal as was asked: {0}")]
    Weak(String),
}

impl JournalError {
    /// May the same server be able to use the journal in a moment? Otherwise another may be, or somebody has to do something.
    pub(crate) const fn is_passing(&self) -> bool {
        matches!(
            self,
            Self::Storage(_) | Self::Unreachable { .. } | Self::Standby { .. } | Self::Fenced
        )
    }

    /// Must the process end, because nothing that it reads from now on tells what a restart will find?
    pub(crate) const fn is_final(&self) -> bool {
        matches!(self, Self::Gone(_) | Self::Unsynced(_))
    }

    /// Is there no room on the disk for it?
    pub(crate) fn is_full(&self) -> bool {
        let (Self::Storage(source) | Self::Unreadable(source)) = self else { return false };
        let mut cause = Some(&**source as &(dyn std::error::Error + 'static));
        while let Some(error) = cause {
            let sqlite = error.downcast_ref::<rusqlite::Error>();
            let io = error.downcast_ref::<io::Error>().map(io::Error::kind);
            if sqlite.is_some_and(|error| error.sqlite_error_code() == Some(ErrorCode::DiskFull))
                || matches!(io, Some(io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded))
            {
                return true;
            }
            cause = error.source();
        }
        false
    }
}

fn at(active: &str) -> String {
    if active.is_empty() { String::new() } else { format!(": {active}") }
}

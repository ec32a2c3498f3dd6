//! Errors of a journal.

use sojourn_core::JournalPosition;

/// Why the journal was refused or could not do something.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    /// Another version of the program wrote it.
    #[error("the journal has {what} `{found}`, but this program knows only `{known}`")]
    UnknownVersion {
        /// The thing that has the version.
        what: &'static str,
        /// The journal's version.
        found: String,
        /// The versions that this program knows.
        known: String,
    },
    /// Records or the chain between them are not as they were written.
    #[error("the journal is damaged at position {}: {reason}", position.0)]
    Corrupt {
        /// The first position that can't be trusted.
        position: JournalPosition,
        /// The reason.
        reason: String,
    },
    /// It is no journal, or its storage is damaged.
    #[error("the journal can't be read")]
    Unreadable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// An append that doesn't go on from the tail.
    #[error("expected an event at position {}, was given one at {}", expected.0, given.0)]
    OutOfOrder {
        /// The position after the tail.
        expected: JournalPosition,
        /// The position that was given.
        given: JournalPosition,
    },
    /// An event that could not be read again: a fault of the program.
    #[error("the event at position {} can't be written so that it reads back: {reason}", position.0)]
    Unwritable {
        /// Its position.
        position: JournalPosition,
        /// The reason.
        reason: String,
    },
    /// A snapshot of events that aren't in the journal.
    #[error("a snapshot at position {} lies beyond the journal's tail {}", position.0, tail.0)]
    BeyondTail {
        /// The snapshot's.
        position: JournalPosition,
        /// The journal's.
        tail: JournalPosition,
    },
    /// A trim without a verified snapshot.
    #[error("events below position {} can't be dropped: no verified snapshot covers them", below.0)]
    NotCovered {
        /// The first position that was to be kept.
        below: JournalPosition,
    },
    /// The storage failed. The records of an append may or may not be there.
    #[error("the journal's storage failed")]
    Storage(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// Another server is active.
    #[error("another server is active{}", at(active))]
    Standby {
        /// The URL of the active server; empty if it set none.
        active: String,
    },
    /// Another server has taken over: this one can't write any more.
    #[error("another server has taken over the journal")]
    Fenced,
    /// The program that stores it doesn't answer.
    #[error("`{place}` can't be reached")]
    Unreachable {
        /// Which.
        place: String,
        /// Why.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The program that stores it isn't set up for the chosen durability.
    #[error("Redis can't keep the journal as was asked: {0}")]
    Weak(String),
}

fn at(active: &str) -> String {
    if active.is_empty() { String::new() } else { format!(": {active}") }
}

//! What can go wrong with a journal.

use sojourn_core::JournalPosition;

/// Why the journal was refused or could not do something.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    /// Another version of the program wrote it.
    #[error("the journal has {what} `{found}`, but this program knows only `{known}`")]
    UnknownVersion {
        /// What differs.
        what: &'static str,
        /// What the journal has.
        found: String,
        /// What this program has.
        known: String,
    },
    /// Records or the chain between them are not as they were written.
    #[error("the journal is damaged at position {}: {reason}", position.0)]
    Corrupt {
        /// The first position that can't be trusted.
        position: JournalPosition,
        /// What is wrong there.
        reason: String,
    },
    /// It is no journal at all, or its storage is damaged.
    #[error("the journal can't be read")]
    Unreadable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// An append that doesn't go on from the tail.
    #[error("expected an event at position {}, was given one at {}", expected.0, given.0)]
    OutOfOrder {
        /// The tail's next.
        expected: JournalPosition,
        /// What came.
        given: JournalPosition,
    },
    /// An event that could not be read again once it is written: a fault of the program.
    #[error("the event at position {} can't be written so that it reads back: {reason}", position.0)]
    Unwritable {
        /// Where it was to be.
        position: JournalPosition,
        /// What is wrong with it.
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
        /// Where the trim was to end.
        below: JournalPosition,
    },
    /// The storage failed; what was being written may or may not be there.
    #[error("the journal's storage failed")]
    Storage(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// Another server has it, and writes.
    #[error("another server is active{}", at(active))]
    Standby {
        /// Where that one can be reached; empty where it didn't say.
        active: String,
    },
    /// Another server has taken over: nothing more can be written here.
    #[error("another server has taken over the journal")]
    Fenced,
    /// The program that keeps it doesn't answer.
    #[error("`{place}` can't be reached")]
    Unreachable {
        /// Which.
        place: String,
        /// Why.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The program that keeps it can't keep what was chosen.
    #[error("Redis can't keep the journal as was asked: {0}")]
    Weak(String),
}

fn at(active: &str) -> String {
    if active.is_empty() { String::new() } else { format!(": {active}") }
}

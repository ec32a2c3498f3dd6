//! The journal: every event, in order, chained and durable; and snapshots that spare reading it all.
//!
//! It stores and verifies. It never decides what an event means (the core does), and it is used by
//! one writer at a time.

mod chain;
mod error;
mod memory;
mod owner;
mod reached;
mod redis;
mod sqlite;

pub use chain::Check;
pub use error::JournalError;
pub use memory::{Fault, MemoryJournal};
pub use redis::{
    Disk, Durability, DurabilityError, PlaceError, RedisJournals, RedisPlace, RedisSettings,
};
pub use sqlite::SqliteJournal;

use sojourn_core::{JournalPosition, Record};
use sojourn_protocol::{digest::Digest, ids::JobId};
use std::ops::RangeInclusive;

/// A state of the core at a position of the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// All events up to here are in it.
    pub position: JournalPosition,
    /// What the core wrote.
    pub bytes: Vec<u8>,
}

/// Positions of the chain and their checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ends {
    /// Before the first record that is kept.
    pub anchor: (JournalPosition, Check),
    /// Of the last record.
    pub tail: (JournalPosition, Check),
}

impl Ends {
    /// Refuses to begin anew where there are records, or were.
    fn empty(&self) -> Result<(), JournalError> {
        match self.tail.0 {
            JournalPosition(0) => Ok(()),
            tail => Err(JournalError::OutOfOrder {
                expected: JournalPosition(tail.0 + 1),
                given: JournalPosition(1),
            }),
        }
    }
}

/// An append-only journal. All calls block.
pub trait Journal: Send {
    /// Appends a group whose positions go on from the tail. When it returns, all of it is durable;
    /// when it fails, all, some or none of it may be there: open the journal again and look.
    ///
    /// # Errors
    /// [`JournalError::OutOfOrder`], [`JournalError::Unwritable`], or trouble with the storage.
    fn append(&mut self, records: &[Record]) -> Result<(), JournalError>;

    /// Up to `limit` records after a position, their chain verified; empty at the tail.
    ///
    /// # Errors
    /// [`JournalError::Corrupt`] where records are missing, altered or unreadable; trouble with the
    /// storage.
    fn read(&mut self, after: JournalPosition, limit: usize) -> Result<Vec<Record>, JournalError>;

    /// Where the chain begins and ends.
    fn ends(&self) -> Ends;

    /// The position of the last record.
    fn tail(&self) -> JournalPosition {
        self.ends().tail.0
    }

    /// The position before the first record that is kept.
    fn anchor(&self) -> JournalPosition {
        self.ends().anchor.0
    }

    /// Has an empty journal begin after a position, with the check of what came before there: for a copy of one whose
    /// first records were dropped.
    ///
    /// # Errors
    /// [`JournalError::OutOfOrder`] where it isn't empty; trouble with the storage.
    fn begin_after(&mut self, anchor: (JournalPosition, Check)) -> Result<(), JournalError>;

    /// Keeps a snapshot; older ones but the last are dropped.
    ///
    /// # Errors
    /// [`JournalError::BeyondTail`], or trouble with the storage.
    fn save_snapshot(&mut self, snapshot: &Snapshot) -> Result<(), JournalError>;

    /// The newest snapshot that is as it was written; `None` where there is none.
    ///
    /// # Errors
    /// Trouble with the storage.
    fn load_snapshot(&mut self) -> Result<Option<Snapshot>, JournalError> {
        self.load_snapshot_below(JournalPosition(u64::MAX))
    }

    /// As [`Journal::load_snapshot`], of those at positions below `below`.
    ///
    /// # Errors
    /// Trouble with the storage.
    fn load_snapshot_below(
        &mut self,
        below: JournalPosition,
    ) -> Result<Option<Snapshot>, JournalError>;

    /// Drops the records below `below`, which a snapshot that was just read back must cover.
    ///
    /// # Errors
    /// [`JournalError::NotCovered`], or trouble with the storage.
    fn trim(&mut self, below: JournalPosition) -> Result<(), JournalError>;

    /// Up to `limit` records of one job after a position.
    ///
    /// # Errors
    /// [`JournalError::Corrupt`], or trouble with the storage.
    fn events(
        &mut self,
        job: JobId,
        after: JournalPosition,
        limit: usize,
    ) -> Result<Vec<Record>, JournalError>;
}

/// Where a server has its journal from: at its start, and again after the journal failed.
pub trait OpenJournal: Send + Sync {
    /// Opens the journal, as its only writer from now on.
    ///
    /// # Errors
    /// Where it is refused or can't be reached; [`JournalError::Standby`] as long as another server has it.
    fn open(&self) -> Result<Box<dyn Journal>, JournalError>;

    /// Whether nobody else can have opened it since. Where this says no, nothing may be told of the state.
    fn is_ours(&self) -> bool {
        true
    }

    /// Where this server can be reached, for those that stand by while it is active.
    fn stand_at(&self, _url: &str) {}

    /// What a power cut could lose, for people, where that was chosen.
    fn standing(&self) -> Option<&str> {
        None
    }

    /// A secret that all servers of the journal share: `mine`, where there is none yet.
    ///
    /// # Errors
    /// Where the journal's storage can't be reached.
    fn secret(&self, _name: &str, mine: &str) -> Result<String, JournalError> {
        Ok(mine.to_owned())
    }

    /// This server ends: another may have the journal at once.
    fn leave(&self) {}
}

impl<F> OpenJournal for F
where
    F: Fn() -> Result<Box<dyn Journal>, JournalError> + Send + Sync,
{
    fn open(&self) -> Result<Box<dyn Journal>, JournalError> {
        self()
    }
}

/// Refuses a group that doesn't go on from `tail`.
fn in_order(tail: JournalPosition, records: &[Record]) -> Result<(), JournalError> {
    let mut expected = tail.0;
    for record in records {
        expected += 1;
        if record.position.0 != expected {
            let expected = JournalPosition(expected);
            return Err(JournalError::OutOfOrder { expected, given: record.position });
        }
    }
    Ok(())
}

/// A record's bytes. They are read back: one that could not be would stop every start from here on.
fn encode(record: &Record) -> Result<Vec<u8>, JournalError> {
    let position = record.position;
    let unwritable = |reason: String| JournalError::Unwritable { position, reason };
    let payload = serde_json::to_vec(record).map_err(|error| unwritable(error.to_string()))?;
    let back: Record =
        serde_json::from_slice(&payload).map_err(|error| unwritable(error.to_string()))?;
    if back != *record {
        return Err(unwritable("it reads back as something else".to_owned()));
    }
    Ok(payload)
}

fn decode(position: JournalPosition, payload: &[u8]) -> Result<Record, JournalError> {
    let corrupt = |reason: String| JournalError::Corrupt { position, reason };
    let record: Record = serde_json::from_slice(payload)
        .map_err(|error| corrupt(format!("it is no event of this version ({error})")))?;
    if record.position != position {
        return Err(corrupt(format!("it says that it is at {}", record.position.0)));
    }
    Ok(record)
}

/// A snapshot's digest covers its position, so that one can't pass for another.
fn snapshot_digest(position: JournalPosition, bytes: &[u8]) -> Digest {
    Digest(Check::default().then(position, bytes).0)
}

/// A version that a journal says, where it is one of the known ones.
fn known_version(
    what: &'static str,
    found: &[u8],
    known: RangeInclusive<u32>,
) -> Result<u32, JournalError> {
    let found = String::from_utf8_lossy(found).into_owned();
    let version = found.parse().ok().filter(|version| known.contains(version));
    version.ok_or_else(|| JournalError::UnknownVersion { what, found, known: words(&known) })
}

/// `1`, `1 to 2`.
fn words(versions: &RangeInclusive<u32>) -> String {
    let (first, last) = (versions.start(), versions.end());
    if first == last { first.to_string() } else { format!("{first} to {last}") }
}

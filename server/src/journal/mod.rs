//! The journal: every event, in order, chained by hashes and durable; and snapshots, which make a start fast.
//!
//! ```text
//!   Journal  <--  ChainedJournal: order, chain, versions, snapshots, trims, high-water mark
//!                      |
//!                   Storage: rows and bytes  <--  SQLite, Redis, memory
//! ```
//!
//! The journal stores and verifies. The core says what an event means. One writer uses a journal at a time.

mod chain;
mod chained;
mod durability;
mod encoding;
mod error;
mod event_job;
mod high_water;
mod listing;
mod memory;
#[cfg(feature = "redis")]
mod redis;
mod shared_note;
mod sqlite;
mod storage;

pub use chain::{ChainHash, Mark, Marks};
pub use chained::ChainedJournal;
pub use durability::{Disk, Durability, DurabilityError};
pub use error::JournalError;
pub use event_job::EventJob;
pub use memory::{Fault, MemoryJournal};
#[cfg(feature = "redis")]
pub use redis::{RedisJournals, RedisSettings, RedisUrl, RedisUrlError};
pub use shared_note::{NOTE_INTERVAL, NoteStore};
pub use sqlite::{SqliteJournal, SqliteStorage};
pub use storage::{NewRow, Row, Storage, StoredSnapshot, Versions};

use sojourn_core::{JournalPosition, Record};
use sojourn_protocol::ids::JobId;
use std::{sync::Arc, time::Duration};

/// A state of the core at a position of the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// The last event that is in it.
    pub position: JournalPosition,
    /// The core's state, as the core serialised it.
    pub bytes: Vec<u8>,
}

/// An append-only journal. All calls block.
pub trait Journal: Send {
    /// Appends a group of records that follows the tail. When it returns, all of it is durable. When it fails, all, some
    /// or none of it may be there: open the journal again to find out.
    ///
    /// # Errors
    /// [`JournalError::OutOfOrder`], [`JournalError::Unwritable`], or a failure of the storage.
    fn append(&mut self, records: &[Record]) -> Result<(), JournalError>;

    /// Up to `limit` records after a position, their chain verified; empty at the tail.
    ///
    /// # Errors
    /// [`JournalError::Corrupt`] where records are missing, altered or unreadable; a failure
    /// of the storage.
    fn read(&mut self, after: JournalPosition, limit: usize) -> Result<Vec<Record>, JournalError>;

    /// Where the chain begins and ends.
    fn marks(&self) -> Marks;

    /// The position of the last record.
    fn tail(&self) -> JournalPosition {
        self.marks().tail.position
    }

    /// The position before the first record that is kept.
    fn anchor(&self) -> JournalPosition {
        self.marks().anchor.position
    }

    /// Has an empty journal begin after `anchor`: for the copy of a journal whose first records were dropped.
    ///
    /// # Errors
    /// [`JournalError::OutOfOrder`] where it isn't empty; a failure of the storage.
    fn begin_after(&mut self, anchor: Mark) -> Result<(), JournalError>;

    /// Keeps a snapshot, and the one before it; older ones are dropped.
    ///
    /// # Errors
    /// [`JournalError::BeyondTail`], or a failure of the storage.
    fn save_snapshot(&mut self, snapshot: &Snapshot) -> Result<(), JournalError>;

    /// The newest snapshot that is as it was written; `None` where there is none.
    ///
    /// # Errors
    /// A failure of the storage.
    fn load_snapshot(&mut self) -> Result<Option<Snapshot>, JournalError>;

    /// As [`Journal::load_snapshot`], of those at positions below `below`.
    ///
    /// # Errors
    /// A failure of the storage.
    fn load_snapshot_below(
        &mut self,
        below: JournalPosition,
    ) -> Result<Option<Snapshot>, JournalError>;

    /// Drops the records below `below`, which a snapshot that was just read back must cover.
    ///
    /// # Errors
    /// [`JournalError::NotCovered`], or a failure of the storage.
    fn trim(&mut self, below: JournalPosition) -> Result<(), JournalError>;

    /// Up to `limit` records of one job after a position.
    ///
    /// # Errors
    /// [`JournalError::Corrupt`], or a failure of the storage.
    fn events(
        &mut self,
        job: JobId,
        after: JournalPosition,
        limit: usize,
    ) -> Result<Vec<Record>, JournalError>;
}

/// Opens a server's journal: at its start, and again after the journal failed.
pub trait OpenJournal: Send + Sync {
    /// Opens the journal, as its only writer from now on.
    ///
    /// # Errors
    /// Where it is refused or can't be reached; [`JournalError::Standby`] as long as another server has it.
    fn open(&self) -> Result<Box<dyn Journal>, JournalError>;

    /// May other servers use it too, one at a time?
    fn is_shared(&self) -> bool;

    /// How long no other server can open it, even if the lease over it isn't renewed any more. Zero while this server hasn't
    /// the lease; the longest time where servers don't share the journal.
    fn held_for(&self) -> Duration;

    /// Whether no other server can have opened it since. Where this is false, no request may be answered from the state.
    fn is_ours(&self) -> bool {
        !self.held_for().is_zero()
    }

    /// Keeps a note of how far the journal has come where all of its servers see it.
    fn keep_note(&self, _notes: Arc<dyn NoteStore>) {}

    /// Sets the URL of this server, for the servers that stand by while it is active.
    fn advertise(&self, _url: &str) {}

    /// The losses that a power cut could cause, for people, where the durability was chosen.
    fn durability(&self) -> Option<&str> {
        None
    }

    /// A secret that all servers of the journal share. If there is none yet, it is `mine`.
    ///
    /// # Errors
    /// Where the journal's storage can't be reached.
    fn secret(&self, _name: &str, mine: &str) -> Result<String, JournalError> {
        Ok(mine.to_owned())
    }

    /// Such a secret, where there is one and other servers can read it.
    ///
    /// # Errors
    /// Where the journal's storage can't be reached.
    fn existing_secret(&self, _name: &str) -> Result<Option<String>, JournalError> {
        Ok(None)
    }

    /// Replaces such a secret for all servers, under the lease of the active one.
    ///
    /// # Errors
    /// [`JournalError::Fenced`] where another server has the journal, or where its storage can't be reached.
    fn set_secret(&self, _name: &str, _value: &str) -> Result<(), JournalError> {
        Ok(())
    }

    /// Deletes such a secret.
    ///
    /// # Errors
    /// Where the journal's storage can't be reached.
    fn remove_secret(&self, _name: &str) -> Result<(), JournalError> {
        Ok(())
    }

    /// Releases the journal: another server may open it at once.
    fn leave(&self) {}
}

impl<F> OpenJournal for F
where
    F: Fn() -> Result<Box<dyn Journal>, JournalError> + Send + Sync,
{
    fn open(&self) -> Result<Box<dyn Journal>, JournalError> {
        self()
    }

    fn is_shared(&self) -> bool {
        false
    }

    fn held_for(&self) -> Duration {
        Duration::MAX
    }
}

//! The storage of a journal.
//!
//! A storage holds rows, marks and snapshots, as bytes. It has no rules: [`super::ChainedJournal`] checks order, hashes
//! and versions, and decides what may be dropped.

use super::{ChainHash, EventJob, JournalError, Mark, Marks};
use sojourn_core::JournalPosition;
use sojourn_protocol::{
    digest::Digest,
    ids::{JobId, LeaseId},
};
use std::collections::HashMap;

/// A record as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The record's position.
    pub position: JournalPosition,
    /// The record as JSON.
    pub payload: Vec<u8>,
    /// The chain's hash up to this record.
    pub hash: ChainHash,
}

/// A record to store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewRow {
    /// The record.
    pub row: Row,
    /// How the event names its job, for the index of a job's records.
    pub job: EventJob,
}

/// The versions that a stored journal says of itself, as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Versions {
    /// Of tables or keys.
    pub format: String,
    /// Of events.
    pub events: String,
}

/// A snapshot as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredSnapshot {
    /// All records up to here are in it.
    pub position: JournalPosition,
    /// The version of events that the program knew which wrote it.
    pub version: u32,
    /// Over position and bytes.
    pub digest: Digest,
    /// The core's state, as the core serialised it.
    pub bytes: Vec<u8>,
}

/// A place for one journal, which one writer uses at a time. Each call is atomic, and what it writes is durable when it
/// returns. Each call fails where the storage fails, or holds what can't be read.
pub trait Storage: Send {
    /// The version of its tables or keys.
    const FORMAT: u32;

    /// The versions of what is stored; `None` where there is no journal yet.
    fn versions(&mut self) -> Result<Option<Versions>, JournalError>;

    /// Where the chain begins and ends.
    fn marks(&mut self) -> Result<Marks, JournalError>;

    /// Sets versions and marks; makes the journal where there is none.
    fn set_marks(&mut self, versions: &Versions, marks: Marks) -> Result<(), JournalError>;

    /// Adds rows, at least one, after `tail`, which is the last row's mark. The last of them becomes the tail.
    fn append(&mut self, rows: &[NewRow], tail: Mark) -> Result<(), JournalError>;

    /// The first rows after a position, in order: all, or one job's. Gives up to `limit` rows, and none only where there
    /// are none; it may give fewer than there are.
    fn rows(
        &mut self,
        of: Option<JobId>,
        after: JournalPosition,
        limit: usize,
    ) -> Result<Vec<Row>, JournalError>;

    /// The jobs under which the first rows after a position are listed, in order; none where that is kept elsewhere than with
    /// the rows.
    fn jobs_of_rows(
        &mut self,
        _after: JournalPosition,
        _limit: usize,
    ) -> Result<Vec<Option<JobId>>, JournalError> {
        Ok(Vec::new())
    }

    /// The jobs of leases, by which rows that name a lease alone are listed.
    fn jobs_of_leases(&mut self) -> Result<HashMap<LeaseId, JobId>, JournalError> {
        Ok(HashMap::new())
    }

    /// Stores a snapshot, and drops all but the newest `keep`.
    fn put_snapshot(&mut self, snapshot: &StoredSnapshot, keep: u32) -> Result<(), JournalError>;

    /// The newest snapshot at a position below `below`; the newest of all for `None`.
    fn newest_snapshot(
        &mut self,
        below: Option<JournalPosition>,
    ) -> Result<Option<StoredSnapshot>, JournalError>;

    /// Drops the rows up to and with `anchor`, and what is known of the leases `ended`. Sets the anchor.
    fn drop_before(&mut self, anchor: Mark, ended: &[LeaseId]) -> Result<(), JournalError>;
}

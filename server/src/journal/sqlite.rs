//! The journal in one SQLite file: write-ahead log, full synchronisation, one transaction a group.
//!
//! ```text
//! meta(key, value)                     format, event version, anchor and tail of the chain
//! records(position, job, payload, mark)   mark = SHA-256(mark before, position, payload)
//! lease_jobs(lease, job)               to find a job's events; dropped with a lease's end
//! snapshots(position, version, digest, bytes)
//! ```

use super::{
    Check, Ends, Journal, JournalError, Snapshot, decode, encode, in_order, known_version,
    owner::{Owner, ended, owner},
    reached::Reached,
    snapshot_digest, words,
};
use rusqlite::{Connection, OptionalExtension as _, Transaction, params};
use sojourn_core::{EVENT_VERSION, JournalPosition, READ_VERSIONS, Record};
use sojourn_protocol::{
    digest::Digest,
    ids::{JobId, LeaseId},
};
use std::{path::Path, sync::mpsc::SyncSender};

/// The version of the tables.
const FORMAT: u32 = 1;
/// Snapshots kept: the newest, and one before it should that be damaged.
const SNAPSHOTS: u32 = 2;

const TABLES: &str = "
    CREATE TABLE meta (key TEXT PRIMARY KEY, value BLOB NOT NULL) STRICT, WITHOUT ROWID;
    CREATE TABLE records (
        position INTEGER PRIMARY KEY, job INTEGER, payload BLOB NOT NULL, mark BLOB NOT NULL
    ) STRICT;
    CREATE INDEX records_of_job ON records (job, position) WHERE job IS NOT NULL;
    CREATE TABLE lease_jobs (lease INTEGER PRIMARY KEY, job INTEGER NOT NULL) STRICT;
    CREATE TABLE snapshots (
        position INTEGER PRIMARY KEY, version INTEGER NOT NULL, digest BLOB NOT NULL,
        bytes BLOB NOT NULL
    ) STRICT;
";

/// A journal in a file.
#[derive(Debug)]
pub struct SqliteJournal {
    connection: Connection,
    /// Position and check before the first record that is kept.
    anchor: (JournalPosition, Check),
    /// Position and check of the last record.
    tail: (JournalPosition, Check),
    /// The note of how far it has come.
    reached: Reached,
    /// The newest snapshot that was read back, as it was written.
    read_back: Option<JournalPosition>,
}

impl SqliteJournal {
    /// Opens a journal, or makes it where there was none, and verifies all of it.
    ///
    /// # Errors
    /// [`JournalError::UnknownVersion`], [`JournalError::Corrupt`], [`JournalError::Unreadable`].
    pub fn open(path: &Path) -> Result<Self, JournalError> {
        Self::open_file(path).map_err(|error| match error {
            JournalError::Storage(source) => JournalError::Unreadable(source),
            other => other,
        })
    }

    fn open_file(path: &Path) -> Result<Self, JournalError> {
        let reached = Reached::beside(path);
        let mut connection = Connection::open(path)?;
        let mode: String =
            connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))?;
        if mode != "wal" {
            let reason = format!("the file system gives journal mode `{mode}`, not `wal`");
            return Err(JournalError::Storage(reason.into()));
        }
        connection.pragma_update(None, "synchronous", "FULL")?;
        let tables: u32 = connection.query_row(
            "SELECT count(*) FROM sqlite_schema WHERE type = 'table'",
            [],
            |r| r.get(0),
        )?;
        if tables == 0 {
            if let Some(reached) = reached.position()? {
                let position = JournalPosition(1);
                let reason = format!(
                    "it is missing or empty, and had reached {}; put it back, with its `-wal` file",
                    reached.0
                );
                return Err(JournalError::Corrupt { position, reason });
            }
            let transaction = connection.transaction()?;
            transaction.execute_batch(TABLES)?;
            set(&transaction, "format", &FORMAT.to_string().into_bytes())?;
            set(&transaction, "event-version", &EVENT_VERSION.to_string().into_bytes())?;
            set_mark(&transaction, "anchor", JournalPosition(0), Check::default())?;
            set_mark(&transaction, "tail", JournalPosition(0), Check::default())?;
            transaction.commit()?;
        }
        known_version("format", &meta(&connection, "format")?, FORMAT..=FORMAT)?;
        let version = meta(&connection, "event-version")?;
        let version = known_version("event-version", &version, READ_VERSIONS)?;
        let anchor = mark(&connection, "anchor")?;
        let tail = mark(&connection, "tail")?;
        let mut journal = Self { connection, anchor, tail, reached, read_back: None };
        journal.verify()?;
        journal.reached.check(tail.0)?;
        if version != EVENT_VERSION {
            // From here on events are written that programs of that version can't read.
            let transaction = journal.connection.transaction()?;
            set(&transaction, "event-version", EVENT_VERSION.to_string().as_bytes())?;
            transaction.commit()?;
        }
        journal.reached.note(tail.0)?;
        Ok(journal)
    }

    /// Walks the whole chain: one thread reads it, another hashes what was read.
    fn verify(&mut self) -> Result<(), JournalError> {
        let (batches, inbox) = std::sync::mpsc::sync_channel::<Vec<Row>>(2);
        let anchor = self.anchor;
        let (position, check) = std::thread::scope(|scope| {
            let hashing = scope.spawn(move || {
                let (mut position, mut check) = anchor;
                for batch in inbox {
                    check = verified(position, check, &batch)?;
                    position = batch.last().map_or(position, |last| last.0);
                }
                Ok((position, check))
            });
            let read = self.read_all(&batches);
            drop(batches);
            let hashed = hashing.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            read.and(hashed)
        })?;
        if position != self.tail.0 {
            let position = JournalPosition(position.0.min(self.tail.0.0) + 1);
            let reason = format!("the journal should end at {}", self.tail.0.0);
            return Err(JournalError::Corrupt { position, reason });
        }
        if check != self.tail.1 {
            let reason = "its check isn't the one that was noted last".to_owned();
            return Err(JournalError::Corrupt { position, reason });
        }
        Ok(())
    }

    /// Reads all rows, until nobody wants more of them.
    fn read_all(&self, batches: &SyncSender<Vec<Row>>) -> Result<(), JournalError> {
        let mut position = self.anchor.0;
        loop {
            let batch = self.rows(position, 10_000)?;
            let Some(last) = batch.last() else { return Ok(()) };
            position = last.0;
            if batches.send(batch).is_err() {
                return Ok(());
            }
        }
    }

    fn rows(&self, after: JournalPosition, limit: usize) -> Result<Vec<Row>, JournalError> {
        let mut statement = self.connection.prepare_cached(
            "SELECT position, payload, mark FROM records WHERE position > ?1
             ORDER BY position LIMIT ?2",
        )?;
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let rows = statement.query_map(params![signed(after.0)?, limit], |row| {
            Ok(Row(position_of(row)?, row.get(1)?, Check(row.get(2)?)))
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Leases that ended in the records up to `last`. Should one of them be reported all the same, as
    /// many events later as are kept, that is listed under no job.
    fn ended_leases(&self, last: JournalPosition) -> Result<Vec<LeaseId>, JournalError> {
        let mut position = self.anchor.0;
        let mut leases = Vec::new();
        while position < last {
            let left = usize::try_from(last.0 - position.0).unwrap_or(usize::MAX);
            let rows = self.rows(position, left.min(10_000))?;
            let Some(end) = rows.last().map(|row| row.0) else { break };
            for Row(at, payload, _) in &rows {
                leases.extend(ended(&decode(*at, payload)?.event));
            }
            position = end;
        }
        Ok(leases)
    }

    fn check_at(&self, position: JournalPosition) -> Result<Check, JournalError> {
        if position == self.anchor.0 {
            return Ok(self.anchor.1);
        }
        let found = self
            .connection
            .prepare_cached("SELECT mark FROM records WHERE position = ?1")?
            .query_row([signed(position.0)?], |row| row.get(0).map(Check))
            .optional()?;
        found.ok_or_else(|| missing(position))
    }
}

/// A stored record: position, payload, check.
struct Row(JournalPosition, Vec<u8>, Check);

fn missing(position: JournalPosition) -> JournalError {
    JournalError::Corrupt { position, reason: "it is missing".to_owned() }
}

/// Verifies that rows go on from a position without a gap, and gives the last check.
fn verified(after: JournalPosition, check: Check, rows: &[Row]) -> Result<Check, JournalError> {
    let (mut position, mut check) = (after, check);
    for Row(found, payload, stored) in rows {
        position = JournalPosition(position.0 + 1);
        if *found != position {
            return Err(missing(position));
        }
        check = check.then(position, payload);
        if check != *stored {
            let reason = "it was altered".to_owned();
            return Err(JournalError::Corrupt { position, reason });
        }
    }
    Ok(check)
}

impl Journal for SqliteJournal {
    fn append(&mut self, records: &[Record]) -> Result<(), JournalError> {
        let (mut position, mut check) = self.tail;
        in_order(position, records)?;
        let transaction = self.connection.transaction()?;
        for record in records {
            let payload = encode(record)?;
            position = record.position;
            check = check.then(position, &payload);
            let job = match owner(&record.event) {
                Owner::Job(job) => Some(job),
                Owner::Grants(lease, job) => {
                    transaction
                        .prepare_cached("INSERT INTO lease_jobs (lease, job) VALUES (?1, ?2)")?
                        .execute(params![signed(lease.0)?, signed(job.0)?])?;
                    Some(job)
                }
                Owner::Lease(lease) => job_of_lease(&transaction, lease)?,
                Owner::Nobody => None,
            };
            let job = job.map(|job| signed(job.0)).transpose()?;
            transaction
                .prepare_cached(
                    "INSERT INTO records (position, job, payload, mark) VALUES (?1, ?2, ?3, ?4)",
                )?
                .execute(params![signed(position.0)?, job, payload, check.0])?;
        }
        set_mark(&transaction, "tail", position, check)?;
        transaction.commit()?;
        self.tail = (position, check);
        self.reached.appended(position)
    }

    fn read(&mut self, after: JournalPosition, limit: usize) -> Result<Vec<Record>, JournalError> {
        if after >= self.tail.0 {
            return Ok(Vec::new());
        }
        if after < self.anchor.0 {
            return Err(missing(JournalPosition(after.0 + 1)));
        }
        let check = self.check_at(after)?;
        let rows = self.rows(after, limit)?;
        verified(after, check, &rows)?;
        rows.iter().map(|Row(position, payload, _)| decode(*position, payload)).collect()
    }

    fn ends(&self) -> Ends {
        Ends { anchor: self.anchor, tail: self.tail }
    }

    fn begin_after(&mut self, anchor: (JournalPosition, Check)) -> Result<(), JournalError> {
        self.ends().empty()?;
        let transaction = self.connection.transaction()?;
        for end in ["anchor", "tail"] {
            set_mark(&transaction, end, anchor.0, anchor.1)?;
        }
        transaction.commit()?;
        (self.anchor, self.tail) = (anchor, anchor);
        Ok(())
    }

    fn save_snapshot(&mut self, snapshot: &Snapshot) -> Result<(), JournalError> {
        let (position, tail) = (snapshot.position, self.tail.0);
        if position > tail {
            return Err(JournalError::BeyondTail { position, tail });
        }
        let transaction = self.connection.transaction()?;
        transaction.execute(
            "INSERT OR REPLACE INTO snapshots (position, version, digest, bytes)
             VALUES (?1, ?2, ?3, ?4)",
            params![
                signed(position.0)?,
                EVENT_VERSION,
                snapshot_digest(position, &snapshot.bytes).0,
                snapshot.bytes
            ],
        )?;
        transaction.execute(
            "DELETE FROM snapshots WHERE position NOT IN
             (SELECT position FROM snapshots ORDER BY position DESC LIMIT ?1)",
            [SNAPSHOTS],
        )?;
        transaction.commit()?;
        self.reached.note(tail)
    }

    fn load_snapshot_below(
        &mut self,
        below: JournalPosition,
    ) -> Result<Option<Snapshot>, JournalError> {
        let mut statement = self.connection.prepare(
            "SELECT position, version, digest, bytes FROM snapshots WHERE position < ?1
             ORDER BY position DESC",
        )?;
        let mut rows = statement.query([i64::try_from(below.0).unwrap_or(i64::MAX)])?;
        while let Some(row) = rows.next()? {
            let position = position_of(row)?;
            let version: u32 = row.get(1)?;
            if !READ_VERSIONS.contains(&version) {
                return Err(JournalError::UnknownVersion {
                    what: "a snapshot of version",
                    found: version.to_string(),
                    known: words(&READ_VERSIONS),
                });
            }
            if position > self.tail.0 {
                let reason = format!("a snapshot at {} lies beyond the journal's end", position.0);
                let position = JournalPosition(self.tail.0.0 + 1);
                return Err(JournalError::Corrupt { position, reason });
            }
            let digest = Digest(row.get(2)?);
            let bytes: Vec<u8> = row.get(3)?;
            if snapshot_digest(position, &bytes) == digest {
                self.read_back = self.read_back.max(Some(position));
                return Ok(Some(Snapshot { position, bytes }));
            }
            tracing::warn!(position = position.0, "a damaged snapshot is passed over");
        }
        Ok(None)
    }

    fn trim(&mut self, below: JournalPosition) -> Result<(), JournalError> {
        let covers = |position: JournalPosition| position.0 + 1 >= below.0;
        let covered = self.read_back.is_some_and(covers)
            || self.load_snapshot()?.is_some_and(|newest| covers(newest.position));
        if !covered {
            return Err(JournalError::NotCovered { below });
        }
        let last = JournalPosition(below.0.saturating_sub(1));
        if last <= self.anchor.0 {
            return Ok(());
        }
        let check = self.check_at(last)?;
        let ended = self.ended_leases(last)?;
        let transaction = self.connection.transaction()?;
        transaction.execute("DELETE FROM records WHERE position < ?1", [signed(below.0)?])?;
        for lease in ended {
            transaction
                .prepare_cached("DELETE FROM lease_jobs WHERE lease = ?1")?
                .execute([signed(lease.0)?])?;
        }
        set_mark(&transaction, "anchor", last, check)?;
        transaction.commit()?;
        self.anchor = (last, check);
        Ok(())
    }

    fn events(
        &mut self,
        job: JobId,
        after: JournalPosition,
        limit: usize,
    ) -> Result<Vec<Record>, JournalError> {
        let mut statement = self.connection.prepare_cached(
            "SELECT position, payload FROM records WHERE job = ?1 AND position > ?2
             ORDER BY position LIMIT ?3",
        )?;
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let after = i64::try_from(after.0).unwrap_or(i64::MAX);
        let mut rows = statement.query(params![signed(job.0)?, after, limit])?;
        let mut records = Vec::new();
        while let Some(row) = rows.next()? {
            let payload: Vec<u8> = row.get(1)?;
            records.push(decode(position_of(row)?, &payload)?);
        }
        Ok(records)
    }
}

/// The first column; SQLite's integers are signed, and a negative one is no position of ours.
fn position_of(row: &rusqlite::Row<'_>) -> rusqlite::Result<JournalPosition> {
    row.get(0).map(|position: i64| JournalPosition(u64::try_from(position).unwrap_or(0)))
}

fn signed(value: u64) -> Result<i64, JournalError> {
    i64::try_from(value).map_err(|error| JournalError::Storage(error.into()))
}

fn job_of_lease(
    transaction: &Transaction<'_>,
    lease: LeaseId,
) -> Result<Option<JobId>, JournalError> {
    let mut statement =
        transaction.prepare_cached("SELECT job FROM lease_jobs WHERE lease = ?1")?;
    let job =
        statement.query_row([signed(lease.0)?], |row| Ok(JobId(position_of(row)?.0))).optional()?;
    Ok(job)
}

fn set(transaction: &Transaction<'_>, key: &str, value: &[u8]) -> Result<(), JournalError> {
    transaction
        .prepare_cached("INSERT OR REPLACE INTO meta (key, value) VALUES (?1, ?2)")?
        .execute(params![key, value])?;
    Ok(())
}

fn set_mark(
    transaction: &Transaction<'_>,
    key: &str,
    position: JournalPosition,
    check: Check,
) -> Result<(), JournalError> {
    let value: Vec<u8> = position.0.to_le_bytes().into_iter().chain(check.0).collect();
    set(transaction, key, &value)
}

fn meta(connection: &Connection, key: &str) -> Result<Vec<u8>, JournalError> {
    let value = connection
        .query_row("SELECT value FROM meta WHERE key = ?1", [key], |row| row.get(0))
        .optional()?;
    value.ok_or_else(|| JournalError::Unreadable(format!("it doesn't say its `{key}`").into()))
}

fn mark(connection: &Connection, key: &str) -> Result<(JournalPosition, Check), JournalError> {
    let value = meta(connection, key)?;
    let parts = value.split_first_chunk::<8>().and_then(|(position, check)| {
        let check = Check(check.try_into().ok()?);
        Some((JournalPosition(u64::from_le_bytes(*position)), check))
    });
    parts.ok_or_else(|| JournalError::Unreadable(format!("its `{key}` is unreadable").into()))
}

impl From<rusqlite::Error> for JournalError {
    fn from(error: rusqlite::Error) -> Self {
        JournalError::Storage(error.into())
    }
}

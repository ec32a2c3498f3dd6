//! The journal in one SQLite file: write-ahead log, full synchronisation, one transaction a call.
//!
//! ```text
//! meta(key, value)                        format, event-version, anchor and tail of the chain
//! records(position, job, payload, mark)   mark = the chain's hash
//! lease_jobs(lease, job)                  finds a job's events; dropped with a lease's end
//! snapshots(position, version, digest, bytes)
//! ```
//!
//! The chain covers what records say. What it can't see, such as pages of an index, SQLite checks at each start (`PRAGMA quick_check`).

use super::{
    ChainHash, EventJob, JournalError, Mark, Marks,
    chained::{ChainedJournal, Verify},
    high_water::HighWaterMark,
    storage::{NewRow, Row, Storage, StoredSnapshot, Versions},
};
use rusqlite::{
    Connection, OpenFlags, OptionalExtension as _, Params, Transaction,
    backup::{Backup, StepResult},
    ffi, params,
};
use sojourn_core::JournalPosition;
use sojourn_protocol::{
    digest::Digest,
    ids::{JobId, LeaseId},
    quantity::SaturatingFrom as _,
    text::plain_line,
};
use std::{
    collections::HashMap,
    error::Error,
    path::Path,
    time::{Duration, Instant},
};

/// A check of a file of so many bytes is said before it begins: it may take a second.
const LARGE_FILE: u64 = 256 << 20;
/// Characters of what SQLite finds that are repeated.
const MAX_FOUND_CHARS: usize = 300;

/// How often a copy is tried while another program has locked the file, and the pause between two tries.
const COPY_TRIES: u32 = 200;
/// See [`COPY_TRIES`].
const COPY_PAUSE: Duration = Duration::from_millis(50);

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
pub type SqliteJournal = ChainedJournal<SqliteStorage>;

/// Rows in a file.
#[derive(Debug)]
pub struct SqliteStorage {
    connection: Connection,
}

impl SqliteJournal {
    /// Opens a journal, or makes it where there is none, and verifies all of it.
    ///
    /// # Errors
    /// [`JournalError::UnknownVersion`], [`JournalError::Corrupt`], [`JournalError::Unreadable`].
    pub fn open(path: &Path) -> Result<Self, JournalError> {
        let high_water = HighWaterMark::beside(path);
        let journal = SqliteStorage::open(path)
            .and_then(|storage| Self::over(storage, Some(high_water), Verify::All));
        journal.map_err(|error| match error {
            JournalError::Storage(source) => JournalError::Unreadable(source),
            other => other,
        })
    }
}

impl SqliteJournal {
    /// Copies the file of a journal, which a server may be writing to, to a new file: all events up to one moment. The copy isn't
    /// synced.
    ///
    /// # Errors
    /// [`JournalError::Storage`] where either file can't be used.
    pub fn copy(from: &Path, to: &Path) -> Result<(), JournalError> {
        let source = Connection::open_with_flags(from, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        let mut target = Connection::open(to)?;
        let copy = Backup::new(&source, &mut target)?;
        // All pages in one step, and so of one moment. A writer isn't held up by a reader of a write-ahead log.
        for _ in 0..COPY_TRIES {
            if copy.step(-1)? == StepResult::Done {
                return Ok(());
            }
            std::thread::sleep(COPY_PAUSE);
        }
        Err(JournalError::Storage("the journal's file stays locked".into()))
    }
}

impl SqliteStorage {
    fn open(path: &Path) -> Result<Self, JournalError> {
        let connection = Connection::open(path)?;
        let mode: String =
            connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))?;
        if mode != "wal" {
            let reason = format!("the file system gives journal mode `{mode}`, not `wal`");
            return Err(JournalError::Storage(reason.into()));
        }
        connection.pragma_update(None, "synchronous", "FULL")?;
        check_pages(&connection, path)?;
        Ok(Self { connection })
    }

    fn has_tables(&self) -> Result<bool, JournalError> {
        let tables = "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'table')";
        Ok(self.connection.query_row(tables, [], |row| row.get(0))?)
    }

    fn meta(&self, key: &str) -> Result<Vec<u8>, JournalError> {
        let value = self
            .connection
            .query_row("SELECT value FROM meta WHERE key = ?1", [key], |row| row.get(0))
            .optional()?;
        value.ok_or_else(|| JournalError::Unreadable(format!("it doesn't say its `{key}`").into()))
    }

    fn mark(&self, key: &str) -> Result<Mark, JournalError> {
        let value = self.meta(key)?;
        let parts = value.split_first_chunk::<8>().and_then(|(position, hash)| {
            let position = JournalPosition(u64::from_le_bytes(*position));
            Some(Mark { position, hash: ChainHash(hash.try_into().ok()?) })
        });
        parts.ok_or_else(|| JournalError::Unreadable(format!("its `{key}` is unreadable").into()))
    }

    fn select(&self, query: &str, parameters: impl Params) -> Result<Vec<Row>, JournalError> {
        let mut statement = self.connection.prepare_cached(query)?;
        let mut found = statement.query(parameters)?;
        let mut rows = Vec::new();
        while let Some(row) = found.next()? {
            let (payload, hash) = (row.get(1)?, ChainHash(row.get(2)?));
            rows.push(Row { position: position_of(row)?, payload, hash });
        }
        Ok(rows)
    }
}

impl Storage for SqliteStorage {
    const FORMAT: u32 = 1;

    fn versions(&mut self) -> Result<Option<Versions>, JournalError> {
        if !self.has_tables()? {
            return Ok(None);
        }
        let version =
            |key| self.meta(key).map(|value| String::from_utf8_lossy(&value).into_owned());
        Ok(Some(Versions { format: version("format")?, events: version("event-version")? }))
    }

    fn marks(&mut self) -> Result<Marks, JournalError> {
        Ok(Marks { anchor: self.mark("anchor")?, tail: self.mark("tail")? })
    }

    fn set_marks(&mut self, versions: &Versions, marks: Marks) -> Result<(), JournalError> {
        let begins = !self.has_tables()?;
        let transaction = self.connection.transaction()?;
        if begins {
            transaction.execute_batch(TABLES)?;
        }
        set(&transaction, "format", versions.format.as_bytes())?;
        set(&transaction, "event-version", versions.events.as_bytes())?;
        set_mark(&transaction, "anchor", marks.anchor)?;
        set_mark(&transaction, "tail", marks.tail)?;
        Ok(transaction.commit()?)
    }

    fn append(&mut self, rows: &[NewRow], tail: Mark) -> Result<(), JournalError> {
        let transaction = self.connection.transaction()?;
        for NewRow { row, job } in rows {
            let job = match job {
                EventJob::Job(job) => Some(signed(job.0)?),
                EventJob::Grants(lease, job) => {
                    transaction
                        .prepare_cached("INSERT INTO lease_jobs (lease, job) VALUES (?1, ?2)")?
                        .execute(params![signed(lease.0)?, signed(job.0)?])?;
                    Some(signed(job.0)?)
                }
                EventJob::Lease(lease) => transaction
                    .prepare_cached("SELECT job FROM lease_jobs WHERE lease = ?1")?
                    .query_row([signed(lease.0)?], |row| row.get(0))
                    .optional()?,
                EventJob::None => None,
            };
            transaction
                .prepare_cached(
                    "INSERT INTO records (position, job, payload, mark) VALUES (?1, ?2, ?3, ?4)",
                )?
                .execute(params![signed(row.position.0)?, job, row.payload, row.hash.0])?;
        }
        let last = rows.last().map(|new| Mark { position: new.row.position, hash: new.row.hash });
        set_mark(&transaction, "tail", last.unwrap_or(tail))?;
        Ok(transaction.commit()?)
    }

    fn rows(
        &mut self,
        of: Option<JobId>,
        after: JournalPosition,
        limit: usize,
    ) -> Result<Vec<Row>, JournalError> {
        // No row is beyond what SQLite can count.
        let Ok(after) = signed(after.0) else { return Ok(Vec::new()) };
        let limit = signed(limit)?;
        match of {
            None => self.select(
                "SELECT position, payload, mark FROM records WHERE position > ?1
                 ORDER BY position LIMIT ?2",
                params![after, limit],
            ),
            Some(job) => self.select(
                "SELECT position, payload, mark FROM records WHERE job = ?1 AND position > ?2
                 ORDER BY position LIMIT ?3",
                params![signed(job.0)?, after, limit],
            ),
        }
    }

    fn jobs_of_rows(
        &mut self,
        after: JournalPosition,
        limit: usize,
    ) -> Result<Vec<Option<JobId>>, JournalError> {
        let Ok(after) = signed(after.0) else { return Ok(Vec::new()) };
        let mut statement = self.connection.prepare_cached(
            "SELECT job FROM records WHERE position > ?1 ORDER BY position LIMIT ?2",
        )?;
        let jobs = statement.query_map(params![after, signed(limit)?], |row| {
            let job: Option<i64> = row.get(0)?;
            job.map(|job| Ok(JobId(unsigned(job, 0)?))).transpose()
        })?;
        Ok(jobs.collect::<Result<_, _>>()?)
    }

    fn jobs_of_leases(&mut self) -> Result<HashMap<LeaseId, JobId>, JournalError> {
        let mut statement = self.connection.prepare("SELECT lease, job FROM lease_jobs")?;
        let jobs = statement.query_map([], |row| {
            Ok((LeaseId(unsigned(row.get(0)?, 0)?), JobId(unsigned(row.get(1)?, 1)?)))
        })?;
        Ok(jobs.collect::<Result<_, _>>()?)
    }

    fn put_snapshot(&mut self, snapshot: &StoredSnapshot, keep: u32) -> Result<(), JournalError> {
        let StoredSnapshot { position, version, digest, bytes } = snapshot;
        let transaction = self.connection.transaction()?;
        transaction.execute(
            "INSERT OR REPLACE INTO snapshots (position, version, digest, bytes)
             VALUES (?1, ?2, ?3, ?4)",
            params![signed(position.0)?, version, digest.0, bytes],
        )?;
        transaction.execute(
            "DELETE FROM snapshots WHERE position NOT IN
             (SELECT position FROM snapshots ORDER BY position DESC LIMIT ?1)",
            [keep],
        )?;
        Ok(transaction.commit()?)
    }

    fn newest_snapshot(
        &mut self,
        below: Option<JournalPosition>,
    ) -> Result<Option<StoredSnapshot>, JournalError> {
        // Every position that SQLite can count is below one that it can't.
        let below = below.and_then(|below| signed(below.0).ok());
        let snapshot = self.connection.query_row(
            "SELECT position, version, digest, bytes FROM snapshots
             WHERE ?1 IS NULL OR position < ?1 ORDER BY position DESC LIMIT 1",
            [below],
            |row| {
                let (version, digest, bytes) = (row.get(1)?, Digest(row.get(2)?), row.get(3)?);
                Ok(StoredSnapshot { position: position_of(row)?, version, digest, bytes })
            },
        );
        Ok(snapshot.optional()?)
    }

    fn drop_before(&mut self, anchor: Mark, ended: &[LeaseId]) -> Result<(), JournalError> {
        let transaction = self.connection.transaction()?;
        let position = signed(anchor.position.0)?;
        transaction.execute("DELETE FROM records WHERE position <= ?1", [position])?;
        for lease in ended {
            transaction
                .prepare_cached("DELETE FROM lease_jobs WHERE lease = ?1")?
                .execute([signed(lease.0)?])?;
        }
        set_mark(&transaction, "anchor", anchor)?;
        Ok(transaction.commit()?)
    }
}

/// Refuses a file whose pages don't fit together.
fn check_pages(connection: &Connection, path: &Path) -> Result<(), JournalError> {
    let bytes = std::fs::metadata(path).map_or(0, |file| file.len());
    let begun = Instant::now();
    if bytes >= LARGE_FILE {
        tracing::info!(bytes, file = %path.display(), "the journal's pages are being checked");
    }
    let found: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    let took_ms = u64::saturating_from(begun.elapsed().as_millis());
    tracing::debug!(bytes, took_ms, "the journal's pages were checked");
    if found == "ok" {
        return Ok(());
    }
    let found = plain_line(&found, MAX_FOUND_CHARS);
    let file = path.display();
    let reason = format!(
        "`{file}` is damaged: {found}. Check the disk, keep the file, and put your copy of the data folder in its place"
    );
    Err(JournalError::Unreadable(reason.into()))
}

/// The position in the first column.
fn position_of(row: &rusqlite::Row<'_>) -> rusqlite::Result<JournalPosition> {
    Ok(JournalPosition(unsigned(row.get(0)?, 0)?))
}

/// A number of a column. SQLite's integers are signed; a negative one is none of ours.
fn unsigned(number: i64, column: usize) -> rusqlite::Result<u64> {
    u64::try_from(number).map_err(|_| rusqlite::Error::IntegralValueOutOfRange(column, number))
}

/// A number as SQLite's integers have it.
fn signed<T>(value: T) -> Result<i64, JournalError>
where
    T: TryInto<i64>,
    T::Error: Error + Send + Sync + 'static,
{
    value.try_into().map_err(|error| JournalError::Storage(Box::new(error)))
}

fn set(transaction: &Transaction<'_>, key: &str, value: &[u8]) -> Result<(), JournalError> {
    transaction
        .prepare_cached("INSERT OR REPLACE INTO meta (key, value) VALUES (?1, ?2)")?
        .execute(params![key, value])?;
    Ok(())
}

fn set_mark(transaction: &Transaction<'_>, key: &str, mark: Mark) -> Result<(), JournalError> {
    let value: Vec<u8> = mark.position.0.to_le_bytes().into_iter().chain(mark.hash.0).collect();
    set(transaction, key, &value)
}

impl From<rusqlite::Error> for JournalError {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_extended_error_code() {
            Some(ffi::SQLITE_IOERR_FSYNC | ffi::SQLITE_IOERR_DIR_FSYNC) => {
                JournalError::Unsynced(error.into())
            }
            _ => JournalError::Storage(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::Journal as _;
    use sojourn_core::{Event, Record};
    use sojourn_protocol::{ids::HostId, names::OwnerName, time::UnixMillis};

    #[test]
    fn a_failed_sync_is_told_from_other_errors_of_the_disk() {
        let error =
            |code| JournalError::from(rusqlite::Error::SqliteFailure(ffi::Error::new(code), None));
        for code in [ffi::SQLITE_IOERR_FSYNC, ffi::SQLITE_IOERR_DIR_FSYNC] {
            assert!(error(code).is_final(), "{code}");
        }
        for code in [ffi::SQLITE_IOERR_WRITE, ffi::SQLITE_FULL, ffi::SQLITE_BUSY] {
            assert!(!error(code).is_final(), "{code}");
            assert_eq!(error(code).is_full(), code == ffi::SQLITE_FULL, "{code}");
        }
    }

    fn enrolled(position: u64) -> Record {
        let name = "n".repeat(1000);
        let token_sha256 = Digest::of(&position.to_le_bytes());
        let (host, owner, token) = (HostId(position), OwnerName::default(), None);
        let event = Event::HostEnrolled { host, name, token_sha256, owner, token };
        Record { position: JournalPosition(position), at: UnixMillis(1), event }
    }

    #[test]
    fn a_full_disk_fails_an_append_of_which_nothing_is_kept_and_what_was_kept_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.sqlite");
        drop(SqliteJournal::open(&path).unwrap());
        let storage = SqliteStorage::open(&path).unwrap();
        // What SQLite does where the file can't grow.
        storage.connection.pragma_update(None, "max_page_count", 64).unwrap();
        let mut journal = SqliteJournal::over(storage, None, Verify::All).unwrap();
        let mut kept = Vec::new();
        let failure = (1..1000).find_map(|position| {
            let records = [enrolled(2 * position - 1), enrolled(2 * position)];
            match journal.append(&records) {
                Ok(()) => {
                    kept.extend(records);
                    None
                }
                Err(failure) => Some(failure),
            }
        });
        let failure = failure.expect("the file can't grow for ever");
        assert!(failure.is_full() && !failure.is_final(), "{failure:?}");
        assert!(kept.len() > 20, "{}", kept.len());
        assert_eq!(journal.tail().0, kept.len() as u64);
        // Also in the same connection nothing of the failed group is there.
        assert_eq!(journal.read(JournalPosition(0), 5000).unwrap(), kept);
        drop(journal);

        let mut journal = SqliteJournal::open(&path).unwrap();
        assert_eq!(journal.read(JournalPosition(0), 5000).unwrap(), kept);
        let next = enrolled(kept.len() as u64 + 1);
        journal.append(std::slice::from_ref(&next)).unwrap();
        kept.push(next);
        assert_eq!(journal.read(JournalPosition(0), 5000).unwrap(), kept);
    }
}

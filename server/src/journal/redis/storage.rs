//! The rows of one deployment in Redis: a stream whose ids are the positions.
//!
//! Each write is a script that checks the fencing token of the writer's lease, and an append also the tail. So a server
//! that has lost its lease can't write, and what comes twice is refused. Keys: [`super::keys`].

use super::{connection::RedisConnection, keys::Keys, lease::Lease};
use crate::journal::{
    ChainHash, Durability, EventJob, JournalError, Mark, Marks,
    storage::{NewRow, Row, Storage, StoredSnapshot, Versions},
};
use redis::{Script, cmd};
use sojourn_core::JournalPosition;
use sojourn_protocol::{
    digest::Digest,
    ids::{JobId, LeaseId},
};
use std::{collections::HashMap, sync::Arc, time::Duration};

/// Rows in one script, while which Redis does nothing else.
const MAX_SCRIPT_ROWS: usize = 256;
/// Rows read at once.
const MAX_READ_ROWS: usize = 2_000;
/// How long replicas may take to have a group.
const REPLICA_TIMEOUT: Duration = Duration::from_secs(3);

/// Rows in Redis, as long as the lease is held.
#[derive(Debug)]
pub(super) struct RedisStorage {
    connection: RedisConnection,
    keys: Keys,
    lease: Arc<Lease>,
    durability: Durability,
    append: Script,
}

/// The fields of a hash, or of an entry of a stream.
type Fields = HashMap<String, Vec<u8>>;

impl RedisStorage {
    /// The storage that the lease is of.
    pub(super) fn open(
        mut connection: RedisConnection,
        keys: Keys,
        lease: Arc<Lease>,
        durability: Durability,
    ) -> Result<Self, JournalError> {
        let append = Script::new(include_str!("append.lua"));
        connection.load(&append)?;
        Ok(Self { connection, keys, lease, durability, append })
    }

    /// Waits until replicas have everything that Redis has.
    ///
    /// An append that no replica confirmed in time may be there all the same. From now on it is read and acknowledged, so that the
    /// replicas must have it first. `WAIT` counts replicas that have this connection's last write, which was the taking of the
    /// lease: it came after all appends, as no other server can write from then on, and replicas take writes in order.
    pub(super) fn confirm_replicas(&mut self) -> Result<(), JournalError> {
        let replicas = self.durability.replicas;
        if replicas == 0 {
            return Ok(());
        }
        let mut wait = cmd("WAIT");
        wait.arg(replicas).arg(REPLICA_TIMEOUT.as_millis().to_string());
        check_replicas(self.connection.query(&wait)?, replicas)
    }

    fn token(&self) -> Vec<u8> {
        self.lease.token().to_string().into_bytes()
    }

    fn meta(&mut self) -> Result<Fields, JournalError> {
        self.connection.query(cmd("HGETALL").arg(self.keys.meta()))
    }

    fn rows_of_job(
        &mut self,
        job: JobId,
        after: JournalPosition,
        limit: usize,
    ) -> Result<Vec<Row>, JournalError> {
        let positions: Vec<u64> = self.connection.query(
            cmd("ZRANGEBYSCORE")
                .arg(self.keys.job(job))
                .arg(format!("({}", after.0))
                .arg("+inf")
                .arg("LIMIT")
                .arg(0)
                .arg(limit),
        )?;
        if positions.is_empty() {
            return Ok(Vec::new());
        }
        let mut pipe = redis::pipe();
        for position in &positions {
            let id = format!("{position}-0");
            pipe.cmd("XRANGE").arg(self.keys.events()).arg(&id).arg(&id);
        }
        let found: Vec<Vec<(String, Fields)>> = self.connection.query_pipeline(&pipe)?;
        found.into_iter().flatten().map(|(id, fields)| row(&id, fields)).collect()
    }
}

impl Storage for RedisStorage {
    const FORMAT: u32 = 1;

    fn versions(&mut self) -> Result<Option<Versions>, JournalError> {
        let meta = self.meta()?;
        if !meta.contains_key("format") {
            return Ok(None);
        }
        Ok(Some(Versions { format: text(&meta, "format")?, events: text(&meta, "event-version")? }))
    }

    fn marks(&mut self) -> Result<Marks, JournalError> {
        let meta = self.meta()?;
        Ok(Marks { anchor: mark(&meta, "anchor")?, tail: mark(&meta, "tail")? })
    }

    fn set_marks(&mut self, versions: &Versions, marks: Marks) -> Result<(), JournalError> {
        let set: u32 = self.connection.run(
            &Script::new(include_str!("marks.lua")),
            &[&self.keys.meta()],
            &[
                &self.token(),
                versions.format.as_bytes(),
                versions.events.as_bytes(),
                marks.anchor.position.0.to_string().as_bytes(),
                &marks.anchor.hash.0,
                marks.tail.position.0.to_string().as_bytes(),
                &marks.tail.hash.0,
            ],
        )?;
        check_fence(set)
    }

    fn append(&mut self, rows: &[NewRow], tail: Mark) -> Result<(), JournalError> {
        let keys = [self.keys.meta(), self.keys.events(), self.keys.jobs(), self.keys.lease_jobs()];
        let mut pipe = redis::pipe();
        let mut tail = tail;
        for group in rows.chunks(MAX_SCRIPT_ROWS) {
            let call = pipe.cmd("EVALSHA").arg(self.append.get_hash()).arg(keys.len()).arg(&keys);
            call.arg(self.token()).arg(tail.position.0).arg(&tail.hash.0);
            call.arg(self.keys.job_prefix());
            for NewRow { row, job } in group {
                let (kind, job, lease) = match job {
                    EventJob::Job(job) => ("job", job.0, 0),
                    EventJob::Grants(lease, job) => ("grant", job.0, lease.0),
                    EventJob::Lease(lease) => ("lease", 0, lease.0),
                    EventJob::None => ("none", 0, 0),
                };
                call.arg(&row.payload).arg(&row.hash.0).arg(kind).arg(job).arg(lease);
                tail = Mark { position: row.position, hash: row.hash };
            }
        }
        let replicas = self.durability.replicas;
        if replicas > 0 {
            pipe.cmd("WAIT").arg(replicas).arg(REPLICA_TIMEOUT.as_millis().to_string());
        }
        let mut answers: Vec<u32> = self.connection.query_pipeline(&pipe)?;
        let had = if replicas > 0 { answers.pop() } else { None };
        answers.into_iter().try_for_each(check_fence)?;
        had.map_or(Ok(()), |had| check_replicas(had, replicas))
    }

    fn rows(
        &mut self,
        of: Option<JobId>,
        after: JournalPosition,
        limit: usize,
    ) -> Result<Vec<Row>, JournalError> {
        let limit = limit.min(MAX_READ_ROWS);
        if let Some(job) = of {
            return self.rows_of_job(job, after, limit);
        }
        let first = format!("{}-0", after.0.saturating_add(1));
        let range = cmd("XRANGE")
            .arg(self.keys.events())
            .arg(first)
            .arg("+")
            .arg("COUNT")
            .arg(limit)
            .to_owned();
        let found: Vec<(String, Fields)> = self.connection.query(&range)?;
        found.into_iter().map(|(id, fields)| row(&id, fields)).collect()
    }

    fn put_snapshot(&mut self, snapshot: &StoredSnapshot, keep: u32) -> Result<(), JournalError> {
        let StoredSnapshot { position, version, digest, bytes } = snapshot;
        let stored: u32 = self.connection.run(
            &Script::new(include_str!("snapshot.lua")),
            &[&self.keys.meta(), &self.keys.snapshots()],
            &[
                &self.token(),
                self.keys.snapshot_prefix().as_bytes(),
                keep.to_string().as_bytes(),
                position.0.to_string().as_bytes(),
                version.to_string().as_bytes(),
                &digest.0,
                bytes,
            ],
        )?;
        check_fence(stored)
    }

    fn newest_snapshot(
        &mut self,
        below: Option<JournalPosition>,
    ) -> Result<Option<StoredSnapshot>, JournalError> {
        let below = below.map_or_else(|| "+inf".to_owned(), |below| format!("({}", below.0));
        let newest = cmd("ZREVRANGEBYSCORE")
            .arg(self.keys.snapshots())
            .arg(below)
            .arg("-inf")
            .arg("LIMIT")
            .arg(0)
            .arg(1)
            .to_owned();
        let newest: Vec<u64> = self.connection.query(&newest)?;
        let Some(position) = newest.first().copied().map(JournalPosition) else { return Ok(None) };
        let mut stored: Fields =
            self.connection.query(cmd("HGETALL").arg(self.keys.snapshot(position)))?;
        let version = text(&stored, "version")?.parse().map_err(|_| unreadable("version"))?;
        let digest = Digest(sha256(&stored, "digest")?);
        let bytes = stored.remove("bytes").ok_or_else(|| unreadable("bytes"))?;
        Ok(Some(StoredSnapshot { position, version, digest, bytes }))
    }

    fn drop_before(&mut self, anchor: Mark, ended: &[LeaseId]) -> Result<(), JournalError> {
        let (token, prefix) = (self.token(), self.keys.job_prefix());
        let last = anchor.position.0.to_string();
        let first = anchor.position.0.saturating_add(1).to_string();
        let leases: Vec<String> = ended.iter().map(|lease| lease.0.to_string()).collect();
        let mut arguments: Vec<&[u8]> =
            vec![&token, prefix.as_bytes(), last.as_bytes(), &anchor.hash.0, first.as_bytes()];
        arguments.extend(leases.iter().map(String::as_bytes));
        let dropped: u32 = self.connection.run(
            &Script::new(include_str!("trim.lua")),
            &[&self.keys.meta(), &self.keys.events(), &self.keys.jobs(), &self.keys.lease_jobs()],
            &arguments,
        )?;
        check_fence(dropped)
    }
}

/// Have enough replicas confirmed what was written?
fn check_replicas(had: u32, wanted: u32) -> Result<(), JournalError> {
    if had >= wanted {
        return Ok(());
    }
    let reason = format!("{had} of {wanted} replicas had the events in time");
    Err(JournalError::Storage(reason.into()))
}

/// The answer of a script: whether the writer still has the fencing token.
pub(super) fn check_fence(answer: u32) -> Result<(), JournalError> {
    match answer {
        0 => Ok(()),
        1 => Err(JournalError::Fenced),
        _ => Err(JournalError::Storage("the stream's end isn't where it was left".into())),
    }
}

/// The row of an entry of the stream.
fn row(id: &str, mut fields: Fields) -> Result<Row, JournalError> {
    let number = id.strip_suffix("-0").and_then(|number| number.parse().ok());
    let position = JournalPosition(number.ok_or_else(|| {
        JournalError::Unreadable(format!("`{id}` is no event's id: is it another stream?").into())
    })?);
    let hash = ChainHash(sha256(&fields, "c")?);
    let payload = fields.remove("p").ok_or_else(|| unreadable("p"))?;
    Ok(Row { position, payload, hash })
}

fn field<'a>(fields: &'a Fields, name: &str) -> Result<&'a [u8], JournalError> {
    let value = fields.get(name).map(Vec::as_slice);
    value.ok_or_else(|| JournalError::Unreadable(format!("it doesn't say its `{name}`").into()))
}

fn text(fields: &Fields, name: &str) -> Result<String, JournalError> {
    Ok(String::from_utf8_lossy(field(fields, name)?).into_owned())
}

fn sha256(fields: &Fields, name: &str) -> Result<[u8; 32], JournalError> {
    field(fields, name)?.try_into().map_err(|_| unreadable(name))
}

fn mark(meta: &Fields, name: &str) -> Result<Mark, JournalError> {
    let position = text(meta, name)?.parse().map_err(|_| unreadable(name))?;
    let hash = ChainHash(sha256(meta, &format!("{name}-check"))?);
    Ok(Mark { position: JournalPosition(position), hash })
}

fn unreadable(name: &str) -> JournalError {
    JournalError::Unreadable(format!("its `{name}` is unreadable").into())
}

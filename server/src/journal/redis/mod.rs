//! The journal in Redis: one stream for a deployment, whose ids are the positions. Each write is a script that
//! checks the fencing token of the writer's lease, and an append also the tail; so a server that has lost its
//! lease can't write, and what comes twice is refused. Keys: [`keys`].

mod durability;
mod journals;
mod keys;
mod lease;
mod link;
mod place;

pub use durability::{Disk, Durability, DurabilityError};
pub use journals::{RedisJournals, RedisSettings};
pub use place::{PlaceError, RedisPlace};

use super::{
    Check, Ends, Journal, JournalError, Snapshot, decode, encode, in_order, known_version,
    owner::{Owner, ended, owner},
    reached::Reached,
    snapshot_digest,
};
use keys::Keys;
use lease::Lease;
use link::Link;
use redis::{Script, cmd};
use sojourn_core::{EVENT_VERSION, JournalPosition, READ_VERSIONS, Record};
use sojourn_protocol::ids::JobId;
use std::{collections::HashMap, sync::Arc, time::Duration};

/// The version of the keys.
const FORMAT: u32 = 1;
/// Events in one script: Redis does nothing else meanwhile.
const IN_ONE_SCRIPT: usize = 256;
/// Events read at once.
const READ_AT_ONCE: usize = 2_000;
/// The longest wait for replicas.
const REPLICAS: Duration = Duration::from_secs(3);

/// A journal in Redis, as long as its lease is held.
#[derive(Debug)]
pub(super) struct RedisJournal {
    link: Link,
    keys: Keys,
    lease: Arc<Lease>,
    durability: Durability,
    append: Script,
    /// Position and check before the first event that is kept.
    anchor: (JournalPosition, Check),
    /// Position and check of the last event.
    tail: (JournalPosition, Check),
    /// The note of how far it has come.
    reached: Reached,
    /// The newest snapshot that was read back, as it was written.
    read_back: Option<JournalPosition>,
}

/// An entry of the stream as Redis gives it: its id and its fields.
type Stored = (String, HashMap<String, Vec<u8>>);

/// A stored event: position, payload, check.
struct Entry(JournalPosition, Vec<u8>, Check);

impl RedisJournal {
    /// The journal that the lease is of; made where there is none.
    fn open(
        mut link: Link,
        keys: Keys,
        lease: Arc<Lease>,
        durability: Durability,
        reached: Reached,
    ) -> Result<Self, JournalError> {
        let append = Script::new(include_str!("append.lua"));
        link.load(&append)?;
        let begin = Script::new(include_str!("begin.lua"));
        let made = link.run(
            &begin,
            &[&keys.meta()],
            &[
                lease.token().to_string().as_bytes(),
                FORMAT.to_string().as_bytes(),
                EVENT_VERSION.to_string().as_bytes(),
                &Check::default().0,
            ],
        )?;
        allowed(made)?;
        let meta: HashMap<String, Vec<u8>> = link.ask(cmd("HGETALL").arg(keys.meta()))?;
        known_version("format", field(&meta, "format")?, FORMAT..=FORMAT)?;
        let version =
            known_version("event-version", field(&meta, "event-version")?, READ_VERSIONS)?;
        let (anchor, tail) = (mark(&meta, "anchor")?, mark(&meta, "tail")?);
        let read_back = None;
        let mut journal =
            Self { link, keys, lease, durability, append, anchor, tail, reached, read_back };
        journal.check_end()?;
        journal.check_reached()?;
        if version != EVENT_VERSION {
            // From here on events are written that programs of that version can't read.
            let key = journal.keys.meta();
            let set = cmd("HSET").arg(key).arg("event-version").arg(EVENT_VERSION).to_owned();
            let _: u64 = journal.link.ask(&set)?;
        }
        journal.reached.note(tail.0)?;
        Ok(journal)
    }

    /// Does the stream end where it should? What comes before is verified as it is read.
    fn check_end(&mut self) -> Result<(), JournalError> {
        let last = cmd("XREVRANGE")
            .arg(self.keys.events())
            .arg("+")
            .arg("-")
            .arg("COUNT")
            .arg(1)
            .to_owned();
        let last = self.entries(&last)?;
        let (position, check) = match last.first() {
            Some(Entry(position, _, check)) => (*position, *check),
            None => self.anchor,
        };
        if (position, check) == self.tail {
            return Ok(());
        }
        let end = self.tail.0.0;
        let reason = format!("the stream ends at {}, not as was noted at {end}", position.0);
        Err(JournalError::Corrupt { position: JournalPosition(position.0.min(end) + 1), reason })
    }

    /// Has the journal gone back? Where that was to be expected of what was chosen, it is said and no more.
    fn check_reached(&self) -> Result<(), JournalError> {
        let checked = self.reached.check(self.tail.0);
        let lossy = self.durability.disk < Disk::Always && self.durability.replicas == 0;
        match checked {
            Err(error) if lossy && self.tail.0.0 > 0 => {
                let error = &error as &dyn std::error::Error;
                tracing::error!(error, "Redis has LOST acknowledged events; going on without them");
                Ok(())
            }
            checked => checked,
        }
    }

    fn entries(&mut self, command: &redis::Cmd) -> Result<Vec<Entry>, JournalError> {
        let found: Vec<Stored> = self.link.ask(command)?;
        found.into_iter().map(|(id, fields)| entry(&id, fields)).collect()
    }

    /// Up to `limit` entries after a position.
    fn entries_after(
        &mut self,
        after: JournalPosition,
        limit: usize,
    ) -> Result<Vec<Entry>, JournalError> {
        let first = format!("{}-0", after.0.saturating_add(1));
        let limit = limit.min(READ_AT_ONCE);
        let range = cmd("XRANGE")
            .arg(self.keys.events())
            .arg(first)
            .arg("+")
            .arg("COUNT")
            .arg(limit)
            .to_owned();
        self.entries(&range)
    }

    fn check_at(&mut self, position: JournalPosition) -> Result<Check, JournalError> {
        if position == self.anchor.0 {
            return Ok(self.anchor.1);
        }
        if position == self.tail.0 {
            return Ok(self.tail.1);
        }
        let before = JournalPosition(position.0.saturating_sub(1));
        match self.entries_after(before, 1)?.first() {
            Some(Entry(found, _, check)) if *found == position => Ok(*check),
            _ => Err(missing(position)),
        }
    }

    /// Leases that ended in the records up to `last`.
    fn ended_leases(&mut self, last: JournalPosition) -> Result<Vec<Vec<u8>>, JournalError> {
        let mut position = self.anchor.0;
        let mut leases = Vec::new();
        while position < last {
            let left = usize::try_from(last.0 - position.0).unwrap_or(usize::MAX);
            let entries = self.entries_after(position, left)?;
            let Some(Entry(end, ..)) = entries.last() else { break };
            position = *end;
            for Entry(at, payload, _) in &entries {
                let lease = ended(&decode(*at, payload)?.event);
                leases.extend(lease.map(|lease| lease.0.to_string().into_bytes()));
            }
        }
        Ok(leases)
    }

    fn token(&self) -> Vec<u8> {
        self.lease.token().to_string().into_bytes()
    }
}

impl Journal for RedisJournal {
    fn append(&mut self, records: &[Record]) -> Result<(), JournalError> {
        in_order(self.tail.0, records)?;
        if records.is_empty() {
            return Ok(());
        }
        let keys = [self.keys.meta(), self.keys.events(), self.keys.jobs(), self.keys.lease_jobs()];
        let mut pipe = redis::pipe();
        let (mut position, mut check) = self.tail;
        for group in records.chunks(IN_ONE_SCRIPT) {
            let call = pipe.cmd("EVALSHA").arg(self.append.get_hash()).arg(keys.len()).arg(&keys);
            call.arg(self.token()).arg(position.0).arg(&check.0).arg(self.keys.job_prefix());
            for record in group {
                let payload = encode(record)?;
                position = record.position;
                check = check.then(position, &payload);
                let (kind, job, lease) = match owner(&record.event) {
                    Owner::Job(job) => ("job", job.0, 0),
                    Owner::Grants(lease, job) => ("grant", job.0, lease.0),
                    Owner::Lease(lease) => ("lease", 0, lease.0),
                    Owner::Nobody => ("none", 0, 0),
                };
                call.arg(payload).arg(&check.0).arg(kind).arg(job).arg(lease);
            }
        }
        let replicas = self.durability.replicas;
        if replicas > 0 {
            let longest = u64::try_from(REPLICAS.as_millis()).unwrap_or(u64::MAX);
            pipe.cmd("WAIT").arg(replicas).arg(longest);
        }
        let mut answers: Vec<u32> = self.link.ask_all(&pipe)?;
        let had = if replicas > 0 { answers.pop() } else { None };
        answers.into_iter().try_for_each(allowed)?;
        if let Some(had) = had.filter(|had| *had < replicas) {
            let reason = format!("{had} of {replicas} replicas had the events in time");
            return Err(JournalError::Storage(reason.into()));
        }
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
        let mut check = self.check_at(after)?;
        let mut position = after;
        let mut records = Vec::new();
        while records.len() < limit && position < self.tail.0 {
            let entries = self.entries_after(position, limit - records.len())?;
            if entries.is_empty() {
                return Err(missing(JournalPosition(position.0 + 1)));
            }
            for Entry(found, payload, stored) in entries {
                position = JournalPosition(position.0 + 1);
                if found != position {
                    return Err(missing(position));
                }
                check = check.then(position, &payload);
                if check != stored {
                    let reason = "it was altered".to_owned();
                    return Err(JournalError::Corrupt { position, reason });
                }
                records.push(decode(position, &payload)?);
            }
        }
        Ok(records)
    }

    fn ends(&self) -> Ends {
        Ends { anchor: self.anchor, tail: self.tail }
    }

    fn begin_after(&mut self, anchor: (JournalPosition, Check)) -> Result<(), JournalError> {
        self.ends().empty()?;
        let adopted = self.link.run(
            &Script::new(include_str!("adopt.lua")),
            &[&self.keys.meta()],
            &[&self.token(), anchor.0.0.to_string().as_bytes(), &anchor.1.0],
        )?;
        allowed(adopted)?;
        (self.anchor, self.tail) = (anchor, anchor);
        Ok(())
    }

    fn save_snapshot(&mut self, snapshot: &Snapshot) -> Result<(), JournalError> {
        let (position, tail) = (snapshot.position, self.tail.0);
        if position > tail {
            return Err(JournalError::BeyondTail { position, tail });
        }
        let kept: u32 = self.link.run(
            &Script::new(include_str!("keep.lua")),
            &[&self.keys.meta(), &self.keys.snapshots()],
            &[
                &self.token(),
                self.keys.snapshot_prefix().as_bytes(),
                position.0.to_string().as_bytes(),
                EVENT_VERSION.to_string().as_bytes(),
                &snapshot_digest(position, &snapshot.bytes).0,
                &snapshot.bytes,
            ],
        )?;
        allowed(kept)?;
        self.reached.note(tail)
    }

    fn load_snapshot_below(
        &mut self,
        below: JournalPosition,
    ) -> Result<Option<Snapshot>, JournalError> {
        let positions: Vec<u64> =
            self.link.ask(cmd("ZREVRANGE").arg(self.keys.snapshots()).arg(0).arg(-1))?;
        for position in positions.into_iter().map(JournalPosition).filter(|found| *found < below) {
            let stored: HashMap<String, Vec<u8>> =
                self.link.ask(cmd("HGETALL").arg(self.keys.snapshot(position)))?;
            known_version("a snapshot of version", field(&stored, "version")?, READ_VERSIONS)?;
            if position > self.tail.0 {
                let reason = format!("a snapshot at {} lies beyond the journal's end", position.0);
                let position = JournalPosition(self.tail.0.0 + 1);
                return Err(JournalError::Corrupt { position, reason });
            }
            let bytes = field(&stored, "bytes")?;
            if snapshot_digest(position, bytes).0 == field(&stored, "digest")? {
                self.read_back = self.read_back.max(Some(position));
                return Ok(Some(Snapshot { position, bytes: bytes.to_vec() }));
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
        let leases = self.ended_leases(last)?;
        let (token, prefix) = (self.token(), self.keys.job_prefix());
        let (last_word, below_word) = (last.0.to_string(), below.0.to_string());
        let mut arguments: Vec<&[u8]> =
            vec![&token, prefix.as_bytes(), last_word.as_bytes(), &check.0, below_word.as_bytes()];
        arguments.extend(leases.iter().map(Vec::as_slice));
        let trimmed: u32 = self.link.run(
            &Script::new(include_str!("trim.lua")),
            &[&self.keys.meta(), &self.keys.events(), &self.keys.jobs(), &self.keys.lease_jobs()],
            &arguments,
        )?;
        allowed(trimmed)?;
        self.anchor = (last, check);
        Ok(())
    }

    fn events(
        &mut self,
        job: JobId,
        after: JournalPosition,
        limit: usize,
    ) -> Result<Vec<Record>, JournalError> {
        let positions: Vec<u64> = self.link.ask(
            cmd("ZRANGEBYSCORE")
                .arg(self.keys.job(job))
                .arg(format!("({}", after.0))
                .arg("+inf")
                .arg("LIMIT")
                .arg(0)
                .arg(limit.min(READ_AT_ONCE)),
        )?;
        let mut pipe = redis::pipe();
        for position in &positions {
            let id = format!("{position}-0");
            pipe.cmd("XRANGE").arg(self.keys.events()).arg(&id).arg(&id);
        }
        if positions.is_empty() {
            return Ok(Vec::new());
        }
        let found: Vec<Vec<Stored>> = self.link.ask_all(&pipe)?;
        let mut records = Vec::new();
        for (id, fields) in found.into_iter().flatten() {
            let Entry(position, payload, _) = entry(&id, fields)?;
            records.push(decode(position, &payload)?);
        }
        Ok(records)
    }
}

/// What a script says of the writer's right.
fn allowed(said: u32) -> Result<(), JournalError> {
    match said {
        0 => Ok(()),
        1 => Err(JournalError::Fenced),
        _ => Err(JournalError::Storage("the stream's end isn't where it was left".into())),
    }
}

fn missing(position: JournalPosition) -> JournalError {
    JournalError::Corrupt { position, reason: "it is missing".to_owned() }
}

fn entry(id: &str, mut fields: HashMap<String, Vec<u8>>) -> Result<Entry, JournalError> {
    let number = id.strip_suffix("-0").and_then(|number| number.parse().ok());
    let position = JournalPosition(number.ok_or_else(|| {
        JournalError::Unreadable(format!("`{id}` is no event's id: is it another stream?").into())
    })?);
    let payload = fields.remove("p").ok_or_else(|| missing(position))?;
    Ok(Entry(position, payload, Check(check(field(&fields, "c")?)?)))
}

fn field<'a>(fields: &'a HashMap<String, Vec<u8>>, name: &str) -> Result<&'a [u8], JournalError> {
    let value = fields.get(name).map(Vec::as_slice);
    value.ok_or_else(|| JournalError::Unreadable(format!("it doesn't say its `{name}`").into()))
}

fn check(bytes: &[u8]) -> Result<[u8; 32], JournalError> {
    bytes.try_into().map_err(|_| JournalError::Unreadable("a check is no SHA-256".into()))
}

/// A position of the chain and its check.
fn mark(
    meta: &HashMap<String, Vec<u8>>,
    name: &str,
) -> Result<(JournalPosition, Check), JournalError> {
    let word = String::from_utf8_lossy(field(meta, name)?).into_owned();
    let position = word
        .parse()
        .map_err(|_| JournalError::Unreadable(format!("its `{name}` is unreadable").into()))?;
    Ok((JournalPosition(position), Check(check(field(meta, &format!("{name}-check"))?)?)))
}

//! The journal over any storage: order, chain, decoding, versions, snapshots, trims, and the high-water mark.

use super::{
    EventJob, Journal, JournalError, Mark, Marks, Snapshot,
    chain::{missing, next},
    encoding::{decode, encode, in_order, known_version, snapshot_digest, supported},
    event_job::ended,
    high_water::{HighWaterMark, OnLoss},
    listing::Listing,
    shared_note::{NoteKeeper, SharedNote},
    storage::{NewRow, Row, Storage, StoredSnapshot, Versions},
};
use sojourn_core::{EVENT_VERSION, JournalPosition, READ_VERSIONS, Record};
use sojourn_protocol::ids::{JobId, LeaseId};
use std::sync::mpsc::SyncSender;

/// Snapshots kept: the newest, and the one before it in case the newest is damaged.
const KEPT_SNAPSHOTS: u32 = 2;
/// Rows asked of a storage at once.
const BATCH: usize = 10_000;

/// How much of a journal is verified when it is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verify {
    /// The whole chain.
    All,
    /// The last row alone, which must be the tail. The rest is verified when it is read.
    Tail,
}

/// Rows that follow each other, and the jobs under which they are listed, where that is to be verified.
struct Batch {
    rows: Vec<Row>,
    jobs: Vec<Option<JobId>>,
}

/// A journal over a storage.
#[derive(Debug)]
pub struct ChainedJournal<S> {
    storage: S,
    marks: Marks,
    /// The note of how far the journal has come.
    high_water: Option<HighWaterMark>,
    /// Writes the note that all servers of the journal see.
    note: Option<NoteKeeper>,
    /// The newest snapshot that was read back as it was written.
    read_back: Option<JournalPosition>,
}

impl<S: Storage> ChainedJournal<S> {
    /// Opens the journal of a storage, or begins one where there is none.
    pub(super) fn over(
        mut storage: S,
        high_water: Option<HighWaterMark>,
        verify: Verify,
    ) -> Result<Self, JournalError> {
        let current = Versions { format: S::FORMAT.to_string(), events: EVENT_VERSION.to_string() };
        let versions = match storage.versions()? {
            Some(versions) => versions,
            None => {
                high_water.as_ref().map_or(Ok(()), HighWaterMark::check_absent)?;
                storage.set_marks(&current, Marks::default())?;
                current.clone()
            }
        };
        known_version("format", &versions.format, S::FORMAT..=S::FORMAT)?;
        known_version("event-version", &versions.events, READ_VERSIONS)?;
        let marks = storage.marks()?;
        let mut journal = Self { storage, marks, high_water, note: None, read_back: None };
        match verify {
            Verify::All => journal.verify_all()?,
            Verify::Tail => journal.verify_tail()?,
        }
        let tail = marks.tail.position;
        if let Some(high_water) = &journal.high_water {
            high_water.check(tail)?;
        }
        if versions != current {
            // From here on it holds events that programs of that version can't read.
            journal.storage.set_marks(&current, marks)?;
        }
        journal.note_high_water()?;
        Ok(journal)
    }

    /// Refuses a journal that lacks what the note says of it, and keeps the note from now on, while `may_write`.
    pub(super) fn with_note(
        mut self,
        note: SharedNote,
        on_loss: OnLoss,
        may_write: impl Fn() -> bool + Send + 'static,
    ) -> Result<Self, JournalError> {
        let tail = self.marks.tail;
        if let Some(noted) = note.read()?
            && !self.has(noted)?
        {
            let (ends, reached, place) = (tail.position.0, noted.position.0, note.place());
            if on_loss == OnLoss::Refuse || ends == 0 {
                let what = if ends < reached {
                    format!("it ends at {ends}, and had reached {reached}")
                } else {
                    format!("another event than this one was acknowledged at {reached}")
                };
                let reason = format!(
                    "{what}, as `{place}` says: Redis has lost acknowledged events, or is another one; bring the newer one back, \
                     or go on all the same by removing the note"
                );
                let position = next(tail.position.min(noted.position));
                return Err(JournalError::Corrupt { position, reason });
            }
            tracing::error!(
                tail = ends,
                reached,
                "the journal has LOST acknowledged events; going on without them"
            );
        }
        self.note = Some(NoteKeeper::start(note, tail, may_write)?);
        Ok(self)
    }

    /// Does the journal have this record, as far as can be told? Records that were trimmed can't be compared.
    fn has(&mut self, mark: Mark) -> Result<bool, JournalError> {
        let Marks { anchor, tail } = self.marks;
        if mark.position < anchor.position {
            return Ok(true);
        }
        Ok(mark.position <= tail.position && self.mark_at(mark.position)? == mark)
    }

    /// Walks the whole chain, and what follows from it. This thread reads it, another one hashes what was read, and a third
    /// verifies under which jobs it is listed.
    fn verify_all(&mut self) -> Result<(), JournalError> {
        let (batches, inbox) = std::sync::mpsc::sync_channel::<Batch>(2);
        let (hashed, to_list) = std::sync::mpsc::sync_channel::<Batch>(2);
        let Marks { anchor, tail } = self.marks;
        let mut listing = Listing::new(self.storage.jobs_of_leases()?);
        let end = std::thread::scope(|scope| {
            let hashing = scope.spawn(move || -> Result<Mark, JournalError> {
                inbox.iter().try_fold(anchor, |mark, batch| {
                    let mark = mark.verify(&batch.rows)?;
                    // Nobody wants more of them where one was wrong.
                    drop(hashed.send(batch));
                    Ok(mark)
                })
            });
            let listing = scope.spawn(move || {
                to_list.iter().try_for_each(|Batch { rows, jobs }| listing.verify(&rows, &jobs))
            });
            let read = self.send_rows(&batches);
            drop(batches);
            let hashed = hashing.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            let listed = listing.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            // An altered row comes first: it may be the cause of whatever else fails.
            let end = hashed?;
            listed.and(read).map(|()| end)
        })?;
        if end == tail {
            return Ok(());
        }
        let (position, reason) = if end.position == tail.position {
            (end.position, "its hash isn't the one that was noted last".to_owned())
        } else {
            let first_wrong = next(end.position.min(tail.position));
            (first_wrong, format!("the journal should end at {}", tail.position.0))
        };
        Err(JournalError::Corrupt { position, reason })
    }

    /// Sends all rows, until nobody wants more of them.
    fn send_rows(&mut self, batches: &SyncSender<Batch>) -> Result<(), JournalError> {
        let mut position = self.marks.anchor.position;
        loop {
            let rows = self.storage.rows(None, position, BATCH)?;
            let jobs = self.storage.jobs_of_rows(position, BATCH)?;
            let Some(last) = rows.last() else { return Ok(()) };
            position = last.position;
            if batches.send(Batch { rows, jobs }).is_err() {
                return Ok(());
            }
        }
    }

    /// Verifies that the rows end at the tail. Where they don't, the whole chain is walked to find the first wrong one.
    fn verify_tail(&mut self) -> Result<(), JournalError> {
        let Marks { anchor, tail } = self.marks;
        let before = JournalPosition(tail.position.0.saturating_sub(1)).max(anchor.position);
        let found = self.storage.rows(None, before, 2)?;
        let ends_there = match found.as_slice() {
            [] => tail == anchor,
            [row] => (Mark { position: row.position, hash: row.hash }) == tail,
            _ => false,
        };
        if ends_there { Ok(()) } else { self.verify_all() }
    }

    /// The mark of a record that is kept, or of the last that isn't.
    fn mark_at(&mut self, position: JournalPosition) -> Result<Mark, JournalError> {
        let Marks { anchor, tail } = self.marks;
        if let Some(mark) = [anchor, tail].into_iter().find(|mark| mark.position == position) {
            return Ok(mark);
        }
        let before = JournalPosition(position.0.saturating_sub(1));
        match self.storage.rows(None, before, 1)?.first() {
            Some(row) if row.position == position => Ok(Mark { position, hash: row.hash }),
            _ => Err(missing(position)),
        }
    }

    /// Leases that ended in the records up to `last`. A report of such a lease that comes much later is listed under no
    /// job.
    fn ended_leases(&mut self, last: JournalPosition) -> Result<Vec<LeaseId>, JournalError> {
        let mut position = self.marks.anchor.position;
        let mut leases = Vec::new();
        while position < last {
            let rows = self.storage.rows(None, position, BATCH)?;
            let Some(end) = rows.last().map(|row| row.position) else { break };
            for row in rows.iter().take_while(|row| row.position <= last) {
                leases.extend(ended(&decode(row)?.event));
            }
            position = end;
        }
        Ok(leases)
    }

    fn note_high_water(&mut self) -> Result<(), JournalError> {
        let tail = self.marks.tail.position;
        self.high_water.as_mut().map_or(Ok(()), |high_water| high_water.note(tail))
    }

    fn newest_snapshot(
        &mut self,
        mut below: Option<JournalPosition>,
    ) -> Result<Option<Snapshot>, JournalError> {
        while let Some(stored) = self.storage.newest_snapshot(below)? {
            let StoredSnapshot { position, version, digest, bytes } = stored;
            supported("a snapshot of version", version, READ_VERSIONS)?;
            let tail = self.marks.tail.position;
            if position > tail {
                let reason = format!("a snapshot at {} lies beyond the journal's end", position.0);
                return Err(JournalError::Corrupt { position: next(tail), reason });
            }
            if snapshot_digest(position, &bytes) == digest {
                self.read_back = self.read_back.max(Some(position));
                return Ok(Some(Snapshot { position, bytes }));
            }
            tracing::warn!(position = position.0, "skipping a damaged snapshot");
            below = Some(position);
        }
        Ok(None)
    }
}

impl<S: Storage> Journal for ChainedJournal<S> {
    fn append(&mut self, records: &[Record]) -> Result<(), JournalError> {
        let tail = self.marks.tail;
        in_order(tail.position, records)?;
        let mut end = tail;
        let mut rows = Vec::with_capacity(records.len());
        for record in records {
            let payload = encode(record)?;
            end = end.then(&payload);
            let row = Row { position: record.position, payload, hash: end.hash };
            rows.push(NewRow { row, job: EventJob::of(&record.event) });
        }
        if rows.is_empty() {
            return Ok(());
        }
        self.storage.append(&rows, tail)?;
        self.marks.tail = end;
        if let Some(note) = &self.note {
            note.reached(end);
        }
        self.high_water.as_mut().map_or(Ok(()), |high_water| high_water.appended(end.position))
    }

    fn read(&mut self, after: JournalPosition, limit: usize) -> Result<Vec<Record>, JournalError> {
        let Marks { anchor, tail } = self.marks;
        if after >= tail.position {
            return Ok(Vec::new());
        }
        if after < anchor.position {
            return Err(missing(next(after)));
        }
        let mut mark = self.mark_at(after)?;
        let mut records = Vec::new();
        while records.len() < limit && mark.position < tail.position {
            let wanted = BATCH.min(limit - records.len());
            let rows = self.storage.rows(None, mark.position, wanted)?;
            if rows.is_empty() {
                return Err(missing(next(mark.position)));
            }
            mark = mark.verify(&rows)?;
            for row in &rows {
                records.push(decode(row)?);
            }
        }
        Ok(records)
    }

    fn marks(&self) -> Marks {
        self.marks
    }

    fn begin_after(&mut self, anchor: Mark) -> Result<(), JournalError> {
        if self.marks.tail.position.0 > 0 {
            let expected = next(self.marks.tail.position);
            return Err(JournalError::OutOfOrder { expected, given: JournalPosition(1) });
        }
        let versions =
            Versions { format: S::FORMAT.to_string(), events: EVENT_VERSION.to_string() };
        let marks = Marks { anchor, tail: anchor };
        self.storage.set_marks(&versions, marks)?;
        self.marks = marks;
        Ok(())
    }

    fn save_snapshot(&mut self, snapshot: &Snapshot) -> Result<(), JournalError> {
        let (position, tail) = (snapshot.position, self.marks.tail.position);
        if position > tail {
            return Err(JournalError::BeyondTail { position, tail });
        }
        let digest = snapshot_digest(position, &snapshot.bytes);
        let bytes = snapshot.bytes.clone();
        let stored = StoredSnapshot { position, version: EVENT_VERSION, digest, bytes };
        self.storage.put_snapshot(&stored, KEPT_SNAPSHOTS)?;
        self.note_high_water()
    }

    fn load_snapshot(&mut self) -> Result<Option<Snapshot>, JournalError> {
        self.newest_snapshot(None)
    }

    fn load_snapshot_below(
        &mut self,
        below: JournalPosition,
    ) -> Result<Option<Snapshot>, JournalError> {
        self.newest_snapshot(Some(below))
    }

    fn trim(&mut self, below: JournalPosition) -> Result<(), JournalError> {
        let covers = |position: JournalPosition| next(position) >= below;
        let covered = self.read_back.is_some_and(covers)
            || self.load_snapshot()?.is_some_and(|newest| covers(newest.position));
        if !covered {
            return Err(JournalError::NotCovered { below });
        }
        let last = JournalPosition(below.0.saturating_sub(1));
        if last <= self.marks.anchor.position {
            return Ok(());
        }
        let anchor = self.mark_at(last)?;
        let ended = self.ended_leases(last)?;
        self.storage.drop_before(anchor, &ended)?;
        self.marks.anchor = anchor;
        Ok(())
    }

    fn events(
        &mut self,
        job: JobId,
        after: JournalPosition,
        limit: usize,
    ) -> Result<Vec<Record>, JournalError> {
        let mut position = after;
        let mut records = Vec::new();
        while records.len() < limit {
            let wanted = BATCH.min(limit - records.len());
            let rows = self.storage.rows(Some(job), position, wanted)?;
            let Some(last) = rows.last() else { break };
            position = last.position;
            for row in &rows {
                records.push(decode(row)?);
            }
        }
        Ok(records)
    }
}

//! A journal in memory that can be made to fail, for tests and simulations.

use super::{
    EventJob, Journal, JournalError, Mark, Marks, Snapshot,
    chained::{ChainedJournal, Verify},
    storage::{NewRow, Row, Storage, StoredSnapshot, Versions},
};
use parking_lot::Mutex;
use sojourn_core::{JournalPosition, Record};
use sojourn_protocol::ids::{JobId, LeaseId};
use std::{
    collections::{BTreeMap, VecDeque},
    io,
    ops::Bound,
    sync::Arc,
};

/// How an append goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Nothing is written, and it fails.
    Fails,
    /// All is written, and it fails all the same.
    Unknown,
    /// The first half of the group is written, and it fails.
    Torn,
    /// All is written, and its sync fails.
    Unsynced,
}

/// A journal in memory. Clones are the same journal: each call opens it anew.
#[derive(Debug, Clone, Default)]
pub struct MemoryJournal {
    storage: MemoryStorage,
}

/// Rows in memory; clones share them.
#[derive(Debug, Clone, Default)]
struct MemoryStorage {
    shared: Arc<Mutex<Shared>>,
}

#[derive(Debug, Default)]
struct Shared {
    versions: Option<Versions>,
    marks: Marks,
    rows: BTreeMap<JournalPosition, (Row, Option<JobId>)>,
    snapshots: BTreeMap<JournalPosition, StoredSnapshot>,
    lease_jobs: BTreeMap<LeaseId, JobId>,
    faults: VecDeque<Fault>,
}

impl MemoryJournal {
    /// Makes one of the next appends go wrong. Faults are used in the order in which they were given.
    pub fn inject(&self, fault: Fault) {
        self.storage.shared.lock().faults.push_back(fault);
    }

    /// Changes the payload at `position` behind the journal's back.
    pub fn alter(&self, position: JournalPosition, change: impl FnOnce(&mut Vec<u8>)) {
        if let Some((row, _)) = self.storage.shared.lock().rows.get_mut(&position) {
            change(&mut row.payload);
        }
    }

    fn opened(&self) -> Result<ChainedJournal<MemoryStorage>, JournalError> {
        ChainedJournal::over(self.storage.clone(), None, Verify::Tail)
    }
}

impl Journal for MemoryJournal {
    fn append(&mut self, records: &[Record]) -> Result<(), JournalError> {
        self.opened()?.append(records)
    }

    fn read(&mut self, after: JournalPosition, limit: usize) -> Result<Vec<Record>, JournalError> {
        self.opened()?.read(after, limit)
    }

    fn marks(&self) -> Marks {
        self.storage.shared.lock().marks
    }

    fn begin_after(&mut self, anchor: Mark) -> Result<(), JournalError> {
        self.opened()?.begin_after(anchor)
    }

    fn save_snapshot(&mut self, snapshot: &Snapshot) -> Result<(), JournalError> {
        self.opened()?.save_snapshot(snapshot)
    }

    fn load_snapshot(&mut self) -> Result<Option<Snapshot>, JournalError> {
        self.opened()?.load_snapshot()
    }

    fn load_snapshot_below(
        &mut self,
        below: JournalPosition,
    ) -> Result<Option<Snapshot>, JournalError> {
        self.opened()?.load_snapshot_below(below)
    }

    fn trim(&mut self, below: JournalPosition) -> Result<(), JournalError> {
        self.opened()?.trim(below)
    }

    fn events(
        &mut self,
        job: JobId,
        after: JournalPosition,
        limit: usize,
    ) -> Result<Vec<Record>, JournalError> {
        self.opened()?.events(job, after, limit)
    }
}

impl MemoryStorage {}

impl Shared {
    fn write(&mut self, rows: &[NewRow]) {
        for NewRow { row, job } in rows {
            let job = match *job {
                EventJob::Job(job) => Some(job),
                EventJob::Grants(lease, job) => {
                    self.lease_jobs.insert(lease, job);
                    Some(job)
                }
                EventJob::Lease(lease) => self.lease_jobs.get(&lease).copied(),
                EventJob::None => None,
            };
            self.marks.tail = Mark { position: row.position, hash: row.hash };
            self.rows.insert(row.position, (row.clone(), job));
        }
    }
}

impl Storage for MemoryStorage {
    const FORMAT: u32 = 1;

    fn versions(&mut self) -> Result<Option<Versions>, JournalError> {
        Ok(self.shared.lock().versions.clone())
    }

    fn marks(&mut self) -> Result<Marks, JournalError> {
        Ok(self.shared.lock().marks)
    }

    fn set_marks(&mut self, versions: &Versions, marks: Marks) -> Result<(), JournalError> {
        let mut shared = self.shared.lock();
        shared.versions = Some(versions.clone());
        shared.marks = marks;
        Ok(())
    }

    fn append(&mut self, rows: &[NewRow], _: Mark) -> Result<(), JournalError> {
        let mut shared = self.shared.lock();
        let injected = Err(JournalError::Storage(io::Error::other("injected").into()));
        let (written, answer) = match shared.faults.pop_front() {
            None => (rows.len(), Ok(())),
            Some(Fault::Fails) => (0, injected),
            Some(Fault::Unknown) => (rows.len(), injected),
            Some(Fault::Torn) => (rows.len() / 2, injected),
            Some(Fault::Unsynced) => (rows.len(), Err(JournalError::Unsynced("injected".into()))),
        };
        shared.write(rows.get(..written).unwrap_or_default());
        answer
    }

    fn rows(
        &mut self,
        of: Option<JobId>,
        after: JournalPosition,
        limit: usize,
    ) -> Result<Vec<Row>, JournalError> {
        let shared = self.shared.lock();
        let rows = shared.rows.range((Bound::Excluded(after), Bound::Unbounded));
        let rows = rows.filter(|(_, (_, job))| of.is_none() || *job == of);
        Ok(rows.take(limit).map(|(_, (row, _))| row.clone()).collect())
    }

    fn put_snapshot(&mut self, snapshot: &StoredSnapshot, keep: u32) -> Result<(), JournalError> {
        let mut shared = self.shared.lock();
        shared.snapshots.insert(snapshot.position, snapshot.clone());
        while shared.snapshots.len() > keep as usize {
            shared.snapshots.pop_first();
        }
        Ok(())
    }

    fn newest_snapshot(
        &mut self,
        below: Option<JournalPosition>,
    ) -> Result<Option<StoredSnapshot>, JournalError> {
        let end = below.map_or(Bound::Unbounded, Bound::Excluded);
        let shared = self.shared.lock();
        let newest = shared.snapshots.range((Bound::Unbounded, end)).next_back();
        Ok(newest.map(|(_, snapshot)| snapshot.clone()))
    }

    fn drop_before(&mut self, anchor: Mark, ended: &[LeaseId]) -> Result<(), JournalError> {
        let mut shared = self.shared.lock();
        shared.rows.retain(|position, _| *position > anchor.position);
        shared.lease_jobs.retain(|lease, _| !ended.contains(lease));
        shared.marks.anchor = anchor;
        Ok(())
    }
}

//! A journal in memory that can be made to fail, for tests and simulations.

use super::{Check, Ends, Journal, JournalError, Snapshot, decode, encode, in_order, owner};
use sojourn_core::{JournalPosition, Record};
use sojourn_protocol::ids::{JobId, LeaseId};
use std::{
    collections::{BTreeMap, VecDeque},
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
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
}

/// A journal in memory; clones are the same journal, as if opened again.
#[derive(Debug, Clone, Default)]
pub struct MemoryJournal {
    shared: Arc<Mutex<Shared>>,
}

#[derive(Debug, Default)]
struct Shared {
    /// Position and check before the first record that is kept.
    anchor: (JournalPosition, Check),
    records: Vec<Kept>,
    snapshots: BTreeMap<JournalPosition, Vec<u8>>,
    lease_jobs: BTreeMap<LeaseId, JobId>,
    faults: VecDeque<Fault>,
}

#[derive(Debug)]
struct Kept {
    payload: Vec<u8>,
    check: Check,
    job: Option<JobId>,
}

impl MemoryJournal {
    /// Makes one of the next appends go wrong; faults are used in the order they were given.
    pub fn inject(&self, fault: Fault) {
        self.shared().faults.push_back(fault);
    }

    /// Changes the payload at `position` behind the journal's back.
    pub fn alter(&self, position: JournalPosition, change: impl FnOnce(&mut Vec<u8>)) {
        let mut shared = self.shared();
        let index = index(&shared, position);
        if let Some(kept) = shared.records.get_mut(index) {
            change(&mut kept.payload);
        }
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The index of the record at a position that isn't before the anchor.
fn index(shared: &Shared, position: JournalPosition) -> usize {
    let index = position.0.saturating_sub(shared.anchor.0.0).saturating_sub(1);
    usize::try_from(index).unwrap_or(usize::MAX)
}

impl Shared {
    fn tail(&self) -> (JournalPosition, Check) {
        let check = self.records.last().map_or(self.anchor.1, |kept| kept.check);
        (JournalPosition(self.anchor.0.0 + self.records.len() as u64), check)
    }

    fn write(&mut self, records: &[Record]) -> Result<(), JournalError> {
        for record in records {
            let payload = encode(record)?;
            let check = self.tail().1.then(record.position, &payload);
            let job = match owner::owner(&record.event) {
                owner::Owner::Job(job) => Some(job),
                owner::Owner::Grants(lease, job) => {
                    self.lease_jobs.insert(lease, job);
                    Some(job)
                }
                owner::Owner::Lease(lease) => self.lease_jobs.get(&lease).copied(),
                owner::Owner::Nobody => None,
            };
            self.records.push(Kept { payload, check, job });
        }
        Ok(())
    }
}

impl Journal for MemoryJournal {
    fn append(&mut self, records: &[Record]) -> Result<(), JournalError> {
        let mut shared = self.shared();
        in_order(shared.tail().0, records)?;
        let injected = || Err(JournalError::Storage(io::Error::other("injected").into()));
        match shared.faults.pop_front() {
            None => shared.write(records),
            Some(Fault::Fails) => injected(),
            Some(Fault::Unknown) => shared.write(records).and_then(|()| injected()),
            Some(Fault::Torn) => {
                let (half, _) = records.split_at(records.len() / 2);
                shared.write(half).and_then(|()| injected())
            }
        }
    }

    fn read(&mut self, after: JournalPosition, limit: usize) -> Result<Vec<Record>, JournalError> {
        let shared = self.shared();
        let (anchor, anchor_check) = shared.anchor;
        if after < anchor {
            let position = JournalPosition(after.0 + 1);
            let reason = "it is missing".to_owned();
            return Err(JournalError::Corrupt { position, reason });
        }
        let first = index(&shared, JournalPosition(after.0 + 1));
        let before = first.checked_sub(1).and_then(|before| shared.records.get(before));
        let mut check = before.map_or(anchor_check, |kept| kept.check);
        let mut position = after;
        let mut records = Vec::new();
        for Kept { payload, check: stored, .. } in shared.records.iter().skip(first).take(limit) {
            position = JournalPosition(position.0 + 1);
            check = check.then(position, payload);
            if check != *stored {
                let reason = "it was altered".to_owned();
                return Err(JournalError::Corrupt { position, reason });
            }
            records.push(decode(position, payload)?);
        }
        Ok(records)
    }

    fn ends(&self) -> Ends {
        let shared = self.shared();
        Ends { anchor: shared.anchor, tail: shared.tail() }
    }

    fn begin_after(&mut self, anchor: (JournalPosition, Check)) -> Result<(), JournalError> {
        self.ends().empty()?;
        self.shared().anchor = anchor;
        Ok(())
    }

    fn save_snapshot(&mut self, snapshot: &Snapshot) -> Result<(), JournalError> {
        let mut shared = self.shared();
        let tail = shared.tail().0;
        if snapshot.position > tail {
            return Err(JournalError::BeyondTail { position: snapshot.position, tail });
        }
        shared.snapshots.insert(snapshot.position, snapshot.bytes.clone());
        while shared.snapshots.len() > 2 {
            shared.snapshots.pop_first();
        }
        Ok(())
    }

    fn load_snapshot_below(
        &mut self,
        below: JournalPosition,
    ) -> Result<Option<Snapshot>, JournalError> {
        let shared = self.shared();
        let newest = shared.snapshots.range(..below).next_back();
        Ok(newest.map(|(position, bytes)| Snapshot { position: *position, bytes: bytes.clone() }))
    }

    fn trim(&mut self, below: JournalPosition) -> Result<(), JournalError> {
        let mut shared = self.shared();
        let covered = shared.snapshots.keys().any(|position| position.0 + 1 >= below.0);
        if !covered {
            return Err(JournalError::NotCovered { below });
        }
        let count = index(&shared, below).min(shared.records.len());
        let dropped: Vec<Kept> = shared.records.drain(..count).collect();
        for Kept { payload, check, .. } in dropped {
            let position = JournalPosition(shared.anchor.0.0 + 1);
            shared.anchor = (position, check);
            if let Some(lease) = owner::ended(&decode(position, &payload)?.event) {
                shared.lease_jobs.remove(&lease);
            }
        }
        Ok(())
    }

    fn events(
        &mut self,
        job: JobId,
        after: JournalPosition,
        limit: usize,
    ) -> Result<Vec<Record>, JournalError> {
        let after = after.max(self.shared().anchor.0);
        let records = self.read(after, usize::MAX)?;
        let shared = self.shared();
        let belongs = |record: &Record| {
            let kept = shared.records.get(index(&shared, record.position));
            kept.is_some_and(|kept| kept.job == Some(job))
        };
        Ok(records.into_iter().filter(belongs).take(limit).collect())
    }
}

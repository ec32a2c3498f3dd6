//! One trial whose merges are shared by assimilators in this process, each pinned to a core of its own.

use crate::{
    size,
    trial::{FIRST, hop, result, spec},
};
use rustix::thread::{CpuSet, sched_setaffinity};
use sojourn_assimilator::{
    Assimilator, Fault, NewVersion, Offer, Queue, QueueError, StagedUploads, Step, Unit, Work,
};
use sojourn_blobs::{BlobStore, HashedBytes};
use sojourn_protocol::{
    digest::{BlobRef, Digest},
    ids::{ClaimId, LeaseId, Version},
    ranges::{LeadAnswer, LeadRequest, RangeDone, RangeResultRequest, RangeWork, RemainingRange},
    report::{Sums, Trained},
    time::Millis,
    unit::{Base, Flush, Merge},
};
use std::{
    collections::BTreeMap,
    sync::{Arc, Condvar, Mutex, MutexGuard},
    time::{Duration, Instant},
};

const LEASE: LeaseId = LeaseId(1);

/// The trial, and the board of the merge that goes on.
#[derive(Debug, Clone)]
struct Seat(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    inner: Mutex<Inner>,
    changed: Condvar,
    upload: BlobRef,
}

#[derive(Debug)]
struct Inner {
    /// The versions that results are trained from and merged into, each with its state.
    versions: Vec<(Base, Option<BlobRef>)>,
    ended: Vec<Instant>,
    leads: bool,
    board: Option<LeadRequest>,
    waiting: BTreeMap<u32, RemainingRange>,
    made: Vec<RangeDone>,
}

impl Seat {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.inner.lock().unwrap()
    }

    /// A result that was trained from version 1, or where there is none, from version 0.
    fn unit(&self, inner: &Inner) -> Unit {
        let (base, _) = inner.versions[usize::from(inner.versions.len() > 1)];
        let (current, state) = *inner.versions.last().unwrap();
        let hop = hop(base);
        let end = hop.position_at(hop.batches());
        let (sums, checkpoint) = (Sums::default(), self.0.upload);
        let merge = Merge {
            spec: spec(),
            current,
            state,
            staleness: u64::from(current.version().0 - base.version().0),
            in_flight: 4,
            position: end,
            flush: Flush::ByRule,
            canary: None,
        };
        Unit {
            lease: LEASE,
            claim: ClaimId(u64::from(current.version().0)),
            term: Millis::from_secs(60),
            trained: Trained { base: base.version(), checkpoint, end, sums, train_micros: 1 },
            hop,
            expected_end: end,
            version: current.version().next(),
            merge: Some(merge),
        }
    }
}

impl Queue for Seat {
    fn take(&self, _: bool) -> Result<Option<Work>, QueueError> {
        let mut inner = self.inner();
        loop {
            // One isn't counted.
            if inner.ended.len() > size::of(5, 1) {
                return Ok(None);
            }
            if let Some((_, left)) = inner.waiting.pop_first() {
                let LeadRequest { unit, least, task, .. } = inner.board.clone().unwrap();
                return Ok(Some(Work::Range(Box::new(RangeWork { unit, least, left, task }))));
            }
            if !inner.leads {
                inner.leads = true;
                return Ok(Some(Work::Unit(Box::new(self.unit(&inner)))));
            }
            inner = self.0.changed.wait(inner).unwrap();
        }
    }

    fn renew(&self, _: LeaseId, _: ClaimId) -> Result<Offer, QueueError> {
        Ok(Offer::Taken)
    }

    fn assimilated(&self, _: LeaseId, made: NewVersion) -> Result<Offer, QueueError> {
        let mut inner = self.inner();
        let blob = Base::Checkpoint { version: made.version, blob: made.checkpoint };
        inner.versions.push((blob, made.merged.map(|merged| merged.state)));
        inner.ended.push(Instant::now());
        inner.leads = false;
        self.0.changed.notify_all();
        Ok(Offer::Taken)
    }

    fn lost(&self, _: LeaseId, blob: Digest) -> Result<Offer, QueueError> {
        panic!("{blob} was lost")
    }

    fn rejected(&self, _: LeaseId, _: Fault, reason: &str) -> Result<Offer, QueueError> {
        panic!("{reason}")
    }

    fn lead(&self, request: &LeadRequest) -> Result<LeadAnswer, QueueError> {
        let mut inner = self.inner();
        if request.left.is_empty() {
            return Ok(LeadAnswer::default());
        }
        let same = |board: &LeadRequest| {
            (board.unit.claim, &board.task) == (request.unit.claim, &request.task)
        };
        if !inner.board.as_ref().is_some_and(same) {
            inner.waiting = request.left.iter().map(|left| (left.range, *left)).collect();
            inner.made.clear();
            inner.board = Some(request.clone());
            self.0.changed.notify_all();
        }
        loop {
            let made = std::mem::take(&mut inner.made);
            let own = inner.waiting.pop_first().map(|(range, _)| range);
            if own.is_some() || !made.is_empty() {
                return Ok(LeadAnswer { done: made, own });
            }
            inner = self.0.changed.wait(inner).unwrap();
        }
    }

    fn range_made(&self, _: LeaseId, made: &RangeResultRequest) -> Result<Offer, QueueError> {
        self.inner().made.push(made.done.clone());
        self.0.changed.notify_all();
        Ok(Offer::Taken)
    }
}

/// Merges a second by so many assimilators, by ranges where checkpoints are larger than this.
pub(crate) fn merges_per_second(processes: usize, split_over: u64) -> f64 {
    let blobs = BlobStore::in_memory();
    let upload = HashedBytes::of(result().into());
    let blob = upload.blob();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(blobs.staging().stage_bytes(LEASE, upload)).unwrap();
    let inner = Inner {
        versions: vec![(FIRST, None)],
        ended: Vec::new(),
        leads: false,
        board: None,
        waiting: BTreeMap::new(),
        made: Vec::new(),
    };
    assert_eq!(FIRST.version(), Version(0));
    let shared = Shared { inner: Mutex::new(inner), changed: Condvar::new(), upload: blob };
    let seat = Seat(Arc::new(shared));
    std::thread::scope(|threads| {
        for core in 0..processes {
            let (seat, blobs) = (seat.clone(), blobs.clone());
            threads.spawn(move || assimilate(core, seat, blobs, split_over));
        }
    });
    let ended = seat.inner().ended.clone();
    let mut spent: Vec<Duration> = ended.windows(2).map(|pair| pair[1] - pair[0]).collect();
    spent.sort_unstable();
    1.0 / spent[spent.len() / 2].as_secs_f64()
}

/// An assimilator all of whose threads are on one core.
fn assimilate(core: usize, seat: Seat, blobs: BlobStore, split_over: u64) {
    pin(core);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .on_thread_start(move || pin(core))
        .build()
        .unwrap();
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(1)
        .start_handler(move |_| pin(core))
        .build()
        .unwrap();
    let handle = runtime.handle().clone();
    let uploads = StagedUploads::new(blobs.staging(), handle.clone());
    let assimilator = Assimilator::new(seat, uploads, blobs, handle).with_split_over(split_over);
    pool.install(|| {
        loop {
            match assimilator.step() {
                Step::Nothing => break,
                Step::Failed => panic!("a merge went wrong"),
                Step::Begun | Step::Done(_) | Step::RangeDone => {}
            }
        }
    });
}

fn pin(core: usize) {
    if size::of(false, true) {
        // There may be fewer cores, and nobody reads the figures.
        return;
    }
    let mut cores = CpuSet::new();
    cores.set(core);
    sched_setaffinity(None, &cores).unwrap();
}

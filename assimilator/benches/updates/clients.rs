//! How many results a second are merged while four clients upload them.
//!
//! All that the server does with their bytes but HTTP: each upload is hashed, written and synced, read, screened and
//! merged with `vc-asgd`, and the version that comes of it published. Beside it the four do nothing but write and sync
//! as much.

use crate::{
    line, median, size,
    trial::{FIRST, hop, result},
};
use sojourn_assimilator::{
    Assimilator, Fault, NewVersion, Offer, Queue, QueueError, Unit, Work, Workers,
};
use sojourn_blobs::{BlobStore, Encoding, UploadName, Uploads};
use sojourn_protocol::{
    digest::{BlobRef, Digest},
    ids::{ClaimId, LeaseId},
    report::{Sums, Trained},
    spec::{MergeSpec, RuleSpec},
    time::Millis,
    unit::{Base, Flush, Hop, Merge},
};
use std::{
    collections::VecDeque,
    fs::File,
    io::Write as _,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, mpsc},
    time::Instant,
};
use tokio::runtime::Handle;

const CLIENTS: u64 = 4;
/// Versions that a result may still have been trained from.
const ALIVE: usize = 8;
/// Bytes of one write of an upload, as they come in over HTTP.
const CHUNK: usize = 256 << 10;

/// Updates of each client in a round.
fn round() -> u64 {
    size::of(8, 1)
}

/// One trial, as its core would keep it.
#[derive(Clone)]
struct Trial {
    inner: Arc<Mutex<Inner>>,
    blobs: BlobStore,
    runtime: Handle,
}

struct Inner {
    current: Base,
    state: Option<BlobRef>,
    waiting: VecDeque<Arrived>,
    /// The channel to the client that waits for the end of the present merge.
    merging: Option<mpsc::Sender<Ended>>,
    /// The checkpoints and states of merged versions that are in the store, the oldest first.
    stored: VecDeque<[BlobRef; 2]>,
}

/// A client's result, and how it is told of its end.
struct Arrived {
    lease: LeaseId,
    hop: Hop,
    trained: Trained,
    ended: mpsc::Sender<Ended>,
}

/// Nothing, or why a result wasn't merged.
type Ended = Result<(), String>;

impl Trial {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap()
    }

    fn end(&self, ended: Ended) {
        // A client that has ended already has said why.
        let _ = self.inner().merging.take().map(|client| client.send(ended));
    }

    /// Deletes versions that no result can have been trained from any more.
    fn forget(&self) {
        let old = {
            let stored = &mut self.inner().stored;
            let many = stored.len().saturating_sub(ALIVE);
            stored.drain(..many).flatten().collect::<Vec<_>>()
        };
        for blob in old {
            self.runtime.block_on(self.blobs.delete(blob.sha256)).unwrap();
        }
    }
}

impl Queue for Trial {
    fn take(&self, _: bool) -> Result<Option<Work>, QueueError> {
        // There is one assimilator: if it comes back without an end, it had trouble, which it has logged.
        self.end(Err("it was not assimilated".to_owned()));
        let mut inner = self.inner();
        let Some(Arrived { lease, hop, trained, ended }) = inner.waiting.pop_front() else {
            return Ok(None);
        };
        inner.merging = Some(ended);
        let (base, current) = (hop.base.version(), inner.current.version());
        let merge = Merge {
            spec: MergeSpec { rule: RuleSpec::VC_ASGD, ..MergeSpec::default() },
            current: inner.current,
            state: inner.state,
            staleness: u64::from(current.0 - base.0),
            in_flight: 4,
            position: trained.end,
            flush: Flush::ByRule,
            canary: None,
        };
        let (expected_end, version) = (trained.end, current.next());
        let (claim, term) = (ClaimId::default(), Millis::from_secs(60));
        let merge = Some(merge);
        let unit = Unit { lease, claim, term, hop, trained, expected_end, version, merge };
        Ok(Some(Work::Unit(Box::new(unit))))
    }

    fn renew(&self, _: LeaseId, _: ClaimId) -> Result<Offer, QueueError> {
        Ok(Offer::Taken)
    }

    fn assimilated(&self, _: LeaseId, made: NewVersion) -> Result<Offer, QueueError> {
        let mut inner = self.inner();
        let state = made.merged.unwrap().state;
        inner.current = Base::Checkpoint { version: made.version, blob: made.checkpoint };
        inner.state = Some(state);
        inner.stored.push_back([made.checkpoint, state]);
        drop(inner);
        self.end(Ok(()));
        Ok(Offer::Taken)
    }

    fn lost(&self, _: LeaseId, _: Digest) -> Result<Offer, QueueError> {
        Ok(Offer::Taken)
    }

    fn rejected(&self, _: LeaseId, _: Fault, reason: &str) -> Result<Offer, QueueError> {
        self.end(Err(reason.to_owned()));
        Ok(Offer::Taken)
    }
}

/// Uploads a client's result again and again, each time trained from what is current then.
fn client(number: u64, bytes: &[u8], trial: &Trial, uploads: &Uploads, workers: &Workers) {
    let blob = BlobRef { sha256: Digest::of(bytes), bytes: bytes.len() as u64 };
    for turn in 0..round() {
        let lease = LeaseId(1 + number + CLIENTS * turn);
        let hop = hop(number, trial.inner().current);
        let (base, position) = (hop.base.version(), hop.position_at(hop.batches()));
        let name = UploadName::Lease(lease);
        let mut upload = uploads.begin(name, blob, 0, Encoding::Identity).unwrap();
        bytes.chunks(CHUNK).for_each(|chunk| upload.write(chunk).unwrap());
        assert!(upload.finish().unwrap().complete);
        let (ended, end) = mpsc::channel();
        let (sums, train_micros) = (Sums::default(), 1);
        let trained = Trained { base, checkpoint: blob, end: position, sums, train_micros };
        trial.inner().waiting.push_back(Arrived { lease, hop, trained, ended });
        workers.notify();
        end.recv().unwrap().unwrap();
        uploads.remove(name).unwrap();
        trial.forget();
    }
}

/// Prints how many updates a second there are.
pub(crate) fn updates_per_second(folder: &Path, runtime: &Handle) {
    let results: Vec<Vec<u8>> = (0..CLIENTS).map(result).collect();
    let (mut merging, mut writing) = (Vec::new(), Vec::new());
    for _ in 0..size::of(3, 1) {
        merging.push(within(folder, |place| merge_all(&results, place, runtime)));
        writing.push(within(folder, |place| write_all(&results, place)));
    }
    let name = "results of 20 MB merged by vc-asgd, 4 clients uploading";
    line(name, median(merging), "updates/s", median(writing));
}

/// Updates a second in a folder of their own, which is empty, and gone before others are counted.
fn within(folder: &Path, count: impl FnOnce(&Path) -> f64) -> f64 {
    let place = tempfile::tempdir_in(folder).unwrap();
    count(place.path())
}

/// Updates a second through an assimilator.
fn merge_all(results: &[Vec<u8>], folder: &Path, runtime: &Handle) -> f64 {
    let uploads = Uploads::open(&folder.join("uploads")).unwrap();
    let blobs = BlobStore::open(&folder.join("blobs")).unwrap();
    let inner = Inner {
        current: FIRST,
        state: None,
        waiting: VecDeque::new(),
        merging: None,
        stored: VecDeque::new(),
    };
    let inner = Arc::new(Mutex::new(inner));
    let trial = Trial { inner, blobs: blobs.clone(), runtime: runtime.clone() };
    let assimilator = Assimilator::new(trial.clone(), uploads.clone(), blobs, runtime.clone());
    let workers = Workers::start(1..=1, assimilator).unwrap();
    let begun = Instant::now();
    std::thread::scope(|threads| {
        for (number, bytes) in (0..).zip(results) {
            let (trial, uploads, workers) = (&trial, &uploads, &workers);
            threads.spawn(move || client(number, bytes, trial, uploads, workers));
        }
    });
    per_second(begun)
}

/// Updates a second where each is but an upload and a version that are written and synced.
fn write_all(results: &[Vec<u8>], folder: &Path) -> f64 {
    let write = |name: &str, bytes: &[u8]| {
        let path = folder.join(name);
        let mut file = File::create(&path).unwrap();
        bytes.chunks(CHUNK).for_each(|chunk| file.write_all(chunk).unwrap());
        file.sync_all().unwrap();
        path
    };
    let versions = Mutex::new(());
    let begun = Instant::now();
    std::thread::scope(|threads| {
        for (number, bytes) in results.iter().enumerate() {
            let (versions, write) = (&versions, &write);
            threads.spawn(move || {
                for _ in 0..round() {
                    let upload = write(&format!("upload-{number}"), bytes);
                    // As versions are: one after the other.
                    let turn = versions.lock().unwrap();
                    let version = write(&format!("version-{number}"), bytes);
                    drop(turn);
                    [upload, version].iter().for_each(|path| std::fs::remove_file(path).unwrap());
                }
            });
        }
    });
    per_second(begun)
}

fn per_second(begun: Instant) -> f64 {
    (CLIENTS * round()) as f64 / begun.elapsed().as_secs_f64()
}

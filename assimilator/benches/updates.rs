//! How many results of 20 MB a second are merged while four clients upload them: JSON lines.
//!
//! All that the server does with their bytes but HTTP: each upload is hashed, written and synced, read, screened and
//! merged with `vc-asgd`, and the version that comes of it published. Beside it the same four clients and one more
//! thread do nothing but write and sync as much.

#![expect(
    clippy::unwrap_used,
    clippy::cast_precision_loss,
    reason = "a benchmark ends at what it did not expect, and counts"
)]

use sojourn_assimilator::{Assimilator, Fault, Made, Offer, Queue, QueueError, Unit, Workers};
use sojourn_blobs::{BlobStore, Encoding, UploadName, Uploads};
use sojourn_model::{Lineage, initial_checkpoint};
use sojourn_protocol::{
    digest::{BlobRef, Digest},
    ids::{Epoch, JobId, LeaseId, ShardId, TrialId},
    manifest::{Scaling, Shard},
    position::Position,
    report::{Sums, Trained},
    spec::{
        Architecture, Loss, MergeSpec, Optimizer, OptimizerName, Resnet, RuleSpec, TrainingConfig,
        TrialConfig,
    },
    unit::{Base, Flush, Hop, Merge, TrialContext},
};
use std::{
    collections::VecDeque,
    fs::File,
    io::Write as _,
    path::Path,
    sync::{Arc, Mutex, mpsc},
    time::Instant,
};
use tokio::runtime::Handle;

const CLIENTS: u64 = 4;
/// Updates of each client in a round.
const ROUND: u64 = 10;
const ROUNDS: usize = 5;
/// Versions that a result may still have been trained from.
const ALIVE: usize = 16;
/// Bytes of one write of an upload, as they come in over HTTP.
const CHUNK: usize = 256 << 10;

/// The paper's network without optimiser state.
fn context() -> TrialContext {
    let resnet = Resnet { depth: 164, width: Resnet::WIDTH };
    let optimizer = Optimizer::new(OptimizerName::Sgd, 0.1);
    let training = TrainingConfig::new(1, 32, Loss::CrossEntropy, optimizer);
    TrialContext {
        config: TrialConfig { model: Architecture::Resnet(resnet), training },
        shape: vec![3, 32, 32],
        outputs: 10,
        scaling: Scaling::None,
        total_steps: 1,
        pinned_threads: None,
    }
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
    waiting: VecDeque<(LeaseId, Hop, Trained)>,
    /// Is one of its results being merged?
    merging: bool,
    /// Who waits for the end of which lease.
    ended: Vec<(LeaseId, mpsc::Sender<()>)>,
    /// What the store has of it, the oldest first.
    stored: VecDeque<[BlobRef; 2]>,
}

impl Queue for Trial {
    fn take(&self) -> Result<Option<Unit>, QueueError> {
        let mut inner = self.inner.lock().unwrap();
        if inner.merging {
            return Ok(None);
        }
        let Some((lease, hop, trained)) = inner.waiting.pop_front() else { return Ok(None) };
        inner.merging = true;
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
        Ok(Some(Unit { lease, hop, trained, expected_end, version, merge: Some(merge) }))
    }

    fn assimilated(&self, lease: LeaseId, made: Made) -> Result<Offer, QueueError> {
        let mut inner = self.inner.lock().unwrap();
        let state = made.merged.unwrap().state;
        inner.current = Base::Checkpoint { version: made.version, blob: made.checkpoint };
        inner.state = Some(state);
        inner.merging = false;
        inner.stored.push_back([made.checkpoint, state]);
        let old = if inner.stored.len() > ALIVE { inner.stored.pop_front() } else { None };
        let at = inner.ended.iter().position(|(waits, _)| *waits == lease).unwrap();
        inner.ended.swap_remove(at).1.send(()).unwrap();
        drop(inner);
        for blob in old.into_iter().flatten() {
            self.runtime.block_on(self.blobs.delete(blob.sha256)).unwrap();
        }
        Ok(Offer::Taken)
    }

    fn lost(&self, blob: Digest) -> Result<(), QueueError> {
        panic!("blob {blob} was lost")
    }

    fn rejected(&self, lease: LeaseId, _: Fault, reason: &str) -> Result<Offer, QueueError> {
        panic!("{lease} was rejected: {reason}")
    }
}

/// Uploads a client's result again and again, each time trained from what is current then.
fn client(number: u64, bytes: &[u8], trial: &Trial, uploads: &Uploads, workers: &Workers) {
    let blob = BlobRef { sha256: Digest::of(bytes), bytes: bytes.len() as u64 };
    for turn in 0..ROUND {
        let lease = LeaseId(1 + number + CLIENTS * turn);
        let hop = hop(number, trial.inner.lock().unwrap().current);
        let (base, end) = (hop.base.version(), hop.position_at(hop.batches()));
        let name = UploadName::Lease(lease);
        let mut upload = uploads.begin(name, blob, 0, Encoding::Identity).unwrap();
        bytes.chunks(CHUNK).for_each(|chunk| upload.write(chunk).unwrap());
        assert!(upload.finish().unwrap().complete);
        let (ended, end_of_it) = mpsc::channel();
        {
            let mut inner = trial.inner.lock().unwrap();
            inner.ended.push((lease, ended));
            let (sums, train_micros) = (Sums::default(), 1);
            let trained = Trained { base, checkpoint: blob, end, sums, train_micros };
            inner.waiting.push_back((lease, hop, trained));
        }
        workers.wake();
        end_of_it.recv().unwrap();
        uploads.remove(name).unwrap();
    }
}

fn hop(client: u64, base: Base) -> Hop {
    let blob = BlobRef { sha256: Digest::of(b"shard"), bytes: 5 };
    Hop {
        job: JobId(1),
        trial: TrialId(0),
        base,
        start: Position { epoch: Epoch(0), shard: ShardId(0), batch: 0, step: 0 },
        shard: Shard { blob, rows: 32 },
        seed: client,
        context: context().into(),
        then: Vec::new(),
        until: None,
    }
}

/// What a client returns.
fn result(client: u64) -> Vec<u8> {
    let hop = hop(client, Base::Initial { seed: 1 });
    let position = hop.position_at(hop.batches());
    let lineage = Lineage { hop_seed: hop.seed, trial: hop.trial, position };
    initial_checkpoint(&hop.context, 10 + client, lineage).unwrap()
}

fn main() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let results: Vec<Vec<u8>> = (0..CLIENTS).map(result).collect();
    let (mut merging, mut writing) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let place = folder.path().join(round.to_string());
        std::fs::create_dir(&place).unwrap();
        merging.push(merge_all(&results, &place, runtime.handle()));
        std::fs::remove_dir_all(&place).unwrap();
        std::fs::create_dir(&place).unwrap();
        writing.push(write_all(&results, &place));
        std::fs::remove_dir_all(&place).unwrap();
    }
    let [value, anchor] = [merging, writing].map(median);
    let ratio = value / anchor;
    println!(
        "{{\"name\":\"results of 20 MB merged by vc-asgd, 4 clients uploading\",\
         \"value\":{value:.1},\"unit\":\"updates/s\",\"anchor\":{anchor:.1},\"ratio\":{ratio:.3}}}"
    );
}

/// Updates a second through an assimilator.
fn merge_all(results: &[Vec<u8>], folder: &Path, runtime: &Handle) -> f64 {
    let uploads = Uploads::open(&folder.join("uploads")).unwrap();
    let blobs = BlobStore::open(&folder.join("blobs")).unwrap();
    let inner = Inner {
        current: Base::Initial { seed: 1 },
        state: None,
        waiting: VecDeque::new(),
        merging: false,
        ended: Vec::new(),
        stored: VecDeque::new(),
    };
    let inner = Arc::new(Mutex::new(inner));
    let trial = Trial { inner, blobs: blobs.clone(), runtime: runtime.clone() };
    let assimilator = Assimilator::new(trial.clone(), uploads.clone(), blobs, runtime.clone());
    let workers = Workers::start(1, assimilator).unwrap();
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
    let write = |name: String, bytes: &[u8]| {
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
                for _ in 0..ROUND {
                    let upload = write(format!("upload-{number}"), bytes);
                    // As versions are: one after the other.
                    let turn = versions.lock().unwrap();
                    write(format!("version-{number}"), bytes);
                    drop(turn);
                    std::fs::remove_file(upload).unwrap();
                }
            });
        }
    });
    per_second(begun)
}

fn per_second(begun: Instant) -> f64 {
    (CLIENTS * ROUND) as f64 / begun.elapsed().as_secs_f64()
}

fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied().unwrap()
}

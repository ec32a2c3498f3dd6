//! Assimilation over real uploads and blobs, with a queue that remembers.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use sojourn_assimilator::{
    Assimilator, Fault, Made, Offer, Outcome, Queue, QueueError, Step, Unit, Workers,
};
use sojourn_blobs::{BlobStore, Encoding, UploadName, Uploads};
use sojourn_model::{Lineage, initial_checkpoint};
use sojourn_protocol::{
    digest::{BlobRef, Digest},
    ids::{Epoch, JobId, LeaseId, ShardId, TrialId, Version},
    manifest::{Scaling, Shard},
    position::Position,
    report::{Sums, Trained},
    spec::{Architecture, Loss, Optimizer, OptimizerName, TrainingConfig, TrialConfig},
    unit::{Base, Hop, TrialContext},
};
use std::{
    collections::VecDeque,
    future::Future as _,
    pin::pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
        mpsc,
    },
    task::{Context, Waker},
};

/// What reached the queue: a version, or a refusal.
type Offered = Result<(LeaseId, Version, BlobRef), (Fault, String)>;

const LEASE: LeaseId = LeaseId(5);

fn is_held(blobs: &BlobStore, blob: Digest) -> bool {
    let mut hold = pin!(blobs.hold(blob));
    hold.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending()
}

#[derive(Clone)]
struct Remembers {
    units: Arc<Mutex<VecDeque<Unit>>>,
    /// So many times taking fails.
    fails: Arc<AtomicU32>,
    blobs: BlobStore,
    /// For each offer, whether its blob was held.
    held: Arc<Mutex<Vec<bool>>>,
    offers: mpsc::Sender<Offered>,
    answer: Result<Offer, QueueError>,
}

impl Queue for Remembers {
    fn take(&self) -> Result<Option<Unit>, QueueError> {
        let fewer = |left: u32| left.checked_sub(1);
        if self.fails.fetch_update(Ordering::SeqCst, Ordering::SeqCst, fewer).is_ok() {
            return Err(QueueError("unavailable".to_owned()));
        }
        Ok(self.units.lock().unwrap().pop_front())
    }

    fn assimilated(&self, lease: LeaseId, made: Made) -> Result<Offer, QueueError> {
        let Made { version, checkpoint, .. } = made;
        self.held.lock().unwrap().push(is_held(&self.blobs, checkpoint.sha256));
        self.offers.send(Ok((lease, version, checkpoint))).unwrap();
        self.answer.clone()
    }

    fn rejected(&self, _: LeaseId, fault: Fault, reason: &str) -> Result<Offer, QueueError> {
        self.offers.send(Err((fault, reason.to_owned()))).unwrap();
        self.answer.clone()
    }
}

fn context() -> TrialContext {
    let optimizer = Optimizer::new(OptimizerName::Sgd, 0.1);
    let training = TrainingConfig::new(1, 4, Loss::CrossEntropy, optimizer);
    TrialContext {
        config: TrialConfig { model: Architecture::mlp([3]), training },
        shape: vec![2],
        outputs: 2,
        scaling: Scaling::None,
        total_steps: 3,
        pinned_threads: None,
    }
}

fn hop(base: Base) -> Hop {
    let blob = BlobRef { sha256: Digest::of(b"shard"), bytes: 5 };
    Hop {
        job: JobId(1),
        trial: TrialId(0),
        base,
        start: Position { epoch: Epoch(0), shard: ShardId(0), batch: 0, step: 0 },
        shard: Shard { blob, rows: 10 },
        seed: 9,
        context: context().into(),
        then: Vec::new(),
        until: None,
    }
}

fn checkpoint(hop: &Hop, batch: u32, seed: u64) -> Vec<u8> {
    let position = hop.position_at(batch);
    let lineage = Lineage { hop_seed: hop.seed, trial: hop.trial, position };
    initial_checkpoint(&hop.context, seed, lineage).unwrap()
}

struct World {
    _folder: tempfile::TempDir,
    runtime: tokio::runtime::Runtime,
    uploads: Uploads,
    blobs: BlobStore,
    queue: Remembers,
    offers: mpsc::Receiver<Offered>,
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let uploads = Uploads::open(folder.path()).unwrap();
        let (sender, offers) = mpsc::channel();
        let blobs = BlobStore::in_memory();
        let queue = Remembers {
            units: Arc::default(),
            fails: Arc::default(),
            blobs: blobs.clone(),
            held: Arc::default(),
            offers: sender,
            answer: Ok(Offer::Taken),
        };
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
        Self { _folder: folder, runtime, uploads, blobs, queue, offers }
    }

    /// Uploads `bytes` under the lease and puts their assimilation in the queue.
    fn upload(&self, hop: &Hop, bytes: &[u8]) -> BlobRef {
        let blob = BlobRef { sha256: Digest::of(bytes), bytes: bytes.len() as u64 };
        let name = UploadName::Lease(LEASE);
        let mut upload = self.uploads.begin(name, blob, 0, Encoding::Identity).unwrap();
        upload.write(bytes).unwrap();
        assert!(upload.finish().unwrap().complete);
        self.unit(hop, blob);
        blob
    }

    fn unit(&self, hop: &Hop, checkpoint: BlobRef) {
        let end = hop.position_at(3);
        let sums = Sums::default();
        let base = hop.base.version();
        let trained = Trained { base, checkpoint, end, sums, train_micros: 1 };
        let unit = Unit {
            lease: LEASE,
            hop: hop.clone(),
            trained,
            expected_end: end,
            version: base.next(),
            merge: None,
        };
        self.queue.units.lock().unwrap().push_back(unit);
    }

    fn assimilator(&self) -> Assimilator<Remembers> {
        let handle = self.runtime.handle().clone();
        Assimilator::new(self.queue.clone(), self.uploads.clone(), self.blobs.clone(), handle)
    }

    fn rejected(&self, fault: Fault) -> String {
        let Step::Done(Outcome::Rejected(reason)) = self.assimilator().step() else {
            panic!("it was not rejected")
        };
        assert_eq!(self.offers.try_recv().unwrap(), Err((fault, reason.clone())));
        assert!(self.runtime.block_on(self.blobs.list()).unwrap().is_empty());
        reason
    }
}

#[test]
fn a_right_upload_becomes_a_blob_and_the_next_version() {
    let world = World::new();
    let first = hop(Base::Initial { seed: 3 });
    let blob = world.upload(&first, &checkpoint(&first, 3, 4));
    assert_eq!(world.assimilator().step(), Step::Done(Outcome::Assimilated));
    assert_eq!(world.assimilator().step(), Step::Nothing);
    assert_eq!(world.offers.try_recv().unwrap(), Ok((LEASE, Version(1), blob)));
    assert_eq!(world.runtime.block_on(world.blobs.list()).unwrap(), [blob]);

    // On a stored base, by a thread that is woken.
    let workers = Workers::start(1, world.assimilator()).unwrap();
    let second = hop(Base::Checkpoint { version: Version(1), blob });
    world.uploads.remove(UploadName::Lease(LEASE)).unwrap();
    let next = world.upload(&second, &checkpoint(&second, 3, 5));
    workers.wake();
    assert_eq!(world.offers.recv().unwrap(), Ok((LEASE, Version(2), next)));
    drop(workers);
}

#[test]
fn a_crash_before_or_after_the_offer_is_harmless() {
    let mut world = World::new();
    let hop = hop(Base::Initial { seed: 3 });
    world.queue.answer = Err(QueueError("gone".to_owned()));
    let blob = world.upload(&hop, &checkpoint(&hop, 3, 4));
    assert_eq!(world.assimilator().step(), Step::Trouble);
    // Published, but the offer got no answer: all of it again.
    world.queue.answer = Ok(Offer::Taken);
    world.unit(&hop, blob);
    assert_eq!(world.assimilator().step(), Step::Done(Outcome::Assimilated));
    // The offer had been taken, and the answer was lost.
    world.queue.answer = Ok(Offer::Stale);
    world.unit(&hop, blob);
    assert_eq!(world.assimilator().step(), Step::Done(Outcome::Stale));
    assert_eq!(world.runtime.block_on(world.blobs.list()).unwrap(), [blob]);
}

#[test]
fn what_is_not_right_is_rejected_with_the_reason_and_not_stored() {
    let first = hop(Base::Initial { seed: 3 });
    let world = World::new();
    world.upload(&first, b"no safetensors at all");
    assert!(world.rejected(Fault::Host).starts_with("the checkpoint can't be read"));

    let world = World::new();
    world.upload(&first, &checkpoint(&first, 2, 4));
    let reason = world.rejected(Fault::Host);
    assert!(reason.contains("is 3, expected 2") || reason.contains("batch"), "{reason}");

    let world = World::new();
    let other = Hop { trial: TrialId(1), ..first.clone() };
    world.upload(&first, &checkpoint(&other, 3, 4));
    assert_eq!(world.rejected(Fault::Host), "a checkpoint of trial 1, expected trial 0");

    let world = World::new();
    let mut bytes = checkpoint(&first, 3, 4);
    let header = 8 + usize::try_from(u64::from_le_bytes(bytes[..8].try_into().unwrap())).unwrap();
    // The tensors come in name order, so the biases of the first layer do.
    bytes[header..header + 4].copy_from_slice(&f32::NAN.to_le_bytes());
    world.upload(&first, &bytes);
    assert!(world.rejected(Fault::Host).contains("non-finite"));
}

#[test]
fn an_upload_that_was_lost_on_disk_is_the_servers_fault() {
    let world = World::new();
    let hop = hop(Base::Initial { seed: 3 });
    let blob = world.upload(&hop, &checkpoint(&hop, 3, 4));
    let path = world.uploads.complete(UploadName::Lease(LEASE), blob).unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&path, bytes).unwrap();
    assert!(world.rejected(Fault::Server).starts_with("the server lost the upload"));

    world.uploads.remove(UploadName::Lease(LEASE)).unwrap();
    world.unit(&hop, blob);
    assert!(world.rejected(Fault::Server).starts_with("the server lost the upload"));
}

#[test]
fn a_worker_goes_on_after_trouble_without_being_woken() {
    let world = World::new();
    let hop = hop(Base::Initial { seed: 3 });
    let blob = world.upload(&hop, &checkpoint(&hop, 3, 4));
    world.queue.fails.store(2, Ordering::SeqCst);
    let workers = Workers::start(1, world.assimilator()).unwrap();
    assert_eq!(world.offers.recv().unwrap(), Ok((LEASE, Version(1), blob)));
    drop(workers);
}

#[test]
fn a_blob_is_held_until_its_offer_is_answered() {
    let world = World::new();
    let hop = hop(Base::Initial { seed: 3 });
    let blob = world.upload(&hop, &checkpoint(&hop, 3, 4));
    assert_eq!(world.assimilator().step(), Step::Done(Outcome::Assimilated));
    // Whoever wanted to delete that very blob while the offer was made had to wait.
    assert_eq!(*world.queue.held.lock().unwrap(), [true]);
    assert!(!is_held(&world.blobs, blob.sha256));
}

//! Real uploads and blobs, a queue that remembers, and checkpoints of a small trial.

use sojourn_assimilator::{
    Assimilator, Fault, NewVersion, Offer, Outcome, Queue, QueueError, Step, Unit, Work,
};
use sojourn_blobs::{BlobStore, HashedBytes, UploadName, Uploads};
use sojourn_model::{Lineage, initial_checkpoint};
use sojourn_protocol::{
    digest::{BlobRef, Digest},
    ids::{ClaimId, Epoch, JobId, LeaseId, ShardId, TrialId},
    manifest::{Scaling, Shard, Targets},
    position::Position,
    report::{Sums, Trained},
    spec::{Architecture, Loss, Optimizer, OptimizerName, TrainingConfig, TrialConfig},
    time::Millis,
    unit::{Base, Hop, Merge, TrialContext},
};
use std::{
    collections::VecDeque,
    future::Future as _,
    path::PathBuf,
    pin::pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
        mpsc,
    },
    task::{Context, Waker},
};

/// An offer that reached the queue: a version, or a refusal.
pub(crate) type Offered = Result<(LeaseId, NewVersion), (Fault, String)>;

pub(crate) const LEASE: LeaseId = LeaseId(5);

pub(crate) fn is_held(blobs: &BlobStore, blob: Digest) -> bool {
    let mut hold = pin!(blobs.hold(blob));
    hold.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending()
}

#[derive(Clone)]
pub(crate) struct Remembers {
    units: Arc<Mutex<VecDeque<Unit>>>,
    /// So many times taking fails.
    pub(crate) fails: Arc<AtomicU32>,
    blobs: BlobStore,
    /// For each blob that was offered, whether it was held.
    pub(crate) held: Arc<Mutex<Vec<bool>>>,
    /// Blobs that the store was said to have lost.
    pub(crate) lost: Arc<Mutex<Vec<Digest>>>,
    /// Takings that were said to go on.
    pub(crate) renewed: Arc<Mutex<Vec<(LeaseId, ClaimId)>>>,
    offers: mpsc::Sender<Offered>,
    /// How long a unit is whose who took it.
    pub(crate) term: Millis,
    /// The answers to the first offers.
    pub(crate) first_answers: Arc<Mutex<VecDeque<Offer>>>,
    pub(crate) answer: Result<Offer, QueueError>,
}

impl Queue for Remembers {
    fn take(&self, _: bool) -> Result<Option<Work>, QueueError> {
        let fewer = |left: u32| left.checked_sub(1);
        if self.fails.fetch_update(Ordering::SeqCst, Ordering::SeqCst, fewer).is_ok() {
            return Err(QueueError("unavailable".to_owned()));
        }
        let unit = self.units.lock().unwrap().pop_front();
        Ok(unit.map(|unit| Work::Unit(Box::new(unit))))
    }

    fn take_small(&self, max_bytes: u64) -> Result<Option<Box<Unit>>, QueueError> {
        let mut units = self.units.lock().unwrap();
        let small = units.iter().position(|unit| unit.is_small(max_bytes));
        Ok(small.and_then(|at| units.remove(at)).map(Box::new))
    }

    fn renew(&self, lease: LeaseId, claim: ClaimId) -> Result<Offer, QueueError> {
        self.renewed.lock().unwrap().push((lease, claim));
        Ok(Offer::Taken)
    }

    fn assimilated(&self, lease: LeaseId, made: NewVersion) -> Result<Offer, QueueError> {
        let blobs = made.merged.map(|merged| merged.state).into_iter().chain([made.checkpoint]);
        self.held.lock().unwrap().extend(blobs.map(|blob| is_held(&self.blobs, blob.sha256)));
        self.offers.send(Ok((lease, made))).unwrap();
        let first = self.first_answers.lock().unwrap().pop_front();
        first.map_or_else(|| self.answer.clone(), Ok)
    }

    fn lost(&self, _: LeaseId, blob: Digest) -> Result<Offer, QueueError> {
        self.lost.lock().unwrap().push(blob);
        Ok(Offer::Taken)
    }

    fn rejected(&self, _: LeaseId, fault: Fault, reason: &str) -> Result<Offer, QueueError> {
        self.offers.send(Err((fault, reason.to_owned()))).unwrap();
        self.answer.clone()
    }
}

pub(crate) fn context() -> TrialContext {
    let optimizer = Optimizer::new(OptimizerName::Sgd, 0.1);
    let training = TrainingConfig::new(1, 4, Loss::CrossEntropy, optimizer);
    TrialContext {
        config: TrialConfig { model: Architecture::mlp([3]), training },
        columns: Vec::new(),
        shape: vec![2],
        outputs: 2,
        scaling: Scaling::None,
        targets: Targets::Plain,
        total_steps: 3,
        pinned_threads: None,
    }
}

pub(crate) fn hop(base: Base) -> Hop {
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

pub(crate) fn checkpoint(hop: &Hop, batch: u32, seed: u64) -> Vec<u8> {
    let position = hop.position_at(batch);
    let lineage = Lineage { hop_seed: hop.seed, trial: hop.trial, position };
    initial_checkpoint(&hop.context, seed, lineage).unwrap()
}

pub(crate) struct World {
    folder: tempfile::TempDir,
    pub(crate) runtime: tokio::runtime::Runtime,
    pub(crate) uploads: Uploads,
    pub(crate) blobs: BlobStore,
    pub(crate) queue: Remembers,
    pub(crate) offers: mpsc::Receiver<Offered>,
}

impl World {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let uploads = Uploads::open(&folder.path().join("uploads")).unwrap();
        let (sender, offers) = mpsc::channel();
        let blobs = BlobStore::open(&folder.path().join("blobs")).unwrap();
        let queue = Remembers {
            units: Arc::default(),
            fails: Arc::default(),
            blobs: blobs.clone(),
            held: Arc::default(),
            lost: Arc::default(),
            renewed: Arc::default(),
            term: Millis::from_secs(60),
            offers: sender,
            first_answers: Arc::default(),
            answer: Ok(Offer::Taken),
        };
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
        Self { folder, runtime, uploads, blobs, queue, offers }
    }

    /// Uploads `bytes` under the lease and puts their assimilation in the queue.
    pub(crate) fn upload(&self, hop: &Hop, bytes: &[u8], merge: Option<Merge>) -> BlobRef {
        let blob = blob_of(bytes);
        self.uploads.put(UploadName::Lease(LEASE), blob, bytes).unwrap();
        self.unit(hop, blob, merge);
        blob
    }

    pub(crate) fn unit(&self, hop: &Hop, checkpoint: BlobRef, merge: Option<Merge>) {
        let end = hop.position_at(3);
        let sums = Sums::default();
        let base = hop.base.version();
        let trained = Trained { base, checkpoint, end, sums, train_micros: 1 };
        let current = merge.as_ref().map_or(base, |merge| merge.current.version());
        let unit = Unit {
            lease: LEASE,
            claim: ClaimId(8),
            term: self.queue.term,
            hop: hop.clone(),
            trained,
            expected_end: end,
            version: current.next(),
            merge,
        };
        self.queue.units.lock().unwrap().push_back(unit);
    }

    pub(crate) fn assimilator(&self) -> Assimilator<Remembers> {
        let handle = self.runtime.handle().clone();
        Assimilator::new(self.queue.clone(), self.uploads.clone(), self.blobs.clone(), handle)
    }

    /// The reason for which the next unit is rejected.
    pub(crate) fn rejected(&self, fault: Fault) -> String {
        let before = self.stored();
        let Step::Done(Outcome::Rejected(reason)) = self.assimilator().step() else {
            panic!("it was not rejected")
        };
        assert_eq!(self.offers.try_recv().unwrap(), Err((fault, reason.clone())));
        assert_eq!(self.stored(), before);
        reason
    }

    pub(crate) fn publish(&self, bytes: &[u8]) -> BlobRef {
        let named = HashedBytes::of(bytes.to_vec().into());
        let blob = named.blob();
        self.runtime.block_on(self.blobs.publish_bytes(named)).unwrap();
        blob
    }

    pub(crate) fn stored(&self) -> Vec<BlobRef> {
        self.runtime.block_on(self.blobs.list()).unwrap()
    }

    /// Where the bytes of a blob lie.
    pub(crate) fn path(&self, blob: BlobRef) -> PathBuf {
        let name = blob.sha256.to_string();
        self.folder.path().join("blobs/sha256").join(&name[..2]).join(name)
    }
}

pub(crate) fn blob_of(bytes: &[u8]) -> BlobRef {
    BlobRef { sha256: Digest::of(bytes), bytes: bytes.len() as u64 }
}

/// A checkpoint whose first number is another one: the tensors come in name order, so it is a bias of the first layer.
pub(crate) fn with_first(mut checkpoint: Vec<u8>, number: f32) -> Vec<u8> {
    let header = u64::from_le_bytes(checkpoint[..8].try_into().unwrap());
    let at = 8 + usize::try_from(header).unwrap();
    checkpoint[at..at + 4].copy_from_slice(&number.to_le_bytes());
    checkpoint
}

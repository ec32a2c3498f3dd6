//! Small units with their files, for tests.

use crate::{data::Shards, error::TrainError, hop::run_hop};
use parking_lot::Mutex;
use sojourn_codec::{Tensor, encode};
use sojourn_protocol::{
    digest::{BlobRef, Digest},
    ids::{Epoch, JobId, ShardId, TrialId, Version},
    manifest::{Scaling, Shard, Targets},
    position::Position,
    report::Trained,
    seeds,
    spec::{
        Architecture, Augment, Cnn, Loss, Mlp, Optimizer, OptimizerName, Pool, Precision, Ratio,
        Resnet, Schedule, ScheduleName, TrainingConfig, TrialConfig,
    },
    trainer::RunUnit,
    unit::{Base, Hop, TrialContext, Unit},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    ops::ControlFlow,
    path::PathBuf,
    time::Duration,
};

/// libtorch has one random number generator in a process. A trainer runs one unit at a time; tests, which run in
/// parallel, hold this lock while they train.
pub(crate) static TORCH_RNG: Mutex<()> = Mutex::new(());

/// Rows of the shard: its last batch of 8 is a part of one.
pub(crate) const ROWS: u32 = 61;

/// A trial on rows of shape `[1, 4, 4]` with three classes, by Adam.
pub(crate) fn context(model: Architecture) -> TrialContext {
    let optimizer = Optimizer::new(OptimizerName::Adam, 0.01);
    let schedule =
        Schedule { name: ScheduleName::Cosine, warmup: 3, every: 1, gamma: 1.0, floor: 0.1 };
    let training = TrainingConfig {
        schedule,
        clip_norm: Some(5.0),
        ..TrainingConfig::new(2, 8, Loss::CrossEntropy, optimizer)
    };
    TrialContext {
        config: TrialConfig { model, training },
        columns: Vec::new(),
        shape: vec![1, 4, 4],
        outputs: 3,
        scaling: Scaling::None,
        targets: Targets::Plain,
        total_steps: 16,
        pinned_threads: None,
    }
}

pub(crate) fn mlp() -> Architecture {
    Architecture::mlp([12, 7])
}

pub(crate) fn cnn() -> Architecture {
    Architecture::cnn([3, 5])
}

/// Everything that an `mlp` and a `cnn` may have, and a `resnet`.
pub(crate) fn deep(dropout: Ratio) -> [Architecture; 3] {
    let vgg = Cnn {
        pool: Pool::Average,
        pool_every: 2,
        hidden: vec![6],
        batch_norm: true,
        dropout,
        ..Cnn::new([3, 5])
    };
    [
        Architecture::Mlp(Mlp { hidden: vec![12, 7], batch_norm: true, dropout }),
        Architecture::Cnn(vgg),
        Architecture::Resnet(Resnet { depth: 11, width: 2 }),
    ]
}

pub(crate) fn contexts() -> Vec<TrialContext> {
    let mut contexts: Vec<TrialContext> = deep(Ratio(0.25)).map(context).into();
    let mut images = contexts.clone();
    for context in &mut images {
        context.config.training.augment = Some(Augment { crop: 2, flip: true });
        context.config.training.precision = Precision::Bf16;
    }
    contexts.append(&mut images);
    for model in [mlp(), cnn()] {
        for (name, momentum) in [
            (OptimizerName::Sgd, 0.0),
            (OptimizerName::Sgd, 0.9),
            (OptimizerName::Adam, 0.0),
            (OptimizerName::Adamw, 0.0),
        ] {
            let mut context = context(model.clone());
            context.config.training.optimizer.name = name;
            context.config.training.optimizer.momentum = momentum;
            context.config.training.optimizer.weight_decay = 0.01;
            contexts.push(context);
        }
    }
    contexts
}

/// A folder with a shard that can be learnt: the class is the third of the range that the mean of a
/// row lies in.
pub(crate) struct World {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) files: BTreeMap<Digest, PathBuf>,
    pub(crate) shard: Shard,
}

impl World {
    pub(crate) fn new() -> Self {
        // Of this test's own thread: so small tensors are no work for several.
        tch::set_num_threads(1);
        let mut rng = seeds::stream("fixture", &[1]);
        let (mut x, mut classes) = (Vec::new(), Vec::new());
        for _ in 0..ROWS {
            let class = seeds::below(&mut rng, 3);
            classes.push(i64::from(class));
            let middle = f64::from(class) - 1.0;
            #[expect(clippy::cast_possible_truncation, reason = "features are single precision")]
            x.extend((0..16).map(|_| (middle + seeds::unit_f64(&mut rng) - 0.5) as f32));
        }
        let rows = u64::from(ROWS);
        let x = Tensor::f32("x", [rows, 16], &x);
        let file = encode(&[x, Tensor::i64("y", [rows], &classes)]).unwrap();
        let mut world = Self {
            folder: tempfile::tempdir().unwrap(),
            files: BTreeMap::new(),
            shard: Shard { blob: BlobRef { sha256: Digest::of(b""), bytes: 0 }, rows: ROWS },
        };
        world.shard.blob = world.put(&file);
        world
    }

    /// Puts a blob among the files.
    pub(crate) fn put(&mut self, bytes: &[u8]) -> BlobRef {
        let blob = BlobRef { sha256: Digest::of(bytes), bytes: bytes.len() as u64 };
        let path = self.folder.path().join(blob.sha256.to_string());
        fs::write(&path, bytes).unwrap();
        self.files.insert(blob.sha256, path);
        blob
    }

    /// The first hop of trial 2.
    pub(crate) fn hop(&self, context: TrialContext) -> Hop {
        Hop {
            job: JobId(1),
            trial: TrialId(2),
            base: Base::Initial { seed: 5 },
            start: Position { epoch: Epoch(0), shard: ShardId(0), batch: 0, step: 0 },
            shard: self.shard,
            seed: 77,
            context: context.into(),
            then: Vec::new(),
            until: None,
        }
    }

    pub(crate) fn request(&self, unit: Unit) -> RunUnit {
        let output = self.folder.path().join("output");
        let (files, pending) = (self.files.clone(), BTreeSet::new());
        RunUnit { unit, files, pending, output, until: None, keep_every: None }
    }

    /// Trains a hop up to `until`; gives the report and the checkpoint's bytes.
    pub(crate) fn train(&self, hop: &Hop, until: u32) -> Result<(Trained, Vec<u8>), TrainError> {
        let request = self.request(Unit::Train(hop.clone()));
        let _alone = TORCH_RNG.lock();
        let trained =
            run_hop(hop, until, &request, &mut Shards::on(tch::Device::Cpu), &mut |_| {
                ControlFlow::Continue(Duration::ZERO)
            })?;
        Ok((trained, fs::read(&request.output).unwrap()))
    }

    /// The hop that goes on where a checkpoint of it ends.
    pub(crate) fn rest(&mut self, hop: &Hop, trained: &Trained, checkpoint: &[u8]) -> Hop {
        let blob = self.put(checkpoint);
        let base = Base::Checkpoint { version: Version(1), blob };
        Hop { base, start: trained.end, ..hop.clone() }
    }
}

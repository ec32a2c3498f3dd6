//! A few batches of one trial, in trainers of this machine: whole, and cut in two processes.

use super::data::{BATCHES, CheckData};
use crate::{
    cli::terminal::{causes::slot_failure, exit::Failure},
    exporter::{Made, Values},
};
use sojourn_codec::decode;
use sojourn_protocol::{
    digest::Digest,
    error::error_chain,
    ids::{Epoch, JobId, ShardId, TrialId, Version},
    manifest::{Labels, Targets},
    position::Position,
    report::{Outcome, Trained as Reported},
    seeds,
    spec::{Architecture, Graph, Loss, Optimizer, OptimizerName, TrainingConfig, TrialConfig},
    trainer::{CLASS_THREADS, RunUnit, TrainerUpdate},
    unit::{Base, Hop, TrialContext, Unit},
};
use sojourn_slot::{Slot, SlotConfig, full_pace};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    future::pending,
    path::{Path, PathBuf},
    sync::Arc,
};

/// Batches before the cut.
pub(super) const CUT: u32 = 4;
const SEED: u64 = 7;
const TRIAL: TrialId = TrialId(0);

/// A trial of the model.
pub(super) struct Trial {
    context: Arc<TrialContext>,
    hop: Hop,
    files: BTreeMap<Digest, PathBuf>,
}

/// The results of the trial's training.
pub(super) struct Trained {
    pub(super) batches: u32,
    pub(super) seconds_per_batch: f64,
    pub(super) loss: f64,
    pub(super) checkpoint_bytes: u64,
    pub(super) peak_memory: Option<u64>,
    /// The first tensor that differs where the training is cut.
    pub(super) differs: Option<String>,
}

impl Trial {
    pub(super) fn new(entry: &str, values: &Values, made: &Made, data: &CheckData) -> Self {
        let loss = match data.labels {
            Labels::Classes(_) => Loss::CrossEntropy,
            Labels::Number => Loss::Mse,
            Labels::None => Loss::Own,
        };
        let optimizer = Optimizer::new(OptimizerName::Adam, 1e-3);
        let graph = Graph {
            entry: entry.to_owned(),
            values: values.clone(),
            exported: Some(made.graph.clone()),
        };
        let training = TrainingConfig::new(1, data.batch_size, loss, optimizer);
        let context = Arc::new(TrialContext {
            config: TrialConfig { model: Architecture::Graph(graph), training },
            columns: data.columns.clone(),
            shape: data.shape.clone(),
            outputs: data.labels.outputs(),
            scaling: data.scaling,
            targets: Targets::Plain,
            total_steps: u64::from(BATCHES),
            pinned_threads: Some(CLASS_THREADS),
        });
        let shard = ShardId(0);
        let hop = Hop {
            job: JobId(1),
            trial: TRIAL,
            base: Base::first(seeds::initial_weights(SEED, TRIAL), None),
            start: Position { epoch: Epoch(0), shard, batch: 0, step: 0 },
            shard: data.shard,
            seed: seeds::hop(SEED, TRIAL, Epoch(0), shard),
            context: Arc::clone(&context),
            then: Vec::new(),
            until: None,
        };
        let mut files = data.files.clone();
        files.insert(made.graph.file.sha256, made.file.clone());
        Self { context, hop, files }
    }

    /// Trains it, with checkpoints in the folder.
    pub(super) async fn train(&self, folder: &Path) -> Result<Trained, Failure> {
        let batches = self.hop.batches().min(BATCHES);
        let whole_file = folder.join("whole");
        let (whole, peak_memory) = self.run(self.hop.clone(), batches, &whole_file).await?;
        let mut differs = None;
        if batches > CUT {
            let first_file = folder.join("first");
            let (first, _) = self.run(self.hop.clone(), CUT, &first_file).await?;
            let base = Base::Checkpoint { version: Version(1), blob: first.checkpoint };
            let rest = Hop { base, start: first.end, ..self.hop.clone() };
            let mut later = Self {
                hop: rest.clone(),
                files: self.files.clone(),
                context: Arc::clone(&self.context),
            };
            later.files.insert(first.checkpoint.sha256, first_file);
            let cut_file = folder.join("cut");
            let (cut, _) = later.run(rest, batches, &cut_file).await?;
            if cut.checkpoint != whole.checkpoint {
                differs = Some(first_difference(&whole_file, &cut_file)?);
            }
        }
        #[expect(clippy::cast_precision_loss, reason = "far below 2^53")]
        let seconds = whole.train_micros as f64 / 1e6;
        Ok(Trained {
            batches,
            seconds_per_batch: seconds / f64::from(batches.max(1)),
            loss: whole.sums.mean_loss(),
            checkpoint_bytes: whole.checkpoint.bytes,
            peak_memory,
            differs,
        })
    }

    /// Trains a hop up to a batch, in a process of its own; and the most memory that it took.
    async fn run(
        &self,
        hop: Hop,
        until: u32,
        output: &Path,
    ) -> Result<(Reported, Option<u64>), Failure> {
        let mut slot = Slot::new(SlotConfig::find().map_err(slot_failure)?);
        let unit = RunUnit {
            unit: Unit::Train(hop),
            files: self.files.clone(),
            pending: BTreeSet::new(),
            output: output.to_owned(),
            until: Some(until),
            keep_every: None,
        };
        let mut peak = None;
        let told = |update: TrainerUpdate| {
            if let TrainerUpdate::PeakMemory(bytes) = update {
                peak = Some(bytes);
            }
        };
        match slot.run(unit, told, pending(), full_pace()).await.map_err(slot_failure)? {
            Outcome::Trained(trained) => Ok((trained, peak)),
            Outcome::Failed(failure) => {
                Err(Failure::work(format!("it can't be trained: {}", failure.message)))
            }
            Outcome::Evaluated(_) => {
                Err(Failure::work("the trainer evaluated instead of training"))
            }
        }
    }
}

/// The first tensor, in name order, of which two checkpoints have other bytes.
fn first_difference(one: &Path, other: &Path) -> Result<String, Failure> {
    let read = |path: &Path| {
        fs::read(path)
            .map_err(|error| Failure::work(format!("can't read `{}`: {error}", path.display())))
    };
    let (one, other) = (read(one)?, read(other)?);
    let bad = |error| Failure::work(error_chain(&error));
    let (one, other) = (decode(&one).map_err(bad)?, decode(&other).map_err(bad)?);
    let mut pairs = one.iter().zip(&other);
    let differs = pairs.find(|(one, other)| one != other);
    Ok(differs.map_or_else(|| "its layout".to_owned(), |(one, _)| one.name.clone()))
}

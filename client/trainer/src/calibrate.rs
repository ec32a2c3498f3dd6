//! The calibration training: what this machine's arithmetic makes of fixed numbers.
//!
//! Two small models train a few batches on numbers from a fixed seed; the digest of both final
//! checkpoints is the machine's numeric class (docs/internals/determinism.md). They are just large enough for the
//! kernels and the splits among threads that real models meet. A change here makes every class new.

use crate::{data::Dataset, device::finish, error::TrainError, model::Model, train::train};
use sojourn_codec::{Tensor, encode};
use sojourn_model::{Lineage, flops_per_row, initial_checkpoint};
use sojourn_protocol::{
    digest::{BlobRef, Digest, Hasher},
    ids::{Epoch, JobId, ShardId, TrialId},
    manifest::{Scaling, Shard, Targets},
    position::Position,
    seeds,
    spec::{Architecture, Loss, Optimizer, OptimizerName, TrainingConfig, TrialConfig},
    unit::{Base, Hop, TrialContext},
};
use std::{collections::BTreeMap, ops::ControlFlow, time::Instant};
use tch::Device;

/// The result of the calibration.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Calibration {
    /// Equal digests, bit-identical arithmetic.
    pub(crate) numeric_class: Digest,
    /// Floating-point operations per second of a fully connected model.
    pub(crate) flops: f64,
}

const CLASSES: u32 = 10;
const SEED: u64 = 1;

/// A model that trains on random rows.
#[derive(Debug)]
struct Training<'a> {
    model: Architecture,
    optimizer: Optimizer,
    /// Of a row.
    shape: &'a [u32],
    batch_size: u32,
    batches: u32,
}

/// Trains both models on the device.
pub(crate) fn calibrate(device: Device) -> Result<Calibration, TrainError> {
    let adam = optimizer(OptimizerName::Adam, 1e-3, 0.0);
    let sgd = optimizer(OptimizerName::Sgd, 0.05, 0.9);
    let cnn = Architecture::cnn([8, 16]);
    let cnn =
        Training { model: cnn, optimizer: sgd, shape: &[1, 16, 16], batch_size: 32, batches: 3 };
    let mlp = Architecture::mlp([256, 128]);
    let mlp = Training { model: mlp, optimizer: adam, shape: &[256], batch_size: 32, batches: 24 };
    // The first training pays for libtorch's start; its bytes count, its time doesn't.
    let (convolved, _) = run(&cnn, device)?;
    let (connected, mut flops) = run(&mlp, device)?;
    let mut hasher = Hasher::default();
    hasher.update(&convolved.0);
    hasher.update(&connected.0);
    if device.is_cuda() {
        // With a small model a GPU waits for its driver most of the time.
        let model = Architecture::mlp([1024, 1024]);
        let wide = Training { model, batch_size: 256, batches: 12, ..mlp };
        (_, flops) = run(&wide, device)?;
    }
    Ok(Calibration { numeric_class: hasher.finish(), flops })
}

/// The digest of the checkpoint after one hop, and the operations per second.
fn run(training: &Training<'_>, device: Device) -> Result<(Digest, f64), TrainError> {
    let rows = training.batch_size * training.batches;
    let shard = shard(training.shape.iter().product(), rows)?;
    let data = Dataset::of_rows(&shard, &Scaling::None, &BTreeMap::new(), device)?;
    let hop = hop(training, rows);
    let checkpoint = initial_checkpoint(&hop.context, SEED, Lineage::initial(SEED))?;
    let mut model = Model::load(&hop.context, &checkpoint, None, device)?;
    finish(device);
    let started = Instant::now();
    let (way, all) = (hop.first(), hop.batches());
    train(&hop.context, &way, all, &mut model, &data, &mut |_| Ok(ControlFlow::Continue(())))?;
    finish(device);
    let seconds = started.elapsed().as_secs_f64().max(1e-6);
    let position = hop.position_at(hop.batches());
    let lineage = Lineage { hop_seed: hop.seed, trial: hop.trial, position };
    let per_row = flops_per_row(&training.model, training.shape, CLASSES)?;
    #[expect(clippy::cast_precision_loss, reason = "a row's operations are far below 2^53")]
    let per_row = per_row as f64;
    // Forward and backward passes take about three times the forward pass's operations.
    let flops = 3.0 * per_row * f64::from(rows) / seconds;
    Ok((model.digest(&lineage)?.sha256, flops))
}

fn optimizer(name: OptimizerName, lr: f64, momentum: f64) -> Optimizer {
    Optimizer { momentum, weight_decay: 1e-4, ..Optimizer::new(name, lr) }
}

fn shard(features: u32, rows: u32) -> Result<Vec<u8>, TrainError> {
    let mut rng = seeds::stream("calibration", &[u64::from(features)]);
    let count = u64::from(features) * u64::from(rows);
    #[expect(clippy::cast_possible_truncation, reason = "rounding to single precision")]
    let x: Vec<f32> = (0..count).map(|_| (seeds::unit_f64(&mut rng) * 2.0 - 1.0) as f32).collect();
    let y: Vec<i64> = (0..rows).map(|_| i64::from(seeds::below(&mut rng, CLASSES))).collect();
    let (rows, features) = (u64::from(rows), u64::from(features));
    encode(&[Tensor::f32("x", [rows, features], &x), Tensor::i64("y", [rows], &y)])
        .map_err(|source| TrainError::Blob { what: "calibration", source })
}

fn hop(training: &Training<'_>, rows: u32) -> Hop {
    let Training { model, optimizer, shape, batch_size, .. } = training;
    let config = TrainingConfig {
        clip_norm: Some(1.0),
        ..TrainingConfig::new(1, *batch_size, Loss::CrossEntropy, *optimizer)
    };
    let context = TrialContext {
        config: TrialConfig { model: model.clone(), training: config },
        columns: Vec::new(),
        shape: shape.to_vec(),
        outputs: CLASSES,
        scaling: Scaling::None,
        targets: Targets::Plain,
        total_steps: 100,
        pinned_threads: None,
    };
    Hop {
        job: JobId(0),
        trial: TrialId(0),
        base: Base::Initial { seed: SEED },
        start: Position { epoch: Epoch(0), shard: ShardId(0), batch: 0, step: 0 },
        shard: Shard { blob: BlobRef { sha256: Digest([0; 32]), bytes: 0 }, rows },
        seed: SEED,
        context: context.into(),
        then: Vec::new(),
        until: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::TORCH_RNG;

    #[test]
    fn the_same_arithmetic_gives_the_same_class() {
        let _alone = TORCH_RNG.lock();
        let (one, two) = (calibrate(Device::Cpu).unwrap(), calibrate(Device::Cpu).unwrap());
        assert_eq!(one.numeric_class, two.numeric_class);
        assert!(one.flops > 0.0 && one.flops.is_finite());
    }
}

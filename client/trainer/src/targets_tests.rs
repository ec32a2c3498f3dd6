//! Scaled labels: trained on, evaluated and predicted in their own units.

use super::*;
use crate::{
    data::Shards,
    fixture::{TORCH_RNG, World, context},
    predict::{LastModel, predict},
    unit,
};
use sojourn_codec::{Tensor as Plain, decode, encode};
use sojourn_model::{Lineage, weights_checkpoint};
use sojourn_protocol::{
    digest::BlobRef,
    ids::{Epoch, JobId, TrialId, Version},
    manifest::{DataSplit, Shard, Targets},
    metrics::Counting,
    report::Sums,
    spec::{Architecture, Loss, Optimizer, OptimizerName, TrainingConfig},
    trainer::{Predict, TrainerLine},
    unit::{Base, Evaluation, TrialContext, Unit},
};
use std::{fs, ops::ControlFlow, time::Duration};
use tch::Device;

const SCALING: LabelScaling = LabelScaling { mean: 152.0, std: 77.0 };

/// One step of plain descent over four rows, for a line through the origin.
fn line(targets: Targets) -> TrialContext {
    let mut context = context(Architecture::mlp([]));
    let optimizer = Optimizer::new(OptimizerName::Sgd, 0.25);
    context.config.training = TrainingConfig::new(1, 4, Loss::Mse, optimizer);
    (context.shape, context.outputs, context.targets) = (vec![1], 1, targets);
    context
}

/// A shard of one feature.
fn shard(world: &mut World, x: &[f32], y: &[f32]) -> Shard {
    let rows = u32::try_from(x.len()).unwrap();
    let x = Plain::f32("x", [u64::from(rows), 1], x);
    let file = encode(&[x, Plain::f32("y", [u64::from(rows)], y)]).unwrap();
    Shard { blob: world.put(&file), rows }
}

/// A line's parameters, and the same as a checkpoint of trial 2.
fn parameters(
    world: &mut World,
    context: &TrialContext,
    (weight, bias): (f32, f32),
) -> (BlobRef, BlobRef) {
    let tensors = [
        Plain::f32("layers.0.weight", [1u64, 1], &[weight]),
        Plain::f32("layers.0.bias", [1u64], &[bias]),
    ];
    let parameters = encode(&tensors).unwrap();
    let lineage = Lineage { trial: TrialId(2), ..Lineage::initial(5) };
    let checkpoint = weights_checkpoint(context, &parameters, lineage).unwrap();
    (world.put(&parameters), world.put(&checkpoint))
}

/// Trains one epoch from weight and bias 0: the sums, and both after it.
fn trained(world: &mut World, context: &TrialContext) -> (Sums, f32, f32) {
    let (zeros, _) = parameters(world, context, (0.0, 0.0));
    let mut hop = world.hop(context.clone());
    hop.base = Base::InitialWeights { seed: 5, parameters: zeros };
    let (trained, bytes) = world.train(&hop, hop.batches()).unwrap();
    let tensors = decode(&bytes).unwrap();
    let value = |name: &str| {
        let tensor = tensors.iter().find(|tensor| tensor.name == name).unwrap();
        tensor.f32s().unwrap().next().unwrap()
    };
    (trained.sums, value("layers.0.weight"), value("layers.0.bias"))
}

#[test]
fn a_step_is_that_of_scaled_labels_and_its_loss_is_in_their_units() {
    let mut world = World::new();
    // Scaled: -1, -1, 1, 3.
    let labels = [75.0, 75.0, 229.0, 383.0];
    world.shard = shard(&mut world, &[-1.0, 0.0, 1.0, 2.0], &labels);
    let (sums, weight, bias) = trained(&mut world, &line(Targets::Standard(SCALING)));
    // Slope of the mean of squares: -2 * mean(x * y) = -2 * (1 + 0 + 1 + 6) / 4; of the bias -2 * mean(y).
    assert_eq!((weight, bias), (0.25 * 4.0, 0.25 * 1.0));
    // Before the step all outputs are 0, the mean: (77^2 + 77^2 + 77^2 + 231^2).
    assert_eq!((sums.rows, sums.loss), (4, 12.0 * 77.0 * 77.0));
    // Labels that were scaled before give the same model.
    world.shard = shard(&mut world, &[-1.0, 0.0, 1.0, 2.0], &[-1.0, -1.0, 1.0, 3.0]);
    let (plain, same_weight, same_bias) = trained(&mut world, &line(Targets::Plain));
    assert_eq!((same_weight, same_bias, plain.loss), (weight, bias, 12.0));
}

#[test]
fn evaluations_and_predictions_are_in_the_units_of_the_labels() {
    let mut world = World::new();
    let context = line(Targets::Standard(SCALING));
    // Predictions: 152 + 77 * (x / 2 + 1).
    let (_, checkpoint) = parameters(&mut world, &context, (0.5, 1.0));
    let shard = shard(&mut world, &[-2.0, 0.0, 2.0], &[150.0, 230.0, 306.0]);
    let evaluation = Evaluation {
        job: JobId(1),
        trial: TrialId(2),
        epoch: Epoch(0),
        version: Version(1),
        checkpoint,
        shards: vec![shard],
        split: DataSplit::Valid,
        counting: Counting::default(),
        context: context.clone().into(),
    };
    let request = world.request(Unit::Evaluate(evaluation));
    let _alone = TORCH_RNG.lock();
    let go_on = &mut |_| ControlFlow::Continue(Duration::ZERO);
    let answer = unit::run(&request, &mut Shards::on(Device::Cpu), go_on).unwrap();
    let TrainerLine::Evaluated(evaluated) = answer else { panic!("{answer:?}") };
    // 152 against 150, 229 against 230, 306 against 306.
    assert_eq!((evaluated.sums().rows, evaluated.sums().loss), (3, 5.0));

    let rows = world.folder.path().join("rows");
    let output = world.folder.path().join("outputs");
    fs::write(&rows, encode(&[Plain::f32("x", [3u64, 1], &[-2.0, 0.0, 2.0])]).unwrap()).unwrap();
    let (files, checkpoint) = (world.files.clone(), checkpoint.sha256);
    let request = Predict { context, checkpoint, files, rows, output };
    predict(&request, &mut LastModel::default(), Device::Cpu).unwrap();
    let file = fs::read(&request.output).unwrap();
    let outputs: Vec<f32> = decode(&file).unwrap()[0].f32s().unwrap().collect();
    assert_eq!(outputs, [152.0, 229.0, 306.0]);
}

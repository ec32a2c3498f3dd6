//! Scaled labels, trained on, evaluated and predicted in their own units; weights and smoothing of
//! classes, and balanced sampling.

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
    seeds,
    spec::{Architecture, Graph, Loss, Optimizer, OptimizerName, Sampling, TrainingConfig},
    trainer::{Predict, TrainerLine},
    unit::{Base, Evaluation, TrialContext, Unit},
};
use std::{collections::BTreeMap, fs, ops::ControlFlow, time::Duration};
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

/// Two rows of class 0 and one of class 1, of one feature, in one batch.
fn classes(world: &mut World, targets: Targets) -> TrialContext {
    let x = Plain::f32("x", [3u64, 1], &[1.0, 1.0, -1.0]);
    let file = encode(&[x, Plain::i64("y", [3u64], &[0, 0, 1])]).unwrap();
    world.shard = Shard { blob: world.put(&file), rows: 3 };
    let mut context = context(Architecture::mlp([]));
    let optimizer = Optimizer::new(OptimizerName::Sgd, 1.0);
    context.config.training = TrainingConfig::new(1, 4, Loss::CrossEntropy, optimizer);
    (context.shape, context.outputs, context.targets) = (vec![1], 2, targets);
    context
}

/// Trains one epoch from zeros: the loss of training, and the biases after it.
fn biases(world: &mut World, context: &TrialContext) -> (f64, Vec<f32>) {
    let zeros = [
        Plain::f32("layers.0.weight", [2u64, 1], &[0.0, 0.0]),
        Plain::f32("layers.0.bias", [2u64], &[0.0, 0.0]),
    ];
    let parameters = world.put(&encode(&zeros).unwrap());
    let mut hop = world.hop(context.clone());
    hop.base = Base::InitialWeights { seed: 5, parameters };
    let (trained, bytes) = world.train(&hop, hop.batches()).unwrap();
    let tensors = decode(&bytes).unwrap();
    let bias = tensors.iter().find(|tensor| tensor.name == "layers.0.bias").unwrap();
    (trained.sums.mean_loss(), bias.f32s().unwrap().collect())
}

#[test]
fn rows_count_by_the_weight_of_their_class_in_training_alone() {
    let near = |is: &[f32], wanted: [f32; 2]| {
        assert!(is.iter().zip(wanted).all(|(is, wanted)| (is - wanted).abs() < 1e-6), "{is:?}");
    };
    let mut world = World::new();
    // All outputs are 0, so each row's gradient of the biases is +-1/2: their mean is (-1/2 - 1/2 + 1/2) / 3.
    let plain = classes(&mut world, Targets::Plain);
    near(&biases(&mut world, &plain).1, [1.0 / 6.0, -1.0 / 6.0]);
    // (1 * (-1/2) * 2 + 6 * 1/2) / (1 + 1 + 6), as PyTorch's `CrossEntropyLoss(weight=...)` has it.
    let weighted = classes(&mut world, Targets::Weighted(vec![1.0, 6.0]));
    let (loss, bias) = biases(&mut world, &weighted);
    near(&bias, [-0.25, 0.25]);
    assert!((loss - 2f64.ln()).abs() < 1e-6, "{loss}");
    // Only proportions count.
    let tenfold = classes(&mut world, Targets::Weighted(vec![10.0, 60.0]));
    near(&biases(&mut world, &tenfold).1, [-0.25, 0.25]);
    let few = classes(&mut world, Targets::Weighted(vec![1.0]));
    let mut hop = world.hop(few);
    hop.base = Base::Initial { seed: 5 };
    let refused = world.train(&hop, 1).unwrap_err().to_string();
    assert_eq!(refused, "1 class weights for a model with 2 outputs");

    evaluates_to_the_plain_loss(&mut world, &weighted);
}

/// Checks that an evaluation of outputs 0 and 1 counts all rows alike, each by its class alone.
fn evaluates_to_the_plain_loss(world: &mut World, context: &TrialContext) {
    let parameters = [
        Plain::f32("layers.0.weight", [2u64, 1], &[0.0, 0.0]),
        Plain::f32("layers.0.bias", [2u64], &[0.0, 1.0]),
    ];
    let lineage = Lineage { trial: TrialId(2), ..Lineage::initial(5) };
    let parameters = encode(&parameters).unwrap();
    let checkpoint = weights_checkpoint(context, &parameters, lineage).unwrap();
    let evaluation = Evaluation {
        job: JobId(1),
        trial: TrialId(2),
        epoch: Epoch(0),
        version: Version(1),
        checkpoint: world.put(&checkpoint),
        shards: vec![world.shard],
        split: DataSplit::Valid,
        counting: Counting::default(),
        context: context.clone().into(),
    };
    let request = world.request(Unit::Evaluate(evaluation));
    let _alone = TORCH_RNG.lock();
    let go_on = &mut |_| ControlFlow::Continue(Duration::ZERO);
    let answer = unit::run(&request, &mut Shards::on(Device::Cpu), go_on).unwrap();
    let TrainerLine::Evaluated(evaluated) = answer else { panic!("{answer:?}") };
    let of_zero = (1.0 + 1f64.exp()).ln();
    let wanted = 2.0 * of_zero + (of_zero - 1.0);
    assert!((evaluated.sums().loss - wanted).abs() < 1e-5, "{evaluated:?}");
}

#[test]
fn labels_are_smoothed_in_training_alone() {
    let mut world = World::new();
    let mut smooth = |targets: Targets, label_smoothing: f64| {
        let mut context = classes(&mut world, targets);
        context.config.training.label_smoothing = label_smoothing;
        evaluates_to_the_plain_loss(&mut world, &context);
        biases(&mut world, &context)
    };
    let near = |is: &[f32], wanted: f32| {
        assert!(is.iter().zip([wanted, -wanted]).all(|(is, to)| (is - to).abs() < 1e-6), "{is:?}");
    };
    // Targets are 3/4 and 1/4, so each row's gradient of the biases is +-1/4: their mean is (-1/4 - 1/4 + 1/4) / 3.
    let (loss, bias) = smooth(Targets::Plain, 0.5);
    near(&bias, 1.0 / 12.0);
    assert!((loss - 2f64.ln()).abs() < 1e-6, "{loss}");
    // Half of the weighted gradient 1/4; and over both classes 1/4 of (7/2 - 1) * 3 rows / (1 + 1 + 6).
    near(&smooth(Targets::Weighted(vec![1.0, 6.0]), 0.5).1, -(0.125 + 0.25 * 7.5 / 8.0));
    let none = smooth(Targets::Plain, 0.0);
    near(&none.1, 1.0 / 6.0);
}

#[test]
fn smoothed_training_counts_the_smoothed_loss_and_is_cut_anywhere() {
    let mut world = World::new();
    let mut context = context(Architecture::mlp([6]));
    let plain = world.hop(context.clone());
    context.config.training.label_smoothing = 0.3;
    let hop = world.hop(context);
    let (whole, bytes) = world.train(&hop, hop.batches()).unwrap();
    let (unsmoothed, _) = world.train(&plain, plain.batches()).unwrap();
    assert_ne!(whole.checkpoint, unsmoothed.checkpoint);
    assert!(whole.sums.loss > unsmoothed.sums.loss, "{:?} {:?}", whole.sums, unsmoothed.sums);
    let (first, part) = world.train(&hop, 3).unwrap();
    let rest = world.rest(&hop, &first, &part);
    assert_eq!(world.train(&rest, hop.batches()).unwrap().1, bytes);
}

#[test]
fn smoothing_that_has_no_meaning_is_refused() {
    let world = World::new();
    let refused = |context: TrialContext| {
        let hop = world.hop(context);
        world.train(&hop, 1).unwrap_err().to_string()
    };
    let mut wrong = context(Architecture::mlp([]));
    wrong.config.training.label_smoothing = 1.0;
    assert_eq!(refused(wrong), "`label_smoothing` can't be 1");
    let (entry, values) = ("model.py:Model".to_owned(), BTreeMap::new());
    let mut graph = context(Architecture::Graph(Graph { entry, values, exported: None }));
    graph.config.training.label_smoothing = 0.1;
    assert_eq!(
        label_smoothing(&graph).unwrap_err().to_string(),
        "`label_smoothing` is none of a graph's, whose loss is its own"
    );
    let mut numbers = line(Targets::Plain);
    numbers.config.training.label_smoothing = 0.1;
    assert_eq!(
        label_smoothing(&numbers).unwrap_err().to_string(),
        "`label_smoothing` takes classes"
    );
}

#[test]
fn balanced_sampling_trains_on_as_many_rows_and_is_cut_anywhere() {
    let mut world = World::new();
    let mut context = context(Architecture::mlp([6]));
    let plain = world.hop(context.clone());
    context.config.training.sampling = Sampling::Balanced;
    let hop = world.hop(context.clone());
    let (whole, bytes) = world.train(&hop, hop.batches()).unwrap();
    let (shuffled, _) = world.train(&plain, plain.batches()).unwrap();
    assert_eq!((whole.sums.rows, whole.end), (shuffled.sums.rows, shuffled.end));
    assert_ne!(whole.checkpoint, shuffled.checkpoint);
    let (first, part) = world.train(&hop, 3).unwrap();
    let rest = world.rest(&hop, &first, &part);
    assert_eq!(world.train(&rest, hop.batches()).unwrap().1, bytes);
    // A shard of the rows that are drawn, in an order that the shuffle brings back, trains to the same bytes.
    let file = fs::read(&world.files[&world.shard.blob.sha256]).unwrap();
    let tensors = decode(&file).unwrap();
    let x: Vec<f32> = tensors[0].f32s().unwrap().collect();
    let y: Vec<i64> = tensors[1].i64s().unwrap().collect();
    let drawn = seeds::balanced_rows(hop.seed, &y);
    let order = seeds::row_order(hop.seed, world.shard.rows);
    let mut rows = vec![0usize; drawn.len()];
    for (drawn, place) in drawn.iter().zip(&order) {
        rows[*place as usize] = *drawn as usize;
    }
    let x: Vec<f32> = rows.iter().flat_map(|row| x[row * 16..(row + 1) * 16].to_vec()).collect();
    let y: Vec<i64> = rows.iter().map(|row| y[*row]).collect();
    let count = u64::from(world.shard.rows);
    let file = encode(&[Plain::f32("x", [count, 16], &x), Plain::i64("y", [count], &y)]).unwrap();
    world.shard.blob = world.put(&file);
    let laid = world.hop((*plain.context).clone());
    assert_eq!(world.train(&laid, laid.batches()).unwrap().1, bytes);
}

//! Hops: exact wherever they are cut, learning, refusals.

use super::*;
use crate::{
    data::Shards,
    fixture::{ROWS, World, cnn, context, contexts, deep, mlp},
    unit,
};
use sojourn_codec::{Tensor as Plain, decode, encode};
use sojourn_model::{CheckpointLayout, Lineage, initial_checkpoint, weights_parameters};
use sojourn_protocol::{
    digest::Digest,
    ids::{Epoch, JobId, ShardId, TrialId, Version},
    manifest::{DataSplit, Scaling, Shard},
    metrics::{ClassDetail, Counting},
    position::Position,
    report::Trained,
    spec::{Architecture, Augment, Loss, Optimizer, OptimizerName, Precision, Ratio},
    time::Millis,
    trainer::{Progress, RunUnit, TrainerLine, TrainerUpdate},
    unit::{Base, Evaluation, Hop, TrialContext, Unit},
};
use std::{fs, ops::ControlFlow, sync::Arc, time::Duration};

#[test]
fn a_hop_cut_anywhere_ends_in_the_same_bytes() {
    for context in contexts() {
        let mut world = World::new();
        let hop = world.hop(context);
        let batches = hop.batches();
        let (whole, bytes) = world.train(&hop, batches).unwrap();
        assert_eq!(whole.end, hop.position_at(8));
        assert_eq!(whole.checkpoint.sha256, Digest::of(&bytes));
        for cut in 1..batches {
            let (first, checkpoint) = world.train(&hop, cut).unwrap();
            assert_eq!(first.end.batch, cut);
            let rest = world.rest(&hop, &first, &checkpoint);
            let (second, again) = world.train(&rest, batches).unwrap();
            assert_eq!(second.checkpoint, whole.checkpoint, "cut at {cut}");
            assert_eq!(again, bytes);
            assert_eq!(first.sums.plus(&second.sums).rows, whole.sums.rows);
        }
    }
}

#[test]
fn a_partial_checkpoint_equals_that_of_a_shorter_hop() {
    let world = World::new();
    let hop = world.hop(context(Architecture::mlp([6])));
    let (whole, bytes) = world.train(&hop, hop.batches()).unwrap();
    let keep_every = Some(Millis(0));
    let request = RunUnit { keep_every, ..world.request(Unit::Train(hop.clone())) };
    let mut kept = Vec::new();
    let mut listener = |told| {
        match told {
            TrainerUpdate::PartSaved(trained) => kept.push(trained),
            TrainerUpdate::Progress(_) => {}
            TrainerUpdate::PeakMemory(_) | TrainerUpdate::Usage(_) => {
                panic!("the process says that, not the unit")
            }
            TrainerUpdate::PartNotSaved(reason) => panic!("{reason}"),
            TrainerUpdate::ShardNeeded(blob) => panic!("it waits for {blob}"),
        }
        ControlFlow::Continue(Duration::ZERO)
    };
    let mut shards = Shards::on(tch::Device::Cpu);
    let TrainerLine::Trained(trained) = unit::run(&request, &mut shards, &mut listener).unwrap()
    else {
        panic!("not trained")
    };
    let timeless = |trained| Trained { train_micros: 0, ..trained };
    assert_eq!(timeless(trained), timeless(whole));
    assert_eq!(fs::read(&request.output).unwrap(), bytes);
    assert_eq!(kept.first().map(|part| part.end.batch), Some(1), "due at once");
    for part in kept {
        let (shorter, bytes) = world.train(&hop, part.end.batch).unwrap();
        assert_eq!(fs::read(request.part(part.end)).unwrap(), bytes);
        assert_eq!(timeless(part), timeless(shorter));
    }
}

#[test]
fn a_trained_checkpoint_passes_the_screening() {
    for context in contexts() {
        let world = World::new();
        let hop = world.hop(context);
        let (trained, bytes) = world.train(&hop, hop.batches()).unwrap();
        let layout = CheckpointLayout::of(&hop.context).unwrap();
        let found = Digest::of(&bytes);
        sojourn_rules::screen(&layout, &hop, &trained, found, &bytes).unwrap();
        assert_eq!(trained.sums.rows, u64::from(ROWS));
        assert!(!world.folder.path().join("output.tmp").exists());
    }
}

#[test]
fn other_seeds_train_to_other_bytes() {
    let world = World::new();
    let hop = world.hop(context(mlp()));
    let (one, _) = world.train(&hop, hop.batches()).unwrap();
    let (two, _) = world.train(&Hop { seed: 78, ..hop.clone() }, hop.batches()).unwrap();
    assert_ne!(one.checkpoint, two.checkpoint);
}

#[test]
fn each_pass_goes_over_the_shard_in_an_order_of_its_own() {
    let mut world = World::new();
    let one = context(mlp());
    let mut three = one.clone();
    three.config.training.local_epochs = 3;
    let hop = world.hop(three);
    assert_eq!(hop.batches(), 24);
    let (whole, bytes) = world.train(&hop, hop.batches()).unwrap();
    assert_eq!(whole.sums.rows, 3 * u64::from(ROWS));
    for until in [5, 8, 13, 16] {
        let (first, part) = world.train(&hop, until).unwrap();
        let rest = world.rest(&hop, &first, &part);
        assert_eq!(world.train(&rest, hop.batches()).unwrap().1, bytes, "cut at {until}");
    }
    // Pass by pass, as hops with the seeds of the passes.
    let single = world.hop(one);
    let (mut trained, mut part) = world.train(&single, single.batches()).unwrap();
    for pass in [1, 2] {
        let rest = world.rest(&single, &trained, &part);
        let start = Position { batch: 0, ..rest.start };
        let again = Hop { seed: seeds::pass(single.seed, pass), start, ..rest };
        (trained, part) = world.train(&again, again.batches()).unwrap();
    }
    let weights = |file: &[u8]| -> Vec<_> {
        let tensors = decode(file).unwrap().into_iter();
        let weights = tensors.filter(|of| of.name != "lineage");
        weights.map(|of| (of.name, of.data.to_vec())).collect()
    };
    assert_eq!(weights(&part), weights(&bytes));
}

#[test]
fn given_parameters_are_trained_as_the_same_ones_from_a_seed() {
    for model in [mlp(), cnn()].into_iter().chain(deep(Ratio(0.25))) {
        let mut world = World::new();
        let from_seed = world.hop(context(model));
        let Base::Initial { seed } = from_seed.base else { panic!("{from_seed:?}") };
        let initial = initial_checkpoint(&from_seed.context, seed, Lineage::initial(seed)).unwrap();
        let parameters = world.put(&weights_parameters(&initial).unwrap());
        let given = Hop { base: Base::InitialWeights { seed, parameters }, ..from_seed.clone() };
        let (made, bytes) = world.train(&given, given.batches()).unwrap();
        let (seeded, same) = world.train(&from_seed, from_seed.batches()).unwrap();
        // How long each took is no part of what was trained.
        assert_eq!((made.checkpoint, made.sums), (seeded.checkpoint, seeded.sums));
        assert!(bytes == same);
    }
}

#[test]
fn given_parameters_of_another_model_are_refused() {
    let mut world = World::new();
    let other = context(Architecture::mlp([3]));
    let other = initial_checkpoint(&other, 1, Lineage::initial(1)).unwrap();
    let parameters = world.put(&weights_parameters(&other).unwrap());
    let base = Base::InitialWeights { seed: 1, parameters };
    let hop = Hop { base, ..world.hop(context(Architecture::mlp([7]))) };
    let refused = world.train(&hop, 1).unwrap_err().to_string();
    assert_eq!(refused, "tensor `layers.0.bias` is F32 [3], the model's is F32 [7]");
}

#[test]
fn a_model_learns_and_evaluation_says_so() {
    for model in [mlp(), cnn()].into_iter().chain(deep(Ratio(0.25))) {
        let mut world = World::new();
        let mut hop = world.hop(context(model));
        // The schedule is to last as long as the training.
        Arc::make_mut(&mut hop.context).total_steps = 24 * u64::from(hop.batches());
        let mut last = None;
        for epoch in 0..24 {
            hop.start.epoch = Epoch(epoch);
            hop.seed = u64::from(epoch);
            let (trained, bytes) = world.train(&hop, hop.batches()).unwrap();
            let blob = world.put(&bytes);
            hop.base = Base::Checkpoint { version: Version(epoch + 1), blob };
            hop.start.step = trained.end.step;
            last = Some(trained);
        }
        let evaluation = Evaluation {
            job: hop.job,
            trial: hop.trial,
            epoch: Epoch(23),
            version: Version(24),
            checkpoint: last.unwrap().checkpoint,
            shards: vec![world.shard, world.shard],
            split: DataSplit::Test,
            counting: Counting { top_k: Some(2), by_class: ClassDetail::Confusion },
            context: hop.context.clone(),
        };
        let request = world.request(Unit::Evaluate(evaluation));
        let mut shards = Shards::on(tch::Device::Cpu);
        let line = unit::run(&request, &mut shards, &mut |_| ControlFlow::Continue(Duration::ZERO))
            .unwrap();
        let TrainerLine::Evaluated(evaluated) = line else { panic!("{line:?}") };
        assert_eq!(evaluated.version, Version(24));
        let [one, two] = evaluated.shards.as_slice() else { panic!("{evaluated:?}") };
        assert_eq!(one, two);
        assert!(one.accuracy().unwrap() > 0.9, "{one:?}");
        assert!(one.mean_loss() < 0.5, "{one:?}");
        assert!(one.top_k >= one.correct && one.top_k <= Some(one.rows), "{one:?}");
        let by_class = evaluated.by_class.unwrap();
        assert_eq!(by_class.detail(), ClassDetail::Confusion);
        assert_eq!(by_class.fault(3, &one.clone().plus(two)), None, "all shards' rows are in it");
        assert!(by_class.macro_f1() > 0.9, "{by_class:?}");
    }
}

#[test]
fn augmented_hops_train_on_other_images() {
    let world = World::new();
    let plain = world.hop(context(mlp()));
    let mut augmented = plain.clone();
    let training = &mut Arc::make_mut(&mut augmented.context).config.training;
    training.augment = Some(Augment { crop: 1, flip: true });
    let (plain, _) = world.train(&plain, plain.batches()).unwrap();
    let (augmented, _) = world.train(&augmented, augmented.batches()).unwrap();
    assert_ne!(plain.checkpoint.sha256, augmented.checkpoint.sha256);
    assert_eq!(plain.checkpoint.bytes, augmented.checkpoint.bytes);
    assert_eq!(plain.sums.rows, augmented.sums.rows);
}

/// The values of a checkpoint's parameters, one after another.
fn parameters(context: &TrialContext, checkpoint: &[u8]) -> Vec<f32> {
    let layout = CheckpointLayout::of(context).unwrap();
    let names: Vec<&str> = layout.parameters().iter().map(|spec| spec.name.as_str()).collect();
    let tensors = decode(checkpoint).unwrap();
    let parameters = tensors.iter().filter(|tensor| names.contains(&tensor.name.as_str()));
    parameters.flat_map(|tensor| tensor.f32s().unwrap().collect::<Vec<_>>()).collect()
}

#[test]
fn a_step_in_rounded_arithmetic_goes_nearly_the_same_way() {
    let norm = |values: &[f32]| values.iter().map(|value| value * value).sum::<f32>().sqrt();
    for model in [mlp(), cnn()].into_iter().chain(deep(Ratio(0.0))) {
        let world = World::new();
        let mut context = context(model);
        context.config.training.optimizer = Optimizer::new(OptimizerName::Sgd, 1.0);
        context.config.training.clip_norm = None;
        let start = initial_checkpoint(&context, 5, Lineage::initial(5)).unwrap();
        let start = parameters(&context, &start);
        let step = |precision| {
            let mut hop = world.hop(context.clone());
            Arc::make_mut(&mut hop.context).config.training.precision = precision;
            let (trained, bytes) = world.train(&hop, 1).unwrap();
            let end = parameters(&context, &bytes);
            let moved: Vec<f32> = end.iter().zip(&start).map(|(end, start)| end - start).collect();
            (trained.sums.mean_loss(), moved)
        };
        let (loss, exact) = step(Precision::F32);
        let (rounded_loss, rounded) = step(Precision::Bf16);
        let apart: Vec<f32> = exact.iter().zip(&rounded).map(|(a, b)| a - b).collect();
        let error = norm(&apart) / norm(&exact);
        // A number of 8 bits is off by up to 0.4 %; here go many after each other.
        assert!(error > 0.0 && error < 0.15, "{:?}: {error}", context.config.model);
        assert!((loss - rounded_loss).abs() < 0.02, "{loss}, {rounded_loss}");
    }
}

#[test]
fn numbers_are_fitted_by_squares() {
    let mut world = World::new();
    let x: Vec<f32> = (0..40).map(|row| row as f32 / 20.0 - 1.0).collect();
    let y: Vec<f32> = x.iter().map(|x| 3.0 * x + 0.5).collect();
    let file = [Plain::f32("x", [40u64, 1], &x), Plain::f32("y", [40u64], &y)];
    let blob = world.put(&encode(&file).unwrap());
    world.shard = Shard { blob, rows: 40 };
    let mut context = context(Architecture::mlp([]));
    context.shape = vec![1];
    context.outputs = 1;
    context.config.training.loss = Loss::Mse;
    context.config.training.optimizer.lr = 0.3;
    context.total_steps = 100;
    let mut hop = world.hop(context);
    let mut losses = Vec::new();
    for epoch in 0..20 {
        hop.start.epoch = Epoch(epoch);
        let (trained, bytes) = world.train(&hop, hop.batches()).unwrap();
        assert_eq!(trained.sums.correct, None);
        losses.push(trained.sums.mean_loss());
        let blob = world.put(&bytes);
        hop.base = Base::Checkpoint { version: Version(epoch + 1), blob };
        hop.start.step = trained.end.step;
    }
    assert!(losses[0] > 0.5 && losses[19] < 0.01, "{losses:?}");
}

#[test]
fn scaling_is_what_the_manifest_says() {
    let mut world = World::new();
    let x = Plain::f32("x", [2u64, 3], &[1.0, 10.0, 7.0, 3.0, 30.0, 9.0]);
    let blob = world.put(&encode(&[x, Plain::i64("y", [2u64], &[0, 1])]).unwrap());
    let shard = Shard { blob, rows: 2 };
    let file = [
        Plain::f32("mean", [3u64], &[2.0, 20.0, 8.0]),
        Plain::f32("std", [3u64], &[1.0, 5.0, 0.0]),
    ];
    let scaling = world.put(&encode(&file).unwrap());
    let mut context = context(mlp());
    context.shape = vec![3];
    let scaled = |context: &TrialContext, scaling| {
        let context = TrialContext { scaling, ..context.clone() };
        let data = Shards::on(tch::Device::Cpu).get(&shard, &context, &world.files).unwrap();
        Vec::<f32>::try_from(data.range(0, 2).unwrap().x().unwrap().view(-1)).unwrap()
    };
    let standard = scaled(&context, Scaling::Standard(scaling));
    assert_eq!(standard, [-1.0, -2.0, 0.0, 1.0, 2.0, 0.0]);
    let constant = scaled(&context, Scaling::Constant(0.5));
    assert_eq!(constant, [0.5, 5.0, 3.5, 1.5, 15.0, 4.5]);
    assert_eq!(scaled(&context, Scaling::None), [1.0, 10.0, 7.0, 3.0, 30.0, 9.0]);
}

#[test]
fn bytes_train_to_the_bytes_that_the_same_numbers_in_single_precision_do() {
    let mut world = World::new();
    let pixels: Vec<u8> = (0..ROWS * 16).map(|at| (at * 89 % 253) as u8).collect();
    let numbers: Vec<f32> = pixels.iter().copied().map(f32::from).collect();
    let y: Vec<i64> = (0..ROWS).map(|row| i64::from(row % 3)).collect();
    let shape = [u64::from(ROWS), 16];
    let mut shard = |x| {
        let blob = world.put(&encode(&[x, Plain::i64("y", [shape[0]], &y)]).unwrap());
        Shard { blob, rows: ROWS }
    };
    let singles = shard(Plain::f32("x", shape, &numbers));
    let bytes = shard(Plain::u8("x", shape, &pixels));
    assert!(bytes.blob.bytes * 2 < singles.blob.bytes);
    // A feature that doesn't vary, too.
    let mean: Vec<f32> = (0..16).map(|at| 120.0 + 0.3 * at as f32).collect();
    let std: Vec<f32> = (0..16).map(|at| 0.7 * at as f32).collect();
    let file = [Plain::f32("mean", [16u64], &mean), Plain::f32("std", [16u64], &std)];
    let standard = Scaling::Standard(world.put(&encode(&file).unwrap()));
    for scaling in [Scaling::None, Scaling::Constant(1.0 / 255.0), standard] {
        for context in contexts() {
            let context = TrialContext { scaling, ..context };
            let [(one, checkpoint), (two, same)] = [singles, bytes].map(|shard| {
                let hop = Hop { shard, ..world.hop(context.clone()) };
                world.train(&hop, hop.batches()).unwrap()
            });
            assert_eq!((one.checkpoint, one.sums), (two.checkpoint, two.sums), "{context:?}");
            assert!(checkpoint == same);
            let evaluated = [singles, bytes].map(|shard| {
                let evaluation = Evaluation {
                    job: JobId(1),
                    trial: TrialId(2),
                    epoch: Epoch(0),
                    version: Version(1),
                    checkpoint: world.put(&checkpoint),
                    shards: vec![shard],
                    split: DataSplit::Valid,
                    counting: Counting::default(),
                    context: context.clone().into(),
                };
                let request = world.request(Unit::Evaluate(evaluation));
                let mut shards = Shards::on(tch::Device::Cpu);
                let go_on = &mut |_: TrainerUpdate| ControlFlow::Continue(Duration::ZERO);
                let line = unit::run(&request, &mut shards, go_on).unwrap();
                let TrainerLine::Evaluated(evaluated) = line else { panic!("{line:?}") };
                evaluated.shards
            });
            assert_eq!(evaluated[0], evaluated[1], "{context:?}");
        }
    }
}

#[test]
fn a_diverging_trial_is_non_finite() {
    let world = World::new();
    let mut context = context(mlp());
    context.config.training.optimizer.name = OptimizerName::Sgd;
    context.config.training.optimizer.lr = 1e30;
    context.config.training.clip_norm = None;
    let hop = world.hop(context);
    let error = world.train(&hop, hop.batches()).unwrap_err();
    assert!(matches!(error, TrainError::NonFinite(_)), "{error}");
    assert!(!world.folder.path().join("output").exists());
}

#[test]
fn the_rest_of_a_hop_may_come_after_a_hop_over_another_shard() {
    let mut world = World::new();
    let hop = world.hop(context(mlp()));
    let (part, bytes) = world.train(&hop, 3).unwrap();
    let rest = world.rest(&hop, &part, &bytes);
    let start = Position { shard: ShardId(rest.start.shard.0 + 1), batch: 0, ..rest.start };
    let between = Hop { start, seed: 99, ..rest.clone() };
    let (other, bytes) = world.train(&between, between.batches()).unwrap();
    let base = world.rest(&between, &other, &bytes).base;
    let rest = Hop { base, start: Position { step: other.end.step, ..rest.start }, ..rest };
    let (whole, _) = world.train(&rest, rest.batches()).unwrap();
    assert_eq!(whole.end.batch, hop.batches());
    // What isn't of this epoch can't have come between.
    let next = Position { epoch: Epoch(rest.start.epoch.0 + 1), ..rest.start };
    let error = world.train(&Hop { start: next, ..rest }, hop.batches()).unwrap_err();
    assert!(error.to_string().contains("isn't the part of the hop"), "{error}");
}

#[test]
fn units_that_their_files_contradict_are_refused() {
    let mut world = World::new();
    let hop = world.hop(context(mlp()));
    let (trained, bytes) = world.train(&hop, 3).unwrap();
    let rest = world.rest(&hop, &trained, &bytes);
    let junk = world.put(b"no shard");
    let wide = {
        let x = Plain::f32("x", [u64::from(ROWS), 2], &[0.0; 2 * ROWS as usize]);
        let y = Plain::i64("y", [u64::from(ROWS)], &[0; ROWS as usize]);
        world.put(&encode(&[x, y]).unwrap())
    };
    let shard = |blob, rows| Shard { blob, rows };
    let with = |change: &dyn Fn(&mut Hop)| {
        let mut hop = rest.clone();
        change(&mut hop);
        world.train(&hop, 8).unwrap_err().to_failure().message
    };
    let absent = shard(sojourn_protocol::digest::BlobRef { sha256: Digest::of(b"?"), bytes: 1 }, 1);
    fn of(hop: &mut Hop) -> &mut TrialContext {
        Arc::make_mut(&mut hop.context)
    }
    for (change, expected) in [
        (&(|h: &mut Hop| h.shard = absent) as &dyn Fn(&mut Hop), "no file was given"),
        (&|h: &mut Hop| h.shard = shard(junk, ROWS), "`shard` can't be read: not a safetensors"),
        (&|h: &mut Hop| h.shard = shard(wide, ROWS), "2 features, the unit says 16"),
        (&|h: &mut Hop| h.shard.rows = 60, "61 rows, the unit says 60"),
        (&|h: &mut Hop| of(h).outputs = 2, "class 2, the model has 2 outputs"),
        (&|h: &mut Hop| of(h).config.training.loss = Loss::Mse, "`mse` takes numeric labels"),
        (&|h: &mut Hop| of(h).config.training.batch_size = 0, "`batch_size` can't be 0"),
        (&|h: &mut Hop| of(h).config.model = cnn(), "aren't those of the trial's model"),
        (&|h: &mut Hop| of(h).shape = vec![4, 0], "16 features, the unit says 0"),
        (&|h: &mut Hop| h.start.step = 4, "at step 3, the unit starts at 4"),
        (&|h: &mut Hop| h.start.batch = 4, "isn't the part of the hop"),
        (&|h: &mut Hop| h.seed = 1, "isn't the part of the hop"),
        (&|h: &mut Hop| h.trial = TrialId(3), "a checkpoint of trial 2, expected trial 3"),
        (&|h: &mut Hop| h.start.batch = 8, "starts at batch 8 of 8"),
        (&|h: &mut Hop| of(h).config.training.optimizer.lr = -1.0, "`lr` can't be -1"),
    ] {
        let message = with(change);
        assert!(message.contains(expected), "`{message}` doesn't say `{expected}`");
    }
    // A clone of the trial goes on from its checkpoint, which is the clone's version 0.
    let mut clone = rest.clone();
    let Base::Checkpoint { blob, .. } = clone.base else { panic!("{:?}", clone.base) };
    (clone.base, clone.trial) = (Base::Checkpoint { version: Version(0), blob }, TrialId(3));
    (clone.start.epoch, clone.start.batch, clone.start.step) = (Epoch(1), 0, 20);
    let (trained, _) = world.train(&clone, 8).unwrap();
    assert_eq!((trained.end.epoch, trained.end.step), (Epoch(1), 28));
}

#[test]
fn a_file_that_was_altered_is_not_trained_on() {
    let world = World::new();
    let hop = world.hop(context(mlp()));
    let path = &world.files[&world.shard.blob.sha256];
    let mut bytes = std::fs::read(path).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(path, bytes).unwrap();
    let error = world.train(&hop, hop.batches()).unwrap_err();
    assert!(matches!(error, crate::error::TrainError::Damaged(_)), "{error}");
    assert_eq!(error.to_failure().kind, sojourn_protocol::report::FailureKind::Damaged);
}

#[test]
fn an_evaluation_tells_batches_of_all_its_shards_as_they_are_done() {
    let mut world = World::new();
    // So wide that 32 rows, four batches, go through at once.
    let context = context(Architecture::mlp([1 << 17]));
    let checkpoint =
        initial_checkpoint(&context, 5, Lineage { trial: TrialId(2), ..Lineage::initial(5) });
    let evaluation = Evaluation {
        job: JobId(1),
        trial: TrialId(2),
        epoch: Epoch(0),
        version: Version(1),
        checkpoint: world.put(&checkpoint.unwrap()),
        shards: vec![world.shard; 2],
        split: DataSplit::Valid,
        counting: Counting::default(),
        context: context.into(),
    };
    let request = world.request(Unit::Evaluate(evaluation));
    let mut told = Vec::new();
    unit::run(&request, &mut Shards::on(tch::Device::Cpu), &mut |progress| {
        let TrainerUpdate::Progress(Progress { done, of: 16 }) = progress else {
            panic!("{progress:?}")
        };
        told.push(done);
        ControlFlow::Continue(Duration::ZERO)
    })
    .unwrap();
    assert_eq!(told, [4, 8, 12, 16]);
}

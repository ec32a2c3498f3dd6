//! Rows a second of hops in the trainer, as a default job has them on a fleet of such machines: reproducible, in the
//! fastest numeric class of the machine. Beside a hand-written `tch` loop over the same rows, model and
//! optimiser: both on one thread, Adam, batches of 64, rows in an order made before the clock starts
//! in the loop and within it in the trainer. The loop counts losses and hits too. And beside the same in
//! PyTorch's eager mode, where it is installed ([`eager`]), beside a trainer that pins nothing, and beside one of the
//! common class.
//!
//! Prints one JSON line per model and anchor; each figure is the best of several turns, taken alternately.

#![expect(clippy::unwrap_used, reason = "a bench ends at what it did not expect")]

mod eager;
#[path = "../../../benches/size.rs"]
mod size;
mod trainer;

use eager::Eager;
use sojourn_codec::{Tensor as Plain, encode};
use sojourn_protocol::{
    digest::{BlobRef, Digest},
    ids::{Epoch, JobId, ShardId, TrialId},
    manifest::{Scaling, Shard, Targets},
    position::Position,
    seeds,
    spec::{
        Architecture, Cnn, Loss, Mlp, Optimizer, OptimizerName, Resnet, TrainingConfig, TrialConfig,
    },
    trainer::{InstructionSet, RunUnit, TrainerRequest},
    unit::{Base, Hop, TrialContext, Unit},
};
use sojourn_slot::supported_instructions;
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Instant,
};
use tch::{
    Device, Kind, Tensor,
    nn::{self, Module, ModuleT, OptimizerConfig},
};
use trainer::{Trainer, speed};

const BATCH: i64 = 64;
const CLASSES: u32 = 10;

/// A model and its data: `[channels, height, width]` of a row, and how many rows.
struct Case {
    name: &'static str,
    model: Architecture,
    shape: [u32; 3],
    rows: u32,
}

fn main() {
    tch::set_num_interop_threads(1);
    tch::set_num_threads(1);
    let mlp = |hidden: &[u32]| Architecture::mlp(hidden);
    let cnn = |channels: &[u32]| Architecture::cnn(channels);
    let cases = [
        Case { name: "mlp 128-64 8x8", model: mlp(&[128, 64]), shape: [1, 8, 8], rows: 30_000 },
        Case {
            name: "mlp 1024-1024 28x28",
            model: mlp(&[1024, 1024]),
            shape: [1, 28, 28],
            rows: 6_000,
        },
        Case { name: "cnn 16-32 8x8", model: cnn(&[16, 32]), shape: [1, 8, 8], rows: 10_000 },
        Case {
            name: "resnet 20 3x32x32",
            model: Architecture::Resnet(Resnet { depth: 20, width: Resnet::WIDTH }),
            shape: [3, 32, 32],
            rows: 256,
        },
        Case { name: "cnn 32-64 3x32x32", model: cnn(&[32, 64]), shape: [3, 32, 32], rows: 1_000 },
    ];
    let cases = cases.map(|case| Case { rows: size::of(case.rows, 64), ..case });
    let fastest = supported_instructions().pop().unwrap();
    let sets = [Some(fastest), None, Some(InstructionSet::COMMON)];
    let mut trainers = sets.map(Trainer::start);
    let mut eager = Eager::start("eager.py");
    for case in &cases {
        let features: u32 = case.shape.iter().product();
        let mut rng = seeds::stream("bench", &[u64::from(features)]);
        let count = u64::from(features) * u64::from(case.rows);
        #[expect(clippy::cast_possible_truncation, reason = "rounding to single precision")]
        let x: Vec<f32> = (0..count).map(|_| seeds::unit_f64(&mut rng) as f32 - 0.5).collect();
        let y: Vec<i64> =
            (0..case.rows).map(|_| i64::from(seeds::below(&mut rng, CLASSES))).collect();
        let folder = tempfile::tempdir().unwrap();
        let pinned = request(case, &x, &y, folder.path(), Some(1));
        let free = request(case, &x, &y, folder.path(), None);
        let (mut best, mut by_hand, mut in_python) = ([0.0f64; 3], 0.0f64, None);
        for _ in 0..size::of(5, 1) {
            for ((trainer, set), best) in trainers.iter_mut().zip(sets).zip(&mut best) {
                let request = if set.is_some() { &pinned } else { &free };
                *best = best.max(trainer.turn(request));
            }
            by_hand = by_hand.max(hand_written(case, &x, &y));
            if let Some(eager) = &mut eager {
                let speed = eager.turn(&serde_json::json!({
                    "model": case.model, "shape": case.shape, "rows": case.rows, "batch": BATCH, "classes": CLASSES,
                }));
                in_python = Some(speed.max(in_python.unwrap_or(0.0)));
            }
        }
        let [trainer, unpinned, common] = best;
        figure(case, "a tch loop", trainer, by_hand);
        if let Some(in_python) = in_python {
            figure(case, "PyTorch eager", trainer, in_python);
        }
        figure(case, "a trainer that pins nothing", trainer, unpinned);
        figure(case, "the common numeric class", trainer, common);
    }
}

fn figure(case: &Case, beside: &str, value: f64, anchor: f64) {
    println!(
        "{}",
        serde_json::json!({
            "name": format!("trainer rows, {}, beside {beside}", case.name),
            "value": value.round(), "unit": "1/s", "anchor": anchor.round(),
            "ratio": (value / anchor * 1000.0).round() / 1000.0,
        })
    );
}

/// Rows a second of the loop that one would write.
fn hand_written(case: &Case, x: &[f32], y: &[i64]) -> f64 {
    let store = nn::VarStore::new(Device::Cpu);
    let shape = case.shape.map(i64::from);
    let model = network(&store.root(), case, shape);
    let mut optimizer = nn::Adam::default().build(&store, 1e-3).unwrap();
    let rows = i64::from(case.rows);
    let x = Tensor::from_slice(x).view([rows, -1]);
    let y = Tensor::from_slice(y);
    let order: Vec<i64> = seeds::row_order(3, case.rows).into_iter().map(i64::from).collect();
    let order = Tensor::from_slice(&order);
    let (mut losses, mut hits) = (0.0, 0);
    let started = Instant::now();
    let mut at = 0;
    while at < rows {
        let count = BATCH.min(rows - at);
        let pick = order.narrow(0, at, count);
        let (x, y) = (x.index_select(0, &pick), y.index_select(0, &pick));
        let outputs = model.forward_t(&x, true);
        let loss = outputs.cross_entropy_for_logits(&y);
        optimizer.backward_step(&loss);
        losses += loss.double_value(&[]);
        hits += outputs.argmax(-1, false).eq_tensor(&y).sum(Kind::Int64).int64_value(&[]);
        at += count;
    }
    let micros = u64::try_from(started.elapsed().as_micros()).unwrap();
    assert!(losses.is_finite() && hits <= rows, "the loop trained");
    speed(u64::from(case.rows), micros)
}

fn network(root: &nn::Path<'_>, case: &Case, shape: [i64; 3]) -> nn::SequentialT {
    let [depth, mut height, mut width] = shape;
    let classes = i64::from(CLASSES);
    let mut net = nn::seq_t();
    match &case.model {
        Architecture::Mlp(Mlp { hidden, .. }) => {
            let mut inputs = depth * height * width;
            for (index, units) in hidden.iter().enumerate() {
                let units = i64::from(*units);
                let layer = nn::linear(root / index, inputs, units, nn::LinearConfig::default());
                net = net.add(layer).add_fn(Tensor::relu);
                inputs = units;
            }
            net.add(nn::linear(root / "last", inputs, classes, nn::LinearConfig::default()))
        }
        Architecture::Cnn(Cnn { channels, .. }) => {
            net = net.add_fn(move |x| x.view([-1, depth, height, width]));
            let mut inputs = depth;
            for (index, outputs) in channels.iter().enumerate() {
                let outputs = i64::from(*outputs);
                let config = nn::ConvConfig { padding: 1, ..nn::ConvConfig::default() };
                let layer = nn::conv2d(root / index, inputs, outputs, 3, config);
                net = net.add(layer).add_fn(|x| x.relu().max_pool2d_default(2));
                (inputs, height, width) = (outputs, height / 2, width / 2);
            }
            let flat = inputs * height * width;
            net = net.add_fn(move |x| x.view([-1, flat]));
            net.add(nn::linear(root / "last", flat, classes, nn::LinearConfig::default()))
        }
        Architecture::Graph(_) => unreachable!("the cases are built in"),
        Architecture::Resnet(resnet) => {
            net = net.add_fn(move |x| x.view([-1, depth, height, width]));
            let filters = i64::from(resnet.width);
            net = net.add(conv(&(root / "stem"), depth, filters, 3, 1));
            net = norm_relu(net, &(root / "stem-norm"), filters);
            let mut inputs = filters;
            for stage in 0..3 {
                let outputs = filters * (4 << stage);
                let inner = if stage == 0 { filters } else { outputs / 2 };
                for block in 0..i64::from(resnet.blocks().unwrap()) {
                    let stride = if stage > 0 && block == 0 { 2 } else { 1 };
                    let root = root / stage / block;
                    let mut inside = norm_relu(nn::seq_t(), &(&root / "n1"), inputs);
                    inside = inside.add(conv(&(&root / "c1"), inputs, inner, 1, stride));
                    inside = norm_relu(inside, &(&root / "n2"), inner);
                    inside = inside.add(conv(&(&root / "c2"), inner, inner, 3, 1));
                    inside = norm_relu(inside, &(&root / "n3"), inner);
                    inside = inside.add(conv(&(&root / "c3"), inner, outputs, 1, 1));
                    let skip =
                        (block == 0).then(|| conv(&(&root / "s"), inputs, outputs, 1, stride));
                    net = net.add_fn_t(move |x, train| {
                        let kept =
                            skip.as_ref().map_or_else(|| x.shallow_clone(), |s| s.forward(x));
                        inside.forward_t(x, train) + kept
                    });
                    inputs = outputs;
                }
            }
            net = norm_relu(net, &(root / "norm"), inputs);
            net = net.add_fn(|x| x.mean_dim([2i64, 3].as_slice(), false, None));
            net.add(nn::linear(root / "last", inputs, classes, nn::LinearConfig::default()))
        }
    }
}

fn conv(root: &nn::Path<'_>, inputs: i64, outputs: i64, kernel: i64, stride: i64) -> nn::Conv2D {
    let config = nn::ConvConfig { padding: kernel / 2, stride, ..nn::ConvConfig::default() };
    nn::conv2d(root, inputs, outputs, kernel, config)
}

fn norm_relu(net: nn::SequentialT, root: &nn::Path<'_>, channels: i64) -> nn::SequentialT {
    net.add(nn::batch_norm2d(root, channels, nn::BatchNormConfig::default())).add_fn(Tensor::relu)
}

fn request(
    case: &Case,
    x: &[f32],
    y: &[i64],
    folder: &std::path::Path,
    pinned_threads: Option<u32>,
) -> TrainerRequest {
    let rows = u64::from(case.rows);
    let features: u32 = case.shape.iter().product();
    let tensors = [Plain::f32("x", [rows, u64::from(features)], x), Plain::i64("y", [rows], y)];
    let file = encode(&tensors).unwrap();
    let blob = BlobRef { sha256: Digest::of(&file), bytes: u64::try_from(file.len()).unwrap() };
    let path = folder.join("shard");
    std::fs::write(&path, &file).unwrap();
    let optimizer = Optimizer::new(OptimizerName::Adam, 1e-3);
    let training =
        TrainingConfig::new(1, u32::try_from(BATCH).unwrap(), Loss::CrossEntropy, optimizer);
    let context = TrialContext {
        config: TrialConfig { model: case.model.clone(), training },
        columns: Vec::new(),
        shape: case.shape.to_vec(),
        outputs: CLASSES,
        scaling: Scaling::None,
        targets: Targets::Plain,
        total_steps: 1_000,
        pinned_threads,
    };
    let hop = Hop {
        job: JobId(1),
        trial: TrialId(0),
        base: Base::Initial { seed: 1 },
        start: Position { epoch: Epoch(0), shard: ShardId(0), batch: 0, step: 0 },
        shard: Shard { blob, rows: case.rows },
        seed: 3,
        context: context.into(),
        then: Vec::new(),
        until: None,
    };
    TrainerRequest::Run(Box::new(RunUnit {
        unit: Unit::Train(hop),
        files: BTreeMap::from([(blob.sha256, path)]),
        output: folder.join("output"),
        pending: BTreeSet::new(),
        until: None,
        keep_every: None,
    }))
}

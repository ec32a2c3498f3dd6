//! Rows a second of hops over users' own models, the graphs of `tests/graphs`, as a default job has them: reproducible, in
//! the fastest numeric class of the machine. Beside the models themselves in PyTorch's eager mode, where it is installed
//! ([`eager`]): the same rows in the same order, batches of 64, AdamW, one thread, losses counted.
//!
//! Prints one JSON line per model; each figure is the best of several turns, taken alternately.

#![expect(clippy::unwrap_used, reason = "a bench ends at what it did not expect")]

mod eager;
#[path = "../../../benches/size.rs"]
mod size;
mod trainer;

use eager::Eager;
use rand_core::Rng as _;
use serde_json::{Value, json};
use sojourn_codec::{Tensor, encode};
use sojourn_protocol::{
    digest::{BlobRef, Digest},
    ids::{Epoch, JobId, ShardId, TrialId},
    manifest::{Scaling, Shard, Targets},
    position::Position,
    seeds,
    spec::{Architecture, Graph, Loss, Optimizer, OptimizerName, TrainingConfig, TrialConfig},
    trainer::{RunUnit, TrainerRequest},
    unit::{Base, Hop, TrialContext, Unit},
};
use sojourn_slot::supported_instructions;
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};
use trainer::Trainer;

const BATCH: u32 = 64;
/// The seed of the rows' order.
const SEED: u64 = 3;

/// Fixtures by name, each with as many rows as take about a tenth of a second: of many short turns some meet nobody else.
const FIXTURES: [(&str, u32); 10] = [
    ("mlp", 15_000),
    ("cnn", 6_000),
    ("resnet50", 512),
    ("vgg16", 640),
    ("lstm", 2_000),
    ("gru", 1_024),
    ("language_model", 1_024),
    ("vae", 4_000),
    ("captioner", 4_000),
    ("gan", 10_000),
];

fn main() {
    let mut trainer = Trainer::start(supported_instructions().pop());
    let mut eager = Eager::start("eager_graphs.py");
    for (name, rows) in FIXTURES {
        let folder = tempfile::tempdir().unwrap();
        let case = Case::new(name, size::of(rows, BATCH), folder.path());
        let (request, for_eager) = (case.request(), case.for_eager());
        let (mut best, mut in_python) = (0.0f64, None);
        for _ in 0..size::of(15, 1) {
            best = best.max(trainer.turn(&request));
            if let Some(eager) = &mut eager {
                let speed = eager.turn(&for_eager);
                in_python = Some(speed.max(in_python.unwrap_or(0.0)));
            }
        }
        figure(name, best, in_python);
    }
}

fn figure(name: &str, value: f64, anchor: Option<f64>) {
    let beside = if anchor.is_some() { ", beside PyTorch eager" } else { "" };
    println!(
        "{}",
        json!({
            "name": format!("trainer rows, graph of {name}{beside}"),
            "value": value.round(), "unit": "1/s", "anchor": anchor.map(f64::round),
            "ratio": anchor.map(|anchor| (value / anchor * 1000.0).round() / 1000.0),
        })
    );
}

/// A graph, and a shard of made-up rows.
struct Case<'a> {
    name: &'a str,
    model: Architecture,
    /// The shape of a row.
    shape: Vec<u32>,
    classes: u32,
    rows: u32,
    folder: &'a Path,
    files: BTreeMap<Digest, PathBuf>,
    shard: BlobRef,
}

impl<'a> Case<'a> {
    fn new(name: &'a str, rows: u32, folder: &'a Path) -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/graphs").join(name);
        let described = fs::read(path.with_extension("json")).unwrap();
        let described: Value = serde_json::from_slice(&described).unwrap();
        let path = path.with_extension("safetensors");
        let file = fs::read(&path).unwrap();
        let graph = sojourn_graph::Graph::read(&file).unwrap();
        let x = graph.columns.iter().find(|column| column.name == "x").unwrap();
        let shape: Vec<u32> = x.shape.iter().map(|side| u32::try_from(*side).unwrap()).collect();
        let number = |pointer| {
            let number = described.pointer(pointer).and_then(Value::as_u64);
            number.map(|number| u32::try_from(number).unwrap())
        };
        let classes = number("/classes").unwrap();
        let tokens = number("/rows/tokens_from").zip(number("/rows/vocabulary"));
        let made_up = made_up(rows, shape.iter().product(), classes, tokens);
        let (file, shard) = (blob(&file), blob(&made_up));
        let at = folder.join("shard");
        fs::write(&at, made_up).unwrap();
        let exported = graph.summary(file, 1, 1);
        let entry = format!("models.py:{name}");
        let values = BTreeMap::new();
        let model = Architecture::Graph(Graph { entry, values, exported: Some(exported) });
        let files = BTreeMap::from([(file.sha256, path), (shard.sha256, at)]);
        Self { name, model, shape, classes, rows, folder, files, shard }
    }

    /// The hop over all rows.
    fn request(&self) -> TrainerRequest {
        let optimizer =
            Optimizer { weight_decay: 0.01, ..Optimizer::new(OptimizerName::Adamw, 1e-3) };
        let training = TrainingConfig::new(1, BATCH, Loss::CrossEntropy, optimizer);
        let context = TrialContext {
            config: TrialConfig { model: self.model.clone(), training },
            columns: Vec::new(),
            shape: self.shape.clone(),
            outputs: self.classes,
            scaling: Scaling::None,
            targets: Targets::Plain,
            total_steps: 1_000,
            pinned_threads: Some(1),
        };
        let hop = Hop {
            job: JobId(1),
            trial: TrialId(0),
            base: Base::Initial { seed: 1 },
            start: Position { epoch: Epoch(0), shard: ShardId(0), batch: 0, step: 0 },
            shard: Shard { blob: self.shard, rows: self.rows },
            seed: SEED,
            context: context.into(),
            then: Vec::new(),
            until: None,
        };
        TrainerRequest::Run(Box::new(RunUnit {
            unit: Unit::Train(hop),
            files: self.files.clone(),
            output: self.folder.join("output"),
            pending: BTreeSet::new(),
            until: None,
            keep_every: None,
        }))
    }

    /// The same for PyTorch.
    fn for_eager(&self) -> Value {
        json!({
            "graph": self.name, "shard": self.files.get(&self.shard.sha256), "batch": BATCH,
            "order": seeds::row_order(SEED, self.rows),
        })
    }
}

/// A shard of rows with a class each. `tokens` says from which number of a row on there are tokens, and how many kinds of them.
fn made_up(rows: u32, features: u32, classes: u32, tokens: Option<(u32, u32)>) -> Vec<u8> {
    let mut rng = seeds::stream("bench", &[u64::from(features)]);
    let mut number = |at: u32| match tokens {
        Some((from, vocabulary)) if at >= from => {
            f32::from(u16::try_from(seeds::below(&mut rng, vocabulary)).unwrap())
        }
        _ => f32::from(u16::try_from(rng.next_u32() >> 16).unwrap()) / 65_536.0,
    };
    let x: Vec<f32> = (0..rows).flat_map(|_| 0..features).map(&mut number).collect();
    let y: Vec<i64> = (0..rows).map(|_| i64::from(seeds::below(&mut rng, classes))).collect();
    let (rows, features) = (u64::from(rows), u64::from(features));
    encode(&[Tensor::f32("x", [rows, features], &x), Tensor::i64("y", [rows], &y)]).unwrap()
}

fn blob(file: &[u8]) -> BlobRef {
    BlobRef { sha256: Digest::of(file), bytes: u64::try_from(file.len()).unwrap() }
}

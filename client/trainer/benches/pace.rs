//! How well a trainer keeps to a pace: the share of one core that it takes over ten seconds at 50 % and at 10 %, on
//! small batches and on large ones, by the kernel's count.
//!
//! Prints one JSON line per case; the anchor is what was asked for, the ratio what it took of that.

#![expect(clippy::unwrap_used, reason = "a bench ends at what it did not expect")]

#[path = "../../../benches/size.rs"]
mod size;

use sojourn_codec::{Tensor, encode};
use sojourn_protocol::{
    digest::{BlobRef, Digest},
    ids::{Epoch, JobId, ShardId, TrialId},
    manifest::{Scaling, Shard, Targets},
    position::Position,
    spec::{Architecture, Loss, Optimizer, OptimizerName, TrainingConfig, TrialConfig},
    trainer::{Pace, RunUnit, TrainerRequest},
    unit::{Base, Hop, TrialContext, Unit},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

/// A model and its data, which last for longer than the bench looks.
struct Case {
    hidden: &'static [u32],
    features: u32,
    rows: u32,
    batch_size: u32,
}

fn main() {
    let small = Case { hidden: &[64], features: 64, rows: size::of(400_000, 4_000), batch_size: 1 };
    let large = Case {
        hidden: &[1024, 1024],
        features: 784,
        rows: size::of(60_000, 2_000),
        batch_size: 512,
    };
    for case in [small, large] {
        for percent in [50, 10] {
            let ratio = ratio(&case, percent);
            let Case { hidden, batch_size, .. } = case;
            let asked = f64::from(percent);
            println!(
                "{}",
                serde_json::json!({
                    "name": format!("share of a core at a pace of {percent} %, batches of {batch_size} through mlp {hidden:?}"),
                    "value": (ratio * 10.0).round() / 10.0, "unit": "%", "anchor": asked,
                    "ratio": (ratio / asked * 1000.0).round() / 1000.0,
                })
            );
        }
    }
}

/// The processor time that a hop takes of a core, in percent.
fn ratio(case: &Case, percent: u8) -> f64 {
    let folder = tempfile::tempdir().unwrap();
    let mut process = Command::new(env!("CARGO_BIN_EXE_sojourn-trainer"))
        .args(["--threads", "1"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut requests = process.stdin.take().unwrap();
    let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
    let mut next = || lines.next().unwrap().unwrap();
    next();
    for request in
        [TrainerRequest::Pace(Pace::percent(percent).unwrap()), request(folder.path(), case)]
    {
        writeln!(requests, "{}", serde_json::to_string(&request).unwrap()).unwrap();
    }
    // The shard is read and the first batches are done.
    next();
    let (before, started) = (ticks(process.id()), Instant::now());
    thread::sleep(size::of(Duration::from_secs(10), Duration::from_millis(100)));
    let (after, seconds) = (ticks(process.id()), started.elapsed().as_secs_f64());
    // In the middle of its hop.
    process.kill().unwrap();
    process.wait().unwrap();
    // A tick is a hundredth of a second on every Linux.
    (after - before) / seconds
}

/// The processor time that a process has taken, in hundredths of a second.
fn ticks(pid: u32) -> f64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let (_, fields) = stat.rsplit_once(") ").unwrap();
    fields.split(' ').skip(11).take(2).map(|ticks| ticks.parse::<f64>().unwrap()).sum()
}

/// A hop over all of the rows.
fn request(folder: &Path, case: &Case) -> TrainerRequest {
    let count = case.rows * case.features;
    let x: Vec<f32> =
        (0..count).map(|at| f32::from(u8::try_from(at % 251).unwrap()) / 251.0).collect();
    let y: Vec<i64> = (0..case.rows).map(|row| i64::from(row % 10)).collect();
    let (rows, features) = (u64::from(case.rows), u64::from(case.features));
    let file =
        encode(&[Tensor::f32("x", [rows, features], &x), Tensor::i64("y", [rows], &y)]).unwrap();
    let blob = BlobRef { sha256: Digest::of(&file), bytes: u64::try_from(file.len()).unwrap() };
    let path = folder.join("shard");
    fs::write(&path, &file).unwrap();
    let optimizer = Optimizer::new(OptimizerName::Adam, 1e-3);
    let training = TrainingConfig::new(1, case.batch_size, Loss::CrossEntropy, optimizer);
    let context = TrialContext {
        config: TrialConfig { model: Architecture::mlp(case.hidden), training },
        columns: Vec::new(),
        shape: vec![case.features],
        outputs: 10,
        scaling: Scaling::None,
        targets: Targets::Plain,
        total_steps: 1_000_000,
        pinned_threads: None,
    };
    TrainerRequest::Run(Box::new(RunUnit {
        unit: Unit::Train(Hop {
            job: JobId(1),
            trial: TrialId(0),
            base: Base::Initial { seed: 1 },
            start: Position { epoch: Epoch(0), shard: ShardId(0), batch: 0, step: 0 },
            shard: Shard { blob, rows: case.rows },
            seed: 3,
            context: context.into(),
            then: Vec::new(),
            until: None,
        }),
        files: BTreeMap::from([(blob.sha256, path)]),
        output: folder.join("output"),
        pending: BTreeSet::new(),
        until: None,
        keep_every: None,
    }))
}

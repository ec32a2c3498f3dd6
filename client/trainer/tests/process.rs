//! The built program as a slot sees it: lines in, lines out, and its end.

#![expect(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

#[path = "process/memory.rs"]
mod memory;

use sojourn_codec::{Tensor, encode};
use sojourn_protocol::{
    digest::{BlobRef, Digest},
    ids::{Epoch, JobId, ShardId, TrialId, Version},
    manifest::{DataSplit, Scaling, Shard, Targets},
    metrics::Counting,
    position::Position,
    report::{FailureKind, Trained},
    spec::{Architecture, Loss, Optimizer, OptimizerName, TrainingConfig, TrialConfig},
    trainer::{
        Hello, InstructionSet, Pace, Progress, RunUnit, ShardArrived, TRAINER_PROTOCOL,
        TrainerLine, TrainerRequest, TrainerUpdate,
    },
    unit::{Base, Evaluation, Hop, NextHop, TrialContext, Unit},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    io::{BufRead, BufReader, Write},
    os::unix::process::ExitStatusExt,
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};
use tempfile::TempDir;

struct Trainer {
    process: Child,
    requests: Option<ChildStdin>,
    lines: BufReader<ChildStdout>,
    hello: Hello,
}

impl Drop for Trainer {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

impl Trainer {
    fn start() -> Self {
        Self::start_with(&[])
    }

    /// A trainer with some variables of the environment of its own.
    fn start_with(variables: &[(&str, &str)]) -> Self {
        let mut process = Command::new(env!("CARGO_BIN_EXE_sojourn-trainer"))
            .args(["--threads", "1"])
            .env_remove("LD_LIBRARY_PATH")
            .envs(InstructionSet::COMMON.environment().iter().copied())
            .envs(variables.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let requests = process.stdin.take();
        let mut lines = BufReader::new(process.stdout.take().unwrap());
        let TrainerLine::Hello(hello) = line(&mut lines) else { panic!("no hello") };
        Self { process, requests, lines, hello }
    }

    fn send(&mut self, text: &str) {
        let requests = self.requests.as_mut().unwrap();
        writeln!(requests, "{text}").unwrap();
        requests.flush().unwrap();
    }

    /// The answer to a unit, past its progress.
    fn answer(&mut self) -> TrainerLine {
        loop {
            match line(&mut self.lines) {
                TrainerLine::Update(_) => {}
                answer => return answer,
            }
        }
    }

    fn train(&mut self, request: &TrainerRequest) -> Trained {
        self.send(&serde_json::to_string(request).unwrap());
        match self.answer() {
            TrainerLine::Trained(trained) => trained,
            other => panic!("{other:?}"),
        }
    }
}

fn line(lines: &mut impl BufRead) -> TrainerLine {
    let mut text = String::new();
    lines.read_line(&mut text).unwrap();
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("`{text}`: {error}"))
}

/// A hop over `rows` rows, in batches of `batch_size`.
fn request(folder: &Path, rows: u32, batch_size: u32) -> TrainerRequest {
    let count = u64::from(rows);
    let x: Vec<f32> = (0..rows * 4).map(|at| f32::from(u8::try_from(at % 7).unwrap())).collect();
    let y: Vec<i64> = (0..rows).map(|row| i64::from(row % 2)).collect();
    let file = encode(&[Tensor::f32("x", [count, 4], &x), Tensor::i64("y", [count], &y)]).unwrap();
    let blob = BlobRef { sha256: Digest::of(&file), bytes: file.len() as u64 };
    let path = folder.join("shard");
    std::fs::write(&path, &file).unwrap();
    let optimizer = Optimizer::new(OptimizerName::Adam, 0.001);
    let training = TrainingConfig::new(1, batch_size, Loss::CrossEntropy, optimizer);
    let context = TrialContext {
        config: TrialConfig { model: Architecture::mlp([16]), training },
        columns: Vec::new(),
        shape: vec![4],
        outputs: 2,
        scaling: Scaling::None,
        targets: Targets::Plain,
        total_steps: 100,
        pinned_threads: Some(1),
    };
    let hop = Hop {
        job: JobId(1),
        trial: TrialId(0),
        base: Base::Initial { seed: 4 },
        start: Position { epoch: Epoch(0), shard: ShardId(0), batch: 0, step: 0 },
        shard: Shard { blob, rows },
        seed: 9,
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

#[test]
fn two_processes_say_and_train_the_same() {
    let folder = TempDir::new().unwrap();
    let request = request(folder.path(), 100, 8);
    let (mut one, mut two) = (Trainer::start(), Trainer::start());
    assert_eq!(one.hello.protocol, TRAINER_PROTOCOL);
    assert_eq!(one.hello.threads, 1);
    assert_eq!(one.hello.numeric_class, two.hello.numeric_class);
    assert!(one.hello.flops > 0.0);
    let first = one.train(&request);
    let file = std::fs::read(folder.path().join("output")).unwrap();
    assert_eq!(first.checkpoint.sha256, Digest::of(&file));
    assert_eq!(first.checkpoint.bytes, file.len() as u64);
    assert_eq!(first.sums.rows, 100);
    // The same from another process, and from one that has trained before.
    assert_eq!(two.train(&request).checkpoint, first.checkpoint);
    assert_eq!(one.train(&request).checkpoint, first.checkpoint);
}

#[test]
fn a_unit_that_stops_early_is_gone_on_with() {
    let folder = TempDir::new().unwrap();
    let whole = request(folder.path(), 100, 8);
    let mut trainer = Trainer::start();
    let expected = trainer.train(&whole).checkpoint;

    let TrainerRequest::Run(mut part) = whole else { panic!("a unit") };
    part.until = Some(5);
    part.output = folder.path().join("partial");
    let partial = trainer.train(&TrainerRequest::Run(part.clone()));
    assert_eq!((partial.end.batch, partial.end.step, partial.sums.rows), (5, 5, 40));

    let Unit::Train(hop) = &mut part.unit else { panic!("a hop") };
    hop.base = Base::Checkpoint { version: Version(1), blob: partial.checkpoint };
    hop.start = partial.end;
    part.files.insert(partial.checkpoint.sha256, part.output.clone());
    part.output = folder.path().join("rest");
    part.until = None;
    let rest = trainer.train(&TrainerRequest::Run(part));
    assert_eq!((rest.end.batch, rest.base), (13, Version(1)));
    assert_eq!(rest.checkpoint, expected);
}

#[test]
fn a_unit_that_is_told_to_stop_is_gone_on_with() {
    let folder = TempDir::new().unwrap();
    let whole = request(folder.path(), 20_000, 8);
    let mut trainer = Trainer::start();
    let expected = trainer.train(&whole).checkpoint;

    // Told at once, it ends after the first batches.
    trainer.send(&serde_json::to_string(&whole).unwrap());
    trainer.send(&serde_json::to_string(&TrainerRequest::Stop).unwrap());
    let TrainerLine::Trained(partial) = trainer.answer() else { panic!("it stops with a part") };
    assert!((1..2_500).contains(&partial.end.batch), "{partial:?}");
    assert_eq!(partial.sums.rows, u64::from(partial.end.batch) * 8);
    // It has no effect on what comes then, nor where nothing runs.
    trainer.send(&serde_json::to_string(&TrainerRequest::Stop).unwrap());

    let TrainerRequest::Run(mut rest) = whole else { panic!("a unit") };
    let Unit::Train(hop) = &mut rest.unit else { panic!("a hop") };
    hop.base = Base::Checkpoint { version: Version(1), blob: partial.checkpoint };
    hop.start = partial.end;
    let part = folder.path().join("partial");
    std::fs::rename(&rest.output, &part).unwrap();
    rest.files.insert(partial.checkpoint.sha256, part);
    let rest = trainer.train(&TrainerRequest::Run(rest));
    assert_eq!((rest.end.batch, rest.checkpoint), (2_500, expected));
}

impl Trainer {
    fn pace(&mut self, percent: u8) {
        let pace = Pace::percent(percent).unwrap();
        self.send(&serde_json::to_string(&TrainerRequest::Pace(pace)).unwrap());
    }

    fn progress(&mut self) -> Progress {
        match line(&mut self.lines) {
            TrainerLine::Update(TrainerUpdate::Progress(progress)) => progress,
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_paused_unit_stands_still_after_the_batch_that_it_is_at() {
    let folder = TempDir::new().unwrap();
    let whole = request(folder.path(), 20_000, 8);
    let mut trainer = Trainer::start();
    let expected = trainer.train(&whole);

    // UnitMessages before: it holds from the first batch on, and the stop finds the unit there.
    trainer.pace(0);
    trainer.send(&serde_json::to_string(&whole).unwrap());
    assert_eq!(trainer.progress(), Progress { done: 1, of: 2_500 });
    trainer.send(&serde_json::to_string(&TrainerRequest::Stop).unwrap());
    let TrainerLine::Trained(part) = trainer.answer() else { panic!("it stops with a part") };
    assert_eq!(part.end.batch, 1);

    // It holds for the next unit too, which goes on at another pace and makes the same bytes.
    trainer.send(&serde_json::to_string(&whole).unwrap());
    assert_eq!(trainer.progress().done, 1);
    trainer.pace(90);
    let TrainerLine::Trained(trained) = trainer.answer() else { panic!("it goes on") };
    assert_eq!((trained.checkpoint, trained.sums), (expected.checkpoint, expected.sums));
}

#[test]
fn a_unit_that_is_paused_as_it_runs_does_no_batch_more_than_it_tells() {
    let folder = TempDir::new().unwrap();
    let long = request(folder.path(), 1_000_000, 1);
    let mut trainer = Trainer::start();
    trainer.send(&serde_json::to_string(&long).unwrap());
    let before = trainer.progress();
    trainer.pace(0);
    // As it stands still, it tells where; perhaps after what it was telling anyway.
    let mut told = trainer.progress();
    assert!(told.done >= before.done && told.done < told.of);
    trainer.send(&serde_json::to_string(&TrainerRequest::Stop).unwrap());
    let part = loop {
        match line(&mut trainer.lines) {
            TrainerLine::Update(TrainerUpdate::Progress(progress)) => told = progress,
            TrainerLine::Update(TrainerUpdate::PeakMemory(bytes)) => {
                assert!(bytes > 1 << 20, "{bytes}")
            }
            TrainerLine::Update(TrainerUpdate::Usage(_)) => {}
            TrainerLine::Trained(part) => break part,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(part.end.batch, told.done);
}

#[test]
fn an_evaluation_stands_still_between_its_chunks() {
    let folder = TempDir::new().unwrap();
    let TrainerRequest::Run(trained) = request(folder.path(), 3_000, 8) else { panic!("a unit") };
    let mut trainer = Trainer::start();
    let checkpoint = trainer.train(&TrainerRequest::Run(trained.clone())).checkpoint;
    let Unit::Train(hop) = &trained.unit else { panic!("a hop") };
    let evaluation = Evaluation {
        job: hop.job,
        trial: hop.trial,
        epoch: Epoch(0),
        version: Version(1),
        checkpoint,
        shards: vec![hop.shard],
        split: DataSplit::Valid,
        counting: Counting::default(),
        context: hop.context.clone(),
    };
    let mut files = trained.files.clone();
    files.insert(checkpoint.sha256, trained.output.clone());
    let unit = Unit::Evaluate(evaluation);
    let request = TrainerRequest::Run(Box::new(RunUnit { unit, files, ..*trained }));
    trainer.pace(0);
    trainer.send(&serde_json::to_string(&request).unwrap());
    assert_eq!(trainer.progress(), Progress { done: 1024 / 8, of: 375 });
    trainer.pace(100);
    let TrainerLine::Evaluated(evaluated) = trainer.answer() else { panic!("it goes on") };
    assert_eq!(evaluated.shards[0].rows, 3_000);
}

/// A unit of three legs, of which the files of the last two are still to come: said with these.
fn of_three(folder: &Path) -> (TrainerRequest, RunUnit, Vec<ShardArrived>) {
    let TrainerRequest::Run(whole) = request(folder, 20, 8) else { panic!("a unit") };
    let mut whole = *whole;
    let Unit::Train(hop) = &mut whole.unit else { panic!("a hop") };
    let mut later = Vec::new();
    for n in 1..3 {
        let place = folder.join(n.to_string());
        std::fs::create_dir(&place).unwrap();
        let TrainerRequest::Run(other) = request(&place, 20 + n, 8) else { panic!("a unit") };
        let Unit::Train(of) = other.unit else { panic!("a hop") };
        hop.then.push(NextHop { shard_id: ShardId(n), shard: of.shard, seed: u64::from(n) });
        let (blob, path) = other.files.into_iter().next().unwrap();
        whole.files.insert(blob, path.clone());
        later.push(ShardArrived { blob, path });
    }
    let mut begins = whole.clone();
    begins.files.retain(|blob, _| later.iter().all(|here| here.blob != *blob));
    begins.pending = later.iter().map(|here| here.blob).collect();
    (TrainerRequest::Run(Box::new(whole)), begins, later)
}

impl Trainer {
    fn here(&mut self, file: &ShardArrived) {
        self.send(&serde_json::to_string(&TrainerRequest::ShardArrived(file.clone())).unwrap());
    }

    /// The shard that it waits for, and after how many batches.
    fn waits(&mut self) -> (Digest, u32) {
        let mut done = 0;
        loop {
            match line(&mut self.lines) {
                TrainerLine::Update(TrainerUpdate::Progress(progress)) => done = progress.done,
                TrainerLine::Update(TrainerUpdate::ShardNeeded(blob)) => return (blob, done),
                TrainerLine::Update(TrainerUpdate::Usage(_)) => {}
                other => panic!("{other:?}"),
            }
        }
    }
}

#[test]
fn a_unit_begins_before_its_later_shards_are_there_and_makes_the_same_bytes() {
    let folder = TempDir::new().unwrap();
    let (whole, begins, later) = of_three(folder.path());
    let begins = serde_json::to_string(&TrainerRequest::Run(Box::new(begins))).unwrap();
    let expected = Trainer::start().train(&whole);

    // One by one, each when it is waited for.
    let mut trainer = Trainer::start();
    trainer.send(&begins);
    for (file, done) in later.iter().zip([3, 6]) {
        assert_eq!(trainer.waits(), (file.blob, done));
        trainer.here(file);
    }
    let TrainerLine::Trained(trained) = trainer.answer() else { panic!("it is trained") };
    assert_eq!((trained.end, trained.sums), (expected.end, expected.sums));
    assert_eq!(trained.checkpoint, expected.checkpoint);

    // In another order, and perhaps before they are waited for.
    trainer.send(&begins);
    for file in later.iter().rev() {
        trainer.here(file);
    }
    let TrainerLine::Trained(trained) = trainer.answer() else { panic!("it is trained") };
    assert_eq!(trained.checkpoint, expected.checkpoint);

    // What was said of one unit isn't said of the next.
    trainer.send(&begins);
    assert_eq!(trainer.waits(), (later[0].blob, 3));
    trainer.here(&later[0]);
    assert_eq!(trainer.waits(), (later[1].blob, 6));
    trainer.send(&serde_json::to_string(&TrainerRequest::Stop).unwrap());
    let TrainerLine::Trained(part) = trainer.answer() else { panic!("it stops with a part") };
    assert_eq!((part.end.shard, part.end.batch, part.end.step), (ShardId(1), 3, 6));
}

#[test]
fn a_trainer_that_waits_for_a_shard_ends_with_its_stdin() {
    let folder = TempDir::new().unwrap();
    let (_, begins, later) = of_three(folder.path());
    let mut trainer = Trainer::start();
    trainer.send(&serde_json::to_string(&TrainerRequest::Run(Box::new(begins))).unwrap());
    assert_eq!(trainer.waits(), (later[0].blob, 3));
    trainer.requests.take();
    let status = trainer.process.wait().unwrap();
    assert_eq!(status.signal(), Some(9), "{status}");
}

#[test]
fn a_paused_trainer_ends_with_its_stdin() {
    let folder = TempDir::new().unwrap();
    let mut trainer = Trainer::start();
    trainer.pace(0);
    trainer.send(&serde_json::to_string(&request(folder.path(), 20, 8)).unwrap());
    assert_eq!(trainer.progress().done, 1);
    trainer.requests.take();
    let status = trainer.process.wait().unwrap();
    assert_eq!(status.signal(), Some(9), "{status}");
}

#[test]
fn bad_requests_are_answered_and_the_next_is_done() {
    let folder = TempDir::new().unwrap();
    let good = request(folder.path(), 20, 8);
    let mut trainer = Trainer::start();
    let TrainerRequest::Run(mut absent) = good.clone() else { panic!("a unit") };
    absent.files.clear();
    let absent = serde_json::to_string(&TrainerRequest::Run(absent)).unwrap();
    let refused = |trainer: &mut Trainer, bad: &str| {
        trainer.send(bad);
        let TrainerLine::Failed(failure) = trainer.answer() else { panic!("`{bad}` was taken") };
        failure
    };
    for bad in ["", "no json", "{\"walk\":1}", &absent] {
        assert_eq!(refused(&mut trainer, bad).kind, FailureKind::Trainer);
    }
    // Units as a later version may send them.
    let text = serde_json::to_string(&good).unwrap();
    let later = [
        (r#""arch":"mlp""#, r#""arch":"vit""#),
        (r#""name":"adam""#, r#""name":"muon""#),
        (r#""batch_size":8"#, r#""batch_size":8,"precision":"fp4""#),
        (r#""batch_size":8"#, r#""batch_size":8,"warp":true"#),
    ];
    for (now, then) in later {
        assert!(text.contains(now), "{text}");
        let failure = refused(&mut trainer, &text.replacen(now, then, 1));
        assert_eq!(failure.kind, FailureKind::Unsupported, "{then}: {}", failure.message);
        assert!(failure.message.contains("doesn't support the unit"), "{}", failure.message);
    }
    let TrainerRequest::Run(mut nowhere) = good.clone() else { panic!("a unit") };
    nowhere.output = folder.path().join("no/such/folder/output");
    trainer.send(&serde_json::to_string(&TrainerRequest::Run(nowhere)).unwrap());
    let TrainerLine::Failed(failure) = trainer.answer() else { panic!("written nowhere") };
    assert!(failure.message.starts_with("can't write"), "{}", failure.message);
    assert_eq!(failure.kind, FailureKind::Died);
    assert_eq!(trainer.train(&good).end.batch, 3);
}

#[test]
fn the_end_of_stdin_ends_an_idle_trainer_cleanly() {
    let mut trainer = Trainer::start();
    let folder = TempDir::new().unwrap();
    trainer.train(&request(folder.path(), 20, 8));
    trainer.requests.take();
    let status = trainer.process.wait().unwrap();
    assert!(status.success(), "{status}");
}

#[test]
fn the_end_of_stdin_ends_a_trainer_in_the_middle_of_a_unit() {
    let folder = TempDir::new().unwrap();
    // A million steps, of which the first sign is awaited.
    let request = request(folder.path(), 1_000_000, 1);
    let mut trainer = Trainer::start();
    trainer.send(&serde_json::to_string(&request).unwrap());
    let TrainerLine::Update(TrainerUpdate::Progress(progress)) = line(&mut trainer.lines) else {
        panic!("no progress")
    };
    assert!(progress.done < progress.of && progress.of == 1_000_000);
    trainer.requests.take();
    let status = trainer.process.wait().unwrap();
    assert_eq!(status.signal(), Some(9), "{status}");
    assert!(!folder.path().join("output").exists());
}

#[test]
fn wrong_arguments_are_refused() {
    let trainer = |arguments: &[&str]| {
        let program = env!("CARGO_BIN_EXE_sojourn-trainer");
        Command::new(program).args(arguments).stdin(Stdio::null()).output().unwrap()
    };
    for wrong in [&["--threads", "none"][..], &["--thread"], &["train.json"]] {
        let output = trainer(wrong);
        assert_eq!(output.status.code(), Some(2), "{wrong:?}");
        assert!(!output.stderr.is_empty() && output.stdout.is_empty());
    }
}

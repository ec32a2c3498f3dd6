//! The slot with trainers that are small shell scripts: good ones, dying ones, babbling ones.

#![expect(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

use sojourn_protocol::{
    digest::{BlobRef, Digest},
    engine::Engine,
    ids::{Epoch, JobId, ShardId, TrialId, Version},
    manifest::{Scaling, Shard, Targets},
    position::Position,
    report::{Failure, FailureKind, Outcome, Sums, Trained},
    spec::{Architecture, Loss, Optimizer, OptimizerName, TrainingConfig, TrialConfig},
    trainer::{
        Hello, InstructionSet, Pace, Predict, Predicted, Progress, RunUnit, ShardArrived,
        TRAINER_PROTOCOL, TrainerLine, TrainerUpdate,
    },
    unit::{Base, Hop, TrialContext, Unit},
};
use sojourn_slot::{
    Device, MemoryRatio, Places, Slot, SlotConfig, SlotError, TrainerGroup, full_pace,
};
use std::{
    fs, future::pending, os::unix::fs::PermissionsExt, path::Path, process::Command, sync::Arc,
};
use tempfile::TempDir;
use tokio::sync::{mpsc::unbounded_channel, watch};

fn hello(protocol: u32) -> String {
    line(&TrainerLine::Hello(Hello {
        protocol,
        engine: Engine {
            name: "none".into(),
            framework: "none".into(),
            models: vec!["mlp".into()],
        },
        threads: 1,
        numeric_class: Digest::of(b"class"),
        flops: 1e9,
        device: "cpu".into(),
    }))
}

fn trained() -> Trained {
    Trained {
        base: Version(0),
        checkpoint: BlobRef { sha256: Digest::of(b"out"), bytes: 3 },
        end: Position { epoch: Epoch(0), shard: ShardId(0), batch: 2, step: 2 },
        sums: Sums { rows: 16, loss: 1.0, correct: Some(3), ..Sums::default() },
        train_micros: 5,
    }
}

fn line(line: &TrainerLine) -> String {
    format!("echo '{}'\n", serde_json::to_string(line).unwrap())
}

/// A slot whose trainer is a shell script.
fn slot(folder: &TempDir, script: &str) -> Slot {
    Slot::new(SlotConfig { threads: 3, ..SlotConfig::new(write(folder.path(), script)) })
}

fn write(folder: &Path, script: &str) -> std::path::PathBuf {
    let (text, trainer) = (folder.join("text"), folder.join("trainer"));
    fs::write(&text, format!("#!/bin/sh\n{script}")).unwrap();
    fs::set_permissions(&text, fs::Permissions::from_mode(0o755)).unwrap();
    // By another process: what this one has open for writing a child of another test may hold for a
    // moment, and then it can't be started.
    assert!(Command::new("cp").arg("-p").args([&text, &trainer]).status().unwrap().success());
    trainer
}

fn unit(pinned_threads: Option<u32>) -> RunUnit {
    let optimizer = Optimizer::new(OptimizerName::Sgd, 0.1);
    let training = TrainingConfig::new(1, 8, Loss::CrossEntropy, optimizer);
    let context = TrialContext {
        config: TrialConfig { model: Architecture::mlp([4]), training },
        columns: Vec::new(),
        shape: vec![4],
        outputs: 2,
        scaling: Scaling::None,
        targets: Targets::Plain,
        total_steps: 2,
        pinned_threads,
    };
    let shard = Shard { blob: BlobRef { sha256: Digest::of(b"shard"), bytes: 5 }, rows: 16 };
    RunUnit {
        unit: Unit::Train(Hop {
            job: JobId(1),
            trial: TrialId(0),
            base: Base::Initial { seed: 1 },
            start: Position { epoch: Epoch(0), shard: ShardId(0), batch: 0, step: 0 },
            shard,
            seed: 2,
            context: context.into(),
            then: Vec::new(),
            until: None,
        }),
        files: Default::default(),
        output: "out".into(),
        pending: Default::default(),
        until: None,
        keep_every: None,
    }
}

fn failure(outcome: Outcome) -> (FailureKind, String) {
    match outcome {
        Outcome::Failed(failure) => (failure.kind, failure.message),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn one_trainer_runs_many_units_and_reports_progress() {
    let folder = TempDir::new().unwrap();
    let progress = line(&TrainerLine::Update(TrainerUpdate::Progress(Progress { done: 1, of: 2 })));
    let done = line(&TrainerLine::Trained(trained()));
    let starts = folder.path().join("starts");
    let script = format!(
        "echo $$ >> {}\n{}while read request; do\n{progress}{done}done\n",
        starts.display(),
        hello(TRAINER_PROTOCOL)
    );
    let mut slot = slot(&folder, &script);
    assert_eq!(slot.hello(Some(1)).await.unwrap().numeric_class, Digest::of(b"class"));
    for _ in 0..3 {
        let mut seen = Vec::new();
        let outcome =
            slot.run(unit(Some(1)), |told| seen.push(told), pending(), full_pace()).await.unwrap();
        assert_eq!(
            (outcome, seen),
            (
                Outcome::Trained(trained()),
                vec![TrainerUpdate::Progress(Progress { done: 1, of: 2 })]
            )
        );
    }
    assert_eq!(fs::read_to_string(&starts).unwrap().lines().count(), 1);
    slot.run(unit(None), |_| {}, pending(), full_pace()).await.unwrap();
    assert_eq!(fs::read_to_string(&starts).unwrap().lines().count(), 2, "another arithmetic");
}

#[tokio::test]
async fn pinned_units_pin_the_instruction_set_and_the_threads() {
    let folder = TempDir::new().unwrap();
    let seen = folder.path().join("seen");
    let script = format!(
        "echo \"$* $ATEN_CPU_CAPABILITY $OMP_NUM_THREADS\" >> {}\n{}cat >/dev/null\n",
        seen.display(),
        hello(TRAINER_PROTOCOL)
    );
    let mut slot = slot(&folder, &script);
    slot.hello(Some(2)).await.unwrap();
    slot.hello(None).await.unwrap();
    let seen = fs::read_to_string(&seen).unwrap();
    assert_eq!(seen.lines().collect::<Vec<_>>(), ["--threads 2 avx2 2", "--threads 3  3"]);
}

#[tokio::test]
async fn a_gpus_trainer_sees_that_gpu_alone_and_what_makes_it_reproducible() {
    let folder = TempDir::new().unwrap();
    let seen = folder.path().join("seen");
    let script = format!(
        "echo \"$* $CUDA_VISIBLE_DEVICES $LD_PRELOAD $PYTORCH_CUDA_ALLOC_CONF $CUBLAS_WORKSPACE_CONFIG\" >> {}\n{}cat >/dev/null\n",
        seen.display(),
        hello(TRAINER_PROTOCOL)
    );
    let trainer = write(folder.path(), &script);
    // Not there: the loader says so on stderr and goes on, as for the real trainer.
    let library = folder.path().join("libtorch_cuda.so");
    let device = Device::Cuda { uuid: "GPU-1b2c".into(), library: library.clone() };
    let gpu_memory = Some(MemoryRatio::of(1, 4));
    let config = SlotConfig { threads: 3, device, gpu_memory, ..SlotConfig::new(trainer) };
    let mut slot = Slot::new(config);
    slot.hello(Some(1)).await.unwrap();
    slot.hello(None).await.unwrap();
    let library = library.display();
    let ratio = "per_process_memory_fraction:0.2500";
    // The first is for units that promise reproducible bytes.
    let expected = ["1 --device cuda:0 --reproducible", "3 --device cuda:0"]
        .map(|arguments| format!("--threads {arguments} GPU-1b2c {library} {ratio} :4096:8"));
    let seen = fs::read_to_string(&seen).unwrap();
    assert_eq!(seen.lines().collect::<Vec<_>>(), expected);
}

#[tokio::test]
async fn other_threads_count_for_the_next_unit_that_pins_none() {
    let folder = TempDir::new().unwrap();
    let seen = folder.path().join("seen");
    let script = format!(
        "echo \"$*\" >> {}\n{}while read request; do\n{}done\n",
        seen.display(),
        hello(TRAINER_PROTOCOL),
        line(&TrainerLine::Trained(trained()))
    );
    let mut slot = slot(&folder, &script);
    for (threads, pinned) in [(3, None), (2, None), (2, None), (1, Some(4)), (4, Some(4))] {
        slot.set_threads(threads);
        let outcome = slot.run(unit(pinned), |_| {}, pending(), full_pace()).await.unwrap();
        assert_eq!(outcome, Outcome::Trained(trained()));
    }
    let seen = fs::read_to_string(&seen).unwrap();
    assert_eq!(seen.lines().collect::<Vec<_>>(), ["--threads 3", "--threads 2", "--threads 4"]);
}

/// A trainer whose class is what the file `class` says when it starts; `done` is what it does of each unit.
fn of_class(class: &Path, done: &str) -> String {
    let hello = hello(TRAINER_PROTOCOL);
    let hello = hello.replace(&Digest::of(b"class").to_string(), "'$(cat CLASS)'");
    let hello = hello.replace("CLASS", &class.display().to_string());
    format!("{hello}while read request; do\n{done}done\n")
}

#[tokio::test]
async fn a_trainer_of_another_numeric_class_than_those_before_it_is_refused() {
    let folder = TempDir::new().unwrap();
    let class = folder.path().join("class");
    let become_of = |name: &[u8]| fs::write(&class, Digest::of(name).to_string()).unwrap();
    let done = line(&TrainerLine::Trained(trained()));
    let once = format!("{done}exit\n");
    // The changed program is met where a trainer has died, where units change the mode back, and where
    // they change to a mode that is new.
    for (script, before, after) in [
        (of_class(&class, &once), &[Some(1)][..], Some(1)),
        (of_class(&class, &done), &[Some(1), None], Some(1)),
        (of_class(&class, &done), &[Some(1), Some(2), None], Some(2)),
        (of_class(&class, &done), &[Some(1)], Some(2)),
    ] {
        let mut slot = slot(&folder, &script);
        become_of(b"first");
        for pinned in before {
            let outcome = slot.run(unit(*pinned), |_| {}, pending(), full_pace()).await.unwrap();
            assert_eq!(outcome, Outcome::Trained(trained()));
        }
        become_of(b"second");
        let mut refused = slot.run(unit(after), |_| {}, pending(), full_pace()).await;
        if let Ok(Outcome::Failed(failure)) = &refused {
            // It read the request before it ended: the next one starts anew.
            assert_eq!(failure.kind, FailureKind::Died);
            refused = slot.run(unit(after), |_| {}, pending(), full_pace()).await;
        }
        let Err(error) = refused else { panic!("{before:?} {after:?}: {refused:?}") };
        assert!(matches!(error, SlotError::Class { .. }), "{error}");
        let text = error.to_string();
        let (was, found) = (Digest::of(b"first").short(), Digest::of(b"second").short());
        assert!(
            text.contains(&format!("now of numeric class {found}, and was of {was}")),
            "{text}"
        );
        // What no unit pins is promised to nobody; and what was before may come back.
        slot.run(unit(None), |_| {}, pending(), full_pace()).await.unwrap();
        become_of(b"first");
        slot.run(unit(after), |_| {}, pending(), full_pace()).await.unwrap();
    }
}

#[tokio::test]
async fn a_trainer_that_dies_fails_the_unit_with_the_end_of_its_log_and_is_replaced() {
    let folder = TempDir::new().unwrap();
    let script = format!(
        "{}read request\necho 'CUDA driver crashed' >&2\nkill -SEGV $$\n",
        hello(TRAINER_PROTOCOL)
    );
    let mut slot = slot(&folder, &script);
    for _ in 0..2 {
        let (kind, message) =
            failure(slot.run(unit(Some(1)), |_| {}, pending(), full_pace()).await.unwrap());
        assert_eq!(kind, FailureKind::Died);
        assert!(
            message.contains("CUDA driver crashed") && message.contains("SIGSEGV"),
            "{message}"
        );
    }
}

#[tokio::test]
async fn rows_are_predicted_refused_or_answered_beside_the_question() {
    let folder = TempDir::new().unwrap();
    let done = line(&TrainerLine::Predicted(Predicted { rows: 7 }));
    let refusal = Failure { kind: FailureKind::Trainer, message: "no such rows".into() };
    let failed = line(&TrainerLine::Failed(refusal.clone()));
    let strange = line(&TrainerLine::Trained(trained()));
    let script = format!(
        "{}for answer in 1 2 3; do read request; case $answer in\n1) {done} ;;\n2) {failed};;\n3) {strange};;\nesac; done\n",
        hello(TRAINER_PROTOCOL)
    );
    let mut slot = slot(&folder, &script);
    let Unit::Train(hop) = unit(None).unit else { panic!("a hop") };
    let request = Predict {
        context: TrialContext::clone(&hop.context),
        checkpoint: Digest::of(b"model"),
        files: Default::default(),
        rows: "rows".into(),
        output: "outputs".into(),
    };
    assert_eq!(slot.predict(request.clone()).await.unwrap(), Ok(Predicted { rows: 7 }));
    assert_eq!(slot.predict(request.clone()).await.unwrap(), Err(refusal));
    let failure = slot.predict(request).await.unwrap().unwrap_err();
    assert_eq!(failure.kind, FailureKind::Died);
    assert!(failure.message.contains("another question"), "{}", failure.message);
}

#[tokio::test]
async fn a_trainer_that_the_kernel_ends_for_want_of_memory_says_so_and_another_kill_does_not() {
    let folder = TempDir::new().unwrap();
    let events = folder.path().join("memory.events");
    let script = format!(
        "{}read request\necho 'oom_kill 1' > {}\nkill -KILL $$\n",
        hello(TRAINER_PROTOCOL),
        events.display()
    );
    let config = SlotConfig::new(write(folder.path(), &script));
    let places = Places { kills: Some(events), ..Places::default() };
    let mut slot =
        Slot::new(SlotConfig { trainer_group: Arc::new(TrainerGroup::new(places)), ..config });
    for expected in [FailureKind::OutOfMemory, FailureKind::Died] {
        let outcome = slot.run(unit(Some(1)), |_| {}, pending(), full_pace()).await.unwrap();
        let (kind, message) = failure(outcome);
        assert_eq!(kind, expected);
        assert!(message.contains("SIGKILL"), "{message}");
    }
}

#[tokio::test]
async fn a_trainer_that_is_ended_for_want_of_memory_says_why() {
    let folder = TempDir::new().unwrap();
    let progress = line(&TrainerLine::Update(TrainerUpdate::Progress(Progress { done: 1, of: 2 })));
    let script = format!("{}read request\n{progress}read forever\n", hello(TRAINER_PROTOCOL));
    let config = SlotConfig::new(write(folder.path(), &script));
    let trainer_group = Arc::clone(&config.trainer_group);
    let mut slot = Slot::new(config);
    let end = |_| {
        let [pid] = trainer_group.pids()[..] else { panic!("{:?}", trainer_group.pids()) };
        assert!(trainer_group.condemn(pid, "it took most".to_owned()));
        assert!(Command::new("kill").args(["-KILL", &pid.to_string()]).status().unwrap().success());
    };
    match slot.run(unit(Some(1)), end, pending(), full_pace()).await.unwrap() {
        Outcome::Failed(Failure { kind: FailureKind::OutOfMemory, message }) => {
            assert!(message.starts_with("it took most: the trainer died"), "{message}");
        }
        other => panic!("{other:?}"),
    }
    assert!(trainer_group.pids().is_empty(), "who has ended is no member");
}

#[tokio::test]
async fn a_trainer_that_died_while_idle_costs_no_unit() {
    let folder = TempDir::new().unwrap();
    let first = folder.path().join("first");
    let done = line(&TrainerLine::Trained(trained()));
    let script = format!(
        "{}if [ ! -e {path} ]; then touch {path}; exit 0; fi\nwhile read request; do\n{done}done\n",
        hello(TRAINER_PROTOCOL),
        path = first.display()
    );
    let mut slot = slot(&folder, &script);
    slot.hello(Some(1)).await.unwrap();
    // It ends right after its hello; wait for that, not for a time.
    while !first.exists() {
        tokio::task::yield_now().await;
    }
    let outcome = slot.run(unit(Some(1)), |_| {}, pending(), full_pace()).await.unwrap();
    if let Outcome::Failed(failure) = &outcome {
        // It read the request before it ended: that is a death in a unit.
        assert_eq!(failure.kind, FailureKind::Died);
        let outcome = slot.run(unit(Some(1)), |_| {}, pending(), full_pace()).await.unwrap();
        assert_eq!(outcome, Outcome::Trained(trained()));
    } else {
        assert_eq!(outcome, Outcome::Trained(trained()));
    }
}

#[tokio::test]
async fn a_trainer_is_told_to_stop_once() {
    let folder = TempDir::new().unwrap();
    // It answers when it is told to stop, and not before.
    let script = format!(
        "{}while read request; do\nread stop\necho \"$stop\" >> {}\n{}done\n",
        hello(TRAINER_PROTOCOL),
        folder.path().join("told").display(),
        line(&TrainerLine::Trained(trained())),
    );
    let mut slot = slot(&folder, &script);
    for _ in 0..2 {
        let outcome = slot.run(unit(Some(1)), |_| {}, async {}, full_pace()).await.unwrap();
        assert_eq!(outcome, Outcome::Trained(trained()));
    }
    let told = fs::read_to_string(folder.path().join("told")).unwrap();
    assert_eq!(told, "\"stop\"\n\"stop\"\n");
}

#[tokio::test]
async fn a_trainer_is_told_of_its_pace_and_so_is_the_one_that_comes_after_it() {
    let folder = TempDir::new().unwrap();
    let told = folder.path().join("told");
    // A unit is done when it may go at full pace.
    let script = format!(
        "{}while read request; do echo \"$request\" | cut -c 1-11 >> {}\ncase $request in\n'{{\"pace\":100}}') {} ;;\n*run*) {} ;; esac; done\n",
        hello(TRAINER_PROTOCOL),
        told.display(),
        line(&TrainerLine::Trained(trained())),
        line(&TrainerLine::Update(TrainerUpdate::Progress(Progress { done: 1, of: 2 }))),
    );
    let mut slot = slot(&folder, &script);
    let paces = watch::Sender::new(Pace::percent(30).unwrap());
    for pinned in [Some(1), None] {
        // Another mode is another process. At its sign of life it is to go otherwise.
        let on_update = |_| {
            paces.send_replace(Pace::FULL);
        };
        let outcome =
            slot.run(unit(pinned), on_update, pending(), paces.subscribe()).await.unwrap();
        assert_eq!(outcome, Outcome::Trained(trained()));
        paces.send_replace(Pace::PAUSED);
    }
    let told = fs::read_to_string(told).unwrap();
    let [first, second] = ["{\"pace\":30}", "{\"pace\":0}"];
    let (run, full) = ("{\"run\":{\"un", "{\"pace\":100");
    assert_eq!(told.lines().collect::<Vec<_>>(), [first, run, full, second, run, full]);
}

#[tokio::test]
async fn a_trainer_is_told_of_files_that_come_while_its_unit_runs() {
    let folder = TempDir::new().unwrap();
    let told = folder.path().join("told");
    // It waits for one file after the other.
    let shards = [b"one", b"two"].map(|name| Digest::of(name));
    let [first, second] =
        shards.map(|blob| line(&TrainerLine::Update(TrainerUpdate::ShardNeeded(blob))));
    let script = format!(
        "{}while read request; do\n{first}read one\necho \"$one\" >> {told}\n{second}read two\necho \"$two\" >> {told}\n{}done\n",
        hello(TRAINER_PROTOCOL),
        line(&TrainerLine::Trained(trained())),
        told = told.display(),
    );
    let mut slot = slot(&folder, &script);
    let (brings, files) = unbounded_channel();
    let mut brings = Some(brings);
    let mut waited = Vec::new();
    let on_update = |told| {
        let TrainerUpdate::ShardNeeded(blob) = told else { panic!("{told:?}") };
        waited.push(blob);
        let file = ShardArrived { blob, path: "there".into() };
        brings.as_ref().unwrap().send(file).unwrap();
        if blob == shards[1] {
            // Nothing more comes, and the unit is still waited for.
            brings = None;
        }
    };
    let outcome = slot.run_with(unit(Some(1)), on_update, pending(), full_pace(), files).await;
    assert_eq!((outcome.unwrap(), waited), (Outcome::Trained(trained()), shards.to_vec()));
    let expected =
        shards.map(|blob| format!("{{\"here\":{{\"blob\":\"{blob}\",\"path\":\"there\"}}}}\n"));
    assert_eq!(fs::read_to_string(&told).unwrap(), expected.concat());
}

#[tokio::test]
async fn garbage_fails_the_unit() {
    let folder = TempDir::new().unwrap();
    let script = format!("{}read request\necho 'Segmentation nonsense'\n", hello(TRAINER_PROTOCOL));
    let mut slot = slot(&folder, &script);
    let (kind, message) =
        failure(slot.run(unit(Some(1)), |_| {}, pending(), full_pace()).await.unwrap());
    assert_eq!(kind, FailureKind::Died);
    assert!(message.contains("Segmentation nonsense"), "{message}");
}

#[tokio::test]
async fn a_trainer_that_refuses_a_unit_as_unsupported_is_asked_for_the_next() {
    let folder = TempDir::new().unwrap();
    let refusal = Failure { kind: FailureKind::Unsupported, message: "no `mlp` here".into() };
    let script = format!(
        "{}read request\n{}read request\n{}read never\n",
        hello(TRAINER_PROTOCOL),
        line(&TrainerLine::Failed(refusal.clone())),
        line(&TrainerLine::Trained(trained())),
    );
    let mut slot = slot(&folder, &script);
    let engine = slot.hello(Some(1)).await.unwrap().engine;
    assert_eq!((engine.name.as_str(), engine.trains("mlp")), ("none", true));
    let refused = slot.run(unit(Some(1)), |_| {}, pending(), full_pace()).await.unwrap();
    assert_eq!(refused, Outcome::Failed(refusal));
    let next = slot.run(unit(Some(1)), |_| {}, pending(), full_pace()).await.unwrap();
    assert_eq!(next, Outcome::Trained(trained()), "of the same process");
}

#[tokio::test]
async fn a_unit_that_is_given_up_takes_its_trainer_with_it() {
    let folder = TempDir::new().unwrap();
    let started = folder.path().join("started");
    let script = format!(
        "{}read request\necho $$ > {}\nread never\n",
        hello(TRAINER_PROTOCOL),
        started.display()
    );
    let mut slot = slot(&folder, &script);
    let run = slot.run(unit(Some(1)), |_| {}, pending(), full_pace());
    let begun = async {
        loop {
            if let Ok(pid) = fs::read_to_string(&started)
                && pid.ends_with('\n')
            {
                return pid.trim().to_owned();
            }
            tokio::task::yield_now().await;
        }
    };
    // The run is dropped when the other has won.
    let pid = tokio::select! {
        outcome = run => panic!("{outcome:?}"),
        pid = begun => pid,
    };
    // Its process ends without anybody waiting for the slot.
    while fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z ")) {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn no_trainer_or_another_versions_is_an_error_that_names_it() {
    let folder = TempDir::new().unwrap();
    let missing = SlotConfig::new(folder.path().join("nothing"));
    let error = Slot::new(missing).hello(Some(1)).await.unwrap_err();
    assert!(matches!(error, SlotError::Start { .. }) && error.to_string().contains("nothing"));
    let error = slot(&folder, &hello(99)).hello(Some(1)).await.unwrap_err();
    assert!(matches!(error, SlotError::Protocol { found: 99, .. }), "{error}");
    // One from before trainers named their engine.
    let before = "{\"hello\":{\"protocol\":6,\"libtorch\":\"2.11.0\",\"threads\":2}}";
    let error = slot(&folder, &format!("echo '{before}'")).hello(Some(1)).await.unwrap_err();
    assert!(matches!(error, SlotError::Protocol { found: 6, .. }), "{error}");
    let nameless = hello(TRAINER_PROTOCOL).replace("\"none\"", "\"a\\u0007b\"");
    let error = slot(&folder, &nameless).hello(Some(1)).await.unwrap_err().to_string();
    assert!(error.contains("in its engine, `name`, which begins with"), "{error}");
    let silent = slot(&folder, "echo 'no libtorch here' >&2; exit 3").hello(Some(1)).await;
    let text = silent.unwrap_err().to_string();
    assert!(text.contains("no libtorch here") && text.contains("exit status: 3"), "{text}");
}

#[tokio::test]
async fn a_trainer_is_pinned_to_the_instruction_set_that_is_asked_for() {
    let folder = TempDir::new().unwrap();
    let hello = hello(TRAINER_PROTOCOL);
    // Its class is what its arithmetic follows from.
    let classes = InstructionSet::ALL.map(|set| {
        let pinned = Digest::of(set.name().as_bytes());
        format!(
            "test \"$ATEN_CPU_CAPABILITY $ONEDNN_MAX_CPU_ISA\" = '{} {}' && class={pinned}\n",
            variable(set, "ATEN_CPU_CAPABILITY"),
            variable(set, "ONEDNN_MAX_CPU_ISA")
        )
    });
    let said = hello.replace(&Digest::of(b"class").to_string(), "'$class'");
    let done = line(&TrainerLine::Trained(trained()));
    let (starts, free) = (folder.path().join("starts"), Digest::of(b"free"));
    let script = format!(
        "echo $$ >> {}\nclass={free}\n{}{said}while read request; do\n{done}done\n",
        starts.display(),
        classes.concat()
    );
    let mut slot = slot(&folder, &script);
    for set in InstructionSet::ALL {
        slot.set_instructions(set);
        let class = Digest::of(set.name().as_bytes());
        assert_eq!(slot.hello(Some(1)).await.unwrap().numeric_class, class);
        slot.run(unit(Some(1)), |_| {}, pending(), full_pace()).await.unwrap();
    }
    let started = || fs::read_to_string(&starts).unwrap().lines().count();
    assert_eq!(started(), 2, "one trainer for each");
    // Units that pin nothing have no instruction set to change.
    slot.run(unit(None), |_| {}, pending(), full_pace()).await.unwrap();
    slot.set_instructions(InstructionSet::COMMON);
    slot.run(unit(None), |_| {}, pending(), full_pace()).await.unwrap();
    assert_eq!(started(), 3);
}

fn variable(set: InstructionSet, name: &str) -> &'static str {
    let (_, value) = set.environment().iter().find(|(known, _)| *known == name).unwrap();
    value
}

//! The reading commands and `export`, against a server that shows one finished job.

use crate::support::{Answer, FakeServer, Folder, sojourn};
use serde_json::{Value, json};
use sojourn_codec::{Tensor, decode, encode};
use sojourn_model::{CheckpointLayout, Lineage, initial_checkpoint, portable::ModelFile};
use sojourn_protocol::{
    PROTOCOL_VERSION, decimal,
    digest::{BlobRef, Digest},
    ids::{Epoch, HostId, JobId, ShardId, TrialId, Version},
    jobfile,
    manifest::{DataManifest, Labels, Scaling, Shard, Targets},
    position::Position,
    reason::WaitReason,
    report::Sums,
    spec::Architecture,
    time::UnixMillis,
    trial_name::trial_name,
    unit::TrialContext,
    view::{
        BestView, CurvePoint, CurveView, HopRecord, JobDetail, JobState, JobView, TrialHistory,
        TrialState, TrialView,
    },
};
use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

const JOB: &str = r#"name = "iris"
[data]
train = "t.csv"
label = "y"
scale = "standard"
shards = 1
[[model]]
arch = "mlp"
hidden = { choice = [[4], [8]] }
[training]
epochs = 1
optimizer = { name = "sgd", momentum = 0.9 }
"#;

fn blob(bytes: &[u8]) -> BlobRef {
    BlobRef { sha256: Digest::of(bytes), bytes: bytes.len() as u64 }
}

/// Everything that a server knows of one job with two trials.
pub(crate) struct World {
    pub(crate) detail: JobDetail,
    pub(crate) trials: Vec<TrialView>,
    histories: Vec<TrialHistory>,
    blobs: BTreeMap<Digest, Vec<u8>>,
}

impl World {
    pub(crate) fn new() -> Self {
        let spec = jobfile::parse(JOB).unwrap();
        let mut blobs = BTreeMap::new();
        let mut keep = |bytes: Vec<u8>| {
            let blob = blob(&bytes);
            blobs.insert(blob.sha256, bytes);
            blob
        };
        let scaling = keep(
            encode(&[
                Tensor::f32("mean", [2u64], &[1.0, 2.0]),
                Tensor::f32("std", [2u64], &[0.5, 1.0]),
            ])
            .unwrap(),
        );
        let shard = Shard { blob: blob(b"shard"), rows: 10 };
        let data = DataManifest {
            columns: Vec::new(),
            shape: vec![2],
            features: vec!["a".into(), "b".into()],
            labels: Labels::Classes(vec!["0".into(), "1".into(), "2".into()]),
            categories: Vec::new(),
            fill: Vec::new(),
            scaling: Scaling::Standard(scaling),
            targets: Targets::Plain,
            train: vec![shard],
            valid: vec![shard],
            test: Vec::new(),
        };
        let mut trials = Vec::new();
        let mut histories = Vec::new();
        for (id, trial) in (0..).map(TrialId).zip(sojourn_workgen::trials(&spec).unwrap()) {
            let context = TrialContext {
                config: trial.config.clone(),
                columns: Vec::new(),
                shape: vec![2],
                outputs: 3,
                scaling: data.scaling,
                targets: data.targets.clone(),
                total_steps: 1,
                pinned_threads: None,
            };
            let seed = u64::from(id.0);
            let checkpoint =
                keep(initial_checkpoint(&context, seed, Lineage::initial(seed)).unwrap());
            let sums =
                Sums { rows: 10, loss: 5.0, correct: Some(7 + u64::from(id.0)), ..Sums::default() };
            let value = sums.accuracy().unwrap();
            let name = trial_name("mlp", &trial.choices);
            trials.push(TrialView {
                trial: id,
                state: TrialState::Finished,
                name: name.clone(),
                phase: None,
                arch: "mlp".into(),
                choices: trial.choices,
                origin: None,
                priority: 0,
                epoch: Epoch(1),
                epochs: 1,
                hops: 1,
                version: Version(1),
                checkpoint: Some(checkpoint),
                numeric_class: None,
                refit: None,
                curve: vec![CurveView::from(CurvePoint {
                    epoch: Epoch(0),
                    train: sums.clone(),
                    valid: sums,
                    f1: None,
                    own: [].into(),
                    verified: None,
                    at: UnixMillis(0),
                })],
                stopped: None,
                rung: None,
                best: Some(BestView {
                    trial: id,
                    name,
                    epoch: Epoch(0),
                    value,
                    checkpoint,
                    unverified: 0,
                }),
                test: None,
                unverified: 0,
                waiting: None,
                residence: None,
            });
            let position = Position { epoch: Epoch(0), shard: ShardId(0), batch: 1, step: 1 };
            histories.push(TrialHistory {
                job: JobId(1),
                trial: id,
                job_seed: 0,
                context: context.into(),
                former: Vec::new(),
                data: data.clone(),
                numeric_class: None,
                initial_weights: None,
                origin: None,
                merge: None,
                hops: vec![HopRecord {
                    merged: None,
                    verified: None,
                    then: Vec::new(),
                    version: Version(1),
                    lease: sojourn_protocol::ids::LeaseId(1),
                    host: HostId(1),
                    start: Position { batch: 0, step: 0, ..position },
                    end: position,
                    checkpoint,
                }],
            });
        }
        let mut summary: JobView =
            serde_json::from_str(include_str!("../../server/page/tests/job.json")).unwrap();
        summary.name = "iris".into();
        summary.submitted_at = UnixMillis(1_000_000);
        summary.ended_at = Some(UnixMillis(1_061_000));
        (summary.hops, summary.hops_expected) = (2, 2);
        (summary.evaluations, summary.evaluations_expected) = (2, 2);
        (summary.superseded, summary.train_micros, summary.disk_bytes) = (1, 1_500_000, 1_500);
        summary.best = trials[1].best.clone();
        summary.note = "the first".into();
        Self { detail: JobDetail { summary, spec, space: None, data }, trials, histories, blobs }
    }

    pub(crate) fn answer(&self, path: &str) -> Answer {
        let ok = |value: Value| Answer::json(200, value.to_string());
        let history = |path: &str| path.split('/').nth(5)?.parse::<usize>().ok();
        match path {
            "/v1/jobs" => ok(json!([self.detail.summary])),
            "/v1/jobs/1" => ok(json!(self.detail)),
            // A server of before, which knows no limit.
            "/v1/jobs/1/trials" | "/v1/jobs/1/trials?leading=10" => ok(json!(self.trials)),
            // Two pages, and the end.
            "/v1/jobs/1/events?after=0" => ok(json!([{
                "position": 11, "at": 0, "kind": "trial-failed",
                "event": { "job": 1, "trial": 0, "error": "e" }, "text": "trial 0 failed: e",
            }])),
            // A server of before writes no sentences.
            "/v1/jobs/1/events?after=11" => ok(json!([{
                "position": 12, "at": 1, "kind": "job-cancelled", "event": { "job": 1 },
            }])),
            "/v1/jobs/1/events?after=12" => ok(json!([])),
            path if path.ends_with("/history") => ok(json!(self.histories[history(path).unwrap()])),
            path => match path.strip_prefix("/v1/blobs/").and_then(|name| name.parse().ok()) {
                Some(name) => Answer {
                    status: 200,
                    headers: format!("sojourn-protocol: {PROTOCOL_VERSION}\r\n"),
                    body: self.blobs[&name].clone(),
                },
                None => Answer::json(404, r#"{"kind":"not-found","message":"nothing is here"}"#),
            },
        }
    }

    pub(crate) fn serve(self) -> FakeServer {
        FakeServer::start(move |request| self.answer(request.line.split_once(' ').unwrap().1))
    }
}

/// The output of a command, which must succeed.
pub(crate) fn printed(server: &FakeServer, args: &[&str]) -> String {
    let output = sojourn(args).args(["--server", &server.url]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert_eq!(output.status.code(), Some(0));
    String::from_utf8(output.stdout).unwrap()
}

pub(crate) fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

#[test]
fn a_jobs_status_has_its_counts_and_the_leader_board() {
    let server = World::new().serve();
    let text = printed(&server, &["status", "1"]);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "job 1 `iris` finished");
    assert!(lines.contains(&"took         61 s"), "{text}");
    assert!(lines.contains(&"note         the first"), "{text}");
    assert!(lines.contains(&"hops         2 of 2"), "{text}");
    assert!(
        lines.contains(&"best         valid/accuracy 0.8000 (trial 1 `mlp hidden=[8]`, epoch 1)"),
        "{text}"
    );
    let board = lines.iter().position(|line| line.trim_start().starts_with("TRIAL")).unwrap();
    let of_epoch = |line: &str| words(line)[3..6].join(" ");
    assert_eq!(words(lines[board + 1])[..3], ["1", "mlp", "hidden=[8]"]);
    assert_eq!(of_epoch(lines[board + 1]), "1/1 0.8000 1", "the best's epoch beside it");
    assert_eq!(words(lines[board + 2])[..3], ["0", "mlp", "hidden=[4]"]);
    assert_eq!(of_epoch(lines[board + 2]), "1/1 0.7000 1");
    assert_eq!(printed(&server, &["trials", "1"]).lines().count(), 3);
}

#[test]
fn json_is_the_servers_answer() {
    let world = World::new();
    let (detail, trials) = decimal::as_text(|| (json!(world.detail), json!(world.trials)));
    let server = world.serve();
    let parsed = |args: &[&str]| serde_json::from_str::<Value>(&printed(&server, args)).unwrap();
    assert_eq!(parsed(&["status", "1", "--json"]), detail);
    assert_eq!(parsed(&["trials", "1", "--json"]), trials);
    assert_eq!(parsed(&["jobs", "--json"]), json!([detail["summary"]]));
    let events = printed(&server, &["events", "1", "--json"]);
    let positions = events.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let positions: Vec<Value> = positions.map(|event| event["position"].clone()).collect();
    assert_eq!(positions, [11, 12]);
}

#[test]
fn jobs_and_events_print_one_line_each() {
    let server = World::new().serve();
    let jobs = printed(&server, &["jobs"]);
    let fields = words(jobs.lines().nth(1).unwrap());
    assert_eq!(fields[..3], ["1", "iris", "finished"]);
    assert_eq!(
        printed(&server, &["events", "1"]),
        "11 1970-01-01T00:00:00.000Z trial 0 failed: e\n\
         12 1970-01-01T00:00:00.001Z job-cancelled job=1\n"
    );
}

#[test]
fn a_job_is_found_by_its_name_and_an_error_lists_the_others() {
    let server = World::new().serve();
    assert_eq!(printed(&server, &["status", "iris"]), printed(&server, &["status", "1"]));
    assert_eq!(printed(&server, &["events", "iris"]), printed(&server, &["events", "1"]));
    let refused = |server: &FakeServer, name: &str| {
        let output = sojourn(&["trials", name, "--server", &server.url]).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8(output.stderr).unwrap()
    };
    let unknown = refused(&server, "irsi");
    assert!(
        unknown.contains("no job is called `irsi`; there are:\n  1 `iris`, finished"),
        "{unknown}"
    );

    let world = World::new();
    let several = FakeServer::start(move |request| {
        let path = request.line.split_once(' ').unwrap().1;
        if path != "/v1/jobs" {
            return world.answer(path);
        }
        let mut second = world.detail.summary.clone();
        second.job = JobId(2);
        Answer::json(200, json!([world.detail.summary, second]).to_string())
    });
    let ambiguous = refused(&several, "iris");
    let begins = "error: 2 jobs are called `iris`; say the number of one:\n  2 `iris`, finished";
    assert!(ambiguous.starts_with(begins) && ambiguous.contains("\n  1 `iris`"), "{ambiguous}");
}

#[test]
fn trials_and_curves_as_csv_have_means_and_epochs_from_1() {
    let server = World::new().serve();
    assert_eq!(
        printed(&server, &["trials", "1", "--csv"]),
        "trial,name,state,arch,epochs_done,epochs,hops,best_epoch,valid/accuracy,model[0].hidden\n\
         0,mlp hidden=[4],finished,mlp,1,1,1,1,0.7,[4]\n\
         1,mlp hidden=[8],finished,mlp,1,1,1,1,0.8,[8]\n"
    );
    assert_eq!(
        printed(&server, &["trials", "1", "--curves", "--csv"]),
        "trial,name,epoch,train_rows,train_loss,train_accuracy,valid_rows,valid_loss,valid_accuracy,valid_f1\n\
         0,mlp hidden=[4],1,10,0.5,0.7,10,0.5,0.7,\n\
         1,mlp hidden=[8],1,10,0.5,0.8,10,0.5,0.8,\n"
    );
    let curve = json!(World::new().trials)[0]["curve"][0].clone();
    assert_eq!((&curve["valid"]["loss"], &curve["loss_mean"]["valid"]), (&json!(5.0), &json!(0.5)));
}

#[test]
fn a_job_that_waits_says_so_in_each_command() {
    let mut world = World::new();
    let reason = WaitReason::NoHosts.to_string();
    world.detail.summary.state = JobState::Running;
    world.detail.summary.waiting = Some(reason.clone());
    let server = world.serve();
    assert!(reason.contains("no host is in contact; start one with `sojourn client`"), "{reason}");
    for args in [&["jobs"][..], &["status", "1"]] {
        let text = printed(&server, args);
        assert!(text.contains("waits") && text.contains(&reason), "{text}");
    }
}

#[test]
fn watching_lasts_until_the_end_and_fails_with_the_job() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let world = World::new();
    let server = FakeServer::start(move |request| {
        let path = request.line.split_once(' ').unwrap().1;
        if path != "/v1/jobs/1" {
            return world.answer(path);
        }
        let mut detail = world.detail.clone();
        match count.fetch_add(1, Ordering::SeqCst) {
            0 | 1 => detail.summary.state = JobState::Running,
            2 => detail.summary.state = JobState::Paused,
            _ => detail.summary.state = JobState::Cancelled,
        }
        Answer::json(200, json!(detail).to_string())
    });
    let output = sojourn(&["status", "1", "--watch", "--server", &server.url]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let states: Vec<&str> = text.lines().map(|line| words(line)[2]).collect();
    assert_eq!(states, ["running:", "paused:", "cancelled:"]);
    assert_eq!(String::from_utf8_lossy(&output.stderr), "error: job 1 was cancelled\n");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn an_exported_model_has_parameters_scaling_and_a_description() {
    let world = World::new();
    let layout = CheckpointLayout::of(&world.histories[1].context).unwrap();
    let checkpoint = world.blobs[&world.trials[1].checkpoint.unwrap().sha256].clone();
    let server = world.serve();
    let folder = Folder::with(&[("m.safetensors", "an older one")]);
    let path = folder.path().join("m.safetensors");
    let path = path.to_str().unwrap();
    let report = printed(&server, &["export", "1", "--json", "-o", path]);
    let report: Value = serde_json::from_str(&report).unwrap();
    assert_eq!((&report["trial"], &report["value"]), (&1.into(), &0.8.into()));
    let file = std::fs::read(path).unwrap();
    assert_eq!(report["sha256"], Digest::of(&file).to_string());
    assert_eq!(folder.names(), ["m.safetensors"], "no temporary file is left");
    let exported = ModelFile::read(&file).unwrap();
    let description = &exported.description;
    assert_eq!(description.architecture, Architecture::mlp([8]));
    assert_eq!((&description.shape, description.outputs), (&vec![2], 3));
    assert_eq!(
        (&description.features, description.label.as_deref().unwrap_or_default()),
        (&vec!["a".into(), "b".into()], "y")
    );
    assert_eq!((description.origin.epoch, description.origin.value), (Some(Epoch(0)), Some(0.8)));
    let (parameters, scaling) =
        (exported.parameters().unwrap(), exported.scaling().unwrap().unwrap());
    let (exported, original) = (decode(&parameters).unwrap(), decode(&checkpoint).unwrap());
    assert!(original.len() > exported.len(), "there was more in the checkpoint");
    let mut names: Vec<&str> = layout.parameters().iter().map(|spec| spec.name.as_str()).collect();
    names.sort_unstable();
    assert!(exported.iter().map(|tensor| tensor.name.as_str()).eq(names));
    for tensor in &exported {
        assert!(original.contains(tensor), "{}", tensor.name);
    }
    let mean = decode(&scaling).unwrap()[0].data.to_vec();
    assert_eq!(mean, [1.0f32.to_le_bytes(), 2.0f32.to_le_bytes()].concat());
    let again = folder.path().join("again");
    printed(&server, &["export", "1", "--trial", "1", "-o", again.to_str().unwrap()]);
    assert_eq!(std::fs::read(again).unwrap(), file, "the same trial, the same bytes");
}

#[test]
fn an_export_that_fails_leaves_the_old_file() {
    let mut world = World::new();
    let damaged = world.trials[0].checkpoint.unwrap().sha256;
    world.blobs.get_mut(&damaged).unwrap().push(0);
    let server = world.serve();
    let folder = Folder::with(&[("m", "an older one")]);
    let run = |args: &[&str]| {
        let output = sojourn(args)
            .args(["--server", &server.url])
            .current_dir(folder.path())
            .output()
            .unwrap();
        assert!(output.stdout.is_empty());
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, told) = run(&["export", "1", "--trial", "0", "-o", "m"]);
    assert_eq!(code, Some(1));
    assert_eq!(
        told,
        format!("error: what the server sent for blob {damaged} has another digest\n")
    );
    let (code, told) = run(&["export", "1", "--trial", "7", "-o", "m"]);
    assert_eq!(
        (code, told.as_str()),
        (Some(2), "error: job 1 has no trial 7; its trials are 0 to 1\n")
    );
    let (code, told) = run(&["export", "1", "-o", "none/m"]);
    assert_eq!((code, told.as_str()), (Some(2), "error: there is no folder `none`\n"));
    assert_eq!(folder.names(), ["m"]);
    assert_eq!(std::fs::read_to_string(folder.path().join("m")).unwrap(), "an older one");
}

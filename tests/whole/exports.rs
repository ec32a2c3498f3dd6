//! Jobs that are exported as tables and as event files, which pandas, pyarrow and TensorBoard read.

use crate::{
    http::poll,
    site::{Process, Site, program, spawn},
    support::{Answer, FakeServer, Folder, sojourn},
};
use serde_json::{Value, json};
use std::{collections::BTreeMap, fs, path::Path, process::Command};

/// `scripts/setup-tests` makes it, with pandas, pyarrow and tensorboard.
const PYTHON: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/.cache/python/bin/python");

/// Reads the tables of `csv/`, `parquet/` and `all.json` in one line each, and prints what it finds.
const READ_TABLES: &str = r#"
import json
import pandas as pd

all = json.load(open("all.json"))
found = {}
for name in ["trials", "hops", "metrics"]:
    csv = pd.read_csv(f"csv/{name}.csv")
    parquet = pd.read_parquet(f"parquet/{name}.parquet", engine="pyarrow")
    frame = pd.DataFrame(all[name])
    found[name + "_types"] = {column: str(parquet[column].dtype) for column in parquet}
    times = [column for column in parquet if isinstance(parquet[column].dtype, pd.DatetimeTZDtype)]
    assert list(csv) == list(parquet) == list(frame), name
    for column in parquet:
        texts = [csv[column], frame[column]]
        values = parquet[column]
        if column in times:
            texts = [pd.to_datetime(text).astype(values.dtype) for text in texts]
        for text in texts:
            both = [of.astype(object).where(of.notna(), None).tolist() for of in (text, values)]
            assert both[0] == both[1], (name, column, both)
    for column in times:
        parquet[column] = [None if pd.isna(time) else time.timestamp() for time in parquet[column]]
    values = parquet.astype(object)
    found[name] = values.where(values.notna(), None).to_dict("records")
print(json.dumps(found))
"#;

/// Reads a folder of event files as TensorBoard does, and prints what it finds.
const READ_EVENTS: &str = r#"
import json, os, sys
from tensorboard.backend.event_processing import data_provider, plugin_event_multiplexer
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard import context
from tensorboard.plugins import base_plugin
from tensorboard.plugins.hparams import api_pb2, backend_context, get_experiment, list_session_groups

folder = sys.argv[1]
runs = plugin_event_multiplexer.EventMultiplexer().AddRunsFromDirectory(folder)
runs.Reload()
found = {"scalars": {}, "sessions": {}}
for run in runs.Runs():
    accumulator = EventAccumulator(os.path.join(folder, run))
    accumulator.Reload()
    tags = accumulator.Tags()["scalars"]
    if tags:
        scalars = {tag: [[at.step, at.value, at.wall_time] for at in accumulator.Scalars(tag)] for tag in tags}
        found["scalars"][run] = scalars
provider = data_provider.MultiplexerDataProvider(runs, folder)
of = backend_context.Context(base_plugin.TBContext(data_provider=provider))
asking = context.RequestContext()
infos = of.hparams_metadata(asking, "")
experiment = of.experiment_from_metadata(asking, "", True, infos, [])
found["experiment"] = {
    "name": experiment.name,
    "hparams": {info.name: info.type for info in experiment.hparam_infos},
    "metrics": [[info.name.tag, info.dataset_type] for info in experiment.metric_infos],
}
request = api_pb2.ListSessionGroupsRequest(
    start_index=0, slice_size=100,
    allowed_statuses=[api_pb2.STATUS_UNKNOWN, api_pb2.STATUS_SUCCESS, api_pb2.STATUS_FAILURE, api_pb2.STATUS_RUNNING],
)
groups = list_session_groups.Handler(asking, of, "", request).run()
for group in groups.session_groups:
    session = group.sessions[0]
    found["sessions"][session.name] = {
        "group": group.name,
        "status": api_pb2.Status.Name(session.status),
        "hparams": {name: value.WhichOneof("kind") and getattr(value, value.WhichOneof("kind")) for name, value in group.hparams.items()},
        "metrics": {value.name.tag: value.value for value in session.metric_values},
    }
print(json.dumps(found))
"#;

/// Runs a program of Python in a folder; the JSON that it prints.
fn python(folder: &Path, text: &str, arguments: &[&str]) -> Value {
    assert!(Path::new(PYTHON).is_file(), "`make test` makes the Python environment");
    let mut command = Command::new(PYTHON);
    command.args(["-B", "-c", text]).args(arguments).current_dir(folder);
    let output = command.output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {told}"))
}

/// A search over four models, two of them with dropout, whose best is tested.
fn submit(site: &Site, epochs: u32) -> String {
    let csv = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/digits/digits.csv");
    fs::copy(csv, site.path().join("digits.csv")).unwrap();
    let job = format!(
        "name = \"taken out\"\nseed = 5\n[data]\ntrain = \"digits.csv\"\nlabel = \"label\"\nshape = [1, 8, 8]\n\
         scale = \"standard\"\nvalid = 0.2\ntest = 0.1\nshards = 2\n[[model]]\narch = \"mlp\"\n\
         hidden = {{ choice = [[16], [16, 8]] }}\ndropout = {{ choice = [0.0, 0.25] }}\n\
         [training]\nepochs = {epochs}\nbatch_size = 32\noptimizer = {{ name = \"adam\", lr = 0.003 }}\n\
         [search]\nmethod = \"grid\"\nmetric = \"valid/accuracy\"\n[placement]\nvisits = \"fixed\"\n"
    );
    fs::write(site.path().join("job.toml"), job).unwrap();
    site.json(&["submit", "job.toml"])["job"].to_string()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

#[test]
fn pandas_and_tensorboard_read_what_a_job_was() {
    let site = Site::start_with_hops(2);
    let job = submit(&site, 2);
    let clients: Vec<Process> = ["a", "b"].map(|name| site.client(name)).into();
    let view = site.wait(&job, |view| view["state"] != "running");
    assert_eq!(view["state"], "finished", "{view}\n{}", site.log("server"));
    drop(clients);
    let trials = site.json(&["trials", &job]);
    let trials = trials.as_array().unwrap();

    let formats = ["--csv", "csv", "--parquet", "parquet", "--tensorboard", "board"];
    let report = site.json(&[&["export", &job][..], &formats].concat());
    let rows = |table: &str| report["rows"][table].as_u64().unwrap();
    assert_eq!((rows("trials"), report["runs"].as_u64()), (4, Some(4)), "{report}");
    assert_eq!(report["files"].as_array().unwrap().len(), 6);
    let first = site.run(&["export", "--json", &job, "--csv", "first"]);
    let first: Value = serde_json::from_slice(&first.stdout).unwrap();
    assert_eq!(first["rows"], report["rows"], "the word after it is the job");
    let printed = site.run(&["export", &job, "--json", "-"]);
    assert!(printed.status.success(), "{}", String::from_utf8_lossy(&printed.stderr));
    fs::write(site.path().join("all.json"), &printed.stdout).unwrap();
    let named = site.run(&["export", &job, "--json", "again.json"]);
    assert!(named.status.success());
    assert_eq!(fs::read(site.path().join("again.json")).unwrap(), printed.stdout);

    tables_are_the_job(&python(site.path(), READ_TABLES, &[]), trials, &view);
    events_are_the_job(&python(site.path(), READ_EVENTS, &["board"]), trials);
}

fn tables_are_the_job(read: &Value, trials: &[Value], job: &Value) {
    let of_trials = read["trials"].as_array().unwrap();
    assert_eq!(of_trials.len(), trials.len());
    for (row, trial) in of_trials.iter().zip(trials) {
        assert_eq!((&row["trial"], &row["name"]), (&trial["trial"], &trial["name"]));
        assert_eq!((&row["state"], &row["seed"]), (&"finished".into(), &5.into()));
        assert_eq!(row["model.dropout"], trial["choices"]["model[0].dropout"], "{row}");
        assert_eq!(row["model.hidden"], trial["choices"]["model[0].hidden"].to_string(), "{row}");
        assert_eq!(row["training.optimizer.lr"], 0.003);
        assert_eq!(row["training.batch_size"], 32);
        assert_eq!(row["best_value"], trial["best"]["value"]);
        assert_eq!(row["best_epoch"].as_u64(), trial["best"]["epoch"].as_u64().map(|at| at + 1));
        assert_eq!(row["checkpoint_sha256"], trial["checkpoint"]["sha256"]);
        assert_eq!(row["checkpoint_bytes"], trial["checkpoint"]["bytes"]);
        assert_eq!(row["cost_usd"], Value::Null, "machines that are lent cost nothing");
    }
    let types = &read["hops_types"];
    let times = types["begun"].as_str().unwrap();
    assert!(times.starts_with("datetime64[ms, UTC"), "{types}");
    assert_eq!((&types["rows"], &types["train_seconds"]), (&"int64".into(), &"float64".into()));
    let hops = read["hops"].as_array().unwrap();
    // Each shard of each epoch, one after the other or several in a lease.
    let shards = |hop: &Value| hop["shards"].as_str().unwrap().split(' ').count() as u64;
    let visited: u64 = hops.iter().map(shards).sum();
    assert_eq!(visited, job["hops"].as_u64().unwrap());
    let mut rows: BTreeMap<u64, u64> = BTreeMap::new();
    for hop in hops {
        let (begun, ended) = (number(&hop["begun"]), number(&hop["ended"]));
        assert!(begun > 0.0 && begun <= ended, "{hop}");
        assert!(number(&hop["train_seconds"]) > 0.0);
        assert!(["a", "b"].contains(&hop["host_name"].as_str().unwrap()), "{hop}");
        let trained = hop["rows"].as_u64().unwrap();
        let batches = hop["batches"].as_u64().unwrap();
        assert!(batches >= trained.div_ceil(32) && batches <= trained.div_ceil(32) + 1, "{hop}");
        *rows.entry(hop["trial"].as_u64().unwrap()).or_default() += trained;
    }
    let metrics = read["metrics"].as_array().unwrap();
    for (number, trial) in (0..).zip(trials) {
        let trained: u64 = trial["curve"]
            .as_array()
            .unwrap()
            .iter()
            .map(|at| at["train"]["rows"].as_u64().unwrap())
            .sum();
        assert_eq!(rows[&number], trained, "trial {number}");
        let last = &hops.iter().rfind(|hop| hop["trial"] == number).unwrap()["checkpoint_sha256"];
        assert_eq!(*last, trial["checkpoint"]["sha256"]);
    }
    for row in metrics.iter().filter(|row| row["split"] == "valid" && row["metric"] == "accuracy") {
        let trial = &trials[usize::try_from(row["trial"].as_u64().unwrap()).unwrap()];
        let point = &trial["curve"][usize::try_from(row["epoch"].as_u64().unwrap()).unwrap() - 1];
        let ratio = number(&point["valid"]["correct"]) / number(&point["valid"]["rows"]);
        assert_eq!(number(&row["value"]), ratio, "{row}");
        assert!(number(&row["time"]) > 0.0);
    }
    let count = |split: &str, metric: &str| {
        metrics.iter().filter(|row| row["split"] == split && row["metric"] == metric).count()
    };
    assert_eq!((count("train", "loss"), count("valid", "accuracy")), (8, 8));
    assert_eq!((count("test", "loss"), count("test", "f1")), (1, 1), "the best trial was tested");
}

fn events_are_the_job(read: &Value, trials: &[Value]) {
    let scalars = read["scalars"].as_object().unwrap();
    let sessions = read["sessions"].as_object().unwrap();
    assert_eq!((scalars.len(), sessions.len()), (trials.len(), trials.len()), "{read}");
    let experiment = &read["experiment"];
    assert_eq!(experiment["name"], "taken out");
    let varied = json!({"model.dropout": 3, "model.hidden": 1});
    assert_eq!(experiment["hparams"], varied, "numbers and texts");
    assert_eq!(experiment["metrics"][0], json!(["valid/accuracy", 2]));
    for trial in trials {
        let begins = format!("trial-{}-mlp", trial["trial"]);
        let (run, values) = scalars.iter().find(|(run, _)| run.starts_with(&begins)).unwrap();
        assert!(run.chars().all(|c| c.is_ascii_alphanumeric() || "-_.=+".contains(c)), "{run}");
        let curve = trial["curve"].as_array().unwrap();
        for (tag, split) in [("train/loss", "train"), ("valid/loss", "valid")] {
            let found = values[tag].as_array().unwrap();
            assert_eq!(found.len(), curve.len(), "{values}");
            for (step, (at, point)) in (1..).zip(found.iter().zip(curve)) {
                let mean = number(&point["loss_mean"][split]);
                assert_eq!(at[0], step);
                assert!((number(&at[1]) - mean).abs() <= mean * 1e-6, "{at} is {mean}");
                assert!(number(&at[2]) > 1.6e9, "seconds since 1970");
            }
        }
        let session = &sessions[run];
        assert_eq!(session["status"], "STATUS_SUCCESS");
        assert_eq!(session["group"], format!("trial {}", trial["trial"]));
        let hparams = &session["hparams"];
        assert_eq!(hparams["model.dropout"], trial["choices"]["model[0].dropout"]);
        assert_eq!(hparams["model.hidden"], trial["choices"]["model[0].hidden"].to_string());
        let last = &curve[curve.len() - 1]["valid"];
        let accuracy = number(&last["correct"]) / number(&last["rows"]);
        assert!((number(&session["metrics"]["valid/accuracy"]) - accuracy).abs() < 1e-6);
    }
    let tested = scalars.values().filter(|run| run.get("test/accuracy").is_some()).count();
    assert_eq!(tested, 1);
}

/// Starts following a job.
fn follow(site: &Site, job: &str) -> Process {
    let mut command = Command::new(program());
    command
        .args(["export", job, "--tensorboard", "board", "--follow"])
        .env("SOJOURN_SERVER", &site.url)
        .env("SOJOURN_TOKEN", &site.token)
        .env("XDG_CACHE_HOME", site.path().join("cache"))
        .current_dir(site.path());
    spawn(command, &site.path().join("follow.log"))
}

/// A search that goes on until it is ended, with trials of two epochs.
fn submit_open(site: &Site) -> String {
    let csv = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/digits/digits.csv");
    fs::copy(csv, site.path().join("digits.csv")).unwrap();
    let job = "name = \"open\"\n[data]\ntrain = \"digits.csv\"\nlabel = \"label\"\nshape = [1, 8, 8]\n\
               scale = \"standard\"\nvalid = 0.2\nshards = 2\n[[model]]\narch = \"mlp\"\nhidden = [8]\n\
               [training]\nepochs = 2\noptimizer = { name = \"adam\", lr = { log_uniform = [1e-4, 1e-1] } }\n\
               [search]\nmethod = \"ask-tell\"\nmetric = \"valid/loss\"\n";
    fs::write(site.path().join("job.toml"), job).unwrap();
    site.json(&["submit", "job.toml"])["job"].to_string()
}

/// Adds a trial to a search.
fn add(site: &Site, job: &str, rate: f64) {
    let request = json!({"add": [{"values": {"lr": rate}}], "nonce": rate.to_string()});
    let answer = site.post(&format!("jobs/{job}/search"), &request);
    assert_eq!(answer["added"].as_array().unwrap().len(), 1, "{answer}");
}

/// The validation losses that TensorBoard finds in a folder.
fn count_losses(site: &Site, folder: &str) -> usize {
    let read = python(site.path(), READ_EVENTS, &[folder]);
    let runs = read["scalars"].as_object().unwrap().values();
    runs.filter_map(|run| run.get("valid/loss")?.as_array()).map(Vec::len).sum()
}

/// Waits until TensorBoard finds so many validation losses.
fn has_losses(site: &Site, wanted: usize) {
    let losses = || {
        if !site.path().join("board").is_dir() {
            return None;
        }
        (count_losses(site, "board") == wanted).then_some(())
    };
    assert!(poll(losses).is_some(), "{}", site.log("follow"));
}

#[test]
fn following_goes_on_until_the_end_through_a_restart_and_a_signal() {
    let mut site = Site::start_with_hops(2);
    let job = submit_open(&site);
    let mut following = follow(&site, &job);
    let mut client = site.client("a");
    add(&site, &job, 0.01);
    has_losses(&site, 2);
    assert!(following.is_running(), "the search goes on: {}", site.log("follow"));
    // A signal ends it in good order.
    assert_eq!(following.end(), Some(0), "{}", site.log("follow"));
    assert!(site.log("follow").contains("board: 1 run of job 1"), "{}", site.log("follow"));
    // Another goes on with its files, and lives through a restart of the server.
    following = follow(&site, &job);
    let said = || site.log("follow").matches("following job 1 in board").count();
    assert!(poll(|| (said() == 2).then_some(())).is_some(), "{}", site.log("follow"));
    client.kill();
    site.restart();
    add(&site, &job, 0.001);
    site.json(&["search", &job, "--end"]);
    client = site.client("a");
    let view = site.wait(&job, |view| view["state"] != "running");
    assert_eq!(view["state"], "finished", "{view}");
    assert_eq!(following.wait(), Some(0), "{}", site.log("follow"));
    drop(client);
    assert!(site.log("follow").contains("board: 2 runs of job 1"), "{}", site.log("follow"));
    has_losses(&site, 4);
    let at_once = site.run(&["export", &job, "--tensorboard", "at-once"]);
    assert!(at_once.status.success());
    let read = |folder: &str| python(site.path(), READ_EVENTS, &[folder]);
    assert_eq!(read("board"), read("at-once"));
}

#[test]
fn a_server_keeps_event_files_of_all_jobs_through_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let boards = folder.path().join("boards");
    let more = ["--tensorboard".to_owned(), boards.to_string_lossy().into_owned()];
    let mut site = Site::start_in(folder, more.to_vec());
    let open = submit_open(&site);
    let mut client = site.client("a");
    add(&site, &open, 0.01);
    let losses = |site: &Site, job: &str, wanted: usize| {
        let folder = format!("boards/{job}");
        let found = || {
            let is_there = site.path().join(&folder).is_dir();
            is_there.then(|| count_losses(site, &folder)).filter(|found| *found == wanted)
        };
        assert!(poll(found).is_some(), "{job}: {}", site.log("server"));
    };
    losses(&site, "job-1-open", 2);
    // The next server goes on with the files of this one, and nothing is in them twice.
    client.kill();
    site.restart();
    add(&site, &open, 0.001);
    client = site.client("a");
    losses(&site, "job-1-open", 4);
    let searched = submit(&site, 2);
    let view = site.wait(&searched, |view| view["state"] != "running");
    assert_eq!(view["state"], "finished", "{view}");
    site.json(&["search", &open, "--end"]);
    site.wait(&open, |view| view["state"] != "running");
    drop(client);
    let read = |folder: &str| python(site.path(), READ_EVENTS, &[folder]);
    for (job, folder) in [(&open, "job-1-open"), (&searched, "job-2-taken_out")] {
        let at_once = format!("at-once-{job}");
        assert!(site.run(&["export", job, "--tensorboard", &at_once]).status.success());
        let wanted = read(&at_once);
        let kept = || {
            let is_there = boards.join(folder).is_dir();
            (is_there && read(&format!("boards/{folder}")) == wanted).then_some(())
        };
        assert!(poll(kept).is_some(), "{folder}: {}", site.log("server"));
    }
}

#[test]
fn calls_that_ask_for_two_things_or_none_are_refused() {
    let server = FakeServer::start(|_| Answer::json(200, "[]"));
    let folder = Folder::with(&[]);
    let export = |job: &[&str], args: &[&str]| {
        let mut command = sojourn(&["export", "--server", &server.url]);
        command.args(job).args(args).current_dir(folder.path()).output().unwrap()
    };
    let nameless = export(&[], &["--csv", "d", "--json"]);
    let told = String::from_utf8(nameless.stderr).unwrap();
    assert!(nameless.status.code() == Some(2) && told.contains("name a job"), "{told}");
    for (args, said) in [
        (&[][..], "nothing to export: name a model's file (`-o FILE`)"),
        (&["--json"], "nothing to export"),
        (&["-o", "m", "--csv", "d"], "cannot be used with"),
        (&["-o", "m", "--tensorboard", "d"], "cannot be used with"),
        (&["-o", "m", "--json", "f"], "`-o` writes a model, and `--json f` tables"),
        (
            &["--trial", "1", "--csv", "d"],
            "`--trial`, `--best` and `--last` choose a model for `-o`",
        ),
        (&["--best", "--json", "f"], "--output <FILE>"),
        (&["--follow"], "--tensorboard <DIR>"),
        (&["--follow", "--tensorboard", "d", "--csv", "d"], "cannot be used with"),
        (&["--follow", "--tensorboard", "d", "--json", "f"], "tables are written once"),
    ] {
        let output = export(&["1"], args);
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {told}");
        assert!(told.contains(said) && output.stdout.is_empty(), "{args:?}: {told}");
    }
    assert!(server.lines().is_empty() && folder.names().is_empty());
}

//! Jobs in a real tracking server of MLflow, which its own client reads.

use crate::{
    http::poll,
    site::{Process, Site, spawn},
};
use serde_json::{Value, json};
use std::{fs, net::TcpListener, path::Path, process::Command};

/// `scripts/setup-tests` makes it, with mlflow.
const PYTHON: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/.cache/python/bin/python");

/// Reads an experiment as MLflow's own client does, and prints what it finds.
const READ: &str = r#"
import json, sys
from mlflow import MlflowClient

client = MlflowClient(sys.argv[1])
experiment = client.get_experiment_by_name(sys.argv[2])
runs = {}
for run in client.search_runs([experiment.experiment_id]):
    history = lambda key: [[point.step, point.value] for point in client.get_metric_history(run.info.run_id, key)]
    models = client.list_artifacts(run.info.run_id)
    model = [open(client.download_artifacts(run.info.run_id, model.path), "rb").read().hex() for model in models]
    runs[run.data.tags["sojourn.trial"]] = {
        "name": run.info.run_name,
        "status": run.info.status,
        "params": run.data.params,
        "tags": run.data.tags,
        "metrics": {key: sorted(history(key)) for key in run.data.metrics},
        "models": {entry.path: content for entry, content in zip(models, model)},
    }
print(json.dumps(runs))
"#;

/// A tracking server with the process that answers for it.
struct Tracking(Process);

impl Drop for Tracking {
    fn drop(&mut self) {
        self.0.kill_children();
    }
}

/// Asks the system for a port that is free: `mlflow server` can't say which one it took. Where another process takes it meanwhile, the
/// server ends and another is tried.
fn tracking(folder: &Path) -> (Tracking, String) {
    let started = poll(|| {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let url = format!("http://127.0.0.1:{port}");
        let mut command = Command::new(PYTHON);
        command
            .args(["-m", "mlflow", "server", "--host", "127.0.0.1", "--workers", "1", "--port"])
            .arg(port.to_string())
            .args(["--backend-store-uri", "sqlite:///mlflow.db"])
            .args(["--artifacts-destination", "artifacts"])
            .env("MLFLOW_DISABLE_TELEMETRY", "true")
            .env("MLFLOW_SERVER_ENABLE_JOB_EXECUTION", "false")
            .current_dir(folder);
        let mut server = spawn(command, &folder.join("mlflow.log"));
        let answers = poll(|| {
            let is_up = std::net::TcpStream::connect(("127.0.0.1", port)).is_ok();
            (is_up || !server.is_running()).then_some(is_up)
        });
        (answers == Some(true)).then_some((Tracking(server), url))
    });
    started.unwrap_or_else(|| panic!("{}", log(folder)))
}

fn log(folder: &Path) -> String {
    fs::read_to_string(folder.join("mlflow.log")).unwrap_or_default()
}

fn read(folder: &Path, url: &str, experiment: &str) -> Value {
    let mut python = Command::new(PYTHON);
    python.args(["-B", "-c", READ, url, experiment]).current_dir(folder);
    let read = python.output().unwrap();
    let said = String::from_utf8_lossy(&read.stderr);
    assert!(read.status.success(), "{said}\n{}", log(folder));
    serde_json::from_slice(&read.stdout).unwrap_or_else(|error| panic!("{error}: {said}"))
}

#[test]
fn a_tracking_server_has_each_trial_once_however_often_a_job_is_pushed() {
    let site = Site::start_with_hops(2);
    let folder = site.path().join("tracking");
    fs::create_dir(&folder).unwrap();
    let (mut server, url) = tracking(&folder);
    let client = site.client("a");
    let job = site.submit(5, 3);
    site.wait(&job, |view| view["evaluations"].as_u64() > Some(1));
    let first = site.json(&["export", &job, "--mlflow", &url]);
    assert_eq!((&first["mlflow"]["runs"], &first["mlflow"]["new_runs"]), (&json!(4), &json!(4)));
    let view = site.wait(&job, |view| view["state"] == "finished");
    drop(client);
    let second = site.json(&["export", &job, "--mlflow", &url]);
    assert_eq!((&second["mlflow"]["runs"], &second["mlflow"]["new_runs"]), (&json!(4), &json!(0)));
    let runs = read(&folder, &url, "digits");
    let third = site.json(&["export", &job, "--mlflow", &url]);
    assert_eq!(
        (&third["mlflow"]["new_runs"], &third["mlflow"]["new_values"]),
        (&json!(0), &json!(0))
    );
    assert_eq!(read(&folder, &url, "digits"), runs, "nothing is there twice");
    assert!(server.0.is_running(), "{}", log(&folder));

    assert!(site.run(&["export", &job, "--json", "all.json"]).status.success());
    let all = fs::read_to_string(site.path().join("all.json")).unwrap();
    let all: Value = serde_json::from_str(&all).unwrap();
    let metrics = all["metrics"].as_array().unwrap();
    assert_eq!(runs.as_object().unwrap().len(), 4, "{runs}");
    let best = view["best"]["trial"].to_string();
    for (trial, run) in runs.as_object().unwrap() {
        assert_eq!(run["status"], "FINISHED", "{run}");
        assert_eq!(run["tags"]["sojourn.best"], (best == *trial).to_string());
        assert!(run["params"]["training.optimizer.lr"].is_string(), "{run}");
        for tag in ["train/loss", "valid/loss", "valid/accuracy"] {
            let (split, metric) = tag.split_once('/').unwrap();
            let rows = metrics.iter().filter(|row| {
                row["trial"].as_u64() == trial.parse().ok()
                    && row["split"] == split
                    && row["metric"] == metric
            });
            let expected: Vec<Value> =
                rows.map(|row| json!([row["epoch"], row["value"]])).collect();
            assert_eq!(run["metrics"][tag], json!(expected), "{tag} of trial {trial}");
        }
    }
    site.run(&["export", &job, "-o", "best.safetensors"]);
    let model = fs::read(site.path().join("best.safetensors")).unwrap();
    let hex: String = model.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(runs[&best]["models"], json!({"model.safetensors": hex}), "trial {best}");
    // A trial that was the best at the first push keeps the model that it had then.
    let before = first["mlflow"]["model"].to_string();
    for (trial, run) in runs.as_object().unwrap() {
        let has_model = *trial == best || *trial == before;
        assert_eq!(
            run["models"].as_object().unwrap().len(),
            usize::from(has_model),
            "trial {trial}"
        );
    }
}

#[test]
fn a_server_that_is_none_or_away_is_named() {
    let site = Site::start();
    let job = site.submit(5, 1);
    let pushed = |url: &str| {
        let output = site.run(&["export", &job, "--mlflow", url]);
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, said) = pushed("somewhere");
    assert!(code == Some(2) && said.contains("no address of a tracking server"), "{said}");
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (code, said) = pushed(&format!("http://{free}"));
    assert!(code == Some(3) && said.contains("can't be asked"), "{said}");
    // Sojourn's own server is none of MLflow.
    let (code, said) = pushed(&site.url);
    assert!(code == Some(1) && said.contains("refused `mlflow/experiments/get-by-name`"), "{said}");
}

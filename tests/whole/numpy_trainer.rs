//! The trainer of `examples/trainer`, in numpy, under the real server and client: whoever writes a trainer of their own has
//! its results accepted.

use crate::site::{Process, Site, program};
use serde_json::Value;
use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
};

const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/trainer");
/// `scripts/setup-tests` makes it, with numpy.
const PYTHON: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/.cache/python/bin/python");

/// A job of what the example knows of training: `mlp`, in single precision, without dropout.
const JOB: &str = r#"name = "digits"
seed = 3
[data]
train = "digits.csv"
label = "label"
shape = [1, 8, 8]
scale = "standard"
valid = 0.2
shards = 3
[[model]]
arch = "mlp"
hidden = [32]
[training]
epochs = 4
batch_size = 32
optimizer = { name = "adam", lr = { choice = [3e-3, 1e-2] } }
schedule = { name = "cosine", warmup = 10 }
clip_norm = 5.0
[placement]
"#;

/// A program that starts the example with the Python of the tests.
fn trainer(site: &Site) -> PathBuf {
    assert!(Path::new(PYTHON).is_file(), "`make test` makes the Python environment");
    let path = site.path().join("numpy-trainer");
    fs::write(&path, format!("#!/bin/sh\nexec {PYTHON} {EXAMPLE}/numpy_trainer.py \"$@\"\n"))
        .unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

fn client(site: &Site, trainer: &Path) -> Process {
    site.client_with("numpy", &["--trainer", trainer.to_str().unwrap()])
}

/// Submits [`JOB`] with these lines of `[placement]`, and waits for its end.
fn finished(site: &Site, placement: &str) -> (String, Value) {
    let csv = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/digits/digits.csv");
    fs::copy(csv, site.path().join("digits.csv")).unwrap();
    fs::write(site.path().join("job.toml"), format!("{JOB}{placement}\n")).unwrap();
    let job = site.json(&["submit", "job.toml"])["job"].to_string();
    let view = site.wait(&job, |view| view["state"] != "running");
    assert_eq!(view["state"], "finished", "{view}\n{}", site.log("numpy"));
    assert_eq!((&view["trials_finished"], &view["trials_failed"]), (&2.into(), &0.into()));
    // 2 trials x 4 epochs x 3 shards; each epoch is evaluated.
    assert_eq!((&view["hops"], &view["evaluations"]), (&24.into(), &8.into()), "{view}");
    assert_eq!(view["rejected"], 0, "{view}");
    let accuracy = view["best"]["value"].as_f64().unwrap();
    assert!(accuracy > 0.85 && accuracy <= 1.0, "{view}");
    (job, view)
}

#[test]
fn digits_are_learned_by_a_trainer_in_numpy() {
    let site = Site::start_with_hops(3);
    let _client = client(&site, &trainer(&site));
    let (job, view) = finished(&site, "reproducible = false\nvisits = \"free\"");
    let hosts = site.json(&["hosts"]);
    let engine = &hosts[0]["devices"][0]["engines"][0];
    assert_eq!((&engine["name"], &engine["models"]), (&"numpy".into(), &vec!["mlp"].into()));
    let table = String::from_utf8(site.run(&["hosts"]).stdout).unwrap();
    assert!(table.contains("by numpy"), "{table}");

    // Our own trainer takes the model for the same.
    let exported = site.json(&["export", &job, "--best", "-o", "m.safetensors"]);
    assert_eq!(exported["value"], view["best"]["value"]);
    site.json(&["predict", "m.safetensors", "digits.csv", "-o", "ours.csv"]);
    let theirs =
        run_by_numpy(&site, &["predict", "m.safetensors", "digits.csv", "-o", "theirs.csv"]);
    assert_eq!(theirs["rows"], 1797, "{theirs}");
    let read = |name: &str| fs::read_to_string(site.path().join(name)).unwrap();
    crate::models::assert_same(&read("ours.csv"), &read("theirs.csv"));
}

#[test]
fn a_reproducible_job_stays_in_the_numeric_class_of_the_trainer_in_numpy() {
    let site = Site::start();
    let client = client(&site, &trainer(&site));
    let (job, _) = finished(&site, "visits = \"free\"");
    drop(client);
    let arguments = ["replay", &job, "--trial", "1"];
    let replay = run_by_numpy(&site, &arguments);
    assert_eq!((&replay["verdict"], &replay["versions"]), (&"identical".into(), &12.into()));
    // libtorch has other classes, so it can't say whether those bytes are right.
    let output = site.run(&[&arguments[..], &["--json"]].concat());
    let foreign: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(foreign["verdict"], "not-judgeable", "{foreign}");
}

/// A command whose units are computed by the example.
fn run_by_numpy(site: &Site, arguments: &[&str]) -> Value {
    let output = Command::new(program())
        .args(arguments)
        .arg("--json")
        .env("SOJOURN_SERVER", &site.url)
        .env("SOJOURN_TOKEN", &site.token)
        .env("SOJOURN_TRAINER", trainer(site))
        .env("XDG_CACHE_HOME", site.path().join("cache"))
        .current_dir(site.path())
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {error}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The vectors of `protocol/vectors`, and conversations over the trainer's lines.
#[test]
fn the_trainer_in_numpy_passes_its_own_tests() {
    let output = Command::new(PYTHON)
        .args(["-B", "-m", "unittest", "discover"])
        .current_dir(EXAMPLE)
        .output()
        .expect("`make test` makes the Python environment");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("\nOK"), "{said}");
}

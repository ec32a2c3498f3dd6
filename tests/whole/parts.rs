//! Hops that end early: what a machine has trained when it is told to go is gone on with elsewhere, and
//! no row is trained twice or left out.

use crate::site::{PATIENCE, Site};
use serde_json::Value;
use std::{fs, time::Instant};

/// A job of one trial whose hop is two thousand batches.
const JOB: &str = r#"name = "long hops"
seed = 3
[data]
train = "rows.csv"
label = "label"
valid = 0.2
shards = 1
[[model]]
arch = "mlp"
hidden = [512, 512]
[training]
epochs = 3
batch_size = 1
optimizer = { name = "adam", lr = 1e-3 }
"#;

fn submit(site: &Site) -> String {
    let rows = (0..2500).map(|n| format!("{},{},{}\n", n % 7, n % 11, n % 2));
    fs::write(site.path().join("rows.csv"), format!("a,b,label\n{}", rows.collect::<String>()))
        .unwrap();
    fs::write(site.path().join("job.toml"), JOB).unwrap();
    site.json(&["submit", "job.toml"])["job"].to_string()
}

/// Waits until a hop runs at a host of this name.
fn until_running(site: &Site, name: &str) {
    let since = Instant::now();
    let runs = |host: &Value| {
        let leases = host["leases"].as_array().unwrap();
        let hop = |lease: &&Value| {
            lease["running"] == true && lease["unit"].as_str().unwrap().starts_with("train")
        };
        host["name"] == name && leases.iter().any(|lease| hop(&lease))
    };
    while !site.json(&["hosts"]).as_array().unwrap().iter().any(runs) {
        assert!(since.elapsed() < PATIENCE, "{name} never trained:\n{}", site.log(name));
    }
}

/// Waits until the trial has so many versions.
fn until_version(site: &Site, job: &str, version: u64) -> Value {
    let since = Instant::now();
    loop {
        let trials = site.json(&["trials", job]);
        if trials[0]["version"] == version {
            return trials[0].clone();
        }
        assert!(since.elapsed() < PATIENCE, "{trials}\n{}", site.log("server"));
    }
}

#[test]
fn what_a_machine_trained_before_it_was_told_to_go_is_gone_on_with() {
    let site = Site::start();
    let job = submit(&site);
    for (number, name) in [(1, "first"), (2, "second")] {
        let mut client = site.client(name);
        until_running(&site, name);
        assert_eq!(client.end(), Some(0), "{}", site.log(name));
        // What is acknowledged comes into the model in a moment.
        let trial = until_version(&site, &job, number);
        assert_eq!(trial["hops"], 0, "{trial}");
    }
    let _last = site.client("last");
    let view = site.wait(&job, |view| view["state"] != "running");
    assert_eq!((&view["state"], &view["hops"]), (&"finished".into(), &3.into()), "{view}");
    let trials = site.json(&["trials", &job]);
    assert_eq!(trials[0]["version"], 5, "three hops, the first in three parts: {trials}");
    // One of 2,000 rows for each of the three epochs, trained once.
    for point in trials[0]["curve"].as_array().unwrap() {
        assert_eq!(point["train"]["rows"], 2000, "{point}");
    }
    let replay = site.json(&["replay", &job, "--trial", "0"]);
    assert_eq!(
        (&replay["verdict"], &replay["versions"]),
        (&"identical".into(), &5.into()),
        "{replay}"
    );
    assert_eq!(replay["sha256"], trials[0]["checkpoint"]["sha256"]);
}

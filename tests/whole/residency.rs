//! Trials that stay on hosts, in whole processes: they move, a machine dies in the middle of it, and nothing that comes of them changes.

use crate::{
    http::poll,
    site::{Process, Site},
};
use serde_json::Value;
use std::{collections::BTreeSet, fs};

fn submit(site: &Site) -> String {
    let csv = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/digits/digits.csv");
    fs::copy(csv, site.path().join("digits.csv")).unwrap();
    let job = "name = \"stays\"\nseed = 5\n[data]\ntrain = \"digits.csv\"\nlabel = \"label\"\nshape = [1, 8, 8]\n\
               scale = \"standard\"\nvalid = 0.2\nshards = 2\n[[model]]\narch = \"mlp\"\nhidden = { choice = [[300], [310], [320], [330]] }\n\
               [training]\nepochs = 40\nbatch_size = 8\noptimizer = { name = \"sgd\", lr = 0.01, momentum = 0.9 }\n\
               [search]\nmethod = \"grid\"\n[placement]\nresidency = { policy = \"srpt\", interval = \"1s\" }\n";
    fs::write(site.path().join("stays.toml"), job).unwrap();
    site.json(&["submit", "stays.toml"])["job"].to_string()
}

fn trials(site: &Site, job: &str) -> Vec<Value> {
    site.json(&["trials", job]).as_array().unwrap().clone()
}

/// Where trials stay.
fn homes(site: &Site, job: &str) -> Vec<Value> {
    trials(site, job).iter().map(|trial| trial["residence"]["host"].clone()).collect()
}

#[test]
fn trials_move_to_a_machine_that_comes_later_and_come_to_the_same_bytes() {
    let site = Site::start();
    let job = submit(&site);
    let first: Process = site.client_with("first", &["--slots", "4"]);
    let all_stay = || homes(&site, &job).iter().all(Value::is_number);
    assert!(poll(|| all_stay().then_some(())).is_some(), "{}", site.log("first"));
    let hosts: BTreeSet<String> = homes(&site, &job).iter().map(Value::to_string).collect();
    assert_eq!(hosts.len(), 1, "there is one machine");

    let mut second = site.client_with("second", &["--slots", "4"]);
    let why = || String::from_utf8(site.run(&["events", &job, "--why"]).stdout).unwrap();
    // The trials that have moved.
    let moves = || -> Vec<String> {
        let moved = |line: &str| {
            Some(line.split_once(" moves from host ")?.0.rsplit_once("trial ")?.1.into())
        };
        why().lines().filter_map(moved).collect()
    };
    let ended = || site.job(&job)["state"] != "running";
    let moved = poll(|| (ended() || !moves().is_empty()).then_some(()));
    assert!(moved.is_some() && !moves().is_empty(), "{}", why());
    // It dies with what has just come to it, and is back.
    second.kill();
    second = site.client_with("second", &["--slots", "4"]);

    let view = site.wait(&job, |view| view["state"] != "running");
    assert_eq!(view["state"], "finished", "{view}\n{}", site.log("second"));
    assert_eq!(view["trials_failed"], 0, "{view}");
    let moved = moves();
    let once: BTreeSet<&String> = moved.iter().collect();
    assert_eq!(once.len(), moved.len(), "each moves at most once: {}", why());
    for trial in trials(&site, &job) {
        let number = trial["trial"].to_string();
        let replay = site.json(&["replay", &job, "--trial", &number]);
        assert_eq!(replay["verdict"], "identical", "{replay}");
    }
    drop((first, second));
}

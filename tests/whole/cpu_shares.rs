//! CPU shares, in whole processes: they change when trials are trained, and nothing that comes of it.

use crate::{
    ctl::status,
    http::poll,
    site::{Process, Site},
};
use serde_json::Value;
use std::fs;

const CLIENT: &str = "shared";

/// Trials of different lengths, whose units have two threads each.
fn submit(site: &Site, policy: &str) -> String {
    let csv = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/digits/digits.csv");
    fs::copy(csv, site.path().join("digits.csv")).unwrap();
    let job = format!(
        "name = \"shares\"\nseed = 5\n[data]\ntrain = \"digits.csv\"\nlabel = \"label\"\nshape = [1, 8, 8]\n\
         scale = \"standard\"\nvalid = 0.2\nshards = 1\n[[model]]\narch = \"mlp\"\nhidden = {{ choice = [[100], [700, 700], [400]] }}\n\
         [training]\nepochs = 10\nbatch_size = 8\noptimizer = {{ name = \"sgd\", lr = 0.01, momentum = 0.9 }}\n\
         [search]\nmethod = \"grid\"\n[placement]\nvisits = \"fixed\"\nthreads = 2\nhost_shares = {policy}\n"
    );
    fs::write(site.path().join("shares.toml"), job).unwrap();
    site.json(&["submit", "shares.toml"])["job"].to_string()
}

/// The digests of all trials with their numeric classes, once the job has ended. `cgroup`: are control groups used where they
/// can be? The client is killed once, in the middle.
fn trained(policy: &str, cgroup: bool) -> Vec<(Value, Value)> {
    let site = Site::start();
    let job = submit(&site, policy);
    let folder = site.path().join(CLIENT);
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("client.toml"), format!("[limits]\ncgroup = {cgroup}\n")).unwrap();
    let client = || site.client_with(CLIENT, &["--slots", "3"]);
    let mut running: Process = client();
    // Of trials that begin together least attained service gives one more than the others at once.
    let least = if policy.contains("las") { 0.5 } else { 1.0 };
    let has_cpu_share =
        |unit: &Value| unit["share"]["share"].as_f64().is_some_and(|of| of <= least);
    let has_cpu_shares = |status: &Value| {
        status["units"].as_array().is_some_and(|units| units.iter().any(has_cpu_share))
    };
    let ended = || site.job(&job)["state"] != "running";
    if policy != "\"equal\"" {
        let shared = poll(|| (ended() || has_cpu_shares(&status(&folder))).then_some(()));
        assert!(shared.is_some(), "{}", site.log(CLIENT));
        assert!(!ended(), "it has ended before a share changed\n{}", site.log(CLIENT));
        running.kill();
        running = client();
    }
    let view = site.wait(&job, |view| view["state"] != "running");
    assert_eq!(view["state"], "finished", "{view}\n{}", site.log(CLIENT));
    assert_eq!(view["trials_failed"], 0, "{view}");
    let log = site.log(CLIENT);
    assert!(!log.contains("made no progress"), "{log}");
    let trials = site.json(&["trials", &job]);
    let trials = trials.as_array().unwrap();
    for trial in trials {
        let replay = site.json(&["replay", &job, "--trial", &trial["trial"].to_string()]);
        assert_eq!(replay["verdict"], "identical", "{replay}");
    }
    drop(running);
    let made =
        |trial: &Value| (trial["numeric_class"].clone(), trial["checkpoint"]["sha256"].clone());
    trials.iter().map(made).collect()
}

/// A machine may offer several numeric classes, and its speed decides: in one class the bytes are the same.
fn agree(some: &[(Value, Value)], others: &[(Value, Value)]) {
    assert_eq!(some.len(), others.len());
    for ((class, digest), (other_class, other_digest)) in some.iter().zip(others) {
        assert!(class != other_class || digest == other_digest, "{some:?} {others:?}");
    }
}

#[test]
fn every_policy_comes_to_the_same_bytes() {
    let equal = trained("\"equal\"", true);
    assert_eq!(equal.len(), 3);
    let first = "{ policy = \"las\", interval = \"1s\", least = 0.1 }";
    agree(&trained(first, true), &equal);
    let capped = "{ policy = \"flowcon\", interval = \"1s\", alpha = 0, apply = \"cap\" }";
    agree(&trained(capped, true), &equal);
    // By pauses.
    agree(&trained(first, false), &equal);
}

//! A trial that has failed is run again by its user, after the end of its job; the others stay as they are.

use crate::site::Site;
use serde_json::{Value, json};
use std::fs;

/// The learning rate of the first of two trials is so large that its loss becomes NaN.
fn submit(site: &Site) -> String {
    let csv = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/digits/digits.csv");
    fs::copy(csv, site.path().join("digits.csv")).unwrap();
    let job = "name = \"retried\"\nseed = 5\n[data]\ntrain = \"digits.csv\"\nlabel = \"label\"\nshape = [1, 8, 8]\n\
               valid = 0.2\nshards = 2\n[[model]]\narch = \"mlp\"\nhidden = [8]\n[training]\nepochs = 2\n\
               optimizer = { name = \"sgd\", lr = { choice = [1e30, 0.01] } }\n[placement]\nvisits = \"fixed\"\n";
    fs::write(site.path().join("retried.toml"), job).unwrap();
    site.json(&["submit", "retried.toml", "--again"])["job"].to_string()
}

/// Number of events of a kind in the history of a job.
fn events(site: &Site, job: &str, kind: &str) -> usize {
    let output = site.run(&["events", job, "--json"]);
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().filter(|line| line.contains(&format!("\"{kind}\""))).count()
}

fn said(site: &Site, args: &[&str]) -> String {
    let output = site.run(args);
    let (out, error) = (output.stdout, String::from_utf8(output.stderr).unwrap());
    assert!(output.status.success(), "{error}");
    String::from_utf8(out).unwrap()
}

fn ended(site: &Site, job: &str) -> Value {
    let view = site.wait(job, |view| view["state"] != "running");
    assert_eq!(view["state"], "finished", "{view}\n{}", site.log("server"));
    site.trials(job)
}

#[test]
fn a_failed_trial_is_run_again_with_its_settings_or_with_others() {
    let site = Site::start();
    let _client = site.client("a");
    let job = submit(&site);
    let first = ended(&site, &job);
    assert_eq!((&first[0]["phase"], &first[1]["phase"]), (&json!("failed"), &json!("finished")));
    let leases = events(&site, &job, "lease-granted");

    let again = said(&site, &["trials", &job, "--retry", "failed", "--why", "the machine was bad"]);
    assert_eq!(again.trim(), "trial 0 begins anew");
    let second = ended(&site, &job);
    assert_eq!(second[0]["phase"], "failed", "its rate is as large as before");
    assert!(events(&site, &job, "lease-granted") > leases, "it was trained again");
    assert_eq!(events(&site, &job, "trial-retried"), 1);
    assert_eq!(second[1], first[1], "the other stays as it is");

    let other = said(&site, &["trials", &job, "--retry", "0", "--set", "lr=0.02"]);
    assert_eq!(other.trim(), "trial 2 begins, with the other settings");
    let third = ended(&site, &job);
    assert_eq!(third[2]["phase"], "finished");
    assert_eq!(third[2]["choices"]["training.optimizer.lr"], 0.02);
    let replay = site.json(&["replay", &job, "--trial", "2"]);
    assert_eq!(replay["verdict"], "identical", "{replay}");

    let refused = site.run(&["trials", &job, "--retry", "1"]);
    let error = String::from_utf8(refused.stderr).unwrap();
    assert!(error.contains("hasn't failed: only a failed trial is run again"), "{error}");
}

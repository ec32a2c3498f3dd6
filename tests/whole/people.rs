//! A job from its submission to a model, with real clients.

use crate::site::{Site, program};
use sojourn_model::portable::ModelFile;
use std::{fs, process::Command};

#[test]
fn a_job_goes_from_submission_to_a_model_in_a_file() {
    let site = Site::start();
    let _client = site.client("client-1");
    let job = site.submit(3, 2);
    let view = site.wait(&job, |view| view["state"] != "running");
    assert_eq!((&view["state"], &view["hops"]), (&"finished".into(), &24.into()), "{view}");
    let again = site.json(&["submit", "job.toml"]);
    assert_eq!((again["job"].to_string(), &again["submitted"]), (job.clone(), &"existing".into()));
    let exported = site.json(&["export", &job, "--best", "-o", "best.safetensors"]);
    let file = fs::read(site.path().join("best.safetensors")).unwrap();
    assert_eq!(exported["bytes"].as_u64(), u64::try_from(file.len()).ok());
    let model = ModelFile::read(&file).unwrap();
    assert_eq!(model.description.label.as_deref(), Some("label"));
    assert_eq!(model.description.origin.value, exported["value"].as_f64());
    let hosts = site.json(&["hosts"]);
    assert_eq!(hosts[0]["name"], "client-1");
    let events = site.run(&["events", &job, "--json"]);
    assert!(String::from_utf8_lossy(&events.stdout).contains("lease-granted"));
    for command in ["status", "trials", "events"] {
        let text = site.run(&[command, &job]);
        assert!(text.status.success() && !text.stdout.is_empty(), "{command}: {text:?}");
    }
}

#[test]
fn a_client_with_a_wrong_token_ends() {
    let site = Site::start();
    let client = Command::new(program())
        .args(["client", "--server", &site.url, "--token", "wrong", "--data"])
        .arg(site.path().join("client-x"))
        .output()
        .unwrap();
    assert_eq!(client.status.code(), Some(2), "{client:?}");
    assert!(String::from_utf8_lossy(&client.stderr).contains("token"), "{client:?}");
}

#[test]
fn a_cancelled_job_stops() {
    let site = Site::start();
    let _client = site.client("client-1");
    let job = site.submit(5, 200);
    site.wait(&job, |view| view["hops"].as_u64().unwrap() > 3);
    let cancelled = site.json(&["cancel", &job]);
    assert_eq!(cancelled["state"], "cancelled");
    let view = site.wait(&job, |view| view["leases_live"] == 0);
    assert_eq!(view["state"], "cancelled");
}

#[test]
fn a_diverging_trial_fails_with_its_error_and_the_others_finish() {
    let site = Site::start();
    let _clients = [site.client("client-1"), site.client("client-2")];
    let job = site.submit_with(6, 3, "[1e-3, 1e30]", "");
    let view = site.wait(&job, |view| view["state"] != "running");
    assert_eq!((&view["state"], &view["trials_finished"]), (&"finished".into(), &2.into()));
    assert_eq!(view["trials_failed"], 2, "{view}");
    let trials = site.json(&["trials", &job]);
    for trial in trials.as_array().unwrap() {
        let number = trial["trial"].to_string();
        if trial["state"] == "finished" {
            let replay = site.json(&["replay", &job, "--trial", &number]);
            assert_eq!(replay["verdict"], "identical", "{replay}");
        } else {
            let error = trial["state"]["failed"]["error"].as_str().unwrap();
            assert!(error.contains("inf") || error.contains("NaN"), "{error}");
        }
    }
}

#[test]
fn two_pinned_threads_replay_and_unpinned_jobs_are_not_judged() {
    let site = Site::start();
    let _client = site.client("client-1");
    let pinned = site.submit_with(7, 1, "[1e-3]", "threads = 2");
    site.wait(&pinned, |view| view["state"] == "finished");
    let replay = site.json(&["replay", &pinned, "--trial", "1"]);
    assert_eq!(replay["verdict"], "identical", "{replay}");
    let free = site.submit_with(7, 1, "[1e-3]", "reproducible = false");
    site.wait(&free, |view| view["state"] == "finished");
    let replay = site.run(&["replay", &free, "--trial", "0", "--json"]);
    assert_eq!(replay.status.code(), Some(1));
    let said = String::from_utf8_lossy(&replay.stdout);
    assert!(said.contains("not-judgeable") && said.contains("reproducible"), "{said}");
}

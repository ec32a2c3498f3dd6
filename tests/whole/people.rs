//! What people do to a running server, and what it tells them.

use crate::site::{Site, program};
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
    let tensors = sojourn_codec::decode(&file).unwrap();
    let names: Vec<&str> = tensors.iter().map(|tensor| tensor.name.as_str()).collect();
    assert!(names.contains(&"scaling.mean") && names.contains(&"layers.0.weight"), "{names:?}");
    assert!(!names.iter().any(|name| name.starts_with("optimizer.")), "{names:?}");
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
fn a_second_server_on_the_same_folder_or_port_refuses() {
    let site = Site::start();
    let mut same = Command::new(program());
    same.args(["serve", "--listen", "127.0.0.1:0", "--data"]).arg(site.data());
    let refused = same.output().unwrap();
    assert!(!refused.status.success());
    let error = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(error.contains("another server"), "{error}");
    let port = site.url.trim_start_matches("http://").to_owned();
    let mut taken = Command::new(program());
    taken.args(["serve", "--listen", &port, "--data"]).arg(site.path().join("other"));
    let refused = taken.output().unwrap();
    let error = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && error.contains("another program listens"), "{error}");
}

#[test]
fn a_wrong_token_is_told_so_and_a_client_without_the_right_one_ends() {
    let site = Site::start();
    let wrong = Command::new(program())
        .args(["jobs", "--server", &site.url, "--token", "wrong"])
        .output()
        .unwrap();
    assert_eq!(wrong.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("token"));
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

//! Hops that end early: another machine continues where a stopped one was, and no row is trained twice or left out.

use crate::{ctl::status, http::poll, site::Site};
use serde_json::Value;
use std::{
    collections::BTreeSet,
    fs,
    io::{BufRead, BufReader, Write},
    net::TcpListener,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

/// A job of one trial, with a hop over each shard in each epoch.
fn job(epochs: u32, shards: u32) -> String {
    format!(
        r#"name = "long hops"
seed = 3
[data]
train = "rows.csv"
label = "label"
valid = 0.2
shards = {shards}
[[model]]
arch = "mlp"
hidden = [512, 512]
[training]
epochs = {epochs}
batch_size = 1
optimizer = {{ name = "adam", lr = 1e-3 }}
"#
    )
}

/// Submits one with hops of so many batches, one in each epoch.
pub(crate) fn submit(site: &Site, epochs: u32, batches: u32) -> String {
    submit_shards(site, epochs, 1, batches)
}

/// The same with as many hops in each epoch, and so many batches in all of them.
fn submit_shards(site: &Site, epochs: u32, shards: u32, batches: u32) -> String {
    let rows = (0..batches / 4 * 5).map(|n| format!("{},{},{}\n", n % 7, n % 11, n % 2));
    fs::write(site.path().join("rows.csv"), format!("a,b,label\n{}", rows.collect::<String>()))
        .unwrap();
    fs::write(site.path().join("job.toml"), job(epochs, shards)).unwrap();
    site.json(&["submit", "job.toml"])["job"].to_string()
}

/// Waits until a hop runs at a host of this name.
fn until_running(site: &Site, name: &str) {
    let runs = |host: &Value| {
        let leases = host["leases"].as_array().unwrap();
        let hop = |lease: &&Value| {
            lease["running"] == true && lease["unit"].as_str().unwrap().starts_with("train")
        };
        host["name"] == name && leases.iter().any(|lease| hop(&lease))
    };
    let running = poll(|| site.get("hosts").as_array().unwrap().iter().any(runs).then_some(()));
    assert!(running.is_some(), "{name} never trained:\n{}", site.log(name));
}

/// Waits until the trial has so many versions.
fn until_version(site: &Site, job: &str, version: u64) -> Value {
    let trial = || Some(site.trials(job)[0].clone());
    poll(|| trial().filter(|trial| trial["version"] == version))
        .unwrap_or_else(|| panic!("{:?}\n{}", trial(), site.log("server")))
}

#[test]
fn a_hop_that_a_stopped_machine_left_is_continued_elsewhere() {
    let site = Site::start();
    let job = submit(&site, 3, 2000);
    for (number, name) in [(1, "first"), (2, "second")] {
        let mut client = site.client(name);
        until_running(&site, name);
        assert_eq!(client.end(), Some(0), "{}", site.log(name));
        // An acknowledged result becomes a version in a moment.
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

/// Has a client do something, or say something.
fn ctl(site: &Site, name: &str, args: &[&str]) -> Value {
    let data = site.path().join(name);
    let to = ["client", "ctl", "--data", data.to_str().unwrap()];
    let output = site.run(&[&to, args, &["--json"]].concat());
    // It may not listen yet.
    serde_json::from_slice(&output.stdout).unwrap_or_default()
}

/// Waits until the state of a client's unit is so.
fn until_state(site: &Site, name: &str, so: impl Fn(&Value) -> bool) {
    let data = site.path().join(name);
    let seen = poll(|| {
        let status = status(&data);
        let mut units = status["units"].as_array().into_iter().flatten();
        units.any(|unit| so(&unit["state"])).then_some(())
    });
    assert!(seen.is_some(), "{}\n{}", status(&data), site.log(name));
}

/// Waits until the unit of a client has done more than so many batches.
fn until_done(site: &Site, name: &str, batches: u64) {
    let more = |done: &Value| done.as_u64().is_some_and(|done| done > batches);
    until_state(site, name, |state| {
        more(&state["running"]["done"]) || more(&state["awaiting"]["done"])
    });
}

#[test]
fn a_unit_starts_with_its_first_shard_while_a_slow_link_brings_the_others() {
    let site = Site::start_with_hops(4);
    // Four shards of 200 rows, each as large as what a line carries before it is to wait.
    let job = submit_shards(&site, 1, 4, 800);
    let mut client = site.client_with("slow", &["--limit", "download=100B/s"]);
    until_state(&site, "slow", |state| state["awaiting"]["done"] == 200);
    let text = site.run(&["client", "ctl", "--data", "slow", "status"]);
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    assert!(text.contains("batch 200 of 800, waits for a shard"), "{text}");
    ctl(&site, "slow", &["limits", "download="]);
    let view = site.wait(&job, |view| view["state"] != "running");
    assert_eq!((&view["state"], &view["hops"]), (&"finished".into(), &4.into()), "{view}");
    let trials = site.json(&["trials", &job]);
    assert_eq!(trials[0]["version"], 1, "one lease, one checkpoint: {trials}");
    let replay = site.json(&["replay", &job, "--trial", "0"]);
    assert_eq!(replay["verdict"], "identical", "{replay}");
    assert_eq!(replay["sha256"], trials[0]["checkpoint"]["sha256"]);
    assert_eq!(client.end(), Some(0));
}

#[test]
fn several_hops_under_one_lease_end_at_their_current_shard() {
    let site = Site::start_with_hops(8);
    // Eight shards of 2,000 rows.
    let job = submit_shards(&site, 1, 8, 16_000);
    let mut client = site.client("first");
    until_done(&site, "first", 2_000);
    assert_eq!(client.end(), Some(0), "{}", site.log("first"));
    let trial = until_version(&site, &job, 1);
    let whole = trial["hops"].as_u64().unwrap();
    assert!((1..8).contains(&whole), "one hop at least is whole: {trial}");
    // The trainer of the next is killed on its way; what it kept is on whichever shard it was at.
    let client = site.client_with("mortal", &["--keep-seconds", "1"]);
    let kept =
        || fs::read_dir(site.path().join("mortal/outbox")).is_ok_and(|mut d| d.next().is_some());
    let kept = poll(|| kept().then_some(()));
    assert!(kept.is_some(), "nothing was kept:\n{}", site.log("mortal"));
    assert_eq!(client.kill_children(), 1);
    let view = site.wait(&job, |view| view["state"] != "running");
    assert_eq!((&view["state"], &view["hops"]), (&"finished".into(), &8.into()), "{view}");
    let trials = site.json(&["trials", &job]);
    for point in trials[0]["curve"].as_array().unwrap() {
        assert_eq!(point["train"]["rows"], 16_000, "each row once: {point}");
    }
    let versions = trials[0]["version"].as_u64().unwrap();
    assert!(versions < 8, "fewer checkpoints than hops: {trials}");
    let replay = site.json(&["replay", &job, "--trial", "0"]);
    assert_eq!((&replay["verdict"], &replay["versions"]), (&"identical".into(), &versions.into()));
    assert_eq!(replay["sha256"], trials[0]["checkpoint"]["sha256"]);
}

#[test]
fn partial_checkpoints_survive_the_trainer() {
    let site = Site::start();
    // Some ten seconds, so that it is still at work when it is killed.
    let job = submit(&site, 1, 20_000);
    let client = site.client_with("mortal", &["--keep-seconds", "1"]);
    // Of another lease than before: that one's may be on its way yet.
    let mut before = BTreeSet::new();
    let mut kept = || {
        let files = fs::read_dir(site.path().join("mortal/outbox")).into_iter().flatten();
        let mut names = files.map(|file| file.unwrap().path());
        names.any(|name| name.extension() == Some("json".as_ref()) && before.insert(name))
    };
    for version in [1, 2] {
        let found = poll(|| kept().then_some(()));
        assert!(found.is_some(), "nothing was kept:\n{}", site.log("mortal"));
        assert_eq!(client.kill_children(), 1);
        assert_eq!(until_version(&site, &job, version)["hops"], 0);
    }
    let view = site.wait(&job, |view| view["state"] != "running");
    assert_eq!((&view["state"], &view["trials_failed"]), (&"finished".into(), &0.into()), "{view}");
    let trials = site.json(&["trials", &job]);
    assert_eq!(trials[0]["version"], 3, "one hop in three parts: {trials}");
    assert_eq!(trials[0]["curve"][0]["train"]["rows"], 20_000, "{trials}");
    let replay = site.json(&["replay", &job, "--trial", "0"]);
    assert_eq!(
        (&replay["verdict"], &replay["versions"]),
        (&"identical".into(), &3.into()),
        "{replay}"
    );
}

/// A stand-in for Azure's metadata service, which says that this machine is being taken away once it `goes`.
fn azure(goes: &Arc<AtomicBool>) -> String {
    let goes = Arc::clone(goes);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = BufReader::new(stream.unwrap());
            let lines = (&mut stream).lines().map_while(Result::ok);
            let head: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
            // The client that asked may be gone.
            let Some(path) = head.first().and_then(|line| line.split_whitespace().nth(1)) else {
                continue;
            };
            let body = match path.split('?').next().unwrap() {
                "/metadata/instance/compute/name" => "spot",
                "/metadata/scheduledevents" if !goes.load(Ordering::SeqCst) => r#"{"Events": []}"#,
                "/metadata/scheduledevents" => {
                    r#"{"Events": [{"EventType": "Preempt", "Resources": ["spot"], "NotBefore": ""}]}"#
                }
                _ => "",
            };
            let status = if body.is_empty() { "404 Not Found" } else { "200 OK" };
            let length = body.len();
            let answer = format!(
                "HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
            );
            stream.get_mut().write_all(answer.as_bytes()).ok();
        }
    });
    url
}

#[test]
fn a_spot_machine_hands_its_hop_over_before_it_is_taken_away() {
    let site = Site::start();
    let job = submit(&site, 1, 100_000);
    let goes = Arc::default();
    let mut client = site.client_with("spot", &["--metadata", &azure(&goes)]);
    until_running(&site, "spot");
    goes.store(true, Ordering::SeqCst);
    assert_eq!(client.wait(), Some(0), "{}", site.log("spot"));
    assert!(site.log("spot").contains("is going to be preempted"), "{}", site.log("spot"));
    assert!(site.json(&["hosts"])[0]["leases"].as_array().unwrap().is_empty());
    until_version(&site, &job, 1);
    assert_eq!(site.job(&job)["state"], "running");
    // On a machine that is still going, a client that is started again takes nothing.
    let mut again = site.client_with("spot", &["--metadata", &azure(&goes)]);
    assert_eq!(again.wait(), Some(0), "{}", site.log("spot"));
    assert!(site.log("spot").contains("taking no work"), "{}", site.log("spot"));
}

#[test]
fn a_checkpoint_goes_over_a_slow_line_once_for_each_hop() {
    let site = Site::start_with_hops(1);
    // Four hops of a model that its host's line takes most of a second to send: a plan keeps it there, and each hop begins
    // while the checkpoint of the one before is on its way.
    let job = submit_shards(&site, 2, 4, 800);
    let mut client = site.client_with("slow", &["--limit", "upload=4MB/s"]);
    let view = site.wait(&job, |view| view["state"] != "running");
    assert_eq!((&view["state"], &view["hops"]), (&"finished".into(), &8.into()), "{view}");
    let trials = site.json(&["trials", &job]);
    assert_eq!(trials[0]["version"], 8, "one checkpoint for each hop: {trials}");
    let health = site.get("health");
    assert_eq!(health["checkpoint_uploads"], 8, "{health}\n{}", site.log("slow"));
    let replay = site.json(&["replay", &job, "--trial", "0"]);
    assert_eq!(replay["verdict"], "identical", "{replay}");
    assert_eq!(client.end(), Some(0));
}

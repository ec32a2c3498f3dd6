//! Machines that lie about what they have trained: one that returns what it was given, and one whose owner is honest until trusted.

use super::{
    assert_identical,
    between::{Between, Lie},
    count, start_stranger,
};
use crate::{hostile::token_of, site::Site};
use serde_json::Value;

/// Confirmed hops in a row after which the owner lies: half of its results are verified then.
const IN_ROW: u64 = 20;

fn wait_finished(site: &Site, job: &str) -> Value {
    let view = site.wait(job, |view| view["state"] != "running");
    assert_eq!(
        (&view["state"], &view["trials_finished"]),
        (&"finished".into(), &4.into()),
        "{view}"
    );
    view
}

/// The words that a command prints for people.
fn said(site: &Site, args: &[&str]) -> String {
    String::from_utf8(site.run(args).stdout).unwrap()
}

#[test]
fn a_machine_that_returns_what_it_was_given_gets_nothing_into_a_model() {
    let site = Site::start();
    let _own = site.client("own");
    let between = Between::start(&site.url, Lie::Copies);
    let token = token_of(&site, "mallory", "1");
    let _mallory = start_stranger(&site, ("mallory", &token), &between.url, None);
    // Which machine gets which unit isn't sure: there are jobs until it was found.
    for seed in 11..31 {
        let job = site.submit(seed, 4);
        wait_finished(&site, &job);
        assert_identical(&site, &job);
        if count(&site, "mallory", "refuted") == 0 {
            continue;
        }
        assert!(between.lies() > 0);
        let table = said(&site, &["hosts"]);
        let line = table.lines().find(|line| line.contains("mallory")).unwrap();
        assert!(line.contains(" refuted") && line.contains("all verified"), "{table}");
        let model = site.path().join("best.safetensors");
        let exported = site.json(&["export", &job, "--best", "-o", model.to_str().unwrap()]);
        assert_eq!(exported["unverified"], Value::Null, "{exported}");
        return;
    }
    panic!("after {} lies none was found: {}", between.lies(), site.get("hosts"));
}

/// Is a result of a host in a job that nobody has confirmed?
fn has_unconfirmed(site: &Site, job: &str, host: &Value) -> bool {
    (0..4).any(|trial| {
        let history = site.get(&format!("jobs/{job}/trials/{trial}/history"));
        let mut hops = history["hops"].as_array().unwrap().iter();
        hops.any(|hop| hop["host"] == *host && hop["verified"].is_null())
    })
}

fn doubts(site: &Site, job: &str) -> Value {
    site.get(&format!("jobs/{job}"))["summary"]["doubts"].clone()
}

/// A lie that isn't in the sample passes. One that is takes back all that nobody confirmed: by itself where little is lost, else by the
/// command that `status` says.
#[test]
fn an_owner_who_lies_once_trusted_is_found_and_what_nobody_confirmed_is_taken_back() {
    let site = Site::start();
    let _own = site.client("own");
    let between = Between::start(&site.url, Lie::Hops);
    between.set_lying(false);
    let token = token_of(&site, "mallory", "1");
    let mallory = start_stranger(&site, ("mallory", &token), &between.url, None);
    let mut seeds = 11..51;
    let mut jobs = Vec::new();
    while count(&site, "mallory", "confirmed_in_row") < IN_ROW {
        let seed = seeds.next().expect("an owner who is trusted after so many jobs");
        let job = site.submit(seed, 4);
        wait_finished(&site, &job);
        jobs.push(job);
    }
    assert_eq!(count(&site, "mallory", "refuted"), 0, "{}", site.get("hosts"));

    let hosts = site.get("hosts");
    let mut hosts = hosts.as_array().unwrap().iter();
    let host = hosts.find(|host| host["owner"] == "mallory").unwrap()["host"].clone();
    // From then on there is something to take back.
    let mut lies_since = None;
    while count(&site, "mallory", "refuted") == 0 {
        let seed = seeds.next().expect("a lie that is found after so many jobs");
        let job = site.submit(seed, 8);
        site.wait(&job, |view| {
            if lies_since.is_none() && has_unconfirmed(&site, &job, &host) {
                between.set_lying(true);
                lies_since = Some(job.clone());
            }
            view["state"] != "running"
        });
        wait_finished(&site, &job);
        jobs.push(job);
    }
    drop(mallory);
    assert!(between.lies() > 0);
    assert_eq!(count(&site, "mallory", "confirmed_in_row"), 0, "{}", site.get("hosts"));

    let mut asked = Vec::new();
    for job in &jobs {
        let doubts_before = doubts(&site, job);
        if doubts_before.is_null() {
            continue;
        }
        assert_eq!(doubts_before[0]["host"], host, "{doubts_before}");
        let status = said(&site, &["status", job]);
        let command = format!("`sojourn rollback JOB --host {host}` takes them back");
        assert!(status.contains("in doubt") && status.contains(&command), "{status}");
        let back = site.json(&["rollback", job, "--host", &host.to_string(), "--reopen", "--yes"]);
        assert!(!back.as_array().unwrap().is_empty(), "{back}");
        wait_finished(&site, job);
        assert_eq!(doubts(&site, job), Value::Null);
        asked.push(job);
    }
    let (first, last) = (lies_since.unwrap(), jobs.last().unwrap());
    let events = said(&site, &["events", last]);
    if first == *last {
        let by_itself = format!(": host {host} was refuted");
        let asks =
            format!(" host {host} was refuted; to take back what nobody confirmed of its party");
        let is_either = |line: &str| line.ends_with(&by_itself) || line.contains(&asks);
        assert!(events.lines().any(is_either), "nothing was taken back:\n{events}");
    } else {
        // Its last results were in a job that had ended.
        assert!(asked.contains(&&first), "nothing of job {first} is in doubt");
    }
    for job in &jobs {
        assert_identical(&site, job);
    }
}

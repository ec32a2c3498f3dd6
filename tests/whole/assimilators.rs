//! Processes that assimilate beside a server that doesn't: killed at each step of their work and at random instants,
//! they make what one machine makes, each result once.

use crate::{
    http::poll,
    site::{Process, Site, program},
};
use serde_json::Value;
use sojourn_protocol::seeds;
use std::{
    collections::BTreeSet,
    process::{Command, Output},
};

/// The lines of an assimilator's log about a unit, in order.
const STEPS: [&str; 4] =
    ["unit taken", "upload read and checked", "version made", "version published"];
const MERGED: &str = r#"
order = "merge"
merge = { rule = "delayed-nesterov", momentum = 0.5, canary = 10.0 }
"#;

const BY_RANGES: &str = r#"
order = "merge"
merge = { rule = "delayed-nesterov", momentum = 0.5 }
"#;

/// Two of them, of which one is killed and started again now and then.
struct Pair<'a> {
    site: &'a Site,
    /// More arguments of both.
    more: &'static [&'static str],
    both: [Process; 2],
}

impl<'a> Pair<'a> {
    fn start(site: &'a Site) -> Self {
        Self::start_with(site, &[])
    }

    fn start_with(site: &'a Site, more: &'static [&'static str]) -> Self {
        Self { site, more, both: [0, 1].map(|n| site.assimilator_with(&name(n), more)) }
    }

    /// Kills one at the next unit of which its log says this, or when the job has ended.
    fn kill_at(&mut self, n: usize, step: &str, job: &str) {
        let said = self.site.log(&name(n)).len();
        let reached = poll(|| {
            let reached = self.site.log(&name(n))[said..].contains(step);
            let ended = !reached && self.site.job(job)["state"] != "running";
            (reached || ended).then_some(reached)
        });
        match reached {
            Some(true) => self.kill(n),
            Some(false) => {}
            None => panic!("no `{step}` in:\n{}", self.site.log(&name(n))),
        }
    }

    fn kill(&mut self, n: usize) {
        self.both[n].kill();
        self.both[n] = self.site.assimilator_with(&name(n), self.more);
    }
}

fn name(n: usize) -> String {
    format!("assimilator-{n}")
}

/// Every trial is its replay's, and no result was used twice.
fn check(site: &Site, job: &str) {
    let view = site.job(job);
    assert_eq!(view["state"], "finished", "{view}\n{}", site.log("server"));
    for trial in site.json(&["trials", job]).as_array().unwrap() {
        let number = trial["trial"].to_string();
        let replay = site.json(&["replay", job, "--trial", &number]);
        assert_eq!(replay["verdict"], "identical", "trial {number}: {replay}");
        assert_eq!(replay["sha256"], trial["checkpoint"]["sha256"]);
    }
    let events = site.run(&["events", job, "--json"]);
    let mut leases = BTreeSet::new();
    for line in String::from_utf8_lossy(&events.stdout).lines() {
        let event: Value = serde_json::from_str(line).unwrap();
        if event["kind"] == "assimilated" {
            assert!(leases.insert(event["event"]["lease"].to_string()), "{event}");
        }
    }
    assert_eq!(leases.len().to_string(), view["hops"].to_string());
}

#[test]
fn assimilators_that_are_killed_at_each_step_make_each_version_once() {
    let mut site = Site::start_without_assimilators();
    let _clients = [0, 1].map(|n| site.client(&format!("client-{n}")));
    let job = site.submit(11, 8);
    let mut pair = Pair::start(&site);
    for (n, step) in STEPS.into_iter().chain(STEPS).enumerate() {
        pair.kill_at(n % 2, step, &job);
    }
    let backlog = site.json(&["backlog"]);
    assert_eq!(backlog["threads"], 0, "{backlog}");
    assert_eq!(backlog["assimilators"].as_array().unwrap().len(), 2, "{backlog}");
    assert!(backlog["ended"].as_u64().unwrap() > 0, "{backlog}");
    let Pair { mut both, .. } = pair;

    // The server too: what it had handed out is offered to the one that comes after it.
    let hops = site.job(&job)["hops"].as_u64().unwrap();
    site.restart();
    site.wait(&job, |view| view["hops"].as_u64().unwrap() > hops || view["state"] != "running");
    site.wait(&job, |view| view["state"] != "running");
    check(&site, &job);
    for one in &mut both {
        assert_eq!(one.end(), Some(0), "one that is told to end does, though it waits for work");
    }
}

#[test]
fn merging_assimilators_that_are_killed_at_random_instants_replay() {
    let site = Site::start_without_assimilators();
    let _clients = [0, 1].map(|n| site.client(&format!("client-{n}")));
    let job = site.submit_with(12, 6, "[1e-2]", MERGED);
    let mut pair = Pair::start(&site);
    let mut chance = seeds::stream("assimilators", &[12]);
    for kill in 1..=6u64 {
        // The instants are random in the job's own time.
        let after = kill * 5 + u64::from(seeds::below(&mut chance, 3));
        let victim = usize::try_from(seeds::below(&mut chance, 2)).unwrap();
        site.wait(&job, |view| {
            view["hops"].as_u64().unwrap() >= after || view["state"] != "running"
        });
        pair.kill(victim);
    }
    site.wait(&job, |view| view["state"] != "running");
    check(&site, &job);
}

#[test]
fn two_assimilators_share_a_large_merge_though_one_is_killed_at_a_range() {
    let site = Site::start_without_assimilators();
    let _clients = [0, 1].map(|n| site.client(&format!("client-{n}")));
    let job = site.submit_with(13, 4, "[1e-2]", BY_RANGES);
    // Here even small checkpoints are split; replays merge in one piece.
    let mut pair = Pair::start_with(&site, &["--split-over", "16KiB"]);
    for (n, step) in [(0, "range taken"), (1, "merge decided"), (1, "range taken")] {
        pair.kill_at(n, step, &job);
    }
    site.wait(&job, |view| view["state"] != "running");
    check(&site, &job);
    for n in [0, 1] {
        let log = site.log(&name(n));
        for step in ["merge shared", "range done"] {
            assert!(log.contains(step), "{n} has no `{step}`:\n{log}");
        }
    }
}

fn assimilate(server: &str, token: &str, blobs: &str) -> Output {
    let mut command = Command::new(program());
    command.args(["assimilate", "--server", server, "--token", token, "--blobs", blobs]);
    command.output().unwrap()
}

fn told(output: &Output, code: i32, what: &str) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{said}");
    assert!(said.contains(what), "{said}");
}

#[test]
fn an_assimilator_that_cannot_work_says_why() {
    let site = Site::start_without_assimilators();
    let token = std::fs::read_to_string(site.data().join("assimilator-token")).unwrap();
    let (token, blobs) = (token.trim(), site.blobs());
    told(
        &assimilate(&site.url, &site.token, &blobs),
        2,
        "this is a user's token, and that of assimilators",
    );
    let elsewhere = format!("{blobs}-other");
    told(&assimilate(&site.url, token, &elsewhere), 2, "the server's blobs are at `file://");
    told(&assimilate("http://127.0.0.1:1", token, &blobs), 3, "no answer from the server at");

    let alone = ["serve", "--assimilators", "0", "--listen", "127.0.0.1:0", "--data"];
    let alone = Command::new(program()).args(alone).arg(site.path().join("alone")).output();
    told(&alone.unwrap(), 2, "by `--blobs`");

    let plain = Site::start();
    let token = std::fs::read_to_string(plain.data().join("assimilator-token")).unwrap();
    told(&assimilate(&plain.url, token.trim(), &blobs), 2, "in its own folder");
}

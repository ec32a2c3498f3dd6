//! How well a client keeps to what its owner allows: what was asked for is the anchor, the ratio what it took of
//! that.

use crate::{
    figure,
    job::Job,
    site::{Site, seconds},
    size,
};
use serde_json::Value;
use std::{
    fs, thread,
    time::{Duration, Instant},
};

const LOOK_EVERY: Duration = Duration::from_millis(2);

/// In percent, bytes a second, and bytes.
const CPU: f64 = 50.0;
const RATE: f64 = 3e6;
const MEMORY: f64 = 350e6;

/// So many seconds of watching.
fn over(seconds: u64) -> Duration {
    Duration::from_secs(seconds) / size::of(1, 50)
}

/// Each limit, where there are two ways of keeping it both.
pub(crate) fn measure() {
    for groups in [false, true] {
        let how = if groups { "by control groups" } else { "without control groups" };
        match cpu(groups) {
            Some(ratio) => {
                let name = format!("share of a core over 10 s at cpu=50 and threads=1, {how}");
                figure(&format!("{name}; beside the limit"), ratio, "%", CPU);
            }
            None => eprintln!("limits: no control groups of processor time here"),
        }
        match memory(groups) {
            Some(most) => {
                let name = format!("most memory of trainers that want more, {how}");
                figure(&format!("{name}; beside the limit"), most / 1e6, "MB", MEMORY / 1e6);
            }
            None => eprintln!("limits: no control groups of memory here"),
        }
    }
    let rate = download();
    figure("bytes a second over 5 s of a download; beside the limit", rate, "B/s", RATE);
    let rate = upload();
    figure("bytes a second over 5 s of an upload; beside the limit", rate, "B/s", RATE);
}

/// A client with one slot that is kept to these limits, and with a job. None where control groups are wanted and
/// don't keep the limit.
fn site(job: &Job, groups: bool, limits: &[&str], kept: &str) -> Option<Site> {
    let site = Site::start(job);
    let groups_too = format!("cgroup={groups}");
    let limits = limits.iter().copied().chain([groups_too.as_str()]);
    let limits: Vec<&str> = limits.flat_map(|limit| ["--limit", limit]).collect();
    site.client_with("client", 1, &[&["--gpus", "none"], limits.as_slice()].concat());
    site.await_hosts(1);
    let keepers = site.status("client")["keepers"]["groups"].take();
    let is_kept = keepers.as_str().is_some_and(|keepers| keepers.contains(kept));
    if groups && !is_kept {
        return None;
    }
    site.submit();
    Some(site)
}

fn cpu(groups: bool) -> Option<f64> {
    let site = site(&Job::long_hops(4), groups, &["cpu=50", "threads=1"], "cpu")?;
    while unit(&site)["running"]["done"].as_u64().unwrap_or(0) == 0 {
        thread::sleep(LOOK_EVERY);
    }
    let trainers = site.trainers();
    let taken = || trainers.iter().map(|pid| seconds(*pid)).sum::<f64>();
    let (before, begun) = (taken(), Instant::now());
    thread::sleep(over(10));
    Some((taken() - before) / begun.elapsed().as_secs_f64() * 100.0)
}

/// The most that trainers had in memory while they tried to train what doesn't fit.
fn memory(groups: bool) -> Option<f64> {
    let site = site(&Job::large(), groups, &["memory=350MB"], "memory")?;
    let (mut most, begun) = (0.0, Instant::now());
    while begun.elapsed() < over(10) {
        most = site.trainers().into_iter().map(resident).sum::<f64>().max(most);
        thread::sleep(LOOK_EVERY);
    }
    Some(most)
}

fn download() -> f64 {
    let job = Job::many_rows();
    let site = site(&job, false, &["download=3MB/s"], "").unwrap();
    rate(&site, |unit| unit["fetching"]["fetched"].as_f64())
}

fn upload() -> f64 {
    let site = site(&Job::wide(), false, &["upload=3MB/s"], "").unwrap();
    rate(&site, |unit| unit["sending"]["sent"].as_f64())
}

/// How fast a count of bytes grows once it does.
fn rate(site: &Site, count: impl Fn(&Value) -> Option<f64>) -> f64 {
    let now = || (count(&unit(site)).unwrap_or(0.0), Instant::now());
    let mut before = now();
    while before.0 <= 0.0 {
        thread::sleep(LOOK_EVERY);
        before = now();
    }
    thread::sleep(over(5));
    let after = now();
    (after.0 - before.0) / after.1.duration_since(before.1).as_secs_f64()
}

/// How far the client's first unit is; null between two units.
fn unit(site: &Site) -> Value {
    let mut status = site.status("client");
    status["units"].get_mut(0).map_or(Value::Null, |unit| unit["state"].take())
}

/// Bytes of a process that are in memory.
fn resident(pid: u32) -> f64 {
    // It may have been ended meanwhile.
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    line.split_whitespace().next().map_or(0.0, |number| number.parse::<f64>().unwrap() * 1024.0)
}

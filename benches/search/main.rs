//! The main job as a whole, with the programs that people run: `sojourn serve`, `sojourn client`,
//! `sojourn submit`, and a trainer for each slot. Prints one JSON line per figure.
//!
//! ```text
//! whole search     12 trials on digits, from the first process to the leader board, for two lengths
//! busy slots       two clients, units of about a second: the share of the time in which slots train
//! kills            two clients that end every 30 s: what is trained for nothing, with and without a notice
//! idle             two clients on lines of 20 MB/s: what passes in a slot between units of about a second
//! limits           what a client takes of processor time, memory and line, beside what its owner allows
//! watching         a client with eight slots that train: the processor time that it takes itself
//! cost of a hop    one trial on one slot: what passes between hops, beside their training
//! ```
//!
//! With names of figures as arguments only those are measured. `SOJOURN_BENCH_PYTHON` names a Python with
//! `torch`: the programs in `benches/anchors` are then measured beside the search.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a bench ends at what it did not expect"
)]

mod anchor;
mod job;
mod kills;
mod limits;
mod line;
mod site;
#[path = "../size.rs"]
mod size;

use job::Job;
use kills::End;
use serde_json::{Value, json};
use site::Site;
use std::{
    fs, thread,
    time::{Duration, Instant},
};

/// The wanted figures, where there is no program to measure beside.
const BUSY: f64 = 0.95;
const REDONE_NOTICED: f64 = 0.02;
const REDONE_KILLED: f64 = 0.1;
const HOP_MILLIS: f64 = 8.0;
const IDLE_MILLIS: f64 = 50.0;
/// Percent of a core.
const WATCHING: f64 = 0.5;
const RESIDENT_MB: f64 = 350.0;
const TRANSFERS: f64 = 1.05;
const SEARCH_SECONDS: f64 = 16.0;
const SHORT_SECONDS: f64 = 3.0;
/// Milliseconds of processor time for each hop and each evaluation, of server and clients together.
const UNIT_MILLIS: f64 = 1.5;

/// Bytes a second of a slow line.
const LINE: f64 = 20e6;

fn main() {
    let wanted: Vec<String> =
        std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let is_wanted = |name: &str| wanted.is_empty() || wanted.iter().any(|want| want == name);
    if is_wanted("search") {
        search(size::of(60, 1), SEARCH_SECONDS, true);
    }
    if is_wanted("short") {
        search(size::of(3, 1), SHORT_SECONDS, false);
    }
    if is_wanted("busy") {
        busy();
    }
    if is_wanted("kills") {
        let name = "seconds trained for nothing over seconds trained, an end every 30 s";
        let noticed = kills::redone(End::Notice);
        figure(&format!("{name}, with a notice; beside the target"), noticed, "1", REDONE_NOTICED);
        let killed = kills::redone(End::Kill);
        figure(&format!("{name}, without; beside the target"), killed, "1", REDONE_KILLED);
    }
    if is_wanted("idle") {
        idle();
    }
    if is_wanted("limits") {
        limits::measure();
    }
    if is_wanted("watching") {
        watching();
    }
    if is_wanted("hop") {
        hop();
    }
}

/// From nothing to the leader board, several times, of which the middle one counts. `costs`: also what was moved in the
/// last one, and what memory it took.
fn search(epochs: u32, target: f64, costs: bool) {
    let mut turns = Vec::new();
    let mut last = None;
    for _ in 0..size::of(3, 1) {
        let begun = Instant::now();
        let site = Site::start(&Job::search(epochs));
        site.client("client", 2);
        let job = site.submit_and_wait();
        let board = site.read(&["trials", "1"]);
        turns.push(begun.elapsed().as_secs_f64());
        assert_eq!(board.as_array().map(Vec::len), Some(12), "every trial is on the board");
        assert_eq!(job.pointer("/outcome/state").and_then(Value::as_str), Some("finished"));
        eprintln!("search of {epochs} epochs: {:.2} s; {}", turns[turns.len() - 1], site.cost());
        last = Some(site);
    }
    let name = format!("whole search, 12 trials x {epochs} epochs, cold, 2 slots");
    let took = middle(&mut turns);
    figure(&format!("{name}; beside the target"), took, "s", target);
    for (program, seconds) in anchor::searches(epochs) {
        figure(&format!("{name}; beside {program}"), took, "s", seconds);
    }
    let Some(site) = last.filter(|_| costs) else { return };
    let (uploads, downloads) = site.transfers();
    figure("checkpoint uploads over hops; beside the target", uploads, "1", TRANSFERS);
    figure("downloads over hops and evaluations; beside the target", downloads, "1", TRANSFERS);
    figure("resident memory per slot; beside the target", site.resident_mb(), "MB", RESIDENT_MB);
    let (server, clients) = site.millis_per_unit();
    let beside = "for a hop or an evaluation; beside the target for both";
    figure(&format!("processor time of the server {beside}"), server, "ms", UNIT_MILLIS);
    figure(&format!("processor time of the clients {beside}"), clients, "ms", UNIT_MILLIS);
}

/// Two clients with a slot each, and units of about a second.
fn busy() {
    let site = Site::start(&Job::heavy());
    site.client("client-1", 1);
    site.client("client-2", 1);
    site.await_hosts(2);
    site.submit_and_wait();
    let events = site.events();
    let begun = site::at(site::first(&events, "lease-granted"));
    let ended = site::at(site::last(&events, "evaluated"));
    let detail = site.read(&["status", "1"]);
    let trained = detail["summary"]["train_micros"].as_f64().unwrap() / 1e6;
    let units = events.iter().filter(|event| site::kind(event) == "lease-granted").count();
    #[expect(clippy::cast_precision_loss, reason = "a hundred units")]
    let each = trained / units as f64;
    let ratio = trained / (2.0 * (ended - begun) / 1e3);
    eprintln!("busy slots: {units} units of {each:.2} s on average; {}", site.cost());
    figure("share of the time in which two slots train; beside the target", ratio, "1", BUSY);
}

/// Two clients with a slot each, whose checkpoints of 11 MB take half a second each way.
fn idle() {
    let site = Site::start(&Job::many_heavy());
    let names = ["client-1", "client-2"];
    for name in names {
        site.client_over(name, LINE);
    }
    site.await_hosts(2);
    site.submit_and_wait();
    let log = |name: &str| fs::read_to_string(site.log(name)).unwrap();
    let mut idle: Vec<f64> = names.iter().flat_map(|name| site::idle(&log(name))).collect();
    let deltas = names.iter().map(|name| log(name).matches("sending a delta").count());
    let deltas: usize = deltas.sum();
    eprintln!("idle: {} units; {deltas} results went as deltas; {}", idle.len(), site.cost());
    let name = "idle time between units, lines of 20 MB/s, median; beside the target";
    figure(name, middle(&mut idle), "ms", IDLE_MILLIS);
}

/// Eight slots in the middle of their hops: the client looks at each trainer's use once a second, and hears of its batches.
fn watching() {
    let slots = size::of(8, 2);
    let site = Site::start(&Job::long_hops(slots));
    site.client_with("client", slots, &["--gpus", "none"]);
    site.await_hosts(1);
    site.submit();
    site.await_batches("client", slots);
    let batches = || site.batches("client").into_iter().sum::<f64>();
    let before = (site.client_seconds(), batches(), Instant::now());
    thread::sleep(Duration::from_secs(20) / size::of(1, 50));
    let took = before.2.elapsed().as_secs_f64();
    let batches = batches() - before.1;
    eprintln!("watching: {:.0} batches a second; {}", batches / took, site.cost());
    let ratio = (site.client_seconds() - before.0) / took * 100.0;
    figure(
        "share of a core that a client with 8 training slots takes; beside the target",
        ratio,
        "%",
        WATCHING,
    );
}

/// One trial on one slot: nothing overlaps, so that the time between versions is the cost of a hop.
fn hop() {
    let site = Site::start(&Job::chain());
    site.client("client", 1);
    site.await_hosts(1);
    site.submit_and_wait();
    let events = site.events();
    let mut beyond = site::beyond_training(&events);
    eprintln!("cost of a hop: {} hops; {}", beyond.len(), site.cost());
    let name = "wall time of a hop beyond its training, median; beside the target";
    figure(name, middle(&mut beyond), "ms", HOP_MILLIS);
}

fn middle(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn figure(name: &str, value: f64, unit: &str, anchor: f64) {
    let rounded = |value: f64| (value * 1000.0).round() / 1000.0;
    println!(
        "{}",
        json!({
            "name": name, "value": rounded(value), "unit": unit, "anchor": rounded(anchor),
            "ratio": rounded(value / anchor),
        })
    );
}

//! The server under load and after a kill: the real program, over loopback TCP, on a journal that was
//! written beforehand. Prints one JSON line per figure.
//!
//! ```text
//! cycles    64 connections, each a host: a request for work answered with a lease, its result
//!           acknowledged. Twice: with 5 ms added to each fsync of the server, and without.
//!           Units are evaluations, whose results need no upload; then hops, with their uploads
//!           and assimilations.
//!           With the disk as it is also on a journal in Redis, beside SQLite
//! take-over from the kill of the active server to its standby's first healthy answer, twenty times
//! slow      2,000 connections that send a head a byte at a time, beside an honest client: its requests and heartbeats, and the
//!           server's memory
//! waiting   8,000 hosts with a request each that the server holds open: its memory, and a heartbeat beside
//! replay    from the start of the program to a healthy answer, from Redis, beside SQLite
//! page      the page of a job of 1,000 trials: weight, first paint, answers a second, memory of 500 viewers; and of 1,000 hosts
//! restart   from the start of the program to a healthy answer, after SIGKILL, with 1,000,000 events
//!           in the journal, as far from a snapshot as snapshots are apart
//! ```
//!
//! The anchor of the cycles is a plain program (`plain.rs`) under the same load: it decides nothing, and
//! answers each request once a group of them is written and synced. The anchor of the restart is reading
//! and hashing the journal's file. With names of figures as arguments only those are measured.

#![expect(clippy::unwrap_used, reason = "a bench ends at what it did not expect")]
#![expect(clippy::indexing_slicing, reason = "a bench ends at what it did not expect")]

mod connection;
mod load;
mod page;
mod past;
mod plain;
mod program;
mod redis;
#[expect(dead_code, reason = "the journal's own tests use all of it")]
#[path = "../../server/tests/support/redis.rs"]
mod redis_server;
#[path = "../size.rs"]
mod size;
mod slow;
mod waiting;

use load::{Load, Units};
use past::{Past, Shape};
use program::{Program, Syncs};
use sojourn_protocol::digest::Hasher;
use std::{
    fs::File,
    io::Read as _,
    path::Path,
    time::{Duration, Instant},
};

/// The time that is added to each fsync.
const SLOW: Duration = Duration::from_millis(5);
/// The pool of hops.
const HOPS: Shape = Shape { trials: 256, epochs: 20, shards: 64 };

/// Evaluations that wait when the load begins: more than can be done while it lasts.
fn backlog() -> Shape {
    Shape { trials: size::of(6_250, 600), epochs: 8, shards: 1 }
}

/// Events of the journal from which a server is restarted.
fn events() -> u64 {
    size::of(1_000_000, 2_000)
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, folder] = arguments.as_slice()
        && flag == plain::FLAG
    {
        return plain::serve(Path::new(folder));
    }
    let wanted: Vec<&String> = arguments.iter().filter(|word| !word.starts_with('-')).collect();
    let is_wanted = |name: &str| wanted.is_empty() || wanted.iter().any(|word| *word == name);
    if is_wanted("cycles") {
        cycles();
    }
    if is_wanted("take-over") {
        redis::take_over();
    }
    if is_wanted("slow") {
        slow::slow();
    }
    if is_wanted("waiting") {
        waiting::waiting();
    }
    if is_wanted("page") {
        page::page();
    }
    if is_wanted("replay") {
        redis::replay();
    }
    if is_wanted("restart") {
        restart();
    }
}

fn cycles() {
    let disks = [("5 ms added to each fsync", SLOW), ("the disk as it is", Duration::ZERO)];
    for (disk, added) in disks {
        let plain = {
            let folder = tempfile::tempdir().unwrap();
            let syncs = Syncs::new(added);
            let program = Program::plain(folder.path(), &syncs);
            load::run(&program, Units::Nothing, &syncs)
        };
        for (units, shape) in [(Units::Evaluations, backlog()), (Units::Hops, HOPS)] {
            let folder = tempfile::tempdir().unwrap();
            let mut past = Past::begin(folder.path(), &shape);
            if units == Units::Evaluations {
                past.train_all();
            }
            past.end();
            let syncs = Syncs::new(added);
            let program = Program::serve(folder.path(), &syncs);
            let ours = load::run(&program, units, &syncs);
            let what = match units {
                Units::Evaluations => "lease + result",
                _ => "lease + upload + result",
            };
            report(what, disk, &ours, &plain);
            drop(program);
            if added.is_zero() {
                redis::cycles(units, &shape, &ours);
            }
        }
    }
}

fn report(what: &str, disk: &str, ours: &Load, plain: &Load) {
    let name = |figure: &str| format!("{figure}, {what} over HTTP, 64 connections, {disk}");
    figure(&name("cycles"), ours.cycles, "1/s", plain.cycles);
    figure(&name("requests per fsync"), ours.per_sync, "1", plain.per_sync);
    figure(&name("99th percentile of a request"), ours.slow_millis, "ms", plain.slow_millis);
}

fn restart() {
    let folder = tempfile::tempdir().unwrap();
    let mut past = Past::begin(folder.path(), &Shape { trials: 256, epochs: 40, shards: 64 });
    past.train_until(events());
    past.end();
    let syncs = Syncs::new(Duration::ZERO);
    Program::serve(folder.path(), &syncs).kill();
    let mut turns: Vec<f64> = (0..size::of(3, 1))
        .map(|_| {
            let begun = Instant::now();
            let program = Program::serve(folder.path(), &syncs);
            let took = begun.elapsed().as_secs_f64();
            program.kill();
            took
        })
        .collect();
    turns.sort_by(f64::total_cmp);
    let name = "restart after SIGKILL, 1,000,000 events, beside reading and hashing the journal";
    figure(name, turns[turns.len() / 2], "s", hashing(&folder.path().join("journal.sqlite")));
    let program = Program::serve(folder.path(), &syncs);
    let (longest, usual) = load::longest_heartbeat(&program);
    let name = "longest heartbeat while a snapshot of 1,000,000 events is made, beside the median";
    figure(name, longest, "ms", usual);
}

/// Seconds that reading and hashing a file takes.
fn hashing(path: &Path) -> f64 {
    let begun = Instant::now();
    let mut file = File::open(path).unwrap();
    let (mut hasher, mut buffer) = (Hasher::default(), vec![0; 1 << 20]);
    loop {
        let count = file.read(&mut buffer).unwrap();
        if count == 0 {
            std::hint::black_box(hasher.finish());
            return begun.elapsed().as_secs_f64();
        }
        hasher.update(&buffer[..count]);
    }
}

pub(crate) fn figure(name: &str, value: f64, unit: &str, anchor: f64) {
    let rounded = |value: f64| (value * 1000.0).round() / 1000.0;
    println!(
        "{}",
        serde_json::json!({
            "name": name, "value": rounded(value), "unit": unit, "anchor": rounded(anchor),
            "ratio": rounded(value / anchor),
        })
    );
}

//! The load of a simulated fleet on one server: how many requests, how much of a core, how much memory, how long a
//! journal. The core is the server's own, so its time and memory are those that it would take; HTTP, JSON and the
//! journal's disk come on top.

use crate::cli::{
    lab::simulate::look::JournalSize,
    render::{
        tables::{Column, Grid},
        text::{bytes, count},
    },
};
use serde::Serialize;
use sojourn_sim::fleet::RunResult;
use std::fs;

/// One run, per second of virtual time. Other than the rest of what is printed, its times and memory are this machine's.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct ServerLoad {
    row: String,
    policy: String,
    seed: u64,
    /// All requests of hosts.
    requests_per_second: f64,
    asks_per_second: f64,
    heartbeats_per_second: f64,
    reports_per_second: f64,
    transfers_per_second: f64,
    /// The share of one core of this machine that deciding takes.
    #[serde(rename = "core_share")]
    core_ratio: f64,
    /// Of planning beside it.
    #[serde(rename = "planning_share")]
    planning_ratio: f64,
    /// Microseconds of deciding for one command.
    micros_per_command: f64,
    events_per_second: f64,
    /// Of events as the journal has them, without its indexes.
    journal_bytes_per_day: f64,
    /// Bytes of a snapshot when half the hops are done, packed as the journal keeps it.
    snapshot_bytes: u64,
    /// Seconds in which nothing is decided, as the state is copied for a snapshot.
    snapshot_copy: f64,
    /// Seconds of reading it, which a start or a take-over waits for.
    snapshot_read: f64,
    /// The most that the process has had so far: the core, the virtual hosts and their queue.
    peak_memory_bytes: Option<u64>,
}

impl ServerLoad {
    /// Of a run whose events took so many bytes.
    pub(super) fn of(row: &str, policy: &str, run: &RunResult, journal: JournalSize) -> Self {
        let seconds = run.makespan.max(f64::MIN_POSITIVE);
        let per_second = |all: u64| float(all) / seconds;
        let requests = run.requests;
        Self {
            row: row.to_owned(),
            policy: policy.to_owned(),
            seed: run.seed,
            requests_per_second: per_second(requests.all()),
            asks_per_second: per_second(requests.asks),
            heartbeats_per_second: per_second(requests.heartbeats),
            reports_per_second: per_second(requests.reports),
            transfers_per_second: per_second(requests.transfers),
            core_ratio: per_second(run.in_core) / 1e9,
            planning_ratio: per_second(run.planning) / 1e9,
            micros_per_command: float(run.in_core) / 1e3 / float(run.commands.max(1)),
            events_per_second: per_second(run.events),
            journal_bytes_per_day: per_second(journal.events) * 86_400.0,
            snapshot_bytes: journal.snapshot.bytes,
            snapshot_copy: float(journal.snapshot.copy) / 1e9,
            snapshot_read: float(journal.snapshot.read) / 1e9,
            peak_memory_bytes: peak_memory(),
        }
    }
}

/// A table of them.
pub(super) fn text(loads: &[ServerLoad]) -> String {
    let mut grid = Grid::new(&[
        ("scenario", Column::Text),
        ("policy", Column::Text),
        ("requests/s", Column::Number),
        ("asks", Column::Number),
        ("heartbeats", Column::Number),
        ("reports", Column::Number),
        ("transfers", Column::Number),
        ("of one core", Column::Number),
        ("planning", Column::Number),
        ("each", Column::Number),
        ("events/s", Column::Number),
        ("journal/day", Column::Number),
        ("snapshot", Column::Number),
        ("copied in", Column::Number),
        ("read in", Column::Number),
        ("memory", Column::Number),
    ]);
    for load in loads {
        let rate = |value: f64| count(whole(value));
        grid.row([
            load.row.clone(),
            load.policy.clone(),
            rate(load.requests_per_second),
            rate(load.asks_per_second),
            rate(load.heartbeats_per_second),
            rate(load.reports_per_second),
            rate(load.transfers_per_second),
            format!("{:.1} %", 100.0 * load.core_ratio),
            format!("{:.1} %", 100.0 * load.planning_ratio),
            format!("{:.1} us", load.micros_per_command),
            rate(load.events_per_second),
            bytes(whole(load.journal_bytes_per_day)),
            bytes(load.snapshot_bytes),
            format!("{:.0} ms", 1e3 * load.snapshot_copy),
            format!("{:.0} ms", 1e3 * load.snapshot_read),
            load.peak_memory_bytes.map_or_else(|| "-".to_owned(), bytes),
        ]);
    }
    grid.text()
}

/// The kernel's `VmHWM`, in bytes.
fn peak_memory() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(kib * 1024)
}

#[expect(clippy::cast_precision_loss, reason = "counts far below 2^53")]
fn float(count: u64) -> f64 {
    count as f64
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "rates are neither negative nor larger than counts"
)]
fn whole(value: f64) -> u64 {
    value.round() as u64
}

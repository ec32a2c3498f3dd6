//! Counts that are kept while a fleet works.

use serde::Serialize;
use sojourn_core::Command;
use sojourn_protocol::{ids::LeaseId, quantity::to_u64};
use std::collections::{BTreeMap, BTreeSet};

/// Counts of one run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Slot time of hosts that were there, in microseconds, by what it went into.
    pub(crate) busy: u64,
    /// Idle, with a unit at hand whose bytes are on their way.
    pub(crate) waiting: u64,
    pub(crate) idle: u64,
    /// Microseconds of training that slots did.
    pub(crate) trained: u64,
    /// Of these, in results that were taken.
    pub(crate) useful: u64,
    /// Of these, in results that came when the unit was settled, and how many those are.
    pub(crate) twice: u64,
    pub(crate) superseded: u64,
    pub(crate) checkpoints_down: u64,
    pub(crate) checkpoints_up: u64,
    pub(crate) shard_bytes: u64,
    pub(crate) shards: u64,
    /// Leases that were granted.
    pub(crate) granted: u64,
    /// Leases that brought nothing, so far: what was believed dead may still report.
    lost: BTreeSet<LeaseId>,
    /// Leases that had ended when they were reported.
    late: BTreeSet<LeaseId>,
    /// Of these, those whose results were taken.
    pub(crate) late_used: u64,
    /// Leases whose results are lies, and how many of those were taken.
    lies: BTreeSet<LeaseId>,
    pub(crate) believed: u64,
    /// Microseconds of training in reports on which nothing is decided yet.
    reported: BTreeMap<LeaseId, u64>,
    /// Hops, or parts of them, that were taken.
    pub(crate) assimilated: u64,
    /// Of these, those that were merged, and the versions made since their bases.
    pub(crate) merged: u64,
    pub(crate) staleness: u64,
    /// How often a trial's results came to be taken in otherwise than before.
    pub(crate) order_switches: u64,
    /// Evaluations that were taken.
    pub(crate) evaluated: u64,
    /// Second copies, the work that they repeated, and all jobs' work.
    pub(crate) copies: u64,
    pub(crate) copied: u64,
    pub(crate) work: u64,
    /// Machines that left.
    pub(crate) departures: u64,
    pub(crate) commands: u64,
    /// Requests of hosts to the server.
    pub(crate) requests: Requests,
    /// Events that the core decided.
    pub(crate) events: u64,
    /// Nanoseconds in the core, where somebody has a clock.
    pub(crate) in_core: u64,
    /// Plans made, and nanoseconds that they took.
    pub(crate) plans: u64,
    pub(crate) planning: u64,
}

impl Tally {
    /// The core is told something.
    pub(crate) fn is_told(&mut self, command: &Command) {
        self.commands += 1;
        match command {
            Command::Ask { .. } => self.requests.asks += 1,
            Command::Heartbeat { .. } => self.requests.heartbeats += 1,
            Command::Report { .. } | Command::Release { .. } => self.requests.reports += 1,
            _ => {}
        }
    }

    /// A lease is reported, after so many microseconds of training.
    pub(crate) fn reports(&mut self, lease: LeaseId, micros: u64) {
        self.reported.insert(lease, micros);
    }

    /// A report comes whose lease has ended.
    pub(crate) fn comes_late(&mut self, lease: LeaseId) {
        self.late.insert(lease);
    }

    /// Reports that came when their leases had ended, each once.
    pub(crate) fn late(&self) -> u64 {
        to_u64(self.late.len())
    }

    /// A lease is to be reported with a lie.
    pub(crate) fn lies(&mut self, lease: LeaseId) {
        self.lies.insert(lease);
    }

    /// Lies that were told, each once.
    pub(crate) fn told(&self) -> u64 {
        to_u64(self.lies.len())
    }

    /// Counts a lease whose result was taken.
    pub(crate) fn takes(&mut self, lease: LeaseId) {
        self.believed += u64::from(self.lies.contains(&lease));
        self.late_used += u64::from(self.late.contains(&lease));
        self.lost.remove(&lease);
        self.useful += self.reported.remove(&lease).unwrap_or(0);
    }

    /// A lease brings nothing, for now: it ran out, was given back or revoked, failed, or was refused. Gives
    /// the microseconds of training that it reported.
    pub(crate) fn loses(&mut self, lease: LeaseId) -> u64 {
        self.lost.insert(lease);
        self.reported.remove(&lease).unwrap_or(0)
    }

    /// Counts a lease whose result came when its unit was settled.
    pub(crate) fn is_superseded(&mut self, lease: LeaseId) {
        self.superseded += 1;
        self.twice += self.loses(lease);
    }

    /// A result was merged, so many versions after its base.
    pub(crate) fn merges(&mut self, staleness: u64) {
        self.merged += 1;
        self.staleness = self.staleness.saturating_add(staleness);
    }

    /// Leases that brought nothing, each once.
    pub(crate) fn lost(&self) -> u64 {
        to_u64(self.lost.len())
    }
}

/// Requests of hosts to the server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Requests {
    /// For work.
    pub asks: u64,
    /// Requests that say only that a host is alive.
    pub heartbeats: u64,
    /// Results, and leases that were given back.
    pub reports: u64,
    /// Blobs that were fetched or sent, where that takes time.
    pub transfers: u64,
}

impl Requests {
    /// All of them.
    #[must_use]
    pub const fn all(self) -> u64 {
        self.asks + self.heartbeats + self.reports + self.transfers
    }
}

/// A unit in a slot, for charts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bar {
    /// The host's number.
    pub(crate) host: u32,
    pub(crate) slot: u32,
    pub(crate) job: u32,
    pub(crate) trial: u32,
    pub(crate) epoch: u32,
    /// `None`: an evaluation.
    pub(crate) shard: Option<u32>,
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) came: Came,
}

/// The outcome of a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Came {
    /// A result of all of it.
    Whole,
    /// A result of a part.
    Part,
    /// No result.
    Lost,
}

//! Records: events with their places in the journal, and the version of their encoding.

use super::Event;
use serde::{Deserialize, Serialize};
use sojourn_protocol::time::UnixMillis;
use std::ops::RangeInclusive;

/// The version of [`Record`]'s encoding that is written. Version 2 has jobs that are paused and extended,
/// and evaluations outside the search; version 3 has hosts with several devices, and more kinds of failure;
/// version 4 has leases of several hops in a row; version 5 has second copies of running hops,
/// and jobs whose placement is changed; version 6 has trials whose results are merged, results that other hosts come
/// to as well, trials that are taken back, and jobs that end when their time is up; version 7 has evaluations that other hosts come
/// to as well; version 8 has owners of hosts, tokens that are issued, time that doesn't count, a time in which trained jobs are still evaluated, jobs that are thinned or
/// deleted, machines that are bought, units that are refused as unsupported, trials that a search lets go on or stops, searches that
/// go on (trials that are added, spaces that change), hosts that are blocked, and trials that stay on hosts and move; version 9 has
/// owners of jobs, quotas of tokens, owners that are vouched for, rollbacks after a refutation, units
/// that trainers call wrong, and trials that begin anew after a failure.
pub const EVENT_VERSION: u32 = 9;
/// The versions that are read; a journal or a snapshot with another is refused.
pub const READ_VERSIONS: RangeInclusive<u32> = 1..=EVENT_VERSION;

/// The number of a journalled event, from 1; 0 is the empty journal.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct JournalPosition(pub u64);

/// An event with its place in the journal and its time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// The record's number in the journal.
    pub position: JournalPosition,
    /// The time of the event.
    pub at: UnixMillis,
    /// The event.
    pub event: Event,
}

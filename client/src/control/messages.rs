//! Questions and answers, one JSON line each.

use crate::{
    limits::{Keepers, Limits, MonthState, Reason, UnknownFact},
    log::Line,
};
use serde::{Deserialize, Serialize};
use sojourn_protocol::{
    api::HeldState,
    cpu_shares::HeldCpuShare,
    digest::Digest,
    ids::{Epoch, JobId, LeaseId, ShardId, TrialId},
    time::UnixMillis,
    usage::UnitUsage,
};
use std::path::PathBuf;

/// A request of the owner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ask {
    /// How is it?
    Status,
    /// Don't compute.
    Pause(Pause),
    /// Go on, as far as the limits allow.
    Resume,
    /// Finish what runs, take nothing new, and end.
    Drain,
    /// Which limits hold?
    Limits,
    /// Have these hold from now on, `KEY=VALUE` each.
    SetLimits(Vec<String>),
    /// How full is the cache?
    Cache,
    /// Delete from it what no unit in work needs.
    ClearCache,
    /// Let the server send this machine to this store: `https://HOST:PORT`.
    AcceptStore(String),
    /// The end of the log.
    Log(LogPart),
}

/// A pause by hand.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pause {
    /// For so long; until the owner says otherwise where left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<u64>,
}

/// Which lines of the log; those that the daemon has in memory, at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogPart {
    /// So many of the last ones.
    Last(usize),
    /// All from this number on.
    Since(u64),
}

/// An answer of the daemon.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// The status, also after a change that was asked for.
    Status(Box<Status>),
    /// The limits in force.
    Limits(Box<LimitsState>),
    /// How full the cache is.
    Cache(CacheState),
    /// Lines of the log.
    Log(LogEnd),
    /// The request is refused, for this reason.
    Refused(String),
}

/// How a daemon is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// The machine's number at its server.
    pub host: String,
    /// The server's address.
    pub server: String,
    /// The name that was given, where the machine enrolled under another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unused_name: Option<UnusedName>,
    /// Doesn't the server answer?
    pub server_away: bool,
    /// The devices that the slots compute on.
    pub device: String,
    /// Units that run at once.
    pub slots: u32,
    /// Slots beside them that failed again and again, and are out of use for a while.
    #[serde(default, skip_serializing_if = "is_none")]
    pub out_of_use: u32,
    /// The share of the time in which they compute, in percent.
    pub pace: u8,
    /// Why nothing computes, where nothing does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused: Option<Paused>,
    /// Why it takes no work for a while, after trouble that the next unit would meet too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resting: Option<Resting>,
    /// Why the server, which has work, gives it none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<String>,
    /// The last unit's failure, if it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_failure: Option<String>,
    /// Does it end once what runs has ended?
    pub draining: bool,
    /// The units that it has, with how far they are.
    pub units: Vec<UnitStatus>,
    /// Transfers between it and the server.
    #[serde(default)]
    pub transfers: Vec<Transfer>,
    /// Limits that hold.
    pub limits: Limits,
    /// Facts that the limits need and that aren't known: the safe side is taken.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<UnknownFact>,
    /// How the limits of processor time and memory are enforced.
    #[serde(default)]
    pub keepers: Keepers,
    /// Bytes that have come and gone in this month.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub month: Option<MonthState>,
    /// The room on the data folder's disk; none where it isn't known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk: Option<DiskState>,
    /// The cache.
    pub cache: CacheState,
    /// The stores that the server may send this machine to; left out where it named none when the machine enrolled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stores: Option<Vec<String>>,
    /// The last store that it named beside these. It was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused_store: Option<String>,
}

/// A name that isn't used: a machine has the one under which it enrolled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnusedName {
    /// The name that was given.
    pub given: String,
    /// The name under which the machine enrolled.
    pub enrolled: String,
}

/// The room on the data folder's disk.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskState {
    /// Bytes that are free.
    pub free: u64,
    /// Bytes that stay free, or no unit is begun.
    pub reserve: u64,
    /// Is no unit begun?
    pub is_low: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
const fn is_none(count: &u32) -> bool {
    *count == 0
}

/// A unit that a daemon has.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UnitStatus {
    /// The unit's lease.
    pub lease: LeaseId,
    /// How far it is.
    pub state: HeldState,
    /// The unit's work; unknown for results that an earlier run of the daemon left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<Work>,
    /// How fast it goes, where it runs: in the last seconds, or from its start where nobody has asked before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batches_per_second: Option<f64>,
    /// The resources that the unit takes of the machine, where it runs and its trainer has said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<UnitUsage>,
    /// The unit's CPU share as planned, where its job has a policy for that, and what was seen of
    /// its trial.
    #[serde(rename = "share", default, skip_serializing_if = "Option::is_none")]
    pub cpu_share: Option<HeldCpuShare>,
}

/// The work of a unit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Work {
    /// The job that it belongs to.
    pub job: JobId,
    /// The trial.
    pub trial: TrialId,
    /// The task.
    pub task: Task,
    /// Bytes of all that has to be there first.
    pub download: u64,
}

/// The task of a unit. Epochs and shards count from 0.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Task {
    /// The unit trains on shards.
    Train {
        /// In this epoch.
        epoch: Epoch,
        /// On this shard.
        shard: ShardId,
        /// Then on these, in order.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        then: Vec<ShardId>,
    },
    /// The unit evaluates a checkpoint.
    Evaluate {
        /// The checkpoint at the end of this epoch.
        epoch: Epoch,
    },
}

/// A blob on its way.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Transfer {
    /// Which way.
    pub direction: Direction,
    /// The blob.
    pub blob: Digest,
    /// The lease whose checkpoint it is, on its way to the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<LeaseId>,
    /// Bytes that have made it.
    pub bytes: u64,
    /// Bytes in all.
    pub of: u64,
    /// How fast: in the last seconds, or from its start where nobody has asked before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_per_second: Option<f64>,
}

/// The way of a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// From the server.
    Down,
    /// To the server.
    Up,
}

/// A machine that takes no work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resting {
    /// After what.
    pub reason: String,
    /// For how many seconds yet.
    pub seconds_left: u64,
}

/// A machine that doesn't compute.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Paused {
    /// The reason for the pause.
    pub reason: Reason,
    /// The same in words.
    pub why: String,
    /// When it ends, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<UnixMillis>,
    /// The same by the machine's time zone: `2026-01-05 22:00 CET`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_local: Option<String>,
    /// For how many seconds yet, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds_left: Option<u64>,
    /// Has it lasted so long that hops have been ended and everything else given back?
    pub given_back: bool,
}

/// The limits, and where they are kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LimitsState {
    /// The limits that hold.
    pub limits: Limits,
    /// Where changes are written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
}

/// The end of the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogEnd {
    /// The lines, the oldest first.
    pub lines: Vec<Line>,
    /// The number of the line that comes after them.
    pub next: u64,
}

/// How full the cache is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheState {
    /// Bytes in use.
    pub used: u64,
    /// The most that there may be.
    pub limit: u64,
    /// Shards and scalings that are there whole.
    pub shards: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_keep_their_form() {
        for (ask, line) in [
            (Ask::Status, r#""status""#),
            (Ask::Pause(Pause { seconds: Some(60) }), r#"{"pause":{"seconds":60}}"#),
            (Ask::Pause(Pause::default()), r#"{"pause":{}}"#),
            (Ask::SetLimits(vec!["cpu=50".into()]), r#"{"set_limits":["cpu=50"]}"#),
            (Ask::ClearCache, r#""clear_cache""#),
            (Ask::AcceptStore("https://a".into()), r#"{"accept_store":"https://a"}"#),
            (Ask::Log(LogPart::Last(20)), r#"{"log":{"last":20}}"#),
        ] {
            assert_eq!(serde_json::to_string(&ask).unwrap(), line);
            assert_eq!(serde_json::from_str::<Ask>(line).unwrap(), ask);
        }
    }
}

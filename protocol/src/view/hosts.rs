//! Hosts, as reading commands see them.

use crate::{
    cpu_shares::List,
    digest::Digest,
    engine::Engine,
    ids::{Epoch, HostId, JobId, LeaseId, ShardId, TrialId, Version},
    inventory::{Links, Measured, OfferedClass, Workload},
    metrics::is_default,
    names::OwnerName,
    time::{Millis, UnixMillis},
    usage::UnitUsage,
};
use serde::{Deserialize, Serialize};
use std::fmt;

/// A host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct HostView {
    /// The host's id.
    pub host: HostId,
    /// The host's name.
    pub name: String,
    /// The person or group that answers for it; empty for the deployment's own hosts.
    #[serde(default, skip_serializing_if = "OwnerName::is_default")]
    pub owner: OwnerName,
    /// Whether it may work.
    pub state: HostState,
    /// When it last was in contact; none since the server started.
    pub seen_at: Option<UnixMillis>,
    /// Slots in all.
    pub slots: u32,
    /// The host's devices; none until it has sent its inventory.
    pub devices: Vec<DeviceView>,
    /// Blobs in its cache.
    pub cached: u64,
    /// Bytes that its cache may hold; unknown where it hasn't said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<u64>,
    /// The host has said that it ends: it takes no units, until it asks for one.
    #[serde(default, skip_serializing_if = "is_default")]
    pub stopped: bool,
    /// Why it is given nothing though there is work, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<String>,
    /// An operator has blocked it: it gets no new work until it is unblocked.
    #[serde(default, skip_serializing_if = "is_default")]
    pub blocked: bool,
    /// The host's disk has less room left than its owner keeps free: it takes no units.
    #[serde(default, skip_serializing_if = "is_default")]
    pub disk_is_low: bool,
    /// How fast bytes go between it and the server.
    #[serde(default, skip_serializing_if = "is_default")]
    pub links: Links,
    /// Leases that it holds.
    pub leases: Vec<HeldView>,
    /// Results of its that were used.
    pub used: u64,
    /// Leases of its that ran out.
    pub expired: u64,
    /// The share of deadlines that it may be expected to keep, in thousandths: of its last leases, the latest
    /// counting most. None before the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reliability: Option<u64>,
    /// Results that other hosts came to as well, and how many of them since the last one that they didn't.
    #[serde(default, skip_serializing_if = "is_default")]
    pub confirmed: u64,
    /// As long as this is below ten, it hasn't earned trust.
    #[serde(default, skip_serializing_if = "is_default")]
    pub confirmed_in_row: u32,
    /// Results that others agreed were different.
    #[serde(default, skip_serializing_if = "is_default")]
    pub refuted: u64,
    /// The host is a stranger's: its results are verified, unless a job says otherwise.
    #[serde(default, skip_serializing_if = "is_default")]
    pub stranger: bool,
    /// Thousandths of its trained results that are verified by default; none where it is believed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verified_rate: Option<u32>,
    /// Where any of its party was refuted: what it has delivered and nobody has confirmed.
    #[serde(default, rename = "doubtful", skip_serializing_if = "Vec::is_empty")]
    pub suspects: Vec<SuspectResult>,
    /// Hops of its that were taken in though nobody had confirmed them, and they were to be verified.
    #[serde(default, skip_serializing_if = "is_default")]
    pub unverified: u64,
    /// The host is in contact, no other party in contact offers any of its numeric classes, and a running job would verify its
    /// results: no trial of that job begins there.
    #[serde(default, skip_serializing_if = "is_default")]
    pub alone: bool,
    /// Trainer errors that it reported.
    pub failures: u64,
    /// The last of them.
    pub last_error: Option<String>,
    /// Microseconds that its slots spent on results that were used.
    pub train_micros: u64,
    /// Since when it has been away, at the least; left out while it is in contact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub away_since: Option<UnixMillis>,
    /// Other machines that were found with its identity (copies of its data folder) since the server started. They are refused.
    #[serde(default, skip_serializing_if = "is_default")]
    pub copies: u64,
    /// When the last of them was found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copy_found_at: Option<UnixMillis>,
}

impl HostView {
    /// Whether it may work, in a word or two. One that is blocked or was stopped takes nothing, and one whose disk has too little room.
    #[must_use]
    pub const fn status(&self) -> &'static str {
        match self.state {
            HostState::Live | HostState::Away | HostState::Resting { .. } if self.blocked => {
                "blocked"
            }
            HostState::Away if self.stopped => "gone",
            HostState::Live if self.stopped => "ending",
            HostState::Live if self.disk_is_low => "disk low",
            state => state.name(),
        }
    }
}

/// A host with what lies in its cache.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct HostDetail {
    /// The host.
    pub host: HostView,
    /// The blobs in the host's cache that jobs refer to, by job.
    pub cache: Vec<CachedOfJob>,
    /// Blobs in its cache that no job refers to any more.
    pub other_blobs: u64,
}

/// The blobs of a job in a host's cache.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CachedOfJob {
    /// The job.
    pub job: JobId,
    /// The job's name.
    pub name: String,
    /// The training shards that are there.
    pub shards: Vec<ShardId>,
    /// Training shards of the job.
    pub of_shards: u32,
    /// Other blobs of the job's data that are there: validation and test data, scaling.
    pub other_data: u64,
    /// Trials whose present checkpoint is there.
    pub checkpoints: u64,
    /// Bytes of all these.
    pub bytes: u64,
}

/// A version that a refuted host made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = Doubtful))]
pub struct SuspectResult {
    /// The job.
    pub job: JobId,
    /// The trial.
    pub trial: TrialId,
    /// The version.
    pub version: Version,
    /// The epoch that it belongs to.
    pub epoch: Epoch,
}

/// Results of a refuted party in a job that nobody has confirmed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DoubtView {
    /// One of its hosts: `sojourn rollback JOB --host HOST` takes back what is in doubt.
    pub host: HostId,
    /// The host's name.
    pub name: String,
    /// Trained results in doubt.
    pub results: u64,
    /// Trials that have them, or go on from them.
    pub trials: u64,
    /// Thousandths of the job's work that taking them back would lose.
    pub lost: u32,
}

impl fmt::Display for DoubtView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, name, results, trials, lost } = self;
        write!(
            f,
            "host {host} (`{name}`) was refuted: results of its party that nobody confirmed: {results}, in trials: {trials}; \
             `sojourn rollback JOB --host {host}` takes them back, which loses {} % of the work",
            lost.div_ceil(10)
        )
    }
}

/// A kind of processor that a host trains on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DeviceView {
    /// `cpu`, or the GPUs' name.
    pub name: String,
    /// The device's slots.
    pub slots: u32,
    /// The numeric class of its trainers; of several the common one.
    pub numeric_class: Digest,
    /// Floating-point operations per second of one slot, as its trainer measured.
    pub flops: f64,
    /// Bytes of memory that one unit may take; unknown where none are said.
    #[serde(default)]
    pub memory: Option<u64>,
    /// Measurements of units there, made by the host.
    #[serde(default)]
    pub measured: Vec<Measured>,
    /// How far the server's estimates of units' times lay from what they took there, lately: thousandths of
    /// what they took. None before the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimate_error: Option<u64>,
    /// The numeric classes that it offers, with their instruction sets, the fastest first. None where its client names
    /// none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<OfferedClass>,
    /// The programs that train on it. None where its client is one of before, which doesn't say so.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub engines: Vec<Engine>,
    /// Workloads that its engines have refused as unsupported, as far as its client has said so.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unsupported: Vec<Workload>,
    /// How many parties offer each of its numeric classes, the fastest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parties: Vec<ClassParties>,
}

/// How many parties offer a numeric class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ClassParties {
    /// The class.
    pub numeric_class: Digest,
    /// Parties that have a trusted host in contact which offers it: owners of issued tokens, and machines of the operator's.
    pub parties: u64,
}

/// Whether a host may work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum HostState {
    /// In contact.
    Live,
    /// Not heard of for longer than a lease lasts.
    Away,
    /// In contact, but given nothing until then after repeated errors.
    Resting {
        /// When it is given work again.
        until: UnixMillis,
    },
    /// The host's token was revoked.
    Revoked,
}

impl HostState {
    /// In a word, as JSON has it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Away => "away",
            Self::Resting { .. } => "resting",
            Self::Revoked => "revoked",
        }
    }
}

/// A lease that a host holds, in a line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct HeldView {
    /// The lease.
    pub lease: LeaseId,
    /// The job.
    pub job: JobId,
    /// The trial.
    pub trial: TrialId,
    /// The unit: `train` or `evaluate`, epoch and shards.
    pub unit: String,
    /// Whether the host said that it runs.
    pub running: bool,
    /// How long ago it was granted.
    pub age: Millis,
    /// The unit's use of the host, as the host's last heartbeat said. Only of units that run, and of hosts that measure it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<UnitUsage>,
    /// The unit's share of the host's processor, where it runs and its job has a policy for that (`placement.host_shares`).
    #[serde(rename = "share", default, skip_serializing_if = "Option::is_none")]
    pub cpu_share: Option<CpuShareView>,
}

/// The share that a running unit has of its host's processor, as planned.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = ShareView))]
pub struct CpuShareView {
    /// Above 0, at most 1.
    #[serde(rename = "share")]
    pub cpu_share: f64,
    /// The list that its trial is in; only of the policy that has lists, FlowCon.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub list: Option<List>,
}

/// `share 25 %, completing`.
impl fmt::Display for CpuShareView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "share {:.0} %", self.cpu_share * 100.0)?;
        self.list.map_or(Ok(()), |list| write!(f, ", {}", list.name()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cpu_share_is_said_with_its_list_where_there_are_lists() {
        let first = CpuShareView { cpu_share: 0.99, list: None };
        assert_eq!(first.to_string(), "share 99 %");
        let learns = CpuShareView { cpu_share: 0.25, list: Some(List::Completing) };
        assert_eq!(learns.to_string(), "share 25 %, completing");
    }
}

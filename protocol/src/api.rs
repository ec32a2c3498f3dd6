//! Bodies of requests and answers over HTTP (JSON). The package `sojourn-api` has the table of endpoints that take and give them.
//!
//! Tokens travel as `Authorization: Bearer`. Answers that aren't 2xx carry [`crate::error::ApiError`].

/// Characters of the end of a trainer's log that are kept.
pub const MAX_LOG_CHARS: usize = 4_096;

mod headers;
mod held;
mod jobs;
mod search;

pub use headers::{
    AWAITING_SHARDS, BASE_HEADER, BYTES_HEADER, DECIMAL_SEEDS, DELTA_UPLOADS, DISK_RESERVES,
    ENGINES, FEATURES_HEADER, HOST_SHARES, JOB_OWNERS, MAX_DELTA_CHECKPOINT, PRODUCED_CHECKPOINTS,
    RESULT_BYTES_HEADER, RESULT_SHA256_HEADER, SEVERAL_CLASSES, SHA256_HEADER, TRAIN_LOSSES,
    UNIT_USAGE, UNKNOWN_FIELDS_HEADER, UNSUPPORTED_UNITS, UPLOAD_PROGRESS, WRONG_UNITS,
};
pub use held::{Held, HeldState, LossSum};
pub use jobs::{
    DeleteRequest, DeletedJob, DeletedJobs, EvaluateRequest, ExtendRequest, MAX_DELETED_JOBS,
    MAX_NOTE_CHARS, NoteRequest, PauseRequest, PlacementRequest, RollbackOptions, RollbackRequest,
    RolledBack, SubmitAnswer, SubmitRequest, Submitted,
};
pub use search::{
    GoOn, MAX_ADDED_TRIALS, MAX_NONCE_CHARS, MAX_TRIAL_PRIORITY, MAX_WHY_CHARS, NewTrial, Retry,
    SearchAnswer, SearchRequest, SearchTrial, SearchTrialState, SearchView, Space, TrialPriority,
};

use crate::{
    digest::{BlobRef, Digest},
    ids::{HostId, LeaseId},
    inventory::{Demand, Inventory},
    reason::ReleaseReason,
    report::ReportState,
    storage::Storage,
    time::Millis,
    unit::Lease,
};
use serde::{Deserialize, Serialize};

/// A machine asks to become a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct EnrolRequest {
    /// A name for people, usually the machine's.
    pub name: String,
}

/// The machine is a host now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct EnrolAnswer {
    /// The host's id.
    pub host: HostId,
    /// The host's own token; the server keeps only the hash.
    pub token: String,
    /// Where the server's signed URLs and redirects lead: schemes, hosts and ports, as `https://HOST:PORT`. Empty where blobs go
    /// through the server alone; left out by servers that don't say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stores: Option<Vec<String>>,
    /// The host's results are verified by default: it is a stranger's, for whom the operator doesn't vouch.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub verified: bool,
}

/// A host asks for work and says what it has. One at a time per host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct WorkRequest {
    /// The demand of each device for work.
    pub demand: Vec<Demand>,
    /// Every lease that the host holds and has not reported.
    pub holding: Vec<Held>,
    /// Reports that were acknowledged and whose end the host does not know.
    pub reported: Vec<LeaseId>,
    /// How long the server may hold the request while there is nothing to say; 25 seconds at most, also where it is more.
    pub wait: Millis,
    /// The machine, where it changed since the last answered request or the server asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inventory: Option<Inventory>,
}

/// Work, and what else the host must hear.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct WorkAnswer {
    /// New leases, and leases that the host should hold and doesn't.
    pub leases: Vec<Lease>,
    /// Held leases to drop at once: revoked, settled or unknown.
    pub drop: Vec<LeaseId>,
    /// The state of each lease in `reported`.
    pub reports: Vec<ReportAnswer>,
    /// Ask again after this long, or at once when a slot becomes idle.
    pub ask_again: Millis,
    /// Send the inventory with the next request.
    pub send_inventory: bool,
    /// As in [`HeartbeatAnswer`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stop: Vec<LeaseId>,
    /// Shards that are better fetched before they are needed, the most wanted first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fetch: Vec<BlobRef>,
    /// Cached blobs that nobody will need any more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evict: Vec<Digest>,
    /// Why there is nothing for the host though there is work, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<String>,
    /// As in [`HeartbeatAnswer`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leave_within: Option<Millis>,
}

/// A sign of life for held leases. A host without leases sends none: it is heard of by its requests for work.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct HeartbeatRequest {
    /// Every lease that the host holds and has not reported.
    pub holding: Vec<Held>,
    /// As in [`WorkRequest`].
    pub reported: Vec<LeaseId>,
}

impl HeartbeatRequest {
    /// A heartbeat that says no more than it must.
    #[must_use]
    pub const fn new(holding: Vec<Held>, reported: Vec<LeaseId>) -> Self {
        Self { holding, reported }
    }
}

/// The answer to a heartbeat.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct HeartbeatAnswer {
    /// Leases to drop at once.
    pub drop: Vec<LeaseId>,
    /// The state of each lease in `reported`.
    pub reports: Vec<ReportAnswer>,
    /// Hops to end after the batch that they are at, and to report as far as they are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stop: Vec<LeaseId>,
    /// The machine is given back after so long: the host drains as if its cloud had said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leave_within: Option<Millis>,
}

/// A host gives leases back unfinished.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ReleaseRequest {
    /// The leases that are given back.
    pub leases: Vec<LeaseId>,
    /// The reason for giving them back.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub reason: ReleaseReason,
}

/// The leases are free.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ReleaseAnswer {
    /// The leases that were released: live ones of this host, and its provisional ones.
    pub released: Vec<LeaseId>,
}

/// The state of a report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ReportAnswer {
    /// The lease.
    pub lease: LeaseId,
    /// How far its report is.
    pub state: ReportState,
}

/// How far an upload is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct UploadState {
    /// Decoded bytes that the server holds; go on from here.
    pub offset: u64,
    /// All bytes are there and have the declared digest.
    pub complete: bool,
}

/// Which of these blobs must be uploaded?
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct MissingRequest {
    /// The blobs in question.
    pub blobs: Vec<BlobRef>,
}

/// The blobs of a request that must be uploaded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct MissingAnswer {
    /// The blobs that the server lacks (condemned ones included).
    pub missing: Vec<Digest>,
}

/// The server is alive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Health {
    /// `ready`; `storage-low` or `storage-full` where the server's disk has too little room, which `storage` explains.
    pub status: String,
    /// The room on the server's disk.
    #[serde(default)]
    pub storage: Storage,
    /// Version of the server program.
    pub version: String,
    /// Number of journalled events.
    pub journal_position: u64,
    /// Bytes of uploads that have come in since the server started.
    #[serde(default)]
    pub received_bytes: u64,
    /// Bytes of blobs that have gone out since the server started.
    #[serde(default)]
    pub sent_bytes: u64,
    /// Requests of hosts that brought a checkpoint, or a part of one, since the server started.
    #[serde(default)]
    pub checkpoint_uploads: u64,
    /// Requests of hosts that got a blob, or a part of one, since the server started.
    #[serde(default)]
    pub blob_downloads: u64,
}

/// Looks through the store for what nobody knows of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct CollectRequest {
    /// Only says what would be thrown away.
    #[serde(default)]
    pub dry_run: bool,
    /// Blobs that are younger stay.
    pub grace: Millis,
}

/// Blobs that were found in the store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CollectAnswer {
    /// Nothing was thrown away.
    pub dry_run: bool,
    /// Old blobs that the journal doesn't know; thrown away, unless it was a dry run.
    pub unknown: Found,
    /// Old uploads that no lease wants any more; thrown away likewise.
    pub uploads: Found,
    /// Blobs that stay.
    pub kept: Found,
}

/// Objects in the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Found {
    /// How many.
    pub objects: u64,
    /// The sum of the objects' sizes, in bytes.
    pub bytes: u64,
}

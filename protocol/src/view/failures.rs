//! Failures on hosts, counted.

use crate::{
    ids::{HostId, JobId, LeaseId, TrialId},
    report::FailureKind,
    time::UnixMillis,
};
use serde::{Deserialize, Serialize};

/// Trainer errors of one host at one trial with the same first line, counted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct FailureView {
    /// The host.
    pub host: HostId,
    /// The job.
    pub job: JobId,
    /// The trial.
    pub trial: TrialId,
    /// The class of the error.
    pub kind: FailureKind,
    /// The first line of its message.
    pub error: String,
    /// How many there were.
    pub count: u64,
    /// When the first one was reported.
    pub first_at: UnixMillis,
    /// When the last one was reported.
    pub last_at: UnixMillis,
    /// The lease of the last one.
    pub lease: LeaseId,
    /// The end of the trainer's log at the last one, or the rest of its message; none where there is neither.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<String>,
}

//! Leases: one attempt at a unit by one host, while it is live and after.

use crate::event::{LeaseEnd, UnitKey};
use serde::{Deserialize, Serialize};
use sojourn_protocol::{
    digest::Digest,
    ids::{HostId, LeaseId, ShardId, Version},
    report::{Failure, Outcome, ReportEnd, ReportState},
    time::UnixMillis,
};
use std::sync::Arc;

/// A live lease. When it runs out is soft state ([`crate::soft::Term`]).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// The lease's id.
    pub id: LeaseId,
    /// The host that holds it.
    pub host: HostId,
    /// The lease's unit.
    pub unit: UnitKey,
    /// The further shards that are trained under it, in order, each from its first batch.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub then: Vec<ShardId>,
    /// Before which batch of the last shard it ends, where that isn't the shard's end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<u32>,
    /// The version to start from.
    pub base: Version,
    /// The host's device that it is for; empty where the journal is from before there were several.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub device: String,
    /// The device's numeric class when the lease was granted.
    pub class: Option<Digest>,
    /// The lease of the same unit that this one duplicates, until that one is lost (speculative execution).
    #[serde(rename = "copy_of", default, skip_serializing_if = "Option::is_none")]
    pub speculative_for: Option<LeaseId>,
    /// When it was granted.
    pub granted_at: UnixMillis,
}

/// A lease that has ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Past {
    /// The lease.
    pub lease: Arc<Lease>,
    /// How it ended.
    pub state: PastState,
    /// When it is forgotten.
    pub forget_at: UnixMillis,
}

/// How a lease ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PastState {
    /// The lease ended without a report; a late one is still accepted.
    #[serde(rename = "lapsed")]
    Closed(LeaseEnd),
    /// The lease's report is acknowledged; a trained hop waits to be assimilated.
    Acknowledged(Box<Outcome>),
    /// The lease's report ended in a trainer error (on the wire: rejected).
    Failed(Failure),
    /// The lease's report ended.
    Ended(ReportEnd),
}

impl Past {
    /// When it ended its host heard this; `None` where it never reported.
    #[must_use]
    pub fn report_state(&self) -> Option<ReportState> {
        match &self.state {
            PastState::Closed(_) => None,
            PastState::Acknowledged(_) => Some(ReportState::Acknowledged),
            PastState::Failed(failure) => Some(ReportState::Ended(ReportEnd::Rejected {
                reason: format!("trainer error: {}", failure.message),
            })),
            PastState::Ended(end) => Some(ReportState::Ended(end.clone())),
        }
    }
}

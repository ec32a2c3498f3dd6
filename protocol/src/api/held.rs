//! Leases that a host holds, and how far each is.

use crate::{
    cpu_shares::HeldCpuShare, digest::BlobRef, ids::LeaseId, trainer::Progress, usage::UnitUsage,
};
use serde::{Deserialize, Serialize};

/// A lease that a host holds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Held {
    /// The lease.
    pub lease: LeaseId,
    /// How far it is.
    pub state: HeldState,
    /// The checkpoint that its unit has produced and that is being uploaded. Only for servers with the feature
    /// [`PRODUCED_CHECKPOINTS`](super::PRODUCED_CHECKPOINTS).
    #[serde(rename = "made", default, skip_serializing_if = "Option::is_none")]
    pub result: Option<BlobRef>,
    /// The unit's share of the host's processor, where the lease names a policy.
    #[serde(rename = "share", default, skip_serializing_if = "Option::is_none")]
    pub cpu_share: Option<HeldCpuShare>,
    /// The unit's use of the host, where the unit runs and that is measured. In heartbeats, and only for servers with the
    /// feature [`UNIT_USAGE`](super::UNIT_USAGE).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<UnitUsage>,
    /// The losses of its unit so far, once there are any. Only for servers with the feature [`TRAIN_LOSSES`](super::TRAIN_LOSSES).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub losses: Option<LossSum>,
}

/// The training losses of a unit's batches so far.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LossSum {
    /// The sum of the batches' losses, each of which is the mean over the batch's rows.
    pub sum: f64,
    /// How many batches that is.
    pub batches: u32,
}

impl LossSum {
    /// So many batches follow, with this mean loss.
    #[must_use]
    pub fn plus(self, mean: f64, batches: u32) -> Self {
        Self {
            sum: self.sum + mean * f64::from(batches),
            batches: self.batches.saturating_add(batches),
        }
    }
}

impl Held {
    /// A held lease, of which there is no more to say.
    #[must_use]
    pub const fn new(lease: LeaseId, state: HeldState) -> Self {
        Self { lease, state, result: None, cpu_share: None, usage: None, losses: None }
    }
}

/// How far a held lease is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum HeldState {
    /// All is there that it begins with, or it hasn't begun to fetch that: it waits for its turn.
    Waiting,
    /// The blobs that it begins with are on their way.
    Fetching {
        /// Bytes of them that are there.
        fetched: u64,
    },
    /// In a slot.
    Running {
        /// Batches done.
        done: u32,
        /// Batches of the unit, over all its shards.
        of: u32,
    },
    /// In a slot, where it waits for a shard of its further legs that is on its way. Only for servers with the
    /// feature [`AWAITING_SHARDS`](super::AWAITING_SHARDS).
    Awaiting {
        /// Batches done.
        done: u32,
        /// Batches of the unit, over all its shards.
        of: u32,
        /// Bytes of its blobs that are there.
        fetched: u64,
    },
    /// Trained; its result waits for the server.
    Finished,
    /// Trained; its result is being uploaded. Only for servers with the feature [`UPLOAD_PROGRESS`](super::UPLOAD_PROGRESS).
    Sending {
        /// Bytes of it that are on their way or there.
        sent: u64,
    },
}

impl HeldState {
    /// Is the unit trained?
    #[must_use]
    pub const fn is_finished(&self) -> bool {
        matches!(self, HeldState::Finished | HeldState::Sending { .. })
    }

    /// How far it is, where it is in a slot.
    #[must_use]
    pub const fn progress(&self) -> Option<Progress> {
        match *self {
            HeldState::Running { done, of } | HeldState::Awaiting { done, of, .. } => {
                Some(Progress { done, of })
            }
            _ => None,
        }
    }
}

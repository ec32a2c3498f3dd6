//! Where trials are in their epochs, shard by shard.

use crate::ids::{Epoch, HostId, JobId, TrialId};
use serde::{Deserialize, Serialize};

/// The running trials of a job by its training shards: how far each hop of the current epoch is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct HopMatrixView {
    /// The job.
    pub job: JobId,
    /// Training shards: the columns.
    pub shards: u32,
    /// Running trials in all. Not all of them need be rows.
    pub running: u32,
    /// Running trials, those that have begun first: 200 at most, and fewer where there are many shards, so that the matrix has
    /// some 10,000 cells.
    pub trials: Vec<HopRow>,
}

/// The current epoch of a trial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct HopRow {
    /// The trial.
    pub trial: TrialId,
    /// The epoch that is being trained; the last one where all are trained.
    pub epoch: Epoch,
    /// The epoch's hops, one for each shard.
    pub cells: Vec<HopState>,
    /// Does a host evaluate a checkpoint of it?
    pub evaluating: bool,
    /// Why it doesn't go on, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<String>,
}

/// How far a hop is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum HopState {
    /// The hop is trained, and its result assimilated.
    Done,
    /// The hop's result is reported and waits to be assimilated.
    Reported,
    /// Hosts train it now: several where it has a speculative lease, or where its result is verified.
    Running {
        /// The hosts.
        hosts: Vec<HostId>,
    },
    /// A host has a lease for it and doesn't train it now: it comes later under that lease, or it is trained and its result is on its
    /// way.
    Leased {
        /// The host.
        host: HostId,
    },
    /// Some of its batches are trained, and no host has a lease for the others.
    Partial {
        /// Batches that are trained.
        batches: u32,
        /// Batches in all.
        of: u32,
    },
    /// Nothing of it is trained, and no host has a lease for it.
    Open,
}

//! A unit of assimilation work: one acknowledged result.

use crate::{
    ids::{ClaimId, LeaseId, Version},
    position::Position,
    report::Trained,
    time::Millis,
    unit::{Hop, Merge},
};
use serde::{Deserialize, Serialize};

/// Assimilation work: check what was uploaded under `lease` and make it, or merge it into, the trial's next version.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AssimilationUnit {
    /// The lease whose result it is; the upload lies under it.
    pub lease: LeaseId,
    /// The number of this claim.
    #[serde(rename = "taking")]
    pub claim: ClaimId,
    /// The claim's term: the unit is given to another where for this long nothing is offered for it and it isn't renewed.
    pub term: Millis,
    /// The hop that was trained; it holds the base, the seeds and the context.
    pub hop: Hop,
    /// The host's report.
    pub trained: Trained,
    /// The position that the checkpoint must say.
    pub expected_end: Position,
    /// The version to make.
    pub version: Version,
    /// How it is merged into the one before, where it doesn't replace it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merge: Option<Merge>,
}

impl AssimilationUnit {
    /// Whether the result needs no merge, and its checkpoint has at most so many bytes.
    #[must_use]
    pub const fn is_small(&self, max_bytes: u64) -> bool {
        self.merge.is_none() && self.trained.checkpoint.bytes <= max_bytes
    }
}

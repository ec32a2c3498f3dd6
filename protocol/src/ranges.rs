//! Messages for the merge of a large model that is divided by ranges of its checkpoint.
//!
//! The assimilator that took the unit leads: it says which ranges are left to do, gets those that others have done, and does
//! some itself. There are two rounds. In the first each range gives the squares of its change; from all of them the leader
//! decides, over the whole, what is done in every range of the second, which gives stored pieces of the next version.
//!
//! ```text
//! leader  -- lead { task, left } -->  server  -- take: a range -->  others
//! leader  <-- made -----------------  server  <-- made -----------  others
//! ```
//!
//! The server remembers nothing of this that lasts: a leader says all of it anew each time that it asks, and does
//! alone what nobody else does.

use crate::{
    assimilation::unit::AssimilationUnit,
    digest::{BlobRef, Digest},
    ids::ClaimId,
    time::Millis,
};
use serde::{Deserialize, Serialize};

/// The task for a range.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum RangeTask {
    /// Find the sums over the change in it.
    Squares,
    /// Make and store it.
    Merge(RangeDecision),
}

impl RangeTask {
    /// Is this a result of such a task?
    #[must_use]
    pub const fn fits(&self, result: &RangeResult) -> bool {
        matches!(
            (self, result),
            (Self::Squares, RangeResult::Squares(_)) | (Self::Merge(_), RangeResult::Merged { .. })
        )
    }
}

/// The decision over the whole file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct RangeDecision {
    /// Changes gathered since the rule's last step.
    pub gathered: u32,
    /// The bits of the `f64` by which the change is multiplied.
    pub scale: u64,
    /// The bits of the two `f64` of the change's overlap with what others have changed; none where there is no overlap, or
    /// the rule doesn't depend on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overlap: Option<[u64; 2]>,
    /// The numbers of the next version's lineage.
    pub lineage: Vec<i64>,
}

/// A range to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RangeWork {
    /// The unit that is merged; its claim is the leader's.
    pub unit: AssimilationUnit,
    /// The least bytes of a range: all cut alike.
    pub least: u64,
    /// Which range.
    pub left: RemainingRange,
    /// The task for it.
    pub task: RangeTask,
}

/// A range that isn't done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct RemainingRange {
    /// The range's number, from 0 in the file's order.
    pub range: u32,
    /// The digest of the upload's bytes in it, which were checked as a whole.
    pub upload: Digest,
}

/// The result of a range.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum RangeResult {
    /// The bits of the `f64` of each block's sums, in the blocks' order: the sum of squares alone, or three products.
    Squares(Vec<u64>),
    /// Stored pieces of the next version.
    Merged {
        /// Of its checkpoint.
        checkpoint: StoredPiece,
        /// Of its state, one for each of the rule's slots; none where the range has no parameters.
        slots: Vec<StoredPiece>,
    },
}

/// A piece of a blob, in the store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct StoredPiece {
    /// The name under which the piece is stored.
    pub name: String,
    /// The digest and size of the piece's raw bytes.
    pub raw: BlobRef,
    /// The size of the piece as it is stored, in bytes.
    pub packed: u64,
}

/// A leader says what is left to do of its merge, and asks what others have done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct LeadRequest {
    /// The leader's unit.
    pub unit: AssimilationUnit,
    /// The least bytes of a range.
    pub least: u64,
    /// The round.
    pub task: RangeTask,
    /// The ranges that it lacks. With none left, its merge is no longer divided among assimilators.
    pub left: Vec<RemainingRange>,
    /// How long the server may hold the request while nothing is done and there is nothing for the leader to do; 20 seconds at
    /// most, also where it is more.
    pub wait: Millis,
}

/// Ranges that others have finished, and a range for the leader itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LeadAnswer {
    /// Ranges that were left and that others have done.
    #[serde(rename = "made")]
    pub done: Vec<RangeDone>,
    /// The number of a range for the leader.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own: Option<u32>,
}

/// The result of one range.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct RangeDone {
    /// The range's number.
    pub range: u32,
    /// The result.
    #[serde(rename = "made")]
    pub result: RangeResult,
}

/// Somebody has done a range of another's merge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct RangeResultRequest {
    /// The leader's claim.
    #[serde(rename = "taking")]
    pub claim: ClaimId,
    /// The result.
    pub done: RangeDone,
}

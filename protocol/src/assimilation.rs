//! Messages between the server and assimilators: units that are claimed, what is offered for them, and how many wait.
//!
//! A unit is one acknowledged result, named by its lease. An assimilator claims it for a term, which it renews while
//! the work lasts; after that the unit is given to another. Each claim has a number of its own. The server takes the
//! first offer for a unit, even from a claim that has expired: all of them come to the same bytes.

pub(crate) mod unit;

use crate::{
    digest::{BlobRef, Digest},
    ids::{ClaimId, Version},
    ranges::RangeWork,
    time::Millis,
    trace::TraceContext,
    unit::Flush,
};
use serde::{Deserialize, Serialize};

pub use unit::AssimilationUnit;

/// An assimilator asks for a unit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TakeRequest {
    /// The assimilator's name, for people: the same for all that one process asks.
    pub name: String,
    /// How long the server may hold the request while there is none; 20 seconds at most, also where it is more.
    pub wait: Millis,
    /// The assimilator can evaluate the loss of a checkpoint: units of jobs that have losses looked at go to no other.
    pub losses: bool,
}

/// A unit, or a range of one that another has taken, or nothing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TakeAnswer {
    /// The unit to assimilate; none where none came while the request was held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<AssimilationUnit>,
    /// A range of a merge that another leads; never with a unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<RangeWork>,
    /// The trace of the unit's result, for the logs; left out where the server knows none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(
        feature = "openapi",
        schema(value_type = Option<String>, pattern = "^00-[0-9a-f]{32}-[0-9a-f]{16}-0[01]$")
    )]
    pub trace: Option<TraceContext>,
}

/// An assimilator is still at work on the unit that it has taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RenewRequest {
    /// The claim.
    #[serde(rename = "taking")]
    pub claim: ClaimId,
}

/// The version that was produced from an upload; its blobs are in the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct NewVersion {
    /// The number of the version.
    pub version: Version,
    /// The version's checkpoint.
    pub checkpoint: BlobRef,
    /// How, where the upload was merged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merged: Option<Merged>,
}

impl NewVersion {
    /// The blobs that must be in the store.
    pub fn blobs(&self) -> impl Iterator<Item = BlobRef> + use<> {
        std::iter::once(self.checkpoint).chain(self.merged.map(|merged| merged.state))
    }
}

/// How an upload was merged: as the unit said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Merged {
    /// The rule's state; its blob is in the store, too.
    pub state: BlobRef,
    /// Whether what the rule had gathered was used.
    pub flush: Flush,
    /// Units of the trial in flight at once.
    pub in_flight: u32,
}

/// An upload is refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RejectRequest {
    /// The party at fault.
    pub fault: Fault,
    /// Why, for people.
    pub reason: String,
}

/// The party at fault when an upload can't be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// The host made or sent what is wrong.
    Host,
    /// The server lost what the host had sent rightly.
    Server,
}

/// The store seems to have lost a blob that a unit needs; the server looks itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LostRequest {
    /// The blob.
    pub blob: Digest,
}

/// The outcome of an offer, or of a renewal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct OfferAnswer {
    /// The outcome of the request.
    pub offer: Offer,
}

/// The outcome of offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Offer {
    /// The offer ended the report. Of a renewal: the term begins anew. Of a loss: the server has lost the blob indeed.
    Taken,
    /// The report had ended otherwise, the taking has, or the blob is there; nothing changed.
    Stale,
    /// A blob of it isn't in the store any more: publish it again and offer again.
    Unpublished,
}

/// How much there is to assimilate, and who does it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AssimilationsView {
    /// Units that nobody has taken.
    pub waiting: u64,
    /// Results that become units one after another, each when the one before it in its trial has ended.
    pub behind: u64,
    /// Units that somebody has taken.
    pub taken: u64,
    /// How long the oldest of all these units has been one, in milliseconds; 0 where there is none.
    pub lag: Millis,
    /// Units that have ended since the server started.
    pub ended: u64,
    /// Units that have ended in each of the last seconds, on average over a minute.
    pub per_second: f64,
    /// Assimilators that run in the server itself.
    pub threads: u32,
    /// Processes that were heard of lately.
    pub assimilators: Vec<AssimilatorView>,
    /// Where the blobs are that assimilators reach for themselves, without what is secret of it; nothing where they are
    /// in the server's own folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blobs: Option<String>,
}

/// A process that assimilates.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AssimilatorView {
    /// The process's name.
    pub name: String,
    /// Since when it hasn't been heard of, in milliseconds.
    pub silent: Millis,
    /// Units that it has taken since the server started.
    pub taken: u64,
}

//! Requested evaluations: of a trial's best checkpoint, on the test data when the search ends, and on either split
//! when a user asks. The search never uses them.

use super::{FailedBy, InFlight, PendingVerification};
use crate::event::RequestedEvaluation;
use serde::{Deserialize, Serialize};
use sojourn_protocol::{
    digest::BlobRef,
    ids::{HostId, LeaseId, Version},
    metrics::ByClass,
    report::Sums,
    sum_array::SumArray,
    time::UnixMillis,
    view::Verification,
};
use std::collections::{BTreeMap, BTreeSet};

/// An open requested evaluation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExtraEvaluation {
    /// The evaluation's name.
    pub name: RequestedEvaluation,
    /// The version that the epoch ended with.
    pub version: Version,
    /// The version's checkpoint; kept while the evaluation is open.
    pub checkpoint: BlobRef,
    /// Live leases.
    pub live: BTreeSet<LeaseId>,
    /// Trainer errors, by host.
    pub failures: BTreeMap<HostId, FailedBy>,
    /// The verification that its result waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verification: Option<PendingVerification>,
}

impl ExtraEvaluation {
    /// Is a host to be found for it: none is at it, and no result of it is verified?
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.live.is_empty() && self.verification.is_none()
    }

    /// The evaluation's live leases, and its acknowledged results that are verified.
    #[must_use]
    pub fn in_flight(&self) -> InFlight {
        let results = self.verification.iter().flat_map(|of| of.results.keys().copied());
        InFlight { live: self.live.iter().copied().collect(), awaiting: results.collect() }
    }
}

/// A requested evaluation that has ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExtraResult {
    /// The evaluation's name.
    pub name: RequestedEvaluation,
    /// The evaluated checkpoint, which may have been deleted since.
    pub checkpoint: BlobRef,
    /// When it ended.
    pub at: UnixMillis,
    /// How the evaluation ended.
    pub end: ExtraEnd,
}

impl ExtraResult {
    /// Were its counts taken in unverified?
    #[must_use]
    pub fn is_unverified(&self) -> bool {
        matches!(self.end, ExtraEnd::Evaluated { verified: Some(Verification::Unverified), .. })
    }
}

/// How a requested evaluation ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExtraEnd {
    /// With these counts.
    Evaluated {
        /// Over all rows.
        sums: Sums,
        /// Rows by class, where there are classes and not too many.
        by_class: Option<ByClass>,
        /// The arrays that a user's own model adds up, by name.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        arrays: BTreeMap<String, SumArray>,
        /// How its verification ended, where there was one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        verified: Option<Verification>,
    },
    /// By errors: the last one.
    Failed {
        /// The error.
        error: String,
    },
}

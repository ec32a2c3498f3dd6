//! Requested evaluations: of a trial's best checkpoint, on the test data when the search ends, and on either split
//! when a user asks. The search never uses them.

use super::FailedBy;
use crate::event::RequestedEvaluation;
use serde::{Deserialize, Serialize};
use sojourn_protocol::{
    digest::BlobRef,
    ids::{HostId, LeaseId, Version},
    metrics::ByClass,
    report::Sums,
    time::UnixMillis,
};
use std::collections::{BTreeMap, BTreeSet};

/// An open requested evaluation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExtraEvaluation {
    /// Its name.
    pub name: RequestedEvaluation,
    /// The version that the epoch ended with.
    pub version: Version,
    /// Its checkpoint; kept while the evaluation is open.
    pub checkpoint: BlobRef,
    /// Live leases.
    pub live: BTreeSet<LeaseId>,
    /// Trainer errors, by host.
    pub failures: BTreeMap<HostId, FailedBy>,
}

/// A requested evaluation that has ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExtraResult {
    /// Its name.
    pub name: RequestedEvaluation,
    /// The evaluated checkpoint, which may have been deleted since.
    pub checkpoint: BlobRef,
    /// When it ended.
    pub at: UnixMillis,
    /// How.
    pub end: ExtraEnd,
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
    },
    /// By errors: the last one.
    Failed {
        /// The error.
        error: String,
    },
}

//! Evaluations outside the search, each of a checkpoint that was its trial's best: on the test data when
//! the search ends, and on either split whenever somebody asks. The search never looks at them.

use super::FailedBy;
use serde::{Deserialize, Serialize};
use sojourn_protocol::{
    digest::BlobRef,
    ids::{Epoch, HostId, LeaseId, TrialId, Version},
    manifest::DataSplit,
    metrics::ByClass,
    report::Sums,
    time::UnixMillis,
};
use std::collections::{BTreeMap, BTreeSet};

/// What a job does when its search has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AtEnd {
    /// It ends; jobs without test data, and those of the first journals.
    #[default]
    Nothing,
    /// It evaluates the best trial on the test data, then ends.
    Test,
}

/// Which extra evaluation of a job: there is one of each name at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequestedEvaluation {
    /// The trial.
    pub trial: TrialId,
    /// The rows.
    pub split: DataSplit,
    /// The epoch that the checkpoint ended.
    pub epoch: Epoch,
}

/// An extra evaluation to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExtraEvaluation {
    /// Which.
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

/// An extra evaluation that has ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExtraResult {
    /// Which.
    pub name: RequestedEvaluation,
    /// What was evaluated; it may be gone by now.
    pub checkpoint: BlobRef,
    /// When it ended.
    pub at: UnixMillis,
    /// How.
    pub end: ExtraEnd,
}

/// How an extra evaluation ended.
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

//! Evaluations outside the search: on the test data when it ends, and whenever somebody asks.

use crate::{
    digest::BlobRef,
    ids::{Epoch, TrialId},
    manifest::DataSplit,
    metrics::{ByClass, Metrics},
    sum_array::SumArray,
    time::UnixMillis,
    view::Verification,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// An evaluation of a checkpoint that was its trial's best.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct EvaluationView {
    /// The trial.
    pub trial: TrialId,
    /// The rows.
    pub split: DataSplit,
    /// The epoch that the checkpoint ended.
    pub epoch: Epoch,
    /// The checkpoint.
    pub checkpoint: BlobRef,
    /// How far it is.
    pub state: EvaluationState,
}

/// How far an evaluation is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum EvaluationState {
    /// The evaluation waits for a host.
    Waiting {
        /// Why it stands still, where it does.
        reason: Option<String>,
    },
    /// A host has it.
    Running,
    /// The evaluation is done.
    Done(EvaluationResult),
    /// The evaluation was given up.
    Failed {
        /// The last error.
        error: String,
    },
}

/// The result of an evaluation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct EvaluationResult {
    /// When it was done.
    pub at: UnixMillis,
    /// The metrics: means and shares, not sums.
    pub metrics: Metrics,
    /// Rows by class, in the order of the job's classes. Lists of jobs and of trials leave it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by_class: Option<ByClass>,
    /// The arrays that a user's own model adds up, by the sum's name. Lists of jobs and of trials leave them out.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub arrays: BTreeMap<String, SumArray>,
    /// How its verification ended, where there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verified: Option<Verification>,
}

impl EvaluationView {
    /// The evaluation's result, once it is done.
    #[must_use]
    pub const fn result(&self) -> Option<&EvaluationResult> {
        match &self.state {
            EvaluationState::Done(result) => Some(result),
            EvaluationState::Waiting { .. }
            | EvaluationState::Running
            | EvaluationState::Failed { .. } => None,
        }
    }

    /// Without what lists leave out.
    #[must_use]
    pub fn brief(mut self) -> Self {
        if let EvaluationState::Done(result) = &mut self.state {
            result.by_class = None;
            result.arrays = BTreeMap::new();
        }
        self
    }
}

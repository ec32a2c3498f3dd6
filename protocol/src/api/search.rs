//! A job's search, as a user or a program changes and reads it.

use crate::{
    ids::{JobId, TrialId},
    spec::{Choices, ModelSpace, TrainingSpace, dimension::is_default},
    time::UnixMillis,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Characters of a reason that a user gives.
pub const MAX_WHY_CHARS: usize = 500;
/// Characters of a call's name that are kept.
pub const MAX_NONCE_CHARS: usize = 64;
/// Trials that one request adds at most.
pub const MAX_ADDED_TRIALS: usize = 1_024;
/// The highest priority of a trial; the lowest is its negative.
pub const MAX_TRIAL_PRIORITY: i32 = 100;

/// Changes a job's search: all that is asked for, or nothing. A job that has ended runs again where there is something to train.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct SearchRequest {
    /// Trials to add, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub add: Vec<NewTrial>,
    /// Trials that go on, also such as were stopped.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub go_on: Vec<GoOn>,
    /// Trials that end with what they have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stop: Vec<TrialId>,
    /// Trials that have failed, and are run again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub retry: Vec<Retry>,
    /// New priorities of trials among those of the job.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub priorities: Vec<TrialPriority>,
    /// Combinations that the search is to try in all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trials: Option<u32>,
    /// The space that combinations are taken from, from now on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub space: Option<Box<Space>>,
    /// No more combinations are tried: the job ends with the trials that it has.
    #[serde(default, skip_serializing_if = "is_default")]
    pub end: bool,
    /// The reason, for people: one line of at most [`MAX_WHY_CHARS`] characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Names this call: the same one again, because its answer was lost, adds no trials twice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nonce: Option<String>,
}

/// A trial that goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct GoOn {
    /// The trial.
    pub trial: TrialId,
    /// Epochs that it is to have trained in all by then.
    pub epochs: u32,
}

/// A trial that has failed, and is run again.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Retry {
    /// The trial. It begins anew, as if it had never been trained.
    pub trial: TrialId,
    /// Settings that are to be other, by name. With any, the failed trial stays as it is, and a new one with these settings is added.
    #[cfg_attr(feature = "openapi", schema(value_type = BTreeMap<String, serde_json::Value>))]
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty", with = "crate::decimal::choices")]
    pub values: Choices,
}

/// A trial's priority.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct TrialPriority {
    /// The trial.
    pub trial: TrialId,
    /// -100 to 100; 0 at first. Trials of a higher one come first.
    pub priority: i32,
}

/// A trial to add.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct NewTrial {
    /// The values of the dimensions that vary, by name (`training.optimizer.lr`) or by the last word of that (`lr`); of a clone, what
    /// is other than in the trial that it is of.
    #[cfg_attr(feature = "openapi", schema(value_type = BTreeMap<String, serde_json::Value>))]
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty", with = "crate::decimal::choices")]
    pub values: Choices,
    /// The trial of which it is a clone: it goes on from that one's weights and optimiser state, after the last epoch whose
    /// checkpoint is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<TrialId>,
}

/// A space that combinations are taken from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Space {
    /// One entry per `[[model]]` table: those that the job has.
    pub models: Vec<ModelSpace>,
    /// How trials are trained.
    pub training: TrainingSpace,
}

/// A search was changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SearchAnswer {
    /// The job.
    pub job: JobId,
    /// The trials that were added, in the order of the request, and then those that are retries with other settings; with each of the job's seeds, where they are a dimension.
    pub added: Vec<TrialId>,
}

/// How far a search has got.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SearchView {
    /// The job.
    pub job: JobId,
    /// The procedure.
    pub method: String,
    /// Is the job running?
    pub running: bool,
    /// Are there combinations to come?
    pub open: bool,
    /// Why there are none, though there could be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over: Option<String>,
    /// Combinations that were tried.
    pub suggested: u32,
    /// Combinations that are to be tried in all, at most.
    pub wanted: u32,
    /// Trials for which there is room beside those that train: about two for each slot are to be under way.
    pub room: u32,
    /// The trials, by id.
    pub trials: Vec<SearchTrial>,
}

/// A trial, as far as a search needs it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SearchTrial {
    /// The trial's id.
    pub trial: TrialId,
    /// The `[[model]]` table that it is of, counted from 0.
    pub model: u32,
    /// Whether it goes on.
    pub state: SearchTrialState,
    /// The values of the dimensions that vary.
    #[cfg_attr(feature = "openapi", schema(value_type = BTreeMap<String, serde_json::Value>))]
    #[serde(with = "crate::decimal::choices")]
    pub choices: Choices,
    /// Epochs that it has trained.
    pub epochs: u32,
    /// The search's metric after each evaluated epoch, in order; nothing where that is no finite number.
    pub values: Vec<Option<f64>>,
    /// When each of these values became known; empty from a server of before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub at: Vec<UnixMillis>,
    /// The best of them.
    pub best: Option<f64>,
}

/// Whether a trial goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum SearchTrialState {
    /// There is something of it to train or to evaluate.
    Running,
    /// All that the trial may train is trained and evaluated: it waits for a decision.
    Waiting,
    /// The trial has finished, or was stopped.
    Finished,
    /// The trial has failed.
    Failed,
    /// The trial was cancelled with its job.
    Cancelled,
}

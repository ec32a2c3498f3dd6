//! The job as its user means it: the search space, and one trial's concrete configuration.
//!
//! [`JobSpec`] is what `job.toml` says, with every search dimension still open; a
//! [`Chooser`](dimension::Chooser) closes them all and gives a [`TrialConfig`].

mod architecture;
mod augment;
mod categories;
mod check;
mod class_weights;
mod combination_rule;
mod conditional;
mod constraint;
mod cpu_shares;
pub mod data;
mod dialect;
pub mod dimension;
mod distribution;
mod graph;
mod job;
mod merge;
mod method;
mod metric;
mod model;
mod placement;
mod ratio;
mod residency;
mod search;
mod stopping;
mod training;
mod verify;

pub use architecture::{Architecture, Cnn, Mlp, Pool, Resnet};
pub use augment::{Augment, AugmentSpace};
pub use categories::{Categories, CategoriesSpec, Coding, MAX_WORD_COLUMNS, MAX_WORDS};
pub use class_weights::{ClassWeights, MAX_WEIGHTED_CLASSES};
pub use combination_rule::CombinationRule;
pub use conditional::{
    Condition, Conditional, MAX_CONDITION_SETTINGS, Presence, SpaceFault, Unclosed,
};
pub use constraint::{
    Constraint, ConstraintError, ConstraintFault, Constraints, Formula, MAX_CONSTRAINT_CHARS,
    MAX_CONSTRAINTS,
};
pub use cpu_shares::{
    Apply, BETAS, CPU_SHARE_INTERVALS, CpuSharePolicy, First, FlowCon, LEAST_WEIGHTS, MAX_ALPHA,
    MAX_CPU_SHARE_INTERVAL, Order, Threshold,
};
pub use data::{
    Channels, Columns, DataSpec, FileKind, Missing, OnBad, Scale, ScaleLabel, Separator,
    ShardSizes, SourceSpec, Split,
};
pub use dialect::{
    DateFeatures, DecimalSign, Dialect, Header, MAX_MISSING_WORDS, Notation, TextEncoding,
    ThousandsSign,
};
pub use dimension::Dimension;
pub use graph::{
    ExportedGraph, Graph, GraphColumn, GraphRole, GraphTensor, InitialWeights, Real, Setting,
    Start, WINDOW,
};
pub use job::{DEFAULT_TOP_K, Goal, Init, JobSpec, SearchBudget, SearchSpec, Spread};
pub use merge::{
    Alpha, MAX_ARRIVALS, MAX_LOSS_RATIO, MAX_MOMENTUM, MAX_RATE, MergeSpec, OptimizerMerge, Outer,
    RuleFault, RuleSpec, Staleness, StalenessBound,
};
pub use method::{MAX_BATCH, PastJob, PastTrial, Pbt, SearchMethod, Tpe};
pub use metric::{MAX_SUM_NAME, Metric, MetricRule, OwnMetric, is_sum_name};
pub use model::{CnnSpace, GraphSpace, MlpSpace, ModelSpace, ResnetSpace};
pub use placement::{
    DEFAULT_MERGE_IN_FLIGHT, FIXED_VISITS_MERGE, LocalSteps, MAX_DEADLINE, MAX_HOSTS,
    MAX_MERGE_IN_FLIGHT, MAX_PRIORITY, MAX_REPLICAS, MAX_SLOT_SHARE, MAX_THREADS, MIN_DEADLINE,
    MIN_MERGE_IN_FLIGHT, OrderChoice, PlacementSpec, Replicas, Visits,
};
pub use ratio::Ratio;
pub use residency::{
    Growth, Listing, MAX_GROWTH, MAX_LOOKS, MAX_MARGIN, RESIDENCY_INTERVALS, Rebalancing,
    ResidencyPolicy, Scope, SpeCon,
};
pub use stopping::{Bracket, Halving, MAX_REDUCTION, Rung, Stopping, hyperband, hyperband_bracket};
pub use training::{
    DEFAULT_BATCH_SIZE, DecayScope, Loss, MAX_EPOCHS, MAX_LOCAL_EPOCHS, Optimizer, OptimizerName,
    OptimizerSpace, Precision, Sampling, Schedule, ScheduleName, ScheduleSpace, TrainingConfig,
    TrainingSpace,
};
pub use verify::{MAX_QUORUM, Verify, VerifyChoice, VerifyName};

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One training configuration, nothing left open.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct TrialConfig {
    /// The architecture and its sizes.
    pub model: Architecture,
    /// How it is trained.
    pub training: TrainingConfig,
}

/// The values that a trial took in the dimensions that vary, by dimension name
/// (`model[1].channels`, `training.optimizer.lr`), for tables and boards.
pub type Choices = BTreeMap<String, serde_json::Value>;

/// The choice of a seed.
pub const SEED: &str = "seed";
/// The choice of a fold.
pub const FOLD: &str = "fold";

/// Do trials that differ in this choice alone have the same configuration?
#[must_use]
pub fn is_replicate(name: &str) -> bool {
    name == SEED || name == FOLD
}

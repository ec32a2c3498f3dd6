//! Views: the answers of commands that read.

mod configurations;
mod evaluation;
mod failures;
mod history;
mod hops;
mod hosts;
mod owner;
mod programs;
mod time_left;
mod traffic;

pub use configurations::{Configuration, configurations, replicates};
pub use evaluation::{EvaluationResult, EvaluationState, EvaluationView};
pub use failures::FailureView;
pub use history::{HopRecord, MergeRecord, TrialHistory, Verification};
pub use hops::{HopMatrixView, HopRow, HopState};
pub use hosts::{
    CachedOfJob, ClassParties, CpuShareView, DeviceView, DoubtView, HeldView, HostDetail,
    HostState, HostView, SuspectResult,
};
pub use owner::{ADMIN_OWNER, JobOwner};
pub use programs::ProgramView;
pub use time_left::TimeLeft;
pub use traffic::{RefusalCounts, TrafficView};

use crate::{
    api::Space,
    digest::{BlobRef, Digest},
    ids::{Epoch, JobId, TrialId, Version},
    manifest::DataManifest,
    metrics::is_default,
    report::Sums,
    residency::ResidenceView,
    spec::{Choices, Goal, JobSpec, Rung},
    time::UnixMillis,
    unit::Origin,
};
use serde::{Deserialize, Serialize};
use std::{borrow::Cow, cmp::Ordering, collections::BTreeMap};

/// Whether a job goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum JobState {
    /// Trials are left.
    Running,
    /// Trials are left, and nothing of them is handed out until the job is resumed.
    Paused,
    /// Every trial has ended, at least one of them finished.
    Finished,
    /// Every trial failed.
    Failed,
    /// A user ended the job.
    Cancelled,
}

impl JobState {
    /// Neither running nor paused.
    #[must_use]
    pub const fn has_ended(self) -> bool {
        match self {
            JobState::Running | JobState::Paused => false,
            JobState::Finished | JobState::Failed | JobState::Cancelled => true,
        }
    }

    /// In a word, as JSON has it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Paused => "paused",
            Self::Finished => "finished",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

/// A job in a line, and its counts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct JobView {
    /// The job's id.
    pub job: JobId,
    /// The job's name.
    pub name: String,
    /// Whether it goes on.
    pub state: JobState,
    /// When it was submitted.
    pub submitted_at: UnixMillis,
    /// When it ended.
    pub ended_at: Option<UnixMillis>,
    /// Name of the metric that compares trials.
    pub metric: String,
    /// Trials in all.
    pub trials: u32,
    /// Trials that finished.
    pub trials_finished: u32,
    /// Trials that failed.
    pub trials_failed: u32,
    /// Hops whose last part is in its trial's model.
    pub hops: u64,
    /// Hops of the whole job: shards x the epochs of all its trials.
    pub hops_expected: u64,
    /// Evaluations done.
    pub evaluations: u64,
    /// Evaluations of the whole job: the epochs of all its trials.
    pub evaluations_expected: u64,
    /// Leases live now.
    pub leases_live: u64,
    /// Leases that ran out.
    pub leases_expired: u64,
    /// Leases revoked or given back.
    pub leases_returned: u64,
    /// Speculative leases: second leases of running hops.
    #[serde(rename = "copies", default)]
    pub speculative_leases: u64,
    /// Results that came too late to be used.
    pub superseded: u64,
    /// Results that were refused.
    pub rejected: u64,
    /// Results that were taken in though nobody had confirmed them, and they were to be verified.
    #[serde(default, skip_serializing_if = "is_default")]
    pub unverified: u64,
    /// Microseconds that slots spent on results that were used.
    pub train_micros: u64,
    /// Bytes of the blobs that the store keeps because of this job: data, models to start from, checkpoints. A blob that
    /// several jobs or several of its trials have counts for each of them.
    #[serde(default)]
    pub disk_bytes: u64,
    /// Has the server deleted its data and checkpoints, but the best model (`--keep-jobs`)?
    #[serde(default, skip_serializing_if = "is_default")]
    pub thinned: bool,
    /// The best trial so far.
    pub best: Option<BestView>,
    /// The best trial on the test data, which the search doesn't see: once the search has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test: Option<EvaluationView>,
    /// Why it stands still, where it does.
    pub waiting: Option<String>,
    /// Why the search tries no more combinations, where it has tried fewer than it was to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search_ended: Option<String>,
    /// Results of refuted parties in it that nobody has confirmed, where its user is to decide. Lists of jobs leave them out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub doubts: Vec<DoubtView>,
    /// How long it has to go. None where it doesn't train, or no host is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_left: Option<TimeLeft>,
    /// How it stands to its deadline, where it has one: by how much it was missed, or will be, and what would keep it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<String>,
    /// A user's note about the job.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
    /// The token that it was submitted with; left out where it was submitted before jobs had owners.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<JobOwner>,
}

/// The best trial of a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BestView {
    /// The trial's id.
    pub trial: TrialId,
    /// The trial's name, as [`TrialView::name`].
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// After which epoch.
    pub epoch: Epoch,
    /// The metric's value.
    pub value: f64,
    /// The checkpoint.
    pub checkpoint: BlobRef,
    /// As [`TrialView::unverified`].
    #[serde(default, skip_serializing_if = "is_default")]
    pub unverified: u64,
}

/// A job with all that was submitted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct JobDetail {
    /// The counts.
    pub summary: JobView,
    /// The job as submitted.
    pub spec: JobSpec,
    /// The space that further combinations are taken from, where that was changed since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub space: Option<Box<Space>>,
    /// The job's data.
    pub data: DataManifest,
}

/// Whether a trial goes on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum TrialState {
    /// Hops or evaluations are left.
    Running,
    /// Trained and evaluated to the end.
    Finished,
    /// Ended by errors: the last one.
    Failed {
        /// The error.
        error: String,
    },
    /// Ended with its job.
    Cancelled,
}

/// How far a trial has got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum TrialPhase {
    /// Nothing of it was trained: it is to begin, or its job ended before.
    NotStarted,
    /// Hops or evaluations are left.
    Running,
    /// Trained and evaluated to the end.
    Finished,
    /// Ended early, by the search or by hand: its best epoch counts.
    Pruned,
    /// Ended by errors, or without a value when its job's time or budget was used up.
    Failed,
    /// Ended with its job.
    Cancelled,
}

impl TrialPhase {
    /// In words.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::NotStarted => "not started",
            Self::Running => "running",
            Self::Finished => "finished",
            Self::Pruned => "pruned",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

impl TrialState {
    /// In a word, as JSON has it.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Finished => "finished",
            Self::Failed { .. } => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

/// A trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TrialView {
    /// The trial's id.
    pub trial: TrialId,
    /// The trial's name: the architecture, and the values that it took where the search varies.
    #[serde(default)]
    pub name: String,
    /// Whether it goes on.
    pub state: TrialState,
    /// How far it has got, in finer steps than `state`. Servers of before don't say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<TrialPhase>,
    /// `mlp`, `cnn`, ...
    pub arch: String,
    /// The values that it took where the search varies.
    #[cfg_attr(feature = "openapi", schema(value_type = BTreeMap<String, serde_json::Value>))]
    #[serde(with = "crate::decimal::choices")]
    pub choices: Choices,
    /// Where it goes on from, where it is a clone of another trial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    /// The trial's priority among the trials of its job: a higher one comes first, and 0 is that of most.
    #[serde(default, skip_serializing_if = "is_default")]
    pub priority: i32,
    /// The epoch that it is in (its number of epochs, at the end).
    pub epoch: Epoch,
    /// Epochs in all.
    pub epochs: u32,
    /// Hops in its model.
    pub hops: u64,
    /// The trial's version.
    pub version: Version,
    /// The trial's checkpoint; none while it has its initial weights.
    pub checkpoint: Option<BlobRef>,
    /// The numeric class that it is kept in, once it has started and where the job is reproducible.
    pub numeric_class: Option<Digest>,
    /// Of the final model of cross-validation, which is trained on all folds: the first trial of its configuration. None of its epochs
    /// is evaluated, and its best value is the mean of the folds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refit: Option<TrialId>,
    /// One entry per evaluated epoch, in order.
    pub curve: Vec<CurveView>,
    /// Why it has finished, where that is not the end of its last epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped: Option<String>,
    /// The rung that it is on or ended on, in a search by successive halving, once it has begun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rung: Option<Rung>,
    /// The best epoch by the job's metric.
    pub best: Option<BestView>,
    /// The trial's last evaluation on the test data, which the search doesn't see.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test: Option<EvaluationView>,
    /// Unverified results that its models follow from or are judged by: hops and evaluations of its own, and of the trials that it goes
    /// on from.
    #[serde(default, skip_serializing_if = "is_default")]
    pub unverified: u64,
    /// Why it stands still, where it does.
    pub waiting: Option<String>,
    /// Where it stays, in jobs whose trials stay on hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub residence: Option<ResidenceView>,
}

impl TrialView {
    /// The order of a leader board: best first, trials without a value last.
    #[must_use]
    pub fn leader_board(goal: Goal, a: &Self, b: &Self) -> Ordering {
        let place = |trial: &Self| (trial.best.as_ref().map(|best| best.value), trial.trial);
        leader_board(goal, place(a), place(b))
    }
}

/// The order of a leader board, of trials by their best values: best first, those without a value last.
#[must_use]
pub fn leader_board(goal: Goal, a: (Option<f64>, TrialId), b: (Option<f64>, TrialId)) -> Ordering {
    let order = match (a.0, b.0) {
        (Some(a), Some(b)) => match goal {
            Goal::Max => b.total_cmp(&a),
            Goal::Min => a.total_cmp(&b),
        },
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => Ordering::Equal,
    };
    order.then(a.1.cmp(&b.1))
}

/// One evaluated epoch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CurvePoint {
    /// The epoch.
    pub epoch: Epoch,
    /// While training.
    pub train: Sums,
    /// On the validation shards, after it.
    pub valid: Sums,
    /// Macro F1 there, where the job's metric needs it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub f1: Option<f64>,
    /// Metrics of `[metrics]` that are made of arrays, by name. The others follow from `valid`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub own: BTreeMap<String, f64>,
    /// How the evaluation's verification ended, where there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verified: Option<Verification>,
    /// When it became known; 0 for a point that a server of before has kept.
    #[serde(default, skip_serializing_if = "is_default")]
    pub at: UnixMillis,
}

/// One evaluated epoch, with the means of its sums.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CurveView {
    /// The epoch and its sums.
    #[serde(flatten)]
    pub point: CurvePoint,
    /// The mean losses over its rows.
    #[serde(default)]
    pub loss_mean: MeanLosses,
}

impl From<CurvePoint> for CurveView {
    fn from(point: CurvePoint) -> Self {
        // JSON has no number for the mean of nothing.
        let mean = |sums: &Sums| Some(sums.mean_loss()).filter(|mean| mean.is_finite());
        let loss_mean = MeanLosses { train: mean(&point.train), valid: mean(&point.valid) };
        Self { point, loss_mean }
    }
}

/// The mean losses of an epoch; none where there were no rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct MeanLosses {
    /// While training.
    pub train: Option<f64>,
    /// On the validation shards.
    pub valid: Option<f64>,
}

/// One line of a job's history.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct EventView {
    /// The journal position.
    pub position: u64,
    /// The time of the event.
    pub at: UnixMillis,
    /// The event's kind, e.g. `lease-granted`.
    pub kind: String,
    /// All of it.
    pub event: serde_json::Value,
    /// The event as a sentence. Empty of servers that don't write it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// The decision with its reason, where the event is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<String>,
}

impl EventView {
    /// The event as a sentence; in general words where the server writes none.
    #[must_use]
    pub fn sentence(&self) -> Cow<'_, str> {
        if !self.text.is_empty() {
            return Cow::Borrowed(&self.text);
        }
        let details = match &self.event {
            serde_json::Value::Object(fields) => {
                let fields = fields.iter().map(|(name, value)| format!("{name}={}", short(value)));
                fields.collect::<Vec<_>>().join(" ")
            }
            other => short(other),
        };
        Cow::Owned(format!("{} {details}", self.kind))
    }
}

/// A value in a few characters: the event itself has all of it.
fn short(value: &serde_json::Value) -> String {
    const LIMIT: usize = 80;
    let text = match value {
        serde_json::Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    if text.chars().count() <= LIMIT {
        return text;
    }
    text.chars().take(LIMIT).chain(['…']).collect()
}

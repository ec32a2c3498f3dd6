//! Requests and answers about jobs, for administrators.

use crate::{
    ids::{HostId, JobId, TrialId, Version},
    manifest::{DataManifest, DataSplit},
    money::MicroUsd,
    spec::{JobSpec, dimension::is_default},
    time::Millis,
    view::BestView,
};
use serde::{Deserialize, Serialize};

/// Characters of a job's note.
pub const MAX_NOTE_CHARS: usize = 500;
/// Jobs that one request deletes, so that others are answered in between.
pub const MAX_DELETED_JOBS: usize = 100;

/// A new job; its blobs have been uploaded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct SubmitRequest {
    /// The job.
    pub spec: JobSpec,
    /// The job's data.
    pub data: DataManifest,
    /// Run it again though an identical job is there that hasn't been cancelled or failed.
    pub again: bool,
    /// Names this call: the same one again, because its answer was lost, gets the same job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nonce: Option<String>,
}

/// The job is taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SubmitAnswer {
    /// The job's id.
    pub job: JobId,
    /// Trials that it has.
    pub trials: u32,
    /// Was this job already there?
    pub submitted: Submitted,
}

/// Whether a submission made a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Submitted {
    /// A new job was made.
    New,
    /// The identical job that was there already is named.
    Existing,
}

/// Evaluates a trial's best checkpoint, once: the same request again asks how far that is. One that
/// failed begins anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct EvaluateRequest {
    /// On which rows.
    pub split: DataSplit,
}

/// A job is to stand still until it is resumed: nothing of it is handed out. Units that machines run
/// end as usual; those that wait on a machine for their turn are taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct PauseRequest {
    /// End what runs, too: hops after the batch that they are at, from where they go on after the job is
    /// resumed.
    #[serde(default)]
    pub now: bool,
}

/// Trials are to train for longer. Saying it again changes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ExtendRequest {
    /// Epochs in all, those that are trained already among them.
    pub epochs: u32,
    /// The one trial that is meant; without it, every trial that runs or has finished.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trial: Option<TrialId>,
    /// A cancelled job goes on again, and its cancelled trials with it. Without it such a job is refused.
    #[serde(default, skip_serializing_if = "is_default")]
    pub reopen: bool,
}

/// A job's priority, share and number of hosts from now on; a setting that is left out stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct PlacementRequest {
    /// Jobs of higher priority go first: -100 to 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<i32>,
    /// The job's share of slot time beside jobs of the same priority: 1 to 1000.
    #[serde(rename = "share", default, skip_serializing_if = "Option::is_none")]
    pub slot_share: Option<u32>,
    /// Hosts that may work at it at a time; 0: as many as there are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_hosts: Option<u32>,
    /// The most that bought machines may cost for the job in all; 0: as much as it takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<MicroUsd>,
    /// By when it is to end, from its submission; 0: at no time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Millis>,
}

/// A job's note from now on; the empty one takes it away.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct NoteRequest {
    /// One line for people, of at most [`MAX_NOTE_CHARS`] characters.
    pub note: String,
}

/// Which trials of a job are taken back, as if they had trained less.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum RollbackRequest {
    /// This one, to where it had trained so many epochs.
    Trial {
        /// The trial.
        trial: TrialId,
        /// Whole epochs; 0 is its start.
        epochs: u32,
        /// The options of the rollback.
        #[serde(default, skip_serializing_if = "is_default")]
        options: RollbackOptions,
    },
    /// The trials with results of a refuted host, or of another host of its party, that nobody has confirmed: each to before
    /// the first of these.
    Host {
        /// The host.
        host: HostId,
        /// The options of the rollback.
        #[serde(default, skip_serializing_if = "is_default")]
        options: RollbackOptions,
    },
}

impl RollbackRequest {
    /// How trials are taken back.
    #[must_use]
    pub const fn options(&self) -> RollbackOptions {
        match self {
            Self::Trial { options, .. } | Self::Host { options, .. } => *options,
        }
    }
}

/// How trials are taken back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default, deny_unknown_fields)]
pub struct RollbackOptions {
    /// Only say what would be lost.
    #[serde(skip_serializing_if = "is_default")]
    pub preview: bool,
    /// A job that has finished or failed goes on again. Without it such a job is refused.
    #[serde(skip_serializing_if = "is_default")]
    pub reopen: bool,
}

/// A trial that was taken back, or would be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RolledBack {
    /// The trial.
    pub trial: TrialId,
    /// Whole epochs that it has trained now. Where a host's results are taken back they may be fewer than it had before
    /// that host, if no later state is kept.
    pub epochs: u32,
    /// The trial's version now.
    pub version: Version,
    /// Epochs of it that were trained, wholly or in part, and are lost.
    #[serde(default)]
    pub epochs_lost: u32,
    /// The trial goes on from another trial's result that is taken back too, so it ends: it has nothing to go back to.
    #[serde(default, skip_serializing_if = "is_default")]
    pub ends: bool,
}

/// Jobs that have ended are to be deleted, with all that the store keeps because of them: all of them, or none where one is
/// refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct DeleteRequest {
    /// The jobs, at most [`MAX_DELETED_JOBS`]. One that was deleted before is passed over.
    pub jobs: Vec<JobId>,
    /// Only say what would go. A job that was deleted before is refused then.
    #[serde(default, skip_serializing_if = "is_default")]
    pub preview: bool,
}

/// Jobs that were deleted, or would be.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DeletedJobs {
    /// Each of them.
    pub jobs: Vec<DeletedJob>,
    /// Bytes of the blobs to which no other job refers. The store deletes them within minutes.
    pub bytes_freed: u64,
}

/// A job that was deleted, or would be.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DeletedJob {
    /// The job's id, which no other job gets.
    pub job: JobId,
    /// The job's name.
    pub name: String,
    /// Trials that it had.
    pub trials: u32,
    /// Bytes of the blobs that were kept because of it, other jobs' among them.
    pub disk_bytes: u64,
    /// Name of the metric that compares its trials.
    pub metric: String,
    /// The job's best trial, where it has one.
    pub best: Option<BestView>,
    /// Is that trial's model kept, because another job has the same one? Otherwise it goes too.
    pub best_is_kept: bool,
}

//! Workunits: what a host is asked to do, complete in itself.

use crate::{
    digest::BlobRef,
    ids::{Epoch, JobId, LeaseId, ShardId, TrialId, Version},
    manifest::{DataSplit, Scaling, Shard},
    metrics::{Counting, is_default},
    position::Position,
    spec::{MergeSpec, TrialConfig},
    time::{Millis, UnixMillis},
};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

pub use crate::hop::{Hop, Leg, ShardSegment};

/// The checkpoint that a unit starts from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Base {
    /// Version 0: made where it is needed, by `sojourn-model` from this seed.
    Initial {
        /// Seed of the initial weights.
        seed: u64,
    },
    /// Version 0 of a trial that starts from given parameters: made where it is needed, by
    /// `sojourn-model`. A variant of its own, so that a client that doesn't know it can't pass over
    /// the parameters and train from others.
    Given {
        /// The trial's seed, for the checkpoint's lineage alone.
        seed: u64,
        /// The canonical file of the model's parameters and buffers.
        parameters: BlobRef,
    },
    /// A stored checkpoint.
    Checkpoint {
        /// Its number.
        version: Version,
        /// Its bytes.
        blob: BlobRef,
    },
}

impl Base {
    /// Version 0 of a trial with this seed, from given parameters where there are some.
    #[must_use]
    pub const fn first(seed: u64, given: Option<BlobRef>) -> Self {
        match given {
            Some(parameters) => Base::Given { seed, parameters },
            None => Base::Initial { seed },
        }
    }

    /// The version that this is.
    #[must_use]
    pub const fn version(&self) -> Version {
        match self {
            Base::Initial { .. } | Base::Given { .. } => Version(0),
            Base::Checkpoint { version, .. } => *version,
        }
    }

    /// The blob to fetch, if any.
    #[must_use]
    pub const fn blob(&self) -> Option<BlobRef> {
        match self {
            Base::Initial { .. } => None,
            Base::Given { parameters, .. } => Some(*parameters),
            Base::Checkpoint { blob, .. } => Some(*blob),
        }
    }
}

/// What the units of one trial have in common.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct TrialContext {
    /// The configuration.
    pub config: TrialConfig,
    /// Shape of one row.
    pub shape: Vec<u32>,
    /// Outputs of the model: classes, or 1.
    pub outputs: u32,
    /// How features are scaled.
    pub scaling: Scaling,
    /// Optimiser steps of the whole trial, for schedules.
    pub total_steps: u64,
    /// Threads to pin, where the job is reproducible; `None` lets the slot decide.
    pub pinned_threads: Option<u32>,
}

impl TrialContext {
    /// The context that a lease was granted with, where the trial may have been extended since.
    /// `former` has the earliest extension first.
    #[must_use]
    pub fn as_of(self: &Arc<Self>, lease: LeaseId, former: &[FormerLength]) -> Arc<Self> {
        let Some(former) = former.iter().find(|former| lease <= former.until) else {
            return Arc::clone(self);
        };
        let mut context = Self::clone(self);
        context.config.training.epochs = former.epochs;
        context.total_steps = former.total_steps;
        Arc::new(context)
    }
}

/// How long a trial was to be before it was extended. Units that were granted until then go on by it:
/// a schedule that depends on the trial's length is that of the lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct FormerLength {
    /// The last lease that was granted before the extension.
    pub until: LeaseId,
    /// Epochs in all, until then.
    pub epochs: u32,
    /// Optimiser steps in all, until then.
    pub total_steps: u64,
}

/// Evaluate one checkpoint over all shards of a split.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Evaluation {
    /// The job.
    pub job: JobId,
    /// The trial.
    pub trial: TrialId,
    /// The epoch that the checkpoint ended.
    pub epoch: Epoch,
    /// The checkpoint's number.
    pub version: Version,
    /// The checkpoint.
    pub checkpoint: BlobRef,
    /// The data.
    pub shards: Vec<Shard>,
    /// Which rows those are.
    #[serde(default, skip_serializing_if = "is_default")]
    pub split: DataSplit,
    /// What to count beside loss and hits.
    #[serde(default, skip_serializing_if = "is_default")]
    pub counting: Counting,
    /// What the trial's units have in common.
    pub context: Arc<TrialContext>,
}

/// Work to hand out to a host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Train.
    Train(Hop),
    /// Evaluate.
    Evaluate(Evaluation),
}

impl Unit {
    /// The job that it belongs to.
    #[must_use]
    pub const fn job(&self) -> JobId {
        match self {
            Unit::Train(hop) => hop.job,
            Unit::Evaluate(evaluation) => evaluation.job,
        }
    }

    /// The trial that it belongs to.
    #[must_use]
    pub const fn trial(&self) -> TrialId {
        match self {
            Unit::Train(hop) => hop.trial,
            Unit::Evaluate(evaluation) => evaluation.trial,
        }
    }

    /// What the trial's units have in common.
    #[must_use]
    pub fn context(&self) -> &TrialContext {
        match self {
            Unit::Train(hop) => &hop.context,
            Unit::Evaluate(evaluation) => &evaluation.context,
        }
    }

    /// Every blob that a host needs for it: all before it can start, but for the shards of a hop's further legs.
    #[must_use]
    pub fn blobs(&self) -> Vec<BlobRef> {
        let mut blobs: Vec<BlobRef> = match self {
            Unit::Train(hop) => hop.base.blob().into_iter().chain(hop.shards()).collect(),
            Unit::Evaluate(evaluation) => {
                let shards = evaluation.shards.iter().map(|shard| shard.blob);
                std::iter::once(evaluation.checkpoint).chain(shards).collect()
            }
        };
        if let Scaling::Standard(blob) = self.context().scaling {
            blobs.push(blob);
        }
        blobs
    }
}

/// One attempt at a unit by one host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Lease {
    /// Its number, never used again.
    pub id: LeaseId,
    /// What to do.
    pub unit: Unit,
    /// On which of the host's devices.
    pub device: String,
    /// Contact the server about this lease before then (server time).
    pub renew_by: UnixMillis,
    /// How often to send a heartbeat while the lease is held.
    pub heartbeat_every: Millis,
    /// The exact size of the checkpoint to upload; 0 where none is.
    pub upload_bytes: u64,
}

/// How a result is to be merged, where it doesn't replace its trial's version (DESIGN section 7).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Merge {
    /// The rule.
    pub spec: MergeSpec,
    /// The trial's current version; the result's own base is its hop's.
    pub current: Base,
    /// The rule's state that was made with the current version; none where that came from hop order.
    pub state: Option<BlobRef>,
    /// Versions of the trial made since the result's base.
    pub staleness: u64,
    /// Units of the trial that were in flight at once, at least 1.
    pub in_flight: u32,
    /// Where the trial stands after the merge.
    pub position: Position,
    /// Whether what the rule has gathered is used now.
    pub flush: Flush,
    /// What its loss is looked at before, where the job asks for that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub canary: Option<Canary>,
}

/// Held-out rows on which the loss of a result must not explode.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Canary {
    /// The rows.
    pub shard: Shard,
    /// More than so many times the current version's loss is too much.
    pub most: f64,
}

impl Canary {
    /// The evaluation of a checkpoint of a hop's trial on these rows.
    #[must_use]
    pub fn evaluation(&self, hop: &Hop, version: Version, checkpoint: BlobRef) -> Evaluation {
        Evaluation {
            job: hop.job,
            // Version 0 says no trial.
            trial: if version == Version(0) { TrialId(0) } else { hop.trial },
            epoch: hop.start.epoch,
            version,
            checkpoint,
            shards: vec![self.shard],
            split: DataSplit::Valid,
            counting: Counting::default(),
            context: Arc::clone(&hop.context),
        }
    }
}

/// Whether a merge also uses what its rule has gathered and not used: at the end of an epoch, and of merging.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Flush {
    /// When the rule says so.
    #[default]
    ByRule,
    /// After this result.
    Now,
}

/// The training shard's id is an index into the manifest.
#[must_use]
pub fn shard_index(shard: ShardId) -> usize {
    usize::try_from(shard.0).unwrap_or(usize::MAX)
}

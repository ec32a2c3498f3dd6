//! The base checkpoint and the context of a unit: all that its training depends on beside its rows.

use crate::{
    column::Column,
    cross_validation::Fold,
    digest::BlobRef,
    ids::{LeaseId, TrialId, Version},
    manifest::{DataManifest, Scaling, Targets},
    spec::{JobSpec, TrialConfig},
};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The checkpoint that a unit starts from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Base {
    /// Version 0: made where it is needed, by `sojourn-model` from this seed.
    Initial {
        /// Seed of the initial weights.
        #[serde(with = "crate::decimal")]
        #[cfg_attr(feature = "openapi", schema(value_type = crate::decimal::Seed))]
        seed: u64,
    },
    /// Version 0 of a trial that starts from the weights of a model file (`init`): made where it is needed, by
    /// `sojourn-model`. It is a variant of its own, so that a client that doesn't know it can't ignore the
    /// parameters and train from others.
    #[serde(rename = "given")]
    InitialWeights {
        /// The trial's seed, for the checkpoint's lineage alone.
        #[serde(with = "crate::decimal")]
        #[cfg_attr(feature = "openapi", schema(value_type = crate::decimal::Seed))]
        seed: u64,
        /// The canonical file of the model's parameters and buffers.
        parameters: BlobRef,
    },
    /// A stored checkpoint.
    Checkpoint {
        /// The checkpoint's version.
        version: Version,
        /// The checkpoint's blob.
        blob: BlobRef,
    },
}

impl Base {
    /// Version 0 of a trial with this seed, from initial weights where the job names some.
    #[must_use]
    pub const fn first(seed: u64, initial_weights: Option<BlobRef>) -> Self {
        match initial_weights {
            Some(parameters) => Base::InitialWeights { seed, parameters },
            None => Base::Initial { seed },
        }
    }

    /// The version that this is.
    #[must_use]
    pub const fn version(&self) -> Version {
        match self {
            Base::Initial { .. } | Base::InitialWeights { .. } => Version(0),
            Base::Checkpoint { version, .. } => *version,
        }
    }

    /// The blob to fetch, if any.
    #[must_use]
    pub const fn blob(&self) -> Option<BlobRef> {
        match self {
            Base::Initial { .. } => None,
            Base::InitialWeights { parameters, .. } => Some(*parameters),
            Base::Checkpoint { blob, .. } => Some(*blob),
        }
    }
}

/// Where a trial goes on from that is a clone of another one of its job: the checkpoint with which that one ended an epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Origin {
    /// The other trial.
    pub trial: TrialId,
    /// Epochs that it had trained.
    pub epochs: u32,
    /// The version that the other trial had then.
    pub version: Version,
    /// The checkpoint of that version.
    pub checkpoint: BlobRef,
    /// Optimiser steps in so many epochs, by the clone's size of a batch.
    pub step: u64,
}

impl Origin {
    /// The clone's version 0.
    #[must_use]
    pub const fn base(&self) -> Base {
        Base::Checkpoint { version: Version(0), blob: self.checkpoint }
    }
}

/// The context that the units of one trial share.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct TrialContext {
    /// The configuration.
    pub config: TrialConfig,
    /// The columns, where the data has them by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<Column>,
    /// Shape of one row; empty where the data has columns by name.
    pub shape: Vec<u32>,
    /// Outputs of the model: classes, or 1.
    pub outputs: u32,
    /// How features are scaled.
    pub scaling: Scaling,
    /// How labels are taken in training. A client that doesn't know the field refuses the unit, and can't ignore it.
    #[serde(default, skip_serializing_if = "Targets::is_plain")]
    pub targets: Targets,
    /// Optimiser steps of the whole trial, for schedules.
    pub total_steps: u64,
    /// Threads to pin, where the job is reproducible; `None` lets the slot decide.
    pub pinned_threads: Option<u32>,
}

impl TrialContext {
    /// The context that all units of a trial of this configuration and fold share, in a job over this data.
    #[must_use]
    pub fn of(
        spec: &JobSpec,
        data: &DataManifest,
        config: TrialConfig,
        fold: Option<Fold>,
    ) -> Self {
        let training = config.training;
        Self {
            config,
            columns: data.columns.iter().map(Column::without_classes).collect(),
            shape: data.shape.clone(),
            outputs: data.labels.outputs(),
            scaling: data.scaling,
            targets: data.targets.clone(),
            total_steps: u64::from(training.epochs)
                * data.steps_per_epoch(fold, training.minibatches()),
            pinned_threads: spec.placement.reproducible.then_some(spec.placement.threads),
        }
    }

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

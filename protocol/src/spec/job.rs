//! A whole job, as its user means it.

use super::{DataSpec, Loss, ModelSpace, PlacementSpec, TrainingSpace, data::DEFAULT_DATA_SEED};
use crate::{digest::BlobRef, time::Millis};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// A job: data, models, training, search, placement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct JobSpec {
    /// For people; not unique.
    pub name: String,
    /// Everything random in the job follows from it, but where `data.seed` says otherwise how rows are dealt to shards.
    pub seed: u64,
    /// Where `seed` is a dimension of the search, its values: each configuration is trained once with each. The first is
    /// `seed` too, from which the shards and sampled configurations follow.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub seeds: Vec<u64>,
    /// Where the data is and how it is cut.
    pub data: DataSpec,
    /// One entry per `[[model]]` table, at least one.
    pub models: Vec<ModelSpace>,
    /// Initial weights of some of these tables' trials. The others start from random weights.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub init: Vec<Init>,
    /// How trials are trained.
    pub training: TrainingSpace,
    /// How the space is searched.
    pub search: SearchSpec,
    /// On which machines and in which order.
    pub placement: PlacementSpec,
}

impl JobSpec {
    /// The initial weights of a `[[model]]` table's trials, where it names a model file.
    #[must_use]
    pub fn initial_weights(&self, model: u32) -> Option<BlobRef> {
        self.init.iter().find(|init| init.model == model).map(|init| init.parameters)
    }

    /// Are its seeds possible: different ones, and the first the job's own?
    ///
    /// # Errors
    /// What is wrong.
    pub fn check_seeds(&self) -> Result<(), String> {
        if self.seeds.first().is_some_and(|first| *first != self.seed) {
            return Err("`seed` isn't the first of `seeds`".into());
        }
        let distinct: BTreeSet<u64> = self.seeds.iter().copied().collect();
        if distinct.len() == self.seeds.len() {
            Ok(())
        } else {
            Err("`seeds` has one twice".into())
        }
    }

    /// The seed by which rows are dealt to shards and splits.
    #[must_use]
    pub fn data_seed(&self) -> u64 {
        self.data.seed.unwrap_or(self.seed)
    }

    /// Writes that seed down for a job file that says none: the same for every seed of the job, so that jobs that differ in
    /// their seeds alone have the same shards. A seed that is the job's own is left out, as in jobs from before there was the
    /// key.
    pub fn name_data_seed(&mut self) {
        let seed = self.data.seed.unwrap_or(DEFAULT_DATA_SEED);
        self.data.seed = Some(seed).filter(|seed| *seed != self.seed);
    }

    /// Every blob that the job needs besides its data.
    pub fn blobs(&self) -> impl Iterator<Item = BlobRef> + '_ {
        self.init.iter().map(|init| init.parameters)
    }
}

/// `init` of a `[[model]]` table: its trials start from an exported model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Init {
    /// The table, counted from 0.
    pub model: u32,
    /// The model file, relative to the job file; for people.
    pub file: String,
    /// The canonical file of its parameters and buffers.
    pub parameters: BlobRef,
}

/// `[search]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct SearchSpec {
    /// The procedure.
    pub method: SearchMethod,
    /// The metric that trials are compared by.
    pub metric: Metric,
    /// Is more better?
    pub goal: Goal,
    /// k of top-k accuracy; `None` is [`DEFAULT_TOP_K`] where there are more classes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top_k: Option<u32>,
    /// A trial ends once its metric is as good as this after an epoch; the others go on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<f64>,
    /// The search ends when it has gone on for so long; what is trained by then is compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wall_time: Option<Millis>,
    /// Whose epochs come first where there are more trials than slots.
    #[serde(default, skip_serializing_if = "Spread::is_default")]
    pub spread: Spread,
}

/// `search.spread`: whose epochs come first where there are more trials than slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Spread {
    /// Trials that are behind: all can be compared early.
    #[default]
    Breadth,
    /// Trials that were begun: some have ended early.
    Depth,
}

impl Spread {
    /// Is it what a job file leaves out?
    #[must_use]
    pub const fn is_default(&self) -> bool {
        matches!(self, Self::Breadth)
    }
}

/// k of top-k accuracy where a job doesn't say: ImageNet's.
pub const DEFAULT_TOP_K: u32 = 5;

/// A search procedure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum SearchMethod {
    /// Every combination.
    Grid,
    /// This many random combinations, at least 1.
    Random {
        /// How many.
        trials: u32,
    },
}

/// A validation metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum Metric {
    /// Share of rows whose largest output is the label's; for classes only.
    #[serde(rename = "valid/accuracy")]
    Accuracy,
    /// Share of rows whose label is among the k largest outputs; for classes only.
    #[serde(rename = "valid/top-k")]
    TopK,
    /// Macro F1; for classes only.
    #[serde(rename = "valid/f1")]
    F1,
    /// Mean loss over rows.
    #[serde(rename = "valid/loss")]
    Loss,
    /// Root of the mean squared error; for numbers only.
    #[serde(rename = "valid/rmse")]
    Rmse,
}

impl Metric {
    /// All of them, in the order in which texts name them.
    pub const ALL: [Metric; 5] =
        [Metric::Accuracy, Metric::TopK, Metric::F1, Metric::Loss, Metric::Rmse];

    /// The name that job files and tables use.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Metric::Accuracy => "valid/accuracy",
            Metric::TopK => "valid/top-k",
            Metric::F1 => "valid/f1",
            Metric::Loss => "valid/loss",
            Metric::Rmse => "valid/rmse",
        }
    }

    /// The direction in which it gets better.
    #[must_use]
    pub const fn goal(self) -> Goal {
        match self {
            Metric::Accuracy | Metric::TopK | Metric::F1 => Goal::Max,
            Metric::Loss | Metric::Rmse => Goal::Min,
        }
    }

    /// Can it be computed for models that are trained with this loss?
    #[must_use]
    pub const fn suits(self, loss: Loss) -> bool {
        match (self, loss) {
            (Metric::Loss, _)
            | (Metric::Accuracy | Metric::TopK | Metric::F1, Loss::CrossEntropy)
            | (Metric::Rmse, Loss::Mse) => true,
            (Metric::Accuracy | Metric::TopK | Metric::F1, Loss::Mse)
            | (Metric::Rmse, Loss::CrossEntropy) => false,
        }
    }
}

/// The direction of the search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Goal {
    /// Less is better.
    Min,
    /// More is better.
    Max,
}

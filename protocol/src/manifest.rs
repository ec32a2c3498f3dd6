//! The manifest of a job's data: blobs, row counts, classes, scaling.
//!
//! A shard blob is a canonical `.safetensors` file with `x`, `F32` or `U8 [rows, features]`, unscaled, and
//! `y`, `I64 [rows]` (class index) or `F32 [rows]` (numeric label), rows in file order. `x` is `U8` where the file that
//! the rows come from holds bytes; models are the same as for equal numbers in `F32`. The scaling
//! blob holds `mean` and `std`, both `F32 [features]`; a row is trained on as `(x - mean) / std`. The scaling of
//! labels is two numbers of the manifest.
//!
//! Data that has columns by name is of another kind: a shard holds each [`Column`] under its name, `[rows, ...shape]`. Where
//! rows are sequences of different lengths, it is `[elements of all rows, ...shape]`, and `NAME.ends`, `I64 [rows]`, says
//! where each row ends. Nothing of it is scaled, and no column is the label.

use crate::column::Column;
use crate::digest::BlobRef;
use crate::quantity::SaturatingFrom as _;
use crate::spec::Categories;
use serde::{Deserialize, Serialize};

/// The most shards of validation or of test data: an evaluation reports sums of each, and its report has to
/// fit into a request.
pub const MAX_EVALUATION_SHARDS: u32 = 4096;

/// A shard: its blob and how many rows it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Shard {
    /// The data.
    pub blob: BlobRef,
    /// Rows, at least 1.
    pub rows: u32,
}

/// The kind of labels.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Labels {
    /// Class names in index order: numerically where all are whole numbers, else by bytes.
    Classes(Vec<String>),
    /// One number.
    Number,
    /// There are none: the data has columns by name.
    None,
}

impl Labels {
    /// Outputs of a model for these labels; 1 where there are none.
    #[must_use]
    pub fn outputs(&self) -> u32 {
        match self {
            Labels::Classes(names) => u32::saturating_from(names.len()),
            Labels::Number | Labels::None => 1,
        }
    }
}

/// How a trainer scales features.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Scaling {
    /// Not at all.
    None,
    /// Times a constant.
    Constant(f64),
    /// By a scaling blob (see the module's text).
    Standard(BlobRef),
}

/// How a trainer takes labels.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Targets {
    /// As they are.
    #[default]
    Plain,
    /// Numbers, scaled. Predictions and losses are in the labels' units nevertheless.
    Standard(LabelScaling),
    /// Classes, each with a weight above 0, in index order. The loss of a batch that is minimised, and reported of
    /// training, is the sum of its rows' losses, each times its class's weight, over the sum of their weights.
    /// Evaluations count all rows alike.
    Weighted(Vec<f64>),
}

/// A model is trained on `(y - mean) / std`; its prediction is its output times `std`, plus `mean`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct LabelScaling {
    /// Mean of the training rows' labels.
    pub mean: f64,
    /// Standard deviation of the training rows' labels, above 0; 1 where all labels are equal.
    pub std: f64,
}

impl LabelScaling {
    /// Can numbers be scaled by it?
    ///
    /// # Errors
    /// What is wrong.
    pub fn check(&self) -> Result<(), String> {
        let Self { mean, std } = self;
        if mean.is_finite() && std.is_finite() && *std > 0.0 {
            return Ok(());
        }
        Err(format!("labels can't be scaled by mean {mean} and deviation {std}"))
    }
}

impl Targets {
    /// Is it what is left out of JSON?
    #[must_use]
    pub const fn is_plain(&self) -> bool {
        matches!(self, Targets::Plain)
    }

    /// The scaling of labels that are numbers, where they are scaled.
    #[must_use]
    pub const fn scaling(&self) -> Option<LabelScaling> {
        match self {
            Targets::Plain | Targets::Weighted(_) => None,
            Targets::Standard(scaling) => Some(*scaling),
        }
    }

    /// Can these labels be taken so?
    ///
    /// # Errors
    /// What is wrong.
    pub fn check(&self, labels: &Labels) -> Result<(), String> {
        match (self, labels) {
            (Targets::Plain, _) => Ok(()),
            (Targets::Standard(scaling), Labels::Number) => scaling.check(),
            (Targets::Standard(_), Labels::Classes(_)) => {
                Err("labels that are classes can't be scaled".into())
            }
            (Targets::Weighted(_), Labels::Number) => {
                Err("labels that are numbers have no class weights".into())
            }
            (_, Labels::None) => Err("columns by name are neither scaled nor weighted".into()),
            (Targets::Weighted(weights), Labels::Classes(names)) => {
                let (classes, count) = (names.len(), weights.len());
                if classes != count {
                    return Err(format!("{count} class weights for {classes} classes"));
                }
                match weights.iter().find(|weight| !(weight.is_finite() && **weight > 0.0)) {
                    Some(weight) => Err(format!("a class can't have the weight {weight}")),
                    None => Ok(()),
                }
            }
        }
    }
}

/// Rows that models are evaluated on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum DataSplit {
    /// The search compares trials on these.
    #[default]
    Valid,
    /// The search never sees these.
    Test,
}

impl DataSplit {
    /// How texts call it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            DataSplit::Valid => "validation",
            DataSplit::Test => "test",
        }
    }
}

/// A job's data, as ingest left it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct DataManifest {
    /// The columns, where they are by name; none where rows are numbers with a label.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<Column>,
    /// Shape of one row; its product is the number of features. Empty where there are columns by name.
    pub shape: Vec<u32>,
    /// Names of the feature columns in order; none where the data is arrays, whose values have no
    /// names.
    pub features: Vec<String>,
    /// The kind of labels.
    pub labels: Labels,
    /// Columns of words, and the features that they became.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub categories: Vec<Categories>,
    /// For each feature, what a missing value was taken as: the mean of the training rows; none where they weren't.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fill: Vec<f32>,
    /// How features are scaled.
    pub scaling: Scaling,
    /// How labels are taken in training.
    #[serde(default, skip_serializing_if = "Targets::is_plain")]
    pub targets: Targets,
    /// Training shards; a [`crate::ids::ShardId`] is an index here.
    pub train: Vec<Shard>,
    /// Validation shards, at least one; none where each fold of the training shards is validated on in turn.
    pub valid: Vec<Shard>,
    /// Test shards, kept apart; may be empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub test: Vec<Shard>,
}

impl DataManifest {
    /// Every blob that the job needs, the scaling blob included.
    pub fn blobs(&self) -> impl Iterator<Item = BlobRef> + '_ {
        let scaling = match self.scaling {
            Scaling::Standard(blob) => Some(blob),
            Scaling::None | Scaling::Constant(_) => None,
        };
        let shards = self.train.iter().chain(&self.valid).chain(&self.test);
        shards.map(|shard| shard.blob).chain(scaling)
    }

    /// The shards of a split.
    #[must_use]
    pub fn split(&self, split: DataSplit) -> &[Shard] {
        match split {
            DataSplit::Valid => &self.valid,
            DataSplit::Test => &self.test,
        }
    }

    /// Rows in all training shards.
    #[must_use]
    pub fn train_rows(&self) -> u64 {
        self.train.iter().map(|shard| u64::from(shard.rows)).sum()
    }
}

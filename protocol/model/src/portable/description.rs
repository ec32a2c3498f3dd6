//! The description in a model file.

use super::{FORMAT, error::ModelFileError};
use crate::checkpoint::CheckpointLayout;
use serde::{Deserialize, Serialize};
use sojourn_protocol::{
    column::{Column, check_columns},
    digest::Digest,
    ids::{Epoch, JobId, TrialId},
    manifest::{LabelScaling, Labels, Scaling, Targets},
    quantity::to_usize,
    spec::{
        Architecture, Categories, Channels, Dialect, Loss, Missing, Optimizer, OptimizerName,
        Precision, TrainingConfig, TrialConfig,
    },
    unit::TrialContext,
};
use std::collections::BTreeSet;

/// All that is needed to use the tensors, and where they come from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Description {
    /// [`FORMAT`].
    pub format: u32,
    /// The architecture and its sizes.
    pub architecture: Architecture,
    /// The columns, where the data had them by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<Column>,
    /// Shape of one row; empty where the data had columns by name.
    pub shape: Vec<u32>,
    /// Outputs of the model: classes, or 1.
    pub outputs: u32,
    /// The kind of labels: the classes' names in the order of the outputs, or numbers.
    pub labels: Labels,
    /// Name of the label column, or of the array of labels; none where the data had columns by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Name of the array of rows, where the data was arrays of other names than usual.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub array: Option<String>,
    /// Where the channels of an image were in a row of an array.
    #[serde(default, skip_serializing_if = "is_first")]
    pub channels: Channels,
    /// Names of the feature columns, in the order of a row; none where the values have no names.
    pub features: Vec<String>,
    /// Columns of words, and the features that they are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub categories: Vec<Categories>,
    /// The substitute for a missing value of a table; it is written where it is 0 or the mean.
    #[serde(default, skip_serializing_if = "Missing::is_refuse")]
    pub missing: Missing,
    /// For each feature, the mean that is put there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fill: Vec<f32>,
    /// How the fields of tables were written; rows to predict are read so too.
    #[serde(default, skip_serializing_if = "Dialect::is_default")]
    pub dialect: Dialect,
    /// How features are scaled before they go in.
    pub scaling: FileScaling,
    /// How labels were scaled: a prediction is the output times `std`, plus `mean`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label_scaling: Option<LabelScaling>,
    /// The loss that was minimised.
    pub loss: Loss,
    /// The precision that it was evaluated in.
    #[serde(default, skip_serializing_if = "is_single")]
    pub precision: Precision,
    /// Where the model comes from.
    pub origin: Origin,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_first(channels: &Channels) -> bool {
    *channels == Channels::First
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_single(precision: &Precision) -> bool {
    *precision == Precision::F32
}

/// How features are scaled.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileScaling {
    /// Not at all.
    None,
    /// Times a constant.
    Constant(f64),
    /// `(x - mean) / std`, by the file's `scaling.mean` and `scaling.std`; a feature whose `std` is 0
    /// becomes 0.
    Standard,
}

/// The trial that a model comes from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Origin {
    /// The job.
    pub job: JobId,
    /// The job's name.
    pub name: String,
    /// The trial.
    pub trial: TrialId,
    /// The epoch that the checkpoint ended (from 0), where it was evaluated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epoch: Option<Epoch>,
    /// Optimiser steps that it took.
    pub steps: u64,
    /// The metric that trials of the job were compared by.
    pub metric: String,
    /// The value that it reached there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
    /// The checkpoint.
    pub checkpoint: Digest,
}

impl Description {
    pub(super) fn parse(text: &str) -> Result<Self, ModelFileError> {
        #[derive(Deserialize)]
        struct Format {
            format: u64,
        }
        let unreadable = |error: serde_json::Error| ModelFileError::Description(error.to_string());
        let Format { format } = serde_json::from_str(text).map_err(unreadable)?;
        if format != u64::from(FORMAT) {
            return Err(ModelFileError::Format { found: format });
        }
        let description: Self = serde_json::from_str(text).map_err(unreadable)?;
        description.check()?;
        Ok(description)
    }

    /// Does it agree with itself? What its tensors must be is checked against them.
    fn check(&self) -> Result<(), ModelFileError> {
        let refuse = |text: String| Err(ModelFileError::Contradiction(text));
        let features = self.features.len();
        if self.values() == u64::MAX || features > 0 && u64::try_from(features) != Ok(self.values())
        {
            return refuse(format!("{features} features in rows of shape {:?}", self.shape));
        }
        let classes: &[String] = match &self.labels {
            Labels::Classes(names) => names,
            Labels::Number | Labels::None => &[],
        };
        for (what, names) in [("feature", self.features.as_slice()), ("class", classes)] {
            let mut seen = BTreeSet::new();
            if let Some(name) = names.iter().find(|name| !seen.insert(name.as_str())) {
                return refuse(format!("{what} `{name}` is there twice"));
            }
        }
        self.check_table().map_err(ModelFileError::Contradiction)?;
        check_columns(&self.columns).map_err(ModelFileError::Contradiction)?;
        if (self.labels == Labels::None) == self.columns.is_empty() {
            return refuse("columns by name and labels".into());
        }
        if self.labels.outputs() != self.outputs {
            let labels = self.labels.outputs();
            return refuse(format!("{} outputs for {labels} labels", self.outputs));
        }
        match (&self.labels, self.loss) {
            (Labels::Classes(_), Loss::CrossEntropy)
            | (Labels::Number, Loss::Mse)
            | (Labels::None, Loss::Own) => {}
            (Labels::Classes(_), Loss::Mse) => return refuse("classes and `mse`".into()),
            (Labels::None, _) | (_, Loss::Own) => {
                return refuse("columns by name and a loss for labels".into());
            }
            (Labels::Number, Loss::CrossEntropy) => {
                return refuse("numbers and `cross-entropy`".into());
            }
        }
        self.targets().check(&self.labels).map_err(ModelFileError::Contradiction)?;
        match self.scaling {
            FileScaling::Constant(factor) if !factor.is_finite() || factor == 0.0 => {
                refuse(format!("features times {factor}"))
            }
            _ => Ok(()),
        }
    }

    /// Do its columns of words and its means fit its features?
    fn check_table(&self) -> Result<(), String> {
        let features = self.features.len();
        let mut next = 0;
        for coded in &self.categories {
            let column = &coded.column;
            let names = coded.features();
            let first = to_usize(coded.first);
            let of = first.checked_add(names.len()).and_then(|end| self.features.get(first..end));
            let words: BTreeSet<&String> = coded.words.iter().collect();
            if coded.words.is_empty() || words.len() != coded.words.len() {
                return Err(format!("column `{column}` has no words, or one twice"));
            }
            if first < next || of != Some(names.as_slice()) {
                return Err(format!("the features of column `{column}` aren't those of its words"));
            }
            next = first.saturating_add(names.len());
        }
        for (column, dates) in &self.dialect.dates {
            let names = dates.features(column, false);
            let first =
                names.first().and_then(|first| self.features.iter().position(|f| f == first));
            let of = first.and_then(|first| self.features.get(first..));
            if !of.is_some_and(|of| of.starts_with(&names)) {
                return Err(format!("the features of column `{column}` aren't those of its dates"));
            }
        }
        let means = if self.missing == Missing::Mean { features } else { 0 };
        if self.fill.len() != means || !self.fill.iter().all(|mean| mean.is_finite()) {
            return Err(format!("{} means of {features} features", self.fill.len()));
        }
        Ok(())
    }

    /// Numbers in a row; `u64::MAX` where they are too many to count.
    #[must_use]
    pub fn values(&self) -> u64 {
        self.shape.iter().fold(1, |all: u64, side| all.saturating_mul(u64::from(*side)))
    }

    /// A context in which the model can be run: its own architecture and data, with an optimiser that
    /// keeps no state.
    #[must_use]
    pub fn context(&self, scaling: Scaling) -> TrialContext {
        let optimizer = Optimizer::new(OptimizerName::Sgd, 1.0);
        let mut training = TrainingConfig::new(1, 1, self.loss, optimizer);
        training.precision = self.precision;
        TrialContext {
            config: TrialConfig { model: self.architecture.clone(), training },
            columns: self.columns.clone(),
            shape: self.shape.clone(),
            outputs: self.outputs,
            scaling,
            targets: self.targets(),
            total_steps: 1,
            pinned_threads: None,
        }
    }

    fn targets(&self) -> Targets {
        self.label_scaling.map_or(Targets::Plain, Targets::Standard)
    }

    pub(super) fn layout(&self) -> Result<CheckpointLayout, ModelFileError> {
        Ok(CheckpointLayout::of(&self.context(Scaling::None))?)
    }
}

//! Users' own models as graphs: plain data that `submit` makes of their code (docs/internals/graphs.md).

use super::{MAX_SUM_NAME, dimension::Value};
use crate::{column::Column, digest::BlobRef, dtype::Dtype, sum_array::check_array_shapes};
use serde::{Deserialize, Serialize};
use std::{cmp::Ordering, collections::BTreeMap, fmt, sync::Arc};

/// The key of a user's own model that is its trial's window, where text is cut into windows.
pub const WINDOW: &str = "window";
/// The column of a batch that has rows of numbers, where columns have no names.
const X: &str = "x";
/// The column that has their labels.
const Y: &str = "y";

/// A user's model under certain values of its own keys.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Graph {
    /// Where its code is, for people: `model.py:Cnn`.
    pub entry: String,
    /// The values of the model's own keys.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub values: BTreeMap<String, Setting>,
    /// The exported graph; left out before it is exported, when nothing can be trained.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exported: Option<ExportedGraph>,
}

/// An exported graph: its file, and as much of it as is needed to plan its units and to check its checkpoints.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ExportedGraph {
    /// The graph's file.
    pub file: BlobRef,
    /// The parameters and buffers, in the file's order. Left out where only the file's name is wanted.
    #[serde(default, skip_serializing_if = "no_tensors")]
    pub tensors: Arc<Vec<GraphTensor>>,
    /// The columns of a batch that it reads, by name. Left out with the tensors.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub columns: BTreeMap<String, GraphColumn>,
    /// Floating-point operations of one row's forward pass; of text, of one stored row's, which may be several windows.
    #[serde(default)]
    pub flops_per_row: u64,
    /// Numbers of the widest value that one row has in it.
    #[serde(default)]
    pub widest: u64,
    /// The names of the sums that its evaluation gives, `loss` among them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sums: Vec<String>,
    /// The shapes of those sums that are arrays, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub arrays: BTreeMap<String, Vec<u64>>,
}

impl ExportedGraph {
    /// A graph of which only its file is known.
    #[must_use]
    pub fn of_file(file: BlobRef) -> Self {
        Self {
            file,
            tensors: Arc::default(),
            columns: BTreeMap::new(),
            flops_per_row: 0,
            widest: 0,
            sums: Vec::new(),
            arrays: BTreeMap::new(),
        }
    }

    /// The graph with its file, which says all the rest, and its costs alone.
    #[must_use]
    pub fn name_only(&self) -> Self {
        let Self { file, flops_per_row, widest, .. } = *self;
        Self { flops_per_row, widest, ..Self::of_file(file) }
    }

    /// Can its sums be arrays of these shapes?
    ///
    /// # Errors
    /// What can't be.
    pub fn check_arrays(&self) -> Result<(), String> {
        let is_sum = |name: &str| self.sums.iter().any(|sum| sum == name);
        check_array_shapes(&self.arrays, is_sum).map_err(|(name, fault)| {
            let name: String = name.chars().take(MAX_SUM_NAME).collect();
            format!("the sum `{name}` {fault}")
        })
    }

    /// Are there tensors whose first numbers are in the file?
    #[must_use]
    pub fn has_given_tensors(&self) -> bool {
        self.tensors.iter().any(|tensor| tensor.start == Some(Start::Given))
    }
}

impl Graph {
    /// The window of its rows, where text is cut into windows.
    #[must_use]
    pub fn window(&self) -> Option<u32> {
        match self.values.get(WINDOW) {
            Some(Setting::Whole(window)) => u32::try_from(*window).ok(),
            _ => None,
        }
    }
}

fn no_tensors(tensors: &Arc<Vec<GraphTensor>>) -> bool {
    tensors.is_empty()
}

/// A tensor of a graph.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct GraphTensor {
    /// The tensor's name, as PyTorch gives it: `net.0.weight`.
    pub name: String,
    /// The type of its elements.
    pub dtype: Dtype,
    /// The tensor's shape; empty for a single number.
    pub shape: Vec<u64>,
    /// The tensor's role.
    pub role: GraphRole,
    /// The tensor's values before training; a constant has none but its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<Start>,
}

/// A column of a batch that a graph reads.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct GraphColumn {
    /// The type of its elements.
    pub dtype: Dtype,
    /// The shape of one row; empty for a single number.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shape: Vec<u64>,
}

impl GraphColumn {
    /// Has data with these columns by name one that is called `name` and can be read as this? Without columns by name, data is
    /// rows of `shape` as `x`, and their labels as `y`.
    ///
    /// # Errors
    /// What the data has instead.
    pub fn check(&self, name: &str, columns: &[Column], shape: &[u32]) -> Result<(), String> {
        let Self { dtype, shape: taken } = self;
        self.find(name, columns, shape).map_err(|found| {
            format!(
                "the graph takes `{name}`, {} with rows of shape {taken:?}, {found}",
                dtype.name()
            )
        })
    }

    fn find(&self, name: &str, columns: &[Column], shape: &[u32]) -> Result<(), String> {
        let Self { dtype, shape: taken } = self;
        if columns.is_empty() {
            let numbers = |all: u64, side: u64| all.saturating_mul(side);
            let is_same = shape.iter().map(|side| u64::from(*side)).fold(1, numbers)
                == taken.iter().copied().fold(1, numbers);
            return match (name, dtype) {
                (X, Dtype::F32) if is_same => Ok(()),
                (Y, Dtype::I64 | Dtype::F32) if taken.is_empty() => Ok(()),
                (X, _) => Err(format!("and rows of the data are F32 of shape {shape:?}")),
                _ => Err("and rows of the data are numbers with a label".into()),
            };
        }
        let lacks = || {
            let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
            format!("and the data has no such column; it has {}", names.join(", "))
        };
        if columns.iter().any(|column| column.length_name().as_deref() == Some(name)) {
            return match (dtype, taken.as_slice()) {
                (Dtype::I64, []) => Ok(()),
                _ => Err("and lengths are I64 with rows of shape []".into()),
            };
        }
        let column = columns.iter().find(|column| column.name == name).ok_or_else(lacks)?;
        let window = taken.first().and_then(|tokens| u32::try_from(tokens.checked_sub(1)?).ok());
        let window = window.filter(|_| column.windows);
        window.map_or(Ok(1), |window| {
            column.windows_of_row(window).map_err(|why| format!("and {why}"))
        })?;
        let there = column.batch_shape(window);
        match there.iter().copied().map(u64::from).eq(taken.iter().copied()) {
            true if column.dtype == *dtype => Ok(()),
            _ => Err(format!(
                "and that of the data is {} with rows of shape {there:?}",
                column.dtype.name()
            )),
        }
    }
}

/// The role of a graph's tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum GraphRole {
    /// Trained, in single precision.
    Parameter,
    /// Kept with the parameters and moved by the graph itself.
    Buffer,
    /// Never changes, and is no part of checkpoints.
    Constant,
}

/// The values of a tensor before training.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Start {
    /// All zeros.
    Zeros,
    /// All ones.
    Ones,
    /// One number.
    Constant(Real),
    /// Numbers uniform in `±1/sqrt(n)`, for `n` inputs that flow into one output of the tensor's layer.
    FanIn(u64),
    /// Numbers uniform between these two.
    Uniform([Real; 2]),
    /// Normal numbers of this mean and standard deviation.
    Normal([Real; 2]),
    /// The values in the graph's file.
    Given,
}

/// How the tensors of a user's model begin.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum InitialWeights {
    /// Each by the recipe that its code shows, with numbers that follow from the trial's seed; by those of the graph's file
    /// where there is none.
    #[default]
    Recipes,
    /// All by those of the graph's file, which are the same in every trial.
    Given,
}

/// A finite number with a total order, so that what holds it can be a key.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(transparent)]
pub struct Real(pub f64);

impl Ord for Real {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl PartialOrd for Real {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Real {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Real {}

/// The value of one of a model's own keys.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(untagged)]
#[cfg_attr(feature = "openapi", schema(no_recursion))]
pub enum Setting {
    /// Yes or no.
    Switch(bool),
    /// A whole number.
    Whole(i64),
    /// A number.
    Real(Real),
    /// A text.
    Text(String),
    /// Several values.
    List(Vec<Setting>),
}

impl Setting {
    /// The number, where it is one; the nearest to a whole one that is very large.
    #[must_use]
    pub fn number(&self) -> Option<f64> {
        match self {
            #[expect(clippy::cast_precision_loss, reason = "the nearest number")]
            Setting::Whole(whole) => Some(*whole as f64),
            Setting::Real(Real(real)) => Some(*real),
            Setting::Switch(_) | Setting::Text(_) | Setting::List(_) => None,
        }
    }
}

impl Value for Setting {
    fn from_number(number: f64) -> Option<Self> {
        number.is_finite().then_some(Setting::Real(Real(number)))
    }

    fn from_whole(number: f64) -> Option<Self> {
        #[expect(clippy::cast_possible_truncation, reason = "checked to be far below 2^53")]
        (number.abs() < 9e15).then(|| Setting::Whole(number.round() as i64))
    }

    /// Whole numbers are such ones: code that takes a number of units takes no 16.0.
    fn from_formula(number: f64) -> Result<Self, &'static str> {
        let whole = if number.fract() == 0.0 { Self::from_whole(number) } else { None };
        whole.or_else(|| Self::from_number(number)).ok_or("a finite number")
    }
}

impl fmt::Display for Setting {
    /// As a job file has it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Setting::Switch(value) => write!(f, "{value}"),
            Setting::Whole(value) => write!(f, "{value}"),
            Setting::Real(Real(value)) => write!(f, "{value}"),
            Setting::Text(value) => write!(f, "{value}"),
            Setting::List(values) => {
                f.write_str("[")?;
                for (n, value) in values.iter().enumerate() {
                    let comma = if n == 0 { "" } else { ", " };
                    write!(f, "{comma}{value}")?;
                }
                f.write_str("]")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read_as_they_are_written() {
        for text in ["true", "3", "-1", "0.5", "1e-6", "\"gelu\"", "[16,32]", "[[1,2.5],\"a\"]"] {
            let setting: Setting = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&setting).unwrap(), text);
        }
        assert_eq!(serde_json::from_str::<Setting>("2.0").unwrap(), Setting::Real(Real(2.0)));
    }

    #[test]
    fn starts_have_the_words_of_the_format() {
        let of = |start: Start| serde_json::to_string(&start).unwrap();
        assert_eq!(of(Start::Zeros), "\"zeros\"");
        assert_eq!(of(Start::Given), "\"given\"");
        assert_eq!(of(Start::FanIn(27)), r#"{"fan_in":27}"#);
        assert_eq!(of(Start::Normal([Real(0.0), Real(0.02)])), r#"{"normal":[0.0,0.02]}"#);
    }
}

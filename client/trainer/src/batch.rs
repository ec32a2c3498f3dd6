//! The rows that go through a model at once, column by column.

use crate::error::TrainError;
use std::rc::Rc;
use tch::Tensor;

/// The column of a row's numbers, where rows are numbers with a label.
pub(crate) const X: &str = "x";
/// The column of labels.
pub(crate) const Y: &str = "y";

/// Some rows of a shard.
///
/// Where rows are numbers with a label, it has `x`, `[rows, features]` in single precision and scaled, and `y`, `[rows]`.
/// Otherwise it has the columns of the data by name, each `[rows, ...]`.
#[derive(Debug)]
pub(crate) struct Batch {
    names: Rc<[String]>,
    columns: Vec<Tensor>,
    rows: i64,
}

impl Batch {
    /// Columns of so many rows, in the order of their names.
    pub(crate) fn new(names: Rc<[String]>, columns: Vec<Tensor>, rows: i64) -> Self {
        Self { names, columns, rows }
    }

    /// How many rows there are.
    pub(crate) const fn rows(&self) -> i64 {
        self.rows
    }

    /// A column by its name.
    pub(crate) fn column(&self, name: &str) -> Option<&Tensor> {
        let at = self.names.iter().position(|column| column == name)?;
        self.columns.get(at)
    }

    /// The rows' numbers, where rows are such.
    pub(crate) fn x(&self) -> Result<&Tensor, TrainError> {
        self.column(X).ok_or_else(|| lacks(X))
    }

    /// The labels, where there are such.
    pub(crate) fn y(&self) -> Result<&Tensor, TrainError> {
        self.column(Y).ok_or_else(|| lacks(Y))
    }

    /// `count` of its rows from `start` on, without a copy.
    pub(crate) fn narrow(&self, start: i64, count: i64) -> Result<Self, TrainError> {
        let part = |column: &Tensor| Ok(column.f_narrow(0, start, count)?);
        let columns = self.columns.iter().map(part).collect::<Result<_, TrainError>>()?;
        Ok(Self { names: Rc::clone(&self.names), columns, rows: count })
    }

    /// The same rows with another column of that name.
    pub(crate) fn with(mut self, name: &str, column: Tensor) -> Self {
        let held = self.names.iter().position(|held| held == name);
        if let Some(held) = held.and_then(|at| self.columns.get_mut(at)) {
            *held = column;
        }
        self
    }
}

fn lacks(name: &str) -> TrainError {
    TrainError::Unit(format!("the data has columns by name, and none of them is `{name}`"))
}

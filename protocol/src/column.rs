//! Columns of data that has them by name, for users' own models.

use crate::{dtype::Dtype, quantity::to_u64};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The most columns that a batch has, the lengths of sequences among them.
pub const MAX_COLUMNS: usize = 64;
/// The longest name of a column, in bytes.
pub const MAX_COLUMN_NAME: usize = 64;
/// The most numbers that one row has in a column of a batch.
pub const MAX_ROW_ELEMENTS: u64 = 64 << 20;
/// The end of the name of the column that has the lengths of a column of sequences.
const LENGTH: &str = "_length";
/// Names that a batch and the description of data have beside columns.
const TAKEN: [&str; 2] = ["classes", "rows"];

/// A column of a data set: what each row has under one name. Shards hold it as it is: nothing is scaled or converted.
///
/// In a batch it is a tensor `[rows, ...shape]`. Where rows are sequences of different lengths, it is
/// `[rows, longest, ...shape]`, and ends in zeros.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Column {
    /// The column's name, as Python has it: `batch.image`.
    pub name: String,
    /// The type of its numbers.
    pub dtype: Dtype,
    /// Shape of one row; of a sequence, of one of its elements. Empty for a number.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shape: Vec<u32>,
    /// Elements of the longest row, where rows are sequences of different lengths.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longest: Option<u32>,
    /// One more than the largest number, where all are whole and at least 0: the size of a vocabulary, or how many classes there
    /// are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub values: Option<u64>,
    /// The names of the classes that the column's numbers stand for, where the data says them: as many as there are values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<String>,
    /// Is a row a window of a longer text, with one token more? A trial with a shorter window sees several rows in it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub windows: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_false(value: &bool) -> bool {
    !*value
}

impl Column {
    /// Shape of a row in a batch. `window` is the trial's, where rows are cut by it.
    #[must_use]
    pub fn batch_shape(&self, window: Option<u32>) -> Vec<u32> {
        match window.filter(|_| self.windows) {
            Some(window) => vec![window.saturating_add(1)],
            None => self.longest.into_iter().chain(self.shape.iter().copied()).collect(),
        }
    }

    /// Bytes of a stored row; of a sequence, of one of its elements. Not 0 where the column is one that data can have.
    #[must_use]
    pub fn element_bytes(&self) -> u64 {
        let elements = self.shape.iter().fold(1u64, |all, side| all.saturating_mul((*side).into()));
        elements.saturating_mul(self.dtype.bytes())
    }

    /// The column as its numbers are computed with, which takes no names of classes.
    #[must_use]
    pub fn without_classes(&self) -> Self {
        let Self { ref name, dtype, ref shape, longest, values, windows, classes: _ } = *self;
        Self {
            name: name.clone(),
            dtype,
            shape: shape.clone(),
            longest,
            values,
            windows,
            classes: Vec::new(),
        }
    }

    /// The name of the column of its rows' lengths, where these differ.
    #[must_use]
    pub fn length_name(&self) -> Option<String> {
        self.longest.map(|_| format!("{}{LENGTH}", self.name))
    }

    /// Rows of a trial with this window in one row that is stored; 1 without windows.
    ///
    /// # Errors
    /// The windows of a stored row can't be cut so.
    pub fn windows_of_row(&self, window: u32) -> Result<u32, String> {
        let stored = match self.shape.as_slice() {
            [tokens] if self.windows && *tokens > 1 => tokens - 1,
            _ => return Ok(1),
        };
        match stored.checked_div(window) {
            Some(windows) if windows > 0 && stored % window == 0 => Ok(windows),
            _ => Err(format!("windows of {window} can't be cut of windows of {stored}")),
        }
    }

    fn check(&self) -> Result<(), String> {
        check_name(&self.name)?;
        if matches!(self.dtype, Dtype::U32 | Dtype::U64) {
            let name = self.dtype.name();
            return Err(format!("can't be of type {name}, which PyTorch hardly computes with"));
        }
        let sides = self.batch_shape(None);
        let elements = sides.iter().try_fold(1u64, |all, side| all.checked_mul((*side).into()));
        if elements.is_none_or(|elements| elements == 0 || elements > MAX_ROW_ELEMENTS) {
            return Err(format!(
                "has rows of shape {sides:?}; 1 to {MAX_ROW_ELEMENTS} numbers fit"
            ));
        }
        if !self.classes.is_empty() && self.values != Some(to_u64(self.classes.len())) {
            let (classes, values) = (self.classes.len(), self.values.unwrap_or_default());
            return Err(format!("has names for {classes} classes and {values} values"));
        }
        if self.windows && (self.longest.is_some() || self.shape.len() != 1) {
            return Err("has windows that are no rows of tokens".into());
        }
        Ok(())
    }
}

/// Can a column have this name?
///
/// # Errors
/// What is wrong, to be said behind the name.
pub fn check_name(name: &str) -> Result<(), String> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let starts = name.chars().next().is_some_and(|c| c.is_ascii_alphabetic());
    if !starts || !name.chars().all(is_word) || name.len() > MAX_COLUMN_NAME {
        return Err(format!(
            "can't be a name in Python: letters, digits and `_`, a letter first, at most {MAX_COLUMN_NAME}"
        ));
    }
    if TAKEN.contains(&name) {
        return Err("is what a batch has besides columns; choose another name".into());
    }
    Ok(())
}

/// Can a data set have these columns?
///
/// # Errors
/// What is wrong, with the column's name.
pub fn check_columns(columns: &[Column]) -> Result<(), String> {
    let mut names = BTreeSet::new();
    for column in columns {
        let name = &column.name;
        column.check().map_err(|fault| format!("column `{name}` {fault}"))?;
        for name in [Some(name.clone()), column.length_name()].into_iter().flatten() {
            if !names.insert(name.clone()) {
                return Err(format!("column `{name}` is there twice"));
            }
        }
    }
    if names.len() > MAX_COLUMNS {
        let found = names.len();
        return Err(format!("there are {found} columns in a batch; at most {MAX_COLUMNS} fit"));
    }
    match columns.iter().filter(|column| column.windows).count() {
        0 => Ok(()),
        _ if columns.len() == 1 => Ok(()),
        _ => Err("a column of windows has others beside it".into()),
    }
}

/// Bytes of a row in a shard, for sequences those of the longest.
#[must_use]
pub fn row_bytes(columns: &[Column]) -> u64 {
    let bytes = |column: &Column| {
        let sides = column.batch_shape(None);
        let elements = sides.iter().fold(1u64, |all, side| all.saturating_mul((*side).into()));
        let ends = column.longest.map_or(0, |_| Dtype::I64.bytes());
        elements.saturating_mul(column.dtype.bytes()).saturating_add(ends)
    };
    columns.iter().map(bytes).fold(0, u64::saturating_add).max(to_u64(columns.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(name: &str, shape: &[u32]) -> Column {
        Column {
            name: name.into(),
            dtype: Dtype::I64,
            shape: shape.to_vec(),
            longest: None,
            values: None,
            classes: Vec::new(),
            windows: false,
        }
    }

    #[test]
    fn names_are_those_that_python_can_write_behind_a_point() {
        for good in ["x", "image_2", "Caption", "tokens"] {
            assert_eq!(check_name(good), Ok(()), "{good}");
        }
        for bad in ["", "_x", "2d", "a.b", "a b", "rows", "classes", "ä", &"x".repeat(65)] {
            assert!(check_name(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn lengths_of_sequences_are_columns_too() {
        let caption = Column { longest: Some(40), ..column("caption", &[]) };
        assert_eq!(caption.batch_shape(None), [40]);
        let columns = [caption, column("caption_length", &[])];
        assert_eq!(check_columns(&columns[..1]), Ok(()));
        let fault = check_columns(&columns).unwrap_err();
        assert_eq!(fault, "column `caption_length` is there twice");
        assert_eq!(row_bytes(&columns), 40 * 8 + 8 + 8);
    }

    #[test]
    fn each_value_has_its_class() {
        let names = ["ham", "spam"].map(str::to_owned).to_vec();
        let label = Column { values: Some(2), classes: names, ..column("label", &[]) };
        assert_eq!(check_columns(std::slice::from_ref(&label)), Ok(()));
        assert!(label.without_classes().classes.is_empty());
        for values in [None, Some(3)] {
            let fault = check_columns(&[Column { values, ..label.clone() }]).unwrap_err();
            assert!(fault.starts_with("column `label` has names for 2 classes"), "{fault}");
        }
    }

    #[test]
    fn windows_are_cut_where_they_divide_what_is_stored() {
        let tokens = Column { windows: true, ..column("tokens", &[129]) };
        assert_eq!(check_columns(std::slice::from_ref(&tokens)), Ok(()));
        assert_eq!(tokens.batch_shape(Some(64)), [65]);
        assert_eq!(tokens.windows_of_row(128), Ok(1));
        assert_eq!(tokens.windows_of_row(32), Ok(4));
        for window in [0, 48, 256] {
            assert!(tokens.windows_of_row(window).is_err(), "{window}");
        }
        assert_eq!(column("x", &[129]).windows_of_row(5), Ok(1));
    }

    #[test]
    fn rows_that_are_too_large_or_empty_are_refused() {
        for shape in [&[0][..], &[u32::MAX, u32::MAX, u32::MAX], &[1 << 16, 1 << 11]] {
            assert!(check_columns(&[column("x", shape)]).is_err(), "{shape:?}");
        }
        let many: Vec<Column> = (0..65).map(|at| column(&format!("c{at}"), &[])).collect();
        assert!(check_columns(&many).unwrap_err().contains("65 columns"));
        let unsigned = Column { dtype: Dtype::U32, ..column("x", &[]) };
        assert!(check_columns(&[unsigned]).unwrap_err().contains("U32"));
    }
}

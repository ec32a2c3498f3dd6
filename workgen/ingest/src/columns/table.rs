//! Sources of rows that are columns by name, whatever their format.

use crate::error::{IngestError, Place, Problem};
use sojourn_protocol::{
    dtype::Dtype,
    spec::Columns,
    text::{MAX_NAME_CHARS, plain_line},
};

/// A column as a source has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Field {
    /// The column's name.
    pub(crate) name: String,
    pub(crate) dtype: Dtype,
    /// Shape of a row; of a sequence, of one of its elements.
    pub(crate) shape: Vec<u32>,
    /// Do rows differ in how many elements they have?
    pub(crate) is_sequence: bool,
    /// How many different whole numbers from 0 on there can be, where the source says it.
    pub(crate) values: Option<u64>,
    /// The words that these numbers stand for, where the source says it.
    pub(crate) classes: Vec<String>,
    /// Is a row a window of a longer text?
    pub(crate) windows: bool,
}

impl Field {
    /// Bytes of a row; of a sequence, of one of its elements.
    pub(crate) fn stride(&self) -> u64 {
        let elements = self.shape.iter().fold(1u64, |all, side| all.saturating_mul((*side).into()));
        elements.saturating_mul(self.dtype.bytes())
    }
}

/// Refuses columns at `place` that can't be read as those of `of`. What one of them doesn't say of its numbers is no difference.
pub(crate) fn check_same(
    place: &Place,
    columns: &[Field],
    of: &str,
    wanted: &[Field],
) -> Result<(), IngestError> {
    let Some(difference) = difference(columns, wanted) else { return Ok(()) };
    Err(place.clone().refuse(Problem::OtherColumns { of: of.to_owned(), difference }))
}

fn difference(columns: &[Field], wanted: &[Field]) -> Option<String> {
    let find = |of: &[Field], name: &str| of.iter().position(|field| field.name == name);
    let said = |field: &Field| {
        let Field { dtype, shape, is_sequence, .. } = field;
        let lengths = if *is_sequence { ", of different lengths" } else { "" };
        format!("{} with rows of shape {shape:?}{lengths}", dtype.name())
    };
    for field in columns {
        let name = &field.name;
        let Some(other) = find(wanted, name).and_then(|at| wanted.get(at)) else {
            return Some(format!("`{name}` is only here"));
        };
        let classes = [field, other].map(|field| field.classes.as_slice());
        if said(field) != said(other) {
            return Some(format!("`{name}` is {} here and {} there", said(field), said(other)));
        }
        if classes.iter().all(|classes| !classes.is_empty()) && classes[0] != classes[1] {
            let [here, there] =
                classes.map(|classes| plain_line(&classes.join(", "), MAX_NAME_CHARS));
            return Some(format!("the classes of `{name}` are {here} here and {there} there"));
        }
    }
    let missing = wanted.iter().find(|field| find(columns, &field.name).is_none());
    missing.map(|field| format!("`{}` isn't here", field.name))
}

/// The columns of a table that are read.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Choice<'a> {
    /// The columns that the job chooses; all of them where it says nothing.
    Job(Option<&'a Columns>),
    /// The columns of these names that are there.
    Wanted(&'a [&'a str]),
}

/// A source's rows, to be read as often as asked.
pub(crate) trait ColumnTable: Send + Sync {
    /// The source, as the job writes it.
    fn shown(&self) -> &str;
    /// The source's columns.
    fn fields(&self) -> &[Field];
    /// Bytes that a pass reads, for progress.
    fn bytes(&self) -> u64;
    /// Begins a pass over the rows.
    fn rows(&self) -> Result<Box<dyn ColumnRows + '_>, IngestError>;

    /// A problem of the whole.
    fn refuse(&self, problem: Problem) -> IngestError {
        Place::of(self.shown()).refuse(problem)
    }
}

/// A pass over rows.
pub(crate) trait ColumnRows: Send {
    /// Goes to the next row; `false` after the last.
    fn advance(&mut self) -> Result<bool, IngestError>;
    /// The row's numbers in the column with this index, little-endian.
    fn column(&self, index: usize) -> &[u8];
    /// Where the row is.
    fn place(&self) -> Place;
    /// Bytes read so far in this pass.
    fn bytes_read(&self) -> u64;
}

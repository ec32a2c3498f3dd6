//! A pass over the rows of a source, parts in name order.

use super::{Libsvm, columns::Columns, line::SparseRow};
use crate::{
    csv::Lines,
    error::{Place, Problem},
    fields::{Need, RecordError, Records},
    source::SourceFile,
};
use std::ops::Range;

/// The value of a column that a row leaves out.
const ZERO: &[u8] = b"0";

/// A pass over the rows.
pub(crate) struct SparseRecords<'a> {
    columns: &'a Columns,
    needed: Vec<Need>,
    /// Is any column beside the label needed?
    needs_values: bool,
    /// Parts that haven't been opened.
    parts: std::slice::Iter<'a, SourceFile>,
    lines: Option<Lines<'a>>,
    /// Bytes of the parts that are done.
    before: u64,
    line: u64,
}

impl<'a> SparseRecords<'a> {
    pub(super) fn new(source: &'a Libsvm, needed: Vec<Need>) -> Self {
        Self {
            columns: &source.columns,
            needs_values: needed.iter().skip(1).any(|need| *need != Need::Nothing),
            needed,
            parts: source.parts.iter(),
            lines: None,
            before: 0,
            line: 0,
        }
    }
}

impl Records for SparseRecords<'_> {
    fn advance(
        &mut self,
        mut take: impl FnMut(usize, &[u8]) -> Result<(), Problem>,
    ) -> Result<bool, RecordError> {
        loop {
            let Some(lines) = &mut self.lines else {
                let Some(part) = self.parts.next() else { return Ok(false) };
                self.lines = Some(Lines::open(part)?);
                continue;
            };
            let Some(line) = lines.next_line()? else {
                self.before += lines.part.bytes();
                self.lines = None;
                continue;
            };
            self.line = line.line;
            let refused = |problem| RecordError::Record(None, Problem::Sparse(problem));
            let Some(row) = SparseRow::of(line.text).map_err(refused)? else { continue };
            // A row counts whole, or not at all.
            for pair in row.pairs() {
                let (index, _) = pair.map_err(refused)?;
                self.columns.column(index).map_err(refused)?;
            }
            let mut taking =
                Taking { needed: &self.needed, needs_values: self.needs_values, take: &mut take };
            taking.one(0, row.label)?;
            let mut next = 1;
            for (index, value) in row.pairs().flatten() {
                let column = self.columns.column(index).map_err(refused)?;
                taking.zeros(next..column)?;
                taking.one(column, value)?;
                next = column + 1;
            }
            taking.zeros(next..self.needed.len())?;
            return Ok(true);
        }
    }

    fn place(&self) -> Place {
        let file = self.lines.as_ref().map_or("", |lines| lines.part.shown());
        Place { line: Some(self.line), ..Place::of(file) }
    }

    fn bytes_read(&self) -> u64 {
        self.before + self.lines.as_ref().map_or(0, Lines::bytes_read)
    }
}

/// Hands the values of one row on.
struct Taking<'a, T> {
    needed: &'a [Need],
    needs_values: bool,
    take: &'a mut T,
}

impl<T: FnMut(usize, &[u8]) -> Result<(), Problem>> Taking<'_, T> {
    fn one(&mut self, column: usize, value: &[u8]) -> Result<(), RecordError> {
        if self.needed.get(column).is_none_or(|need| *need == Need::Nothing) {
            return Ok(());
        }
        (self.take)(column, value).map_err(|problem| RecordError::Record(Some(column), problem))
    }

    fn zeros(&mut self, columns: Range<usize>) -> Result<(), RecordError> {
        if self.needs_values {
            for column in columns {
                self.one(column, ZERO)?;
            }
        }
        Ok(())
    }
}

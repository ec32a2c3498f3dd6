//! The columns of all files: the label, and one for each index up to the last.

use super::line::SparseRow;
use crate::{
    bounds::{RowCount, SharedBounds},
    csv::Lines,
    error::{IngestError, Place, Problem, SparseProblem},
    source::SourceFile,
};
use sojourn_protocol::{quantity::to_u64, spec::data::SPARSE_LABEL};

/// The indices that columns have.
#[derive(Debug, Clone)]
pub(super) struct Columns {
    /// Does a row have the index 0?
    has_zero: bool,
    /// The largest index.
    last: usize,
    /// May no index be larger than those that were known beforehand?
    is_bounded: bool,
    names: Vec<String>,
}

impl Columns {
    /// Columns of these names. If they bound the others, a row with a larger index is a matter of the passes over rows.
    pub(super) fn of(known: &[String], is_bounded: bool) -> Self {
        let indices = known.iter().filter_map(|name| name.parse().ok());
        let mut columns = Self { has_zero: false, last: 0, is_bounded: false, names: Vec::new() };
        indices
            .filter(|index| *index <= super::line::MAX_INDEX)
            .for_each(|index| columns.add(index));
        Self { is_bounded, ..columns }
    }

    fn add(&mut self, index: usize) {
        if self.is_bounded {
            return;
        }
        self.has_zero |= index == 0;
        self.last = self.last.max(index);
    }

    /// Adds the indices of all rows of a file. A line that is none is a matter of the passes over rows.
    pub(super) fn collect(&mut self, part: &SourceFile) -> Result<(), IngestError> {
        let mut lines = Lines::open(part)?;
        let mut read_lines = RowCount::new(SharedBounds::clone(part.bounds()));
        while let Some(line) = lines.next_line()? {
            read_lines.add(to_u64(line.text.len()))?;
            let Ok(Some(row)) = SparseRow::of(line.text) else { continue };
            let ends =
                |(first, _): (Option<usize>, _), index| (Some(first.unwrap_or(index)), Some(index));
            let mut indices = row.pairs().map(|pair| pair.map(|(index, _)| index));
            let ends = indices
                .try_fold((None, None), |found, index| index.map(|index| ends(found, index)));
            if let Ok((Some(first), Some(last))) = ends {
                self.add(first);
                self.add(last);
            }
        }
        Ok(())
    }

    /// Names the columns; refuses files without a single value.
    pub(super) fn finish(&mut self, parts: &[SourceFile]) -> Result<(), IngestError> {
        if self.last == 0 && !self.has_zero {
            return Err(no_values(parts)?);
        }
        let first = usize::from(!self.has_zero);
        let indices = (first..=self.last).map(|index| index.to_string());
        self.names = std::iter::once(SPARSE_LABEL.to_owned()).chain(indices).collect();
        Ok(())
    }

    /// The label, and the indices.
    pub(super) fn names(&self) -> &[String] {
        &self.names
    }

    /// The column of an index.
    pub(super) fn column(&self, index: usize) -> Result<usize, SparseProblem> {
        if index > self.last || index == 0 && !self.has_zero {
            let first = usize::from(!self.has_zero);
            return Err(SparseProblem::OtherIndex { index, first, last: self.last });
        }
        // The label is the first.
        Ok(index + usize::from(self.has_zero))
    }
}

/// The error for files of which no row has a value.
fn no_values(parts: &[SourceFile]) -> Result<IngestError, IngestError> {
    let shown = parts.first().map_or("", SourceFile::shown);
    for part in parts {
        let mut lines = Lines::open(part)?;
        while let Some(line) = lines.next_line()? {
            let problem = match SparseRow::of(line.text) {
                Ok(None) => continue,
                Ok(Some(row)) => row.pairs().find_map(Result::err),
                Err(problem) => Some(problem),
            };
            if let Some(problem) = problem {
                let place = Place { line: Some(line.line), ..Place::of(part.shown()) };
                return Ok(place.refuse(Problem::Sparse(problem)));
            }
        }
    }
    Ok(Place::of(shown).refuse(Problem::NoFeatures))
}

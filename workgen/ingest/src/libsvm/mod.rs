//! Sparse rows in the format of libsvm and svmlight: a file, or a folder of parts, with a row in each line.
//!
//! ```text
//! label [qid:3] 2:0.5 7:1 # comment
//!
//! all lines --last index--> columns `label`, `1` .. `n` -> for each row: its label, its values, and 0 between them
//! ```
//!
//! A column is called by its index, as the file writes it, so the same file is read whether indices begin at 0 or at 1. Values are text,
//! as fields of CSV are, so that a row is that of an equal CSV file. Memory holds one line and the names of the columns.

mod columns;
mod each_row;
mod line;
mod records;

use crate::{
    bounds::{SharedBounds, unbounded},
    error::{IngestError, Place},
    fields::{FieldSource, FieldTable, Need},
    source::SourceFile,
    table::{Reading, Wanted},
};
use columns::Columns;
pub(crate) use each_row::each_row;
pub(crate) use line::begins;
use records::SparseRecords;
use sojourn_protocol::spec::data::SPARSE_LABEL;

/// Rows of which zeros are left out.
#[derive(Debug, Clone)]
pub(crate) struct Libsvm {
    parts: Vec<SourceFile>,
    first: String,
    columns: Columns,
}

impl Libsvm {
    /// Finds the columns of `parts`. Columns of the training data, and those that a model takes, are there whether or not they occur.
    pub(crate) fn open(
        shown: &str,
        parts: Vec<SourceFile>,
        label: Option<&str>,
        reading: Reading<'_>,
    ) -> Result<FieldTable<Self>, IngestError> {
        let known = match reading.wanted {
            Wanted::Labelled => reading.text.train,
            Wanted::Features(names) => names,
        };
        let is_bounded = matches!(reading.wanted, Wanted::Labelled) && !known.is_empty();
        let columns = Columns::of(known, is_bounded);
        let source = Self::find(shown, parts, columns)?;
        FieldTable::open(shown, source, Some(label.unwrap_or(SPARSE_LABEL)), reading)
    }

    fn find(
        shown: &str,
        parts: Vec<SourceFile>,
        mut columns: Columns,
    ) -> Result<Self, IngestError> {
        let first = parts.first().map_or(shown, SourceFile::shown).to_owned();
        for part in &parts {
            columns.collect(part)?;
        }
        columns.finish(&parts)?;
        Ok(Self { parts, first, columns })
    }
}

impl FieldSource for Libsvm {
    type Records<'a> = SparseRecords<'a>;

    fn columns(&self) -> &[String] {
        self.columns.names()
    }

    fn first(&self) -> &str {
        &self.first
    }

    fn header(&self, file: &str) -> Place {
        Place::of(file)
    }

    fn bytes(&self) -> u64 {
        self.parts.iter().map(SourceFile::bytes).sum()
    }

    fn bounds(&self) -> SharedBounds {
        self.parts.first().map_or_else(unbounded, |part| SharedBounds::clone(part.bounds()))
    }

    fn records(&self, needed: Vec<Need>) -> Result<SparseRecords<'_>, IngestError> {
        Ok(SparseRecords::new(self, needed))
    }
}

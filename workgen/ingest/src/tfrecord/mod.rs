//! TFRecord: a file, or a folder of parts, of records that are messages `tf.train.Example`.
//!
//! ```text
//! file --frames, checksums--> records --wire--> features by name, each a list
//! all records --columns--> a list of one element is a column, of more a column each -> for each row: the values as text, as in CSV
//! ```
//!
//! A feature that a record doesn't have is a missing value. Columns are in the order of their names, because maps of messages have none.
//! Numbers are the shortest text that reads back as the same number, so that a row is that of an equal CSV file.
//!
//! Messages are read where they lie, by some hundred lines of our own: the crate `prost` makes owned values of them, of which those of a
//! hostile record take fifty times its bytes, `tfrecord` 0.15 rests on a `prost` that is superseded, and `quick-protobuf` has had no
//! version since 2022. Memory holds one record and the names of the columns.

mod columns;
mod each_row;
mod example;
mod frames;
mod records;
mod wire;

use crate::{
    bounds::{SharedBounds, unbounded},
    error::{IngestError, Place, Problem},
    fields::{FieldSource, FieldTable, Need},
    source::SourceFile,
    table::Reading,
};
use columns::Columns;
pub(crate) use each_row::each_row;
pub(crate) use frames::begins;
use records::ExampleRecords;

/// Examples with features by name.
#[derive(Debug, Clone)]
pub(crate) struct TfRecord {
    parts: Vec<SourceFile>,
    first: String,
    columns: Columns,
}

impl TfRecord {
    /// Finds the columns of `parts`. Columns of the training data are there whether or not a record has them.
    pub(crate) fn open(
        shown: &str,
        parts: Vec<SourceFile>,
        label: Option<&str>,
        reading: Reading<'_>,
    ) -> Result<FieldTable<Self>, IngestError> {
        FieldTable::open(shown, Self::find(shown, parts, reading.text.train)?, label, reading)
    }

    fn find(shown: &str, parts: Vec<SourceFile>, known: &[String]) -> Result<Self, IngestError> {
        let first = parts.first().map_or(shown, SourceFile::shown).to_owned();
        let columns = Columns::find(&parts, known)?;
        Ok(Self { parts, first, columns })
    }
}

impl FieldSource for TfRecord {
    type Records<'a> = ExampleRecords<'a>;

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

    fn check(&self, needed: &[Need]) -> Result<(), IngestError> {
        for (column, need) in needed.iter().enumerate() {
            if let (Some((place, what)), Need::Value | Need::Label) =
                (self.columns.unreadable(column), need)
            {
                let name = self.columns.names().get(column).cloned();
                let place = Place { column: name, ..place.clone() };
                return Err(place.refuse(Problem::ColumnKind(what)));
            }
        }
        Ok(())
    }

    fn records(&self, needed: Vec<Need>) -> Result<ExampleRecords<'_>, IngestError> {
        Ok(ExampleRecords::new(self, needed))
    }
}

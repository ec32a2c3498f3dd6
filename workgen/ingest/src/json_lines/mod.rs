//! JSON lines: a file, or a folder of parts, with an object in each line.
//!
//! ```text
//! all lines --names--> columns (every key) -> for each row: the values of the needed ones as text, as in CSV
//! ```
//!
//! A key that an object doesn't have is a missing value, as null is. Numbers are the shortest text that reads back as the same
//! number, as of Parquet files, so that a row is that of an equal CSV file.

mod document;
mod each_row;
mod names;
mod object;
mod records;

use crate::{
    bounds::{SharedBounds, unbounded},
    error::{IngestError, Place, Problem},
    fields::{FieldSource, FieldTable, Need},
    source::SourceFile,
    table::Reading,
};
pub(crate) use each_row::each_row;
use names::Columns;
use records::JsonRecords;

/// Does a file begin with an object?
pub(crate) fn begins(start: &[u8]) -> bool {
    let start = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start);
    let mut tokens = start.iter().filter(|byte| !byte.is_ascii_whitespace());
    tokens.next() == Some(&b'{') && matches!(tokens.next(), Some(b'"' | b'}'))
}

/// Refuses a file that begins as JSON and not as JSON lines: with a list of objects, or in UTF-16.
pub(crate) fn refuse_others(file: &SourceFile, start: &[u8]) -> Result<(), IngestError> {
    match document::problem(start) {
        Some(problem) => Err(file.refuse(problem)),
        None => Ok(()),
    }
}

/// Objects under keys.
#[derive(Debug, Clone)]
pub(crate) struct JsonLines {
    parts: Vec<SourceFile>,
    first: String,
    columns: Columns,
}

impl JsonLines {
    /// Finds the columns of `parts`.
    pub(crate) fn open(
        shown: &str,
        parts: Vec<SourceFile>,
        label: Option<&str>,
        reading: Reading<'_>,
    ) -> Result<FieldTable<Self>, IngestError> {
        FieldTable::open(shown, Self::find(shown, parts, reading.text.train)?, label, reading)
    }

    /// The columns of `parts`, after those that are known beforehand.
    fn find(shown: &str, parts: Vec<SourceFile>, known: &[String]) -> Result<Self, IngestError> {
        let first = parts.first().map_or(shown, SourceFile::shown).to_owned();
        let mut columns = Columns::of(known);
        for part in &parts {
            columns.collect(part)?;
        }
        if let (true, [part]) = (known.is_empty(), parts.as_slice()) {
            columns.refuse_document(part)?;
        }
        columns.refuse_none(&parts)?;
        Ok(Self { parts, first, columns })
    }
}

impl FieldSource for JsonLines {
    type Records<'a> = JsonRecords<'a>;

    fn columns(&self) -> &[String] {
        &self.columns.names
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
        let columns = self.columns.names.iter().zip(&self.columns.nested).zip(needed);
        for ((name, nested), need) in columns {
            if let (Some((place, what)), Need::Value | Need::Label) = (nested, need) {
                let place = Place { column: Some(name.clone()), ..place.clone() };
                return Err(place.refuse(Problem::ColumnKind(what)));
            }
        }
        Ok(())
    }

    fn records(&self, needed: Vec<Need>) -> Result<JsonRecords<'_>, IngestError> {
        Ok(JsonRecords::new(self, needed))
    }
}

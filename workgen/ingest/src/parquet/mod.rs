//! Parquet: a file, or a folder of parts with the same columns.
//!
//! ```text
//! footer (checked) -> row groups -> for each column that is needed: pages (checked) -> Values --.
//!   with a label (`Parquet`):      some rows at once, fields as text, as in CSV <---------------|
//!   without one (`NamedParquet`):  columns by name, numbers and lists as they are <-------------'
//! ```
//!
//! As text, numbers are written as the shortest text that reads back as the same number, so that a row is that of an equal CSV file.
//! Memory holds a page and a dictionary of each column that is needed, and the footer of one file.
//!
//! The crate that decodes was written for files that others of its kind wrote. A damaged one may make it panic, or ask for
//! memory that a number in the file says. So footers and pages are looked at first, and panics become refusals.

mod begins;
mod chunks;
mod column;
mod each_row;
mod elements;
mod footer;
mod guard;
mod kind;
mod named;
mod pages;
mod part;
mod records;
mod stored;
mod thrift;

use crate::{
    bounds::{SharedBounds, unbounded},
    error::{IngestError, Place, Problem},
    fields::{FieldSource, FieldTable, Need, same},
    source::{Finder, SourceFile},
    table::{Reading, Table, Wanted},
};
pub(crate) use begins::begins;
pub(crate) use each_row::each_row;
use footer::Footer;
pub(crate) use named::by_name;
use part::unpacked;
use records::ParquetRecords;
use sojourn_protocol::{quantity::SaturatingFrom as _, spec::Columns};

/// Rows of numbers and labels.
pub(crate) fn labelled(
    finder: &mut Finder<'_>,
    shown: &str,
    parts: Vec<SourceFile>,
    label: Option<&str>,
    reading: Reading<'_>,
) -> Result<Box<dyn Table>, IngestError> {
    Ok(Box::new(Parquet::open(finder, shown, parts, label, reading)?))
}

/// Columns of values.
#[derive(Debug, Clone)]
struct Parquet {
    parts: Vec<SourceFile>,
    first: String,
    columns: Vec<String>,
    /// For each column that can't be read, the file and what it holds.
    unreadable: Vec<Option<(String, &'static str)>>,
}

impl Parquet {
    /// Reads the footers of `parts`; packed ones are unpacked first.
    pub(crate) fn open(
        finder: &mut Finder<'_>,
        shown: &str,
        parts: Vec<SourceFile>,
        label: Option<&str>,
        reading: Reading<'_>,
    ) -> Result<FieldTable<Self>, IngestError> {
        let parts = unpacked(finder, parts)?;
        let first = parts.first().map_or(shown, SourceFile::shown).to_owned();
        let (mut columns, mut unreadable) = (Vec::new(), Vec::new());
        for part in &parts {
            let at = Place::of(part.shown());
            let footer = Footer::read(part)?;
            let names = footer.names(&at)?;
            if columns.is_empty() {
                unreadable = vec![None; names.len()];
                columns = names;
            } else {
                same(&at, &names, &columns, &first)?;
            }
            for (column, unreadable) in footer.columns.iter().zip(&mut unreadable) {
                if let (Err(what), None) = (&column.kind, &unreadable) {
                    *unreadable = Some((part.shown().to_owned(), *what));
                }
            }
        }
        if let Wanted::Labelled = reading.wanted {
            refuse_index(&first, &columns, reading.text.columns)?;
        }
        let parquet = Self { parts, first, columns, unreadable };
        FieldTable::open(shown, parquet, label, reading)
    }
}

/// Refuses the index of a data frame as a feature that nobody asked for: it has a name here, unlike in CSV.
fn refuse_index(
    file: &str,
    columns: &[String],
    chosen: Option<&Columns>,
) -> Result<(), IngestError> {
    let is_chosen = |index: usize, name: &str| match chosen.map(Columns::dropped) {
        Some(None) => true,
        Some(Some((names, positions))) => {
            let position = u32::saturating_from(index + 1);
            positions.contains(&position) || names.iter().any(|of| Columns::is_meant(of, name))
        }
        None => false,
    };
    match columns.iter().enumerate().find(|(_, name)| is_index(name)) {
        Some((index, name)) if !is_chosen(index, name) => {
            let place = Place { column: Some(name.clone()), ..Place::of(file) };
            Err(place.refuse(Problem::FrameIndex))
        }
        _ => Ok(()),
    }
}

/// Is it the name that pandas gives to the index of a data frame?
fn is_index(name: &str) -> bool {
    name.starts_with("__index_level_") && name.ends_with("__")
}

impl FieldSource for Parquet {
    type Records<'a> = ParquetRecords<'a>;

    fn columns(&self) -> &[String] {
        &self.columns
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
        let columns = self.columns.iter().zip(&self.unreadable).zip(needed);
        for ((name, unreadable), need) in columns {
            if let (Some((file, what)), Need::Value | Need::Label) = (unreadable, need) {
                let place = Place { column: Some(name.clone()), ..Place::of(file) };
                return Err(place.refuse(Problem::ColumnKind(what)));
            }
        }
        Ok(())
    }

    fn records(&self, needed: Vec<Need>) -> Result<ParquetRecords<'_>, IngestError> {
        Ok(ParquetRecords::new(self, needed))
    }
}

//! All rows of files that no job describes yet.

use super::{Parquet, footer::Footer, part::unpacked, records::ParquetRecords};
use crate::{
    error::{IngestError, Place},
    fields::{Need, RecordError, Records as _, same},
    source::{Finder, SourceFile},
};

/// A column, and for which kind of values it can't be read.
type Column = (String, Option<&'static str>);

/// Calls `take` with the number of each row, from 1, and with each field that can be read and its column. Returns the columns.
pub(crate) fn each_row(
    finder: &mut Finder<'_>,
    shown: &str,
    parts: Vec<SourceFile>,
    take: &mut dyn FnMut(u64, usize, &[u8]),
) -> Result<Vec<Column>, IngestError> {
    let parts = unpacked(finder, parts)?;
    let first = parts.first().map_or(shown, SourceFile::shown).to_owned();
    let mut columns: Vec<Column> = Vec::new();
    for part in &parts {
        let at = Place::of(part.shown());
        let footer = Footer::read(part)?;
        let names = footer.names(&at)?;
        if columns.is_empty() {
            columns = names.into_iter().map(|name| (name, None)).collect();
        } else {
            let expected: Vec<String> = columns.iter().map(|(name, _)| name.clone()).collect();
            same(&at, &names, &expected, &first)?;
        }
        for (column, (_, unreadable)) in footer.columns.iter().zip(&mut columns) {
            *unreadable = unreadable.or(column.kind.err());
        }
    }
    let need = |(_, unreadable): &Column| match unreadable {
        Some(_) => Need::Nothing,
        None => Need::Value,
    };
    let needed = columns.iter().map(need).collect();
    let names = columns.iter().map(|(name, _)| name.clone()).collect();
    let parquet = Parquet { parts, first, columns: names, unreadable: vec![None; columns.len()] };
    let mut records = ParquetRecords::new(&parquet, needed);
    let mut row = 1;
    while records
        .advance(|index, field| {
            take(row, index, field);
            Ok(())
        })
        .map_err(|error| match error {
            RecordError::Other(error) => error,
            RecordError::Field(_, problem) | RecordError::Record(_, problem) => {
                Place::of(shown).refuse(problem)
            }
        })?
    {
        row += 1;
    }
    Ok(columns)
}

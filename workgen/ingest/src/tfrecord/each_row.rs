//! All examples of files that no job describes yet.

use super::{TfRecord, records::ExampleRecords};
use crate::{
    error::{IngestError, Place},
    fields::{Need, RecordError, Records as _},
    source::SourceFile,
};

/// The columns, each with what it holds where that can't be read.
type Columns = Vec<(String, Option<&'static str>)>;

/// Calls `take` with the number of each row, from 1, and with each value that is text and its column. Calls `odd` with each record that
/// is no example, and why. Returns the columns.
pub(crate) fn each_row(
    shown: &str,
    parts: Vec<SourceFile>,
    take: &mut dyn FnMut(u64, usize, &[u8]),
    odd: &mut dyn FnMut(u64, String),
) -> Result<Columns, IngestError> {
    let source = TfRecord::find(shown, parts, &[])?;
    let columns = source.columns.names().iter().enumerate();
    let columns: Columns = columns
        .map(|(index, name)| {
            (name.clone(), source.columns.unreadable(index).map(|(_, what)| *what))
        })
        .collect();
    let need = |(_, unreadable): &(String, Option<_>)| match unreadable {
        Some(_) => Need::Nothing,
        None => Need::Value,
    };
    let mut records = ExampleRecords::new(&source, columns.iter().map(need).collect());
    let mut row = 1;
    loop {
        let next = records.advance(|index, field| {
            take(row, index, field);
            Ok(())
        });
        match next {
            Ok(true) => row += 1,
            Ok(false) => return Ok(columns),
            Err(RecordError::Other(error)) => return Err(error),
            Err(RecordError::Field(index, problem)) => {
                let column = columns.get(index).map(|(name, _)| name.clone());
                return Err(Place { column, ..records.place() }.refuse(problem));
            }
            Err(RecordError::Record(_, problem)) => {
                odd(records.place().row.unwrap_or_default(), problem.to_string());
            }
        }
    }
}

//! All objects of files that no job describes yet.

use super::{JsonLines, records::JsonRecords};
use crate::{
    error::{IngestError, Place},
    fields::{Need, RecordError, Records as _},
    source::SourceFile,
};

/// The columns, each with what it holds where that can't be read.
type Columns = Vec<(String, Option<&'static str>)>;

/// Calls `take` with the number of each row, from 1, and with each value that is text and its column. Calls `odd` with
/// each line that is no object, and why. Returns the columns.
pub(crate) fn each_row(
    shown: &str,
    parts: Vec<SourceFile>,
    take: &mut dyn FnMut(u64, usize, &[u8]),
    odd: &mut dyn FnMut(u64, String),
) -> Result<Columns, IngestError> {
    let json = JsonLines::find(shown, parts, &[])?;
    let nested = json.columns.nested.iter();
    let need = |nested: &Option<_>| if nested.is_some() { Need::Nothing } else { Need::Value };
    let mut records = JsonRecords::new(&json, nested.map(need).collect());
    let mut row = 1;
    loop {
        let next = records.advance(|index, field| {
            take(row, index, field);
            Ok(())
        });
        match next {
            Ok(true) => row += 1,
            Ok(false) => break,
            Err(RecordError::Other(error)) => return Err(error),
            Err(RecordError::Field(index, problem)) => {
                let column = json.columns.names.get(index).cloned();
                return Err(Place { column, ..records.place() }.refuse(problem));
            }
            Err(RecordError::Record(_, problem)) => {
                odd(records.place().line.unwrap_or_default(), problem.to_string());
            }
        }
    }
    let nested = json.columns.nested.into_iter().map(|nested| nested.map(|(_, what)| what));
    Ok(json.columns.names.into_iter().zip(nested).collect())
}

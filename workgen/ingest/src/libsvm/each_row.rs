//! All rows of files that no job describes yet.

use super::{Libsvm, columns::Columns, records::SparseRecords};
use crate::{
    error::{IngestError, Place},
    fields::{Need, RecordError, Records as _},
    source::SourceFile,
};

/// Calls `take` with the number of each row, from 1, and with each value and its column. Calls `odd` with each line that is no row, and
/// why. Returns the names of the columns.
pub(crate) fn each_row(
    shown: &str,
    parts: Vec<SourceFile>,
    take: &mut dyn FnMut(u64, usize, &[u8]),
    odd: &mut dyn FnMut(u64, String),
) -> Result<Vec<String>, IngestError> {
    let source = Libsvm::find(shown, parts, Columns::of(&[], false))?;
    let names = source.columns.names().to_vec();
    let mut records = SparseRecords::new(&source, vec![Need::Value; names.len()]);
    let mut row = 1;
    loop {
        let next = records.advance(|index, field| {
            take(row, index, field);
            Ok(())
        });
        match next {
            Ok(true) => row += 1,
            Ok(false) => return Ok(names),
            Err(RecordError::Other(error)) => return Err(error),
            Err(RecordError::Field(index, problem)) => {
                let column = names.get(index).cloned();
                return Err(Place { column, ..records.place() }.refuse(problem));
            }
            Err(RecordError::Record(_, problem)) => {
                odd(records.place().line.unwrap_or_default(), problem.to_string());
            }
        }
    }
}

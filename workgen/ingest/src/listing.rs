//! Finds the other problems of a table that has one.

use crate::{
    error::{BadRow, IngestError, Problems, Reason},
    meter::Meter,
    progress::Progress,
    table::{Pass, Table},
};
use sojourn_protocol::quantity::to_u64;

/// Reads `table` once more if `error` is a problem of one of its rows. Returns all problems of its rows; `error` where it is the only one.
pub(crate) fn with_others(
    table: &dyn Table,
    error: IngestError,
    meter: &Meter,
    progress: &mut dyn FnMut(Progress<'_>),
) -> IngestError {
    let IngestError::Data { at, problem } = &error else { return error };
    // Of arrays the first element that is wrong is told.
    if Reason::of(problem).is_none() || at.element.is_some() {
        return error;
    }
    let mut meter = meter.another(table.bytes(Pass::Problems));
    // Where the rest can't be read, the problem that is known is told.
    let Ok(listed) = listed(table, &mut meter, progress) else { return error };
    let problems = Problems::listed(&table.schema().shown, table.on_bad(), listed);
    match problems.is_one() || !problems.contains(at, problem) {
        true => error,
        false => IngestError::Several(Box::new(problems)),
    }
}

fn listed(
    table: &dyn Table,
    meter: &mut Meter,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<Vec<BadRow>, IngestError> {
    let mut rows = table.rows(Pass::Problems)?;
    while rows.advance()? {
        let row = to_u64(size_of_val(rows.numbers()));
        meter.report(rows.bytes_read(), row, progress)?;
    }
    Ok(rows.listed())
}

//! Workbooks of Excel, in a program that was built without them: recognised, and refused.

#[path = "begins.rs"]
mod begins;
#[path = "table_begins.rs"]
mod table_begins;

use crate::{
    error::{IngestError, Problem},
    source::{Finder, SourceFile},
};
pub(crate) use begins::begins;
pub(crate) use table_begins::Begins;

/// Refuses a workbook.
pub(crate) fn as_text(
    _: &mut Finder<'_>,
    file: &SourceFile,
    _: Begins,
) -> Result<SourceFile, IngestError> {
    Err(file.refuse(Problem::NotBuilt("Excel's workbooks")))
}

//! Workbooks of Excel, in a program that was built without them: recognised, and refused.

#[path = "begins.rs"]
mod begins;

use crate::{
    error::{IngestError, Problem},
    source::{Finder, SourceFile},
};
pub(crate) use begins::begins;

/// Refuses a workbook.
pub(crate) fn as_text(_: &mut Finder<'_>, file: &SourceFile) -> Result<SourceFile, IngestError> {
    Err(file.refuse(Problem::NotBuilt("Excel's workbooks")))
}

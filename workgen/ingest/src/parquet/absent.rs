//! Parquet, in a program that was built without it: recognised, and refused.

#[path = "begins.rs"]
mod begins;

use crate::{
    columns::{Choice, ColumnTable},
    error::{IngestError, Place, Problem},
    source::{Finder, SourceFile},
    table::{Reading, Table},
};
pub(crate) use begins::begins;

/// Refuses a file whose rows have labels.
pub(crate) fn labelled(
    _: &mut Finder<'_>,
    shown: &str,
    _: Vec<SourceFile>,
    _: Option<&str>,
    _: Reading<'_>,
) -> Result<Box<dyn Table>, IngestError> {
    Err(refused(shown))
}

/// Refuses a file whose columns are taken by name.
pub(crate) fn by_name(
    _: &mut Finder<'_>,
    shown: &str,
    _: Vec<SourceFile>,
    _: Choice<'_>,
) -> Result<Box<dyn ColumnTable>, IngestError> {
    Err(refused(shown))
}

/// Refuses a file that somebody wants to look at.
pub(crate) fn each_row(
    _: &mut Finder<'_>,
    shown: &str,
    _: Vec<SourceFile>,
    _: &mut dyn FnMut(u64, usize, &[u8]),
) -> Result<Vec<(String, Option<&'static str>)>, IngestError> {
    Err(refused(shown))
}

fn refused(shown: &str) -> IngestError {
    Place::of(shown).refuse(Problem::NotBuilt("Parquet"))
}

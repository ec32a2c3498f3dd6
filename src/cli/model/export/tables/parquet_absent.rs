//! A table as Parquet, in a program that was built without it.

use super::table::Table;
use std::io::Write;

/// Refuses to write a table.
pub(in super::super) fn write(_: &Table, _: impl Write + Send) -> Result<(), String> {
    Err("this program was built without Parquet; `make build` builds the whole".to_owned())
}

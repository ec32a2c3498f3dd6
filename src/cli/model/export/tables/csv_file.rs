//! A table as CSV: a line of names, then a line for each row. A missing value is an empty field. No text is a formula.

use super::table::{Table, Values};
use crate::cli::render::{csv_cell::cell, text};
use csv::Writer;
use std::io::{self, Write};

/// Writes the table. Times are texts of ISO 8601 in UTC.
pub(in super::super) fn write(table: &Table, to: impl Write) -> io::Result<()> {
    let mut writer = Writer::from_writer(to);
    writer.write_record(table.columns.iter().map(|column| cell(&column.name).into_owned()))?;
    for row in 0..table.rows() {
        writer.write_record(table.columns.iter().map(|column| field(&column.values, row)))?;
    }
    writer.flush()
}

fn field(values: &Values, row: usize) -> String {
    let text = match values {
        Values::Whole(values) => at(values, row).map(i64::to_string),
        Values::Real(values) => at(values, row).map(f64::to_string),
        Values::Switch(values) => at(values, row).map(bool::to_string),
        Values::Text(values) => at(values, row).map(|text| cell(text).into_owned()),
        Values::Time(values) => at(values, row).copied().map(text::timestamp),
    };
    text.unwrap_or_default()
}

fn at<T>(values: &[Option<T>], row: usize) -> Option<&T> {
    values.get(row)?.as_ref()
}

//! Tables as one JSON object: an array for each, of one object for each row. A missing value is `null`.

use super::table::{Table, Values};
use crate::cli::render::text;
use serde::{Serialize, Serializer, ser::SerializeMap as _};
use std::io::{self, Write};

/// Writes the tables. Times are texts of ISO 8601 in UTC.
pub(in super::super) fn write(tables: &[Table], mut to: impl Write) -> io::Result<()> {
    serde_json::to_writer(&mut to, &Tables(tables))?;
    to.write_all(b"\n")
}

struct Tables<'a>(&'a [Table]);

impl Serialize for Tables<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let rows = |table| (0..Table::rows(table)).map(move |row| Row { table, row });
        serializer.collect_map(self.0.iter().map(|table| (table.name, Sequence(rows(table)))))
    }
}

/// The items of an iterator, as an array.
struct Sequence<I>(I);

impl<I: Iterator<Item: Serialize> + Clone> Serialize for Sequence<I> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.clone())
    }
}

/// A row, whose keys are in the order of the columns.
struct Row<'a> {
    table: &'a Table,
    row: usize,
}

impl Serialize for Row<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_map(Some(self.table.columns.len()))?;
        for column in &self.table.columns {
            let name = &column.name;
            match &column.values {
                Values::Whole(values) => object.serialize_entry(name, &values.get(self.row))?,
                Values::Real(values) => object.serialize_entry(name, &values.get(self.row))?,
                Values::Switch(values) => object.serialize_entry(name, &values.get(self.row))?,
                Values::Text(values) => object.serialize_entry(name, &values.get(self.row))?,
                Values::Time(values) => {
                    let time = values.get(self.row).copied().flatten().map(text::timestamp);
                    object.serialize_entry(name, &time)?;
                }
            }
        }
        object.end()
    }
}

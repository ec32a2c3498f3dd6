//! What goes to stdout: text, tables, JSON; and errors to stderr. Never panics on a closed pipe.

use super::failure::Failure;
use comfy_table::{Attribute, Cell, CellAlignment, ContentArrangement, Table, presets};
use serde::Serialize;
use std::io::{self, IsTerminal, Write};

/// Prints a line (or several) on stdout.
pub(crate) fn line(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.write_all(b"\n"))
        .and_then(|()| stdout.flush())
        .map_err(|error| Failure::output(&error))
}

/// Prints a value as JSON, in several lines.
pub(crate) fn json(value: &impl Serialize) -> Result<(), Failure> {
    let text =
        serde_json::to_string_pretty(value).map_err(|error| Failure::work(error.to_string()))?;
    line(&text)
}

/// Prints a value as JSON in one line, for streams of values.
pub(crate) fn json_line(value: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string(value).map_err(|error| Failure::work(error.to_string()))?;
    line(&text)
}

/// Prints an error on stderr.
pub(crate) fn error(message: &str) {
    let stderr = io::stderr();
    let word = if colours(&stderr) { "\u{1b}[1;31merror:\u{1b}[0m" } else { "error:" };
    // Nobody is left to tell where this fails.
    let _ = writeln!(stderr.lock(), "{word} {message}");
}

/// Prints a remark on stderr.
pub(crate) fn remark(message: &str) {
    let _ = writeln!(io::stderr().lock(), "{message}");
}

/// May this stream be coloured? Only a terminal, and not where `NO_COLOR` is set (no-color.org).
pub(crate) fn colours(stream: &impl IsTerminal) -> bool {
    let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    !refused && !dumb && stream.is_terminal()
}

/// Is stdout looked at by a person?
pub(crate) fn is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// What a table's column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Column {
    Text,
    Number,
}

/// A table that fits the terminal; in a pipe, as wide as it needs.
pub(crate) struct Grid {
    table: Table,
    columns: Vec<Column>,
    styled: bool,
}

impl Grid {
    pub(crate) fn new(header: &[(&str, Column)]) -> Self {
        let mut table = Table::new();
        let width = table.width();
        // Styles are decided here, with `NO_COLOR` in mind; and then the width must be said too.
        table.force_no_tty();
        if let Some(width) = width {
            table.set_width(width);
        }
        let styled = colours(&io::stdout());
        if styled {
            table.enforce_styling();
        }
        table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
        let columns: Vec<Column> = header.iter().map(|(_, column)| *column).collect();
        let mut grid = Self { table, columns, styled };
        let names = header.iter().map(|(name, column)| {
            let cell = align(Cell::new(name), *column);
            if styled { cell.add_attribute(Attribute::Bold) } else { cell }
        });
        let names: Vec<Cell> = names.collect();
        grid.table.set_header(names);
        grid
    }

    /// Adds a row.
    pub(crate) fn row(&mut self, fields: impl IntoIterator<Item = String>) {
        let cells = fields.into_iter().zip(&self.columns);
        let cells: Vec<Cell> =
            cells.map(|(field, column)| align(Cell::new(field), *column)).collect();
        self.table.add_row(cells);
    }

    /// Adds a row that stands out.
    pub(crate) fn bold_row(&mut self, fields: impl IntoIterator<Item = String>) {
        let styled = self.styled;
        let cells = fields.into_iter().zip(&self.columns).map(|(field, column)| {
            let cell = align(Cell::new(field), *column);
            if styled { cell.add_attribute(Attribute::Bold) } else { cell }
        });
        let cells: Vec<Cell> = cells.collect();
        self.table.add_row(cells);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// The table's text, without spaces at the ends of lines.
    pub(crate) fn text(&self) -> String {
        self.table.trim_fmt()
    }
}

fn align(cell: Cell, column: Column) -> Cell {
    match column {
        Column::Text => cell,
        Column::Number => cell.set_alignment(CellAlignment::Right),
    }
}

//! Tables on stdout.

use crate::cli::terminal::output::colours;
use comfy_table::{Attribute, Cell, CellAlignment, ContentArrangement, Table, presets};
use std::io;

/// The kind of values in a column.
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

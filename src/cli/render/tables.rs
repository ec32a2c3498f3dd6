//! Tables on stdout. Where a terminal is too narrow for the columns, each row becomes a block of lines.

use crate::cli::{
    render::text::shortened,
    terminal::{
        columns::{of_stdout, wrapped},
        output::colours,
    },
};
use comfy_table::{
    Attribute, Cell, CellAlignment, ColumnConstraint, ContentArrangement, Table, presets,
};
use std::io;

/// Characters of a name in a table. JSON and CSV have all of them.
const MAX_NAME_CHARS: usize = 40;
/// Characters of a text's longest word for which a column is made wide enough.
const MAX_WORD_CHARS: usize = 9;
/// Blanks that a column has beside its text.
const PADDING: usize = 2;

/// The kind of values in a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Column {
    /// Words, which may be wrapped.
    Text,
    /// A name that a person has chosen. A long one is cut in its middle.
    Name,
    /// A figure, which is never wrapped.
    Number,
}

/// A table that fits the terminal; in a pipe, as wide as it needs.
pub(crate) struct Grid {
    header: Vec<(String, Column)>,
    rows: Vec<Row>,
    /// The terminal's width; `None` for a pipe.
    width: Option<u16>,
    styled: bool,
}

struct Row {
    fields: Vec<String>,
    stands_out: bool,
}

impl Grid {
    pub(crate) fn new(header: &[(&str, Column)]) -> Self {
        let header = header.iter().map(|(name, column)| ((*name).to_owned(), *column)).collect();
        // Styles are decided here, with `NO_COLOR` in mind.
        let styled = colours(&io::stdout());
        Self { header, rows: Vec::new(), width: of_stdout(), styled }
    }

    /// Adds a row.
    pub(crate) fn row(&mut self, fields: impl IntoIterator<Item = String>) {
        self.add(fields, false);
    }

    /// Adds a row that stands out.
    pub(crate) fn bold_row(&mut self, fields: impl IntoIterator<Item = String>) {
        self.add(fields, true);
    }

    fn add(&mut self, fields: impl IntoIterator<Item = String>, stands_out: bool) {
        let fields =
            fields.into_iter().zip(&self.header).map(|(field, (_, column))| match column {
                Column::Name => shortened(&field, MAX_NAME_CHARS),
                Column::Text | Column::Number => field,
            });
        let row = Row { fields: fields.collect(), stands_out };
        self.rows.push(row);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The table's text, without spaces at the ends of lines.
    pub(crate) fn text(&self) -> String {
        match self.width {
            Some(width) if self.least_width() > usize::from(width) => self.blocks(width),
            width => self.table(width),
        }
    }

    /// The least width in which each figure and each usual word stays whole.
    fn least_width(&self) -> usize {
        let columns = self.header.iter().enumerate().map(|(place, (name, column))| {
            let fields = self.rows.iter().filter_map(|row| row.fields.get(place));
            let texts = std::iter::once(name).chain(fields);
            let least = texts.map(|text| match column {
                Column::Number => text.chars().count(),
                Column::Text | Column::Name => {
                    let words = text.split_whitespace().map(|word| word.chars().count());
                    words.max().unwrap_or(0).min(MAX_WORD_CHARS)
                }
            });
            least.max().unwrap_or(0) + PADDING
        });
        columns.sum()
    }

    fn table(&self, width: Option<u16>) -> String {
        let mut table = Table::new();
        table.force_no_tty();
        if let Some(width) = width {
            table.set_width(width);
        }
        if self.styled {
            table.enforce_styling();
        }
        table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
        table.set_header(self.header.iter().map(|(name, column)| self.cell(name, *column, true)));
        for row in &self.rows {
            let cells = row.fields.iter().zip(&self.header);
            let cells = cells.map(|(field, (_, column))| self.cell(field, *column, row.stands_out));
            table.add_row(cells.collect::<Vec<Cell>>());
        }
        if width.is_some() {
            for (shown, (_, column)) in table.column_iter_mut().zip(&self.header) {
                if *column == Column::Number {
                    shown.set_constraint(ColumnConstraint::ContentWidth);
                }
            }
        }
        table.trim_fmt()
    }

    fn cell(&self, text: &str, column: Column, stands_out: bool) -> Cell {
        let cell = match column {
            Column::Text | Column::Name => Cell::new(text),
            Column::Number => Cell::new(text).set_alignment(CellAlignment::Right),
        };
        if stands_out && self.styled { cell.add_attribute(Attribute::Bold) } else { cell }
    }

    /// Each row as lines of a column's name and its field, with a blank line between two rows.
    fn blocks(&self, width: u16) -> String {
        let longest = self.header.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
        let margin = longest + PADDING;
        let room = usize::from(width).saturating_sub(margin).max(1);
        let block = |row: &Row| {
            let fields = row.fields.iter().zip(&self.header).filter(|(field, _)| !field.is_empty());
            let lines = fields.flat_map(|(field, (name, _))| {
                let words = field.split_whitespace().map(|word| shortened(word, room));
                let words: Vec<String> = words.collect();
                let parts = wrapped(&words.join(" "), u16::try_from(room).unwrap_or(u16::MAX));
                let line = |(number, part): (usize, String)| {
                    let name = if number == 0 { name.as_str() } else { "" };
                    let gap = " ".repeat(margin - name.chars().count());
                    format!("{}{gap}{}", self.bold(name, true), self.bold(&part, row.stands_out))
                };
                parts.into_iter().enumerate().map(line).collect::<Vec<String>>()
            });
            lines.collect::<Vec<String>>().join("\n")
        };
        self.rows.iter().map(block).collect::<Vec<String>>().join("\n\n")
    }

    fn bold(&self, text: &str, stands_out: bool) -> String {
        match self.styled && stands_out && !text.is_empty() {
            true => format!("\u{1b}[1m{text}\u{1b}[0m"),
            false => text.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(width: Option<u16>) -> String {
        let mut grid = Grid::new(&[
            ("HOST", Column::Number),
            ("NAME", Column::Name),
            ("DEVICES", Column::Text),
            ("RAN OUT", Column::Number),
            ("LAST ERROR", Column::Text),
        ]);
        (grid.width, grid.styled) = (width, false);
        let error = "the trainer ended with signal 9".to_owned();
        grid.row(["1".to_owned(), "n".repeat(180), "cpu".to_owned(), "1200".to_owned(), error]);
        grid.row(["22", "lab", "cpu", "0", ""].map(str::to_owned));
        grid.text()
    }

    fn widest(text: &str) -> usize {
        text.lines().map(|line| line.chars().count()).max().unwrap_or(0)
    }

    #[test]
    fn a_pipe_gets_a_line_for_each_row_with_long_names_cut() {
        let text = hosts(None);
        assert_eq!(text.lines().count(), 3, "{text}");
        let name = shortened(&"n".repeat(180), MAX_NAME_CHARS);
        assert_eq!((name.chars().count(), name.contains('…')), (MAX_NAME_CHARS, true));
        assert!(text.contains(&format!(" {name} ")), "{text}");
    }

    #[test]
    fn a_terminal_of_80_columns_has_a_table_that_fits() {
        let text = hosts(Some(80));
        assert!(widest(&text) <= 80, "{text}");
        assert!(text.lines().next().unwrap().contains("RAN OUT"), "{text}");
        assert!(text.contains(" 1200 "), "{text}");
    }

    #[test]
    fn a_terminal_of_40_columns_has_a_block_for_each_row() {
        let text = hosts(Some(40));
        let name = shortened(&"n".repeat(40), 28);
        let rows = [
            format!("HOST        1\nNAME        {name}\nDEVICES     cpu\nRAN OUT     1200\n"),
            "LAST ERROR  the trainer ended with\n            signal 9\n\n".to_owned(),
            "HOST        22\nNAME        lab\nDEVICES     cpu\nRAN OUT     0".to_owned(),
        ];
        assert_eq!(text, rows.concat());
        assert!(widest(&text) <= 40, "{text}");
    }
}

//! The cells of a sheet, and the text of its rows.

use super::{Begins, Workbook, told};
use crate::{error::Problem, source::Raw};
use calamine::{DataRef, ExcelDateTime, XlsxCellReader};
use sojourn_protocol::quantity::SaturatingFrom as _;
use std::{
    fmt::Write as _,
    io::{self, BufReader, Read},
};

/// The part of a sheet that is its table, each number from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Used {
    /// The first row: those above it are titles.
    first_row: u32,
    /// The first and the last column.
    columns: (u32, u32),
}

/// Rows among which the first of the table is looked for.
const LOOKED_AT: usize = 50;

/// A row that has something, or several of them.
#[derive(Debug, Clone, Copy)]
struct Extent {
    row: u32,
    columns: (u32, u32),
    /// Cells that aren't empty.
    cells: u32,
}

impl Extent {
    fn add(&mut self, column: u32) {
        self.columns = (self.columns.0.min(column), self.columns.1.max(column));
        self.cells = self.cells.saturating_add(1);
    }
}

impl Used {
    /// Goes over all cells of a sheet; none where no row has two that aren't empty.
    pub(super) fn of(
        book: &mut Workbook,
        sheet: &str,
        begins: Begins,
    ) -> Result<Option<Self>, Problem> {
        let mut cells = told(|| book.worksheet_cells_reader(sheet)).map_err(damaged)?;
        // The last of them has all further rows too.
        let mut extents: Vec<Extent> = Vec::new();
        while let Some((row, column, _)) = next(&mut cells)? {
            let is_full = extents.len() > LOOKED_AT;
            match extents.last_mut().filter(|last| last.row == row || is_full) {
                Some(last) => last.add(column),
                None => extents.push(Extent { row, columns: (column, column), cells: 1 }),
            }
        }
        let looked_at = extents.get(..LOOKED_AT).unwrap_or(&extents);
        let fullest = looked_at.iter().map(|extent| extent.cells).max().unwrap_or(0);
        let is_first = |extent: &Extent| match begins {
            Begins::AtNames => extent.cells > 1 && extent.cells > fullest / 2,
            Begins::AtRows => extent.cells > 1,
        };
        let Some(first) = extents.iter().position(is_first) else { return Ok(None) };
        let table = extents.get(first..).unwrap_or_default();
        let columns = table.iter().map(|extent| extent.columns);
        let columns = columns.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
        Ok(columns
            .zip(table.first())
            .map(|(columns, first)| Self { first_row: first.row, columns }))
    }
}

/// The next cell that isn't empty, with its row and column.
fn next<'a>(
    cells: &mut XlsxCellReader<'a, BufReader<Raw>>,
) -> Result<Option<(u32, u32, DataRef<'a>)>, Problem> {
    while let Some(cell) = told(|| cells.next_cell_with_formula_metadata()).map_err(damaged)? {
        let (row, column) = cell.pos;
        if cell.formula.is_some() && cell.value == DataRef::Empty {
            return Err(Problem::FormulaWithoutValue(name_of(row, column)));
        }
        if !is_empty(&cell.value) {
            return Ok(Some((row, column, cell.value)));
        }
    }
    Ok(None)
}

fn damaged(reason: String) -> Problem {
    Problem::Damaged { how: "Excel", reason }
}

/// The name of a cell, such as `AB12`.
fn name_of(row: u32, column: u32) -> String {
    const LETTERS: u32 = 26;
    let (mut letters, mut rest) = (Vec::new(), column + 1);
    while rest > 0 {
        let letter = u8::saturating_from((rest - 1) % LETTERS);
        letters.push(char::from(b'A' + letter));
        rest = (rest - 1) / LETTERS;
    }
    let letters: String = letters.into_iter().rev().collect();
    format!("{letters}{}", u64::from(row) + 1)
}

fn is_empty(value: &DataRef<'_>) -> bool {
    match value {
        DataRef::Empty => true,
        DataRef::String(text) => text.is_empty(),
        DataRef::SharedString(text) => text.is_empty(),
        _ => false,
    }
}

/// The rows of a sheet as lines of CSV.
pub(super) struct Cells<'a> {
    cells: XlsxCellReader<'a, BufReader<Raw>>,
    used: Used,
    /// The row and the column of the next field.
    at: (u32, u32),
    line: Vec<u8>,
    /// Bytes of it that were taken.
    taken: usize,
    is_done: bool,
}

impl<'a> Cells<'a> {
    pub(super) fn open(book: &'a mut Workbook, sheet: &str, used: Used) -> Result<Self, String> {
        let cells = told(|| book.worksheet_cells_reader(sheet))?;
        let at = (used.first_row, used.columns.0);
        Ok(Self { cells, used, at, line: Vec::new(), taken: 0, is_done: false })
    }

    /// Writes what is between the last cell and the next, and that one.
    fn fill(&mut self) -> io::Result<()> {
        self.line.clear();
        self.taken = 0;
        let (first, last) = self.used.columns;
        let cell = loop {
            let cell = next(&mut self.cells);
            let cell = cell.map_err(|problem| io::Error::other(problem.to_string()))?;
            if cell.as_ref().is_none_or(|(row, ..)| *row >= self.used.first_row) {
                break cell;
            }
        };
        let Some((row, column, value)) = cell else {
            self.is_done = true;
            self.end_line(last);
            return Ok(());
        };
        if (row, column) < self.at || column > last {
            return Err(io::Error::other("its cells aren't in order"));
        }
        while self.at.0 < row {
            self.end_line(last);
            self.at = (self.at.0 + 1, first);
        }
        self.separate(column);
        field(&value, &mut self.line);
        // The separator behind a field comes with the next one.
        self.at.1 = column + 1;
        Ok(())
    }

    /// Writes the separators of the fields up to a column.
    fn separate(&mut self, column: u32) {
        let (first, _) = self.used.columns;
        // Behind a field its separator is due, at the beginning of a line it isn't.
        let due = if self.at.1 == first { column - first } else { column + 1 - self.at.1 };
        self.line.extend((0..due).map(|_| b','));
    }

    fn end_line(&mut self, last: u32) {
        // An empty row is an empty line.
        if self.at.1 != self.used.columns.0 {
            self.separate(last);
        }
        self.line.push(b'\n');
    }
}

impl Read for Cells<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.taken == self.line.len() && !self.is_done {
            self.fill()?;
        }
        let rest = self.line.get(self.taken..).unwrap_or_default();
        let count = rest.len().min(into.len());
        if let (Some(into), Some(from)) = (into.get_mut(..count), rest.get(..count)) {
            into.copy_from_slice(from);
        }
        self.taken += count;
        Ok(count)
    }
}

/// Appends the text of a value.
fn field(value: &DataRef<'_>, into: &mut Vec<u8>) {
    let text = match value {
        DataRef::Int(number) => number.to_string(),
        DataRef::Float(number) => number.to_string(),
        DataRef::Bool(truth) => truth.to_string(),
        DataRef::DateTime(moment) => moment_text(moment),
        DataRef::String(text) | DataRef::DateTimeIso(text) | DataRef::DurationIso(text) => {
            return quoted(text, into);
        }
        DataRef::SharedString(text) => return quoted(text, into),
        DataRef::Error(error) => error.to_string(),
        DataRef::Empty => return,
    };
    into.extend(text.into_bytes());
}

/// A date as ISO 8601 writes it, with the time where it has one; a time alone, or a length of time, as days.
fn moment_text(moment: &ExcelDateTime) -> String {
    if !moment.is_datetime() || moment.as_f64() < 1.0 {
        return moment.as_f64().to_string();
    }
    let (year, month, day, hour, minute, second, milli) = moment.to_ymd_hms_milli();
    let mut text = format!("{year:04}-{month:02}-{day:02}");
    if (hour, minute, second, milli) != (0, 0, 0, 0) {
        // Writing to memory doesn't fail.
        let _ = write!(text, "T{hour:02}:{minute:02}:{second:02}");
    }
    if milli != 0 {
        let _ = write!(text, ".{milli:03}");
    }
    text
}

/// Appends words as a field. A line break in a cell is a space, so that each row is a line.
fn quoted(text: &str, into: &mut Vec<u8>) {
    let is_plain = !text.contains(['"', ',', '\n', '\r']);
    if is_plain {
        return into.extend(text.bytes());
    }
    let text = text.replace("\r\n", " ").replace(['\n', '\r'], " ").replace('"', "\"\"");
    into.push(b'"');
    into.extend(text.bytes());
    into.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use calamine::ExcelDateTimeType;

    fn text(value: &DataRef<'_>) -> String {
        let mut into = Vec::new();
        field(value, &mut into);
        String::from_utf8(into).unwrap()
    }

    #[test]
    fn cells_are_named_as_sheets_show_them() {
        assert_eq!(name_of(0, 0), "A1");
        assert_eq!(name_of(11, 25), "Z12");
        assert_eq!(name_of(11, 26), "AA12");
        assert_eq!(name_of(1_048_575, 16_383), "XFD1048576");
    }

    #[test]
    fn values_are_written_as_a_csv_file_would_have_them() {
        let moment = |days| {
            text(&DataRef::DateTime(ExcelDateTime::new(days, ExcelDateTimeType::DateTime, false)))
        };
        assert_eq!(moment(45_382.0), "2024-03-31");
        assert_eq!(moment(45_382.5), "2024-03-31T12:00:00");
        assert_eq!(moment(0.25), "0.25");
        let length = ExcelDateTime::new(1.5, ExcelDateTimeType::TimeDelta, false);
        assert_eq!(text(&DataRef::DateTime(length)), "1.5");
        assert_eq!(text(&DataRef::Float(1234.5)), "1234.5");
        assert_eq!(text(&DataRef::Float(3.0)), "3");
        assert_eq!(text(&DataRef::Bool(true)), "true");
        assert_eq!(text(&DataRef::SharedString("a,\r\n\"b\"")), "\"a, \"\"b\"\"\"");
        assert_eq!(text(&DataRef::SharedString("né")), "né");
    }
}

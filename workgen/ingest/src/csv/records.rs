//! The records of a CSV source, parts in name order.

use super::{
    Csv,
    lines::{Lines, Record},
    split::visit,
};
use crate::{
    bounds::RowCount,
    error::{Place, Problem, RaggedHint},
    fields::{FieldSource as _, RecordError, Records},
    source::SourceFile,
};
use sojourn_protocol::{quantity::to_u64, spec::Separator};

/// A pass over the records.
pub(crate) struct CsvRecords<'a> {
    csv: &'a Csv,
    /// Parts that haven't been opened.
    parts: std::slice::Iter<'a, SourceFile>,
    lines: Option<Lines<'a>>,
    /// Bytes of the parts that are done.
    before: u64,
    line: u64,
    /// Counts the bytes of lines that are read again.
    read_again: RowCount,
}

impl<'a> CsvRecords<'a> {
    pub(super) fn new(csv: &'a Csv) -> Self {
        let read_again = RowCount::new(csv.bounds());
        Self { csv, parts: csv.parts.iter(), lines: None, before: 0, line: 0, read_again }
    }

    /// Where this line of the open part is.
    fn at(&self, line: u64) -> Place {
        let file = self.lines.as_ref().map_or("", |lines| lines.part.shown());
        Place { line: Some(line), ..Place::of(file) }
    }
}

/// The problem of a record with another number of values than there are columns.
fn ragged(record: &Record<'_>, actual: usize, csv: &Csv) -> Problem {
    let expected = csv.columns.len();
    if csv.has_given_names() {
        return Problem::NamedWidth { actual, expected };
    }
    let is_first = record.line == csv.header_line + 1;
    let ends_in_separator = record.text.last() == Some(&csv.separator.byte());
    let hint = if record.lines > 1 {
        RaggedHint::Lines(record.lines)
    } else if actual == expected + 1 && ends_in_separator {
        RaggedHint::LastSeparator
    } else if actual == expected + 1 && is_first && record.text.first() == Some(&b'"') {
        RaggedHint::RowNames
    } else if actual > expected && csv.separator == Separator::Comma {
        RaggedHint::Comma
    } else {
        RaggedHint::None
    };
    Problem::Ragged { actual, expected, hint }
}

impl Records for CsvRecords<'_> {
    fn advance(
        &mut self,
        mut take: impl FnMut(usize, &[u8]) -> Result<(), Problem>,
    ) -> Result<bool, RecordError> {
        let expected = self.csv.columns.len();
        let separator = self.csv.separator;
        loop {
            let Some(lines) = &mut self.lines else {
                let Some(part) = self.parts.next() else { return Ok(false) };
                let mut lines = Lines::open(part)?;
                if self.csv.has_header() {
                    lines.next(separator)?;
                }
                self.lines = Some(lines);
                continue;
            };
            let Some(record) = lines.next(separator)? else {
                self.before += lines.part.bytes();
                self.lines = None;
                continue;
            };
            // The last line of many files is empty, or of blanks; no row can be, it has two columns or more.
            if expected > 1 && record.text.iter().all(|byte| *byte == b' ') {
                continue;
            }
            self.line = record.line;
            let (index, problem) = match visit(record.text, separator.byte(), &mut take) {
                Ok(actual) if actual != expected => {
                    return Err(RecordError::Record(None, ragged(&record, actual, self.csv)));
                }
                Ok(_) => return Ok(true),
                // A stray quote goes on to the next one, which then has text behind it.
                Err((index, Problem::AfterQuote)) if record.lines > 1 => {
                    (index, Problem::OpenQuote)
                }
                Err(broken) => broken,
            };
            // The lines that a stray quote has swallowed are rows of their own.
            let bytes = record.text.len();
            if record.lines > 1 {
                self.read_again.add(to_u64(bytes))?;
                lines.take_back();
            }
            return Err(RecordError::Record(Some(index), problem));
        }
    }

    fn place(&self) -> Place {
        self.at(self.line)
    }

    fn bytes_read(&self) -> u64 {
        self.before + self.lines.as_ref().map_or(0, |lines| lines.bytes_read())
    }
}

//! The records of a CSV source: its lines, parts in name order.

use super::{Csv, lines::Lines, split::visit};
use crate::{
    error::{Place, Problem},
    fields::{RecordError, Records},
    source::SourceFile,
};
use sojourn_protocol::spec::Separator;

/// A pass over the lines.
pub(crate) struct CsvRecords<'a> {
    csv: &'a Csv,
    /// Parts that haven't been opened.
    parts: std::slice::Iter<'a, SourceFile>,
    lines: Option<Lines<'a>>,
    /// Bytes of the parts that are done.
    before: u64,
    line: u64,
}

impl<'a> CsvRecords<'a> {
    pub(super) fn new(csv: &'a Csv) -> Self {
        Self { csv, parts: csv.parts.iter(), lines: None, before: 0, line: 0 }
    }

    /// Where this line of the open part is.
    fn at(&self, line: u64) -> Place {
        let file = self.lines.as_ref().map_or("", |lines| lines.part.shown());
        Place { line: Some(line), ..Place::of(file) }
    }
}

/// Why there may be more values than columns.
fn ragged(actual: usize, expected: usize, separator: Separator) -> Problem {
    let hint = if actual > expected && separator == Separator::Comma {
        "; a value with a comma must be in quotes, and decimals need a point"
    } else {
        ""
    };
    Problem::Ragged { actual, expected, hint }
}

impl Records for CsvRecords<'_> {
    fn advance(
        &mut self,
        mut take: impl FnMut(usize, &[u8]) -> Result<(), Problem>,
    ) -> Result<bool, RecordError> {
        let expected = self.csv.columns.len();
        loop {
            let Some(lines) = &mut self.lines else {
                let Some(part) = self.parts.next() else { return Ok(false) };
                let mut lines = Lines::open(part)?;
                lines.next()?;
                self.lines = Some(lines);
                continue;
            };
            let Some((number, line)) = lines.next()? else {
                self.before += lines.part.bytes();
                self.lines = None;
                continue;
            };
            // The last line of many files is empty; no row can be, it has two columns or more.
            if line.is_empty() && expected > 1 {
                continue;
            }
            self.line = number;
            let separator = self.csv.separator;
            return match visit(line, separator.byte(), &mut take) {
                Ok(actual) if actual != expected => {
                    Err(self.at(number).refuse(ragged(actual, expected, separator)).into())
                }
                Ok(_) => Ok(true),
                Err((index, problem)) => Err(RecordError::Field(index, problem)),
            };
        }
    }

    fn place(&self) -> Place {
        self.at(self.line)
    }

    fn bytes_read(&self) -> u64 {
        self.before + self.lines.as_ref().map_or(0, |lines| lines.bytes_read())
    }
}

//! Lines of text, and the rows that they are.

use super::{
    Csv,
    fields::{number, visit},
    header::Role,
};
use crate::{
    error::{IngestError, Place, Problem},
    source::{SourceFile, Unpacked},
    table::{Pass, Rows},
};
use std::io::{BufRead, BufReader, Read};

/// Longest line that is read.
const MAX_LINE: u64 = 64 << 20;
const READ_BUFFER: usize = 1 << 20;
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// A pass over the rows, parts in name order.
pub(super) struct CsvRows<'a> {
    csv: &'a Csv,
    pass: Pass,
    /// Parts that haven't been opened.
    parts: std::slice::Iter<'a, SourceFile>,
    lines: Option<Lines<'a>>,
    /// Bytes of the parts that are done.
    before: u64,
    line: u64,
    numbers: Vec<f32>,
    label: Vec<u8>,
}

impl<'a> CsvRows<'a> {
    pub(super) fn new(csv: &'a Csv, pass: Pass) -> Self {
        let width = if pass == Pass::All { csv.schema.width } else { 0 };
        Self {
            csv,
            pass,
            parts: csv.parts.iter(),
            lines: None,
            before: 0,
            line: 0,
            numbers: vec![0.0; width],
            label: Vec::new(),
        }
    }

    fn place(&self) -> Place {
        let file = self.lines.as_ref().map_or("", |lines| lines.part.shown());
        Place { line: Some(self.line), ..Place::of(file) }
    }
}

/// Splits a line into the row's numbers (none are wanted where there is no room) and its label.
fn split(
    line: &[u8],
    roles: &[Role],
    numbers: &mut [f32],
    label: &mut Vec<u8>,
) -> Result<usize, (usize, Problem)> {
    visit(line, |index, field| {
        match roles.get(index) {
            Some(Role::Feature(place)) => {
                if let Some(into) = numbers.get_mut(*place) {
                    *into = number(field)?;
                }
            }
            Some(Role::Label) => {
                label.clear();
                label.extend_from_slice(field.trim_ascii());
            }
            Some(Role::Ignored) | None => {}
        }
        Ok(())
    })
}

impl Rows for CsvRows<'_> {
    fn advance(&mut self) -> Result<bool, IngestError> {
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
            if line.is_empty() && self.csv.roles.len() > 1 {
                continue;
            }
            self.line = number;
            let split = split(line, &self.csv.roles, &mut self.numbers, &mut self.label);
            let expected = self.csv.roles.len();
            return match split {
                Ok(actual) if actual == expected => Ok(true),
                Ok(actual) => Err(self.place().refuse(Problem::Ragged { actual, expected })),
                Err((index, problem)) => {
                    let column = self.csv.schema.columns.get(index).cloned();
                    Err(Place { column, ..self.place() }.refuse(problem))
                }
            };
        }
    }

    fn numbers(&self) -> &[f32] {
        match self.pass {
            Pass::All => &self.numbers,
            Pass::Labels => &[],
        }
    }

    fn label(&self) -> &[u8] {
        &self.label
    }

    fn label_place(&self) -> Place {
        Place { column: self.csv.label_name(), ..self.place() }
    }

    fn bytes_read(&self) -> u64 {
        self.before + self.lines.as_ref().map_or(0, |lines| lines.reader.get_ref().bytes_read())
    }
}

/// The lines of one file, with their numbers.
pub(super) struct Lines<'a> {
    part: &'a SourceFile,
    reader: BufReader<Unpacked>,
    line: Vec<u8>,
    number: u64,
}

impl<'a> Lines<'a> {
    pub(super) fn open(part: &'a SourceFile) -> Result<Self, IngestError> {
        let reader = BufReader::with_capacity(READ_BUFFER, part.read()?);
        Ok(Self { part, reader, line: Vec::new(), number: 0 })
    }

    /// The next line, without its end.
    pub(super) fn next(&mut self) -> Result<Option<(u64, &[u8])>, IngestError> {
        self.line.clear();
        let mut limited = (&mut self.reader).take(MAX_LINE);
        let read =
            limited.read_until(b'\n', &mut self.line).map_err(|error| self.part.failed(error))?;
        if read == 0 {
            return Ok(None);
        }
        self.number += 1;
        let mut line = self.line.as_slice();
        if let Some(rest) = line.strip_suffix(b"\n") {
            line = rest.strip_suffix(b"\r").unwrap_or(rest);
        } else if u64::try_from(read).is_ok_and(|read| read == MAX_LINE) {
            let place = Place { line: Some(self.number), ..Place::of(self.part.shown()) };
            return Err(place.refuse(Problem::LongLine { limit: MAX_LINE }));
        }
        if self.number == 1 {
            line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
        }
        Ok(Some((self.number, line)))
    }
}

//! The rows of a CSV source.

use super::{Csv, fields::visit, header::Role, lines::Lines};
use crate::{
    error::{IngestError, Place, Problem},
    number::number,
    source::SourceFile,
    table::{Pass, Rows},
};

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

/// Splits a line into the row's numbers (none if `numbers` is empty) and its label.
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
        self.before + self.lines.as_ref().map_or(0, |lines| lines.bytes_read())
    }
}

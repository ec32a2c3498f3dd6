//! The rows of a CSV source.

use super::{Csv, fields::visit, header::Role, lines::Lines};
use crate::{
    error::{IngestError, Place, Problem},
    number::{is_missing, number, shown},
    source::SourceFile,
    table::{Pass, Rows},
};
use sojourn_protocol::spec::{Missing, Separator};

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
    /// Rows left out.
    dropped: u64,
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
            dropped: 0,
            numbers: vec![0.0; width],
            label: Vec::new(),
        }
    }

    fn place(&self) -> Place {
        let file = self.lines.as_ref().map_or("", |lines| lines.part.shown());
        Place { line: Some(self.line), ..Place::of(file) }
    }
}

/// What a line holds.
struct Split {
    columns: usize,
    /// A value that is needed isn't there, and the job leaves such rows out.
    is_dropped: bool,
}

/// Splits a line into the row's numbers (none if `numbers` is empty) and its label.
fn split(
    line: &[u8],
    csv: &Csv,
    numbers: &mut [f32],
    label: &mut Vec<u8>,
) -> Result<Split, (usize, Problem)> {
    let drops = csv.missing == Missing::DropRow;
    let mut is_dropped = false;
    let columns = visit(line, csv.separator.byte(), |index, field| {
        match csv.roles.get(index) {
            Some(Role::Feature(_)) if drops && is_missing(field) => is_dropped = true,
            Some(Role::Feature(place)) => {
                if let Some(into) = numbers.get_mut(*place).filter(|_| !is_dropped) {
                    *into = number(field).or_else(|problem| instead(csv, field, problem))?;
                }
            }
            Some(Role::Label) => {
                label.clear();
                label.extend_from_slice(field.trim_ascii());
                // Other words may name a class.
                is_dropped |= drops && (label.is_empty() || label.eq_ignore_ascii_case(b"nan"));
            }
            Some(Role::Ignored) | None => {}
        }
        Ok(())
    })?;
    Ok(Split { columns, is_dropped })
}

/// The number of a feature that is none, where it is missing and that is provided for.
fn instead(csv: &Csv, field: &[u8], problem: Problem) -> Result<f32, Problem> {
    match csv.missing {
        _ if !is_missing(field) => Err(problem),
        Missing::Zero => Ok(0.0),
        // The other cases are refused before a model is there, by the job's key.
        Missing::Refuse if csv.is_labelled => {
            Err(Problem::MissingFeature(shown(field.trim_ascii())))
        }
        Missing::Refuse | Missing::DropRow => Err(problem),
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
            let split = split(line, self.csv, &mut self.numbers, &mut self.label);
            let expected = self.csv.roles.len();
            return match split {
                Ok(split) if split.columns != expected => {
                    let problem = ragged(split.columns, expected, self.csv.separator);
                    Err(self.place().refuse(problem))
                }
                Ok(split) if split.is_dropped => {
                    self.dropped += 1;
                    continue;
                }
                Ok(_) => Ok(true),
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

    fn dropped(&self) -> u64 {
        self.dropped
    }

    fn bytes_read(&self) -> u64 {
        self.before + self.lines.as_ref().map_or(0, |lines| lines.bytes_read())
    }
}

//! The rows of a CSV source.

use super::{
    Csv,
    coded::{Field, collect},
    fields::visit,
    header::Role,
    lines::Lines,
};
use crate::{
    error::{IngestError, Place, Problem},
    number::{is_missing, number, shown},
    source::SourceFile,
    table::{Pass, Rows},
    words::Words,
};
use sojourn_protocol::spec::{Missing, Separator};
use std::{collections::BTreeMap, mem};

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
    /// For each column of words, those that were found in this pass.
    found: Vec<Words>,
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
            found: vec![Words::default(); csv.coded.len()],
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

/// Splits a line into the row's numbers (none if `numbers` is empty), its label, and the words of columns whose words
/// aren't known.
fn split(
    line: &[u8],
    csv: &Csv,
    numbers: &mut [f32],
    label: &mut Vec<u8>,
    found: &mut [Words],
) -> Result<Split, (usize, Problem)> {
    let drops = csv.missing == Missing::DropRow;
    let mut is_dropped = false;
    let columns = visit(line, csv.separator.byte(), |index, field| {
        match csv.roles.get(index) {
            Some(Role::Feature { .. }) if drops && is_missing(field) => is_dropped = true,
            Some(Role::Feature { place, .. }) => {
                if let Some(into) = numbers.get_mut(*place).filter(|_| !is_dropped) {
                    *into = number(field)
                        .or_else(|problem| csv.instead((index, *place), field, problem))?;
                }
            }
            Some(Role::Words { column, .. }) => {
                let Some(coded) = csv.coded.get(*column) else { return Ok(()) };
                if let Some(found) = found.get_mut(*column).filter(|_| !coded.is_known()) {
                    is_dropped |= collect(found, field)? && drops;
                    return Ok(());
                }
                match coded.field(field)? {
                    Field::Word(place) => coded.write(place, numbers),
                    Field::Missing if drops => is_dropped = true,
                    Field::Missing => {
                        for place in coded.features() {
                            if let Some(into) = numbers.get_mut(place) {
                                *into = csv.instead((index, place), field, Problem::Missing)?;
                            }
                        }
                    }
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

impl Csv {
    /// What the feature at `place` is, in the column `index`, where its field is no number: something where it is missing and
    /// that is provided for.
    fn instead(
        &self,
        (index, place): (usize, usize),
        field: &[u8],
        problem: Problem,
    ) -> Result<f32, Problem> {
        if !is_missing(field) {
            return Err(match (problem, self.schema.columns.get(index)) {
                (Problem::NotANumber(word), Some(column)) if self.is_labelled => {
                    Problem::WordFeature { word, column: shown(column.as_bytes()) }
                }
                (problem, _) => problem,
            });
        }
        match self.missing {
            Missing::Zero => Ok(0.0),
            // The first pass over the rows, which finds the means, knows a missing one by this.
            Missing::Mean => Ok(self.fill.get(place).copied().unwrap_or(f32::NAN)),
            // The other cases are refused before a model is there, by the job's key.
            Missing::Refuse if self.is_labelled => {
                Err(Problem::MissingFeature(shown(field.trim_ascii())))
            }
            Missing::Refuse | Missing::DropRow => Err(problem),
        }
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
            let split = split(line, self.csv, &mut self.numbers, &mut self.label, &mut self.found);
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

    fn words(&mut self) -> BTreeMap<String, Words> {
        let columns = self.csv.coded.iter().zip(mem::take(&mut self.found));
        columns
            .filter(|(coded, _)| !coded.is_known())
            .map(|(coded, words)| (coded.column().to_owned(), words))
            .collect()
    }

    fn bytes_read(&self) -> u64 {
        self.before + self.lines.as_ref().map_or(0, |lines| lines.bytes_read())
    }
}

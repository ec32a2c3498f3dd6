//! Rows out of the fields of records.

use super::{
    FieldSource, FieldTable, RecordError, Records,
    coded::{Field, collect},
    header::Role,
};
use crate::{
    error::{IngestError, Place, Problem},
    number::{is_missing, number, shown, truth},
    table::{Pass, Rows},
    words::Words,
};
use sojourn_protocol::spec::Missing;
use std::{collections::BTreeMap, mem};

/// A pass over the rows.
pub(super) struct FieldRows<'a, S: FieldSource + 'a> {
    table: &'a FieldTable<S>,
    pass: Pass,
    records: S::Records<'a>,
    /// Rows left out.
    dropped: u64,
    numbers: Vec<f32>,
    /// How the values of each feature were written so far.
    written: Vec<Option<Written>>,
    label: Vec<u8>,
    /// For each column of words, those that were found in this pass.
    found: Vec<Words>,
}

impl<'a, S: FieldSource + 'a> FieldRows<'a, S> {
    pub(super) fn new(table: &'a FieldTable<S>, pass: Pass) -> Result<Self, IngestError> {
        let width = if pass == Pass::All { table.schema.width } else { 0 };
        Ok(Self {
            table,
            pass,
            records: table.source.records(table.needed(pass))?,
            dropped: 0,
            numbers: vec![0.0; width],
            written: vec![None; width],
            label: Vec::new(),
            found: vec![Words::default(); table.coded.len()],
        })
    }
}

/// How the values of a feature are written: all of them as numbers, or all as truth values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Written {
    Numbers,
    Truths,
}

/// A feature's value, in a column whose values were written so until now.
fn value(field: &[u8], written: &mut Option<Written>) -> Result<f32, Problem> {
    match (number(field), *written) {
        (Ok(number), None | Some(Written::Numbers)) => {
            *written = Some(Written::Numbers);
            Ok(number)
        }
        (Ok(_), Some(Written::Truths)) => Err(Problem::NoTruth(shown(field.trim_ascii()))),
        (Err(problem), Some(Written::Numbers)) => Err(problem),
        (Err(problem), None | Some(Written::Truths)) => {
            let truth = truth(field).ok_or(problem)?;
            *written = Some(Written::Truths);
            Ok(truth)
        }
    }
}

/// Where a record's fields go to.
struct Sink<'a, S> {
    table: &'a FieldTable<S>,
    /// The row's numbers; empty where they aren't wanted.
    numbers: &'a mut [f32],
    written: &'a mut [Option<Written>],
    label: &'a mut Vec<u8>,
    /// The words of columns whose words aren't known.
    found: &'a mut [Words],
    /// A value that is needed isn't there, and the job leaves such rows out.
    is_dropped: bool,
}

impl<S: FieldSource> Sink<'_, S> {
    /// Takes the field of the column `index`.
    fn take(&mut self, index: usize, field: &[u8]) -> Result<(), Problem> {
        let table = self.table;
        let drops = table.missing == Missing::DropRow;
        match table.roles.get(index) {
            Some(Role::Feature { .. }) if drops && is_missing(field) => self.is_dropped = true,
            Some(Role::Feature { place, .. }) => {
                let feature = self.numbers.get_mut(*place).zip(self.written.get_mut(*place));
                if let Some((into, written)) = feature.filter(|_| !self.is_dropped) {
                    *into = value(field, written)
                        .or_else(|problem| table.instead((index, *place), field, problem))?;
                }
            }
            Some(Role::Words { column, .. }) => {
                let Some(coded) = table.coded.get(*column) else { return Ok(()) };
                if let Some(found) = self.found.get_mut(*column).filter(|_| !coded.is_known()) {
                    self.is_dropped |= collect(found, field)? && drops;
                    return Ok(());
                }
                match coded.field(field)? {
                    Field::Word(place) => coded.write(place, self.numbers),
                    Field::Missing if drops => self.is_dropped = true,
                    Field::Missing => {
                        for place in coded.features() {
                            if let Some(into) = self.numbers.get_mut(place) {
                                *into = table.instead((index, place), field, Problem::Missing)?;
                            }
                        }
                    }
                }
            }
            Some(Role::Label) => {
                self.label.clear();
                self.label.extend_from_slice(field.trim_ascii());
                // Other words may name a class.
                let is_missing = self.label.is_empty() || self.label.eq_ignore_ascii_case(b"nan");
                self.is_dropped |= drops && is_missing;
            }
            Some(Role::Ignored) | None => {}
        }
        Ok(())
    }
}

impl<S: FieldSource> FieldTable<S> {
    /// The value of the feature at `place`, in the column `index`, where its field is no number: something where it is missing
    /// and that is provided for.
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

impl<S: FieldSource> Rows for FieldRows<'_, S> {
    fn advance(&mut self) -> Result<bool, IngestError> {
        loop {
            let mut sink = Sink {
                table: self.table,
                numbers: &mut self.numbers,
                written: &mut self.written,
                label: &mut self.label,
                found: &mut self.found,
                is_dropped: false,
            };
            match self.records.advance(|index, field| sink.take(index, field)) {
                Ok(true) if sink.is_dropped => self.dropped += 1,
                Ok(is_there) => return Ok(is_there),
                Err(RecordError::Other(error)) => return Err(error),
                Err(RecordError::Field(index, problem)) => {
                    let column = self.table.schema.columns.get(index).cloned();
                    return Err(Place { column, ..self.records.place() }.refuse(problem));
                }
            }
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
        Place { column: self.table.label_name(), ..self.records.place() }
    }

    fn dropped(&self) -> u64 {
        self.dropped
    }

    fn words(&mut self) -> BTreeMap<String, Words> {
        let columns = self.table.coded.iter().zip(mem::take(&mut self.found));
        columns
            .filter(|(coded, _)| !coded.is_known())
            .map(|(coded, words)| (coded.column().to_owned(), words))
            .collect()
    }

    fn bytes_read(&self) -> u64 {
        self.records.bytes_read()
    }
}

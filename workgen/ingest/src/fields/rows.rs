//! Rows out of the fields of records.

use super::{
    FieldSource, FieldTable, RecordError, Records,
    coded::{Field, collect},
    header::Role,
};
use crate::{
    bounds::RowCount,
    dates::{Date, is_date},
    error::{IngestError, Place, Problem},
    notation::plain,
    number::{number_in, shown, truth},
    table::{LeftOut, Pass, Rows, label_number},
    words::Words,
};
use sojourn_protocol::spec::{DateFeatures, Missing, Notation};
use std::{collections::BTreeMap, mem, ops::Range};

/// A pass over the rows.
pub(super) struct FieldRows<'a, S: FieldSource + 'a> {
    table: &'a FieldTable<S>,
    pass: Pass,
    records: S::Records<'a>,
    left_out: LeftOut,
    /// Rows that are left out take time too.
    passed_over: RowCount,
    numbers: Vec<f32>,
    /// How the values of each feature were written so far.
    written: Vec<Option<Written>>,
    label: Vec<u8>,
    /// Is the label, if it is a number, written with a decimal point?
    is_label_plain: bool,
    /// For each column of words, those that were found in this pass.
    found: Vec<Words>,
    /// For each column of dates, whether one with a time was found in this pass.
    has_time: Vec<bool>,
    /// Features whose manner of writing the present row was the first to show.
    shown: Vec<usize>,
}

impl<'a, S: FieldSource + 'a> FieldRows<'a, S> {
    pub(super) fn new(table: &'a FieldTable<S>, pass: Pass) -> Result<Self, IngestError> {
        let width = if pass == Pass::All { table.schema.width } else { 0 };
        Ok(Self {
            table,
            pass,
            records: table.source.records(table.needed(pass))?,
            left_out: LeftOut::default(),
            passed_over: RowCount::new(table.source.bounds()),
            numbers: vec![0.0; width],
            written: vec![None; width],
            label: Vec::new(),
            is_label_plain: true,
            found: vec![Words::default(); table.coded.len()],
            has_time: vec![false; table.dated.len()],
            shown: Vec::new(),
        })
    }

    /// A problem of the present record, in the column `index`.
    fn refuse(&self, index: usize, problem: Problem) -> IngestError {
        let column = self.table.schema.columns.get(index).filter(|name| !name.is_empty()).cloned();
        Place { column, ..self.records.place() }.refuse(problem)
    }
}

/// How the values of a feature are written: all of them as numbers, or all as truth values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Written {
    Numbers,
    Truths,
}

/// A feature's value, in a column whose values were written so until now.
fn value(field: &[u8], notation: Notation, written: &mut Option<Written>) -> Result<f32, Problem> {
    match (number_in(notation, field), *written) {
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
    is_label_plain: &'a mut bool,
    /// The words of columns whose words aren't known.
    found: &'a mut [Words],
    has_time: &'a mut [bool],
    shown: &'a mut Vec<usize>,
    /// A value that is needed isn't there, and the job leaves such rows out.
    lacks_value: bool,
    /// The row has no label, and is wanted for it.
    lacks_label: bool,
    /// The first thing that is wrong with the row, and its column: a row that is left out may have anything.
    problem: Option<(usize, Problem)>,
}

impl<S: FieldSource> Sink<'_, S> {
    /// Takes the field of the column `index`.
    fn take(&mut self, index: usize, field: &[u8]) {
        if let Err(problem) = self.read(index, field)
            && self.problem.is_none()
        {
            self.problem = Some((index, problem));
        }
    }

    fn read(&mut self, index: usize, field: &[u8]) -> Result<(), Problem> {
        let table = self.table;
        let drops = table.missing == Missing::DropRow;
        match table.roles.get(index) {
            Some(Role::Feature { .. }) if drops && table.missing_values.contains(field) => {
                self.lacks_value = true;
            }
            Some(Role::Feature { place, .. }) => {
                let feature = self.numbers.get_mut(*place).zip(self.written.get_mut(*place));
                if let Some((into, written)) = feature.filter(|_| !self.lacks_value) {
                    let was_shown = written.is_some();
                    let is_missing = table.missing_values.may_be_values()
                        && table.missing_values.contains(field);
                    let value = match is_missing {
                        true => Err(Problem::Missing),
                        false => value(field, table.notation, written),
                    };
                    if !was_shown && written.is_some() {
                        self.shown.push(*place);
                    }
                    *into =
                        value.or_else(|problem| table.instead((index, *place), field, problem))?;
                }
            }
            Some(Role::Words { column, .. }) => {
                let Some(coded) = table.coded.get(*column) else { return Ok(()) };
                if let Some(found) = self.found.get_mut(*column).filter(|_| !coded.is_known()) {
                    self.lacks_value |= collect(found, &table.missing_values, field)? && drops;
                    return Ok(());
                }
                match coded.field(field)? {
                    Field::Word(place) => coded.write(place, self.numbers),
                    Field::Missing if drops => self.lacks_value = true,
                    Field::Missing => self.write_missing(index, coded.features(), field)?,
                }
            }
            Some(Role::Date { .. }) if drops && table.missing_values.contains(field) => {
                self.lacks_value = true;
            }
            Some(Role::Date { column, .. }) => {
                let Some(dated) = table.dated.get(*column) else { return Ok(()) };
                if table.missing_values.contains(field) {
                    return self.write_missing(index, dated.places(), field);
                }
                let has_time = dated.write(field, self.numbers)?;
                if let Some(found) = self.has_time.get_mut(*column) {
                    *found |= has_time;
                }
            }
            Some(Role::Label) => self.read_label(field),
            Some(Role::Blank) if !field.trim_ascii().is_empty() => {
                return Err(Problem::ValueWithoutName { number: index + 1 });
            }
            Some(Role::Blank | Role::Ignored) | None => {}
        }
        Ok(())
    }

    /// Writes what is there instead of missing features of the column `index`.
    fn write_missing(
        &mut self,
        index: usize,
        places: Range<usize>,
        field: &[u8],
    ) -> Result<(), Problem> {
        for place in places {
            if let Some(into) = self.numbers.get_mut(place) {
                *into = self.table.instead((index, place), field, Problem::Missing)?;
            }
        }
        Ok(())
    }

    fn read_label(&mut self, field: &[u8]) {
        let table = self.table;
        self.label.clear();
        let field = field.trim_ascii();
        // Each row to predict has a prediction.
        self.lacks_label = table.is_labelled && table.missing_values.contains(field);
        let notation = table.notation;
        let text = std::str::from_utf8(field).ok().filter(|_| !notation.is_plain());
        let text = text.and_then(|text| plain(notation, text));
        *self.is_label_plain = notation.is_plain() || text.is_some();
        self.label.extend_from_slice(text.as_ref().map_or(field, |plain| plain.as_bytes()));
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
        if !self.missing_values.contains(field) {
            return Err(match (problem, self.schema.columns.get(index)) {
                (Problem::NotANumber(word), Some(column)) if self.is_labelled => {
                    let column = shown(column.as_bytes());
                    if Date::parse(&word).is_some() {
                        Problem::DateFeature { date: word, column }
                    } else if is_date(&word) {
                        Problem::OtherDate { date: word, column }
                    } else {
                        Problem::WordFeature { word, column }
                    }
                }
                // A model's rows are no job's, whose keys would read them.
                (Problem::OtherNotation { text, .. }, _) if !self.is_labelled => {
                    Problem::NotInNotation { text, notation: self.notation }
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
            self.shown.clear();
            let mut sink = Sink {
                table: self.table,
                numbers: &mut self.numbers,
                written: &mut self.written,
                label: &mut self.label,
                is_label_plain: &mut self.is_label_plain,
                found: &mut self.found,
                has_time: &mut self.has_time,
                shown: &mut self.shown,
                lacks_value: false,
                lacks_label: false,
                problem: None,
            };
            let next = self.records.advance(|index, field| {
                sink.take(index, field);
                Ok(())
            });
            let Sink { lacks_label, lacks_value, problem, .. } = sink;
            match next {
                Ok(true) if lacks_label || lacks_value => {
                    self.passed_over.add(0)?;
                    if lacks_label {
                        self.left_out.add_unlabelled(&self.label);
                    } else {
                        self.left_out.incomplete += 1;
                    }
                    for place in &self.shown {
                        if let Some(written) = self.written.get_mut(*place) {
                            *written = None;
                        }
                    }
                }
                Ok(true) => match problem {
                    None => return Ok(true),
                    Some((index, problem)) => return Err(self.refuse(index, problem)),
                },
                Ok(false) => return Ok(false),
                Err(RecordError::Other(error)) => return Err(error),
                Err(RecordError::Field(index, problem)) => return Err(self.refuse(index, problem)),
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

    fn label_number(&self) -> Result<f32, IngestError> {
        let plain = Notation::default();
        let notation = if self.is_label_plain { plain } else { self.table.notation };
        label_number(notation, &self.label).map_err(|problem| self.refuse_label(problem))
    }

    fn label_place(&self) -> Place {
        Place { column: self.table.label_name(), ..self.records.place() }
    }

    fn left_out(&self) -> &LeftOut {
        &self.left_out
    }

    fn words(&mut self) -> BTreeMap<String, Words> {
        let coded = self.table.coded.iter().zip(mem::take(&mut self.found));
        let coded = coded
            .filter(|(coded, _)| !coded.is_known())
            .map(|(coded, words)| (coded.column().to_owned(), words));
        let dated = self.table.dated.iter().zip(&self.has_time);
        let dated = dated.filter(|(dated, _)| !dated.is_known()).map(|(dated, has_time)| {
            let mut words = Words::default();
            if *has_time {
                words.add(DateFeatures::HOUR);
            }
            (dated.column().to_owned(), words)
        });
        coded.chain(dated).collect()
    }

    fn bytes_read(&self) -> u64 {
        self.records.bytes_read()
    }
}

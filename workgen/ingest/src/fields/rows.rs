//! Rows out of the fields of records.

use super::{
    FieldSource, FieldTable, RecordError, Records,
    coded::{Field, Found, find},
    header::Role,
};
use crate::{
    bad::{Flow, Rule},
    bounds::RowCount,
    dates::{Date, is_date},
    error::{BadRow, IngestError, MAX_TOLD, Place, Problem},
    notation::plain,
    number::{number_in, shown, truth},
    table::{LeftOut, Pass, Rows, class, label_number},
    words::Words,
};
use sojourn_protocol::spec::{DateFeatures, Loss, Missing, Notation};
use std::{collections::BTreeMap, mem, ops::Range};

/// A pass over the rows.
pub(super) struct FieldRows<'a, S: FieldSource + 'a> {
    table: &'a FieldTable<S>,
    pass: Pass,
    records: S::Records<'a>,
    rule: Rule,
    left_out: LeftOut,
    /// Problems, in a pass that lists them.
    listed: Vec<BadRow>,
    /// Rows that are left out take time too.
    passed_over: RowCount,
    numbers: Vec<f32>,
    /// How the values of each feature were written so far.
    written: Vec<Option<Written>>,
    label: Vec<u8>,
    /// Is the label, if it is a number, written with a decimal point?
    is_label_plain: bool,
    group: Vec<u8>,
    /// For each column of words, those that were found in this pass.
    found: Vec<Words>,
    /// For each column of dates, whether one with a time was found in this pass.
    has_time: Vec<bool>,
    fresh: Fresh,
}

/// The things that the present row is the first to have.
#[derive(Debug, Default)]
struct Fresh {
    /// Features whose manner of writing it shows.
    written: Vec<usize>,
    /// Words, each with its column of words.
    words: Vec<(usize, String)>,
    /// Columns of dates of which it has one with a time.
    times: Vec<usize>,
}

impl Fresh {
    fn clear(&mut self) {
        self.written.clear();
        self.words.clear();
        self.times.clear();
    }
}

impl<'a, S: FieldSource + 'a> FieldRows<'a, S> {
    pub(super) fn new(table: &'a FieldTable<S>, pass: Pass) -> Result<Self, IngestError> {
        let rule = pass.rule(table.on_bad_row);
        let width = if pass == Pass::Labels && !rule.goes_on() { 0 } else { table.schema.width };
        Ok(Self {
            table,
            pass,
            records: table.source.records(table.needed(pass))?,
            rule,
            left_out: LeftOut::default(),
            listed: Vec::new(),
            passed_over: RowCount::new(table.source.bounds()),
            numbers: vec![0.0; width],
            written: vec![None; width],
            label: Vec::new(),
            is_label_plain: true,
            group: Vec::new(),
            found: vec![Words::default(); table.coded.len()],
            has_time: vec![false; table.dated.len()],
            fresh: Fresh::default(),
        })
    }

    /// Where the present record is, and its column `index`.
    fn place(&self, index: Option<usize>) -> Place {
        let column = index.and_then(|index| self.table.schema.columns.get(index));
        Place { column: column.filter(|name| !name.is_empty()).cloned(), ..self.records.place() }
    }

    /// Forgets how the present row writes its features: it is left out.
    fn forget(&mut self) {
        for place in &self.fresh.written {
            if let Some(written) = self.written.get_mut(*place) {
                *written = None;
            }
        }
    }

    /// Keeps the words and times of the present row.
    fn keep(&mut self) {
        for (column, word) in self.fresh.words.drain(..) {
            if let Some(found) = self.found.get_mut(column) {
                found.add(&word);
            }
        }
        for column in &self.fresh.times {
            if let Some(has_time) = self.has_time.get_mut(*column) {
                *has_time = true;
            }
        }
    }

    /// A problem of the present row's label, for the loss that it is for.
    fn label_problem(&self) -> Option<Problem> {
        match self.table.loss? {
            Loss::CrossEntropy => class(&self.label).err(),
            Loss::Mse | Loss::Own => self.number_of_label().err(),
        }
    }

    fn number_of_label(&self) -> Result<f32, Problem> {
        let plain = Notation::default();
        let notation = if self.is_label_plain { plain } else { self.table.notation };
        label_number(notation, &self.label)
    }

    /// Treats the present row, which has these problems.
    fn treat(&mut self, problems: Vec<(Option<usize>, Problem)>) -> Result<Flow, IngestError> {
        self.passed_over.add(0)?;
        self.forget();
        let problems = problems.into_iter();
        let rows = problems.map(|(index, problem)| BadRow { at: self.place(index), problem });
        let rows = rows.collect();
        self.rule.treat(rows, &mut self.left_out.bad, &mut self.listed)
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
    group: &'a mut Vec<u8>,
    /// The words of columns whose words aren't known, without those of this row.
    found: &'a [Words],
    has_time: &'a [bool],
    fresh: &'a mut Fresh,
    /// A value that is needed isn't there, and the job leaves such rows out.
    lacks_value: bool,
    /// The row has no label, and is wanted for it.
    lacks_label: bool,
    /// The first things that are wrong with the row, and their columns: a row that is left out may have anything.
    problems: Vec<(Option<usize>, Problem)>,
}

impl<S: FieldSource> Sink<'_, S> {
    /// Takes the field of the column `index`.
    fn take(&mut self, index: usize, field: &[u8]) {
        if let Err(problem) = self.read(index, field)
            && self.problems.len() <= MAX_TOLD
        {
            self.problems.push((Some(index), problem));
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
                        self.fresh.written.push(*place);
                    }
                    *into =
                        value.or_else(|problem| table.instead((index, *place), field, problem))?;
                }
            }
            Some(Role::Words { column, .. }) => {
                let Some(coded) = table.coded.get(*column) else { return Ok(()) };
                if let Some(found) = self.found.get(*column).filter(|_| !coded.is_known()) {
                    match find(found, &table.missing_values, field)? {
                        Found::Known => {}
                        Found::New(word) => self.fresh.words.push((*column, word.to_owned())),
                        Found::Missing => self.lacks_value |= drops,
                    }
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
                if has_time && self.has_time.get(*column) == Some(&false) {
                    self.fresh.times.push(*column);
                }
            }
            Some(Role::Label) => self.read_label(field),
            Some(Role::Group) if table.missing_values.contains(field) => match drops {
                true => self.lacks_value = true,
                false => return Err(Problem::Missing),
            },
            Some(Role::Group) => {
                self.group.clear();
                self.group.extend_from_slice(field.trim_ascii());
            }
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
            self.fresh.clear();
            let mut sink = Sink {
                table: self.table,
                numbers: &mut self.numbers,
                written: &mut self.written,
                label: &mut self.label,
                is_label_plain: &mut self.is_label_plain,
                group: &mut self.group,
                found: &self.found,
                has_time: &self.has_time,
                fresh: &mut self.fresh,
                lacks_value: false,
                lacks_label: false,
                problems: Vec::new(),
            };
            let next = self.records.advance(|index, field| {
                sink.take(index, field);
                Ok(())
            });
            let Sink { lacks_label, lacks_value, mut problems, .. } = sink;
            match next {
                Ok(true) if lacks_label || lacks_value => {
                    self.passed_over.add(0)?;
                    if lacks_label {
                        self.left_out.add_unlabelled(&self.label);
                    } else {
                        self.left_out.incomplete += 1;
                    }
                    self.keep();
                    self.forget();
                    continue;
                }
                Ok(true) => {
                    let problem = self.rule.goes_on().then(|| self.label_problem()).flatten();
                    problems.extend(problem.map(|problem| (self.table.label, problem)));
                }
                Ok(false) => return Ok(false),
                Err(RecordError::Other(error)) => return Err(error),
                Err(RecordError::Field(index, problem)) => {
                    return Err(self.place(Some(index)).refuse(problem));
                }
                Err(RecordError::Record(index, problem)) => problems = vec![(index, problem)],
            }
            if problems.is_empty() {
                self.keep();
                return Ok(true);
            }
            if self.treat(problems)? == Flow::End {
                return Ok(false);
            }
        }
    }

    fn numbers(&self) -> &[f32] {
        match self.pass {
            Pass::All | Pass::Problems => &self.numbers,
            Pass::Labels => &[],
        }
    }

    fn label(&self) -> &[u8] {
        &self.label
    }

    fn group(&self) -> &[u8] {
        &self.group
    }

    fn label_number(&self) -> Result<f32, IngestError> {
        self.number_of_label().map_err(|problem| self.refuse_label(problem))
    }

    fn label_place(&self) -> Place {
        Place { column: self.table.label_name(), ..self.records.place() }
    }

    fn left_out(&self) -> &LeftOut {
        &self.left_out
    }

    fn listed(&mut self) -> Vec<BadRow> {
        mem::take(&mut self.listed)
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

//! Rows of fields under the names of columns: what CSV and Parquet have in common.
//!
//! A source gives the fields of a record as text, one after the other. Here they become the numbers of features, a label and
//! words, by the roles of their columns, and what is missing is dealt with as the job says. So equal fields are equal rows,
//! whatever file they come from.

mod coded;
mod dated;
mod header;
mod rows;

pub(crate) use header::{Names, Unnamed, choose, named, once, same};

use crate::{
    bounds::SharedBounds,
    error::{IngestError, Place, Problem},
    missing::MissingValues,
    names::listed,
    number::shown,
    table::{Pass, Reading, Rows, Schema, Table, Wanted},
    words::Words,
};
use coded::WordColumn;
use dated::DateColumn;
use header::Role;
use rows::FieldRows;
use sojourn_protocol::{
    bounds::MAX_FEATURES,
    quantity::SaturatingFrom as _,
    spec::{Categories, Header, Loss, Missing, Notation, OnBad},
};
use std::collections::{BTreeMap, BTreeSet};

/// Records of fields: a file, or parts with the same columns.
pub(crate) trait FieldSource: Send + Sync {
    /// A pass over them.
    type Records<'a>: Records
    where
        Self: 'a;

    /// The names of the columns in order; empty where one has none.
    fn columns(&self) -> &[String];
    /// The first file, as messages name it.
    fn first(&self) -> &str;
    /// Where the names of columns are in a file.
    fn header(&self, file: &str) -> Place;
    /// The end of the message that there is no column of the label's name.
    fn no_label(&self) -> Option<&'static str> {
        None
    }
    /// Is there a comment in the place of the names?
    fn has_comment(&self) -> bool {
        false
    }
    /// Are numbers written by people? Else they have a decimal point.
    fn is_text(&self) -> bool {
        false
    }
    /// Bytes of all files, for progress.
    fn bytes(&self) -> u64;
    /// The bounds of reading.
    fn bounds(&self) -> SharedBounds;
    /// Refuses columns that can't be read, of those that are needed.
    fn check(&self, _needed: &[Need]) -> Result<(), IngestError> {
        Ok(())
    }
    /// Begins a pass over the columns that are needed; others needn't be read.
    fn records(&self, needed: Vec<Need>) -> Result<Self::Records<'_>, IngestError>;
}

/// The purpose for which the fields of a column are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    Nothing,
    Value,
    Label,
}

/// A pass over records, in the order of files and of records in them.
pub(crate) trait Records: Send {
    /// Calls `take` with the needed fields of the next record, each with the index of its column; `false` after the last record.
    fn advance(
        &mut self,
        take: impl FnMut(usize, &[u8]) -> Result<(), Problem>,
    ) -> Result<bool, RecordError>;
    /// Where the record is.
    fn place(&self) -> Place;
    /// Bytes read so far in this pass.
    fn bytes_read(&self) -> u64;
}

/// Why there is no next record.
#[derive(Debug)]
pub(crate) enum RecordError {
    /// The record can't be read, and the one behind it may be: the column, where it is about one.
    Record(Option<usize>, Problem),
    /// Something in the field of this column.
    Field(usize, Problem),
    /// Something else.
    Other(IngestError),
}

impl From<IngestError> for RecordError {
    fn from(error: IngestError) -> Self {
        RecordError::Other(error)
    }
}

/// Rows made of fields.
#[derive(Debug, Clone)]
pub(crate) struct FieldTable<S> {
    source: S,
    schema: Schema,
    /// The role of each column.
    roles: Vec<Role>,
    /// Columns of words.
    coded: Vec<WordColumn>,
    /// Columns of dates.
    dated: Vec<DateColumn>,
    label: Option<usize>,
    missing: Missing,
    on_bad_row: OnBad,
    /// The loss that labels are for.
    loss: Option<Loss>,
    missing_values: MissingValues,
    notation: Notation,
    unnamed: Vec<Unnamed>,
    /// The values of missing features, where they are to be the mean; none until it is known.
    fill: Vec<f32>,
    /// Is it read to train on?
    is_labelled: bool,
}

impl<S: FieldSource> FieldTable<S> {
    /// Finds the roles of the columns of `source`, which the job calls `shown`.
    pub(crate) fn open(
        shown: &str,
        source: S,
        label: Option<&str>,
        reading: Reading<'_>,
    ) -> Result<Self, IngestError> {
        let (wanted, text) = (reading.wanted, reading.text);
        let columns = source.columns().to_vec();
        let first = source.first().to_owned();
        let header = source.header(&first);
        let found = find(&source, &header, label, reading).map_err(|error| {
            let is_lacking = |problem: &Problem| {
                matches!(
                    problem,
                    Problem::NoLabel { .. } | Problem::NoColumn { .. } | Problem::NoTable { .. }
                )
            };
            let is_lacking =
                matches!(&error, IngestError::Data { problem, .. } if is_lacking(problem));
            if is_lacking && source.has_comment() {
                return header.clone().refuse(Problem::Comment);
            }
            error
        })?;
        let FoundColumns { label, mut features, unnamed } = found;
        let groups = match text.groups {
            Some(name) => Some(header::find_groups(&header, &columns, name)?),
            None => None,
        };
        features.retain(|feature| Some(*feature) != groups);
        if features.is_empty() && groups.is_some() {
            return Err(header.refuse(Problem::NoFeatures));
        }
        header::once(&header, &columns, features.iter().copied().chain(label).chain(groups))?;
        let mut roles = header::roles(columns.len(), label, &unnamed, &features);
        if let Some(role) = groups.and_then(|groups| roles.get_mut(groups)) {
            *role = Role::Group;
        }
        let notation = if source.is_text() { text.dialect.numbers } else { Notation::default() };
        let missing_values = MissingValues::new(text.dialect.missing_values.as_deref(), notation);
        let coded = header::code(&header, &columns, &mut roles, text.categories, &missing_values)?;
        let dates = &text.dialect.dates;
        let dated = dated::find(&header, &columns, &mut roles, dates, text.hours)?;
        let named = |wanted: fn(&Role) -> bool| -> Vec<String> {
            let columns = columns.iter().zip(&roles);
            let named = columns.filter(|(name, role)| !name.is_empty() && wanted(role));
            named.map(|(name, _)| name.clone()).collect()
        };
        let schema = Schema {
            shown: shown.to_owned(),
            first,
            ignored: named(|role| matches!(role, Role::Ignored)),
            shape: Vec::new(),
            width: 0,
            features: Vec::new(),
            columns,
            has_labels: label.is_some(),
        };
        let is_labelled = matches!(wanted, Wanted::Labelled);
        let (missing, fill) = (text.missing, text.fill.to_vec());
        let mut table = Self {
            source,
            schema,
            roles,
            coded,
            dated,
            label,
            missing,
            on_bad_row: text.on_bad_row,
            loss: text.loss,
            missing_values,
            notation,
            unnamed,
            fill,
            is_labelled,
        };
        table.place()?;
        table.source.check(&table.needed(Pass::All))?;
        Ok(table)
    }

    /// Columns without a name that are left out.
    pub(crate) fn unnamed(&self) -> &[Unnamed] {
        &self.unnamed
    }

    /// The columns that a pass looks at.
    fn needed(&self, pass: Pass) -> Vec<Need> {
        let need = |role: &Role| match role {
            Role::Label => Need::Label,
            Role::Words { .. } | Role::Date { .. } | Role::Group | Role::Blank => Need::Value,
            // Whether it is missing, or can be read, decides if there is a row.
            Role::Feature { .. } if pass != Pass::Labels || self.missing == Missing::DropRow => {
                Need::Value
            }
            Role::Feature { .. } if pass.rule(self.on_bad_row).goes_on() => Need::Value,
            Role::Feature { .. } | Role::Ignored => Need::Nothing,
        };
        self.roles.iter().map(need).collect()
    }

    /// Places the features in a row: a column of words may be several of them.
    fn place(&mut self) -> Result<(), IngestError> {
        let mut columns: Vec<(usize, usize)> = self
            .roles
            .iter()
            .enumerate()
            .filter_map(|(index, role)| Some((role.slot()?, index)))
            .collect();
        columns.sort_unstable();
        let mut features: Vec<String> = Vec::with_capacity(columns.len());
        for (_, index) in columns {
            let next = features.len();
            match self.roles.get_mut(index) {
                Some(Role::Words { column, .. }) => {
                    if let Some(coded) = self.coded.get_mut(*column) {
                        features.extend(coded.place(next));
                    }
                }
                Some(Role::Date { column, .. }) => {
                    if let Some(dated) = self.dated.get_mut(*column) {
                        features.extend(dated.place(next));
                    }
                }
                Some(Role::Feature { place, .. }) => {
                    *place = next;
                    features.extend(self.schema.columns.get(index).cloned());
                }
                Some(Role::Label | Role::Group | Role::Ignored | Role::Blank) | None => {}
            }
            if features.len() > MAX_FEATURES {
                return Err(self.refuse(Problem::TooManyFeatures { limit: MAX_FEATURES }));
            }
        }
        let mut names = BTreeSet::new();
        if let Some(twice) = features.iter().find(|name| !names.insert(name.as_str())) {
            return Err(self.refuse(Problem::SameFeature(shown(twice.as_bytes()))));
        }
        self.schema.shape = vec![u32::saturating_from(features.len())];
        self.schema.width = features.len();
        self.schema.features = features;
        Ok(())
    }

    fn label_name(&self) -> Option<String> {
        self.label.and_then(|index| self.schema.columns.get(index)).cloned()
    }
}

impl<S: FieldSource> Table for FieldTable<S> {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn bytes(&self, _: Pass) -> u64 {
        self.source.bytes()
    }

    fn rows(&self, pass: Pass) -> Result<Box<dyn Rows + '_>, IngestError> {
        Ok(Box::new(FieldRows::new(self, pass)?))
    }

    fn fits(&self, train: &Schema) -> Result<(), IngestError> {
        if !train.columns.is_empty() {
            let header = self.source.header(self.source.first());
            // One file of a data frame may have its index, and another not.
            let named = |columns: &[String]| -> Vec<String> {
                columns.iter().filter(|name| !name.is_empty()).cloned().collect()
            };
            same(&header, &named(&self.schema.columns), &named(&train.columns), &train.first)?;
            // Positions count columns without a name, which only one of the files may have.
            if self.schema.ignored != train.ignored {
                let listed =
                    |names: &[String]| names.iter().map(|name| shown(name.as_bytes())).collect();
                let (actual, expected) = (listed(&self.schema.ignored), listed(&train.ignored));
                let of = train.first.clone();
                return Err(header.refuse(Problem::OthersLeftOut(Box::new((actual, expected, of)))));
            }
            return Ok(());
        }
        if self.schema.width == train.width {
            return Ok(());
        }
        Err(self.refuse(Problem::RowShape {
            actual: self.schema.shape.clone(),
            expected: train.shape.clone(),
            of: train.first.clone(),
        }))
    }

    fn set_words(&mut self, words: &BTreeMap<String, Words>) -> Result<(), IngestError> {
        for coded in &mut self.coded {
            if let Some(words) = words.get(coded.column()) {
                coded.set_words(words.clone().in_order());
            }
            if !coded.is_known() {
                let column = Some(coded.column().to_owned());
                let place = Place { column, ..Place::of(&self.schema.first) };
                return Err(place.refuse(Problem::NoWords));
            }
        }
        self.dated.iter_mut().for_each(|dated| dated.set_found(words));
        self.place()
    }

    fn categories(&self) -> Vec<Categories> {
        let mut all: Vec<Categories> = self.coded.iter().map(WordColumn::categories).collect();
        all.sort_by_key(|coded| coded.first);
        all
    }

    fn set_fill(&mut self, fill: &[f32]) {
        self.fill = fill.to_vec();
    }

    fn on_bad(&self) -> OnBad {
        self.on_bad_row
    }

    fn labels_place(&self) -> Place {
        Place { column: self.label_name(), ..Place::of(&self.schema.shown) }
    }
}

/// The columns that are looked at.
struct FoundColumns {
    label: Option<usize>,
    /// The columns of features, in order.
    features: Vec<usize>,
    unnamed: Vec<Unnamed>,
}

/// Finds the columns that `reading` wants.
fn find<S: FieldSource>(
    source: &S,
    header: &Place,
    label: Option<&str>,
    reading: Reading<'_>,
) -> Result<FoundColumns, IngestError> {
    let (wanted, text) = (reading.wanted, reading.text);
    let columns = source.columns();
    let label = match (wanted, label) {
        (Wanted::Labelled, Some(label)) => {
            Some(header::find_label(header, columns, label, source.no_label())?)
        }
        (Wanted::Labelled, None) => {
            let columns = listed(columns);
            return Err(Place::of(&header.file).refuse(Problem::LabelUnsaid(columns)));
        }
        (Wanted::Features(_), label) => {
            columns.iter().position(|name| Some(name.as_str()) == label)
        }
    };
    let mut unnamed = header::unnamed(columns);
    let all_but_label = || (0..columns.len()).filter(|index| Some(*index) != label).collect();
    let features = match (wanted, text.columns) {
        (Wanted::Features(names @ [_, ..]), _) => {
            unnamed.clear();
            let is_by_position = text.dialect.header == Some(Header::Position);
            header::find(header, columns, names, is_by_position)?
        }
        (Wanted::Features([]), _) | (Wanted::Labelled, None) => {
            header::named(header, columns, &unnamed, all_but_label())?
        }
        (Wanted::Labelled, Some(chosen)) => {
            let features = header::choose(header, columns, label, chosen)?;
            // A column that the job leaves out may hold anything.
            unnamed
                .retain(|unnamed| chosen.dropped().is_some() && features.contains(&unnamed.column));
            header::named(header, columns, &unnamed, features)?
        }
    };
    if features.is_empty() && matches!(wanted, Wanted::Labelled) {
        return Err(header.clone().refuse(Problem::NoFeatures));
    }
    Ok(FoundColumns { label, features, unnamed })
}

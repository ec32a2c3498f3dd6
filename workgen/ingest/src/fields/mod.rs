//! Rows of fields under the names of columns: what CSV and Parquet have in common.
//!
//! A source gives the fields of a record as text, one after the other. Here they become the numbers of features, a label and
//! words, by the roles of their columns, and what is missing is dealt with as the job says. So equal fields are equal rows,
//! whatever file they come from.

mod coded;
mod header;
mod rows;

pub(crate) use header::{Names, choose, same};

use crate::{
    error::{IngestError, Place, Problem},
    names::listed,
    number::shown,
    table::{Pass, Reading, Rows, Schema, Table, Wanted},
    words::Words,
};
use coded::WordColumn;
use header::Role;
use rows::FieldRows;
use sojourn_protocol::{
    bounds::MAX_FEATURES,
    quantity::SaturatingFrom as _,
    spec::{Categories, Missing},
};
use std::collections::{BTreeMap, BTreeSet};

/// Records of fields: a file, or parts with the same columns.
pub(crate) trait FieldSource: Send + Sync {
    /// A pass over them.
    type Records<'a>: Records
    where
        Self: 'a;

    /// The names of the columns in order, each once.
    fn columns(&self) -> &[String];
    /// The first file, as messages name it.
    fn first(&self) -> &str;
    /// Where the names of columns are in a file.
    fn header(&self, file: &str) -> Place;
    /// Bytes of all files, for progress.
    fn bytes(&self) -> u64;
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
    label: Option<usize>,
    missing: Missing,
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
        let label = match wanted {
            Wanted::Labelled => match label {
                Some(label) => Some(header::find_label(&header, &columns, label)?),
                None => {
                    let columns = listed(&columns);
                    return Err(Place::of(&first).refuse(Problem::LabelUnsaid(columns)));
                }
            },
            Wanted::Features(_) => columns.iter().position(|name| Some(name.as_str()) == label),
        };
        let chosen = match text.columns {
            Some(chosen) => {
                let chosen = choose(&header, &columns, label, chosen)?;
                if chosen.is_empty() {
                    return Err(header.refuse(Problem::NoFeatures));
                }
                chosen
            }
            None => Vec::new(),
        };
        let names = match wanted {
            Wanted::Features(names) => names,
            Wanted::Labelled => &chosen,
        };
        let mut roles = header::roles(&header, &columns, label, names)?;
        let coded = header::code(&header, &columns, &mut roles, text.categories)?;
        let named = |wanted: fn(&Role) -> bool| -> Vec<String> {
            let columns = columns.iter().zip(&roles);
            columns.filter(|(_, role)| wanted(role)).map(|(name, _)| name.clone()).collect()
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
        let mut table = Self { source, schema, roles, coded, label, missing, fill, is_labelled };
        table.place()?;
        table.source.check(&table.needed(Pass::All))?;
        Ok(table)
    }

    /// The columns that a pass looks at.
    fn needed(&self, pass: Pass) -> Vec<Need> {
        let need = |role: &Role| match role {
            Role::Label => Need::Label,
            Role::Words { .. } => Need::Value,
            // Whether it is missing decides if there is a row.
            Role::Feature { .. } if pass == Pass::All || self.missing == Missing::DropRow => {
                Need::Value
            }
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
                Some(Role::Feature { place, .. }) => {
                    *place = next;
                    features.extend(self.schema.columns.get(index).cloned());
                }
                Some(Role::Label | Role::Ignored) | None => {}
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
            return same(&header, &self.schema.columns, &train.columns, &train.first);
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

    fn labels_place(&self) -> Place {
        Place { column: self.label_name(), ..Place::of(&self.schema.shown) }
    }
}

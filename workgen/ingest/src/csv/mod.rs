//! CSV: a file, or a folder of parts with one header.

mod coded;
mod fields;
mod header;
mod lines;
mod rows;
mod separator;

use crate::{
    error::{IngestError, Place, Problem},
    number::shown,
    source::SourceFile,
    table::{Pass, Reading, Rows, Schema, Table, Wanted},
    words::Words,
};
use coded::WordColumn;
use header::Role;
use rows::CsvRows;
use sojourn_protocol::{
    bounds::MAX_FEATURES,
    quantity::SaturatingFrom as _,
    spec::{Categories, Missing, Separator},
};
use std::collections::{BTreeMap, BTreeSet};

/// Rows as text.
#[derive(Debug, Clone)]
pub(crate) struct Csv {
    parts: Vec<SourceFile>,
    schema: Schema,
    /// The role of each column.
    roles: Vec<Role>,
    /// Columns of words.
    coded: Vec<WordColumn>,
    label: Option<usize>,
    separator: Separator,
    missing: Missing,
    /// What missing features are, where they are to be the mean; none until it is known.
    fill: Vec<f32>,
    /// Is it read to train on?
    is_labelled: bool,
}

impl Csv {
    /// Reads the headers of `parts`; also returns the separator of the first, where it was found out and is no comma.
    pub(crate) fn open(
        shown: &str,
        parts: Vec<SourceFile>,
        label: Option<&str>,
        reading: Reading<'_>,
    ) -> Result<(Self, Option<(String, Separator)>), IngestError> {
        let (wanted, text) = (reading.wanted, reading.text);
        let looked_for = match wanted {
            Wanted::Features([first, ..]) => Some(first.as_str()),
            Wanted::Labelled | Wanted::Features([]) => label,
        };
        let separator = match (text.separator, parts.first()) {
            (Some(said), _) => said,
            (None, Some(part)) => separator::find(&header::line(part)?, looked_for),
            (None, None) => Separator::Comma,
        };
        let mut columns: Vec<String> = Vec::new();
        for part in &parts {
            let found = header::read(part, separator)?;
            match parts.first() {
                Some(first) if !columns.is_empty() => {
                    header::same(part, &found, &columns, first.shown())?;
                }
                _ => columns = found,
            }
        }
        let first = parts.first().map_or(shown, SourceFile::shown);
        let label = match wanted {
            Wanted::Labelled => match label {
                Some(label) => Some(header::find_label(first, &columns, label)?),
                None => return Err(Place::of(first).refuse(Problem::LabelUnsaid)),
            },
            Wanted::Features(_) => columns.iter().position(|name| Some(name.as_str()) == label),
        };
        let chosen = text.columns.map(|chosen| header::choose(first, &columns, label, chosen));
        let chosen = chosen.transpose()?.unwrap_or_default();
        let names = match wanted {
            Wanted::Features(names) => names,
            Wanted::Labelled => &chosen,
        };
        let mut roles = header::roles(first, &columns, label, names)?;
        let coded = header::code(first, &columns, &mut roles, text.categories)?;
        let named = |wanted: fn(&Role) -> bool| -> Vec<String> {
            let columns = columns.iter().zip(&roles);
            columns.filter(|(_, role)| wanted(role)).map(|(name, _)| name.clone()).collect()
        };
        let schema = Schema {
            shown: shown.to_owned(),
            first: first.to_owned(),
            ignored: named(|role| matches!(role, Role::Ignored)),
            shape: Vec::new(),
            width: 0,
            features: Vec::new(),
            columns,
            has_labels: label.is_some(),
        };
        let found = text.separator.is_none() && separator != Separator::Comma;
        let found = found.then(|| (schema.first.clone(), separator));
        let is_labelled = matches!(wanted, Wanted::Labelled);
        let (missing, fill) = (text.missing, text.fill.to_vec());
        let mut csv =
            Self { parts, schema, roles, coded, label, separator, missing, fill, is_labelled };
        csv.place()?;
        Ok((csv, found))
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

impl Table for Csv {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn bytes(&self, _: Pass) -> u64 {
        self.parts.iter().map(SourceFile::bytes).sum()
    }

    fn rows(&self, pass: Pass) -> Result<Box<dyn Rows + '_>, IngestError> {
        Ok(Box::new(CsvRows::new(self, pass)))
    }

    fn fits(&self, train: &Schema) -> Result<(), IngestError> {
        match self.parts.first() {
            Some(part) if !train.columns.is_empty() => {
                header::same(part, &self.schema.columns, &train.columns, &train.first)
            }
            _ if self.schema.width == train.width => Ok(()),
            _ => Err(self.refuse(Problem::RowShape {
                actual: self.schema.shape.clone(),
                expected: train.shape.clone(),
                of: train.first.clone(),
            })),
        }
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

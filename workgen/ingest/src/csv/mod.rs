//! CSV: a file, or a folder of parts with one header.

mod fields;
mod header;
mod lines;
mod rows;
mod separator;

use crate::{
    error::{IngestError, Place, Problem},
    source::SourceFile,
    table::{Pass, Reading, Rows, Schema, Table, Wanted},
};
use header::Role;
use rows::CsvRows;
use sojourn_protocol::{
    quantity::SaturatingFrom as _,
    spec::{Missing, Separator},
};

/// Rows as text.
#[derive(Debug, Clone)]
pub(crate) struct Csv {
    parts: Vec<SourceFile>,
    schema: Schema,
    /// The role of each column.
    roles: Vec<Role>,
    label: Option<usize>,
    separator: Separator,
    missing: Missing,
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
            Wanted::Labelled => {
                let label = label.unwrap_or_default();
                Some(header::find_label(first, &columns, label)?)
            }
            Wanted::Features(_) => columns.iter().position(|name| Some(name.as_str()) == label),
        };
        let chosen = text.columns.map(|chosen| header::choose(first, &columns, label, chosen));
        let chosen = chosen.transpose()?.unwrap_or_default();
        let names = match wanted {
            Wanted::Features(names) => names,
            Wanted::Labelled => &chosen,
        };
        let roles = header::roles(first, &columns, label, names)?;
        let named = |wanted: fn(&Role) -> bool| -> Vec<String> {
            let columns = columns.iter().zip(&roles);
            columns.filter(|(_, role)| wanted(role)).map(|(name, _)| name.clone()).collect()
        };
        let features = match names {
            [] => named(|role| matches!(role, Role::Feature(_))),
            names => names.to_vec(),
        };
        let schema = Schema {
            shown: shown.to_owned(),
            first: first.to_owned(),
            ignored: named(|role| matches!(role, Role::Ignored)),
            shape: vec![u32::saturating_from(features.len())],
            width: features.len(),
            features,
            columns,
            has_labels: label.is_some(),
        };
        let found = text.separator.is_none() && separator != Separator::Comma;
        let found = found.then(|| (schema.first.clone(), separator));
        let is_labelled = matches!(wanted, Wanted::Labelled);
        let missing = text.missing;
        Ok((Self { parts, schema, roles, label, separator, missing, is_labelled }, found))
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

    fn labels_place(&self) -> Place {
        Place { column: self.label_name(), ..Place::of(&self.schema.shown) }
    }
}

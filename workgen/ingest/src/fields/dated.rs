//! Columns of dates, and the features that they become.

use super::header::{self, Role};
use crate::{
    dates::Date,
    error::{IngestError, Place, Problem},
    names,
    number::shown,
    words::Words,
};
use sojourn_protocol::spec::DateFeatures;
use std::{collections::BTreeMap, ops::Range};

/// A column of dates.
#[derive(Debug, Clone)]
pub(super) struct DateColumn {
    column: String,
    features: DateFeatures,
    /// Is the hour a feature? Not known before the training file was read.
    has_hour: Option<bool>,
    /// The index of its first feature.
    first: usize,
}

impl DateColumn {
    pub(super) fn column(&self) -> &str {
        &self.column
    }

    /// Are its features known?
    pub(super) fn is_known(&self) -> bool {
        self.has_hour.is_some()
    }

    /// Places its features behind `first` others; returns their names.
    pub(super) fn place(&mut self, first: usize) -> Vec<String> {
        self.first = first;
        self.features.features(&self.column, self.has_hour())
    }

    fn has_hour(&self) -> bool {
        self.has_hour == Some(true)
    }

    /// The places of the column's features in a row.
    pub(super) fn places(&self) -> Range<usize> {
        let hour = usize::from(self.has_hour());
        let width = match self.features {
            DateFeatures::Days => 1,
            DateFeatures::Parts => DateFeatures::PARTS.len().saturating_add(hour),
        };
        self.first..self.first.saturating_add(width)
    }

    /// Writes the numbers of a field into a row, if there is one. Returns whether the date has a time.
    pub(super) fn write(&self, field: &[u8], row: &mut [f32]) -> Result<bool, Problem> {
        let text = std::str::from_utf8(field).map_err(|_| Problem::UnknownEncoding)?;
        let no_date = || Problem::NoDate(shown(field.trim_ascii()));
        let date = Date::parse(text).ok_or_else(no_date)?;
        let Some(features) = row.get_mut(self.places()) else { return Ok(date.has_time()) };
        let parts = [
            f32::from(date.year),
            f32::from(date.month),
            f32::from(date.day),
            f32::from(date.weekday()),
            f32::from(date.hour()),
        ];
        match self.features {
            #[expect(clippy::cast_possible_truncation, reason = "features are single precision")]
            DateFeatures::Days => features.fill(date.days() as f32),
            DateFeatures::Parts => {
                for (feature, part) in features.iter_mut().zip(parts) {
                    *feature = part;
                }
            }
        }
        Ok(date.has_time())
    }

    /// Takes what a pass over the training file found: a word for the hour, where some date had a time.
    pub(super) fn set_found(&mut self, found: &BTreeMap<String, Words>) {
        if let Some(words) = found.get(&self.column) {
            self.has_hour = Some(words.contains(DateFeatures::HOUR));
        }
    }
}

/// The columns of dates among the features. `hours`: those that have the hour, where that is known.
pub(super) fn find(
    place: &Place,
    columns: &[String],
    roles: &mut [Role],
    dates: &BTreeMap<String, DateFeatures>,
    hours: Option<&[String]>,
) -> Result<Vec<DateColumn>, IngestError> {
    let mut found = Vec::with_capacity(dates.len());
    for (column, features) in dates {
        let Some((slot, role)) = header::feature(columns, roles, column) else {
            let is_other = columns.contains(column);
            let hint = if is_other { String::new() } else { names::columns(column, columns) };
            return Err(place.clone().refuse(Problem::NoDateColumn { name: column.clone(), hint }));
        };
        *role = Role::Date { slot, column: found.len() };
        let has_hour = match features {
            DateFeatures::Days => Some(false),
            DateFeatures::Parts => hours.map(|hours| hours.contains(column)),
        };
        found.push(DateColumn { column: column.clone(), features: *features, has_hour, first: 0 });
    }
    Ok(found)
}

//! The columns of all files: every key that an object has.

use super::object::{Members, Value, read};
use crate::{
    bounds::RowCount,
    csv::Lines,
    error::{IngestError, Place, Problem},
    fields::Names,
    source::SourceFile,
};
use sojourn_protocol::quantity::to_u64;
use std::collections::BTreeMap;

/// Columns in the order in which they first occur.
#[derive(Debug, Clone, Default)]
pub(super) struct Columns {
    pub(super) names: Vec<String>,
    /// For each column that has lists or objects, what they are and where the first is.
    pub(super) nested: Vec<Option<(Place, &'static str)>>,
    indices: BTreeMap<String, usize>,
}

impl Columns {
    /// Columns that are known beforehand.
    pub(super) fn of(names: &[String]) -> Self {
        let mut columns = Self::default();
        names.iter().for_each(|name| columns.add(name.clone()));
        columns
    }

    /// The index of a column.
    pub(super) fn index(&self, name: &str) -> Option<usize> {
        self.indices.get(name).copied()
    }

    fn add(&mut self, name: String) {
        self.indices.insert(name.clone(), self.names.len());
        self.names.push(name);
        self.nested.push(None);
    }

    /// Adds the keys of all objects of a file. A line that is none is a matter of the passes over rows.
    pub(super) fn collect(&mut self, part: &SourceFile) -> Result<(), IngestError> {
        let (mut lines, mut text) = (Lines::open(part)?, Vec::new());
        let mut read_lines = RowCount::new(part.bounds().clone());
        let mut fresh = Fresh::default();
        while let Some(line) = lines.next_line()? {
            read_lines.add(to_u64(line.text.len()))?;
            fresh.clear();
            let mut members = Collecting { columns: self, fresh: &mut fresh };
            if read(line.text, &mut text, &mut members).is_err() {
                continue;
            }
            let place = Place { line: Some(line.line), ..Place::of(part.shown()) };
            for name in fresh.names.drain(..) {
                // A key that is there twice is a matter of the passes too.
                if self.index(&name).is_none() {
                    Names::check_count(self.names.len() + 1)
                        .map_err(|problem| place.clone().refuse(problem))?;
                    self.add(name);
                }
            }
            for (name, what) in fresh.nested.drain(..) {
                let index = self.index(&name);
                if let Some(nested) = index.and_then(|index| self.nested.get_mut(index)) {
                    nested.get_or_insert_with(|| (place.clone(), what));
                }
            }
        }
        Ok(())
    }

    /// Refuses files without a single object.
    pub(super) fn refuse_none(&self, parts: &[SourceFile]) -> Result<(), IngestError> {
        let Some(first) = parts.first().filter(|_| self.names.is_empty()) else { return Ok(()) };
        let (mut lines, mut text) = (Lines::open(first)?, Vec::new());
        while let Some(line) = lines.next_line()? {
            if line.text.trim_ascii().is_empty() {
                continue;
            }
            let place = Place { line: Some(line.line), ..Place::of(first.shown()) };
            let mut members = Collecting { columns: self, fresh: &mut Fresh::default() };
            if let Err(reason) = read(line.text, &mut text, &mut members) {
                return Err(place.refuse(Problem::NoObject { reason }));
            }
        }
        Err(first.refuse(Problem::NoFeatures))
    }
}

/// The new things in an object.
#[derive(Debug, Default)]
struct Fresh {
    names: Vec<String>,
    nested: Vec<(String, &'static str)>,
    /// The last key.
    key: String,
}

impl Fresh {
    fn clear(&mut self) {
        self.names.clear();
        self.nested.clear();
    }
}

/// Collects the keys of one object.
struct Collecting<'a> {
    columns: &'a Columns,
    fresh: &'a mut Fresh,
}

impl Members for Collecting<'_> {
    fn key(&mut self, key: &str) {
        self.fresh.key.clear();
        self.fresh.key.push_str(key);
        if self.columns.index(key).is_none() {
            self.fresh.names.push(key.to_owned());
        }
    }

    fn value(&mut self, value: Value<'_>) {
        if let Value::Nested(what) = value {
            self.fresh.nested.push((self.fresh.key.clone(), what));
        }
    }
}

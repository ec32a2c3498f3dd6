//! The columns of all files: every key that an object has.

use super::{
    document::list_of_objects,
    object::{Members, Value, read},
};
use crate::{
    bounds::RowCount,
    csv::Lines,
    error::{IngestError, Place, Problem},
    fields::{Names, Need},
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
    /// Lines that are objects.
    objects: u64,
    /// Lines that are none, without empty ones.
    others: u64,
    /// Does the first line that isn't empty end within an object?
    is_first_cut: bool,
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
            if line.text.trim_ascii().is_empty() {
                continue;
            }
            let mut members = Collecting { columns: self, fresh: &mut fresh, need: Need::Value };
            let mut found = read(line.text, &mut text, &mut members);
            if found.is_err() {
                // A number that is too large to be read is no matter where its column is left out.
                fresh.clear();
                let need = Need::Nothing;
                let mut members = Collecting { columns: self, fresh: &mut fresh, need };
                found = read(line.text, &mut text, &mut members);
            }
            if let Err(broken) = found {
                self.is_first_cut |= self.objects + self.others == 0 && broken.is_cut;
                self.others += 1;
                continue;
            }
            self.objects += 1;
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
            let (fresh, need) = (&mut Fresh::default(), Need::Value);
            let mut members = Collecting { columns: self, fresh, need };
            let Err(broken) = read(line.text, &mut text, &mut members) else { continue };
            return Err(place.refuse(Problem::NoObject { reason: broken.reason }));
        }
        Err(first.refuse(Problem::NoFeatures))
    }

    /// Refuses a file whose rows lie deeper, in a single object, or in objects that go on over several lines.
    pub(super) fn refuse_document(&self, part: &SourceFile) -> Result<(), IngestError> {
        let has_nested = self.nested.iter().any(Option::is_some);
        let is_one = self.objects == 1 && self.others == 0 && has_nested;
        let goes_on = self.is_first_cut && self.others > 1 && self.others > self.objects;
        if !is_one && !goes_on {
            return Ok(());
        }
        let key = list_of_objects(&part.start()?);
        Err(part.refuse(match key {
            None if goes_on => Problem::JsonOverLines,
            key => Problem::JsonDocument(key),
        }))
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
    /// The need of all values: to know which are lists or objects, or nothing.
    need: Need,
}

impl Members for Collecting<'_> {
    fn key(&mut self, key: &str) -> Need {
        self.fresh.key.clear();
        self.fresh.key.push_str(key);
        if self.columns.index(key).is_none() {
            self.fresh.names.push(key.to_owned());
        }
        self.need
    }

    fn value(&mut self, value: Value<'_>) {
        if let Value::Nested(what) = value {
            self.fresh.nested.push((self.fresh.key.clone(), what));
        }
    }
}

//! The columns of all files: one for each element of each feature.

use super::{
    example::{Element, NoExample, check, each_feature},
    frames::Frames,
};
use crate::{
    bounds::{RowCount, SharedBounds},
    error::{IngestError, Place, Problem},
    fields::Names,
    source::SourceFile,
};
use sojourn_protocol::quantity::to_u64;
use std::{collections::BTreeMap, str};

const DIFFERENT: &str = "lists of different lengths";
const NO_TEXT: &str = "bytes that are no text in UTF-8, such as an encoded image";

/// The columns, in the order of features by name.
#[derive(Debug, Clone, Default)]
pub(super) struct Columns {
    names: Vec<String>,
    /// The columns of each feature.
    features: BTreeMap<String, Vec<usize>>,
    /// For each column that can't be read, where its feature is so first, and what it holds.
    unreadable: Vec<Option<Unreadable>>,
}

/// Where a feature is one that can't be read, and what it holds.
type Unreadable = (Place, &'static str);

/// A feature, as far as it was seen.
#[derive(Debug, Clone, Default)]
struct Seen {
    /// The elements of its lists that aren't empty.
    length: Option<usize>,
    unreadable: Option<Unreadable>,
}

impl Columns {
    /// Finds the columns of `parts`, behind those that are known beforehand. A record that is no example is a matter of the passes
    /// over rows.
    pub(super) fn find(parts: &[SourceFile], known: &[String]) -> Result<Self, IngestError> {
        let mut seen: BTreeMap<String, Seen> = BTreeMap::new();
        let mut first_problem = None;
        for part in parts {
            let mut frames = Frames::open(part)?;
            let mut rows = RowCount::new(SharedBounds::clone(part.bounds()));
            let mut place = Place { row: Some(0), ..Place::of(part.shown()) };
            while let Some(record) = frames.next()? {
                rows.add(to_u64(record.len()))?;
                place.row = place.row.map(|row| row + 1);
                // All of a record counts, or nothing. Read twice, it needs no memory.
                if let Err(NoExample(reason)) = check(record) {
                    let refuse = || place.clone().refuse(Problem::NoExample(reason));
                    first_problem.get_or_insert_with(refuse);
                    continue;
                }
                let mut added = Ok(());
                let read = each_feature(record, |name, list| {
                    let mut are_texts = true;
                    let length = list.each(|_, element| {
                        if let Element::Bytes(bytes) = element {
                            are_texts &= str::from_utf8(bytes).is_ok();
                        }
                    })?;
                    if added.is_ok() {
                        added = add(&mut seen, name, (length, are_texts), &place);
                    }
                    Ok(())
                });
                added?;
                debug_assert_eq!(read, Ok(()), "it was read before");
            }
        }
        if let (true, true, Some(part)) = (seen.is_empty(), known.is_empty(), parts.first()) {
            return Err(first_problem.unwrap_or_else(|| part.refuse(Problem::NoFeatures)));
        }
        Self::of(seen, known).map_err(|problem| {
            parts
                .first()
                .map_or_else(|| Place::of(""), |part| Place::of(part.shown()))
                .refuse(problem)
        })
    }

    /// The columns of features, behind those that are known.
    fn of(seen: BTreeMap<String, Seen>, known: &[String]) -> Result<Self, Problem> {
        let unreadable = vec![None; known.len()];
        let mut columns = Self { names: known.to_vec(), unreadable, ..Self::default() };
        let indices = known.iter().zip(0..);
        let indices: BTreeMap<&str, usize> =
            indices.map(|(name, index)| (name.as_str(), index)).collect();
        for (feature, Seen { length, unreadable }) in seen {
            let length = if unreadable.is_some() { 1 } else { length.unwrap_or(1) };
            Names::check_count(columns.names.len().saturating_add(length))?;
            let mut own = Vec::with_capacity(length);
            for element in 0..length {
                let name = match length {
                    1 => feature.clone(),
                    _ => format!("{feature}_{element}"),
                };
                let index = indices.get(name.as_str()).copied().unwrap_or_else(|| {
                    columns.names.push(name);
                    columns.unreadable.push(None);
                    columns.names.len() - 1
                });
                if let Some(column) = columns.unreadable.get_mut(index) {
                    column.clone_from(&unreadable);
                }
                own.push(index);
            }
            columns.features.insert(feature, own);
        }
        Ok(columns)
    }

    /// The names of the columns.
    pub(super) fn names(&self) -> &[String] {
        &self.names
    }

    /// The columns of a feature.
    pub(super) fn of_feature(&self, name: &str) -> Option<&[usize]> {
        self.features.get(name).map(Vec::as_slice)
    }

    /// For a column that can't be read, where that is so and what it holds.
    pub(super) fn unreadable(&self, column: usize) -> Option<&Unreadable> {
        self.unreadable.get(column).and_then(Option::as_ref)
    }
}

/// Adds a feature of the record at `place`, a list of so many elements, which may be texts.
fn add(
    seen: &mut BTreeMap<String, Seen>,
    name: &str,
    (length, are_texts): (usize, bool),
    place: &Place,
) -> Result<(), IngestError> {
    if !seen.contains_key(name) {
        Names::check_count(seen.len() + 1).map_err(|problem| place.clone().refuse(problem))?;
        seen.insert(name.to_owned(), Seen::default());
    }
    let Some(feature) = seen.get_mut(name) else { return Ok(()) };
    let is_other = length > 0 && *feature.length.get_or_insert(length) != length;
    let what = if is_other { Some(DIFFERENT) } else { (!are_texts).then_some(NO_TEXT) };
    if let (Some(what), None) = (what, &feature.unreadable) {
        feature.unreadable = Some((place.clone(), what));
    }
    Ok(())
}

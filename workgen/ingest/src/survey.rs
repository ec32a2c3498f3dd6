//! The first pass over a file: how many rows, how wide, and which labels.

use crate::{
    error::{IngestError, Problem},
    number::shown,
    table::{Pass, Table},
    words::Words,
};
use sojourn_protocol::{quantity::to_u64, spec::Loss};
use std::collections::BTreeMap;

/// Most classes that a job may have; more are numbers that should be predicted as such.
const MAX_CLASSES: usize = 65_536;
/// Longest name of a class, in bytes; it bounds what the survey keeps.
const MAX_LABEL: usize = 1024;

/// The results of the first pass.
#[derive(Debug, Clone)]
pub(crate) struct Survey {
    pub(crate) rows: u64,
    /// Rows that were left out.
    pub(crate) dropped: u64,
    /// The classes, where labels are classes and none were given.
    pub(crate) classes: Option<Words>,
    /// The words of each column whose words weren't known, by the column's name.
    pub(crate) words: BTreeMap<String, Words>,
}

impl Survey {
    /// Surveys `table`. Labels must be among `known`, where given.
    pub(crate) fn of(
        table: &dyn Table,
        loss: Loss,
        known: Option<&Words>,
        progress: &mut dyn FnMut(u64, u64) -> Result<(), IngestError>,
    ) -> Result<Self, IngestError> {
        let mut count = 0u64;
        let mut found = Words::default();
        let mut rows = table.rows(Pass::Labels)?;
        while rows.advance()? {
            count += 1;
            progress(rows.bytes_read(), to_u64(rows.label().len()))?;
            if loss != Loss::CrossEntropy {
                rows.label_number()?;
                continue;
            }
            let name = class(rows.label()).map_err(|problem| rows.refuse_label(problem))?;
            match known {
                Some(known) if known.contains(name) => {}
                Some(_) => {
                    return Err(rows.refuse_label(Problem::UnseenLabel(shown(rows.label()))));
                }
                None if found.contains(name) => {}
                None if found.len() == MAX_CLASSES => {
                    return Err(rows.refuse_label(Problem::TooManyClasses { limit: MAX_CLASSES }));
                }
                None => {
                    found.add(name);
                }
            }
        }
        let dropped = rows.dropped();
        if count == 0 {
            let problem = if dropped > 0 { Problem::NoWholeRow } else { Problem::NoRows };
            return Err(table.refuse(problem));
        }
        let classes = (loss == Loss::CrossEntropy && known.is_none()).then_some(found);
        if let Some(names) = &classes
            && names.len() == 1
        {
            let name = names.first().map(|name| shown(name.as_bytes())).unwrap_or_default();
            return Err(table.labels_place().refuse(Problem::OneClass(name)));
        }
        let words = rows.words();
        Ok(Self { rows: count, dropped, classes, words })
    }
}

/// The class that a label names.
fn class(label: &[u8]) -> Result<&str, Problem> {
    if label.is_empty() {
        return Err(Problem::Missing);
    }
    if label.len() > MAX_LABEL {
        return Err(Problem::LongLabel { limit: MAX_LABEL });
    }
    let name = std::str::from_utf8(label).map_err(|_| Problem::NotUtf8)?;
    // Many programs write `nan` for a missing value.
    if name.eq_ignore_ascii_case("nan") {
        return Err(Problem::NotFinite(name.to_owned()));
    }
    Ok(name)
}

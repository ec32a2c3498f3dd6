//! The first pass over a file: how many rows, how wide, and which labels.

use crate::{
    error::{IngestError, Problem},
    number::shown,
    table::{Pass, Table},
};
use sojourn_protocol::spec::Loss;
use std::collections::BTreeSet;

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
    pub(crate) classes: Option<Classes>,
}

/// The different labels of the training file.
#[derive(Debug, Clone, Default)]
pub(crate) struct Classes(BTreeSet<String>);

impl Classes {
    /// Names in index order: numerically where all are whole numbers, else by bytes.
    pub(crate) fn names(self) -> Vec<String> {
        let numbers: Option<Vec<(i128, String)>> =
            self.0.iter().map(|name| Some((name.parse().ok()?, name.clone()))).collect();
        match numbers {
            Some(mut numbers) => {
                numbers.sort();
                numbers.into_iter().map(|(_, name)| name).collect()
            }
            None => self.0.into_iter().collect(),
        }
    }
}

impl Survey {
    /// Surveys `table`. Labels must be among `known`, where given.
    pub(crate) fn of(
        table: &dyn Table,
        loss: Loss,
        known: Option<&Classes>,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Self, IngestError> {
        let mut count = 0u64;
        let mut found = Classes::default();
        let mut rows = table.rows(Pass::Labels)?;
        while rows.advance()? {
            count += 1;
            progress(rows.bytes_read());
            if loss == Loss::Mse {
                rows.label_number()?;
                continue;
            }
            let name = class(rows.label()).map_err(|problem| rows.refuse_label(problem))?;
            match known {
                Some(known) if known.0.contains(name) => {}
                Some(_) => {
                    return Err(rows.refuse_label(Problem::UnseenLabel(shown(rows.label()))));
                }
                None if found.0.contains(name) => {}
                None if found.0.len() == MAX_CLASSES => {
                    return Err(rows.refuse_label(Problem::TooManyClasses { limit: MAX_CLASSES }));
                }
                None => {
                    found.0.insert(name.to_owned());
                }
            }
        }
        let dropped = rows.dropped();
        if count == 0 {
            let problem = if dropped > 0 { Problem::NoWholeRow } else { Problem::NoRows };
            return Err(table.refuse(problem));
        }
        let classes = (loss == Loss::CrossEntropy && known.is_none()).then_some(found);
        if let Some(Classes(names)) = &classes
            && names.len() == 1
        {
            let name = names.first().map(|name| shown(name.as_bytes())).unwrap_or_default();
            return Err(table.labels_place().refuse(Problem::OneClass(name)));
        }
        Ok(Self { rows: count, dropped, classes })
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

#[cfg(test)]
mod tests {
    use super::*;

    fn names(labels: &[&str]) -> Vec<String> {
        Classes(labels.iter().map(|label| (*label).to_owned()).collect()).names()
    }

    #[test]
    fn whole_numbers_are_in_their_order_and_words_by_bytes() {
        assert_eq!(names(&["10", "9", "-1"]), ["-1", "9", "10"]);
        assert_eq!(names(&["10", "9", "b"]), ["10", "9", "b"]);
        assert_eq!(names(&["01", "1"]), ["01", "1"]);
    }
}

//! The columns and their roles.

use super::coded::WordColumn;
use crate::{
    error::{IngestError, Place, Problem},
    names,
    number::shown,
};
use sojourn_protocol::spec::{CategoriesSpec, Columns};
use std::collections::{BTreeMap, BTreeSet};

/// The role of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// A number: the feature with the index `place` in a row, of the column that is `slot`th among those of features.
    Feature {
        slot: usize,
        place: usize,
    },
    /// Words: the `column`th such column.
    Words {
        slot: usize,
        column: usize,
    },
    Label,
    /// Nobody asked for it.
    Ignored,
}

impl Role {
    /// Which of the columns of features it is.
    pub(super) const fn slot(self) -> Option<usize> {
        match self {
            Role::Feature { slot, .. } | Role::Words { slot, .. } => Some(slot),
            Role::Label | Role::Ignored => None,
        }
    }
}

/// Most columns of a table: each is named by the job and by its models.
const MAX_COLUMNS: usize = 1 << 20;

/// The names of columns, checked as they come.
#[derive(Debug, Default)]
pub(crate) struct Names {
    columns: Vec<String>,
    first_at: BTreeMap<String, usize>,
}

impl Names {
    /// Takes the next name, without the blanks around it.
    pub(crate) fn push(&mut self, name: &str) -> Result<(), Problem> {
        let name = name.trim();
        let second = self.columns.len() + 1;
        if second > MAX_COLUMNS {
            return Err(Problem::TooManyColumns { limit: MAX_COLUMNS });
        }
        if name.is_empty() {
            return Err(Problem::UnnamedColumn { number: second });
        }
        if let Some(first) = self.first_at.insert(name.to_owned(), second) {
            return Err(Problem::DuplicateColumn { name: shown(name.as_bytes()), first, second });
        }
        self.columns.push(name.to_owned());
        Ok(())
    }

    /// All of them, in order.
    pub(crate) fn finish(self) -> Vec<String> {
        self.columns
    }
}

/// The index of the label's column.
pub(super) fn find_label(
    header: &Place,
    columns: &[String],
    label: &str,
) -> Result<usize, IngestError> {
    let Some(index) = columns.iter().position(|column| column == label) else {
        let is_text = header.line.is_some();
        if let [only] = columns
            && is_text
            && only.contains(char::is_whitespace)
        {
            return Err(header
                .clone()
                .refuse(Problem::NoTable { what: format!("`{}`", shown(only.as_bytes())) }));
        }
        let separated = match columns {
            [_] if is_text => ": what separates columns is said by `data.separator`",
            _ => "",
        };
        let hint = names::columns(label, columns) + separated;
        return Err(header.clone().refuse(Problem::NoLabel { label: label.to_owned(), hint }));
    };
    if columns.len() == 1 {
        return Err(header.clone().refuse(Problem::NoFeatures));
    }
    Ok(index)
}

/// The columns that a job chooses, in order; none where it drops all.
pub(crate) fn choose(
    header: &Place,
    columns: &[String],
    label: Option<usize>,
    chosen: &Columns,
) -> Result<Vec<String>, IngestError> {
    let (Columns::Use(names) | Columns::Drop(names)) = chosen;
    if let Some(name) = names.iter().find(|name| !columns.contains(name)) {
        let hint = names::columns(name, columns);
        return Err(header.clone().refuse(Problem::NoNamedColumn { name: name.clone(), hint }));
    }
    Ok(match chosen {
        Columns::Use(names) => names.clone(),
        Columns::Drop(names) => {
            let dropped: BTreeSet<&String> = names.iter().collect();
            let columns = columns.iter().enumerate();
            let left = columns.filter(|(at, name)| label != Some(*at) && !dropped.contains(name));
            left.map(|(_, name)| name.clone()).collect()
        }
    })
}

/// The role of each column. The columns in `wanted` are the features, in that order; if it is empty, all columns but the
/// label are.
pub(super) fn roles(
    header: &Place,
    columns: &[String],
    label: Option<usize>,
    wanted: &[String],
) -> Result<Vec<Role>, IngestError> {
    let places: BTreeMap<&str, usize> =
        wanted.iter().enumerate().map(|(place, name)| (name.as_str(), place)).collect();
    let there: BTreeSet<&str> = columns.iter().map(String::as_str).collect();
    if let Some(missing) = wanted.iter().find(|name| !there.contains(name.as_str())) {
        // A header that nothing separates is no name that anybody meant.
        let meant = names::meant(missing, columns).filter(|_| columns.len() > 1);
        let hint = meant.map_or_else(String::new, |meant| format!("; {meant}"));
        let more = wanted.iter().filter(|name| !there.contains(name.as_str())).count() - 1;
        return Err(header.clone().refuse(Problem::NoColumn { name: missing.clone(), more, hint }));
    }
    let mut next = 0;
    let role = |(index, name): (usize, &String)| {
        if let Some(place) = places.get(name.as_str()) {
            return Role::Feature { slot: *place, place: *place };
        }
        if label == Some(index) {
            return Role::Label;
        }
        if !wanted.is_empty() {
            return Role::Ignored;
        }
        next += 1;
        Role::Feature { slot: next - 1, place: next - 1 }
    };
    Ok(columns.iter().enumerate().map(role).collect())
}

/// The columns of words among the features.
pub(super) fn code(
    header: &Place,
    columns: &[String],
    roles: &mut [Role],
    categories: &[CategoriesSpec],
) -> Result<Vec<WordColumn>, IngestError> {
    let places: BTreeMap<&str, usize> =
        columns.iter().enumerate().map(|(index, name)| (name.as_str(), index)).collect();
    let mut coded = Vec::with_capacity(categories.len());
    for spec in categories {
        let role = places.get(spec.column.as_str()).and_then(|index| roles.get_mut(*index));
        match role {
            Some(role @ Role::Feature { .. }) => {
                let slot = role.slot().unwrap_or_default();
                *role = Role::Words { slot, column: coded.len() };
                coded.push(WordColumn::new(spec));
            }
            _ => {
                let is_other = columns.contains(&spec.column);
                let hint =
                    if is_other { String::new() } else { names::columns(&spec.column, columns) };
                let name = spec.column.clone();
                return Err(header.clone().refuse(Problem::NoWordColumn { name, hint }));
            }
        }
    }
    Ok(coded)
}

/// Refuses a part whose columns differ from `expected`, those of the file `of`.
pub(crate) fn same(
    header: &Place,
    columns: &[String],
    expected: &[String],
    of: &str,
) -> Result<(), IngestError> {
    let refuse = |problem| Err(header.clone().refuse(problem));
    let of = of.to_owned();
    if columns.len() != expected.len() {
        return refuse(Problem::HeaderWidth {
            actual: columns.len(),
            expected: expected.len(),
            of,
        });
    }
    let mut pairs = (1..).zip(columns.iter().zip(expected));
    match pairs.find(|(_, (actual, expected))| actual != expected) {
        None => Ok(()),
        Some((number, (actual, expected))) => {
            let shown = |name: &String| shown(name.as_bytes());
            refuse(Problem::HeaderName {
                number,
                actual: shown(actual),
                expected: shown(expected),
                of,
            })
        }
    }
}

//! The columns and their roles.

use super::coded::WordColumn;
use crate::{
    error::{IngestError, Place, Problem},
    missing::MissingValues,
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
    /// Dates: the `column`th such column.
    Date {
        slot: usize,
        column: usize,
    },
    Label,
    /// The name of the row's group.
    Group,
    /// Nobody asked for it.
    Ignored,
    /// A column without a name, which must be empty.
    Blank,
}

impl Role {
    /// Which of the columns of features it is.
    pub(super) const fn slot(self) -> Option<usize> {
        match self {
            Role::Feature { slot, .. } | Role::Words { slot, .. } | Role::Date { slot, .. } => {
                Some(slot)
            }
            Role::Label | Role::Group | Role::Ignored | Role::Blank => None,
        }
    }
}

/// Most columns of a table: each is named by the job and by its models.
const MAX_COLUMNS: usize = 1 << 20;

/// The names of columns as they come: of those that nobody looks at, any.
#[derive(Debug, Default)]
pub(crate) struct Names(Vec<String>);

impl Names {
    /// Refuses too many columns.
    pub(crate) fn check_count(columns: usize) -> Result<(), Problem> {
        if columns > MAX_COLUMNS {
            return Err(Problem::TooManyColumns { limit: MAX_COLUMNS });
        }
        Ok(())
    }

    /// Takes the next name, without the blanks around it.
    pub(crate) fn push(&mut self, name: &str) -> Result<(), Problem> {
        Self::check_count(self.0.len() + 1)?;
        self.0.push(name.trim().to_owned());
        Ok(())
    }

    /// All of them, in order.
    pub(crate) fn finish(self) -> Vec<String> {
        self.0
    }
}

/// The index of the label's column. `no_label` is the end of the message where no column is called nearly so.
pub(super) fn find_label(
    header: &Place,
    columns: &[String],
    label: &str,
    no_label: Option<&str>,
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
        let more = match columns {
            [_] if is_text => ": what separates columns is said by `data.separator`",
            _ if names::meant(label, columns).is_none() => no_label.unwrap_or_default(),
            _ => "",
        };
        let hint = names::columns(label, columns) + more;
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
) -> Result<Vec<usize>, IngestError> {
    let refuse = |name: &String| {
        let hint = names::columns(name, columns);
        header.clone().refuse(Problem::NoNamedColumn { name: name.clone(), hint })
    };
    let Some((names, positions)) = chosen.dropped() else {
        let Columns::Use(names) = chosen else { return Ok(Vec::new()) };
        let index = |name: &String| columns.iter().position(|column| column == name);
        return names.iter().map(|name| index(name).ok_or_else(|| refuse(name))).collect();
    };
    let mut is_dropped = vec![false; columns.len()];
    for position in positions {
        let index = usize::try_from(*position).ok().and_then(|position| position.checked_sub(1));
        let Some(dropped) = index.and_then(|index| is_dropped.get_mut(index)) else {
            let (position, columns) = (*position, columns.len());
            return Err(header.clone().refuse(Problem::NoPosition { position, columns }));
        };
        *dropped = true;
    }
    for pattern in names {
        let mut is_meant = false;
        // A name that is there is no pattern.
        let is_name = columns.contains(pattern);
        for (name, dropped) in columns.iter().zip(&mut is_dropped) {
            if name == pattern || !is_name && Columns::is_meant(pattern, name) {
                (is_meant, *dropped) = (true, true);
            }
        }
        if !is_meant {
            return Err(refuse(pattern));
        }
    }
    let left = is_dropped
        .iter()
        .enumerate()
        .filter(|(index, dropped)| !**dropped && label != Some(*index));
    Ok(left.map(|(index, _)| index).collect())
}

/// The columns without a name that aren't data: the first, where programs write the numbers of rows, and those behind the last name,
/// which come of separators at the ends of lines.
pub(super) fn unnamed(columns: &[String]) -> Vec<Unnamed> {
    let named = columns.iter().rposition(|name| !name.is_empty()).map_or(0, |last| last + 1);
    let index = columns.first().filter(|name| name.is_empty() && named > 0);
    let index = index.map(|_| Unnamed { column: 0, is_index: true });
    let behind = (named..columns.len()).map(|column| Unnamed { column, is_index: false });
    index.into_iter().chain(behind).collect()
}

/// A column without a name that is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unnamed {
    /// The column, from 0.
    pub(crate) column: usize,
    /// Is it the first, which has the numbers or names of rows? Else it must be empty.
    pub(crate) is_index: bool,
}

/// Of the columns that would be features, those with a name; refuses others, unless they are among the unnamed that are no data.
pub(crate) fn named(
    header: &Place,
    columns: &[String],
    unnamed: &[Unnamed],
    features: Vec<usize>,
) -> Result<Vec<usize>, IngestError> {
    let is_named = |index: &usize| unnamed.iter().all(|unnamed| unnamed.column != *index);
    let features: Vec<usize> = features.into_iter().filter(is_named).collect();
    let nameless = features.iter().find(|index| columns.get(**index).is_some_and(String::is_empty));
    match nameless {
        None => Ok(features),
        Some(index) => Err(header.clone().refuse(Problem::UnnamedColumn { number: index + 1 })),
    }
}

/// The columns of these names, in their order, as a model was trained on them.
pub(super) fn find(
    header: &Place,
    columns: &[String],
    wanted: &[String],
    is_by_position: bool,
) -> Result<Vec<usize>, IngestError> {
    let asked: BTreeSet<&str> = wanted.iter().map(String::as_str).collect();
    // Of two columns of a name, nobody knows which one it was.
    let named = columns.iter().enumerate().filter(|(_, name)| asked.contains(name.as_str()));
    once(header, columns, named.map(|(index, _)| index))?;
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    for (index, name) in columns.iter().enumerate() {
        places.entry(name.as_str()).or_insert(index);
    }
    let lacking: Vec<&String> =
        wanted.iter().filter(|name| !places.contains_key(name.as_str())).collect();
    let Some(first) = lacking.first() else {
        return Ok(wanted.iter().filter_map(|name| places.get(name.as_str()).copied()).collect());
    };
    // A header that nothing separates is no name that anybody meant.
    let meant = names::meant(first, columns).filter(|_| columns.len() > 1 && !is_by_position);
    let hint = match (meant, is_by_position) {
        (Some(meant), _) => format!("; {meant}"),
        (None, true) => format!(
            "; without a header columns have the positions that they had in training, and here are {}: the column of the labels \
             must be there too, and may be empty",
            columns.len()
        ),
        (None, false) => String::new(),
    };
    let name = (*first).clone();
    Err(header.clone().refuse(Problem::NoColumn { name, more: lacking.len() - 1, hint }))
}

/// Refuses a name that two columns have, one of which is looked at.
pub(crate) fn once(
    header: &Place,
    columns: &[String],
    looked_at: impl IntoIterator<Item = usize>,
) -> Result<(), IngestError> {
    let mut first_at: BTreeMap<&str, usize> = BTreeMap::new();
    let mut looked_at: Vec<usize> = looked_at.into_iter().collect();
    looked_at.sort_unstable();
    looked_at.dedup();
    for index in looked_at {
        let Some(name) = columns.get(index) else { continue };
        if let Some(first) = first_at.insert(name, index) {
            let (first, second) = (first + 1, index + 1);
            let name = shown(name.as_bytes());
            return Err(header.clone().refuse(Problem::DuplicateColumn { name, first, second }));
        }
    }
    Ok(())
}

/// The index of the column of groups.
pub(super) fn find_groups(
    header: &Place,
    columns: &[String],
    name: &str,
) -> Result<usize, IngestError> {
    let found = columns.iter().position(|column| column == name);
    found.ok_or_else(|| {
        let hint = names::columns(name, columns);
        header.clone().refuse(Problem::NoGroups { name: name.to_owned(), hint })
    })
}

/// The role of each column, by the columns of features in order.
pub(super) fn roles(
    columns: usize,
    label: Option<usize>,
    unnamed: &[Unnamed],
    features: &[usize],
) -> Vec<Role> {
    let mut roles = vec![Role::Ignored; columns];
    for unnamed in unnamed.iter().filter(|unnamed| !unnamed.is_index) {
        if let Some(role) = roles.get_mut(unnamed.column) {
            *role = Role::Blank;
        }
    }
    if let Some(role) = label.and_then(|label| roles.get_mut(label)) {
        *role = Role::Label;
    }
    for (place, index) in features.iter().enumerate() {
        if let Some(role) = roles.get_mut(*index) {
            *role = Role::Feature { slot: place, place };
        }
    }
    roles
}

/// The columns of words among the features.
pub(super) fn code(
    header: &Place,
    columns: &[String],
    roles: &mut [Role],
    categories: &[CategoriesSpec],
    missing: &MissingValues,
) -> Result<Vec<WordColumn>, IngestError> {
    let mut coded = Vec::with_capacity(categories.len());
    for spec in categories {
        match feature(columns, roles, &spec.column) {
            Some((slot, role)) => {
                *role = Role::Words { slot, column: coded.len() };
                coded.push(WordColumn::new(spec, missing));
            }
            None => {
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

/// The column of features that has this name, its slot and its role, if nothing else was made of it.
pub(super) fn feature<'a>(
    columns: &[String],
    roles: &'a mut [Role],
    name: &str,
) -> Option<(usize, &'a mut Role)> {
    let mut named = columns.iter().zip(roles).filter(|(column, _)| *column == name);
    let (slot, role) = named.find_map(|(_, role)| Some((role.slot()?, role)))?;
    matches!(role, Role::Feature { .. }).then_some((slot, role))
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

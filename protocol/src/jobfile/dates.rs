//! `data.dates`: columns of dates.

use crate::{
    bounds::MAX_GIVEN_NAME_CHARS,
    spec::{CategoriesSpec, DateFeatures, MAX_WORD_COLUMNS},
};
use sojourn_forms::{Node, Table};
use std::collections::BTreeMap;

/// A table of columns, each with the features that it becomes. `label`: the label's column, where it is known.
pub(super) fn read(node: &Node<'_>, label: Option<&str>) -> Option<BTreeMap<String, DateFeatures>> {
    let Some(section) = node.peek() else {
        return node.refuse(format!(
            "is {}; columns with their features are wanted, e.g. `{{ sold_on = \"parts\" }}`",
            node.describe()
        ));
    };
    let columns: Vec<_> = section.entries().collect();
    if columns.is_empty() {
        return node.refuse("is empty; leave it out if no column holds dates");
    }
    if columns.len() > MAX_WORD_COLUMNS {
        return node.refuse(format!("has over {MAX_WORD_COLUMNS} columns"));
    }
    let read: Vec<Option<(String, DateFeatures)>> =
        columns.iter().map(|(name, node)| column(name, node, label)).collect();
    read.into_iter().collect()
}

fn column(name: &str, node: &Node<'_>, label: Option<&str>) -> Option<(String, DateFeatures)> {
    if Some(name) == label {
        return node.refuse("is the label, which can be no date");
    }
    if name.is_empty() || name.chars().nth(MAX_GIVEN_NAME_CHARS).is_some() {
        return node.refuse("is no name of a column");
    }
    let features = node.word(&[("parts", DateFeatures::Parts), ("days", DateFeatures::Days)])?;
    Some((name.to_owned(), features))
}

/// Refuses a column that is one of words as well.
pub(super) fn fit(
    section: &Table<'_>,
    dates: &BTreeMap<String, DateFeatures>,
    categories: &[CategoriesSpec],
) -> Option<()> {
    match categories.iter().find(|one| dates.contains_key(&one.column)) {
        None => Some(()),
        Some(both) => section
            .refuse("dates", format!("has `{}`, which `categories` takes as words", both.column)),
    }
}

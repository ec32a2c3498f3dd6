//! `data.categories`: columns of words.

use super::reader::JobFileNode;
use crate::{
    bounds::MAX_GIVEN_NAME_CHARS,
    spec::{CategoriesSpec, Coding, Columns, MAX_WORD_COLUMNS, MAX_WORDS},
};
use sojourn_forms::{Node, Table};
use std::collections::BTreeSet;

/// A table of columns, each with its coding. `label`: the label's column, where it is known.
pub(super) fn read(node: &Node<'_>, label: Option<&str>) -> Option<Vec<CategoriesSpec>> {
    let Some(section) = node.peek() else {
        return node.refuse(format!(
            "is {}; columns with their coding are wanted, e.g. `{{ color = \"one-hot\" }}`",
            node.describe()
        ));
    };
    let columns: Vec<_> = section.entries().collect();
    if columns.is_empty() {
        return node.refuse("is empty; leave it out if no column holds words");
    }
    if columns.len() > MAX_WORD_COLUMNS {
        return node.refuse(format!("has over {MAX_WORD_COLUMNS} columns"));
    }
    let read: Vec<Option<CategoriesSpec>> =
        columns.iter().map(|(name, node)| column(name, node, label)).collect();
    read.into_iter().collect()
}

fn column(name: &str, node: &Node<'_>, label: Option<&str>) -> Option<CategoriesSpec> {
    if Some(name) == label {
        return node.refuse("is the label, whose words are classes anyway");
    }
    if name.is_empty() || name.chars().nth(MAX_GIVEN_NAME_CHARS).is_some() {
        return node.refuse("is no name of a column");
    }
    let column = name.to_owned();
    if !node.is_table() {
        let coding = node.word(&[("one-hot", Coding::OneHot), ("ordinal", Coding::Ordinal)])?;
        return Some(CategoriesSpec { column, coding, words: None });
    }
    let section = node.section_of(&["one-hot", "ordinal"])?;
    let (coding, list) = match (section.optional("one-hot"), section.optional("ordinal")) {
        (Some(list), None) => (Coding::OneHot, list),
        (None, Some(list)) => (Coding::Ordinal, list),
        _ => {
            return node
                .refuse("needs `one-hot` or `ordinal`, with a list of words in their order");
        }
    };
    Some(CategoriesSpec { column, coding, words: Some(words(&list)?) })
}

fn words(node: &Node<'_>) -> Option<Vec<String>> {
    let elements = node.list("a list of words")?;
    if elements.is_empty() {
        return node.refuse("is empty; leave the list out to take the words of the training file");
    }
    if elements.len() > MAX_WORDS {
        return node.refuse(format!("has over {MAX_WORDS} words"));
    }
    let (mut found, mut seen) = (Vec::new(), BTreeSet::new());
    for element in &elements {
        let word = element.string("a word, in quotes,")?;
        if !seen.insert(word) {
            return element.refuse(format!("is `\"{word}\"`, which is there twice"));
        }
        if word.trim() != word || word.chars().nth(MAX_GIVEN_NAME_CHARS).is_some() {
            return element
                .refuse("is no word of a table: it begins or ends with a space, or is too long");
        }
        found.push(word.to_owned());
    }
    Some(found)
}

/// Refuses a column of words that `columns` leaves out.
pub(super) fn fit(
    section: &Table<'_>,
    categories: &[CategoriesSpec],
    columns: &Columns,
) -> Option<()> {
    used(section, "categories", categories.iter().map(|one| &one.column), columns)
}

/// Refuses those of the columns of `key` that `columns` leaves out.
pub(super) fn used<'a>(
    section: &Table<'_>,
    key: &str,
    mut names: impl Iterator<Item = &'a String>,
    columns: &Columns,
) -> Option<()> {
    let is_feature = |name: &String| match columns {
        Columns::Use(names) => names.contains(name),
        Columns::Drop(names) | Columns::DropAt { names, .. } => !names.contains(name),
    };
    match names.find(|name| !is_feature(name)) {
        None => Some(()),
        Some(lost) => section.refuse(key, format!("has `{lost}`, which `columns` leaves out")),
    }
}

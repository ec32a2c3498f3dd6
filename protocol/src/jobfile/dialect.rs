//! The keys of `[data]` that say how the fields of a table are written.

use super::{
    dates,
    reader::{if_given, optional},
};
use crate::{
    bounds::MAX_GIVEN_NAME_CHARS,
    spec::{
        DecimalSign, Dialect, Header, MAX_MISSING_WORDS, Notation, TextEncoding, ThousandsSign,
    },
};
use sojourn_forms::{Node, Table};
use std::collections::{BTreeMap, BTreeSet};

/// Most columns that a job names.
const MAX_NAMES: usize = 1 << 10;

/// Reads these keys; `None` after a problem. `label`: the label's column, where it is known.
pub(super) fn read(section: &Table<'_>, label: Option<&str>) -> Option<Dialect> {
    let header = if_given(section, "header", header);
    let missing_values = if_given(section, "missing_values", missing_values);
    let decimal = if_given(section, "decimal", |node| {
        node.word(&[(".", DecimalSign::Point), (",", DecimalSign::Comma)])
    });
    let thousands = if_given(section, "thousands", thousands);
    let dates = optional(section, "dates", BTreeMap::new(), |node| dates::read(node, label));
    let encoding = if_given(section, "encoding", |node| {
        node.word(&TextEncoding::ALL.map(|encoding| (encoding.text(), encoding)))
    });
    let numbers = Notation { decimal: decimal?.unwrap_or_default(), thousands: thousands? };
    if !numbers.is_unambiguous() {
        let sign = numbers.decimal.text();
        return section.refuse(
            "thousands",
            format!("is `\"{sign}\"`, which is the decimal sign; `data.decimal` says another"),
        );
    }
    Some(Dialect {
        header: header?,
        missing_values: missing_values?,
        numbers,
        dates: dates?,
        encoding: encoding?.unwrap_or_default(),
    })
}

/// `false`, `true` or a list of names.
fn header(node: &Node<'_>) -> Option<Header> {
    if node.is_boolean() {
        let is_first = node.boolean()?;
        return Some(if is_first { Header::First } else { Header::Position });
    }
    if !node.is_list() {
        return node.refuse(format!(
            "is {}; `false` where no line has the names of columns, or a list of these names, is wanted",
            node.describe()
        ));
    }
    let elements = node.list("a list of columns' names")?;
    if elements.len() < 2 || elements.len() > MAX_NAMES {
        return node.refuse(format!(
            "has {} names; from 2 to {MAX_NAMES} are possible, and `false` names columns by their positions",
            elements.len()
        ));
    }
    let (mut names, mut seen) = (Vec::new(), BTreeSet::new());
    for element in &elements {
        let name = element.string("the name of a column")?;
        if name.is_empty() || name.trim() != name {
            return element.refuse("is empty, or begins or ends with a space");
        }
        if name.chars().nth(MAX_GIVEN_NAME_CHARS).is_some() {
            return element.refuse(format!("has over {MAX_GIVEN_NAME_CHARS} characters"));
        }
        if !seen.insert(name) {
            return element.refuse(format!("is `\"{name}\"`, which is there twice"));
        }
        names.push(name.to_owned());
    }
    Some(Header::Names(names))
}

/// Words, which may be numbers such as -999.
fn missing_values(node: &Node<'_>) -> Option<Vec<String>> {
    let elements = node.list("a list of words, e.g. `[\"NA\", \"-\"]`,")?;
    if elements.len() > MAX_MISSING_WORDS {
        return node.refuse(format!("has over {MAX_MISSING_WORDS} words"));
    }
    elements.iter().map(missing_value).collect()
}

fn missing_value(node: &Node<'_>) -> Option<String> {
    if node.as_string().is_none() && !node.is_list() && !node.is_table() && !node.is_boolean() {
        return Some(node.number()?.to_string());
    }
    let word = node.string("a word, in quotes, or a number")?.trim();
    if word.chars().nth(MAX_GIVEN_NAME_CHARS).is_some() {
        return node.refuse(format!("has over {MAX_GIVEN_NAME_CHARS} characters"));
    }
    Some(word.to_owned())
}

fn thousands(node: &Node<'_>) -> Option<ThousandsSign> {
    if matches!(node.as_string(), Some("\u{a0}" | "\u{202f}")) {
        return Some(ThousandsSign::NoBreakSpace);
    }
    node.word(&ThousandsSign::ALL.map(|sign| (sign.text(), sign)))
}

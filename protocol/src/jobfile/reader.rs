//! Any table and any value of a job file: types, unknown keys, and the collected problems.
//!
//! Readers return `None` after they have reported a problem, so that reading goes on and a user
//! hears of everything at once. Must not know what keys mean.

use super::{
    error::{JobFileError, Problem},
    vocabulary,
};
use crate::{quantity::Micros, time::Millis};
use std::{
    cell::{Cell, RefCell},
    collections::BTreeSet,
};
use toml::de::{DeTable, DeValue};

/// Problems that are told of one file; of others only that there are more.
const MAX_PROBLEMS: usize = 100;

/// The text that is read and the problems found in it so far.
pub(super) struct Problems<'t> {
    text: &'t str,
    found: RefCell<Vec<Problem>>,
    more: Cell<bool>,
}

impl<'t> Problems<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { text, found: RefCell::default(), more: Cell::new(false) }
    }

    /// Reports a problem of `key` at a byte offset of the text.
    pub(super) fn add(&self, offset: usize, key: &str, message: &str) {
        if self.found.borrow().len() >= MAX_PROBLEMS {
            return self.more.set(true);
        }
        let before = self.text.bytes().take(offset).filter(|byte| *byte == b'\n').count();
        self.found.borrow_mut().push(Problem::new(before + 1, key, message));
    }

    /// Are so many problems told that of others only is said that there are more? Then nothing is worked out for them.
    fn is_full(&self) -> bool {
        self.more.get()
    }

    pub(super) fn into_error(self) -> Option<JobFileError> {
        let mut found = self.found.into_inner();
        if self.more.get() {
            let last = found.iter().map(Problem::line).max().unwrap_or(1);
            found.push(Problem::new(last, "", "there are more problems than these"));
        }
        JobFileError::from_problems(found)
    }
}

/// A table with its path.
pub(super) struct Section<'a> {
    problems: &'a Problems<'a>,
    table: &'a DeTable<'a>,
    path: String,
    offset: usize,
}

impl<'a> Section<'a> {
    /// The whole file.
    pub(super) fn root(table: &'a DeTable<'a>, problems: &'a Problems<'a>) -> Self {
        let section = Self { problems, table, path: String::new(), offset: 0 };
        section.refuse_unknown(vocabulary::keys(""), "key or table");
        section
    }

    fn refuse_unknown(&self, known: &[&str], what: &str) {
        let there: BTreeSet<&str> = self.table.keys().map(|key| key.get_ref().as_ref()).collect();
        for key in self.table.keys() {
            let word: &str = key.get_ref();
            if known.contains(&word) {
                continue;
            }
            if self.problems.is_full() {
                return;
            }
            let missing = known.iter().copied().filter(|known| !there.contains(known));
            let hint = match vocabulary::nearest(word, missing) {
                Some(near) => format!("did you mean `{near}`?"),
                None => match vocabulary::elsewhere(word) {
                    Some(place) => format!("did you mean {place}?"),
                    None => format!("known here: {}", list(known)),
                },
            };
            let path = self.path_of(word);
            self.problems.add(key.span().start, &path, &format!("is no known {what}; {hint}"));
        }
    }

    fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    /// The keys that the vocabulary has for its path.
    pub(super) fn known(&self) -> &'static [&'static str] {
        vocabulary::keys(&self.path)
    }

    /// Are these all the keys that are there?
    pub(super) fn has_only(&self, keys: &[&str]) -> bool {
        self.table.keys().all(|key| keys.contains(&key.get_ref().as_ref()))
    }

    /// Every key with its value.
    pub(super) fn entries(&self) -> impl Iterator<Item = (&'a str, Node<'a>)> {
        let keys = self.table.keys().map(|key| key.get_ref().as_ref());
        keys.filter_map(|key| Some((key, self.optional(key)?)))
    }

    /// The value of `key`, if there.
    pub(super) fn optional(&self, key: &str) -> Option<Node<'a>> {
        let (name, value) = self.table.get_key_value(key)?;
        // A table's own span may begin elsewhere; the key says where the user wrote it.
        let offset = name.span().start;
        Some(Node {
            problems: self.problems,
            value: value.get_ref(),
            path: self.path_of(key),
            offset,
        })
    }

    /// The value of `key`; its absence is reported, with what it would be.
    pub(super) fn required(&self, key: &str, what: &str) -> Option<Node<'a>> {
        let node = self.optional(key);
        if node.is_none() {
            self.problems.add(self.offset, &self.path_of(key), &format!("is missing: {what}"));
        }
        node
    }

    /// The table of `key`, with the keys of the vocabulary; its absence is reported.
    pub(super) fn required_section(&self, key: &str) -> Option<Section<'a>> {
        let node = self.optional(key);
        if node.is_none() {
            self.problems.add(self.offset, key, &format!("is missing: a table `[{key}]`"));
        }
        node?.section()
    }

    /// Reports a problem of a key of this table; always `None`.
    pub(super) fn refuse<T>(&self, key: &str, message: String) -> Option<T> {
        match self.optional(key) {
            Some(node) => node.refuse(message),
            None => {
                self.problems.add(self.offset, &self.path_of(key), &message);
                None
            }
        }
    }
}

/// A value with its path.
pub(super) struct Node<'a> {
    problems: &'a Problems<'a>,
    value: &'a DeValue<'a>,
    path: String,
    offset: usize,
}

impl<'a> Node<'a> {
    /// Reports a problem of this value; always `None`.
    pub(super) fn refuse<T>(&self, message: impl Into<String>) -> Option<T> {
        self.problems.add(self.offset, &self.path, &message.into());
        None
    }

    fn wrong_type<T>(&self, wanted: &str) -> Option<T> {
        self.refuse(format!("is {}; {wanted} is wanted", self.describe()))
    }

    /// The text that is there, for messages.
    pub(super) fn describe(&self) -> String {
        match self.value {
            DeValue::String(text) => {
                let short: String = text.chars().take(40).collect();
                format!("a string (`\"{short}\"`)")
            }
            DeValue::Integer(number) => format!("a whole number (`{number}`)"),
            DeValue::Float(number) => format!("a number (`{number}`)"),
            DeValue::Boolean(value) => format!("a boolean (`{value}`)"),
            DeValue::Datetime(_) => "a date".to_owned(),
            DeValue::Array(_) => "a list".to_owned(),
            DeValue::Table(_) => "a table".to_owned(),
        }
    }

    pub(super) fn is_table(&self) -> bool {
        self.value.is_table()
    }

    pub(super) fn is_list(&self) -> bool {
        self.value.is_array()
    }

    pub(super) fn is_string(&self) -> bool {
        self.value.is_str()
    }

    pub(super) fn is_boolean(&self) -> bool {
        self.value.is_bool()
    }

    pub(super) fn is_integer(&self) -> bool {
        self.value.is_integer()
    }

    /// The text, where it is one; reports nothing.
    pub(super) fn as_string(&self) -> Option<&'a str> {
        self.value.as_str()
    }

    pub(super) fn string(&self, wanted: &str) -> Option<&'a str> {
        self.value.as_str().or_else(|| self.wrong_type(wanted))
    }

    pub(super) fn boolean(&self) -> Option<bool> {
        self.value.as_bool().or_else(|| self.wrong_type("`true` or `false`"))
    }

    /// A whole number in `low..=high`.
    pub(super) fn integer<T: TryFrom<i128> + TryInto<i128> + Copy>(
        &self,
        low: T,
        high: T,
    ) -> Option<T> {
        let ends = low.try_into().ok().zip(high.try_into().ok());
        let (low, high): (i128, i128) = ends?;
        let wanted = || match (low, high) {
            (low, high) if high >= i128::from(u32::MAX) => {
                format!("a whole number, at least {low},")
            }
            (low, high) => format!("a whole number from {low} to {high}"),
        };
        let DeValue::Integer(number) = self.value else {
            return self.wrong_type(&wanted());
        };
        // Underscores were taken out by the parser; what fails here has too many digits.
        let value = i128::from_str_radix(number.as_str(), number.radix()).ok();
        match value
            .filter(|value| (low..=high).contains(value))
            .and_then(|value| T::try_from(value).ok())
        {
            Some(value) => Some(value),
            None if value.is_some_and(|value| value >= low) => {
                self.refuse(format!("is {number}; at most {high} is possible"))
            }
            None => self.refuse(format!("is {number}; {} is wanted", wanted())),
        }
    }

    /// A finite number, whole or not.
    pub(super) fn number(&self) -> Option<f64> {
        let text = match self.value {
            DeValue::Integer(number) if number.radix() == 10 => number.as_str(),
            DeValue::Float(number) => number.as_str(),
            _ => return self.wrong_type("a number"),
        };
        match text.parse::<f64>() {
            Ok(value) if value.is_finite() => Some(value),
            _ => self.refuse(format!("is {text}; a finite number is wanted")),
        }
    }

    /// A length of time such as `"30s"`.
    pub(super) fn duration(&self) -> Option<Micros> {
        let text = self.string("a length of time such as `\"30s\"`")?;
        match text.parse::<Millis>() {
            Ok(time) => Some(time.into()),
            Err(wanted) => self.refuse(format!("is {text}; {wanted}")),
        }
    }

    /// The elements of a list.
    pub(super) fn list(&self, wanted: &str) -> Option<Vec<Node<'a>>> {
        let Some(array) = self.value.as_array() else {
            return self.wrong_type(wanted);
        };
        let nodes = array.iter().enumerate().map(|(index, element)| Node {
            problems: self.problems,
            value: element.get_ref(),
            path: format!("{}[{index}]", self.path),
            offset: element.span().start,
        });
        Some(nodes.collect())
    }

    /// The table, with the keys that the vocabulary has for its path.
    pub(super) fn section(&self) -> Option<Section<'a>> {
        self.section_of(vocabulary::keys(&self.path))
    }

    /// The table, where it is one; reports nothing.
    pub(super) fn peek(&self) -> Option<Section<'a>> {
        let table = self.value.as_table()?;
        Some(Section {
            problems: self.problems,
            table,
            path: self.path.clone(),
            offset: self.offset,
        })
    }

    /// The table, with these keys.
    pub(super) fn section_of(&self, known: &[&str]) -> Option<Section<'a>> {
        let Some(section) = self.peek() else {
            return self.wrong_type("a table");
        };
        section.refuse_unknown(known, "key");
        Some(section)
    }

    /// One of some words, and what each stands for.
    pub(super) fn word<T: Copy>(&self, words: &[(&str, T)]) -> Option<T> {
        let names: Vec<&str> = words.iter().map(|(name, _)| *name).collect();
        let text = self.string(&format!("one of {}", list(&names)))?;
        if let Some((_, value)) = words.iter().find(|(name, _)| *name == text) {
            return Some(*value);
        }
        let near = if self.problems.is_full() {
            None
        } else {
            vocabulary::nearest(text, names.iter().copied())
        };
        let hint = near.map_or_else(String::new, |near| format!("did you mean `{near}`? "));
        self.refuse(format!("is `\"{text}\"`; {hint}one of {} is wanted", list(&names)))
    }
}

/// Of a table whose keys depend on its policy: refuses the keys of other policies.
pub(super) fn refuse_others(section: &Section<'_>, policy: &str, own: &[&str]) -> Option<()> {
    let others = section.known().iter().filter(|key| **key != "policy" && !own.contains(key));
    let mut mine = Some(());
    for node in others.filter_map(|key| section.optional(key)) {
        mine = node.refuse(match own {
            [] => format!("is no key of `{policy}`, which has no parameters"),
            own => format!("is no key of `{policy}`, which has {}", list(own)),
        });
    }
    mine
}

/// The value of a key that may be left out; the default where it is.
pub(super) fn optional<'a, T>(
    section: &Section<'a>,
    key: &str,
    default: T,
    read: impl FnOnce(&Node<'a>) -> Option<T>,
) -> Option<T> {
    section.optional(key).map_or(Some(default), |node| read(&node))
}

/// Words in backticks, with commas.
pub(super) fn list(words: &[&str]) -> String {
    words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
}

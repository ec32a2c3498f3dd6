//! Any table of the file: types of values, unknown keys, and all problems at once, each with its line and key. Must not know
//! what keys mean.

use sojourn_protocol::jobfile::nearest;
use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    fmt::Display,
    ops::RangeInclusive,
    str::FromStr,
};
use toml::de::{DeTable, DeValue};

/// Problems that are told of one file.
const MAX_PROBLEMS: usize = 100;
/// Characters of a wrong text that are shown.
const MAX_SHOWN: usize = 60;

/// A problem of a file, and where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The line, from 1.
    pub line: usize,
    /// The key and what is wrong.
    pub message: String,
}

/// The text and what was found wrong with it.
pub(super) struct Problems<'t> {
    text: &'t str,
    found: RefCell<Vec<Problem>>,
}

impl<'t> Problems<'t> {
    pub(super) const fn new(text: &'t str) -> Self {
        Self { text, found: RefCell::new(Vec::new()) }
    }

    pub(super) fn add(&self, offset: usize, message: String) {
        let before = self.text.bytes().take(offset).filter(|byte| *byte == b'\n').count();
        let mut found = self.found.borrow_mut();
        if found.len() < MAX_PROBLEMS {
            found.push(Problem { line: before + 1, message });
        }
    }

    /// All of them, in the order of their lines.
    pub(super) fn into_found(self) -> Vec<Problem> {
        let mut found = self.found.into_inner();
        found.sort_by_key(|problem| problem.line);
        found
    }
}

/// A table of the file. It remembers which keys were asked for; the others are unknown.
pub(super) struct Section<'a> {
    problems: &'a Problems<'a>,
    table: Option<&'a DeTable<'a>>,
    path: String,
    offset: usize,
    asked: RefCell<Vec<&'static str>>,
    is_open: Cell<bool>,
}

impl<'a> Section<'a> {
    /// The whole file.
    pub(super) fn root(table: &'a DeTable<'a>, problems: &'a Problems<'a>) -> Self {
        Self::new(Some(table), problems, String::new(), 0)
    }

    fn new(
        table: Option<&'a DeTable<'a>>,
        problems: &'a Problems<'a>,
        path: String,
        offset: usize,
    ) -> Self {
        Self { problems, table, path, offset, asked: RefCell::default(), is_open: Cell::new(false) }
    }

    fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    fn value(&self, key: &'static str) -> Option<(usize, &'a DeValue<'a>)> {
        self.asked.borrow_mut().push(key);
        let (name, value) = self.table?.get_key_value(key)?;
        Some((name.span().start, value.get_ref()))
    }

    /// Is the table there?
    pub(super) const fn is_there(&self) -> bool {
        self.table.is_some()
    }

    /// Is the key there?
    pub(super) fn has(&self, key: &str) -> bool {
        self.table.is_some_and(|table| table.contains_key(key))
    }

    /// Reports a problem of a key.
    pub(super) fn refuse(&self, key: &str, message: impl Display) {
        let there = self.table.and_then(|table| table.get_key_value(key));
        let offset = there.map_or(self.offset, |(name, _)| name.span().start);
        self.problems.add(offset, format!("`{}` {message}", self.path_of(key)));
    }

    fn wrong(&self, key: &str, value: &DeValue<'_>, wanted: &str) {
        let is = match value {
            DeValue::String(text) => {
                format!("`\"{}\"`", text.chars().take(MAX_SHOWN).collect::<String>())
            }
            DeValue::Integer(number) => format!("the number `{number}`"),
            DeValue::Float(number) => format!("the number `{number}`"),
            DeValue::Boolean(value) => format!("`{value}`"),
            DeValue::Datetime(_) => "a date".to_owned(),
            DeValue::Array(_) => "a list".to_owned(),
            DeValue::Table(_) => "a table".to_owned(),
        };
        self.refuse(key, format!("is {is}; {wanted} is wanted"));
    }

    /// The table of a key; an empty one where it isn't there.
    pub(super) fn section(&self, key: &'static str) -> Section<'a> {
        let value = self.value(key);
        let table = value.and_then(|(_, value)| {
            let table = value.as_table();
            if table.is_none() {
                self.wrong(key, value, "a table");
            }
            table
        });
        let offset = value.map_or(self.offset, |(offset, _)| offset);
        Section::new(table, self.problems, self.path_of(key), offset)
    }

    pub(super) fn text(&self, key: &'static str) -> Option<&'a str> {
        let (_, value) = self.value(key)?;
        let text = value.as_str();
        if text.is_none() {
            self.wrong(key, value, "a text");
        }
        text
    }

    /// A text that is there; its absence is reported, with what it would be.
    pub(super) fn required(&self, key: &'static str, what: &str) -> Option<&'a str> {
        if !self.has(key) {
            self.asked.borrow_mut().push(key);
            self.refuse(key, format!("is missing: {what}"));
            return None;
        }
        self.text(key)
    }

    /// A text that stands for something else: a length of time, an amount of money.
    pub(super) fn parsed<T: FromStr<Err: Display>>(&self, key: &'static str) -> Option<T> {
        self.text(key)?.parse().map_err(|error| self.refuse(key, format!("is wrong: {error}"))).ok()
    }

    pub(super) fn flag(&self, key: &'static str) -> Option<bool> {
        let (_, value) = self.value(key)?;
        let flag = value.as_bool();
        if flag.is_none() {
            self.wrong(key, value, "`true` or `false`");
        }
        flag
    }

    pub(super) fn number(&self, key: &'static str, range: RangeInclusive<u32>) -> Option<u32> {
        let (_, value) = self.value(key)?;
        let number = whole(value).filter(|number| range.contains(number));
        if number.is_none() {
            self.wrong(
                key,
                value,
                &format!("a whole number from {} to {}", range.start(), range.end()),
            );
        }
        number
    }

    /// A range, as `[2, 16]`.
    pub(super) fn range<T: PartialOrd>(
        &self,
        key: &'static str,
        wanted: &str,
        read: impl Fn(&DeValue<'_>) -> Option<T>,
    ) -> Option<(T, T)> {
        let (_, value) = self.value(key)?;
        let ends = value.as_array().and_then(|list| match &list[..] {
            [low, high] => read(low.get_ref()).zip(read(high.get_ref())),
            _ => None,
        });
        let ends = ends.filter(|(low, high)| low <= high);
        if ends.is_none() {
            self.wrong(key, value, wanted);
        }
        ends
    }

    pub(super) fn list(&self, key: &'static str) -> Option<Vec<String>> {
        let (_, value) = self.value(key)?;
        let list = value.as_array().and_then(|list| {
            list.iter().map(|entry| entry.get_ref().as_str().map(str::to_owned)).collect()
        });
        if list.is_none() {
            self.wrong(key, value, "a list of texts");
        }
        list
    }

    /// Whole numbers by free keys.
    pub(super) fn numbers(&self, key: &'static str) -> Option<BTreeMap<String, u32>> {
        let (_, value) = self.value(key)?;
        let numbers = value.as_table().and_then(|table| {
            let entries = table.iter().map(|(name, value)| {
                Some((name.get_ref().to_string(), whole(value.get_ref()).filter(|n| *n > 0)?))
            });
            entries.collect()
        });
        if numbers.is_none() {
            self.wrong(key, value, "a table of whole numbers");
        }
        numbers
    }

    /// Somebody else reads this table and refuses its unknown keys.
    pub(super) fn is_read_elsewhere(&self) {
        self.is_open.set(true);
    }
}

impl Drop for Section<'_> {
    /// All keys were asked for by now: the others aren't known.
    fn drop(&mut self) {
        let (Some(table), false) = (self.table, self.is_open.get()) else { return };
        let asked = self.asked.borrow();
        for key in table.keys() {
            let word: &str = key.get_ref();
            if asked.contains(&word) {
                continue;
            }
            let missing = asked.iter().copied().filter(|known| !table.contains_key(*known));
            let hint = match nearest(word, missing) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("known here: {}", asked.join(", ")),
            };
            let path = self.path_of(word);
            self.problems.add(key.span().start, format!("`{path}` is no known key; {hint}"));
        }
    }
}

/// A whole number.
pub(super) fn whole(value: &DeValue<'_>) -> Option<u32> {
    let DeValue::Integer(number) = value else { return None };
    u32::from_str_radix(number.as_str(), number.radix()).ok()
}

/// A size with its unit, as `16GiB`.
pub(super) fn size(value: &DeValue<'_>) -> Option<u64> {
    let text = value.as_str()?.trim();
    let units = [("GiB", 1 << 30), ("MiB", 1 << 20), ("GB", 1_000_000_000), ("MB", 1_000_000)];
    let (number, unit) =
        units.into_iter().find_map(|(unit, bytes)| Some((text.strip_suffix(unit)?, bytes)))?;
    number.trim().parse::<u64>().ok()?.checked_mul(unit)
}

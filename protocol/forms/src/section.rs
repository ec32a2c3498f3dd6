//! A table that is read key by key, and so knows its keys without a list of them.

use crate::{Node, Table, nearest};
use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    fmt::Display,
    ops::RangeInclusive,
    str::FromStr,
};

/// A table that remembers which keys were asked for. When it is dropped, all others are reported as unknown.
#[derive(Debug)]
pub struct Section<'a> {
    table: Table<'a>,
    asked: RefCell<Vec<&'a str>>,
    is_open: Cell<bool>,
}

impl<'a> From<Table<'a>> for Section<'a> {
    fn from(table: Table<'a>) -> Self {
        Self { table, asked: RefCell::default(), is_open: Cell::new(false) }
    }
}

impl<'a> Section<'a> {
    fn value(&self, key: &'static str) -> Option<Node<'a>> {
        self.asked.borrow_mut().push(key);
        self.table.optional(key)
    }

    /// Whether the text has the table.
    #[must_use]
    pub const fn is_there(&self) -> bool {
        self.table.is_there()
    }

    /// Whether the table has the key, which isn't asked for by that.
    #[must_use]
    pub fn has(&self, key: &str) -> bool {
        self.table.has(key)
    }

    /// Reports a problem of a key.
    pub fn refuse(&self, key: &str, message: impl AsRef<str>) {
        self.table.refuse::<()>(key, message);
    }

    /// The table of a key; an empty one where it isn't there.
    #[must_use]
    pub fn section(&self, key: &'static str) -> Section<'a> {
        let table = self.value(key).and_then(|node| node.table());
        table.unwrap_or_else(|| self.table.absent(key)).into()
    }

    /// A text.
    #[must_use]
    pub fn text(&self, key: &'static str) -> Option<&'a str> {
        self.value(key)?.string("a text")
    }

    /// A text that is there; its absence is reported, with what it would be.
    #[must_use]
    pub fn required(&self, key: &'static str, what: &str) -> Option<&'a str> {
        self.asked.borrow_mut().push(key);
        self.table.required(key, what)?.string("a text")
    }

    /// A text that stands for something else: a length of time, an amount of money.
    #[must_use]
    pub fn parsed<T: FromStr<Err: Display>>(&self, key: &'static str) -> Option<T> {
        self.value(key)?.parsed("a text")
    }

    /// `true` or `false`.
    #[must_use]
    pub fn flag(&self, key: &'static str) -> Option<bool> {
        self.value(key)?.boolean()
    }

    /// A whole number of a range.
    #[must_use]
    pub fn number(&self, key: &'static str, range: RangeInclusive<u32>) -> Option<u32> {
        self.value(key)?.integer(*range.start(), *range.end())
    }

    /// Two ends of a range, as `[2, 16]`, each by a function that reports nothing.
    pub fn range<T: PartialOrd>(
        &self,
        key: &'static str,
        wanted: &str,
        read: impl Fn(&Node<'a>) -> Option<T>,
    ) -> Option<(T, T)> {
        let node = self.value(key)?;
        let ends = match node.list(wanted)?.as_slice() {
            [low, high] => read(low).zip(read(high)),
            _ => None,
        };
        match ends {
            Some((low, high)) if low > high => {
                node.refuse("is no range: its first end is above its last")
            }
            Some(ends) => Some(ends),
            None => node.wrong_type(wanted),
        }
    }

    /// A list of texts.
    #[must_use]
    pub fn list(&self, key: &'static str) -> Option<Vec<String>> {
        let texts = self.value(key)?.list("a list of texts")?;
        texts.iter().map(|text| text.string("a text").map(str::to_owned)).collect()
    }

    /// Whole numbers above 0, by free keys.
    #[must_use]
    pub fn numbers(&self, key: &'static str) -> Option<BTreeMap<String, u32>> {
        let table = self.value(key)?.table()?;
        let numbers = table.entries();
        numbers.map(|(key, number)| Some((key.to_owned(), number.integer(1, u32::MAX)?))).collect()
    }

    /// The only table of this one that wasn't asked for, unless its name is near to a key that was: another reader's, to whom it is
    /// left. None where there are several.
    #[must_use]
    pub fn foreign_table(&self) -> Option<&'a str> {
        let mut asked = self.asked.borrow_mut();
        let is_foreign =
            |key: &str| !asked.contains(&key) && nearest(key, asked.iter().copied()).is_none();
        let tables = self.table.entries().filter(|(key, node)| node.is_table() && is_foreign(key));
        let tables: Vec<&'a str> = tables.map(|(key, _)| key).collect();
        let &[table] = tables.as_slice() else { return None };
        asked.push(table);
        Some(table)
    }

    /// Leaves this table's unknown keys to another reader of it.
    pub fn is_read_elsewhere(&self) {
        self.is_open.set(true);
    }
}

impl Drop for Section<'_> {
    /// All keys were asked for by now: the others aren't known.
    fn drop(&mut self) {
        if !self.is_open.get() {
            self.table.refuse_unknown(&self.asked.borrow(), "key", |_| None);
        }
    }
}

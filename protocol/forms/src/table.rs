//! A table with its path: its keys, known or not, and its values.

use crate::{Node, problems::Problems, words::suggestion};
use toml::de::DeTable;

/// A table with its path. A table that isn't there has no keys.
#[derive(Debug, Clone)]
pub struct Table<'a> {
    problems: &'a Problems<'a>,
    table: Option<&'a DeTable<'a>>,
    path: String,
    offset: usize,
}

impl<'a> Table<'a> {
    pub(crate) fn root(table: &'a DeTable<'a>, problems: &'a Problems<'a>) -> Self {
        Self::new(Some(table), problems, String::new(), 0)
    }

    pub(crate) const fn new(
        table: Option<&'a DeTable<'a>>,
        problems: &'a Problems<'a>,
        path: String,
        offset: usize,
    ) -> Self {
        Self { problems, table, path, offset }
    }

    /// The empty table of a key that isn't there, or is no table.
    pub(crate) fn absent(&self, key: &str) -> Self {
        Self::new(None, self.problems, self.path_of(key), self.offset_of(key))
    }

    /// The place of a key; of one that isn't there, the place of the table.
    fn offset_of(&self, key: &str) -> usize {
        let name = self.table.and_then(|table| table.get_key_value(key));
        name.map_or(self.offset, |(name, _)| name.span().start)
    }

    /// The path, e.g. `training.optimizer`; empty for the root.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    /// Whether the text has the table.
    #[must_use]
    pub const fn is_there(&self) -> bool {
        self.table.is_some()
    }

    /// Whether the table has the key.
    #[must_use]
    pub fn has(&self, key: &str) -> bool {
        self.table.is_some_and(|table| table.contains_key(key))
    }

    fn keys(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        let keys = self.table.into_iter().flat_map(|table| table.keys());
        keys.map(|key| key.get_ref().as_ref())
    }

    /// Whether these are all the keys that are there.
    #[must_use]
    pub fn has_only(&self, keys: &[&str]) -> bool {
        self.keys().all(|key| keys.contains(&key))
    }

    /// Reports each key that isn't among the known ones, with the nearest of those that are missing, the place where else such a
    /// key belongs, or all known keys. `what` names a key in the message.
    pub fn refuse_unknown(
        &self,
        known: &[&str],
        what: &str,
        elsewhere: impl Fn(&str) -> Option<String>,
    ) {
        for word in self.keys().filter(|word| !known.contains(word)) {
            if self.problems.is_full() {
                return;
            }
            let missing = known.iter().copied().filter(|known| !self.has(known));
            let hint = suggestion(word, missing, || elsewhere(word), known);
            self.refuse::<()>(word, format!("is no known {what}; {hint}"));
        }
    }

    /// Every key with its value.
    pub fn entries(&self) -> impl Iterator<Item = (&'a str, Node<'a>)> {
        self.keys().filter_map(|key| Some((key, self.optional(key)?)))
    }

    /// The value of `key`, if there.
    #[must_use]
    pub fn optional(&self, key: &str) -> Option<Node<'a>> {
        let (name, value) = self.table?.get_key_value(key)?;
        // A table's own span may begin elsewhere; the key says where the user wrote it.
        Some(Node::new(self.problems, value.get_ref(), self.path_of(key), name.span().start))
    }

    /// The value of `key`; its absence is reported, with what it would be.
    #[must_use]
    pub fn required(&self, key: &str, what: &str) -> Option<Node<'a>> {
        self.optional(key).or_else(|| self.refuse(key, format!("is missing: {what}")))
    }

    /// Reports a problem of a key of this table; always `None`.
    pub fn refuse<T>(&self, key: &str, message: impl AsRef<str>) -> Option<T> {
        self.problems.add(self.offset_of(key), &self.path_of(key), message.as_ref());
        None
    }
}

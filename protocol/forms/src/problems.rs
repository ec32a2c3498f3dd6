//! The problems of a text, each with its line and key.

use crate::place::line_at;
use std::{
    cell::{Cell, RefCell},
    fmt,
};

/// Problems that are reported of one text; of others only that there are more.
const MAX_PROBLEMS: usize = 100;
/// Characters of a key, and of its message: both repeat the text, which may be of any length.
const MAX_KEY_CHARS: usize = 200;
/// See [`MAX_KEY_CHARS`].
const MAX_MESSAGE_CHARS: usize = 1_000;

/// One problem of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    line: usize,
    key: String,
    message: String,
}

impl Problem {
    /// A problem at a line, counted from 1. Key and message are cut where they are too long to be shown.
    #[must_use]
    pub fn new(line: usize, key: &str, message: &str) -> Self {
        let (key, message) = (cut(key, MAX_KEY_CHARS), cut(message, MAX_MESSAGE_CHARS));
        Self { line, key, message }
    }

    /// The line, counted from 1.
    #[must_use]
    pub const fn line(&self) -> usize {
        self.line
    }

    /// The whole path of the key, e.g. `training.optimizer.lr`; empty for a syntax error.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The same problem with its texts changed: without characters that can't be shown, for example.
    #[must_use]
    pub fn map(self, text: impl Fn(&str) -> String) -> Self {
        Self { line: self.line, key: text(&self.key), message: text(&self.message) }
    }
}

fn cut(text: &str, max_chars: usize) -> String {
    match text.char_indices().nth(max_chars) {
        Some((end, _)) => text.get(..end).unwrap_or_default().to_owned() + "…",
        None => text.to_owned(),
    }
}

/// Key and message, without the line.
impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.key.is_empty() {
            f.write_str(&self.message)
        } else {
            write!(f, "`{}` {}", self.key, self.message)
        }
    }
}

/// The text that is read and the problems found in it so far.
#[derive(Debug)]
pub(crate) struct Problems<'t> {
    text: &'t str,
    found: RefCell<Vec<Problem>>,
    more: Cell<bool>,
}

impl<'t> Problems<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        Self { text, found: RefCell::default(), more: Cell::new(false) }
    }

    /// Reports a problem of `key` at a byte offset of the text.
    pub(crate) fn add(&self, offset: usize, key: &str, message: &str) {
        let mut found = self.found.borrow_mut();
        if found.len() < MAX_PROBLEMS {
            found.push(Problem::new(line_at(self.text, offset), key, message));
        } else {
            self.more.set(true);
        }
    }

    /// Whether further problems are only counted as more: then nothing is worked out for them.
    pub(crate) fn is_full(&self) -> bool {
        self.more.get()
    }

    /// All of them, in the order of their lines.
    pub(crate) fn into_found(self) -> Vec<Problem> {
        let mut found = self.found.into_inner();
        if self.more.get() {
            let last = found.iter().map(Problem::line).max().unwrap_or(1);
            found.push(Problem::new(last, "", "there are more problems than these"));
        }
        found.sort_by_key(Problem::line);
        found.dedup();
        found
    }
}

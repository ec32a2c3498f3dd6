//! Problems of a job file, with the line and the key of each.

use crate::text::plain_text;
use std::fmt;

/// Characters of a key, and of what is wrong with it: both repeat the file, which may be of any length.
const MAX_KEY_CHARS: usize = 200;
/// See [`MAX_KEY_CHARS`].
const MAX_MESSAGE_CHARS: usize = 1_000;

/// One problem of a job file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    line: usize,
    key: String,
    message: String,
}

impl Problem {
    pub(super) fn new(line: usize, key: &str, message: &str) -> Self {
        let (key, message) = (cut(key, MAX_KEY_CHARS), cut(message, MAX_MESSAGE_CHARS));
        Self { line, key, message }
    }

    /// The line, counted from 1.
    #[must_use]
    pub fn line(&self) -> usize {
        self.line
    }

    /// The whole path of the key, e.g. `training.optimizer.lr`; empty for a syntax error.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }
}

/// As it can be shown: cut where it is longer than so many characters.
fn cut(text: &str, max_chars: usize) -> String {
    let end = if text.chars().nth(max_chars).is_some() { "…" } else { "" };
    plain_text(text, max_chars) + end
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

/// A job file that can't be used: at least one [`Problem`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{first}{}", more(.rest.len()))]
pub struct JobFileError {
    first: Problem,
    rest: Vec<Problem>,
}

fn more(count: usize) -> String {
    if count == 0 { String::new() } else { format!(" (and {count} more)") }
}

impl JobFileError {
    /// The problems in the order of their lines; `None` where there are none.
    pub(super) fn from_problems(mut problems: Vec<Problem>) -> Option<Self> {
        problems.sort_by_key(|problem| problem.line);
        problems.dedup();
        let mut problems = problems.into_iter();
        let first = problems.next()?;
        Some(Self { first, rest: problems.collect() })
    }

    /// For a refusal that no part of the reader has explained, so that it still is one.
    pub(super) fn unexplained() -> Self {
        Self { first: Problem::new(1, "", "can't be read as a job"), rest: Vec::new() }
    }

    /// The line of the first problem, counted from 1.
    #[must_use]
    pub fn line(&self) -> usize {
        self.first.line
    }

    /// Every problem, in the order of their lines.
    pub fn problems(&self) -> impl Iterator<Item = &Problem> {
        std::iter::once(&self.first).chain(&self.rest)
    }
}

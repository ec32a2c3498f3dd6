//! Problems of a job file, with the line and the key of each.

use std::fmt;

/// One problem of a job file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    line: usize,
    key: String,
    message: String,
}

impl Problem {
    pub(super) fn new(line: usize, key: String, message: String) -> Self {
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
        Self {
            first: Problem::new(1, String::new(), "can't be read as a job".to_owned()),
            rest: Vec::new(),
        }
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

//! Problems of a job file, with the line and the key of each.

use crate::text::plain_text;
use sojourn_forms::Problem;

/// A job file that can't be used: at least one [`Problem`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", summary(problems))]
pub struct JobFileError {
    problems: Vec<Problem>,
}

fn summary(problems: &[Problem]) -> String {
    match problems {
        [first, _, ..] => format!("{first} (and {} more)", problems.len() - 1),
        problems => problems.iter().map(Problem::to_string).collect(),
    }
}

impl JobFileError {
    /// The problems in the order of their lines, as they can be shown: they repeat the file.
    pub(super) fn new(problems: Vec<Problem>) -> Self {
        let plain = |problem: Problem| problem.map(|text| plain_text(text, usize::MAX));
        Self { problems: problems.into_iter().map(plain).collect() }
    }

    /// The line of the first problem, counted from 1.
    #[must_use]
    pub fn line(&self) -> usize {
        self.problems.first().map_or(1, Problem::line)
    }

    /// Every problem, in the order of their lines.
    pub fn problems(&self) -> impl Iterator<Item = &Problem> {
        self.problems.iter()
    }
}

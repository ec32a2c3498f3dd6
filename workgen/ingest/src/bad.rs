//! Rows and images that can't be read: how many there are, why, and the first of them.
//!
//! ```text
//! a row's problems --> Rule --> ends the pass     (`"refuse"`: the first problem)
//!                           |-> leaves the row out (`"skip"`), which `BadRows` counts
//!                           '-> is listed          (a pass that only looks for problems)
//! ```
//!
//! Whether a row is left out depends on it and on the good rows before it alone, so that each pass leaves out the same.

use crate::error::{BadRow, IngestError, MAX_TOLD, Reason};
use sojourn_protocol::spec::OnBad;
use std::collections::BTreeMap;

/// Rows, or images, that can't be read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BadRows {
    /// How many.
    pub rows: u64,
    /// How many for each reason; of several problems of a row the first counts.
    pub reasons: BTreeMap<Reason, u64>,
    /// The first of them, at most [`MAX_TOLD`].
    pub first: Vec<BadRow>,
}

impl BadRows {
    /// No rows.
    pub(crate) const fn none() -> Self {
        Self { rows: 0, reasons: BTreeMap::new(), first: Vec::new() }
    }

    /// Are they images, each a file of its own?
    #[must_use]
    pub fn are_images(&self) -> bool {
        self.first.iter().any(BadRow::is_image)
    }

    fn add(&mut self, reason: Reason, row: BadRow) {
        self.rows += 1;
        *self.reasons.entry(reason).or_default() += 1;
        if self.first.len() < MAX_TOLD {
            self.first.push(row);
        }
    }
}

/// The treatment of bad rows in a pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rule {
    on_bad: OnBad,
    is_listing: bool,
}

/// The way of a pass behind a bad row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flow {
    /// To the next row.
    Next,
    /// To its end, as if there were no more rows.
    End,
}

impl Rule {
    /// The rule of a pass for the sake of rows.
    pub(crate) const fn reading(on_bad: OnBad) -> Self {
        Self { on_bad, is_listing: false }
    }

    /// The rule of a pass that lists problems.
    pub(crate) const fn listing(on_bad: OnBad) -> Self {
        Self { on_bad, is_listing: true }
    }

    /// May a pass go on behind a bad row? Then it looks at all that a row has.
    pub(crate) fn goes_on(self) -> bool {
        self.is_listing || self.on_bad == OnBad::Skip
    }

    /// Treats a row with these problems, one or more.
    ///
    /// # Errors
    /// The first problem, where it ends the pass.
    pub(crate) fn treat(
        self,
        problems: Vec<BadRow>,
        bad: &mut BadRows,
        listed: &mut Vec<BadRow>,
    ) -> Result<Flow, IngestError> {
        let reason = |row: &BadRow| Reason::of(&row.problem).filter(|reason| reason.is_skipped());
        let skipped = problems.iter().find_map(|row| Some((reason(row)?, row.clone())));
        if let (OnBad::Skip, Some((reason, row))) = (self.on_bad, skipped) {
            bad.add(reason, row);
            return Ok(Flow::Next);
        }
        if !self.is_listing {
            return match problems.into_iter().next() {
                Some(BadRow { at, problem }) => Err(at.refuse(problem)),
                None => Ok(Flow::Next),
            };
        }
        // Behind a problem of the whole others may follow from it.
        let is_whole = problems.iter().any(|row| Reason::of(&row.problem).is_none());
        listed.extend(problems);
        // One more than is told shows that there are more.
        let is_full = listed.len() > MAX_TOLD;
        Ok(if is_whole || is_full { Flow::End } else { Flow::Next })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{Place, Problem};

    fn row(line: u64, problem: Problem) -> BadRow {
        BadRow { at: Place { line: Some(line), ..Place::of("t.csv") }, problem }
    }

    #[test]
    fn missing_values_are_no_bad_rows_and_a_whole_problem_ends_a_list() {
        let missing = || Problem::MissingFeature(String::new());
        let word = || Problem::NotANumber("x".to_owned());
        let whole = || Problem::TooManyWords { limit: 1 };
        let skip = Rule::reading(OnBad::Skip);
        let (mut bad, mut listed) = (BadRows::default(), Vec::new());
        assert!(skip.treat(vec![row(2, missing())], &mut bad, &mut listed).is_err());
        assert!(skip.treat(vec![row(2, whole())], &mut bad, &mut listed).is_err());
        let both = vec![row(3, missing()), row(3, word())];
        assert_eq!(skip.treat(both, &mut bad, &mut listed).unwrap(), Flow::Next);
        assert_eq!((bad.rows, bad.reasons[&Reason::NoNumber]), (1, 1));
        assert_eq!((bad.first, listed.len()), (vec![row(3, word())], 0));
        let list = Rule::listing(OnBad::Refuse);
        let mut bad = BadRows::default();
        let both = vec![row(3, missing()), row(3, word())];
        assert_eq!(list.treat(both, &mut bad, &mut listed).unwrap(), Flow::Next);
        assert_eq!((bad.rows, listed.len()), (0, 2));
        let whole = vec![row(4, whole())];
        assert_eq!(list.treat(whole, &mut bad, &mut listed).unwrap(), Flow::End);
    }
}

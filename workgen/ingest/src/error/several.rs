//! Several problems of one table, as they are told: those of a column and a reason in one sentence.

use super::{Place, Problem, Reason, line, sentence};
use sojourn_protocol::{quantity::to_u64, spec::OnBad};
use std::{collections::BTreeSet, fmt};

/// Most bad rows, or problems, that are told one by one.
pub const MAX_TOLD: usize = 20;

/// A row, or an image, that can't be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadRow {
    /// The place.
    pub at: Place,
    /// The reason.
    pub problem: Problem,
}

impl BadRow {
    /// Is it an image, a file of its own?
    pub(crate) fn is_image(&self) -> bool {
        self.at.line.is_none() && self.at.row.is_none()
    }
}

/// The problems of a table's rows, or of a folder's images.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problems {
    /// A sentence about all of them, where there is one.
    head: Option<String>,
    first: Vec<BadRow>,
    /// A sentence at the end.
    tail: Option<String>,
}

impl Problems {
    /// Problems that were listed, of which one more than [`MAX_TOLD`] shows that there are others; `from` is the source.
    pub(crate) fn listed(from: &str, on_bad: OnBad, mut listed: Vec<BadRow>) -> Self {
        let has_more = listed.len() > MAX_TOLD;
        listed.truncate(MAX_TOLD);
        let from = sentence(from);
        let are_skipped = on_bad == OnBad::Refuse
            && are_few(&listed)
            && listed.iter().all(|row| Reason::of(&row.problem).is_some_and(Reason::is_skipped));
        let tail = if has_more {
            Some(format!("{from}: these are the first {MAX_TOLD} problems, and there are more"))
        } else if are_skipped {
            let key = key(&listed);
            Some(format!("{from}: `data.{key} = \"skip\"` leaves out what can't be read"))
        } else {
            None
        };
        Self { head: None, first: listed, tail }
    }

    /// More than half of the rows are bad, so many of so many, the first of which are these.
    pub(crate) fn most(from: &str, (rows, of): (u64, u64), first: Vec<BadRow>) -> Self {
        let key = key(&first);
        let from = sentence(from);
        let what = match key {
            "on_bad_image" => {
                "images can't be read, and `data.on_bad_image` leaves out at most half"
            }
            _ => {
                "rows can't be read, and `data.on_bad_row` leaves out at most half: the table is most likely written in another way \
                 than the job says"
            }
        };
        let head = format!("{from}: {rows} of {of} {what}");
        Self { head: Some(head), first, tail: None }
    }

    /// All of them, a line each; those of a column and a reason are one.
    #[must_use]
    pub fn messages(&self) -> Vec<String> {
        let mut groups: Vec<Vec<&BadRow>> = Vec::new();
        for row in &self.first {
            let is_of =
                |group: &&mut Vec<&BadRow>| group.first().is_some_and(|of| is_like(of, row));
            match groups.iter_mut().find(is_of) {
                Some(group) => group.push(row),
                None => groups.push(vec![row]),
            }
        }
        let told = groups.into_iter().filter_map(|group| match group.as_slice() {
            [] => None,
            [BadRow { at, problem }] => Some(format!("{at}{problem}")),
            [first, ..] => Some(several(first, &group)),
        });
        self.head.iter().cloned().chain(told).chain(self.tail.iter().cloned()).collect()
    }

    /// Is there one alone?
    pub(crate) fn is_one(&self) -> bool {
        self.first.len() < 2
    }

    /// Is this one of them?
    pub(crate) fn contains(&self, at: &Place, problem: &Problem) -> bool {
        self.first.iter().any(|row| row.at == *at && row.problem == *problem)
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.messages().join("\n"))
    }
}

/// Are they at most half of the rows up to the last of them? More than half aren't left out. Of images nothing says that.
fn are_few(rows: &[BadRow]) -> bool {
    // A table's first line has names, as a rule.
    let number = |row: &BadRow| row.at.line.map(|line| line.saturating_sub(1)).or(row.at.row);
    let numbers: BTreeSet<u64> = rows.iter().filter_map(number).collect();
    numbers.last().is_none_or(|last| to_u64(numbers.len()).saturating_mul(2) <= *last)
}

/// The key of a job that leaves out such rows.
fn key(rows: &[BadRow]) -> &'static str {
    let is_image = rows.iter().any(BadRow::is_image);
    if is_image { "on_bad_image" } else { "on_bad_row" }
}

/// Are both told in one sentence?
fn is_like(a: &BadRow, b: &BadRow) -> bool {
    let reason = Reason::of(&a.problem);
    reason.is_some()
        && reason == Reason::of(&b.problem)
        && a.at.column == b.at.column
        && (a.at.file == b.at.file || a.is_image())
}

fn several(first: &BadRow, group: &[&BadRow]) -> String {
    let reason = Reason::of(&first.problem).map_or("problems", Reason::of_several);
    let places: Vec<String> = group.iter().map(|row| place(row)).collect();
    let of = match (first.at.line, first.at.row) {
        // Each image is a file of its own.
        (None, None) => String::new(),
        _ => Place { line: None, row: None, ..first.at.clone() }.to_string(),
    };
    let remedy = first.problem.remedy().map_or_else(String::new, |remedy| format!("; {remedy}"));
    format!("{of}{} {reason}: {}{remedy}", group.len(), places.join(", "))
}

/// The line or row, and the value where it says something.
fn place(row: &BadRow) -> String {
    let BadRow { at, problem } = row;
    let place = match (at.line, at.row) {
        (Some(line), _) => format!("line {line}"),
        (None, Some(row)) => format!("row {row}"),
        (None, None) => format!("`{}`", line(&at.file)),
    };
    match problem.value() {
        Some(value) => format!("{place} {value}"),
        None => place,
    }
}

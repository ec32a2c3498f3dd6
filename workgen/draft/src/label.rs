//! Which column is the label, and what its values are.

use crate::notation::{Reading, odd_words};
use serde::Serialize;
use sojourn_ingest::{ColumnProfile, TableProfile};

/// Classes that whole numbers may be taken for.
const MAX_NUMBERED_CLASSES: usize = 20;
/// Rows that a class has at least, in the mean, for whole numbers to be taken for classes.
const MIN_ROWS_OF_CLASS: u64 = 5;
/// More different whole numbers than these are classes only where each is there often: in one row for so many of the commonest.
const USUAL_CLASSES: usize = 10;
const MOST_TO_RAREST: u64 = 20;

/// The kind of labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LabelKind {
    /// Each different value is a class.
    Classes,
    /// Numbers, to be predicted as such.
    Numbers,
}

/// A guess at which column is the label.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Guess {
    /// The column.
    pub column: String,
    /// The reason.
    pub because: &'static str,
}

/// Names of labels, in the order in which they are looked for.
const NAMES: [&str; 40] = [
    "label",
    "labels",
    "target",
    "targets",
    "class",
    "y",
    "outcome",
    "response",
    "species",
    "diagnosis",
    "survived",
    "churn",
    "churned",
    "exited",
    "default",
    "defaulted",
    "approved",
    "fraud",
    "is_fraud",
    "spam",
    "category",
    "grade",
    "cover_type",
    "covertype",
    "quality",
    "income",
    "salary",
    "price",
    "saleprice",
    "sale_price",
    "charges",
    "fare",
    "rings",
    "median_house_value",
    "medhousevalue",
    "medhouseval",
    "medv",
    "consumption",
    "demand",
    "sales",
];

/// The column that is most likely the label: by its name, else the last that may be one. None below a title, where nothing has a name.
#[must_use]
pub fn guess(table: &TableProfile) -> Option<Guess> {
    if table.names_below_title.is_some() {
        return None;
    }
    let reading = Reading::of(table);
    let can_be = |column: &&ColumnProfile| kind(column, &reading).is_ok();
    let named = |wanted: &&str| {
        let mut columns = table.columns.iter().filter(can_be);
        columns.find(|column| column.name.trim().eq_ignore_ascii_case(wanted))
    };
    if let Some(column) = NAMES.iter().find_map(named) {
        return Some(Guess { column: column.name.clone(), because: "by its name" });
    }
    let ends_so = |column: &&ColumnProfile| {
        let name = column.name.to_ascii_lowercase();
        ["_label", "_class", "_target", " class", " label"].iter().any(|end| name.ends_with(end))
    };
    if let Some(column) = table.columns.iter().filter(can_be).find(ends_so) {
        return Some(Guess { column: column.name.clone(), because: "by the end of its name" });
    }
    let last = table.columns.iter().rev().find(can_be)?;
    Some(Guess { column: last.name.clone(), because: "the last column that can be one" })
}

/// Are these whole numbers counts of something: many different ones, of which the outer ones are rare?
fn is_measured(column: &ColumnProfile) -> bool {
    let Some(distinct) = &column.distinct else { return true };
    let (rarest, commonest) = (distinct.values().min(), distinct.values().max());
    distinct.len() > USUAL_CLASSES
        && rarest.zip(commonest).is_some_and(|(rarest, most)| rarest * MOST_TO_RAREST < *most)
}

/// The kind of labels that the values of a column are.
pub(crate) fn kind(column: &ColumnProfile, reading: &Reading) -> Result<LabelKind, String> {
    let name = &column.name;
    if let Some(what) = &column.unreadable {
        return Err(format!("`{name}` holds {what}, which can be no label"));
    }
    if name.is_empty() {
        return Err("a column without a name can be no label".to_owned());
    }
    if column.values == 0 {
        return Err(format!("`{name}` is empty"));
    }
    let different = column.different();
    if different == Some(1) {
        return Err(format!("`{name}` has the same value in all rows"));
    }
    let are_numbers = reading.numbers(column) == column.values;
    if are_numbers || odd_words(column, reading).is_some() {
        if column.counts_rows && column.values > 2 {
            return Err(format!("`{name}` counts the rows"));
        }
        let are_few = different.is_some_and(|count| {
            count <= MAX_NUMBERED_CLASSES && column.values >= MIN_ROWS_OF_CLASS * count as u64
        });
        let are_whole = are_numbers && reading.are_whole(column);
        let are_classes = are_whole && are_few && !is_measured(column);
        return Ok(if are_classes { LabelKind::Classes } else { LabelKind::Numbers });
    }
    match different {
        None => Err(format!("`{name}` has thousands of different words: no class has enough rows")),
        Some(count) if 2 * count as u64 > column.values && count > 2 => {
            Err(format!("`{name}` has a word of its own in nearly every row"))
        }
        Some(_) => Ok(LabelKind::Classes),
    }
}

//! The use that is made of each column of a table.

use crate::{
    label::LabelKind,
    notation::{Reading, odd_words, strays},
    number::{clipped, short, some},
};
use serde::Serialize;
use sojourn_ingest::{ColumnProfile, TableProfile, without_sign};
use sojourn_protocol::{
    figures::{count, counted},
    spec::FileKind,
};

/// Words of a column that is taken as a feature for each.
const MAX_WORDS: usize = 64;
/// Features that all columns of words may have together.
const MAX_WORD_FEATURES: usize = 2048;
/// Of this many rows or more, a word of a column is in two at least, in the mean.
const MIN_ROWS_OF_WORD: u64 = 2;
/// Values that a column with missing ones has at least, and the part of the rows of which it has some: else those may all be set aside.
const MIN_VALUES: u64 = 10;
const NEARLY_EMPTY: u64 = 50;
/// Characters from which a value is a text.
const LONG_TEXT: usize = 100;

/// The use that is made of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Taken {
    /// The labels.
    Label(LabelKind),
    /// A feature.
    Number,
    /// A feature for each word.
    OneHot,
    /// A feature for each part of a date.
    Dates,
    /// Nothing: `data.columns` leaves it out.
    LeftOut,
    /// Nothing: a column without a name is left out by itself.
    Unnamed,
}

impl Taken {
    /// Are features made of it?
    pub(crate) const fn is_feature(self) -> bool {
        matches!(self, Taken::Number | Taken::OneHot | Taken::Dates)
    }
}

/// A column, and what is made of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TakenColumn {
    /// The column; its position where it has no name.
    pub column: String,
    /// The contents, in a few words.
    pub holds: String,
    /// The use that is made of it.
    pub taken: Taken,
    /// Why, where that isn't plain.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub because: String,
    /// Fields that are missing, those with odd words among them.
    pub missing: u64,
    /// Words among numbers that are taken for missing values.
    #[serde(skip)]
    pub(crate) odd_words: Vec<String>,
    /// Fields that are numbers in another notation than the others: their rows are left out.
    #[serde(skip)]
    pub(crate) strays: u64,
    /// The position by which a column without a name is left out, from 1.
    #[serde(skip)]
    pub(crate) position: Option<u64>,
}

impl TakenColumn {
    /// The use that is made of it and why, in a few words.
    #[must_use]
    pub fn use_in_words(&self) -> String {
        let taken = match self.taken {
            Taken::Label(LabelKind::Classes) => "the label: classes",
            Taken::Label(LabelKind::Numbers) => "the label: a number",
            Taken::Number => "a feature",
            Taken::OneHot => "a feature for each word",
            Taken::Dates => "features for the parts of dates",
            Taken::LeftOut | Taken::Unnamed => "left out",
        };
        match self.because.as_str() {
            "" => taken.to_owned(),
            because => format!("{taken}: {because}"),
        }
    }
}

/// All columns of a table, whose label is `label`.
pub(crate) fn take(
    table: &TableProfile,
    reading: &Reading,
    label: (&str, LabelKind),
) -> Vec<TakenColumn> {
    let mut word_features = 0;
    let last_named = table.columns.iter().rposition(|column| !column.name.is_empty());
    let last_named = last_named.map_or(0, |last| last as u64 + 1);
    let labels = table.columns.iter().find(|column| column.name == label.0);
    let columns = (1_u64..).zip(&table.columns);
    columns
        .map(|(position, column)| {
            let holds = holds(column, reading);
            let named = |taken, because: String| TakenColumn {
                column: column.name.clone(),
                holds: holds.clone(),
                taken,
                because,
                missing: column.missing,
                odd_words: Vec::new(),
                strays: 0,
                position: None,
            };
            if column.name == label.0 {
                let odd_words = odd_words(column, reading).unwrap_or_default();
                return TakenColumn { odd_words, ..named(Taken::Label(label.1), String::new()) };
            }
            if column.name.is_empty() {
                let because = "it has no name".to_owned();
                let (of, text) = (position, position.to_string());
                // A first one, and empty ones behind all others, are left out by themselves.
                let by_itself = position == 1 || position > last_named && column.values == 0;
                let taken = if by_itself { Taken::Unnamed } else { Taken::LeftOut };
                let position = Some(of).filter(|_| !by_itself);
                return TakenColumn { column: text, position, ..named(taken, because) };
            }
            if let Some(because) = useless(table, column) {
                return named(Taken::LeftOut, because);
            }
            let numbers = reading.numbers(column);
            if numbers == column.values || column.truths == column.values {
                return named(Taken::Number, String::new());
            }
            if let Some(odd_words) = odd_words(column, reading) {
                let is_label = |word: &&String| {
                    label.1 == LabelKind::Classes
                        && labels.is_some_and(|labels| has_word(labels, word))
                };
                if let Some(word) = odd_words.iter().find(is_label) {
                    let because =
                        format!("{} is a word among its numbers, and a label", clipped(word));
                    return named(Taken::LeftOut, because);
                }
                let odd = column.values - numbers;
                let words = some(odd_words.iter().map(String::as_str), 3);
                let because = format!("{} with {words} taken for missing", counted(odd, "field"));
                let missing = column.missing + odd;
                return TakenColumn { missing, odd_words, ..named(Taken::Number, because) };
            }
            if let Some(strays) = strays(column, reading) {
                let odd = some(column.odd.iter().map(|odd| odd.field.as_str()), 2);
                let because = format!("{} such as {odd} left out", counted(strays, "row"));
                return TakenColumn { strays, ..named(Taken::Number, because) };
            }
            if is_iso_dates(column) {
                return named(Taken::Dates, String::new());
            }
            if let Some(because) = sign(column, table.format) {
                return named(Taken::LeftOut, because);
            }
            match words(column) {
                Ok(count) if word_features + count > MAX_WORD_FEATURES => {
                    let because = format!("more than {MAX_WORD_FEATURES} features of words in all");
                    named(Taken::LeftOut, because)
                }
                Ok(count) => {
                    word_features += count;
                    named(Taken::OneHot, String::new())
                }
                Err(because) => named(Taken::LeftOut, because),
            }
        })
        .collect()
}

/// Why nothing can be learnt of a column, where that is so.
fn useless(table: &TableProfile, column: &ColumnProfile) -> Option<String> {
    if let Some(what) = &column.unreadable {
        return Some(format!("it holds {what}"));
    }
    if column.values == 0 {
        return Some("it is empty".to_owned());
    }
    if let (Some(distinct), 0) = (&column.distinct, column.missing)
        && distinct.len() == 1
    {
        let value = distinct.keys().next().map_or(String::new(), |value| clipped(value));
        return Some(format!("it is always {value}"));
    }
    let few = MIN_VALUES.max(table.rows / NEARLY_EMPTY);
    if column.values < few && column.values < table.rows {
        return Some(format!("it is nearly empty: {}", counted(column.values, "value")));
    }
    if column.name.starts_with("__index_level_") {
        return Some("it is the index of a data frame".to_owned());
    }
    if column.counts_rows && column.values > 2 {
        return Some("it counts the rows".to_owned());
    }
    let is_different = column.different().is_none_or(|count| count as u64 == table.rows);
    if is_identifier(&column.name) && is_different && table.rows > 2 {
        return Some("it names the row".to_owned());
    }
    None
}

/// Is it the name of a number or a word that tells rows apart?
fn is_identifier(name: &str) -> bool {
    let lower = name.trim().to_ascii_lowercase();
    let ends_so =
        ["_id", " id", ".id", "-id", "_key", "uuid", "guid"].iter().any(|end| lower.ends_with(end));
    // `userId` and `PassengerID`, and no `PAID`.
    let stem = name.strip_suffix("Id").or_else(|| name.strip_suffix("ID"));
    let is_camel = stem.is_some_and(|stem| stem.ends_with(|sign: char| sign.is_lowercase()));
    ends_so
        || is_camel
        || matches!(
            lower.as_str(),
            "id" | "index" | "key" | "rowid" | "row" | "unnamed: 0" | "no" | "nr"
        )
}

/// Why a column of percentages or amounts of money can't be read, where nearly all values are such, and the remedy.
pub(crate) fn sign(column: &ColumnProfile, format: FileKind) -> Option<String> {
    let (sign, count) = column.signs.iter().max_by_key(|(_, count)| **count)?;
    if 10 * count < 9 * column.values {
        return None;
    }
    let remedy = match format {
        FileKind::Csv | FileKind::JsonLines => format!("`{}`", without_sign(*sign)),
        _ => "write numbers without it".to_owned(),
    };
    Some(format!("its numbers have the sign `{sign}` beside them: {remedy}"))
}

/// Has a column of words this one, in any case?
fn has_word(column: &ColumnProfile, word: &str) -> bool {
    let distinct = column.distinct.as_ref();
    distinct.is_some_and(|distinct| distinct.keys().any(|of| of.eq_ignore_ascii_case(word)))
}

/// Is every value a date that a job can take?
fn is_iso_dates(column: &ColumnProfile) -> bool {
    column.values > 0 && column.iso_dates == column.values
}

/// How many words a column has, where each can be a feature.
fn words(column: &ColumnProfile) -> Result<usize, String> {
    if 10 * column.dates >= 9 * column.values {
        return Err(
            "it holds dates that aren't all written as ISO 8601 does, 2024-03-31".to_owned()
        );
    }
    if column.longest > LONG_TEXT {
        return Err("it holds texts".to_owned());
    }
    match column.different() {
        Some(count) if count <= MAX_WORDS && column.values >= MIN_ROWS_OF_WORD * count as u64 => {
            Ok(count)
        }
        Some(words) => Err(format!("{} different words are too many", count(words as u64))),
        None => Err("it has thousands of different words".to_owned()),
    }
}

/// The contents of a column, in a few words.
fn holds(column: &ColumnProfile, reading: &Reading) -> String {
    let missing = match column.missing {
        0 => String::new(),
        missing => format!(", {} missing", count(missing)),
    };
    if let Some(what) = &column.unreadable {
        return what.clone();
    }
    if column.values == 0 {
        return "nothing".to_owned();
    }
    let numbers = reading.numbers(column);
    if numbers == column.values {
        let kind = if reading.are_whole(column) { "whole numbers" } else { "numbers" };
        let range = column.range.filter(|_| reading.notation.is_plain());
        let range = range
            .map_or(String::new(), |(low, high)| format!(", {} to {}", short(low), short(high)));
        return format!("{kind}{range}{missing}");
    }
    if column.truths == column.values {
        return format!("truth values{missing}");
    }
    if 10 * column.dates >= 9 * column.values {
        return format!("dates{missing}");
    }
    if 2 * numbers > column.values {
        let odd = some(column.odd.iter().map(|odd| odd.field.as_str()), 2);
        return format!(
            "numbers, and {}: {odd}{missing}",
            counted(column.values - numbers, "word")
        );
    }
    match &column.distinct {
        Some(distinct) => {
            let count = distinct.len() as u64;
            format!(
                "{}: {}{missing}",
                counted(count, "word"),
                some(distinct.keys().map(String::as_str), 3)
            )
        }
        None => format!("words{missing}"),
    }
}

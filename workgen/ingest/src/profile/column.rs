//! The fields of one column, counted by their kinds.

use crate::{
    dates::{Date, is_date},
    error::Problem,
    missing::MissingValues,
    notation::plain,
    number::{number, shown, truth},
    signs::sign_of,
};
use serde::Serialize;
use sojourn_protocol::spec::{DecimalSign, Notation, ThousandsSign};
use std::collections::BTreeMap;

/// Different values that are kept of a column: as many as a column of words may have.
pub const MAX_VALUES: usize = 4096;
/// Longest value that is kept, in bytes.
const MAX_KEPT: usize = 256;
/// Fields that are shown of those that are no numbers.
const MAX_ODD: usize = 3;
/// Different values that are kept of those that are no numbers.
const MAX_WORDS: usize = 8;
/// A notation in which more than one field of so many is no number isn't the column's.
const TOLERATED: u64 = 20;

/// A field that is no number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Odd {
    /// The number of its line, or of its row in Parquet.
    pub line: u64,
    /// The field.
    pub field: String,
}

/// A column of a table, as its fields show it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ColumnProfile {
    /// The column's name; its position, from 1, where the file names none; empty where its name is.
    pub name: String,
    /// The kind of values for which it can't be read, such as lists of a Parquet file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unreadable: Option<String>,
    /// Fields that hold something.
    pub values: u64,
    /// Fields that are empty, or a usual word for it.
    pub missing: u64,
    /// Values that are numbers with a decimal point.
    pub numbers: u64,
    /// Of these, whole ones.
    pub whole: u64,
    /// Values that are numbers in some other notation, where nearly all are.
    #[serde(skip)]
    pub notations: Vec<(Notation, u64)>,
    /// Values that are numbers beside a sign of percentages or money, by that sign.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub signs: BTreeMap<char, u64>,
    /// Values that are `true` or `false`.
    pub truths: u64,
    /// Values that are dates.
    pub dates: u64,
    /// Of these, those as ISO 8601 writes them.
    pub iso_dates: u64,
    /// The least and the greatest number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub range: Option<(f64, f64)>,
    /// Is each value the one before it plus 1, without any missing?
    pub counts_rows: bool,
    /// The different values and how often each is there; none where there are too many, or long ones.
    #[serde(skip)]
    pub distinct: Option<BTreeMap<String, u64>>,
    /// Characters of the longest value.
    pub longest: usize,
    /// The first values that are no numbers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub odd: Vec<Odd>,
    /// The different values that are numbers in no notation, and how often each is there; none where there are many.
    #[serde(skip)]
    pub words: Option<BTreeMap<String, u64>>,
}

impl ColumnProfile {
    /// How many different values there are, where they were counted.
    #[must_use]
    pub fn different(&self) -> Option<usize> {
        self.distinct.as_ref().map(BTreeMap::len)
    }

    /// The first line turned out to be a row: its field belongs to the column too.
    pub(super) fn add_first(&mut self, field: &[u8]) {
        let mut tally =
            Tally { found: std::mem::replace(self, Tally::new().found), ..Tally::new() };
        let counted = tally.found.counts_rows;
        tally.take(field, 1);
        *self = tally.found;
        self.counts_rows = counted;
    }

    /// Values that are numbers in this notation; none where it was given up.
    #[must_use]
    pub fn numbers_in(&self, notation: Notation) -> u64 {
        if notation.is_plain() {
            return self.numbers;
        }
        self.notations.iter().find(|(of, _)| *of == notation).map_or(0, |(_, count)| *count)
    }
}

/// All notations but the plain one, simple ones first.
fn notations() -> impl Iterator<Item = Notation> {
    let signs = || std::iter::once(None).chain(ThousandsSign::ALL.into_iter().map(Some));
    let with = |decimal| signs().map(move |thousands| Notation { decimal, thousands });
    let all = with(DecimalSign::Comma).chain(with(DecimalSign::Point));
    all.filter(|notation| notation.is_unambiguous() && !notation.is_plain())
}

/// Counts the fields of a column.
#[derive(Debug)]
pub(super) struct Tally {
    found: ColumnProfile,
    missing: MissingValues,
    last: Option<f64>,
    /// Different values that are kept.
    most: usize,
}

impl Tally {
    pub(super) fn new() -> Self {
        Self::keeping(MAX_VALUES)
    }

    /// One that keeps so many different values.
    pub(super) fn keeping(most: usize) -> Self {
        let found = ColumnProfile {
            name: String::new(),
            unreadable: None,
            values: 0,
            missing: 0,
            numbers: 0,
            whole: 0,
            notations: notations().map(|notation| (notation, 0)).collect(),
            signs: BTreeMap::new(),
            truths: 0,
            dates: 0,
            iso_dates: 0,
            range: None,
            counts_rows: true,
            distinct: Some(BTreeMap::new()),
            longest: 0,
            odd: Vec::new(),
            words: Some(BTreeMap::new()),
        };
        Self { found, missing: MissingValues::default(), last: None, most }
    }

    /// The next field, which stands in this line.
    pub(super) fn take(&mut self, field: &[u8], line: u64) {
        let found = &mut self.found;
        if self.missing.contains(field) {
            found.missing += 1;
            found.counts_rows = false;
            return;
        }
        found.values += 1;
        let text = String::from_utf8_lossy(field.trim_ascii());
        found.longest = found.longest.max(text.chars().count());
        if let Some(distinct) = &mut found.distinct {
            let is_kept = distinct.len() < self.most && text.len() <= MAX_KEPT;
            if let Some(count) = distinct.get_mut(text.as_ref()) {
                *count += 1;
            } else if is_kept {
                distinct.insert(text.clone().into_owned(), 1);
            } else {
                found.distinct = None;
            }
        }
        let read = number(field);
        // One that single precision can't hold is no word.
        let is_large = matches!(read, Err(Problem::TooLarge(_)));
        let number = read.is_ok().then(|| text.parse::<f64>().ok()).flatten();
        match number {
            None if is_large => found.numbers += 1,
            Some(number) => {
                found.numbers += 1;
                found.whole += u64::from(number.fract() == 0.0);
                let (low, high) = found.range.unwrap_or((number, number));
                found.range = Some((low.min(number), high.max(number)));
            }
            None => {
                found.truths += u64::from(truth(field).is_some());
                if let Some(sign) = sign_of(&text) {
                    *found.signs.entry(sign).or_default() += 1;
                }
                let is_iso = Date::parse(&text).is_some();
                found.iso_dates += u64::from(is_iso);
                found.dates += u64::from(is_iso || is_date(&text));
                if found.odd.len() < MAX_ODD {
                    found.odd.push(Odd { line, field: shown(field.trim_ascii()) });
                }
            }
        }
        let follows = |number: f64| self.last.is_none_or(|last| (number - last - 1.0).abs() < 1e-9);
        found.counts_rows &= number.is_some_and(follows);
        self.last = number;
        let is_digits = text.bytes().all(|byte| byte.is_ascii_digit());
        for (notation, count) in &mut found.notations {
            *count += u64::from(is_digits || plain(*notation, &text).is_some());
        }
        if number.is_none()
            && !is_large
            && let Some(words) = &mut found.words
            && notations().all(|notation| plain(notation, &text).is_none())
        {
            if let Some(count) = words.get_mut(text.as_ref()) {
                *count += 1;
            } else if words.len() < MAX_WORDS && text.len() <= MAX_KEPT {
                words.insert(text.clone().into_owned(), 1);
            } else {
                found.words = None;
            }
        }
        if found.values.is_multiple_of(TOLERATED) {
            let enough = found.values - found.values / TOLERATED;
            found.notations.retain(|(_, count)| *count >= enough);
        }
    }

    /// The column, which has this name.
    pub(super) fn finish(self, name: String) -> ColumnProfile {
        let Self { mut found, .. } = self;
        let enough = found.values - found.values / TOLERATED;
        found.notations.retain(|(_, count)| *count >= enough && found.values > 0);
        found.counts_rows &= found.values > 1;
        found.name = name;
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(fields: &[&str]) -> ColumnProfile {
        let mut tally = Tally::new();
        for (line, field) in (2..).zip(fields) {
            tally.take(field.as_bytes(), line);
        }
        tally.finish("c".to_owned())
    }

    #[test]
    fn numbers_words_dates_and_missing_fields_are_counted() {
        let found = column(&["1", "2.5", "", "NA", "x", "2024-03-31", "true"]);
        assert_eq!((found.values, found.missing), (5, 2));
        assert_eq!((found.numbers, found.whole, found.dates, found.truths), (2, 1, 1, 1));
        let dates = column(&["31.3.2024", "2024-03-31", "2024-03-31 13:05"]);
        assert_eq!((dates.dates, dates.iso_dates), (3, 2));
        assert_eq!(found.range, Some((1.0, 2.5)));
        assert_eq!(found.odd[0], Odd { line: 6, field: "x".to_owned() });
        assert_eq!(found.different(), Some(5));
        assert!(!found.counts_rows);
        let signs = column(&["$1,200.50", "12%", "5 %", "7"]).signs;
        assert_eq!(signs, [('$', 1), ('%', 2)].into());
        let large = column(&["1", "1e39", "-1e400"]);
        assert_eq!((large.numbers, large.words.map(|words| words.len())), (3, Some(0)));
    }

    #[test]
    fn a_column_counts_rows_where_each_value_is_one_more() {
        assert!(column(&["1", "2", "3"]).counts_rows);
        assert!(column(&["0", "1"]).counts_rows);
        for fields in [&["1", "3"][..], &["1", "", "2"], &["7"], &["a", "b"], &["2", "1"]] {
            assert!(!column(fields).counts_rows, "{fields:?}");
        }
    }

    #[test]
    fn numbers_in_another_notation_are_counted_by_it() {
        let comma = Notation { decimal: DecimalSign::Comma, thousands: None };
        let german = Notation { thousands: Some(ThousandsSign::Point), ..comma };
        let found = column(&["1,5", "2,25", "7"]);
        assert_eq!((found.numbers, found.numbers_in(comma)), (1, 3));
        let found = column(&["1.234,5", "2,25", "7"]);
        assert_eq!((found.numbers_in(comma), found.numbers_in(german)), (0, 3));
        assert!(column(&["a", "b"]).notations.is_empty());
    }

    #[test]
    fn different_values_are_kept_up_to_a_bound() {
        let many: Vec<String> = (0..=MAX_VALUES).map(|value| value.to_string()).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert_eq!(column(&many[1..]).different(), Some(MAX_VALUES));
        assert_eq!(column(&many).different(), None);
        assert_eq!(column(&[&"x".repeat(MAX_KEPT + 1)]).different(), None);
    }
}

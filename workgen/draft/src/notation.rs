//! How a table writes its numbers.

use sojourn_ingest::{ColumnProfile, TableProfile};
use sojourn_protocol::spec::{DecimalSign, FileKind, Notation, ThousandsSign};

/// A column may have so many different words among its numbers that are taken for missing values.
const MAX_ODD_WORDS: usize = 5;

/// A column of numbers may have one of so many in another notation.
const MOST_STRAYS: u64 = 20;

/// The notation that a table's numbers are in.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Reading {
    pub(crate) notation: Notation,
    /// Could they be in another one as well?
    pub(crate) other: Option<Notation>,
}

impl Reading {
    /// The notation in which most columns are numbers, but for a few words. Of several the simplest, but that signs which always have three
    /// digits behind them are between thousands.
    pub(crate) fn of(table: &TableProfile) -> Self {
        let plain = Notation::default();
        if table.format != FileKind::Csv {
            return Self { notation: plain, other: None };
        }
        let fitting = |notation: Notation| {
            let columns = table.columns.iter().filter(|column| column.unreadable.is_none());
            columns.filter(|column| column.values > 0 && are_numbers(column, notation)).count()
        };
        let mut best = (fitting(plain), plain);
        let mut notations: Vec<Notation> = Vec::new();
        for (notation, _) in table.columns.iter().flat_map(|column| &column.notations) {
            if !notations.contains(notation) {
                notations.push(*notation);
            }
        }
        notations.sort_by_key(|notation| notation.thousands.is_some());
        for notation in &notations {
            let columns = fitting(*notation);
            if columns > best.0 {
                best = (columns, *notation);
            }
        }
        let (columns, notation) = best;
        let grouped =
            Notation { decimal: DecimalSign::Point, thousands: Some(ThousandsSign::Comma) };
        let comma = Notation { decimal: DecimalSign::Comma, thousands: None };
        // In groups no number begins with `0`.
        if notation == comma && fitting(grouped) == columns {
            return Self { notation: grouped, other: Some(comma) };
        }
        Self { notation, other: None }
    }

    /// Values of a column that are numbers.
    pub(crate) fn numbers(&self, column: &ColumnProfile) -> u64 {
        column.numbers_in(self.notation)
    }

    /// Are all numbers of a column whole?
    pub(crate) fn are_whole(&self, column: &ColumnProfile) -> bool {
        if self.notation.is_plain() {
            return column.whole == column.values;
        }
        let decimal = self.notation.decimal.text();
        column
            .distinct
            .as_ref()
            .is_some_and(|distinct| distinct.keys().all(|value| !value.contains(decimal)))
    }
}

/// Are a column's values numbers in this notation, but for a few words?
fn are_numbers(column: &ColumnProfile, notation: Notation) -> bool {
    let words = column.words.as_ref().map_or(0, |words| words.values().sum());
    let numbers = column.numbers_in(notation);
    numbers + words == column.values && 10 * numbers >= 9 * column.values
}

/// The words among a column's numbers, where there are few; none where there are no numbers, or no words.
pub(crate) fn odd_words(column: &ColumnProfile, reading: &Reading) -> Option<Vec<String>> {
    let numbers = reading.numbers(column);
    let words = column.words.as_ref()?;
    // Nine of ten are numbers, and each of the others is one of these words; half of them do where these can't be values.
    let most = 10 * numbers >= 9 * column.values;
    let is_so = (most
        || 2 * numbers >= column.values && words.keys().all(|word| is_no_value(word)))
        && numbers + words.values().sum::<u64>() == column.values;
    let are_few = !words.is_empty() && words.len() <= MAX_ODD_WORDS;
    (is_so && are_few).then(|| words.keys().cloned().collect())
}

/// Is it an error of a spreadsheet, such as `#N/A`, or a sign alone, such as `-`?
fn is_no_value(word: &str) -> bool {
    word.starts_with('#') || !word.contains(char::is_alphanumeric)
}

/// The fields of a column of numbers that are numbers in another notation, where they are few and nothing else is among them.
pub(crate) fn strays(column: &ColumnProfile, reading: &Reading) -> Option<u64> {
    let strays = column.values - reading.numbers(column);
    let words = column.words.as_ref()?;
    (strays > 0 && strays.saturating_mul(MOST_STRAYS) <= column.values && words.is_empty())
        .then_some(strays)
}

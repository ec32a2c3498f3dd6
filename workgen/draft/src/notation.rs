//! How a table writes its numbers.

use sojourn_ingest::{ColumnProfile, TableProfile};
use sojourn_protocol::spec::{DecimalSign, Notation, ThousandsSign};

/// The notation that a table's numbers are in.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Reading {
    pub(crate) notation: Notation,
    /// Could they be in another one as well?
    pub(crate) other: Option<Notation>,
}

impl Reading {
    /// The notation in which most columns are numbers throughout. Of several the simplest, but that signs which always have three digits
    /// behind them are between thousands, unless a number begins with `0`.
    pub(crate) fn of(table: &TableProfile) -> Self {
        let plain = Notation::default();
        let fitting = |notation: Notation| {
            let columns = table.columns.iter().filter(|column| column.unreadable.is_none());
            columns
                .filter(|column| column.values > 0 && column.numbers_in(notation) == column.values)
                .count()
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
        if notation == comma && fitting(grouped) == columns {
            let is_small = |column: &ColumnProfile| {
                let distinct = column.distinct.as_ref();
                distinct.is_some_and(|distinct| {
                    distinct.keys().any(|value| value.trim_start_matches('-').starts_with("0,"))
                })
            };
            return if table.columns.iter().any(is_small) {
                Self { notation: comma, other: Some(grouped) }
            } else {
                Self { notation: grouped, other: Some(comma) }
            };
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

//! A table: named columns of one type each, whose values may be missing.

use crate::cli::render::text;
use serde_json::Value;
use sojourn_protocol::{quantity::SaturatingFrom as _, time::UnixMillis};

/// A table.
#[derive(Debug, Clone, PartialEq)]
pub(in super::super) struct Table {
    /// The table's name, which files and arrays have too.
    pub(in super::super) name: &'static str,
    /// All of the same length.
    pub(in super::super) columns: Vec<Column>,
}

impl Table {
    /// Rows of the table.
    pub(in super::super) fn rows(&self) -> usize {
        self.columns.first().map_or(0, |column| column.values.len())
    }
}

/// A column.
#[derive(Debug, Clone, PartialEq)]
pub(in super::super) struct Column {
    pub(in super::super) name: String,
    pub(in super::super) values: Values,
}

/// The values of a column, a row each.
#[derive(Debug, Clone, PartialEq)]
pub(in super::super) enum Values {
    Whole(Vec<Option<i64>>),
    Real(Vec<Option<f64>>),
    Switch(Vec<Option<bool>>),
    Text(Vec<Option<String>>),
    Time(Vec<Option<UnixMillis>>),
}

impl Values {
    fn len(&self) -> usize {
        match self {
            Values::Whole(values) => values.len(),
            Values::Real(values) => values.len(),
            Values::Switch(values) => values.len(),
            Values::Text(values) => values.len(),
            Values::Time(values) => values.len(),
        }
    }
}

impl Column {
    /// Whole numbers, of which those beyond 2^63 become the largest.
    pub(super) fn whole<N>(name: &str, values: impl Iterator<Item = Option<N>>) -> Self
    where
        u64: From<N>,
    {
        let values = values.map(|value| value.map(|value| i64::saturating_from(u64::from(value))));
        Self { name: name.to_owned(), values: Values::Whole(values.collect()) }
    }

    /// Numbers. Infinite ones and NaN are missing: JSON has no words for them.
    pub(super) fn real(name: &str, values: impl Iterator<Item = Option<f64>>) -> Self {
        let values = values.map(|value| value.filter(|value| value.is_finite()));
        Self { name: name.to_owned(), values: Values::Real(values.collect()) }
    }

    /// A column of texts.
    pub(super) fn text<T: ToString>(name: &str, values: impl Iterator<Item = Option<T>>) -> Self {
        let values = values.map(|value| value.map(|value| value.to_string()));
        Self { name: name.to_owned(), values: Values::Text(values.collect()) }
    }

    /// A column of times.
    pub(super) fn time(name: &str, values: impl Iterator<Item = Option<UnixMillis>>) -> Self {
        Self { name: name.to_owned(), values: Values::Time(values.collect()) }
    }

    /// Values of any kind: numbers or switches where all are, else texts. Lists are texts in JSON.
    pub(super) fn of_any(name: &str, values: &[Option<Value>]) -> Self {
        let values = typed(values, Value::as_i64)
            .map(Values::Whole)
            .or_else(|| typed(values, Value::as_f64).map(Values::Real))
            .or_else(|| typed(values, Value::as_bool).map(Values::Switch))
            .unwrap_or_else(|| {
                let texts = values.iter().map(|value| value.as_ref().map(text::value));
                Values::Text(texts.collect())
            });
        Self { name: name.to_owned(), values }
    }
}

/// The values in one type; `None` where one of them has another.
fn typed<T>(
    values: &[Option<Value>],
    read: impl Fn(&Value) -> Option<T>,
) -> Option<Vec<Option<T>>> {
    let read = |value: &Option<Value>| match value {
        None => Some(None),
        Some(value) => read(value).map(Some),
    };
    values.iter().map(read).collect()
}

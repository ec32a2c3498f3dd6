//! A value that a search may vary, and how one value is chosen from it.

use serde::{Deserialize, Serialize};

/// One value, or several to search over.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Dimension<T> {
    /// Not searched.
    Fixed(T),
    /// One of these.
    Choice(Vec<T>),
    /// A range of numbers.
    Range(Range),
}

/// A range of numbers, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Range {
    /// How numbers spread over the range.
    pub spread: Spread,
    /// The low end; above 0 for [`Spread::LogUniform`].
    pub low: f64,
    /// The high end, at least `low`.
    pub high: f64,
    /// How many values a grid takes from the range; a grid needs it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub points: Option<u32>,
}

impl Range {
    /// Finite ends in order, above 0 for a logarithm.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        let ordered = self.low.is_finite() && self.high.is_finite() && self.low <= self.high;
        ordered && (self.spread != Spread::LogUniform || self.low > 0.0)
    }
}

/// How numbers spread over a [`Range`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Spread {
    /// Evenly.
    Uniform,
    /// Evenly in the logarithm.
    LogUniform,
    /// Whole numbers, evenly; a grid without `points` takes all of them.
    Integer,
}

/// Closes open dimensions, one after another, by name.
pub trait Chooser {
    /// An index in `0..count` for the dimension `name`.
    fn index(&mut self, name: &str, count: usize) -> usize;
    /// A number of `range` for the dimension `name`.
    fn number(&mut self, name: &str, range: &Range) -> f64;
    /// Takes what was chosen, with the value as JSON; only for dimensions that vary.
    fn chosen(&mut self, name: &str, value: serde_json::Value);
}

/// A type that a dimension can range over.
pub trait Value: Clone + Serialize {
    /// The value for a number drawn from a range, where the type is a number.
    fn from_number(number: f64) -> Option<Self>;
    /// The value for a whole number drawn from a range of those.
    fn from_whole(number: f64) -> Option<Self> {
        Self::from_number(number)
    }
}

impl Value for f64 {
    fn from_number(number: f64) -> Option<Self> {
        Some(number)
    }
}

impl Value for u32 {
    fn from_number(number: f64) -> Option<Self> {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "checked to be a whole number in range"
        )]
        (number >= 0.0 && number <= f64::from(u32::MAX)).then(|| number.round() as u32)
    }
}

impl Value for bool {
    fn from_number(_: f64) -> Option<Self> {
        None
    }
}

impl Value for Vec<u32> {
    fn from_number(_: f64) -> Option<Self> {
        None
    }
}

impl<T> Dimension<T> {
    /// The values that are written out: one, or those of a choice; none of a range.
    #[must_use]
    pub fn values(&self) -> &[T] {
        match self {
            Dimension::Fixed(value) => std::slice::from_ref(value),
            Dimension::Choice(values) => values,
            Dimension::Range(_) => &[],
        }
    }
}

impl Dimension<f64> {
    /// Is it 0, whatever is chosen?
    #[must_use]
    pub fn is_zero(&self) -> bool {
        match self {
            Dimension::Range(range) => range.low == 0.0 && range.high == 0.0,
            written => written.values().iter().all(|value| *value == 0.0),
        }
    }
}

impl<T: Value> Dimension<T> {
    /// The value that `chooser` takes; `None` only for an empty choice or a range over a type that
    /// isn't a number, which validation refuses.
    pub fn close(&self, name: &str, chooser: &mut dyn Chooser) -> Option<T> {
        let value = match self {
            Dimension::Fixed(value) => return Some(value.clone()),
            Dimension::Choice(values) => values.get(chooser.index(name, values.len()))?.clone(),
            Dimension::Range(range) => {
                let number = chooser.number(name, range);
                match range.spread {
                    Spread::Integer => T::from_whole(number)?,
                    Spread::Uniform | Spread::LogUniform => T::from_number(number)?,
                }
            }
        };
        chooser.chosen(name, serde_json::to_value(&value).ok()?);
        Some(value)
    }
}

impl<T: Default> Default for Dimension<T> {
    fn default() -> Self {
        Dimension::Fixed(T::default())
    }
}

impl<T> From<T> for Dimension<T> {
    fn from(value: T) -> Self {
        Dimension::Fixed(value)
    }
}

/// Is a field what it is where nothing is said? Then it isn't written.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

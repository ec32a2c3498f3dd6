//! A value that a search may vary, and how one value is chosen from it.

pub use super::{
    Condition, Conditional, Formula, MAX_CONDITION_SETTINGS, Presence,
    distribution::{MAX_STEPS, Normal, Range, Spread, Steps},
};

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
    /// Normal numbers; not in a grid.
    Normal(Normal),
    /// A dimension of some trials alone.
    Conditional(Box<Conditional<T>>),
    /// Not searched: a number that follows from other settings of the trial.
    Tied(Formula),
}

/// The number of a formula in a trial.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Tied {
    /// The settings that it follows from aren't all known yet.
    Open,
    /// The number.
    Number(f64),
    /// There is none, and so no such trial.
    Nothing,
}

/// Closes open dimensions, one after another, by name.
pub trait Chooser {
    /// An index in `0..count` for the dimension `name`.
    fn index(&mut self, name: &str, count: usize) -> usize;
    /// The index of one of so many values, each as JSON, for the dimension `name`.
    fn one_of(
        &mut self,
        name: &str,
        values: &mut dyn ExactSizeIterator<Item = serde_json::Value>,
    ) -> usize {
        self.index(name, values.len())
    }
    /// A number of `range` for the dimension `name`.
    fn number(&mut self, name: &str, range: &Range) -> f64;
    /// One of these normal numbers for the dimension `name`.
    fn normal(&mut self, name: &str, normal: &Normal) -> f64;
    /// Is it asked also for settings that the trial, as far as it is chosen, makes no use of?
    fn takes_unused(&self) -> bool {
        true
    }
    /// Is it asked also for dimensions whose condition isn't met? So a space is seen as a whole.
    fn takes_absent(&self) -> bool {
        false
    }
    /// Has the trial the conditional dimension `name`?
    fn has(&mut self, _name: &str, _of: &dyn Presence) -> bool {
        true
    }
    /// Isn't it known yet whether the trial makes use of the setting `name`, on which the setting `decider` decides?
    fn waits_for(&mut self, _name: &str, _decider: &str) -> bool {
        false
    }
    /// The number of the setting `name`, which follows from others.
    fn tied(&mut self, _name: &str, _formula: &Formula) -> Tied {
        Tied::Open
    }
    /// The setting `name` can't have the number that its formula gives, for this reason.
    fn refuse(&mut self, _name: &str, _why: String) {}
    /// Takes a value that was computed, as JSON. Nothing was chosen.
    fn computed(&mut self, _name: &str, _value: serde_json::Value) {}
    /// Takes what was chosen, with the value as JSON; only for dimensions that vary.
    fn chosen(&mut self, name: &str, value: serde_json::Value);
}

/// Takes the first value of every dimension that varies, or its mean, and notes their names in the order in which a space asks
/// for them.
#[derive(Debug, Default)]
pub struct FirstValues {
    /// The names.
    pub names: Vec<String>,
}

impl Chooser for FirstValues {
    fn index(&mut self, _: &str, _: usize) -> usize {
        0
    }
    fn number(&mut self, _: &str, range: &Range) -> f64 {
        range.low
    }
    fn normal(&mut self, _: &str, normal: &Normal) -> f64 {
        normal.mean
    }
    fn takes_absent(&self) -> bool {
        true
    }
    fn chosen(&mut self, name: &str, _: serde_json::Value) {
        self.names.push(name.to_owned());
    }
}

/// A type that a dimension can range over.
pub trait Value: Clone + Serialize {
    /// The value for a number drawn from a range, where the type is a number.
    fn from_number(number: f64) -> Option<Self>;
    /// The value for a whole number drawn from a range of those.
    fn from_whole(number: f64) -> Option<Self> {
        Self::from_number(number)
    }
    /// The value for a number that was computed, or what kind of value is wanted instead.
    fn from_formula(number: f64) -> Result<Self, &'static str> {
        Self::from_number(number).ok_or("no number")
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
    fn from_formula(number: f64) -> Result<Self, &'static str> {
        let whole = Some(number).filter(|number| number.fract() == 0.0);
        whole.and_then(Self::from_number).ok_or("a whole number")
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
    /// The values that are written out: one, or those of a choice; none of a range, of normal numbers or of a formula. Of a dimension of some trials
    /// alone that of the others is the last.
    #[must_use]
    pub fn values(&self) -> Vec<&T> {
        match self {
            Dimension::Fixed(value) => vec![value],
            Dimension::Choice(values) => values.iter().collect(),
            Dimension::Range(_) | Dimension::Normal(_) | Dimension::Tied(_) => Vec::new(),
            Dimension::Conditional(of) => {
                let mut values = of.dimension.values();
                values.push(&of.otherwise);
                values
            }
        }
    }

    /// The range of numbers that it has, be it of some trials alone.
    #[must_use]
    pub fn range(&self) -> Option<&Range> {
        match self {
            Dimension::Range(range) => Some(range),
            Dimension::Conditional(of) => of.dimension.range(),
            Dimension::Fixed(_)
            | Dimension::Choice(_)
            | Dimension::Normal(_)
            | Dimension::Tied(_) => None,
        }
    }
}

impl Dimension<f64> {
    /// Is it 0, whatever is chosen?
    #[must_use]
    pub fn is_zero(&self) -> bool {
        match self {
            Dimension::Range(range) => range.low == 0.0 && range.high == 0.0,
            Dimension::Normal(_) | Dimension::Tied(_) => false,
            Dimension::Conditional(of) => of.otherwise == 0.0 && of.dimension.is_zero(),
            written => written.values().into_iter().all(|value| *value == 0.0),
        }
    }
}

impl<T: Value> Dimension<T> {
    /// The value that `chooser` takes; `None` only for an empty choice or a range over a type that
    /// isn't a number, which validation refuses.
    pub fn close(&self, name: &str, chooser: &mut dyn Chooser) -> Option<T> {
        let value = match self {
            Dimension::Fixed(value) => return Some(value.clone()),
            Dimension::Choice(values) => {
                let json = |value: &T| serde_json::to_value(value).unwrap_or_default();
                values.get(chooser.one_of(name, &mut values.iter().map(json)))?.clone()
            }
            Dimension::Range(range) => {
                let number = chooser.number(name, range);
                if range.spread.is_whole() {
                    T::from_whole(number)?
                } else {
                    T::from_number(number)?
                }
            }
            Dimension::Normal(normal) => T::from_number(chooser.normal(name, normal))?,
            Dimension::Conditional(of) => {
                return match chooser.has(name, &**of) {
                    true => of.dimension.close(name, chooser),
                    false => Some(of.otherwise.clone()),
                };
            }
            Dimension::Tied(formula) => {
                let wanted = match chooser.tied(name, formula) {
                    // Any number will do until the settings are known.
                    Tied::Open => return T::from_formula(1.0).ok(),
                    Tied::Nothing => return None,
                    Tied::Number(number) => T::from_formula(number).map_err(|of| (number, of)),
                };
                return match wanted {
                    Ok(value) => {
                        chooser.computed(name, serde_json::to_value(&value).ok()?);
                        Some(value)
                    }
                    Err((number, wanted)) => {
                        chooser.refuse(name, format!("is {number} where {wanted} is wanted"));
                        None
                    }
                };
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

//! A combination whose values are given from outside: by a program that suggests trials, or by a person.

use super::{SearchError, Trial, combinations::Combinations};
use serde_json::Value;
use sojourn_protocol::{
    quantity::SaturatingFrom as _,
    spec::{
        Choices, CombinationRule, JobSpec,
        dimension::{Chooser, FirstValues, Normal, Range},
    },
    trial_name::ends_with,
};
use std::collections::BTreeSet;

/// How far a number may be from a step of its range, as a part of the step: programs compute steps in other ways.
const STEP_TOLERANCE: f64 = 1e-6;

/// The combination with these values: one for each dimension that varies, by its name or by the last words of that (`lr`,
/// `optimizer.lr`) where no other one of the trial ends with the same. Where there are several `[[model]]` tables, `model` is the number of one, from 0.
/// Where combinations are to differ, a value for a dimension that the trial makes no use of may be left out, and says nothing.
///
/// # Errors
/// [`SearchError`] where a value is missing, is none of its dimension's, belongs to no dimension, or breaks a constraint.
pub fn given(spec: &JobSpec, values: &Choices) -> Result<Trial, SearchError> {
    let (rule, choices) = (spec.search.combinations, Choices::new());
    let mut given = Given { values, rule, used: BTreeSet::new(), choices, error: None };
    let tables = spec.models.len();
    let model = if tables > 1 {
        given.one_of(super::sample::MODEL, &mut (0..tables).map(Value::from))
    } else {
        0
    };
    let config = spec.try_close(model, &mut given);
    if let Some(error) = given.error {
        return Err(error);
    }
    let is_used = |key: &&String| given.used.contains(key.as_str());
    let mut others = values.keys().filter(|key| !is_used(key)).peekable();
    if others.peek().is_some() {
        let mut unused = if rule.is_distinct() { dimensions(spec, model) } else { Vec::new() };
        unused.retain(|name| !given.choices.contains_key(name));
        let is_unused = |key: &&String| unused.iter().any(|name| ends_with(name, key));
        if let Some(name) = others.find(|key| !is_unused(key)) {
            return Err(SearchError::NoDimension { name: name.clone() });
        }
    }
    let config = config.map_err(|why| SearchError::unclosed(why, model, &given.choices))?;
    let model = u32::saturating_from(model);
    let trial = Trial { model, config, choices: given.choices, seed: None, fold: None };
    match Combinations::new(spec)?.broken(&trial)? {
        None => Ok(trial),
        Some(constraint) => Err(SearchError::Broken { constraint }),
    }
}

/// The names of all dimensions of a model table.
fn dimensions(spec: &JobSpec, model: usize) -> Vec<String> {
    let mut first = FirstValues::default();
    // A space without a value is reported by its combinations.
    let _ = spec.close(model, &mut first);
    first.names
}

struct Given<'a> {
    values: &'a Choices,
    rule: CombinationRule,
    /// The keys of values that a dimension has taken.
    used: BTreeSet<&'a str>,
    choices: Choices,
    error: Option<SearchError>,
}

impl<'a> Given<'a> {
    /// The value of a dimension.
    fn take(&mut self, name: &str) -> Result<&'a Value, SearchError> {
        let values = self.values;
        let named = || values.iter().find(|(key, _)| ends_with(name, key));
        let found = values.get_key_value(name).or_else(named);
        let Some((key, value)) = found else {
            return Err(SearchError::NotGiven { dimension: name.into() });
        };
        if self.used.insert(key) {
            return Ok(value);
        }
        Err(SearchError::Ambiguous { name: key.clone(), dimension: name.into() })
    }

    /// The value that was found; after an error, which is kept, `instead`.
    fn or<T>(&mut self, found: Result<T, SearchError>, instead: T) -> T {
        found.unwrap_or_else(|error| {
            self.error.get_or_insert(error);
            instead
        })
    }

    fn number_of(&mut self, name: &str, range: &Range) -> Result<f64, SearchError> {
        let value = self.take(name)?;
        let outside = || SearchError::Outside { dimension: name.into(), value: value.to_string() };
        let number = value.as_f64().ok_or_else(outside)?;
        if !(range.low..=range.high).contains(&number) {
            return Err(outside());
        }
        let Some(steps) = range.steps() else { return Ok(number) };
        let at = libm::round((number - range.low) / steps.step());
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
        let at = at.clamp(0.0, f64::from(steps.count().saturating_sub(1))) as u32;
        let near = steps.at(at);
        let is_step = (near - number).abs() <= steps.step() * STEP_TOLERANCE;
        if is_step { Ok(near) } else { Err(outside()) }
    }

    fn normal_of(&mut self, name: &str, normal: &Normal) -> Result<f64, SearchError> {
        let value = self.take(name)?;
        let outside = || SearchError::Outside { dimension: name.into(), value: value.to_string() };
        let number = value.as_f64().filter(|number| number.is_finite()).ok_or_else(outside)?;
        match normal.truncate {
            Some([low, high]) if !(low..=high).contains(&number) => Err(outside()),
            _ => Ok(number),
        }
    }

    fn one_of_values(
        &mut self,
        name: &str,
        values: &mut dyn ExactSizeIterator<Item = Value>,
    ) -> Result<usize, SearchError> {
        let value = self.take(name)?;
        let mut numbered = (0..).zip(values);
        let at = numbered.find(|(_, one)| are_equal(one, value)).map(|(at, _)| at);
        at.ok_or_else(|| SearchError::Outside { dimension: name.into(), value: value.to_string() })
    }
}

impl Chooser for Given<'_> {
    fn index(&mut self, name: &str, count: usize) -> usize {
        self.one_of(name, &mut (0..count).map(Value::from))
    }

    fn one_of(&mut self, name: &str, values: &mut dyn ExactSizeIterator<Item = Value>) -> usize {
        let index = self.one_of_values(name, values);
        self.or(index, 0)
    }

    fn number(&mut self, name: &str, range: &Range) -> f64 {
        let number = self.number_of(name, range);
        self.or(number, range.low)
    }

    fn normal(&mut self, name: &str, normal: &Normal) -> f64 {
        let number = self.normal_of(name, normal);
        self.or(number, normal.mean)
    }

    fn takes_unused(&self) -> bool {
        !self.rule.is_distinct()
    }

    /// A value may be given for a setting that is computed, if it is the same.
    fn computed(&mut self, name: &str, value: Value) {
        let values = self.values;
        let mut open = values.iter().filter(|(key, _)| !self.used.contains(key.as_str()));
        if let Some((key, given)) = open.find(|(key, _)| ends_with(name, key)) {
            if are_equal(given, &value) {
                self.used.insert(key);
            } else {
                let outside =
                    SearchError::Outside { dimension: name.into(), value: given.to_string() };
                self.error.get_or_insert(outside);
            }
        }
        self.choices.insert(name.into(), value);
    }

    fn chosen(&mut self, name: &str, value: Value) {
        self.choices.insert(name.into(), value);
    }
}

/// Are two JSON values equal, where 64 and 64.0 are?
pub(super) fn are_equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| are_equal(a, b))
        }
        _ => a == b,
    }
}

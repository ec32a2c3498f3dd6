//! A trial from a source of uniform numbers: what random and quasi-random searches share.

use super::{SearchError, Trial, draw, normal};
use sojourn_protocol::{
    quantity::{SaturatingFrom as _, to_usize},
    spec::{
        Choices, CombinationRule, JobSpec,
        dimension::{Chooser, Normal, Range},
    },
};

/// The name of the choice of a `[[model]]` table, where there are several.
pub(super) const MODEL: &str = "model";

/// A source of uniform numbers, by the names of dimensions.
pub(super) trait Source {
    /// One of `0..count`, each as likely; 0 if there is none.
    fn index(&mut self, name: &str, count: u32) -> Result<u32, SearchError>;
    /// A number from 0 up to, but not including, 1.
    fn uniform(&mut self, name: &str) -> Result<f64, SearchError>;
}

/// The trial that a source gives.
pub(super) fn trial(spec: &JobSpec, source: &mut impl Source) -> Result<Trial, SearchError> {
    let tables = u32::saturating_from(spec.models.len());
    let model = if tables > 1 { source.index(MODEL, tables)? } else { 0 };
    let rule = spec.search.combinations;
    let mut sample = Sample { source, rule, choices: Choices::new(), error: None };
    let table = to_usize(model);
    let config = spec.try_close(table, &mut sample);
    let Sample { choices, error, .. } = sample;
    if let Some(error) = error {
        return Err(error);
    }
    let config = config.map_err(|why| SearchError::unclosed(why, table, &choices))?;
    Ok(Trial { model, config, choices, seed: None, fold: None })
}

struct Sample<'a, S> {
    source: &'a mut S,
    rule: CombinationRule,
    choices: Choices,
    error: Option<SearchError>,
}

impl<S: Source> Sample<'_, S> {
    /// The value that was drawn; after an error, which is kept, `instead`.
    fn or<T>(&mut self, drawn: Result<T, SearchError>, instead: T) -> T {
        drawn.unwrap_or_else(|error| {
            self.error.get_or_insert(error);
            instead
        })
    }

    fn number_of(&mut self, name: &str, range: &Range) -> Result<f64, SearchError> {
        if !range.is_sound() {
            return Err(SearchError::BadRange { dimension: name.into() });
        }
        match range.steps() {
            Some(steps) if !range.spread.is_logarithmic() => {
                Ok(steps.at(self.source.index(name, steps.count())?))
            }
            Some(steps) => Ok(draw::step(range, &steps, self.source.uniform(name)?)),
            None => Ok(draw::at_share(range, self.source.uniform(name)?)),
        }
    }

    fn normal_of(&mut self, name: &str, normal: &Normal) -> Result<f64, SearchError> {
        if !normal.is_sound() {
            return Err(SearchError::BadNormal { dimension: name.into() });
        }
        Ok(normal::number(normal, self.source.uniform(name)?))
    }
}

impl<S: Source> Chooser for Sample<'_, S> {
    fn index(&mut self, name: &str, count: usize) -> usize {
        let index = self.source.index(name, u32::saturating_from(count));
        to_usize(self.or(index, 0))
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

    fn computed(&mut self, name: &str, value: serde_json::Value) {
        self.choices.insert(name.into(), value);
    }

    fn chosen(&mut self, name: &str, value: serde_json::Value) {
        self.choices.insert(name.into(), value);
    }
}

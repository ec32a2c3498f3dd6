//! Every combination of a model table's dimensions, one after another, the last dimension fastest.

use super::{MAX_COMBINATIONS, SearchError, Trial, draw};
use sojourn_protocol::{
    quantity::to_usize,
    spec::{
        Choices, CombinationRule, JobSpec,
        dimension::{Chooser, Normal, Range},
    },
};

/// The values that are taken of each range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Taken {
    /// The points of a grid.
    Points,
    /// All of them.
    All,
}

/// One wheel per dimension, found in the order in which the space asks for them: which ones it asks for may follow from those before.
pub(super) struct Odometer {
    taken: Taken,
    rule: CombinationRule,
    wheels: Vec<Wheel>,
    next: usize,
    choices: Choices,
    error: Option<SearchError>,
}

struct Wheel {
    at: usize,
    count: usize,
    /// Of a range, its values.
    values: Vec<f64>,
}

impl Odometer {
    pub(super) fn new(taken: Taken, rule: CombinationRule) -> Self {
        let (wheels, choices) = (Vec::new(), Choices::new());
        Self { taken, rule, wheels, next: 0, choices, error: None }
    }

    /// Takes the values at which the wheels stand. `close` asks for them.
    ///
    /// # Errors
    /// A dimension that has no values which can be counted.
    pub(super) fn read<T>(
        &mut self,
        close: impl FnOnce(&mut Self) -> Option<T>,
    ) -> Result<Option<(T, Choices)>, SearchError> {
        self.next = 0;
        self.choices.clear();
        let closed = close(self);
        match self.error.take() {
            Some(error) => Err(error),
            None => Ok(closed.map(|closed| (closed, std::mem::take(&mut self.choices)))),
        }
    }

    /// The trial at which the wheels stand.
    ///
    /// # Errors
    /// As of [`Odometer::read`], or a table without a value.
    pub(super) fn trial(&mut self, spec: &JobSpec, model: u32) -> Result<Trial, SearchError> {
        let read = self.read(|wheels| spec.close(to_usize(model), wheels))?;
        let empty = || SearchError::Empty { dimension: format!("model[{model}]") };
        let (config, choices) = read.ok_or_else(empty)?;
        Ok(Trial { model, config, choices, seed: None })
    }

    /// Turns the last wheel; `false` when all have gone round.
    pub(super) fn advance(&mut self) -> bool {
        while let Some(wheel) = self.wheels.last_mut() {
            wheel.at += 1;
            if wheel.at < wheel.count {
                return true;
            }
            self.wheels.pop();
        }
        false
    }

    /// The wheel of the next dimension, which `make` makes where it begins anew.
    fn turn(&mut self, make: impl FnOnce() -> Result<Wheel, SearchError>) -> Option<&Wheel> {
        if self.next == self.wheels.len() {
            match make() {
                Ok(wheel) => self.wheels.push(wheel),
                Err(error) => {
                    self.error.get_or_insert(error);
                    return None;
                }
            }
        }
        let wheel = self.wheels.get(self.next);
        self.next += 1;
        wheel
    }
}

impl Chooser for Odometer {
    fn index(&mut self, name: &str, count: usize) -> usize {
        let wheel = self.turn(|| match count {
            0 => Err(SearchError::Empty { dimension: name.into() }),
            _ => Ok(Wheel { at: 0, count, values: Vec::new() }),
        });
        wheel.map_or(0, |wheel| wheel.at)
    }

    fn number(&mut self, name: &str, range: &Range) -> f64 {
        let (taken, rule) = (self.taken, self.rule);
        let wheel = self.turn(|| {
            let values = values(name, range, taken, rule)?;
            Ok(Wheel { at: 0, count: values.len(), values })
        });
        wheel.and_then(|wheel| wheel.values.get(wheel.at)).copied().unwrap_or(range.low)
    }

    fn normal(&mut self, name: &str, normal: &Normal) -> f64 {
        self.error.get_or_insert(SearchError::NormalInGrid { dimension: name.into() });
        normal.mean
    }

    fn takes_unused(&self) -> bool {
        !self.rule.is_distinct()
    }

    fn chosen(&mut self, name: &str, value: serde_json::Value) {
        self.choices.insert(name.into(), value);
    }
}

/// The values of a range, at least one.
fn values(
    name: &str,
    range: &Range,
    taken: Taken,
    rule: CombinationRule,
) -> Result<Vec<f64>, SearchError> {
    let dimension = || name.to_owned();
    if !range.is_sound() {
        return Err(SearchError::BadRange { dimension: dimension() });
    }
    let grid = match taken {
        Taken::Points => draw::grid(range),
        Taken::All => draw::all(range),
    };
    let grid = grid.ok_or_else(|| SearchError::NoPoints { dimension: dimension() })?;
    match usize::try_from(grid.count()) {
        Ok(0) => Err(SearchError::Empty { dimension: dimension() }),
        Ok(..=MAX_COMBINATIONS) => Ok(grid.values(range, rule)),
        _ => Err(SearchError::TooMany),
    }
}

//! Every combination of a model table's dimensions, one after another, the last dimension fastest.

use super::{MAX_COMBINATIONS, SearchError, Trial, draw};
use sojourn_protocol::{
    quantity::to_usize,
    spec::{
        Choices, CombinationRule, JobSpec, TrialConfig, Unclosed,
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
    /// The points of a grid; where there are none or many, both ends.
    Ends,
}

/// Values of a range that are more than its ends.
const MANY: u32 = 64;

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

    /// The configuration of a model table at which the wheels stand, and what was chosen. `close` asks for the values.
    ///
    /// # Errors
    /// A dimension that has no values which can be counted, or a table without a value.
    pub(super) fn read(
        &mut self,
        table: usize,
        close: impl FnOnce(&mut Self) -> Result<TrialConfig, Unclosed>,
    ) -> Result<(TrialConfig, Choices), SearchError> {
        self.next = 0;
        self.choices.clear();
        let closed = close(self);
        let choices = std::mem::take(&mut self.choices);
        match self.error.take() {
            Some(error) => Err(error),
            None => match closed {
                Ok(config) => Ok((config, choices)),
                Err(unclosed) => Err(SearchError::unclosed(unclosed, table, &choices)),
            },
        }
    }

    /// The trial at which the wheels stand.
    ///
    /// # Errors
    /// As of [`Odometer::read`].
    pub(super) fn trial(&mut self, spec: &JobSpec, model: u32) -> Result<Trial, SearchError> {
        let table = to_usize(model);
        let (config, choices) = self.read(table, |wheels| spec.try_close(table, wheels))?;
        Ok(Trial { model, config, choices, seed: None, fold: None })
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
        if self.taken == Taken::Ends {
            let values = normal.truncate.map_or_else(|| vec![normal.mean], |ends| ends.to_vec());
            let wheel = self.turn(|| Ok(Wheel { at: 0, count: values.len(), values }));
            return wheel
                .and_then(|wheel| wheel.values.get(wheel.at))
                .copied()
                .unwrap_or(normal.mean);
        }
        self.error.get_or_insert(SearchError::NormalInGrid { dimension: name.into() });
        normal.mean
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
        Taken::Ends => match draw::grid(range).filter(|grid| grid.count() <= MANY) {
            None => return Ok(vec![range.low, range.high]),
            points => points,
        },
    };
    let grid = grid.ok_or_else(|| SearchError::NoPoints { dimension: dimension() })?;
    match usize::try_from(grid.count()) {
        Ok(0) => Err(SearchError::Empty { dimension: dimension() }),
        Ok(..=MAX_COMBINATIONS) => Ok(grid.values(range, rule)),
        _ => Err(SearchError::TooMany),
    }
}

/// An odometer with wheels for a part of a space. Of the other dimensions the first values are taken.
pub(super) struct Part<'a, V> {
    pub(super) wheels: &'a mut Odometer,
    /// Is the dimension of this name of the part?
    pub(super) varies: V,
}

impl<V: Fn(&str) -> bool> Chooser for Part<'_, V> {
    fn index(&mut self, name: &str, count: usize) -> usize {
        if (self.varies)(name) { self.wheels.index(name, count) } else { 0 }
    }

    fn number(&mut self, name: &str, range: &Range) -> f64 {
        if (self.varies)(name) { self.wheels.number(name, range) } else { range.low }
    }

    fn normal(&mut self, name: &str, normal: &Normal) -> f64 {
        if (self.varies)(name) { self.wheels.normal(name, normal) } else { normal.mean }
    }

    fn takes_unused(&self) -> bool {
        self.wheels.takes_unused()
    }

    fn computed(&mut self, name: &str, value: serde_json::Value) {
        self.wheels.computed(name, value);
    }

    fn chosen(&mut self, name: &str, value: serde_json::Value) {
        if (self.varies)(name) {
            self.wheels.chosen(name, value);
        }
    }
}

//! Every combination that satisfies the constraints: an odometer over the dimensions, the last one fastest.

use super::{Combinations, MAX_COMBINATIONS, MAX_TRIALS, SearchError, Trial, draw};
use sojourn_protocol::spec::{
    Architecture, Choices, JobSpec,
    dimension::{Chooser, Normal, Range},
};

pub(super) fn trials(
    spec: &JobSpec,
    combinations: &mut Combinations<'_>,
) -> Result<Vec<Trial>, SearchError> {
    let mut trials = Vec::new();
    for (index, model) in (0u32..).zip(0..spec.models.len()) {
        let mut odometer = Odometer::default();
        loop {
            odometer.begin();
            let config = spec.close(model, &mut odometer);
            if let Some(error) = odometer.error.take() {
                return Err(error);
            }
            let config = config
                .ok_or_else(|| SearchError::Empty { dimension: format!("model[{model}]") })?;
            let choices = std::mem::take(&mut odometer.choices);
            let trial = Trial { model: index, config, choices, seed: None };
            if combinations.take(&trial)? {
                if trials.len() == MAX_TRIALS {
                    return Err(SearchError::TooMany);
                }
                trials.push(trial);
            }
            if !odometer.advance() {
                break;
            }
        }
    }
    Ok(trials)
}

/// Every model of a table that the values of its dimensions make.
///
/// # Errors
/// [`SearchError`] where a dimension has no values that can be counted, or there are too many of them.
pub fn models(spec: &JobSpec, table: usize) -> Result<Vec<Architecture>, SearchError> {
    let (mut models, mut odometer) = (Vec::new(), Odometer::default());
    let Some(space) = spec.models.get(table) else { return Ok(models) };
    loop {
        odometer.begin();
        let model = space.close(&format!("model[{table}]"), &mut odometer);
        if let Some(error) = odometer.error.take() {
            return Err(error);
        }
        if models.len() == MAX_TRIALS {
            return Err(SearchError::TooMany);
        }
        models.extend(model);
        if !odometer.advance() {
            return Ok(models);
        }
    }
}

/// One wheel per dimension, found in the order in which the space asks for them.
#[derive(Default)]
struct Odometer {
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
    fn begin(&mut self) {
        self.next = 0;
        self.choices.clear();
    }

    /// Turns the last wheel; `false` when all have gone round.
    fn advance(&mut self) -> bool {
        for wheel in self.wheels.iter_mut().rev() {
            wheel.at += 1;
            if wheel.at < wheel.count {
                return true;
            }
            wheel.at = 0;
        }
        false
    }

    /// The wheel of the next dimension, which `make` makes at its first turn.
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
        let wheel = self.turn(|| {
            let values = values(name, range)?;
            Ok(Wheel { at: 0, count: values.len(), values })
        });
        wheel.and_then(|wheel| wheel.values.get(wheel.at)).copied().unwrap_or(range.low)
    }

    fn normal(&mut self, name: &str, normal: &Normal) -> f64 {
        self.error.get_or_insert(SearchError::NormalInGrid { dimension: name.into() });
        normal.mean
    }

    fn chosen(&mut self, name: &str, value: serde_json::Value) {
        self.choices.insert(name.into(), value);
    }
}

/// The values of a range, at least one.
fn values(name: &str, range: &Range) -> Result<Vec<f64>, SearchError> {
    let dimension = || name.to_owned();
    if !range.is_sound() {
        return Err(SearchError::BadRange { dimension: dimension() });
    }
    let grid = draw::grid(range).ok_or_else(|| SearchError::NoPoints { dimension: dimension() })?;
    match usize::try_from(grid.count()) {
        Ok(0) => Err(SearchError::Empty { dimension: dimension() }),
        Ok(..=MAX_COMBINATIONS) => Ok(grid.values(range)),
        _ => Err(SearchError::TooMany),
    }
}

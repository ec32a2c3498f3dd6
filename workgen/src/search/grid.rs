//! Every combination: an odometer over the dimensions, the last one fastest.

use super::{MAX_TRIALS, SearchError, Trial, at_share, close};
use sojourn_protocol::spec::{
    Choices, JobSpec,
    dimension::{Chooser, Range, Spread},
};

pub(super) fn trials(spec: &JobSpec) -> Result<Vec<Trial>, SearchError> {
    let mut trials = Vec::new();
    for (index, model) in (0u32..).zip(0..spec.models.len()) {
        let mut odometer = Odometer::default();
        loop {
            odometer.begin();
            let config = close(spec, model, &mut odometer);
            if let Some(error) = odometer.error.take() {
                return Err(error);
            }
            let config = config
                .ok_or_else(|| SearchError::Empty { dimension: format!("model[{model}]") })?;
            if trials.len() == MAX_TRIALS {
                return Err(SearchError::TooMany);
            }
            let choices = std::mem::take(&mut odometer.choices);
            trials.push(Trial { model: index, config, choices, seed: None });
            if !odometer.advance() {
                break;
            }
        }
    }
    Ok(trials)
}

/// One wheel per dimension, found in the order in which the space asks for them.
#[derive(Default)]
struct Odometer {
    wheels: Vec<Wheel>,
    next: usize,
    choices: Choices,
    error: Option<SearchError>,
}

#[derive(Clone, Copy)]
struct Wheel {
    at: usize,
    count: usize,
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

    fn turn(&mut self, name: &str, count: usize) -> usize {
        if count == 0 {
            self.error.get_or_insert(SearchError::Empty { dimension: name.into() });
            return 0;
        }
        if self.next == self.wheels.len() {
            self.wheels.push(Wheel { at: 0, count });
        }
        let at = self.wheels.get(self.next).map_or(0, |wheel| wheel.at);
        self.next += 1;
        at
    }
}

impl Chooser for Odometer {
    fn index(&mut self, name: &str, count: usize) -> usize {
        self.turn(name, count)
    }

    fn number(&mut self, name: &str, range: &Range) -> f64 {
        if !range.is_sound() {
            self.error.get_or_insert(SearchError::BadRange { dimension: name.into() });
            return range.low;
        }
        let Some(points) = points(range) else {
            self.error.get_or_insert(SearchError::NoPoints { dimension: name.into() });
            return range.low;
        };
        let at = self.turn(name, points);
        let steps = points.saturating_sub(1);
        if steps == 0 {
            return range.low;
        }
        #[expect(clippy::cast_precision_loss, reason = "grids have far fewer than 2^53 points")]
        let share = at as f64 / steps as f64;
        at_share(range, share)
    }

    fn chosen(&mut self, name: &str, value: serde_json::Value) {
        self.choices.insert(name.into(), value);
    }
}

/// How many values a grid takes from a range. Whole numbers don't come twice.
fn points(range: &Range) -> Option<usize> {
    let whole = (range.spread == Spread::Integer).then(|| {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "clamped to what a grid may have at all"
        )]
        let count = (range.high - range.low + 1.0).clamp(1.0, 1e9) as usize;
        count
    });
    let points = range.points.and_then(|points| usize::try_from(points).ok());
    match (points, whole) {
        (Some(points), Some(whole)) => Some(points.min(whole)),
        (points, whole) => points.or(whole),
    }
}

//! From a uniform number in `[0, 1)` to a number of a range.

use sojourn_protocol::spec::dimension::{Range, Spread, Steps};

/// The value of a logarithmic range with steps for `uniform`: a number from its low end up to one step beyond its last value is
/// drawn, evenly in the logarithm, and the value at or below it taken. So of `log_int = [1, 15]` the numbers 1, 2 to 3, 4 to 7 and 8
/// to 15 are as likely.
pub(super) fn step(range: &Range, steps: &Steps, uniform: f64) -> f64 {
    let end = steps.at(steps.count() - 1) + steps.step();
    let number = between_logarithms(range.low, end, uniform);
    steps.at(floor((number - range.low) / steps.step()))
}

/// The index below `count` for `uniform`; 0 if there is none.
pub(super) fn index(count: u32, uniform: f64) -> u32 {
    floor(f64::from(count) * uniform).min(count.saturating_sub(1))
}

/// The whole number at or below one, kept to the range of the type.
pub(super) fn floor(number: f64) -> u32 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to u32")]
    let whole = number.clamp(0.0, f64::from(u32::MAX)) as u32;
    whole
}

/// The value at `share` (0 to 1) of a range without steps, in its spread; both ends are exact.
pub(super) fn at_share(range: &Range, share: f64) -> f64 {
    if share <= 0.0 {
        return range.low;
    }
    if share >= 1.0 {
        return range.high;
    }
    let number = if range.spread.is_logarithmic() {
        between_logarithms(range.low, range.high, share)
    } else {
        range.low + (range.high - range.low) * share
    };
    match range.spread {
        Spread::Uniform => number,
        Spread::LogUniform => number.clamp(range.low, range.high),
        Spread::Integer | Spread::LogInteger => libm::round(number).clamp(range.low, range.high),
    }
}

/// The number at `share` of the way between the natural logarithms of two.
fn between_logarithms(low: f64, high: f64, share: f64) -> f64 {
    let (low, high) = (libm::log(low), libm::log(high));
    libm::exp(low + (high - low) * share)
}

/// The values that a grid takes from a range, if it says how many.
pub(super) fn grid(range: &Range) -> Option<Grid> {
    let steps = range.steps();
    let Some(points) = range.points else { return steps.map(Grid::Steps) };
    // Whole numbers don't come twice.
    let points = steps.map_or(points, |steps| points.min(steps.count()));
    Some(Grid::Points(points))
}

/// The values that a grid takes from a range.
#[derive(Clone, Copy)]
pub(super) enum Grid {
    Steps(Steps),
    Points(u32),
}

impl Grid {
    pub(super) fn count(self) -> u32 {
        match self {
            Self::Steps(steps) => steps.count(),
            Self::Points(points) => points,
        }
    }

    pub(super) fn values(self, range: &Range) -> Vec<f64> {
        let mut values: Vec<f64> = (0..self.count())
            .map(|at| match self {
                Self::Steps(steps) => steps.at(at),
                Self::Points(points) => {
                    at_share(range, f64::from(at) / f64::from((points - 1).max(1)))
                }
            })
            .collect();
        if range.spread == Spread::LogInteger {
            // Near the low end several points are one whole number.
            values.dedup();
        }
        values
    }
}

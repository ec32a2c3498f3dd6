//! From a uniform number in `[0, 1)` to a number of a range.

use sojourn_protocol::spec::{
    CombinationRule,
    dimension::{Range, Spread, Steps},
};

/// The most digits of a number that stands for a point of a grid.
const MAX_DIGITS: usize = 10;
/// How far that number may be from the point, as a part of it or, where numbers are spread evenly, of the range's larger end.
const POINT_TOLERANCE: f64 = 1e-12;

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

/// All values of a range, if they can be counted.
pub(super) fn all(range: &Range) -> Option<Grid> {
    let only = (range.low == range.high).then_some(Grid::Points(1));
    range.steps().map(Grid::Steps).or(only)
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

    pub(super) fn values(self, range: &Range, rule: CombinationRule) -> Vec<f64> {
        let mut values: Vec<f64> = (0..self.count())
            .map(|at| match self {
                Self::Steps(steps) => steps.at(at),
                Self::Points(points) => {
                    let point = at_share(range, f64::from(at) / f64::from((points - 1).max(1)));
                    if rule.is_distinct() { short_decimal(range, point) } else { point }
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

/// The decimal of fewest digits that a point of a range stands for, 0.001 for 0.0010000000000000002; the point itself where that needs more
/// than [`MAX_DIGITS`].
fn short_decimal(range: &Range, point: f64) -> f64 {
    let scale = match range.spread {
        Spread::LogUniform | Spread::LogInteger => point.abs(),
        Spread::Uniform | Spread::Integer => range.low.abs().max(range.high.abs()),
    };
    let is_near = |decimal: &f64| (decimal - point).abs() <= scale * POINT_TOLERANCE;
    let of_digits = |digits: usize| format!("{point:.*e}", digits - 1).parse::<f64>().ok();
    let decimals = std::iter::once(0.0).chain((1..=MAX_DIGITS).filter_map(of_digits));
    decimals
        .filter(is_near)
        .find(|decimal| range.low <= *decimal && *decimal <= range.high)
        .unwrap_or(point)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(spread: Spread, low: f64, high: f64, points: u32) -> Vec<f64> {
        let range = Range { points: Some(points), ..Range::new(spread, low, high) };
        grid(&range).unwrap().values(&range, CombinationRule::Distinct)
    }

    #[test]
    fn points_are_the_decimals_that_are_meant() {
        let tenths = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7];
        assert_eq!(points(Spread::Uniform, 0.1, 0.7, 7), tenths);
        assert_eq!(points(Spread::LogUniform, 1e-4, 1e-1, 4), [1e-4, 1e-3, 1e-2, 1e-1]);
        let seven = [1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0];
        assert_eq!(points(Spread::LogUniform, 1e-6, 1.0, 7), seven);
        assert_eq!(points(Spread::Uniform, -0.1, 0.2, 4), [-0.1, 0.0, 0.1, 0.2], "0 itself");
        assert_eq!(points(Spread::LogUniform, 1e-300, 1e300, 3), [1e-300, 1.0, 1e300]);
    }

    #[test]
    fn points_without_a_short_decimal_stay_as_they_are() {
        assert_eq!(points(Spread::Uniform, 0.0, 1.0, 7)[1], 1.0 / 6.0);
        let middle = points(Spread::LogUniform, 1e-4, 1e-1, 3)[1];
        assert!((middle - 1e-4 * 1000f64.sqrt()).abs() < 1e-15, "{middle}");
    }

    #[test]
    fn jobs_of_earlier_versions_keep_their_points() {
        let range = Range { points: Some(4), ..Range::new(Spread::LogUniform, 1e-4, 1e-1) };
        let before = grid(&range).unwrap().values(&range, CombinationRule::All);
        assert_eq!(before, [1e-4, 0.001_000_000_000_000_000_2, 0.010_000_000_000_000_005, 1e-1]);
    }
}

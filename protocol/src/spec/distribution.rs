//! The numbers that a dimension may have: ranges, with or without steps, and normal numbers.

use serde::{Deserialize, Serialize};
use std::iter;

/// A range of numbers, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Range {
    /// How numbers spread over the range.
    pub spread: Spread,
    /// The low end; above 0 where the spread is logarithmic.
    pub low: f64,
    /// The high end, at least `low`.
    pub high: f64,
    /// How many values a grid takes from the range; a grid needs it where the range has no steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub points: Option<u32>,
    /// Only `low` and what is whole steps above it, where given. The high end is a value where a step reaches it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<f64>,
}

/// How numbers spread over a [`Range`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = RangeSpread))]
#[serde(rename_all = "snake_case")]
pub enum Spread {
    /// Numbers are spread evenly.
    Uniform,
    /// Evenly in the logarithm.
    LogUniform,
    /// Whole numbers, evenly; a grid without `points` takes all of them.
    Integer,
    /// Whole numbers, evenly in the logarithm; a grid without `points` takes all of them.
    LogInteger,
}

impl Spread {
    /// Evenly in the logarithm?
    #[must_use]
    pub const fn is_logarithmic(self) -> bool {
        matches!(self, Self::LogUniform | Self::LogInteger)
    }

    /// Whole numbers alone?
    #[must_use]
    pub const fn is_whole(self) -> bool {
        matches!(self, Self::Integer | Self::LogInteger)
    }
}

/// The most values of a range with steps.
pub const MAX_STEPS: u32 = u32::MAX;

impl Range {
    /// A range without steps, of which a grid takes what it can.
    #[must_use]
    pub const fn new(spread: Spread, low: f64, high: f64) -> Self {
        Self { spread, low, high, points: None, step: None }
    }

    /// Finite ends in order with a finite difference, above 0 for a logarithm, and steps that can be counted.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        let ordered = (self.high - self.low).is_finite() && self.low <= self.high;
        let positive = !self.spread.is_logarithmic() || self.low > 0.0;
        let stepped = self.step.is_none_or(|step| {
            let counted = (self.high - self.low) / step < f64::from(MAX_STEPS);
            step > 0.0 && (self.high + step).is_finite() && counted && self.points.is_none()
        });
        ordered && positive && stepped
    }

    /// The range's values, where it has only some: with `step`, and of whole numbers.
    #[must_use]
    pub fn steps(&self) -> Option<Steps> {
        match self.step {
            Some(step) => Some(Steps::new(self.low, self.high, step)),
            None => self.spread.is_whole().then(|| Steps::new(self.low, self.high, 1.0)),
        }
    }
}

/// The values of a range with steps, in order.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Steps {
    low: f64,
    step: f64,
    /// Both are multiplied by this power of ten, by which they are whole numbers.
    scale: f64,
    count: u32,
}

impl Steps {
    /// A job file says ends and steps as decimal numbers, of which a third 0.1 is 0.3 and not 0.30000000000000004. So values
    /// are counted in whole numbers of the last decimal place.
    fn new(low: f64, high: f64, step: f64) -> Self {
        let all = [low, high, step];
        let scales = iter::successors(Some(1.0), |scale| Some(scale * 10.0)).take(16);
        let decimal =
            scales.into_iter().find(|scale| all.iter().all(|end| is_decimal(*end, *scale)));
        let whole = |number: f64, scale: f64| (number * scale).round();
        let (low, high, step, scale, slack) = match decimal {
            Some(scale) => (whole(low, scale), whole(high, scale), whole(step, scale), scale, 0.0),
            // Numbers with more digits: the quotient may be a little below the whole number that is meant.
            None => (low, high, step, 1.0, 1e-12),
        };
        let quotient = (high - low) / step;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "clamped to u32"
        )]
        let last = (quotient + quotient * slack).clamp(0.0, f64::from(MAX_STEPS - 1)) as u32;
        Self { low, step, scale, count: last + 1 }
    }

    /// How many there are, at least one.
    #[must_use]
    pub const fn count(&self) -> u32 {
        self.count
    }

    /// One of them, counted from 0; the last where there aren't so many.
    #[must_use]
    pub fn at(&self, index: u32) -> f64 {
        (self.low + self.step * f64::from(index.min(self.count - 1))) / self.scale
    }

    /// From one of them to the next.
    #[must_use]
    pub fn step(&self) -> f64 {
        self.step / self.scale
    }
}

/// Is a number a whole number over a power of ten, of so few digits that sums of them are exact?
fn is_decimal(number: f64, scale: f64) -> bool {
    let whole = (number * scale).round();
    whole / scale == number && whole.abs() < 1e15
}

/// Normal numbers.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Normal {
    /// The numbers' mean, before they are cut off.
    pub mean: f64,
    /// The numbers' standard deviation, above 0, before they are cut off.
    pub deviation: f64,
    /// Only numbers from the first to the second, with the mean between them, where given: a truncated normal distribution.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub truncate: Option<[f64; 2]>,
}

impl Normal {
    /// Deviations that no number is away from the mean: half a draw's smallest step lies 8.3 of them away.
    const REACH: f64 = 40.0;
    /// The least width of `truncate`, in deviations. Less of them is a uniform distribution, for which too few of a draw's
    /// digits would be left.
    pub const MIN_WIDTH: f64 = 1e-3;

    /// Finite numbers, a deviation above 0, and ends around the mean that aren't too close.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        let Self { mean, deviation, truncate } = *self;
        let finite = deviation > 0.0 && (mean.abs() + Self::REACH * deviation).is_finite();
        finite
            && truncate.is_none_or(|[low, high]| {
                self.is_inside([low, high]) && high - low >= Self::MIN_WIDTH * deviation
            })
    }

    /// Is the mean between these ends, which aren't the same?
    #[must_use]
    pub fn is_inside(&self, [low, high]: [f64; 2]) -> bool {
        low.is_finite() && high.is_finite() && low <= self.mean && self.mean <= high && low < high
    }
}

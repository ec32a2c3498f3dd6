//! A dimension's own scale: where its values lie, and from there back to them.

use crate::search::{draw, normal};
use serde_json::Value;
use sojourn_protocol::{
    quantity::SaturatingFrom as _,
    spec::dimension::{Normal, Range, Steps},
};

/// The ends of the line that kernels lie on.
pub(super) const LINE: [f64; 2] = [0.0, 1.0];

/// The scale of a dimension that has more than one value.
///
/// A place on it is a number. Of categories and of values with steps it is their index, counted from 0. Of other numbers it is the
/// share of all random numbers of the dimension that are below: so they lie evenly on the line from 0 to 1, whether the range is
/// even in its numbers or in their logarithms, and also where they are normal. On a line of deviations from the mean the search
/// would run away where a dimension doesn't matter, to numbers that its distribution never has.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Axis {
    /// Categories. Those that a [`Survey`](super::space::Survey) hasn't met yet are null.
    Choice(Vec<Value>),
    /// A range without steps, and its ends or their logarithms.
    Range(Range, [f64; 2]),
    /// A range with steps.
    Steps(Range, Steps),
    /// Normal numbers, and the shares of the whole distribution that are below their ends.
    Normal(Normal, [f64; 2]),
}

impl Axis {
    pub(super) fn of_choice(count: usize) -> Option<Self> {
        (count > 1).then(|| Self::Choice(vec![Value::Null; count]))
    }

    /// None of a range that isn't sound or is a single number.
    pub(super) fn of_range(range: Range) -> Option<Self> {
        if !range.is_sound() {
            return None;
        }
        match range.steps() {
            Some(steps) => (steps.count() > 1).then_some(Self::Steps(range, steps)),
            None => {
                let [low, high] = [range.low, range.high].map(|end| scaled(&range, end));
                (low < high).then_some(Self::Range(range, [low, high]))
            }
        }
    }

    pub(super) fn of_normal(normal: Normal) -> Option<Self> {
        normal.is_sound().then(|| Self::Normal(normal, normal::shares_of_ends(&normal)))
    }

    /// The place of a value; none of one that can't be of this dimension. Numbers beyond the ends are taken for the ends.
    pub(super) fn place(&self, value: &Value) -> Option<f64> {
        let number = || value.as_f64().filter(|number| number.is_finite());
        match self {
            Self::Choice(values) => {
                let index = values.iter().position(|category| is_same(category, value))?;
                Some(f64::from(u32::saturating_from(index)))
            }
            Self::Range(range, [low, high]) => {
                let number = scaled(range, number()?.clamp(range.low, range.high));
                Some(((number - low) / (high - low)).clamp(0.0, 1.0))
            }
            Self::Steps(_, steps) => {
                let index = (number()? - steps.at(0)) / steps.step();
                Some(libm::round(index.clamp(0.0, f64::from(steps.count() - 1))))
            }
            Self::Normal(normal, [low, high]) => {
                let share = normal::below((number()? - normal.mean) / normal.deviation);
                Some(((share - low) / (high - low)).clamp(0.0, 1.0))
            }
        }
    }

    /// How many places there are, where they can be counted.
    pub(super) fn count(&self) -> Option<u32> {
        match self {
            Self::Choice(values) => Some(u32::saturating_from(values.len())),
            Self::Steps(_, steps) => Some(steps.count()),
            Self::Range(..) | Self::Normal(..) => None,
        }
    }

    /// The part of the line that the value at this index has, of a dimension with steps. What falls into it is rounded to the
    /// value, and random numbers of the dimension fall into a part as often as it is long.
    pub(super) fn cell(&self, index: f64) -> [f64; 2] {
        let Self::Steps(range, steps) = self else { return LINE };
        if range.spread.is_logarithmic() {
            let at = |index| steps.at(draw::floor(index));
            let last = at(f64::from(steps.count())) + steps.step();
            let [low, high] = [range.low, last].map(|end| scaled(range, end));
            let share = |end| ((scaled(range, end) - low) / (high - low)).clamp(0.0, 1.0);
            [at(index), at(index) + steps.step()].map(share)
        } else {
            let count = f64::from(steps.count());
            [index / count, (index + 1.0) / count]
        }
    }

    /// The point of the line where the kernel of a place is: of steps the middle of its cell.
    pub(super) fn point(&self, place: f64) -> f64 {
        match self {
            Self::Steps(..) => {
                let [low, high] = self.cell(place);
                f64::midpoint(low, high)
            }
            Self::Choice(_) | Self::Range(..) | Self::Normal(..) => place,
        }
    }

    /// The place that a point of the line is rounded to.
    pub(super) fn place_at(&self, point: f64) -> f64 {
        match self {
            Self::Steps(range, steps) if range.spread.is_logarithmic() => {
                let number = draw::step(range, steps, point);
                let index = libm::round((number - steps.at(0)) / steps.step());
                index.clamp(0.0, f64::from(steps.count() - 1))
            }
            Self::Steps(_, steps) => f64::from(draw::index(steps.count(), point)),
            Self::Choice(_) | Self::Range(..) | Self::Normal(..) => point,
        }
    }
}

/// A number or its logarithm.
fn scaled(range: &Range, number: f64) -> f64 {
    if range.spread.is_logarithmic() { libm::log(number) } else { number }
}

/// Are these one value? Numbers are compared as such: a whole one may have been written with or without a fraction.
fn is_same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_same(a, b))
        }
        _ => a == b,
    }
}

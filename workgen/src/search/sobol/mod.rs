//! Combinations by Sobol's sequence: trial `n` is its point `n`, not counting points that constraints leave out.
//!
//! All points are shifted by random numbers that follow from the job's seed, one for each dimension of the space, by exclusive or
//! of their binary digits (a digital shift). That keeps how evenly they lie, and no trial is at the very edge. So a dimension's
//! shift doesn't depend on the others, and a trial that is added later leaves those before it as they were.
//!
//! Which dimension of the sequence one of the space has: where there are several model tables, the choice of one is first. Then
//! come the dimensions of `[training]`, and last those of the table, each in the order in which the space asks for them. So learning
//! rates lie evenly over all trials, whatever their table.

mod direction_numbers;
mod sequence;

use super::{
    Combinations, SearchError, Trial, Tried, combinations::as_many_as_differ, draw, sample,
};
use sequence::{BITS, DIMENSIONS, Sequence};
use sojourn_protocol::{
    seeds,
    spec::{JobSpec, dimension::FirstValues},
};
use std::{collections::BTreeMap, ops::Range};

/// Binary digits of a coordinate: as many as a number in `[0, 1)` has.
const DIGITS: u32 = 53;

/// The most dimensions of one model table's space, the choice of a table among them.
pub(super) const MAX_DIMENSIONS: usize = DIMENSIONS;

/// `tried`: combinations that there are already, those of the numbers before among them.
pub(super) fn trials(
    spec: &JobSpec,
    numbers: Range<u32>,
    tried: &Tried,
    combinations: &mut Combinations<'_>,
) -> Result<Vec<Trial>, SearchError> {
    let axes = Axes::new(spec)?;
    let mut points = 0..;
    let mut one = |trial, combinations: &mut Combinations<'_>| {
        combinations.first(trial, |_| {
            let point = points.next().ok_or(SearchError::TooMany)?;
            sample::trial(spec, &mut Point { axes: &axes, point })
        })
    };
    // Those before are drawn too: constraints may leave some out.
    for before in 0..numbers.start {
        match one(before, combinations) {
            Ok(_) => {}
            Err(SearchError::UsedUp { .. }) => break,
            Err(error) => return Err(error),
        }
    }
    combinations.also_tried(tried);
    as_many_as_differ(numbers, |trial| one(trial, combinations))
}

/// A dimension of the sequence with the shift of one of the space.
struct Axis {
    sequence: Sequence,
    /// Of [`DIGITS`] binary digits.
    shift: u64,
}

impl Axis {
    /// A point's coordinate, in `[0, 1)`.
    fn at(&self, point: u32) -> f64 {
        let digits = (u64::from(self.sequence.at(point)) << (DIGITS - BITS)) ^ self.shift;
        seeds::unit_of(digits)
    }
}

/// The axes of a space, by the names of its dimensions.
struct Axes {
    by_name: BTreeMap<String, Axis>,
}

impl Axes {
    fn new(spec: &JobSpec) -> Result<Self, SearchError> {
        let mut by_name = BTreeMap::new();
        let mut add = |taken: &mut usize, name: &str| {
            let sequence = Sequence::new(*taken).ok_or(SearchError::TooManyDimensions)?;
            *taken += 1;
            if !by_name.contains_key(name) {
                let mut stream = seeds::stream(&format!("sobol/{name}"), &[spec.seed]);
                let shift = seeds::unit_bits(&mut stream);
                by_name.insert(name.to_owned(), Axis { sequence, shift });
            }
            Ok::<_, SearchError>(())
        };
        let mut first = 0;
        if spec.models.len() > 1 {
            add(&mut first, sample::MODEL)?;
        }
        for table in 0..spec.models.len() {
            let mut names = FirstValues::default();
            // A space that has no value is reported when it is searched.
            let _ = spec.close(table, &mut names);
            let (own, common): (Vec<String>, Vec<String>) =
                names.names.into_iter().partition(|name| name.starts_with("model["));
            let mut taken = first;
            common.iter().chain(&own).try_for_each(|name| add(&mut taken, name))?;
        }
        Ok(Self { by_name })
    }
}

/// One point.
struct Point<'a> {
    axes: &'a Axes,
    point: u32,
}

impl sample::Source for Point<'_> {
    fn index(&mut self, name: &str, count: u32) -> Result<u32, SearchError> {
        Ok(draw::index(count, self.uniform(name)?))
    }

    fn uniform(&mut self, name: &str) -> Result<f64, SearchError> {
        let axis = self.axes.by_name.get(name);
        let axis = axis.ok_or_else(|| SearchError::Empty { dimension: name.into() })?;
        Ok(axis.at(self.point))
    }
}

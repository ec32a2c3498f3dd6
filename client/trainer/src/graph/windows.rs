//! Windows that move over lines and images, in convolutions and pools: how far they may reach, and how much they may make.

use super::{
    bounds::{elements, length, numel, positive, product, within},
    call::Call,
};
use crate::error::TrainError;
use std::borrow::Cow;

/// The largest side of a window, step, dilation and padding: as long as the longest row of data. libtorch counts through some of
/// them one by one, wherever the input ends.
const MAX_SIDE: u64 = 1 << 24;
/// The most elements that all windows of a pool may look at together.
const MAX_LOOKED_AT: u64 = 1 << 40;

/// The numbers of a window for each dimension, where one number may stand for all of them.
struct Sides<'a>(Cow<'a, [i64]>);

impl Sides<'_> {
    fn at(&self, dimension: usize) -> Option<i64> {
        self.0.get(dimension).or(self.0.last()).copied()
    }
}

/// The argument `at`, none of it too large.
fn sides<'a>(c: &Call<'a>, at: usize) -> Result<Sides<'a>, TrainError> {
    let numbers = c.wholes(at)?;
    match numbers.iter().find(|number| number.unsigned_abs() > MAX_SIDE) {
        Some(number) => {
            let text = format!("a window can't go by {number}, {MAX_SIDE} are the most");
            Err(TrainError::Unit(text))
        }
        None => Ok(Sides(numbers)),
    }
}

/// The same, all of it above 0.
fn steps<'a>(c: &Call<'a>, at: usize) -> Result<Sides<'a>, TrainError> {
    let sides = sides(c, at)?;
    positive(&sides.0)?;
    Ok(sides)
}

/// Where windows may lie along a dimension of this length, at most.
fn places(size: i64, padding: i64, step: i64) -> i64 {
    size.saturating_add(padding.saturating_mul(2)) / step.max(1) + 1
}

/// Also what the columns of an image take that a convolution may make.
pub(super) fn convolution(c: &Call<'_>) -> Result<(), TrainError> {
    convolved(c, &sides(c, 4)?)
}

/// The same where the padding is a word.
pub(super) fn convolution_by_word(c: &Call<'_>) -> Result<(), TrainError> {
    convolved(c, &Sides(Cow::Borrowed(&[])))
}

fn convolved(c: &Call<'_>, padding: &Sides<'_>) -> Result<(), TrainError> {
    let (input, weight) = (c.tensor(0)?.size(), c.tensor(1)?.size());
    let (stride, _) = (steps(c, 3)?, steps(c, 5)?);
    positive(&[c.whole(6)?])?;
    let (kernel, depth) = (weight.get(2..).unwrap_or_default(), weight.get(1).copied());
    let sizes = input.iter().rev().take(kernel.len()).rev().enumerate();
    let sizes = sizes
        .map(|(at, size)| places(*size, padding.at(at).unwrap_or(0), stride.at(at).unwrap_or(1)));
    let places = elements(&sizes.collect::<Vec<_>>());
    let leading = input.len().saturating_sub(kernel.len() + 1);
    let images = elements(input.get(..leading).unwrap_or_default());
    let patch = elements(kernel).saturating_mul(product(1, &[depth.unwrap_or(1)]));
    let channels = length(c.tensor(1)?, 0);
    within(images.saturating_mul(places).saturating_mul(channels.max(patch)))
}

pub(super) fn transposed_convolution(c: &Call<'_>) -> Result<(), TrainError> {
    let (input, weight) = (c.tensor(0)?.size(), c.tensor(1)?.size());
    let (stride, dilation) = (steps(c, 3)?, steps(c, 7)?);
    let (_, more) = (sides(c, 4)?, sides(c, 5)?);
    positive(&[c.whole(6)?])?;
    let kernel = weight.get(2..).unwrap_or_default();
    let sizes = input.iter().rev().take(kernel.len()).rev().zip(kernel).enumerate();
    let sizes = sizes.map(|(at, (size, kernel))| {
        let reach = dilation.at(at).unwrap_or(1).saturating_mul(*kernel);
        let reach = reach.saturating_add(more.at(at).unwrap_or(0));
        size.saturating_mul(stride.at(at).unwrap_or(1)).saturating_add(reach)
    });
    let places = elements(&sizes.collect::<Vec<_>>());
    let leading = input.len().saturating_sub(kernel.len() + 1);
    let images = elements(input.get(..leading).unwrap_or_default());
    let channels = length(c.tensor(1)?, 1).saturating_mul(product(1, &[c.whole(6)?]));
    let columns = elements(kernel).saturating_mul(numel(c.tensor(0)?)).saturating_mul(channels);
    within(images.saturating_mul(places).saturating_mul(channels).max(columns))
}

/// The largest element of each window.
pub(super) fn max_pool(c: &Call<'_>, dimensions: usize) -> Result<(), TrainError> {
    steps(c, 4)?;
    pool(c, dimensions)
}

/// A pool over the last dimensions. Where no steps are said, they are as large as the window.
pub(super) fn pool(c: &Call<'_>, dimensions: usize) -> Result<(), TrainError> {
    let (kernel, stride, padding) = (steps(c, 1)?, steps(c, 2)?, sides(c, 3)?);
    let input = c.tensor(0)?.size();
    let leading = input.len().saturating_sub(dimensions);
    let (lines, sizes) = input.split_at_checked(leading).unwrap_or_default();
    let lines = elements(lines);
    let (mut made, mut looked_at, mut counted) = (lines, lines, 0u64);
    for (at, size) in sizes.iter().enumerate() {
        let kernel = kernel.at(at).unwrap_or(1);
        let step = stride.at(at).unwrap_or(kernel);
        let places = [places(*size, padding.at(at).unwrap_or(0), step)];
        made = product(made, &places);
        looked_at = product(product(looked_at, &places), &[kernel.min(*size)]);
        counted = counted.saturating_add(product(lines, &[kernel]));
    }
    within(made)?;
    let looked_at = looked_at.saturating_add(counted);
    if looked_at <= MAX_LOOKED_AT {
        return Ok(());
    }
    let text =
        format!("its windows would look at {looked_at} elements, and {MAX_LOOKED_AT} are the most");
    Err(TrainError::Unit(text))
}

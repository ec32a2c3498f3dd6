//! The bounds that no call may exceed, and the sizes of tensors that are compared with them.

use crate::error::TrainError;
use sojourn_graph::MAX_VALUE_ELEMENTS;
use tch::Tensor;

/// The most tensors that one call may give.
const MAX_TENSORS: i64 = 100_000;

pub(super) fn within(elements: u64) -> Result<(), TrainError> {
    if elements <= MAX_VALUE_ELEMENTS {
        return Ok(());
    }
    let text = format!("it would give {elements} elements, and {MAX_VALUE_ELEMENTS} are the most");
    Err(TrainError::Unit(text))
}

pub(super) fn positive(numbers: &[i64]) -> Result<(), TrainError> {
    match numbers.iter().find(|number| **number < 1) {
        Some(number) => Err(TrainError::Unit(format!("it can't go by {number}"))),
        None => Ok(()),
    }
}

pub(super) fn few(tensors: i64) -> Result<(), TrainError> {
    if tensors > MAX_TENSORS {
        return Err(TrainError::Unit(format!("it would give {tensors} tensors")));
    }
    Ok(())
}

pub(super) fn numel(tensor: &Tensor) -> u64 {
    elements(&tensor.size())
}

pub(super) fn elements(sizes: &[i64]) -> u64 {
    product(1, sizes)
}

/// `count` times these numbers; those that are below 0 stand for sizes that are known already.
pub(super) fn product(count: u64, numbers: &[i64]) -> u64 {
    let numbers = numbers.iter().filter_map(|number| u64::try_from(*number).ok());
    numbers.fold(count, u64::saturating_mul)
}

/// The length of a dimension, counted from the end where it is below 0; 1 where there is none.
pub(super) fn length(of: &Tensor, dimension: i64) -> u64 {
    length_as_whole(of, dimension).ok().and_then(|length| u64::try_from(length).ok()).unwrap_or(1)
}

pub(super) fn length_as_whole(of: &Tensor, dimension: i64) -> Result<i64, TrainError> {
    let sizes = of.size();
    let length = i64::try_from(sizes.len())?;
    let at = if dimension < 0 { dimension.saturating_add(length) } else { dimension };
    Ok(usize::try_from(at).ok().and_then(|at| sizes.get(at).copied()).unwrap_or(1))
}

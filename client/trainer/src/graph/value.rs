//! The values that nodes give.

use crate::error::TrainError;
use tch::{TchError, Tensor};

/// The value of a node.
#[derive(Debug)]
pub(crate) enum Value {
    /// None yet, or none that is still needed.
    Nothing,
    Tensor(Tensor),
    Tensors(Vec<Tensor>),
    Whole(i64),
}

pub(super) type Torch<T> = Result<T, TchError>;

pub(super) fn one(tensor: Torch<Tensor>) -> Result<Value, TrainError> {
    Ok(Value::Tensor(tensor?))
}

pub(super) fn two(tensors: Torch<(Tensor, Tensor)>) -> Result<Value, TrainError> {
    let (a, b) = tensors?;
    Ok(Value::Tensors(vec![a, b]))
}

pub(super) fn three(tensors: Torch<(Tensor, Tensor, Tensor)>) -> Result<Value, TrainError> {
    let (a, b, c) = tensors?;
    Ok(Value::Tensors(vec![a, b, c]))
}

pub(super) fn several(tensors: Torch<Vec<Tensor>>) -> Result<Value, TrainError> {
    Ok(Value::Tensors(tensors?))
}

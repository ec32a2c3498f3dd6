//! New tensors: constants, ranges, and chance from the batch's seed.

use super::{
    call::{Call, Run},
    value::{Torch, Value, one},
};
use crate::error::TrainError;
use tch::{Device, Kind, Tensor};

/// The function that computes the operator of this name, where it is one of these.
pub(super) fn find(name: &str) -> Option<Run> {
    let run: Run = match name {
        "aten.arange.default" => |c| one(Tensor::f_arange(c.number(0)?, options_by(c, 1, &[0])?)),
        "aten.arange.start" => {
            |c| one(Tensor::f_arange_start(c.number(0)?, c.number(1)?, options_by(c, 2, &[0, 1])?))
        }
        "aten.arange.start_step" => |c| {
            one(Tensor::f_arange_start_step(
                c.number(0)?,
                c.number(1)?,
                c.number(2)?,
                options_by(c, 3, &[0, 1, 2])?,
            ))
        },
        "aten.bernoulli.default" => |c| one(c.tensor(0)?.f_bernoulli()),
        "aten.bernoulli.p" => |c| one(c.tensor(0)?.f_bernoulli_p(c.real(1)?)),
        "aten.bernoulli_.float" => |c| one(c.changed(0)?.f_bernoulli_float_(c.real(1)?)),
        "aten.randperm.default" => {
            |c| one(Tensor::f_randperm(c.whole(0)?, c.options(c.kind(1)?.unwrap_or(Kind::Int64))))
        }
        "aten.eye.default" => |c| one(Tensor::f_eye(c.whole(0)?, options(c, 1)?)),
        "aten.full.default" => {
            |c| one(Tensor::f_full(&*c.wholes(0)?, c.number(1)?, options_by(c, 2, &[1])?))
        }
        "aten.full_like.default" => full_like,
        "aten.new_full.default" => {
            |c| one(c.tensor(0)?.f_new_full(&*c.wholes(1)?, c.number(2)?, options_of(c, 3)?))
        }
        "aten.new_ones.default" => {
            |c| one(c.tensor(0)?.f_new_ones(&*c.wholes(1)?, options_of(c, 2)?))
        }
        "aten.new_zeros.default" => {
            |c| one(c.tensor(0)?.f_new_zeros(&*c.wholes(1)?, options_of(c, 2)?))
        }
        "aten.ones.default" => |c| one(Tensor::f_ones(&*c.wholes(0)?, options(c, 1)?)),
        "aten.ones_like.default" => |c| like(c, 1, Tensor::f_ones_like),
        "aten.rand.default" => |c| one(Tensor::f_rand(&*c.wholes(0)?, options(c, 1)?)),
        "aten.rand_like.default" => {
            |c| chance_like(c, Tensor::f_rand_like, |size, options| Tensor::f_rand(size, options))
        }
        "aten.randn.default" => |c| one(Tensor::f_randn(&*c.wholes(0)?, options(c, 1)?)),
        "aten.randn_like.default" => {
            |c| chance_like(c, Tensor::f_randn_like, |size, options| Tensor::f_randn(size, options))
        }
        "aten.scalar_tensor.default" => {
            |c| one(Tensor::f_scalar_tensor(c.number(0)?, options(c, 1)?))
        }
        "aten.zeros.default" => |c| one(Tensor::f_zeros(&*c.wholes(0)?, options(c, 1)?)),
        "aten.zeros_like.default" => |c| like(c, 1, Tensor::f_zeros_like),
        _ => return None,
    };
    Some(run)
}

/// The type that argument `at` says, or single precision.
fn options(c: &Call<'_>, at: usize) -> Result<(Kind, Device), TrainError> {
    Ok(c.options(c.kind(at)?.unwrap_or(Kind::Float)))
}

/// The type that argument `at` says, or that which these numbers have together.
fn options_by(c: &Call<'_>, at: usize, numbers: &[usize]) -> Result<(Kind, Device), TrainError> {
    let mut kinds = numbers.iter().map(|number| c.kind_of_number(*number));
    let first = kinds.next().unwrap_or(Ok(Kind::Float))?;
    let of_numbers = kinds.try_fold(first, |one, other| {
        other.map(|other| if one == other { one } else { Kind::Float })
    })?;
    Ok(c.options(c.kind(at)?.unwrap_or(of_numbers)))
}

/// The type that argument `at` says, or that of the first one.
fn options_of(c: &Call<'_>, at: usize) -> Result<(Kind, Device), TrainError> {
    Ok(c.options(c.kind(at)?.map_or_else(|| c.tensor(0)?.f_kind().map_err(TrainError::from), Ok)?))
}

/// As large as the argument, and of its type unless argument `kind` says another.
fn like(
    c: &Call<'_>,
    kind: usize,
    make: fn(&Tensor) -> Torch<Tensor>,
) -> Result<Value, TrainError> {
    let made = make(c.tensor(0)?)?;
    match c.kind(kind)? {
        Some(kind) => one(made.f_to_kind(kind)),
        None => Ok(Value::Tensor(made)),
    }
}

fn full_like(c: &Call<'_>) -> Result<Value, TrainError> {
    let made = c.tensor(0)?.f_full_like(c.number(1)?)?;
    match c.kind(2)? {
        Some(_) => one(Tensor::f_full(made.size(), c.number(1)?, options(c, 2)?)),
        None => Ok(Value::Tensor(made)),
    }
}

/// As large as the argument. Chance depends on the type, so it is drawn in the right one.
fn chance_like(
    c: &Call<'_>,
    like: fn(&Tensor) -> Torch<Tensor>,
    make: fn(&[i64], (Kind, Device)) -> Torch<Tensor>,
) -> Result<Value, TrainError> {
    let of = c.tensor(0)?;
    match c.kind(1)? {
        Some(kind) if kind != of.f_kind()? => one(make(&of.size(), c.options(kind))),
        _ => one(like(of)),
    }
}

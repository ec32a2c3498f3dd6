//! Arithmetic, comparisons and choices, number by number.

use super::{
    call::{Call, Run},
    value::{Torch, Value, one},
};
use crate::error::TrainError;
use tch::{Kind, Scalar, Tensor};

/// The function that computes the operator of this name, where it is one of these.
pub(super) fn find(name: &str) -> Option<Run> {
    let run: Run = match name {
        "aten.abs.default" => |c| one(c.tensor(0)?.f_abs()),
        "aten.absolute.default" => |c| one(c.tensor(0)?.f_absolute()),
        "aten.add.Scalar" => |c| binary(c, 2, Tensor::f_add, Tensor::f_add_scalar),
        "aten.add.Tensor" => |c| binary(c, 2, Tensor::f_add, Tensor::f_add_scalar),
        "aten.add_.Scalar" => |c| in_place(c, 2, Tensor::f_add_, Tensor::f_add_scalar_),
        "aten.add_.Tensor" => |c| in_place(c, 2, Tensor::f_add_, Tensor::f_add_scalar_),
        "aten.addcdiv.default" => |c| {
            one(c.tensor(0)?.f_add(&c.tensor(1)?.f_div(c.tensor(2)?)?.f_mul_scalar(c.number(3)?)?))
        },
        "aten.addcmul.default" => |c| {
            one(c.tensor(0)?.f_add(&c.tensor(1)?.f_mul(c.tensor(2)?)?.f_mul_scalar(c.number(3)?)?))
        },
        "aten.atan2.default" => |c| one(c.tensor(0)?.f_atan2(c.tensor(1)?)),
        "aten.bitwise_and.Tensor" => |c| one(c.tensor(0)?.f_bitwise_and_tensor(c.tensor(1)?)),
        "aten.bitwise_not.default" => |c| one(c.tensor(0)?.f_bitwise_not()),
        "aten.bitwise_or.Tensor" => |c| one(c.tensor(0)?.f_bitwise_or_tensor(c.tensor(1)?)),
        "aten.ceil.default" => |c| one(c.tensor(0)?.f_ceil()),
        "aten.clamp.Tensor" => |c| one(c.tensor(0)?.f_clamp_tensor(c.optional(1)?, c.optional(2)?)),
        "aten.clamp.default" => clamp,
        "aten.clamp_.default" => clamp_in_place,
        "aten.clamp_max.default" => |c| one(c.tensor(0)?.f_clamp_max(c.number(1)?)),
        "aten.clamp_min.default" => |c| one(c.tensor(0)?.f_clamp_min(c.number(1)?)),
        "aten.clip.default" => clamp,
        "aten.clamp_min_.default" => |c| one(c.changed(0)?.f_clamp_min_(c.number(1)?)),
        "aten.clamp_max_.default" => |c| one(c.changed(0)?.f_clamp_max_(c.number(1)?)),
        "aten.fill_.Tensor" => |c| one(c.changed(0)?.f_fill_tensor_(c.tensor(1)?)),
        "aten.copy_.default" => copy,
        "aten.cos.default" => |c| one(c.tensor(0)?.f_cos()),
        "aten.div.Scalar" => |c| one(c.tensor(0)?.f_div_scalar(c.number(1)?)),
        "aten.div.Tensor" => |c| binary(c, NO_ALPHA, Tensor::f_div, Tensor::f_div_scalar),
        "aten.div.Tensor_mode" => div_mode,
        "aten.div_.Tensor" => |c| in_place(c, NO_ALPHA, Tensor::f_div_, Tensor::f_div_scalar_),
        "aten.divide.Tensor" => |c| binary(c, NO_ALPHA, Tensor::f_div, Tensor::f_div_scalar),
        "aten.eq.Scalar" => |c| one(c.tensor(0)?.f_eq(c.number(1)?)),
        "aten.eq.Tensor" => |c| binary(c, NO_ALPHA, Tensor::f_eq_tensor, Tensor::f_eq),
        "aten.erf.default" => |c| one(c.tensor(0)?.f_erf()),
        "aten.exp.default" => |c| one(c.tensor(0)?.f_exp()),
        "aten.exp_.default" => |c| one(c.changed(0)?.f_exp_()),
        "aten.expm1.default" => |c| one(c.tensor(0)?.f_expm1()),
        "aten.fill_.Scalar" => |c| one(c.changed(0)?.f_fill_(c.number(1)?)),
        "aten.floor.default" => |c| one(c.tensor(0)?.f_floor()),
        "aten.floor_divide.default" => {
            |c| binary(c, NO_ALPHA, Tensor::f_floor_divide, Tensor::f_floor_divide_scalar)
        }
        "aten.ge.Scalar" => |c| one(c.tensor(0)?.f_ge(c.number(1)?)),
        "aten.ge.Tensor" => |c| binary(c, NO_ALPHA, Tensor::f_ge_tensor, Tensor::f_ge),
        "aten.gt.Scalar" => |c| one(c.tensor(0)?.f_gt(c.number(1)?)),
        "aten.gt.Tensor" => |c| binary(c, NO_ALPHA, Tensor::f_gt_tensor, Tensor::f_gt),
        "aten.isfinite.default" => |c| one(c.tensor(0)?.f_isfinite()),
        "aten.isinf.default" => |c| one(c.tensor(0)?.f_isinf()),
        "aten.isnan.default" => |c| one(c.tensor(0)?.f_isnan()),
        "aten.le.Scalar" => |c| one(c.tensor(0)?.f_le(c.number(1)?)),
        "aten.le.Tensor" => |c| binary(c, NO_ALPHA, Tensor::f_le_tensor, Tensor::f_le),
        "aten.lerp.Scalar" => |c| one(c.tensor(0)?.f_lerp(c.tensor(1)?, c.number(2)?)),
        "aten.lerp.Tensor" => |c| one(c.tensor(0)?.f_lerp_tensor(c.tensor(1)?, c.tensor(2)?)),
        "aten.log.default" => |c| one(c.tensor(0)?.f_log()),
        "aten.log10.default" => |c| one(c.tensor(0)?.f_log10()),
        "aten.log1p.default" => |c| one(c.tensor(0)?.f_log1p()),
        "aten.log2.default" => |c| one(c.tensor(0)?.f_log2()),
        "aten.logical_and.default" => |c| one(c.tensor(0)?.f_logical_and(c.tensor(1)?)),
        "aten.logical_not.default" => |c| one(c.tensor(0)?.f_logical_not()),
        "aten.logical_or.default" => |c| one(c.tensor(0)?.f_logical_or(c.tensor(1)?)),
        "aten.logical_xor.default" => |c| one(c.tensor(0)?.f_logical_xor(c.tensor(1)?)),
        "aten.lt.Scalar" => |c| one(c.tensor(0)?.f_lt(c.number(1)?)),
        "aten.lt.Tensor" => |c| binary(c, NO_ALPHA, Tensor::f_lt_tensor, Tensor::f_lt),
        "aten.masked_fill.Scalar" => {
            |c| one(c.tensor(0)?.f_masked_fill(c.tensor(1)?, c.number(2)?))
        }
        "aten.masked_fill.Tensor" => {
            |c| one(c.tensor(0)?.f_masked_fill_tensor(c.tensor(1)?, c.tensor(2)?))
        }
        "aten.masked_fill_.Scalar" => {
            |c| one(c.changed(0)?.f_masked_fill_(c.tensor(1)?, c.number(2)?))
        }
        "aten.maximum.default" => |c| one(c.tensor(0)?.f_maximum(c.tensor(1)?)),
        "aten.minimum.default" => |c| one(c.tensor(0)?.f_minimum(c.tensor(1)?)),
        "aten.mul.Scalar" => |c| one(c.tensor(0)?.f_mul_scalar(c.number(1)?)),
        "aten.mul.Tensor" => |c| binary(c, NO_ALPHA, Tensor::f_mul, Tensor::f_mul_scalar),
        "aten.mul_.Tensor" => |c| in_place(c, NO_ALPHA, Tensor::f_mul_, Tensor::f_mul_scalar_),
        "aten.multiply.Tensor" => |c| binary(c, NO_ALPHA, Tensor::f_mul, Tensor::f_mul_scalar),
        "aten.nan_to_num.default" => |c| {
            one(c.tensor(0)?.f_nan_to_num(
                c.optional_real(1)?,
                c.optional_real(2)?,
                c.optional_real(3)?,
            ))
        },
        "aten.ne.Scalar" => |c| one(c.tensor(0)?.f_ne(c.number(1)?)),
        "aten.ne.Tensor" => |c| binary(c, NO_ALPHA, Tensor::f_ne_tensor, Tensor::f_ne),
        "aten.neg.default" => |c| one(c.tensor(0)?.f_neg()),
        "aten.pow.Scalar" => |c| one(Tensor::f_pow_scalar(c.number(0)?, c.tensor(1)?)),
        "aten.pow.Tensor_Scalar" => |c| one(c.tensor(0)?.f_pow_tensor_scalar(c.number(1)?)),
        "aten.pow.Tensor_Tensor" => |c| one(c.tensor(0)?.f_pow(c.tensor(1)?)),
        "aten.pow_.Scalar" => |c| one(c.changed(0)?.f_pow_(c.number(1)?)),
        "aten.reciprocal.default" => |c| one(c.tensor(0)?.f_reciprocal()),
        "aten.remainder.Scalar" => |c| one(c.tensor(0)?.f_remainder(c.number(1)?)),
        "aten.remainder.Tensor" => {
            |c| binary(c, NO_ALPHA, Tensor::f_remainder_tensor, Tensor::f_remainder)
        }
        "aten.round.default" => |c| one(c.tensor(0)?.f_round()),
        "aten.rsqrt.default" => |c| one(c.tensor(0)?.f_rsqrt()),
        "aten.rsqrt_.default" => |c| one(c.changed(0)?.f_rsqrt_()),
        "aten.rsub.Scalar" => reversed_sub,
        "aten.rsub.Tensor" => reversed_sub,
        "aten.sign.default" => |c| one(c.tensor(0)?.f_sign()),
        "aten.sin.default" => |c| one(c.tensor(0)?.f_sin()),
        "aten.sqrt.default" => |c| one(c.tensor(0)?.f_sqrt()),
        "aten.sqrt_.default" => |c| one(c.changed(0)?.f_sqrt_()),
        "aten.square.default" => |c| one(c.tensor(0)?.f_square()),
        "aten.sub.Scalar" => |c| binary(c, 2, Tensor::f_sub, Tensor::f_sub_scalar),
        "aten.sub.Tensor" => |c| binary(c, 2, Tensor::f_sub, Tensor::f_sub_scalar),
        "aten.sub_.Tensor" => |c| in_place(c, 2, Tensor::f_sub_, Tensor::f_sub_scalar_),
        "aten.subtract.Tensor" => |c| binary(c, 2, Tensor::f_sub, Tensor::f_sub_scalar),
        "aten.tan.default" => |c| one(c.tensor(0)?.f_tan()),
        "aten.true_divide.Tensor" => |c| binary(c, NO_ALPHA, Tensor::f_div, Tensor::f_div_scalar),
        "aten.trunc.default" => |c| one(c.tensor(0)?.f_trunc()),
        "aten.where.Scalar" => {
            |c| one(Tensor::f_where_scalar(c.tensor(0)?, c.number(1)?, c.number(2)?))
        }
        "aten.where.ScalarOther" => {
            |c| one(c.tensor(1)?.f_where_scalarother(c.tensor(0)?, c.number(2)?))
        }
        "aten.where.ScalarSelf" => {
            |c| one(Tensor::f_where_scalarself(c.tensor(0)?, c.number(1)?, c.tensor(2)?))
        }
        "aten.where.self" => |c| match c.optional_number(2)? {
            Some(other) => one(c.tensor(1)?.f_where_scalarother(c.tensor(0)?, other)),
            None => one(c.tensor(1)?.f_where_self(c.tensor(0)?, c.tensor(2)?)),
        },
        "aten.zero_.default" => |c| one(c.changed(0)?.f_zero_()),
        _ => return None,
    };
    Some(run)
}

/// For operators whose second operand has no factor.
const NO_ALPHA: usize = usize::MAX;

/// `self ? other`, where the other operand is a tensor or a number. `alpha` is the index of its factor, if it has one.
///
/// A number doesn't decide the type of the result, as a tensor of one number might; hence the two functions.
fn binary(
    c: &Call<'_>,
    alpha: usize,
    tensor: fn(&Tensor, &Tensor) -> Torch<Tensor>,
    number: fn(&Tensor, Scalar) -> Torch<Tensor>,
) -> Result<Value, TrainError> {
    let of = c.tensor(0)?;
    match (c.optional_number(1)?, factor(c, alpha)?) {
        (Some(other), None) => one(number(of, other)),
        (Some(_), Some(alpha)) => one(number(of, Scalar::float(c.real(1)? * alpha))),
        (None, None) => one(tensor(of, c.tensor(1)?)),
        (None, Some(alpha)) => one(tensor(of, &c.tensor(1)?.f_mul_scalar(alpha)?)),
    }
}

/// As [`binary`], into the first operand.
fn in_place(
    c: &Call<'_>,
    alpha: usize,
    tensor: fn(&mut Tensor, &Tensor) -> Torch<Tensor>,
    number: fn(&mut Tensor, Scalar) -> Torch<Tensor>,
) -> Result<Value, TrainError> {
    let mut of = c.changed(0)?;
    match (c.optional_number(1)?, factor(c, alpha)?) {
        (Some(other), None) => one(number(&mut of, other)),
        (Some(_), Some(alpha)) => one(number(&mut of, Scalar::float(c.real(1)? * alpha))),
        (None, None) => one(tensor(&mut of, c.tensor(1)?)),
        (None, Some(alpha)) => one(tensor(&mut of, &c.tensor(1)?.f_mul_scalar(alpha)?)),
    }
}

/// The factor of the second operand, where it isn't 1.
fn factor(c: &Call<'_>, alpha: usize) -> Result<Option<f64>, TrainError> {
    if alpha == NO_ALPHA {
        return Ok(None);
    }
    Ok(Some(c.real(alpha)?).filter(|alpha| *alpha != 1.0))
}

/// `other - alpha self`.
fn reversed_sub(c: &Call<'_>) -> Result<Value, TrainError> {
    let of = match factor(c, 2)? {
        Some(alpha) => c.tensor(0)?.f_mul_scalar(alpha)?,
        None => c.changed(0)?,
    };
    match c.optional_number(1)? {
        Some(other) => one(of.f_rsub_scalar(other)),
        None => one(of.f_rsub(c.tensor(1)?)),
    }
}

fn div_mode(c: &Call<'_>) -> Result<Value, TrainError> {
    if c.is_nothing(2) {
        return binary(c, NO_ALPHA, Tensor::f_div, Tensor::f_div_scalar);
    }
    let (of, mode) = (c.tensor(0)?, c.text(2)?);
    let whole = |tensor: &Tensor| {
        Ok::<_, TrainError>(!matches!(
            tensor.f_kind()?,
            Kind::Float | Kind::Double | Kind::Half | Kind::BFloat16
        ))
    };
    let by_whole = match c.optional_number(1)? {
        Some(_) => c.kind_of_number(1)? != Kind::Float,
        None => whole(c.tensor(1)?)?,
    };
    // The smallest whole number by -1 has no result, and ends the process.
    if mode == "trunc" && whole(of)? && by_whole {
        let text = "whole numbers are divided by `floor`, not by `trunc`";
        return Err(TrainError::Unit(text.into()));
    }
    match c.optional_number(1)? {
        Some(other) => one(of.f_div_scalar_mode(other, mode)),
        None => one(of.f_div_tensor_mode(c.tensor(1)?, mode)),
    }
}

fn clamp(c: &Call<'_>) -> Result<Value, TrainError> {
    let of = c.tensor(0)?;
    match (c.optional_number(1)?, c.optional_number(2)?) {
        (Some(min), Some(max)) => one(of.f_clamp(min, max)),
        (Some(min), None) => one(of.f_clamp_min(min)),
        (None, Some(max)) => one(of.f_clamp_max(max)),
        (None, None) => Err(TrainError::Unit("`clamp` has no bound".into())),
    }
}

fn clamp_in_place(c: &Call<'_>) -> Result<Value, TrainError> {
    let mut of = c.changed(0)?;
    match (c.optional_number(1)?, c.optional_number(2)?) {
        (Some(min), Some(max)) => one(of.f_clamp_(min, max)),
        (Some(min), None) => one(of.f_clamp_min_(min)),
        (None, Some(max)) => one(of.f_clamp_max_(max)),
        (None, None) => Err(TrainError::Unit("`clamp_` has no bound".into())),
    }
}

fn copy(c: &Call<'_>) -> Result<Value, TrainError> {
    let mut to = c.changed(0)?;
    to.f_copy_(c.tensor(1)?)?;
    Ok(Value::Tensor(to))
}

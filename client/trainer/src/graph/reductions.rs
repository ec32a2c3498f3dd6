//! Sums, means, extremes and orders.

use super::{
    call::{Call, Run},
    value::{Value, one, two},
};
use crate::error::TrainError;
use tch::{Scalar, Tensor};

/// The function that computes the operator of this name, where it is one of these.
pub(super) fn find(name: &str) -> Option<Run> {
    let run: Run = match name {
        "aten.all.default" => |c| one(c.tensor(0)?.f_all()),
        "aten.all.dim" => |c| one(c.tensor(0)?.f_all_dim(c.whole(1)?, c.flag(2)?)),
        "aten.amax.default" => |c| one(c.tensor(0)?.f_amax(&*c.wholes(1)?, c.flag(2)?)),
        "aten.amin.default" => |c| one(c.tensor(0)?.f_amin(&*c.wholes(1)?, c.flag(2)?)),
        "aten.any.default" => |c| one(c.tensor(0)?.f_any()),
        "aten.any.dim" => |c| one(c.tensor(0)?.f_any_dim(c.whole(1)?, c.flag(2)?)),
        "aten.argmax.default" => |c| one(c.tensor(0)?.f_argmax(c.optional_whole(1)?, c.flag(2)?)),
        "aten.argmin.default" => |c| one(c.tensor(0)?.f_argmin(c.optional_whole(1)?, c.flag(2)?)),
        "aten.argsort.default" => |c| one(c.tensor(0)?.f_argsort(c.whole(1)?, c.flag(2)?)),
        "aten.count_nonzero.default" => |c| one(c.tensor(0)?.f_count_nonzero(c.optional_whole(1)?)),
        "aten.cumsum.default" => |c| one(c.tensor(0)?.f_cumsum(c.whole(1)?, c.kind(2)?)),
        "aten.linalg_vector_norm.default" => vector_norm,
        "aten.logsumexp.default" => |c| one(c.tensor(0)?.f_logsumexp(&*c.wholes(1)?, c.flag(2)?)),
        "aten.max.default" => |c| one(c.tensor(0)?.f_max()),
        "aten.max.dim" => |c| two(c.tensor(0)?.f_max_dim(c.whole(1)?, c.flag(2)?)),
        "aten.max.other" => |c| one(c.tensor(0)?.f_max_other(c.tensor(1)?)),
        "aten.mean.default" => |c| one(c.tensor(0)?.f_mean(c.kind(1)?)),
        "aten.mean.dim" => |c| {
            one(c.tensor(0)?.f_mean_dim(c.optional_wholes(1)?.as_deref(), c.flag(2)?, c.kind(3)?))
        },
        "aten.min.default" => |c| one(c.tensor(0)?.f_min()),
        "aten.min.dim" => |c| two(c.tensor(0)?.f_min_dim(c.whole(1)?, c.flag(2)?)),
        "aten.min.other" => |c| one(c.tensor(0)?.f_min_other(c.tensor(1)?)),
        "aten.norm.Scalar" => |c| norm(c.tensor(0)?, c.real(1)?, None, false),
        "aten.norm.ScalarOpt_dim" => |c| {
            norm(c.tensor(0)?, c.optional_real(1)?.unwrap_or(2.0), Some(&c.wholes(2)?), c.flag(3)?)
        },
        "aten.prod.default" => |c| one(c.tensor(0)?.f_prod(c.kind(1)?)),
        "aten.prod.dim_int" => {
            |c| one(c.tensor(0)?.f_prod_dim_int(c.whole(1)?, c.flag(2)?, c.kind(3)?))
        }
        "aten.sort.default" => |c| two(c.tensor(0)?.f_sort(c.whole(1)?, c.flag(2)?)),
        "aten.std.correction" => |c| {
            one(c.tensor(0)?.f_std_correction(
                c.optional_wholes(1)?.as_deref(),
                correction(c)?,
                c.flag(3)?,
            ))
        },
        "aten.std.default" => |c| one(c.tensor(0)?.f_std(c.flag(1)?)),
        "aten.std.dim" => |c| {
            one(c.tensor(0)?.f_std_dim(c.optional_wholes(1)?.as_deref(), c.flag(2)?, c.flag(3)?))
        },
        "aten.sum.default" => |c| one(c.tensor(0)?.f_sum(c.kind(1)?)),
        "aten.sum.dim_IntList" => |c| {
            one(c.tensor(0)?.f_sum_dim_intlist(
                c.optional_wholes(1)?.as_deref(),
                c.flag(2)?,
                c.kind(3)?,
            ))
        },
        "aten.topk.default" => {
            |c| two(c.tensor(0)?.f_topk(c.whole(1)?, c.whole(2)?, c.flag(3)?, c.flag(4)?))
        }
        "aten.var.correction" => |c| {
            one(c.tensor(0)?.f_var_correction(
                c.optional_wholes(1)?.as_deref(),
                correction(c)?,
                c.flag(3)?,
            ))
        },
        "aten.var.default" => |c| one(c.tensor(0)?.f_var(c.flag(1)?)),
        "aten.var.dim" => |c| {
            one(c.tensor(0)?.f_var_dim(c.optional_wholes(1)?.as_deref(), c.flag(2)?, c.flag(3)?))
        },
        "aten.var_mean.correction" => |c| {
            two(c.tensor(0)?.f_var_mean_correction(
                c.optional_wholes(1)?.as_deref(),
                correction(c)?,
                c.flag(3)?,
            ))
        },
        _ => return None,
    };
    Some(run)
}

/// How many degrees of freedom are lost: 1 where nothing is said.
fn correction(c: &Call<'_>) -> Result<Scalar, TrainError> {
    Ok(c.optional_number(2)?.unwrap_or(Scalar::int(1)))
}

/// The norm of this order over dimensions, or over all.
fn norm(of: &Tensor, order: f64, over: Option<&[i64]>, keep: bool) -> Result<Value, TrainError> {
    let all: Vec<i64> = (0..).take(of.dim()).collect();
    one(of.f_norm_scalaropt_dim(order, over.unwrap_or(&all), keep))
}

fn vector_norm(c: &Call<'_>) -> Result<Value, TrainError> {
    let of = match c.kind(4)? {
        Some(kind) => c.tensor(0)?.f_to_kind(kind)?,
        None => c.changed(0)?,
    };
    norm(&of, c.real(1)?, c.optional_wholes(2)?.as_deref(), c.flag(3)?)
}

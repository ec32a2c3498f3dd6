//! Activations and losses.

use super::{
    call::{Call, Run},
    value::{Torch, Value, one},
};
use crate::error::TrainError;
use tch::{Kind, Tensor};

/// The function that computes the operator of this name, where it is one of these.
pub(super) fn find(name: &str) -> Option<Run> {
    let run: Run = match name {
        "aten.binary_cross_entropy.default" => |c| {
            one(c.tensor(0)?.f_binary_cross_entropy(c.tensor(1)?, c.optional(2)?, c.reduction(3)?))
        },
        "aten.binary_cross_entropy_with_logits.default" => |c| {
            one(c.tensor(0)?.f_binary_cross_entropy_with_logits(
                c.tensor(1)?,
                c.optional(2)?,
                c.optional(3)?,
                c.reduction(4)?,
            ))
        },
        "aten.celu.default" => |c| of(c, celu),
        "aten.cosine_similarity.default" => |c| {
            one(Tensor::f_cosine_similarity(c.tensor(0)?, c.tensor(1)?, c.whole(2)?, c.real(3)?))
        },
        "aten.cross_entropy_loss.default" => |c| {
            let (weight, reduction, ignored) = (c.optional(2)?, c.reduction(3)?, c.whole(4)?);
            let smoothing = c.real(5)?;
            class_loss(c, |scores, classes| {
                scores.f_cross_entropy_loss(classes, weight, reduction, ignored, smoothing)
            })
        },
        "aten.elu.default" => |c| of(c, elu),
        "aten.elu_.default" => |c| in_place(c, elu),
        "aten.triplet_margin_loss.default" => |c| {
            let (anchor, positive, negative) = (c.tensor(0)?, c.tensor(1)?, c.tensor(2)?);
            let (margin, p, eps) = (c.real(3)?, c.real(4)?, c.real(5)?);
            let (swap, reduction) = (c.flag(6)?, c.reduction(7)?);
            one(Tensor::f_triplet_margin_loss(
                anchor, positive, negative, margin, p, eps, swap, reduction,
            ))
        },
        "aten.gelu.default" => |c| one(c.tensor(0)?.f_gelu(c.text(1)?)),
        "aten.glu.default" => |c| one(c.tensor(0)?.f_glu(c.whole(1)?)),
        "aten.hardsigmoid.default" => |c| one(c.tensor(0)?.f_hardsigmoid()),
        "aten.hardswish.default" => |c| one(c.tensor(0)?.f_hardswish()),
        "aten.hardswish_.default" => |c| one(c.changed(0)?.f_hardswish_()),
        "aten.hardtanh.default" => |c| of(c, hardtanh),
        "aten.hardtanh_.default" => |c| in_place(c, hardtanh),
        "aten.huber_loss.default" => {
            |c| one(c.tensor(0)?.f_huber_loss(c.tensor(1)?, c.reduction(2)?, c.real(3)?))
        }
        "aten.kl_div.default" => {
            |c| one(c.tensor(0)?.f_kl_div(c.tensor(1)?, c.reduction(2)?, c.flag(3)?))
        }
        "aten.l1_loss.default" => |c| one(c.tensor(0)?.f_l1_loss(c.tensor(1)?, c.reduction(2)?)),
        "aten.leaky_relu.default" => |c| of(c, leaky_relu),
        "aten.leaky_relu_.default" => |c| in_place(c, leaky_relu),
        "aten.log_sigmoid.default" => |c| one(c.tensor(0)?.f_log_sigmoid()),
        "aten.log_softmax.int" => |c| one(c.tensor(0)?.f_log_softmax(c.whole(1)?, c.kind(2)?)),
        "aten.mish.default" => |c| one(c.tensor(0)?.f_mish()),
        "aten.mse_loss.default" => |c| one(c.tensor(0)?.f_mse_loss(c.tensor(1)?, c.reduction(2)?)),
        "aten.nll_loss.default" => |c| {
            one(c.tensor(0)?.f_nll_loss(c.tensor(1)?, c.optional(2)?, c.reduction(3)?, c.whole(4)?))
        },
        "aten.nll_loss2d.default" | "aten.nll_loss_nd.default" => |c| {
            let (weight, reduction, ignored) = (c.optional(2)?, c.reduction(3)?, c.whole(4)?);
            class_loss(c, |scores, classes| {
                scores.f_nll_loss_nd(classes, weight, reduction, ignored)
            })
        },
        "aten.prelu.default" => |c| one(c.tensor(0)?.f_prelu(c.tensor(1)?)),
        "aten.relu.default" => |c| one(c.tensor(0)?.f_relu()),
        "aten.relu6.default" => |c| one(c.tensor(0)?.f_relu6()),
        "aten.relu6_.default" => |c| one(c.changed(0)?.f_relu6_()),
        "aten.relu_.default" => |c| one(c.changed(0)?.f_relu_()),
        "aten.selu.default" => |c| one(c.tensor(0)?.f_selu()),
        "aten.selu_.default" => |c| one(c.changed(0)?.f_selu_()),
        "aten.sigmoid.default" => |c| one(c.tensor(0)?.f_sigmoid()),
        "aten.sigmoid_.default" => |c| one(c.changed(0)?.f_sigmoid_()),
        "aten.silu.default" => |c| one(c.tensor(0)?.f_silu()),
        "aten.silu_.default" => |c| one(c.changed(0)?.f_silu_()),
        "aten.smooth_l1_loss.default" => {
            |c| one(c.tensor(0)?.f_smooth_l1_loss(c.tensor(1)?, c.reduction(2)?, c.real(3)?))
        }
        "aten.softmax.int" => |c| one(c.tensor(0)?.f_softmax(c.whole(1)?, c.kind(2)?)),
        "aten.softplus.default" => |c| of(c, softplus),
        "aten.tanh.default" => |c| one(c.tensor(0)?.f_tanh()),
        "aten.tanh_.default" => |c| one(c.changed(0)?.f_tanh_()),
        _ => return None,
    };
    Some(run)
}

/// A loss of scores `[rows, classes, ...]` and classes `[rows, ...]`. On a GPU libtorch adds up scores of more than two
/// dimensions in no fixed order, and those of rows in one: there all places become rows.
fn class_loss(
    c: &Call<'_>,
    loss: impl Fn(&Tensor, &Tensor) -> Torch<Tensor>,
) -> Result<Value, TrainError> {
    let (scores, classes) = (c.tensor(0)?, c.tensor(1)?);
    let by_place = scores.dim() > 2 && classes.f_kind()? == Kind::Int64;
    if by_place && scores.device().is_cuda() {
        one(of_places(scores, classes, loss))
    } else {
        one(loss(scores, classes))
    }
}

/// The loss where each place is a row.
fn of_places(
    scores: &Tensor,
    classes: &Tensor,
    loss: impl Fn(&Tensor, &Tensor) -> Torch<Tensor>,
) -> Torch<Tensor> {
    let by_place = scores.f_movedim_int(1, -1)?;
    let count = by_place.size().last().copied().unwrap_or_default();
    let of_rows = loss(&by_place.f_reshape([-1, count])?, &classes.f_reshape([-1])?)?;
    if of_rows.dim() == 0 { Ok(of_rows) } else { of_rows.f_reshape(classes.size()) }
}

// `tch` leaves out arguments that are numbers of any kind and have defaults, so other values are put together here.

/// The function that an activation applies to a tensor; the call has its other arguments.
type Activation = fn(&Call<'_>, &Tensor) -> Result<Tensor, TrainError>;

fn of(c: &Call<'_>, activation: Activation) -> Result<Value, TrainError> {
    Ok(Value::Tensor(activation(c, c.tensor(0)?)?))
}

/// Changes the argument. Its old numbers are needed for the gradient, so it goes by a copy of them.
fn in_place(c: &Call<'_>, activation: Activation) -> Result<Value, TrainError> {
    let mut changed = c.changed(0)?;
    let before = changed.f_to_dtype(changed.f_kind()?, false, true)?;
    changed.f_copy_(&activation(c, &before)?)?;
    Ok(Value::Tensor(changed))
}

/// `x` above 0, else `slope x`. That is also what `prelu` gives for a weight that isn't trained.
fn leaky_relu(c: &Call<'_>, x: &Tensor) -> Result<Tensor, TrainError> {
    let slope = c.real(1)?;
    Ok(x.f_prelu(&Tensor::f_full([1], slope, (x.f_kind()?, x.device()))?)?)
}

/// `scale x` above 0, else `scale alpha (exp(input_scale x) - 1)`.
fn elu(c: &Call<'_>, x: &Tensor) -> Result<Tensor, TrainError> {
    let (alpha, scale, input_scale) = (c.real(1)?, c.real(2)?, c.real(3)?);
    if (alpha, scale, input_scale) == (1.0, 1.0, 1.0) {
        return Ok(x.f_elu()?);
    }
    let below = x.f_clamp_max(0.0)?.f_mul_scalar(input_scale)?.f_expm1()?;
    let below = below.f_mul_scalar(alpha * scale)?;
    Ok(x.f_mul_scalar(scale)?.f_where_self(&x.f_gt(0.0)?, &below)?)
}

/// `x` above 0, else `alpha (exp(x / alpha) - 1)`.
fn celu(c: &Call<'_>, x: &Tensor) -> Result<Tensor, TrainError> {
    let alpha = c.real(1)?;
    let below = x.f_clamp_max(0.0)?.f_div_scalar(alpha)?.f_expm1()?.f_mul_scalar(alpha)?;
    Ok(x.f_where_self(&x.f_gt(0.0)?, &below)?)
}

/// `x` between two bounds, which have no gradient themselves.
fn hardtanh(c: &Call<'_>, x: &Tensor) -> Result<Tensor, TrainError> {
    let (low, high) = (c.real(1)?, c.real(2)?);
    if (low, high) == (-1.0, 1.0) {
        return Ok(x.f_hardtanh()?);
    }
    let inside = x.f_gt(low)?.f_logical_and(&x.f_lt(high)?)?;
    Ok(x.f_where_self(&inside, &x.f_detach()?.f_clamp(low, high)?)?)
}

/// `log(1 + exp(beta x)) / beta`; `x` itself where `beta x` is above the threshold.
fn softplus(c: &Call<'_>, x: &Tensor) -> Result<Tensor, TrainError> {
    let (beta, threshold) = (c.real(1)?, c.real(2)?);
    if (beta, threshold) == (1.0, 20.0) {
        return Ok(x.f_softplus()?);
    }
    let scaled = x.f_mul_scalar(beta)?;
    let soft = scaled.f_clamp_max(threshold)?.f_exp()?.f_log1p()?.f_div_scalar(beta)?;
    Ok(x.f_where_self(&scaled.f_gt(threshold)?, &soft)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tch::{Device, Reduction};

    #[test]
    fn a_loss_of_places_as_rows_is_the_loss() {
        tch::manual_seed(1);
        let scores = Tensor::randn([4, 5, 3, 2], (Kind::Double, Device::Cpu));
        let classes = Tensor::arange(24, (Kind::Int64, Device::Cpu)).remainder(5).view([4, 3, 2]);
        let weight = Tensor::linspace(0.5, 2.0, 5, (Kind::Double, Device::Cpu));
        for reduction in [Reduction::None, Reduction::Mean, Reduction::Sum] {
            let loss = |scores: &Tensor, classes: &Tensor| {
                scores.f_cross_entropy_loss(classes, Some(&weight), reduction, 3, 0.1)
            };
            let (one, other) =
                (loss(&scores, &classes).unwrap(), of_places(&scores, &classes, loss).unwrap());
            assert_eq!(one.size(), other.size());
            assert!(one.allclose(&other, 1e-12, 1e-12, false), "{one} {other}");
        }
    }
}

//! Layers: what has weights, and what looks at neighbours.

use super::{
    call::{Call, Run},
    value::{Torch, Value, one, three, two},
};
use crate::error::TrainError;
use tch::{Kind, Tensor};

/// The function that computes the operator of this name, where it is one of these.
pub(super) fn find(name: &str) -> Option<Run> {
    let run: Run = match name {
        "aten.adaptive_avg_pool1d.default" => {
            |c| one(c.tensor(0)?.f_adaptive_avg_pool1d(&*c.wholes(1)?))
        }
        "aten.adaptive_avg_pool2d.default" => {
            |c| one(c.tensor(0)?.f_adaptive_avg_pool2d(&*c.wholes(1)?))
        }
        "aten.adaptive_max_pool2d.default" => {
            |c| two(c.tensor(0)?.f_adaptive_max_pool2d(&*c.wholes(1)?))
        }
        "aten.addmm.default" => addmm,
        "aten._weight_norm.default" => {
            |c| one(Tensor::f_internal_weight_norm(c.tensor(0)?, c.tensor(1)?, c.whole(2)?))
        }
        "aten.alpha_dropout.default" => {
            |c| one(c.tensor(0)?.f_alpha_dropout(c.real(1)?, c.flag(2)?))
        }
        "aten.lstm_cell.default" => |c| {
            let (w_ih, w_hh) = (c.tensor(2)?, c.tensor(3)?);
            two(c.tensor(0)?.f_lstm_cell(
                &c.tensors(1)?,
                w_ih,
                w_hh,
                c.optional(4)?,
                c.optional(5)?,
            ))
        },
        "aten.upsample_nearest1d.vec" => |c| {
            upsample(
                c,
                2,
                |x, size| x.f_upsample_nearest1d(size, None),
                |x, by| x.f_upsample_nearest1d_vec(None::<&[i64]>, by),
            )
        },
        "aten.vdot.default" => |c| one(c.tensor(0)?.f_vdot(c.tensor(1)?)),
        "aten.avg_pool1d.default" => |c| {
            one(c.tensor(0)?.f_avg_pool1d(
                &*c.wholes(1)?,
                &*c.wholes(2)?,
                &*c.wholes(3)?,
                c.flag(4)?,
                c.flag(5)?,
            ))
        },
        "aten.avg_pool2d.default" => |c| {
            one(c.tensor(0)?.f_avg_pool2d(
                &*c.wholes(1)?,
                &*c.wholes(2)?,
                &*c.wholes(3)?,
                c.flag(4)?,
                c.flag(5)?,
                c.optional_whole(6)?,
            ))
        },
        "aten.baddbmm.default" => {
            |c| one(c.tensor(0)?.f_baddbmm(c.tensor(1)?, c.tensor(2)?, c.number(3)?, c.number(4)?))
        }
        "aten.batch_norm.default" => batch_norm,
        "aten.bmm.default" => |c| one(c.tensor(0)?.f_bmm(c.tensor(1)?)),
        "aten.constant_pad_nd.default" => {
            |c| one(c.tensor(0)?.f_pad(&*c.wholes(1)?, "constant", c.optional_real(2)?))
        }
        "aten.conv1d.default" => |c| {
            weighted(c, |x, w, b| {
                Ok(x.f_conv1d(w, b, &*c.wholes(3)?, &*c.wholes(4)?, &*c.wholes(5)?, c.whole(6)?)?)
            })
        },
        "aten.conv1d.padding" => |c| {
            weighted(c, |x, w, b| {
                Ok(x.f_conv1d_padding(
                    w,
                    b,
                    &*c.wholes(3)?,
                    c.text(4)?,
                    &*c.wholes(5)?,
                    c.whole(6)?,
                )?)
            })
        },
        "aten.conv2d.default" => |c| {
            weighted(c, |x, w, b| {
                Ok(x.f_conv2d(w, b, &*c.wholes(3)?, &*c.wholes(4)?, &*c.wholes(5)?, c.whole(6)?)?)
            })
        },
        "aten.conv2d.padding" => |c| {
            weighted(c, |x, w, b| {
                Ok(x.f_conv2d_padding(
                    w,
                    b,
                    &*c.wholes(3)?,
                    c.text(4)?,
                    &*c.wholes(5)?,
                    c.whole(6)?,
                )?)
            })
        },
        "aten.conv_transpose1d.default" => |c| {
            weighted(c, |x, w, b| {
                Ok(x.f_conv_transpose1d(
                    w,
                    b,
                    &*c.wholes(3)?,
                    &*c.wholes(4)?,
                    &*c.wholes(5)?,
                    c.whole(6)?,
                    &*c.wholes(7)?,
                )?)
            })
        },
        "aten.conv_transpose2d.input" => |c| {
            weighted(c, |x, w, b| {
                Ok(x.f_conv_transpose2d(
                    w,
                    b,
                    &*c.wholes(3)?,
                    &*c.wholes(4)?,
                    &*c.wholes(5)?,
                    c.whole(6)?,
                    &*c.wholes(7)?,
                )?)
            })
        },
        "aten.dot.default" => |c| one(c.tensor(0)?.f_dot(c.tensor(1)?)),
        "aten.dropout.default" => |c| one(c.tensor(0)?.f_dropout(c.real(1)?, c.flag(2)?)),
        "aten.dropout_.default" => |c| one(c.changed(0)?.f_dropout_(c.real(1)?, c.flag(2)?)),
        "aten.einsum.default" => {
            |c| one(Tensor::f_einsum(c.text(0)?, &c.tensors(1)?, c.optional_wholes(2)?.as_deref()))
        }
        "aten.embedding.default" => {
            |c| one(Tensor::f_embedding(c.tensor(0)?, c.tensor(1)?, c.whole(2)?, c.flag(3)?, false))
        }
        "aten.feature_dropout.default" => {
            |c| one(c.tensor(0)?.f_feature_dropout(c.real(1)?, c.flag(2)?))
        }
        "aten.group_norm.default" => |c| {
            one(c.tensor(0)?.f_group_norm(
                c.whole(1)?,
                c.optional(2)?,
                c.optional(3)?,
                c.real(4)?,
                c.flag(5)?,
            ))
        },
        "aten.gru.input" => |c| {
            two(c.tensor(0)?.f_gru(
                c.tensor(1)?,
                &c.tensors(2)?,
                c.flag(3)?,
                c.whole(4)?,
                c.real(5)?,
                c.flag(6)?,
                c.flag(7)?,
                c.flag(8)?,
            ))
        },
        "aten.instance_norm.default" => |c| {
            one(c.tensor(0)?.f_instance_norm(
                c.optional(1)?,
                c.optional(2)?,
                c.optional(3)?,
                c.optional(4)?,
                c.flag(5)?,
                c.real(6)?,
                c.real(7)?,
                true,
            ))
        },
        "aten.layer_norm.default" => |c| {
            one(c.tensor(0)?.f_layer_norm(
                &*c.wholes(1)?,
                c.optional(2)?,
                c.optional(3)?,
                c.real(4)?,
                c.flag(5)?,
            ))
        },
        "aten.linear.default" => |c| weighted(c, |x, w, b| Ok(x.f_linear(w, b)?)),
        "aten.lstm.input" => |c| {
            three(c.tensor(0)?.f_lstm(
                &c.tensors(1)?,
                &c.tensors(2)?,
                c.flag(3)?,
                c.whole(4)?,
                c.real(5)?,
                c.flag(6)?,
                c.flag(7)?,
                c.flag(8)?,
            ))
        },
        "aten.matmul.default" => |c| one(c.tensor(0)?.f_matmul(c.tensor(1)?)),
        "aten.max_pool1d.default" => |c| {
            one(c.tensor(0)?.f_max_pool1d(
                &*c.wholes(1)?,
                &*c.wholes(2)?,
                &*c.wholes(3)?,
                &*c.wholes(4)?,
                c.flag(5)?,
            ))
        },
        "aten.max_pool2d.default" => |c| {
            one(c.tensor(0)?.f_max_pool2d(
                &*c.wholes(1)?,
                &*c.wholes(2)?,
                &*c.wholes(3)?,
                &*c.wholes(4)?,
                c.flag(5)?,
            ))
        },
        "aten.mm.default" => |c| one(c.tensor(0)?.f_mm(c.tensor(1)?)),
        "aten.mv.default" => |c| one(c.tensor(0)?.f_mv(c.tensor(1)?)),
        "aten.outer.default" => |c| one(c.tensor(0)?.f_outer(c.tensor(1)?)),
        "aten.pad.default" => {
            |c| one(c.tensor(0)?.f_pad(&*c.wholes(1)?, c.text(2)?, c.optional_real(3)?))
        }
        "aten.pixel_shuffle.default" => |c| one(c.tensor(0)?.f_pixel_shuffle(c.whole(1)?)),
        "aten.rms_norm.default" => {
            |c| one(c.tensor(0)?.f_rms_norm(&*c.wholes(1)?, c.optional(2)?, c.optional_real(3)?))
        }
        "aten.rnn_relu.input" => |c| {
            two(c.tensor(0)?.f_rnn_relu(
                c.tensor(1)?,
                &c.tensors(2)?,
                c.flag(3)?,
                c.whole(4)?,
                c.real(5)?,
                c.flag(6)?,
                c.flag(7)?,
                c.flag(8)?,
            ))
        },
        "aten.rnn_tanh.input" => |c| {
            two(c.tensor(0)?.f_rnn_tanh(
                c.tensor(1)?,
                &c.tensors(2)?,
                c.flag(3)?,
                c.whole(4)?,
                c.real(5)?,
                c.flag(6)?,
                c.flag(7)?,
                c.flag(8)?,
            ))
        },
        "aten.scaled_dot_product_attention.default" => |c| {
            one(Tensor::f_scaled_dot_product_attention(
                c.tensor(0)?,
                c.tensor(1)?,
                c.tensor(2)?,
                c.optional(3)?,
                c.real(4)?,
                c.flag(5)?,
                c.optional_real(6)?,
                c.flag(7)?,
            ))
        },
        "aten.upsample_bilinear2d.vec" => |c| {
            let corners = c.flag(2)?;
            upsample(
                c,
                3,
                |x, size| x.f_upsample_bilinear2d(size, corners, None, None),
                |x, by| x.f_upsample_bilinear2d_vec(None::<&[i64]>, corners, by),
            )
        },
        "aten.upsample_nearest2d.vec" => |c| {
            upsample(
                c,
                2,
                |x, size| x.f_upsample_nearest2d(size, None, None),
                |x, by| x.f_upsample_nearest2d_vec(None::<&[i64]>, by),
            )
        },
        _ => return None,
    };
    Some(run)
}

/// A layer with a weight and perhaps a bias. Where the trial computes in `bf16`, both and the input are rounded; the
/// result is in single precision again, so nothing else in a graph meets another type.
fn weighted(
    c: &Call<'_>,
    compute: impl Fn(&Tensor, &Tensor, Option<&Tensor>) -> Result<Tensor, TrainError>,
) -> Result<Value, TrainError> {
    let (input, weight, bias) = (c.tensor(0)?, c.tensor(1)?, c.optional(2)?);
    if !c.scope.rounds || input.f_kind()? != Kind::Float {
        return Ok(Value::Tensor(compute(input, weight, bias)?));
    }
    let round = |tensor: &Tensor| tensor.f_to_kind(Kind::BFloat16);
    let bias = bias.map(round).transpose()?;
    let result = compute(&round(input)?, &round(weight)?, bias.as_ref())?;
    one(result.f_to_kind(Kind::Float))
}

/// `beta self + alpha mat1 mat2`.
fn addmm(c: &Call<'_>) -> Result<Value, TrainError> {
    let (bias, a, b) = (c.tensor(0)?, c.tensor(1)?, c.tensor(2)?);
    let (beta, alpha) = (c.real(3)?, c.real(4)?);
    if beta == 1.0 && alpha == 1.0 {
        return one(bias.f_addmm(a, b));
    }
    one(bias.f_mul_scalar(beta)?.f_add(&a.f_mm(b)?.f_mul_scalar(alpha)?))
}

/// One value of each channel has no variance: then it goes by the running statistics, as the built-in models do.
fn batch_norm(c: &Call<'_>) -> Result<Value, TrainError> {
    let (input, mean, var) = (c.tensor(0)?, c.optional(3)?, c.optional(4)?);
    let channels = input.size().get(1).copied().unwrap_or(1);
    let values = i64::try_from(input.numel())? / channels.max(1);
    let by_batch = c.flag(5)? && (values > 1 || mean.is_none() || var.is_none());
    let (weight, bias) = (c.optional(1)?, c.optional(2)?);
    one(input.f_batch_norm(weight, bias, mean, var, by_batch, c.real(6)?, c.real(7)?, true))
}

/// Larger images, by their size or by factors (argument `factors`).
fn upsample(
    c: &Call<'_>,
    factors: usize,
    to_size: impl Fn(&Tensor, &[i64]) -> Torch<Tensor>,
    by_factors: impl Fn(&Tensor, &[f64]) -> Torch<Tensor>,
) -> Result<Value, TrainError> {
    match c.optional_wholes(1)? {
        Some(size) => one(to_size(c.tensor(0)?, &size)),
        None => one(by_factors(c.tensor(0)?, c.reals(factors)?)),
    }
}

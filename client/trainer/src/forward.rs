//! A network's forward pass, and the losses.

use crate::error::TrainError;
use sojourn_model::{LayerKind, Network, Pooling};
use sojourn_protocol::spec::Loss;
use tch::{Reduction, Tensor};

/// The outputs `[rows, outputs]` for `x`, `[rows, features]`.
pub(crate) fn forward(
    network: &Network,
    leaves: &[Tensor],
    x: &Tensor,
) -> Result<Tensor, TrainError> {
    let rows = x.size().first().copied().unwrap_or_default();
    let mut flow = x.shallow_clone();
    let last = network.layers().len().saturating_sub(1);
    for (index, (layer, pair)) in network.layers().iter().zip(leaves.chunks_exact(2)).enumerate() {
        let [weight, bias] = pair else { continue };
        let inputs = i64::try_from(layer.inputs)?;
        match layer.kind {
            LayerKind::Linear => {
                if flow.dim() != 2 {
                    flow = flow.f_reshape([rows, inputs])?;
                }
                flow = flow.f_linear(weight, Some(bias))?;
            }
            LayerKind::Convolution { height, width, .. } => {
                if flow.dim() != 4 {
                    let (height, width) = (i64::try_from(height)?, i64::try_from(width)?);
                    flow = flow.f_view([rows, inputs, height, width])?;
                }
                flow = flow.f_conv2d(weight, Some(bias), [1, 1], [1, 1], [1, 1], 1)?;
            }
        }
        if index == last {
            break;
        }
        // In place: what comes before doesn't need its own output for its gradient.
        flow = flow.f_relu_()?;
        if let LayerKind::Convolution { pooling: Pooling::Max, .. } = layer.kind {
            flow = flow.f_max_pool2d([2, 2], [2, 2], [0, 0], [1, 1], false)?;
        }
    }
    Ok(flow)
}

/// The loss of `outputs` against `y`: mean over rows, or one per row.
pub(crate) fn loss(
    loss: Loss,
    outputs: &Tensor,
    y: &Tensor,
    reduction: Reduction,
) -> Result<Tensor, TrainError> {
    Ok(match loss {
        Loss::CrossEntropy => {
            outputs.f_cross_entropy_loss(y, None::<&Tensor>, reduction, -100, 0.0)?
        }
        Loss::Mse => outputs.f_squeeze_dim(-1)?.f_mse_loss(y, reduction)?,
    })
}

//! A network's forward pass, and the losses.

use crate::{error::TrainError, model::Model};
use sojourn_model::{Computation, Layer, LayerKind, Step};
use sojourn_protocol::spec::Loss;
use std::slice;
use tch::{Kind, Reduction, Tensor};

/// The weight of a batch's mean and variance in the running ones: PyTorch's default.
const MOMENTUM: f64 = 0.1;
/// Added to variances: PyTorch's default.
const EPS: f64 = 1e-5;

/// The purpose of the forward pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Batch norm goes by the batch and moves its running statistics; dropout drops.
    Train,
    /// Batch norm goes by its running statistics; dropout does nothing.
    Evaluate,
}

/// The outputs `[rows, outputs]` for `x`, `[rows, features]`, both in single precision.
///
/// A fully connected layer or convolution computes in the precision of its weights, and batch norm in
/// that of its input; nothing else asks.
pub(crate) fn forward(model: &Model, x: &Tensor, mode: Mode) -> Result<Tensor, TrainError> {
    let mut layers = Layers { leaves: model.leaves.iter(), buffers: model.buffers().iter(), mode };
    let mut flow = x.shallow_clone();
    let mut kept = None;
    let Computation::Network(network) = model.trial_model().computation() else {
        return Err(TrainError::Unit("a graph isn't computed layer by layer".into()));
    };
    for step in network.steps() {
        flow = match step {
            Step::Image { channels, height, width } => {
                let sides = [*channels, *height, *width].map(i64::try_from);
                let [channels, height, width] = sides;
                let images = flow.f_view([-1, channels?, height?, width?])?;
                // Convolutions and batch norm are a fifth faster that way, over several channels. Nets
                // without batch norm stay as they were before there were others, for their bytes' sake.
                if model.buffers().is_empty() { images } else { channels_last(&images)? }
            }
            Step::Layer(layer) => layers.next(layer, &flow)?,
            // In place: what comes before doesn't need its own output for its gradient.
            Step::Relu => flow.f_relu_()?,
            Step::MaxPool => match mode {
                Mode::Train => max_pool(&flow)?,
                Mode::Evaluate => gathered_max_pool(&flow)?,
            },
            Step::AveragePool => flow.f_avg_pool2d([2, 2], [2, 2], [0, 0], false, true, None)?,
            Step::Dropout(ratio) => flow.f_dropout(ratio.0, mode == Mode::Train)?,
            Step::Flatten => flow.f_flatten(1, -1)?,
            Step::MeanOfPlaces => flow.f_mean_dim([2i64, 3].as_slice(), false, None)?,
            Step::Fork => {
                kept = Some(flow.shallow_clone());
                flow
            }
            Step::Join { projection } => {
                let text = "the network joins what it didn't fork";
                let fork = kept.take().ok_or_else(|| TrainError::Unit(text.into()))?;
                let skip = match projection {
                    Some(layer) => layers.next(layer, &fork)?,
                    None => fork,
                };
                // In place: a convolution doesn't need its own output either.
                flow.f_add_(&skip)?
            }
        };
    }
    as_kind(flow, Kind::Float)
}

fn max_pool(images: &Tensor) -> Result<Tensor, TrainError> {
    Ok(images.f_max_pool2d([2, 2], [2, 2], [0, 0], [1, 1], false)?)
}

/// The same numbers in the same order as [`max_pool`] gives, in less than half of the time: libtorch's kernel
/// for images whose channels lie side by side takes eight numbers at once. The copies there and back cost
/// little beside that, unless gradients have to come back the same way.
fn gathered_max_pool(images: &Tensor) -> Result<Tensor, TrainError> {
    Ok(max_pool(&channels_last(images)?)?.f_contiguous()?)
}

/// The same images with the channels of each place side by side in memory, as then do those that are made
/// of them.
fn channels_last(images: &Tensor) -> Result<Tensor, TrainError> {
    Ok(images.f_permute([0, 2, 3, 1])?.f_contiguous()?.f_permute([0, 3, 1, 2])?)
}

fn as_kind(tensor: Tensor, kind: Kind) -> Result<Tensor, TrainError> {
    if tensor.f_kind()? == kind { Ok(tensor) } else { Ok(tensor.f_to_kind(kind)?) }
}

/// The layers of a model, one after another, each with its own tensors.
struct Layers<'a> {
    leaves: slice::Iter<'a, Tensor>,
    buffers: slice::Iter<'a, Tensor>,
    mode: Mode,
}

impl Layers<'_> {
    fn next(&mut self, layer: &Layer, input: &Tensor) -> Result<Tensor, TrainError> {
        let text = "the model has fewer tensors than its network";
        let lacks = || TrainError::Unit(text.into());
        let weight = self.leaves.next().ok_or_else(lacks)?;
        let bias = if layer.bias { Some(self.leaves.next().ok_or_else(lacks)?) } else { None };
        match layer.kind {
            LayerKind::Linear => {
                let input = as_kind(input.shallow_clone(), weight.f_kind()?)?;
                Ok(input.f_linear(weight, bias)?)
            }
            LayerKind::Convolution { kernel, stride, .. } => {
                let input = as_kind(input.shallow_clone(), weight.f_kind()?)?;
                let (stride, padding) = (i64::try_from(stride)?, i64::try_from(kernel / 2)?);
                Ok(input.f_conv2d(weight, bias, [stride; 2], [padding; 2], [1, 1], 1)?)
            }
            LayerKind::BatchNorm { .. } => {
                let mean = Some(self.buffers.next().ok_or_else(lacks)?);
                let var = Some(self.buffers.next().ok_or_else(lacks)?);
                // One value of each channel has no variance: it goes by the running statistics.
                let values = input.numel() / mean.map_or(1, Tensor::numel).max(1);
                let by_batch = self.mode == Mode::Train && values > 1;
                let weight = Some(weight);
                Ok(input.f_batch_norm(weight, bias, mean, var, by_batch, MOMENTUM, EPS, true)?)
            }
        }
    }
}

/// Arguments of PyTorch's `cross_entropy` beside outputs and classes; by default those of the plain loss.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct CrossEntropyOptions<'a> {
    /// A weight for each class, `[classes]`: each row's loss counts by its class's, and the mean is over the sum of the
    /// rows' weights.
    pub(crate) weights: Option<&'a Tensor>,
    /// The share of a row's target that is spread evenly over all classes.
    pub(crate) label_smoothing: f64,
}

/// The loss of `outputs` against `y`: mean over rows, or one per row.
pub(crate) fn loss(
    loss: Loss,
    outputs: &Tensor,
    y: &Tensor,
    options: CrossEntropyOptions<'_>,
    reduction: Reduction,
) -> Result<Tensor, TrainError> {
    Ok(match loss {
        Loss::CrossEntropy => {
            let CrossEntropyOptions { weights, label_smoothing } = options;
            outputs.f_cross_entropy_loss(y, weights, reduction, -100, label_smoothing)?
        }
        Loss::Mse => outputs.f_squeeze_dim(-1)?.f_mse_loss(y, reduction)?,
        Loss::Own => {
            return Err(TrainError::Unit("only a graph has a loss of its own".into()));
        }
    })
}

#[cfg(test)]
#[path = "forward_tests.rs"]
mod tests;

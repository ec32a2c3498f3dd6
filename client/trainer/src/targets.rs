//! How labels are taken in training: scaled numbers, with predictions and losses in their own units; weights and
//! smoothing of classes.

use crate::error::TrainError;
use sojourn_protocol::{
    manifest::{LabelScaling, Targets},
    spec::{Architecture, Loss},
    unit::TrialContext,
};
use tch::{Device, Kind, Tensor};

/// The numbers that a model is trained on, `[rows]` in single precision, for labels `y` of that shape. Each is rounded
/// once, so they are the same on every machine.
pub(crate) fn scaled(y: &Tensor, scaling: Option<LabelScaling>) -> Result<Tensor, TrainError> {
    let Some(LabelScaling { mean, std }) = scaling else { return Ok(y.shallow_clone()) };
    let exact = y.f_to_kind(Kind::Double)?;
    Ok(exact.f_sub_scalar(mean)?.f_div_scalar(std)?.f_to_kind(Kind::Float)?)
}

/// The predictions in the labels' units, for a model's outputs; of the same shape and kind.
pub(crate) fn unscaled(
    outputs: Tensor,
    scaling: Option<LabelScaling>,
) -> Result<Tensor, TrainError> {
    let Some(LabelScaling { mean, std }) = scaling else { return Ok(outputs) };
    let exact = outputs.f_to_kind(Kind::Double)?;
    Ok(exact.f_mul_scalar(std)?.f_add_scalar(mean)?.f_to_kind(Kind::Float)?)
}

/// The squared error in the labels' units, over that of scaled labels.
pub(crate) fn loss_unit(scaling: Option<LabelScaling>) -> f64 {
    scaling.map_or(1.0, |scaling| scaling.std * scaling.std)
}

/// The weight of each class, `[classes]` in single precision, where rows don't count alike.
pub(crate) fn class_weights(
    context: &TrialContext,
    device: Device,
) -> Result<Option<Tensor>, TrainError> {
    let Targets::Weighted(weights) = &context.targets else { return Ok(None) };
    let (count, outputs) = (weights.len(), context.outputs);
    if u32::try_from(count) != Ok(outputs) {
        let text = format!("{count} class weights for a model with {outputs} outputs");
        return Err(TrainError::Unit(text));
    }
    let weights = Tensor::f_from_slice(weights)?.f_to_kind(Kind::Float)?;
    Ok(Some(weights.f_to_device(device)?))
}

/// The share of each row's target that is spread over all classes.
pub(crate) fn label_smoothing(context: &TrialContext) -> Result<f64, TrainError> {
    let training = &context.config.training;
    let smoothing = training.label_smoothing;
    let is_graph = matches!(context.config.model, Architecture::Graph(_));
    let why = match training.loss {
        _ if !(0.0..1.0).contains(&smoothing) => format!("can't be {smoothing}"),
        Loss::Mse | Loss::Own if smoothing != 0.0 => "takes classes".to_owned(),
        _ if smoothing != 0.0 && is_graph => {
            "is none of a graph's, whose loss is its own".to_owned()
        }
        Loss::Mse | Loss::CrossEntropy | Loss::Own => return Ok(smoothing),
    };
    Err(TrainError::Unit(format!("`label_smoothing` {why}")))
}

#[cfg(test)]
#[path = "targets_tests.rs"]
mod tests;

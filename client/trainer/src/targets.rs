//! How labels are taken in training: scaled numbers, with predictions and losses in their own units; weights of classes.

use crate::error::TrainError;
use sojourn_protocol::{
    manifest::{LabelScaling, Targets},
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

#[cfg(test)]
#[path = "targets_tests.rs"]
mod tests;

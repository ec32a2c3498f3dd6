//! Whether a configuration and its data fit each other.

use crate::{error::ModelError, trial_model::TrialModel};
use sojourn_protocol::spec::{Architecture, Augment, TrialConfig};

/// The model of a configuration for rows of `shape` and this many outputs, where the one fits the
/// other.
///
/// # Errors
/// Empty rows or layers; `cnn`, `resnet` or `augment` over anything but `[channels, height, width]`; a
/// depth that isn't 9n + 2; more than [`crate::MAX_PARAMETERS`]; a crop that is wider than the image; a graph that isn't
/// exported, or whose tensors no checkpoint can have.
pub fn validate(
    config: &TrialConfig,
    shape: &[u32],
    outputs: u32,
) -> Result<TrialModel, ModelError> {
    let model = TrialModel::of(&config.model, shape, outputs)?;
    if let Some(Augment { crop, .. }) = config.training.augment {
        let &[_, height, width] = shape else {
            return Err(ModelError::NotAnImage { what: "augment", shape: shape.to_vec() });
        };
        let side = height.min(width);
        if crop > side {
            return Err(ModelError::Crop { crop, side });
        }
    }
    Ok(model)
}

/// Floating-point operations of one row's forward pass; training takes about three times as many.
///
/// # Errors
/// As [`validate`].
pub fn flops_per_row(
    architecture: &Architecture,
    shape: &[u32],
    outputs: u32,
) -> Result<u64, ModelError> {
    match architecture.exported() {
        // Of a graph they are known where only its file is named.
        Some(graph) => Ok(graph.flops_per_row),
        None => Ok(TrialModel::of(architecture, shape, outputs)?.flops_per_row()),
    }
}

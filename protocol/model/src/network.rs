//! An architecture over given data: its steps, tensors and costs.

use crate::{
    build,
    error::ModelError,
    layer::{Layer, Parameter},
    step::{MAX_PARAMETERS, Step},
};
use sojourn_protocol::spec::Architecture;

/// The steps of one architecture over rows of one shape, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Network {
    steps: Vec<Step>,
}

impl Network {
    /// The network of `architecture` for rows of `shape` and this many outputs.
    ///
    /// # Errors
    /// As [`crate::validate`].
    pub fn of(
        architecture: &Architecture,
        shape: &[u32],
        outputs: u32,
    ) -> Result<Self, ModelError> {
        if shape.is_empty() || shape.contains(&0) {
            return Err(ModelError::EmptyRow(shape.to_vec()));
        }
        if outputs == 0 {
            return Err(ModelError::NoOutputs);
        }
        let network = Self { steps: build::steps(architecture, shape, outputs)? };
        match network.checked_parameter_count() {
            Some(count) if count <= MAX_PARAMETERS => Ok(network),
            _ => Err(ModelError::TooLarge { limit: MAX_PARAMETERS }),
        }
    }

    /// The network's steps in order of computation.
    #[must_use]
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// The network's layers in the order of their steps: layer `n` has the tensors `layers.{n}.weight` and so on.
    pub fn layers(&self) -> impl Iterator<Item = &Layer> {
        self.steps.iter().filter_map(Step::layer)
    }

    /// The trained tensors in order of computation, each layer's weight before its bias.
    pub fn parameters(&self) -> impl Iterator<Item = Parameter> {
        self.layers().enumerate().flat_map(|(index, layer)| layer.parameters(index))
    }

    /// The buffers, which are kept with the parameters but not trained, in order of computation: each batch norm's
    /// `running_mean` before its `running_var`.
    pub fn buffers(&self) -> impl Iterator<Item = Parameter> {
        self.layers().enumerate().flat_map(|(index, layer)| layer.buffers(index))
    }

    /// Numbers in all its parameters and buffers.
    #[must_use]
    pub fn parameter_count(&self) -> u64 {
        self.checked_parameter_count().unwrap_or(u64::MAX)
    }

    /// Numbers in its parameters: those that are trained.
    #[must_use]
    pub fn trainable_count(&self) -> u64 {
        let buffers = self.layers().map(Layer::buffer_count).fold(0, u64::saturating_add);
        self.parameter_count().saturating_sub(buffers)
    }

    /// Floating-point operations of one row's forward pass: two for each multiply-add of a layer's
    /// weights; what else there is (biases, ReLU, pooling) is below a few per cent.
    #[must_use]
    pub fn flops_per_row(&self) -> u64 {
        self.layers().map(Layer::flops).fold(0, u64::saturating_add)
    }

    /// Numbers that the widest layer takes or puts out for one row.
    #[must_use]
    pub fn widest(&self) -> u64 {
        self.layers().map(Layer::widest).max().unwrap_or(0)
    }

    fn checked_parameter_count(&self) -> Option<u64> {
        self.layers().try_fold(0u64, |total, layer| {
            total.checked_add(layer.parameter_count()?)?.checked_add(layer.buffer_count())
        })
    }
}

#[cfg(test)]
#[path = "network_tests.rs"]
mod tests;

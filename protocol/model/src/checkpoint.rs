//! The tensors of a trial's checkpoints: parameters, buffers, optimiser state, lineage.

use crate::{
    error::ModelError,
    layer::Parameter,
    lineage::Lineage,
    network::{Network, validate},
};
use sojourn_codec::{Dtype, Layout, TensorSpec};
use sojourn_protocol::{
    spec::{Optimizer, OptimizerName},
    unit::TrialContext,
};
use std::ops::Range;

/// Name of the tensor that holds a [`Lineage`].
pub const LINEAGE: &str = "lineage";

/// The optimiser's state tensors, one of each per parameter and of its shape: a state tensor's name
/// is one of these and the parameter's. Adam's step count is the lineage's step.
#[must_use]
pub fn optimizer_slots(optimizer: &Optimizer) -> &'static [&'static str] {
    match optimizer.name {
        OptimizerName::Sgd if optimizer.momentum == 0.0 => &[],
        OptimizerName::Sgd => &["optimizer.momentum_buffer."],
        OptimizerName::Adam | OptimizerName::Adamw => {
            &["optimizer.exp_avg.", "optimizer.exp_avg_sq."]
        }
    }
}

/// The tensors of every checkpoint of a trial; the same for all its versions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckpointLayout {
    network: Network,
    parameters: Vec<TensorSpec>,
    buffers: Vec<TensorSpec>,
    tensors: Vec<TensorSpec>,
    layout: Layout,
}

impl CheckpointLayout {
    /// The checkpoints of a trial.
    ///
    /// # Errors
    /// As [`crate::validate`].
    pub fn of(context: &TrialContext) -> Result<Self, ModelError> {
        let network = validate(&context.config, &context.shape, context.outputs)?;
        let spec = |tensor: Parameter| TensorSpec::new(tensor.name, Dtype::F32, tensor.shape);
        let parameters: Vec<TensorSpec> = network.parameters().map(spec).collect();
        let buffers: Vec<TensorSpec> = network.buffers().map(spec).collect();
        let mut specs = [parameters.as_slice(), &buffers].concat();
        for slot in optimizer_slots(&context.config.training.optimizer) {
            specs.extend(
                parameters.iter().map(|spec| TensorSpec {
                    name: format!("{slot}{}", spec.name),
                    ..spec.clone()
                }),
            );
        }
        specs.push(TensorSpec::new(LINEAGE, Dtype::I64, [Lineage::LENGTH]));
        let layout = Layout::new(specs)?;
        let tensors = layout.tensors().iter().map(|(spec, _)| spec.clone()).collect();
        Ok(Self { network, parameters, buffers, tensors, layout })
    }

    /// All tensors of a checkpoint, in name order.
    #[must_use]
    pub fn tensors(&self) -> &[TensorSpec] {
        &self.tensors
    }

    /// The parameters alone, in order of computation, each layer's weight before its bias.
    #[must_use]
    pub fn parameters(&self) -> &[TensorSpec] {
        &self.parameters
    }

    /// The buffers, which are kept with the parameters but not trained, in order of computation: each batch norm's
    /// `running_mean` before its `running_var`.
    #[must_use]
    pub fn buffers(&self) -> &[TensorSpec] {
        &self.buffers
    }

    /// The model itself: parameters and buffers, without optimiser state and lineage.
    pub fn model(&self) -> impl Iterator<Item = &TensorSpec> {
        self.parameters.iter().chain(&self.buffers)
    }

    /// Numbers in all parameters and buffers.
    #[must_use]
    pub fn parameter_count(&self) -> u64 {
        self.network.parameter_count()
    }

    /// The exact size of every checkpoint of the trial.
    #[must_use]
    pub const fn file_bytes(&self) -> u64 {
        self.layout.file_bytes()
    }

    /// The place of a tensor's bytes in the file.
    #[must_use]
    pub fn range(&self, name: &str) -> Option<Range<u64>> {
        self.layout.range(name)
    }

    /// The places of all tensors in the file, and its header.
    #[must_use]
    pub const fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The layers whose parameters these are.
    #[must_use]
    pub const fn network(&self) -> &Network {
        &self.network
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use sojourn_protocol::{
        manifest::Scaling,
        spec::{Architecture, Loss, TrainingConfig, TrialConfig},
    };

    pub(crate) fn context(model: Architecture, name: OptimizerName, momentum: f64) -> TrialContext {
        let optimizer = Optimizer {
            name,
            lr: 0.1,
            momentum,
            beta1: 0.9,
            beta2: 0.999,
            eps: 1e-8,
            weight_decay: 0.0,
        };
        let training = TrainingConfig::new(1, 8, Loss::CrossEntropy, optimizer);
        TrialContext {
            config: TrialConfig { model, training },
            shape: vec![1, 4, 4],
            outputs: 3,
            scaling: Scaling::None,
            total_steps: 10,
            pinned_threads: None,
        }
    }

    #[test]
    fn state_goes_with_the_optimiser() {
        let mlp = || Architecture::mlp([5]);
        let names = |name, momentum| -> Vec<String> {
            let layout = CheckpointLayout::of(&context(mlp(), name, momentum)).unwrap();
            layout.tensors().iter().map(|spec| spec.name.clone()).collect()
        };
        let parameters = ["layers.0.bias", "layers.0.weight", "layers.1.bias", "layers.1.weight"];
        let plain = names(OptimizerName::Sgd, 0.0);
        assert_eq!(plain[..4], parameters);
        assert_eq!(plain[4..], [LINEAGE]);
        let momentum = names(OptimizerName::Sgd, 0.9);
        assert_eq!(momentum.len(), 9);
        assert_eq!(momentum[5], "optimizer.momentum_buffer.layers.0.bias");
        for name in [OptimizerName::Adam, OptimizerName::Adamw] {
            let adam = names(name, 0.9);
            assert_eq!(adam.len(), 13);
            assert_eq!(adam[5], "optimizer.exp_avg.layers.0.bias");
            assert_eq!(adam[12], "optimizer.exp_avg_sq.layers.1.weight");
        }
    }

    #[test]
    fn sizes_are_those_of_the_bytes() {
        let cnn = Architecture::cnn([2]);
        let layout = CheckpointLayout::of(&context(cnn, OptimizerName::Adam, 0.0)).unwrap();
        assert_eq!(layout.parameter_count(), 2 * 9 + 2 + 2 * 2 * 2 * 3 + 3);
        let data = 4 * 3 * layout.parameter_count() + 8 * Lineage::LENGTH;
        let first = layout.range("layers.0.bias").unwrap().start;
        assert_eq!(layout.file_bytes(), first + data);
    }
}

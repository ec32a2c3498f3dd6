//! The tensors of a trial's checkpoints: parameters, buffers, optimiser state, lineage.

use crate::{
    error::ModelError,
    layer::Parameter,
    lineage::Lineage,
    trial_model::{Computation, LINEAGE, TrialModel},
    validate::validate,
};
use sojourn_codec::{Dtype, Layout, TensorSpec};
use sojourn_protocol::{
    spec::{Optimizer, OptimizerName},
    unit::TrialContext,
};
use std::ops::Range;

/// How the names of the built-in architectures' running variances end.
const VARIANCE: &str = ".running_var";

/// One of the optimiser's state tensors per parameter, each of the parameter's shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OptimizerSlot {
    /// A tensor's name is this and the parameter's.
    pub prefix: &'static str,
    /// The quantity that the tensor averages.
    pub moment: Moment,
}

/// The quantity that a tensor of an optimiser's state averages over past steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Moment {
    /// Gradients: SGD's momentum buffer, Adam's `exp_avg`.
    First,
    /// Squared gradients: Adam's `exp_avg_sq`.
    Second,
}

/// The optimiser's state. Adam's step count is the lineage's step.
#[must_use]
pub const fn optimizer_slots(optimizer: &Optimizer) -> &'static [OptimizerSlot] {
    const fn first(prefix: &'static str) -> OptimizerSlot {
        OptimizerSlot { prefix, moment: Moment::First }
    }
    const SGD: &[OptimizerSlot] = &[first("optimizer.momentum_buffer.")];
    const ADAM: &[OptimizerSlot] = &[
        first("optimizer.exp_avg."),
        OptimizerSlot { prefix: "optimizer.exp_avg_sq.", moment: Moment::Second },
    ];
    match optimizer.name {
        OptimizerName::Sgd if optimizer.momentum == 0.0 => &[],
        OptimizerName::Sgd => SGD,
        OptimizerName::Adam | OptimizerName::Adamw => ADAM,
    }
}

/// The role of a tensor of a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Weights that are trained.
    Parameter,
    /// Kept with the parameters but not trained.
    Buffer(BufferKind),
    /// The optimiser's state: what it averages.
    Optimizer(Moment),
    /// Where the checkpoint comes from.
    Lineage,
}

/// The kind of a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BufferKind {
    /// Batch norm's running variance, of a built-in architecture: never below 0.
    Variance,
    /// Other real numbers: running means, and all that a graph keeps.
    Real,
    /// Whole numbers: a graph's counters.
    Whole,
}

/// The tensors of every checkpoint of a trial; the same for all its versions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckpointLayout {
    model: TrialModel,
    parameters: Vec<TensorSpec>,
    buffers: Vec<TensorSpec>,
    tensors: Vec<TensorSpec>,
    /// Of each of `tensors`.
    roles: Vec<Role>,
    layout: Layout,
}

impl CheckpointLayout {
    /// The checkpoints of a trial.
    ///
    /// # Errors
    /// As [`crate::validate`].
    pub fn of(context: &TrialContext) -> Result<Self, ModelError> {
        let model = validate(&context.config, &context.shape, context.outputs)?;
        let spec = |tensor: &Parameter| {
            TensorSpec::new(tensor.name.clone(), tensor.dtype, tensor.shape.clone())
        };
        let parameters: Vec<TensorSpec> = model.parameters().iter().map(spec).collect();
        let buffers: Vec<TensorSpec> = model.buffers().iter().map(spec).collect();
        let mut placed: Vec<(TensorSpec, Role)> = Vec::new();
        placed.extend(parameters.iter().map(|spec| (spec.clone(), Role::Parameter)));
        let kind = |spec: &TensorSpec| buffer_kind(model.computation(), spec);
        placed.extend(buffers.iter().map(|spec| (spec.clone(), Role::Buffer(kind(spec)))));
        for slot in optimizer_slots(&context.config.training.optimizer) {
            placed.extend(parameters.iter().map(|parameter| {
                let name = format!("{}{}", slot.prefix, parameter.name);
                (TensorSpec { name, ..parameter.clone() }, Role::Optimizer(slot.moment))
            }));
        }
        placed.push((TensorSpec::new(LINEAGE, Dtype::I64, [Lineage::LENGTH]), Role::Lineage));
        placed.sort_by(|(a, _), (b, _)| a.name.cmp(&b.name));
        let (tensors, roles): (Vec<_>, Vec<_>) = placed.into_iter().unzip();
        let layout = Layout::new(tensors.clone())?;
        Ok(Self { model, parameters, buffers, tensors, roles, layout })
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

    /// All tensors of a checkpoint, in name order, each with its role.
    pub fn roles(&self) -> impl Iterator<Item = (&TensorSpec, Role)> {
        self.tensors.iter().zip(self.roles.iter().copied())
    }

    /// The role of a tensor; `None` where no checkpoint of the trial has it.
    #[must_use]
    pub fn role(&self, name: &str) -> Option<Role> {
        let index = self.tensors.binary_search_by(|spec| spec.name.as_str().cmp(name)).ok()?;
        self.roles.get(index).copied()
    }

    /// The names of the optimiser's state tensors, with what each averages.
    pub fn moments(&self) -> impl Iterator<Item = (&str, Moment)> {
        self.roles().filter_map(|(spec, role)| match role {
            Role::Optimizer(moment) => Some((spec.name.as_str(), moment)),
            Role::Parameter | Role::Buffer(_) | Role::Lineage => None,
        })
    }

    /// The model itself: parameters and buffers, without optimiser state and lineage.
    pub fn model(&self) -> impl Iterator<Item = &TensorSpec> {
        self.parameters.iter().chain(&self.buffers)
    }

    /// Numbers in all parameters and buffers.
    #[must_use]
    pub fn parameter_count(&self) -> u64 {
        self.model.parameter_count()
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

    /// The model whose tensors these are.
    #[must_use]
    pub const fn trial_model(&self) -> &TrialModel {
        &self.model
    }
}

/// The kind of one of a model's buffers.
fn buffer_kind(computation: &Computation, spec: &TensorSpec) -> BufferKind {
    match computation {
        _ if spec.dtype != Dtype::F32 => BufferKind::Whole,
        Computation::Network(_) if spec.name.ends_with(VARIANCE) => BufferKind::Variance,
        Computation::Network(_) | Computation::Graph(_) => BufferKind::Real,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use sojourn_protocol::{
        manifest::{Scaling, Targets},
        spec::{Architecture, Loss, TrainingConfig, TrialConfig},
    };

    pub(crate) fn context(model: Architecture, name: OptimizerName, momentum: f64) -> TrialContext {
        let optimizer = Optimizer { momentum, ..Optimizer::new(name, 0.1) };
        let training = TrainingConfig::new(1, 8, Loss::CrossEntropy, optimizer);
        TrialContext {
            config: TrialConfig { model, training },
            columns: Vec::new(),
            shape: vec![1, 4, 4],
            outputs: 3,
            scaling: Scaling::None,
            targets: Targets::Plain,
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

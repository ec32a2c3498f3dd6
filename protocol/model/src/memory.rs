//! How much memory a unit takes at least. Computed from counts alone: nothing of the model's size is allocated.
//!
//! The trainer (`client/trainer`) holds the parameters, their gradients and the optimiser's state all the time. What else it
//! holds depends on what it does. The most of these counts, for each parameter, where `m` is the optimiser's state tensors:
//!
//! | while it | holds besides | source | AdamW | SGD with momentum | SGD |
//! |---|---|---|---|---|---|
//! | reads a checkpoint | the file's bytes, and those of one tensor that is filled; no optimiser yet | `model.rs`, `load` | 28 | 20 | 12 |
//! | takes a step | the optimiser's scratch, and gradients as autograd returns them | `optimizer.rs`, `model.rs`, `backward` | 24 | 20 | 16 |
//! | looks for what isn't finite | the scratch, two masks, and absolute values | `model.rs`, `check_finite` | 26 | 22 | 18 |
//! | keeps a part of a hop | the scratch, the bytes of the parameters, and those of two state tensors | `model.rs`, `write` | 32 | 24 | 16 |
//!
//! On the machine's memory the allocator keeps about one copy more of what was freed: 36, 28 and 22 bytes in all. With AdamW 32.0 were
//! measured of a model of 4 million parameters where it keeps nothing, and 35.8 to 38.9 where it does.
//!
//! A test of the trainer measures it (`client/trainer/tests/process/memory.rs`).

use crate::{
    ModelError,
    checkpoint::optimizer_slots,
    trial_model::{Computation, TrialModel},
    validate::validate,
};
use sojourn_protocol::{
    quantity::to_u64,
    spec::{DecayScope, OptimizerName, Precision, TrainingConfig},
    unit::TrialContext,
};

/// Bytes of a number in a tensor.
const NUMBER_BYTES: u64 = 4;
/// Bytes of a number that is rounded to `bf16`, of which networks keep a copy of all parameters.
const ROUNDED_BYTES: u64 = 2;
/// Numbers of an optimiser's scratch: `Update` in `client/trainer/src/optimizer.rs`.
const SCRATCH: u64 = 1;
/// Numbers of the gradients that autograd returns before they are copied: `Model::backward`.
const RETURNED_GRADIENTS: u64 = 1;
/// Bytes that `isfinite` takes for each number: absolute values, and masks of what is equal to itself and not infinite
/// (PyTorch 2.11, `aten/src/ATen/native/TensorCompare.cpp`).
const FINITE_CHECK_BYTES: u64 = NUMBER_BYTES + 2;
/// State tensors whose bytes are held at once while a checkpoint is written: the next one is copied before the last one goes.
const WRITTEN_STATES: u64 = 2;
/// Numbers for each parameter that the allocator keeps of freed copies, as measured.
const ALLOCATOR_KEEPS: u64 = 1;
/// Copies of a buffer: in the checkpoint's file, in its tensor, and while either is made of the other.
const BUFFER_COPIES: u64 = 3;

/// The work that is done with a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// The model's parameters change.
    Training,
    /// The model's parameters are read.
    Evaluation,
}

/// The process of which the memory is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// The machine's, where its processor computes.
    Machine,
    /// A GPU's: files are read and written beside it.
    Gpu,
}

/// The size of a model, as far as memory depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModelSize {
    /// Numbers in parameters.
    trained: u64,
    /// Numbers in buffers.
    buffers: u64,
    /// A built-in network rounds all its parameters at once.
    is_network: bool,
}

impl ModelSize {
    /// The size of a trial's model.
    ///
    /// # Errors
    /// As [`validate`].
    pub fn of(context: &TrialContext) -> Result<Self, ModelError> {
        validate(&context.config, &context.shape, context.outputs).map(|model| Self::from(&model))
    }

    /// The least bytes of memory that a unit takes. Activations, data and the program come on top.
    #[must_use]
    pub fn least_memory(&self, training: &TrainingConfig, work: Work, place: Place) -> u64 {
        let for_each = Copies::of(training, self.is_network).bytes(work, place);
        let buffers = match place {
            Place::Machine => BUFFER_COPIES,
            Place::Gpu => 1,
        };
        let buffers = self.buffers.saturating_mul(buffers * NUMBER_BYTES);
        self.trained.saturating_mul(for_each).saturating_add(buffers)
    }

    /// Bytes of [`Self::least_memory`] that a training process on the machine's memory doesn't hold itself: its allocator keeps
    /// them of copies that were freed.
    #[must_use]
    pub const fn kept_by_allocator(&self) -> u64 {
        self.trained.saturating_mul(ALLOCATOR_KEEPS * NUMBER_BYTES)
    }
}

impl From<&TrialModel> for ModelSize {
    fn from(model: &TrialModel) -> Self {
        let trained = model.trainable_count();
        let buffers = model.parameter_count().saturating_sub(trained);
        let is_network = matches!(model.computation(), Computation::Network(_));
        Self { trained, buffers, is_network }
    }
}

/// The copies of a model's parameters that the trainer holds.
struct Copies {
    /// State tensors of the optimiser.
    states: u64,
    /// Bytes of a rounded copy for each parameter.
    rounded: u64,
    /// Bytes for each parameter that say how its weight decays.
    decay: u64,
}

impl Copies {
    fn of(training: &TrainingConfig, is_network: bool) -> Self {
        let optimizer = &training.optimizer;
        let is_rounded = is_network && training.precision == Precision::Bf16;
        // `Decay` in `client/trainer/src/optimizer.rs`.
        let decay = match (optimizer.name, optimizer.decay) {
            _ if optimizer.weight_decay == 0.0 => 0,
            (_, DecayScope::All) => 0,
            (OptimizerName::Adamw, DecayScope::Matrices) => 1,
            (OptimizerName::Sgd | OptimizerName::Adam, DecayScope::Matrices) => NUMBER_BYTES,
        };
        Self {
            states: to_u64(optimizer_slots(optimizer).len()),
            rounded: if is_rounded { ROUNDED_BYTES } else { 0 },
            decay,
        }
    }

    /// The most bytes for each parameter that are held at once.
    fn bytes(&self, work: Work, place: Place) -> u64 {
        let numbers = |count: u64| count * NUMBER_BYTES;
        // Parameters, gradients, state: evaluations hold all of them too.
        let model = numbers(2 + self.states) + self.rounded;
        let trained = model + numbers(SCRATCH) + self.decay;
        let step = trained + numbers(RETURNED_GRADIENTS);
        let check = trained + FINITE_CHECK_BYTES;
        let load = model + numbers(1 + self.states);
        let write = trained + numbers(1 + self.states.min(WRITTEN_STATES));
        match (work, place) {
            (Work::Training, Place::Machine) => {
                step.max(check).max(load).max(write) + numbers(ALLOCATOR_KEEPS)
            }
            (Work::Training, Place::Gpu) => step.max(check),
            (Work::Evaluation, Place::Machine) => load,
            (Work::Evaluation, Place::Gpu) => model,
        }
    }
}

/// The least bytes of memory that a trial's unit takes, as [`ModelSize::least_memory`].
///
/// # Errors
/// As [`validate`].
pub fn least_memory(context: &TrialContext, work: Work, place: Place) -> Result<u64, ModelError> {
    let size = ModelSize::of(context)?;
    Ok(size.least_memory(&context.config.training, work, place))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkpoint::tests::context;
    use sojourn_protocol::spec::Architecture;

    fn for_each(name: OptimizerName, momentum: f64, work: Work, place: Place) -> u64 {
        let context = context(Architecture::mlp([5, 7]), name, momentum);
        let size = ModelSize::of(&context).unwrap();
        assert_eq!(size.buffers, 0);
        least_memory(&context, work, place).unwrap() / size.trained
    }

    #[test]
    fn a_parameter_takes_what_the_trainer_holds_of_it() {
        use OptimizerName::{Adamw, Sgd};
        for (name, momentum, training, on_gpu, evaluation) in
            [(Adamw, 0.0, 36, 26, 28), (Sgd, 0.9, 28, 22, 20), (Sgd, 0.0, 22, 18, 12)]
        {
            let bytes = |work, place| for_each(name, momentum, work, place);
            assert_eq!(bytes(Work::Training, Place::Machine), training, "{name:?}");
            assert_eq!(bytes(Work::Training, Place::Gpu), on_gpu, "{name:?}");
            assert_eq!(bytes(Work::Evaluation, Place::Machine), evaluation, "{name:?}");
        }
    }

    #[test]
    fn what_only_matrices_decay_by_and_rounded_copies_count() {
        let plain = context(Architecture::mlp([5]), OptimizerName::Adamw, 0.0);
        let bytes = |change: &dyn Fn(&mut TrainingConfig)| {
            let mut changed = plain.clone();
            change(&mut changed.config.training);
            let trained = ModelSize::of(&changed).unwrap().trained;
            least_memory(&changed, Work::Training, Place::Machine).unwrap() / trained
        };
        assert_eq!(bytes(&|of| of.precision = Precision::Bf16), 38);
        let decays = |of: &mut TrainingConfig| {
            (of.optimizer.weight_decay, of.optimizer.decay) = (0.1, DecayScope::Matrices);
        };
        assert_eq!(bytes(&decays), 37);
    }

    #[test]
    fn a_model_beyond_all_bounds_is_refused_without_being_built() {
        let of = |model| context(model, OptimizerName::Adam, 0.0);
        for model in [Architecture::mlp([u32::MAX; 4]), Architecture::mlp([1; 100_000])] {
            least_memory(&of(model), Work::Training, Place::Machine).unwrap_err();
        }
    }
}

//! How much memory a unit takes at least. Computed from counts alone: nothing of the model's size is allocated.

use crate::{ModelError, checkpoint::optimizer_slots, validate::validate};
use sojourn_protocol::{quantity::to_u64, unit::TrialContext};

/// Bytes of a number in a tensor.
const NUMBER_BYTES: u64 = 4;

/// What is done with a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// Its parameters change.
    Training,
    /// They are read.
    Evaluation,
}

/// The least bytes of memory that a trial's unit takes: parameters and buffers; in training gradients and the optimiser's state too.
/// Activations, data and the program come on top.
///
/// # Errors
/// As [`validate`].
pub fn least_memory(context: &TrialContext, work: Work) -> Result<u64, ModelError> {
    let model = validate(&context.config, &context.shape, context.outputs)?;
    let moments = optimizer_slots(&context.config.training.optimizer).len();
    let copies = match work {
        Work::Training => to_u64(moments).saturating_add(1),
        Work::Evaluation => 0,
    };
    let state = model.trainable_count().saturating_mul(copies);
    Ok(model.parameter_count().saturating_add(state).saturating_mul(NUMBER_BYTES))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CheckpointLayout, checkpoint::tests::context};
    use sojourn_protocol::spec::{Architecture, OptimizerName};

    fn of(model: Architecture) -> TrialContext {
        context(model, OptimizerName::Adam, 0.0)
    }

    #[test]
    fn a_unit_takes_what_its_checkpoint_and_its_gradients_take() {
        let context = of(Architecture::mlp([5, 7]));
        let layout = CheckpointLayout::of(&context).unwrap();
        let numbers = |tensors: &[crate::TensorSpec]| -> u64 {
            tensors.iter().map(|tensor| tensor.shape.iter().product::<u64>()).sum()
        };
        let trained = numbers(layout.parameters());
        let moments = layout.moments().count() as u64 / layout.parameters().len() as u64;
        let all = numbers(layout.parameters()) + numbers(layout.buffers());
        let expected = (all + trained * (1 + moments)) * 4;
        assert_eq!(least_memory(&context, Work::Training).unwrap(), expected);
        assert_eq!(least_memory(&context, Work::Evaluation).unwrap(), all * 4);
    }

    #[test]
    fn a_model_beyond_all_bounds_is_refused_without_being_built() {
        for model in [Architecture::mlp([u32::MAX; 4]), Architecture::mlp([1; 100_000])] {
            least_memory(&of(model), Work::Training).unwrap_err();
        }
    }
}

//! How far a returned checkpoint is from its base.

use crate::refusal::Refusal;
use sojourn_codec::{CodecError, TensorView};
use sojourn_model::CheckpointLayout;

/// The L2 norm of the change of the parameters (optimiser state and lineage don't count), summed in
/// double precision in the order of computation, so the same everywhere.
///
/// # Errors
/// [`Refusal::MissingTensor`] or [`Refusal::Codec`] where either lacks a parameter of the layout or
/// holds it in another size, [`Refusal::NonFiniteChange`] where the norm is no number.
pub fn delta_norm(
    layout: &CheckpointLayout,
    base: &[TensorView<'_>],
    returned: &[TensorView<'_>],
) -> Result<f64, Refusal> {
    let mut sum = 0.0;
    for spec in layout.parameters() {
        let find = |tensors: &'_ [TensorView<'_>]| {
            tensors.iter().position(|tensor| tensor.name == spec.name)
        };
        let pair = find(base)
            .and_then(|index| base.get(index))
            .zip(find(returned).and_then(|index| returned.get(index)));
        let (before, after) = pair.ok_or_else(|| Refusal::MissingTensor(spec.name.clone()))?;
        let (before, after) = (before.f32s()?, after.f32s()?);
        if before.len() != after.len() {
            let bytes = |len: usize| u64::try_from(len).unwrap_or(u64::MAX).saturating_mul(4);
            let (expected, actual) = (bytes(before.len()), bytes(after.len()));
            let tensor = spec.name.clone();
            return Err(CodecError::DataLength { tensor, expected, actual }.into());
        }
        for (before, after) in before.zip(after) {
            let change = f64::from(after) - f64::from(before);
            sum += change * change;
        }
    }
    let norm = f64::sqrt(sum);
    if norm.is_finite() { Ok(norm) } else { Err(Refusal::NonFiniteChange) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sojourn_codec::{Tensor, decode, encode};
    use sojourn_protocol::{
        manifest::Scaling,
        spec::{
            Architecture, Loss, Optimizer, OptimizerName, Schedule, ScheduleName, TrainingConfig,
            TrialConfig,
        },
        unit::TrialContext,
    };

    fn layout() -> CheckpointLayout {
        let optimizer = Optimizer {
            name: OptimizerName::Sgd,
            lr: 0.1,
            momentum: 0.0,
            beta1: 0.0,
            beta2: 0.0,
            eps: 1.0,
            weight_decay: 0.0,
        };
        let schedule =
            Schedule { name: ScheduleName::Constant, warmup: 0, every: 1, gamma: 1.0, floor: 0.0 };
        let training = TrainingConfig {
            epochs: 1,
            batch_size: 1,
            loss: Loss::Mse,
            optimizer,
            schedule,
            clip_norm: None,
        };
        CheckpointLayout::of(&TrialContext {
            config: TrialConfig { model: Architecture::Mlp { hidden: vec![] }, training },
            shape: vec![2],
            outputs: 1,
            scaling: Scaling::None,
            total_steps: 1,
            pinned_threads: None,
        })
        .unwrap()
    }

    fn file(weight: &[f32], bias: f32) -> Vec<u8> {
        let weight = Tensor::f32("layers.0.weight", [1, weight.len() as u64], weight);
        encode(&[weight, Tensor::f32("layers.0.bias", [1u64], &[bias])]).unwrap()
    }

    #[test]
    fn the_norm_is_that_of_all_parameters() {
        let (a, b) = (file(&[1.0, 2.0], 0.0), file(&[3.0, 4.0], 1.0));
        let norm =
            |a: &[u8], b: &[u8]| delta_norm(&layout(), &decode(a).unwrap(), &decode(b).unwrap());
        assert_eq!(norm(&a, &b), Ok(3.0));
        assert_eq!(norm(&a, &a), Ok(0.0));
        let huge = file(&[f32::MAX, f32::MAX], 0.0);
        assert!(norm(&a, &huge).is_ok(), "single precision doesn't overflow double");
        assert_eq!(norm(&a, &file(&[f32::NAN, 0.0], 0.0)), Err(Refusal::NonFiniteChange));
        assert!(matches!(norm(&a, &file(&[1.0], 0.0)), Err(Refusal::Codec(_))));
        let empty = encode(&[]).unwrap();
        assert!(matches!(norm(&a, &empty), Err(Refusal::MissingTensor(_))));
    }
}

//! Version 0 of a trial: initial weights from a seed, the same bytes on any machine.

use crate::{
    checkpoint::{CheckpointLayout, LINEAGE},
    error::ModelError,
    layer::{Parameter, Start},
    lineage::Lineage,
};
use sojourn_codec::{Dtype, Tensor, encode};
use sojourn_protocol::{seeds, unit::TrialContext};

/// The canonical checkpoint of version 0: weights and biases uniform in `±1/sqrt(fan_in)`, which is
/// the default of PyTorch's `Linear` and `Conv2d`; batch norms that change nothing (weight 1, bias 0,
/// running mean 0, running variance 1); optimiser state 0; `lineage` as given ([`Lineage::initial`] of
/// the same seed where no one has a reason for another).
///
/// # Errors
/// As [`crate::validate`].
pub fn initial_checkpoint(
    context: &TrialContext,
    seed: u64,
    lineage: Lineage,
) -> Result<Vec<u8>, ModelError> {
    let layout = CheckpointLayout::of(context)?;
    let mut tensors = Vec::with_capacity(layout.tensors().len());
    let network = layout.network();
    for (index, tensor) in (0..).zip(network.parameters().chain(network.buffers())) {
        let values = initial_values(seed, index, &tensor);
        tensors.push(Tensor::f32(tensor.name, tensor.shape, &values));
    }
    for spec in layout.tensors() {
        if spec.name == LINEAGE {
            tensors.push(Tensor::i64(LINEAGE, [Lineage::LENGTH], &lineage.to_numbers()));
        } else if spec.name.starts_with("optimizer.") {
            let bytes = usize::try_from(spec.bytes()?)
                .map_err(|_| ModelError::TooLarge { limit: crate::MAX_PARAMETERS })?;
            let (name, shape) = (spec.name.clone(), spec.shape.clone());
            tensors.push(Tensor { name, dtype: Dtype::F32, shape, data: vec![0; bytes] });
        }
    }
    Ok(encode(&tensors)?)
}

/// The initial values of a network's parameter number `index`, in order of computation.
///
/// Each parameter has its own ChaCha8 stream; a random value is 24 random bits, spread over
/// `[-bound, bound)`. Only exactly rounded operations, so it is the same on any machine.
#[must_use]
pub fn initial_values(seed: u64, index: u64, parameter: &Parameter) -> Vec<f32> {
    use rand_core::Rng;
    const STEPS: f64 = 16_777_216.0; // 2^24
    let count = parameter.shape.iter().product();
    let fan_in = match parameter.start {
        Start::Uniform { fan_in } => fan_in,
        Start::Zero => return (0..count).map(|_| 0.0).collect(),
        Start::One => return (0..count).map(|_| 1.0).collect(),
    };
    let mut rng = seeds::stream("weights", &[seed, index]);
    #[expect(clippy::cast_precision_loss, reason = "a fan-in is far below 2^53")]
    let bound = 1.0 / (fan_in as f64).sqrt();
    (0..count)
        .map(|_| {
            let unit = f64::from(rng.next_u32() >> 8) / STEPS;
            let value = (2.0 * unit - 1.0) * bound;
            #[expect(clippy::cast_possible_truncation, reason = "rounding to single precision")]
            let rounded = value as f32;
            rounded
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkpoint::tests::context;
    use sojourn_codec::decode;
    use sojourn_protocol::{
        digest::Digest,
        spec::{Architecture, OptimizerName},
    };

    #[test]
    fn values_are_pinned() {
        let parameter =
            Parameter { name: "w".into(), shape: vec![2, 3], start: Start::Uniform { fan_in: 3 } };
        assert_eq!(initial_values(7, 0, &parameter)[..4], PINNED_VALUES);
        let cnn = Architecture::cnn([2]);
        let context = context(cnn, OptimizerName::Adam, 0.0);
        let file = initial_checkpoint(&context, 7, Lineage::initial(7)).unwrap();
        assert_eq!(Digest::of(&file).to_string(), PINNED_DIGEST);
    }

    // Written down once; a change here breaks every replay of a finished job.
    const PINNED_VALUES: [f32; 4] = [-0.566_337_17, 0.408_794_85, 0.547_484_4, -0.190_443_92];
    const PINNED_DIGEST: &str = "278847bc7489c68f19ce6f611549c98ababa658a017f75dd86102e92fed2b76b";

    #[test]
    fn the_file_is_the_layouts() {
        for name in [OptimizerName::Sgd, OptimizerName::Adam, OptimizerName::Adamw] {
            let context = context(Architecture::mlp([7, 5]), name, 0.9);
            let layout = CheckpointLayout::of(&context).unwrap();
            let file = initial_checkpoint(&context, 3, Lineage::initial(3)).unwrap();
            assert_eq!(file.len() as u64, layout.file_bytes());
            let views = decode(&file).unwrap();
            let specs: Vec<_> = views.iter().map(|view| view.spec()).collect();
            assert_eq!(specs, layout.tensors());
            for view in views {
                if view.name == LINEAGE {
                    let numbers: Vec<i64> = view.i64s().unwrap().collect();
                    assert_eq!(Lineage::from_numbers(&numbers), Ok(Lineage::initial(3)));
                } else if view.name.starts_with("optimizer.") {
                    assert!(view.f32s().unwrap().all(|value| value == 0.0));
                }
            }
        }
    }

    #[test]
    fn values_fill_their_bounds_and_nothing_else() {
        let parameter = Parameter {
            name: "w".into(),
            shape: vec![100, 100],
            start: Start::Uniform { fan_in: 100 },
        };
        let values = initial_values(1, 0, &parameter);
        assert!(values.iter().all(|value| value.abs() <= 0.1));
        let mean: f32 = values.iter().sum::<f32>() / 10_000.0;
        assert!(mean.abs() < 0.005, "{mean}");
        assert!(values.iter().any(|v| *v > 0.099) && values.iter().any(|v| *v < -0.099));
        assert_ne!(values, initial_values(2, 0, &parameter));
        assert_ne!(values, initial_values(1, 1, &parameter));
    }
}

//! Version 0 of a trial: initial weights from a seed, the same bytes on any machine.

use crate::{
    checkpoint::{CheckpointLayout, Role},
    error::ModelError,
    layer::Parameter,
    lineage::Lineage,
    trial_model::LINEAGE,
};
use sojourn_codec::{Dtype, Tensor, TensorSpec, TensorView, decode, encode};
use sojourn_protocol::{
    seeds,
    spec::{Real, Start},
    unit::TrialContext,
};

/// Prefix of the tensors in a graph's file that give first numbers.
pub const GIVEN: &str = "given.";

/// The canonical checkpoint of version 0. Of the built-in architectures: weights and biases uniform in `±1/sqrt(fan_in)`,
/// which is the default of PyTorch's `Linear` and `Conv2d`; batch norms that change nothing (weight 1, bias 0,
/// running mean 0, running variance 1). Of a graph: as each tensor's [`Start`] says. Optimiser state 0; `lineage` as given
/// ([`Lineage::initial`] of the same seed where no one has a reason for another).
///
/// # Errors
/// As [`crate::validate`]; a graph of which some tensors begin with numbers of its file ([`graph_checkpoint`]).
pub fn initial_checkpoint(
    context: &TrialContext,
    seed: u64,
    lineage: Lineage,
) -> Result<Vec<u8>, ModelError> {
    checkpoint(context, seed, lineage, &[])
}

/// As [`initial_checkpoint`], with the graph's file at hand.
///
/// # Errors
/// As [`crate::validate`]; a file that isn't canonical or lacks numbers that it should give.
pub fn graph_checkpoint(
    context: &TrialContext,
    graph: &[u8],
    seed: u64,
    lineage: Lineage,
) -> Result<Vec<u8>, ModelError> {
    checkpoint(context, seed, lineage, &decode(graph)?)
}

fn checkpoint(
    context: &TrialContext,
    seed: u64,
    lineage: Lineage,
    graph: &[TensorView<'_>],
) -> Result<Vec<u8>, ModelError> {
    let layout = CheckpointLayout::of(context)?;
    let mut tensors = Vec::with_capacity(layout.tensors().len());
    let model = layout.trial_model();
    for (index, tensor) in (0..).zip(model.parameters().iter().chain(model.buffers())) {
        tensors.push(match tensor.start {
            Start::Given => given(graph, tensor)?,
            _ => initial(seed, index, tensor)?,
        });
    }
    for (spec, role) in layout.roles() {
        match role {
            Role::Parameter | Role::Buffer(_) => {}
            Role::Lineage => {
                tensors.push(Tensor::i64(LINEAGE, [Lineage::LENGTH], &lineage.to_numbers()));
            }
            Role::Optimizer(_) => tensors.push(zeros(spec)?),
        }
    }
    Ok(encode(&tensors)?)
}

/// A tensor of zeros, of any type.
pub(crate) fn zeros(spec: &TensorSpec) -> Result<Tensor, ModelError> {
    let bytes = usize::try_from(spec.bytes()?)
        .map_err(|_| ModelError::TooLarge { limit: crate::MAX_PARAMETERS })?;
    let TensorSpec { name, dtype, shape } = spec.clone();
    Ok(Tensor { name, dtype, shape, data: vec![0; bytes] })
}

/// A tensor whose numbers are in the graph's file.
fn given(graph: &[TensorView<'_>], tensor: &Parameter) -> Result<Tensor, ModelError> {
    let name = format!("{GIVEN}{}", tensor.name);
    let index = graph.binary_search_by(|view| view.name.cmp(&name)).ok();
    let view = index.and_then(|index| graph.get(index));
    let view = view.ok_or_else(|| ModelError::NotGiven(tensor.name.clone()))?;
    if (view.dtype, &view.shape) != (tensor.dtype, &tensor.shape) {
        return Err(ModelError::OtherTensor {
            name,
            actual: format!("{} {:?}", view.dtype, view.shape),
            expected: format!("{} {:?}", tensor.dtype, tensor.shape),
        });
    }
    Ok(Tensor { name: tensor.name.clone(), ..view.to_tensor() })
}

/// A tensor whose numbers follow from the seed.
fn initial(seed: u64, index: u64, tensor: &Parameter) -> Result<Tensor, ModelError> {
    let Parameter { name, dtype, shape, .. } = tensor.clone();
    if dtype == Dtype::F32 {
        return Ok(Tensor::f32(name, shape, &initial_values(seed, index, tensor)));
    }
    let mut spec = zeros(&TensorSpec::new(name, dtype, shape))?;
    let one: &[u8] = if dtype == Dtype::I64 { &[1, 0, 0, 0, 0, 0, 0, 0] } else { &[1, 0, 0, 0] };
    match tensor.start {
        Start::Zeros => {}
        Start::Ones => {
            spec.data.chunks_exact_mut(one.len()).for_each(|place| place.copy_from_slice(one))
        }
        _ => {
            let fault = "holds whole numbers, which begin with 0, 1 or numbers of the file";
            return Err(ModelError::Tensor { name: spec.name, fault });
        }
    }
    Ok(spec)
}

/// The initial values of a network's parameter number `index`, in order of computation.
///
/// Each parameter has its own ChaCha8 stream; a uniform value is 24 random bits, spread over the range without its high end;
/// a normal one takes two. Only exactly rounded operations and `libm`'s functions, so it is the same on any machine.
#[must_use]
pub fn initial_values(seed: u64, index: u64, parameter: &Parameter) -> Vec<f32> {
    use rand_core::Rng;
    const STEPS: f64 = 16_777_216.0; // 2^24
    let count = parameter.shape.iter().product();
    let mut rng = seeds::stream("weights", &[seed, index]);
    let mut bits = || f64::from(rng.next_u32() >> 8);
    let mut unit = || bits() / STEPS;
    let numbers = |next: &mut dyn FnMut() -> f64| (0..count).map(|_| single(next())).collect();
    match parameter.start {
        Start::Zeros | Start::Given => numbers(&mut || 0.0),
        Start::Ones => numbers(&mut || 1.0),
        Start::Constant(Real(value)) => numbers(&mut || value),
        Start::FanIn(inputs) => {
            #[expect(clippy::cast_precision_loss, reason = "a fan-in is far below 2^53")]
            let bound = 1.0 / (inputs as f64).sqrt();
            numbers(&mut || (2.0 * unit() - 1.0) * bound)
        }
        Start::Uniform([Real(low), Real(high)]) => numbers(&mut || low + unit() * (high - low)),
        Start::Normal([Real(mean), Real(std)]) => numbers(&mut || {
            // Box and Muller (1958). Both functions are libm's own code, the same everywhere.
            let above_zero = (bits() + 1.0) / STEPS;
            let turn = bits() / STEPS;
            let radius = libm::sqrt(-2.0 * libm::log(above_zero));
            mean + std * radius * libm::cos(std::f64::consts::TAU * turn)
        }),
    }
}

/// Rounded to single precision.
#[expect(clippy::cast_possible_truncation, reason = "that is what it is for")]
const fn single(value: f64) -> f32 {
    value as f32
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
        let parameter = Parameter {
            name: "w".into(),
            dtype: Dtype::F32,
            shape: vec![2, 3],
            start: Start::FanIn(3),
        };
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
            dtype: Dtype::F32,
            shape: vec![100, 100],
            start: Start::FanIn(100),
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

//! Version 0 of a trial that starts from given parameters, not from a seed.
//!
//! The parameters travel as a blob of their own: the canonical file of a model's tensors, which are its
//! parameters and whatever else evaluation needs, without optimiser state and lineage.

use crate::{
    checkpoint::{CheckpointLayout, Role},
    error::ModelError,
    initial::zeros,
    lineage::Lineage,
    trial_model::{LINEAGE, OPTIMIZER},
};
use sojourn_codec::{Layout, Tensor, TensorSpec, TensorView, decode, encode};
use sojourn_protocol::unit::TrialContext;

impl CheckpointLayout {
    /// The tensors of the model itself ([`CheckpointLayout::model`]), in name order.
    #[must_use]
    pub fn model_tensors(&self) -> Vec<TensorSpec> {
        let mut specs: Vec<TensorSpec> = self.model().cloned().collect();
        specs.sort_by(|a, b| a.name.cmp(&b.name));
        specs
    }

    /// The layout of a blob of initial weights.
    ///
    /// # Errors
    /// Tensors that can't be laid out.
    pub fn initial_weights(&self) -> Result<Layout, ModelError> {
        Ok(Layout::new(self.model_tensors())?)
    }
}

fn is_of_model(name: &str) -> bool {
    name != LINEAGE && !name.starts_with(OPTIMIZER)
}

/// A blob of initial weights, from a checkpoint of the trial.
///
/// # Errors
/// Bytes that aren't canonical.
pub fn weights_parameters(checkpoint: &[u8]) -> Result<Vec<u8>, ModelError> {
    let views = decode(checkpoint)?;
    let tensors = views.iter().filter(|view| is_of_model(&view.name)).map(TensorView::to_tensor);
    Ok(encode(&tensors.collect::<Vec<_>>())?)
}

/// The canonical checkpoint of version 0 from a blob of initial weights: optimiser state 0, and this `lineage`
/// (usually [`Lineage::initial`] of the trial's seed).
///
/// # Errors
/// A model that [`crate::validate`] refuses; parameters that aren't those of the trial's model, by name.
pub fn weights_checkpoint(
    context: &TrialContext,
    parameters: &[u8],
    lineage: Lineage,
) -> Result<Vec<u8>, ModelError> {
    let layout = CheckpointLayout::of(context)?;
    let given = decode(parameters)?;
    let specs: Vec<TensorSpec> = given.iter().map(TensorView::spec).collect();
    same_tensors(&specs, &layout.model_tensors())?;
    let mut tensors: Vec<Tensor> = given.iter().map(TensorView::to_tensor).collect();
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

/// Refuses tensors that aren't those of a model; both in name order.
pub(crate) fn same_tensors(given: &[TensorSpec], model: &[TensorSpec]) -> Result<(), ModelError> {
    let find = |specs: &[TensorSpec], name: &str| {
        let place = specs.binary_search_by(|spec| spec.name.as_str().cmp(name));
        place.ok().and_then(|index| specs.get(index)).cloned()
    };
    for spec in model {
        let Some(there) = find(given, &spec.name) else {
            return Err(ModelError::LacksTensor(spec.name.clone()));
        };
        if there != *spec {
            return Err(ModelError::OtherTensor {
                name: there.name,
                actual: format!("{} {:?}", there.dtype, there.shape),
                expected: format!("{} {:?}", spec.dtype, spec.shape),
            });
        }
    }
    match given.iter().find(|spec| find(model, &spec.name).is_none()) {
        Some(spec) => Err(ModelError::ForeignTensor(spec.name.clone())),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{checkpoint::tests::context, initial::initial_checkpoint};
    use sojourn_protocol::spec::{Architecture, OptimizerName};

    #[test]
    fn a_given_start_has_the_parameters_and_nothing_else_of_where_they_come_from() {
        let mlp = || Architecture::mlp([5]);
        let other = context(mlp(), OptimizerName::Sgd, 0.9);
        let trained = initial_checkpoint(&other, 1, Lineage::initial(1)).unwrap();
        let given = weights_parameters(&trained).unwrap();
        let layout = CheckpointLayout::of(&other).unwrap();
        assert_eq!(given.len() as u64, layout.initial_weights().unwrap().file_bytes());

        let trial = context(mlp(), OptimizerName::Adam, 0.0);
        let start = weights_checkpoint(&trial, &given, Lineage::initial(9)).unwrap();
        // The very file that the same parameters from a seed would be in.
        let from_seed = initial_checkpoint(&trial, 1, Lineage::initial(9)).unwrap();
        assert_eq!(start, from_seed);
        assert_ne!(start, initial_checkpoint(&trial, 9, Lineage::initial(9)).unwrap());
    }

    #[test]
    fn parameters_of_another_model_are_refused_by_name() {
        let of = |hidden: &[u32]| context(Architecture::mlp(hidden), OptimizerName::Sgd, 0.0);
        let given = |hidden: &[u32]| {
            let context = of(hidden);
            let file = initial_checkpoint(&context, 1, Lineage::initial(1)).unwrap();
            weights_parameters(&file).unwrap()
        };
        let refusal = |hidden: &[u32], parameters: &[u8]| {
            let made = weights_checkpoint(&of(hidden), parameters, Lineage::initial(1));
            made.unwrap_err().to_string()
        };
        assert_eq!(
            refusal(&[5, 5], &given(&[5])),
            "tensor `layers.1.bias` is F32 [3], the model's is F32 [5]"
        );
        assert_eq!(
            refusal(&[5, 3], &given(&[5])),
            "tensor `layers.2.bias` of the model is missing"
        );
        assert_eq!(refusal(&[5], &given(&[5, 3])), "tensor `layers.2.bias` is none of the model's");
        assert!(weights_checkpoint(&of(&[5]), b"garbage", Lineage::initial(1)).is_err());
    }
}

//! The arrays that a graph's evaluation gives beside numbers, added up over batches and shards.

use crate::{error::TrainError, model::Model};
use sojourn_protocol::{quantity::to_usize, sum_array::SumArray};
use std::collections::BTreeMap;

/// Arrays by name, added up chunk by chunk.
#[derive(Debug, Default)]
pub(crate) struct ArrayTally(BTreeMap<String, SumArray>);

impl ArrayTally {
    /// Nothing counted yet: zeros, as many as the model's graph says. The graph's reader has bounded them.
    pub(crate) fn of(model: &Model) -> Self {
        let Some(program) = model.program() else { return Self::default() };
        let zeros = |shape: &[u64]| vec![0.0; to_usize(shape.iter().product::<u64>())];
        let arrays = program.array_shapes().iter().map(|(name, shape)| {
            (name.clone(), SumArray { shape: shape.clone(), numbers: zeros(shape) })
        });
        Self(arrays.collect())
    }

    /// Adds what a graph computed of some rows.
    pub(crate) fn add(&mut self, arrays: &BTreeMap<String, Vec<f64>>) {
        for (name, numbers) in arrays {
            let Some(array) = self.0.get_mut(name) else { continue };
            for (sum, number) in array.numbers.iter_mut().zip(numbers) {
                *sum += number;
            }
        }
    }

    /// The arrays.
    pub(crate) fn finish(self) -> Result<BTreeMap<String, SumArray>, TrainError> {
        for (name, array) in &self.0 {
            if let Some(wrong) = array.numbers.iter().find(|number| !number.is_finite()) {
                let text = format!("the sum `{name}` of the evaluation has {wrong} in it");
                return Err(TrainError::NonFinite(text));
            }
        }
        Ok(self.0)
    }
}

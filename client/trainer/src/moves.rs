//! The parameters that the stages of a training step move: usually all of them in one stage.

use crate::{error::TrainError, flat_layout::FlatLayout};
use std::ops::Range;
use tch::Tensor;

/// The parameters that one stage of a step moves.
#[derive(Debug)]
pub(crate) struct Moves {
    /// The tensors that its gradient is for.
    pub(crate) leaves: Vec<Tensor>,
    /// Where the gradient of each goes.
    pub(crate) gradients: Vec<Tensor>,
    /// The stage's parameters, in as few parts as lie side by side.
    pub(crate) parts: Vec<Part>,
    /// Are there other parameters?
    pub(crate) is_partial: bool,
}

/// Parameters that lie side by side, with their gradient and the optimiser's state: flat tensors of one size.
#[derive(Debug)]
pub(crate) struct Part {
    /// Where it begins in the tensors of all parameters.
    pub(crate) start: i64,
    pub(crate) weights: Tensor,
    pub(crate) gradient: Tensor,
    pub(crate) state: Vec<Tensor>,
}

/// All parameters, their gradient, and the optimiser's state.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Flat<'a> {
    pub(crate) places: &'a FlatLayout,
    pub(crate) weights: &'a Tensor,
    pub(crate) gradient: &'a Tensor,
    pub(crate) state: &'a [Tensor],
}

impl Moves {
    /// The parameters with these indices, rising; `leaves` and `gradients` are those of all.
    pub(crate) fn of(
        indices: &[usize],
        flat: Flat<'_>,
        leaves: &[Tensor],
        gradients: &[Tensor],
    ) -> Result<Self, TrainError> {
        let of = |all: &[Tensor]| {
            let found = indices.iter().filter_map(|index| all.get(*index));
            found.map(Tensor::shallow_clone).collect()
        };
        let parts = flat.places.runs(indices).map(|run| Part::of(&run, flat));
        Ok(Self {
            leaves: of(leaves),
            gradients: of(gradients),
            parts: parts.collect::<Result<_, _>>()?,
            is_partial: indices.len() < leaves.len(),
        })
    }
}

impl Part {
    fn of(run: &Range<usize>, flat: Flat<'_>) -> Result<Self, TrainError> {
        let (start, len) = (i64::try_from(run.start)?, i64::try_from(run.len())?);
        let narrow = |tensor: &Tensor| tensor.f_narrow(0, start, len);
        Ok(Self {
            start,
            weights: narrow(flat.weights)?,
            gradient: narrow(flat.gradient)?,
            state: flat.state.iter().map(narrow).collect::<Result<_, _>>()?,
        })
    }
}

//! `downpour`: all that a host has changed is added, however old its base is.

use super::MergeRule;
use crate::{arrival::Arrival, overlap::Overlap, pass::Pass, rule::Slot, state::Counters};

/// `W <- W + e D` (Dean et al., 2012, "Large Scale Distributed Deep Networks", section 4.1): a host sends what the steps of a unit add up
/// to, and fetches the model anew for the next one; `n_push` and `n_fetch` are the batches of a unit. The server's Adagrad
/// is left out: hosts train with optimisers of their own.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Downpour {
    /// `e`.
    pub rate: f64,
}

impl MergeRule for Downpour {
    fn slots(&self) -> &'static [Slot] {
        &[]
    }

    fn pass(&self, _: &Counters, _: Arrival, _: Overlap) -> Pass {
        Pass::Add { gain: self.rate }
    }
}

//! `delta`: what a host has changed is added, weighed.

use super::{MergeRule, one_over};
use crate::{
    arrival::{Arrival, weight},
    overlap::Overlap,
    pass::Pass,
    rule::Slot,
    state::Counters,
};
use sojourn_protocol::spec::Staleness;

/// `W <- W + n s(t) D`; unlike a blend it takes nothing back of what others have added meanwhile.
///
/// With a constant weight this is Downpour SGD (Dean et al., 2012, "Large Scale Distributed Deep Networks", section 4.1): a host sends
/// what the steps of a unit add up to, and fetches the model anew for the next one; `n_push` and `n_fetch` are the batches of a
/// unit. The server's Adagrad is left out: hosts train with optimisers of their own.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Delta {
    /// `n`; `1 / C` where not given.
    pub gain: Option<f64>,
    /// `s`.
    pub staleness: Staleness,
}

impl MergeRule for Delta {
    fn slots(&self) -> &'static [Slot] {
        &[]
    }

    fn pass(&self, _: &Counters, arrival: Arrival, _: Overlap) -> Pass {
        let gain = self.gain.unwrap_or_else(|| one_over(arrival.concurrency()));
        Pass::Add { gain: gain * weight(self.staleness, arrival.staleness) }
    }
}

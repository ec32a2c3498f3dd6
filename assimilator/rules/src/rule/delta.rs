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

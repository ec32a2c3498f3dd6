//! `fedbuff`: changes are gathered, and every so many of them make one step.

use super::{MergeRule, one_over};
use crate::{
    arrival::{Arrival, weight},
    overlap::Overlap,
    pass::{Momentum, Pass, Step},
    rule::Slot,
    state::Counters,
};
use sojourn_protocol::spec::{Outer, Staleness};

/// The most arrivals in a buffer whose size isn't given.
const MAX_BUFFER: u32 = 10;

/// Every `K` arrivals `W <- W + outer(mean s(t) D)` (Nguyen et al., 2022, algorithm 1).
///
/// In `t` the versions since the last step don't count: they have changed nothing yet. So two results of one base
/// weigh the same whichever of them comes first into a buffer, and its sum doesn't depend on their order (beyond the
/// rounding of a sum in `f32`). Versions of buffers before count, each, as in the other rules.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fedbuff {
    /// `K`; `min(C, 10)` where not given, with the units that are in flight when a result arrives.
    pub arrivals: Option<u32>,
    /// The step.
    pub outer: Outer,
    /// `s`.
    pub staleness: Staleness,
}

impl Fedbuff {
    /// The step along the mean of this many changes.
    fn step(&self, count: u32) -> Step {
        let share = one_over(count);
        match self.outer {
            Outer::Sgd { rate } => Step { share, rate, momentum: None },
            Outer::Nesterov { rate, momentum } => {
                let momentum = Momentum { decay: momentum, lead: rate * momentum };
                Step { share, rate, momentum: Some(momentum) }
            }
        }
    }
}

impl MergeRule for Fedbuff {
    fn slots(&self) -> &'static [Slot] {
        match self.outer {
            Outer::Sgd { .. } => &[Slot::Sum],
            Outer::Nesterov { .. } => &[Slot::Momentum, Slot::Sum],
        }
    }

    fn pass(&self, counters: &Counters, arrival: Arrival, _: Overlap) -> Pass {
        let before = counters.gathered();
        let staleness = arrival.staleness.saturating_sub(u64::from(before));
        let weight = weight(self.staleness, staleness);
        let full = self.arrivals.unwrap_or_else(|| arrival.concurrency().min(MAX_BUFFER));
        let count = before.saturating_add(1);
        if arrival.waits(count, full) {
            return Pass::Gather { weight };
        }
        Pass::GatherAndStep { weight, gain: 0.0, step: self.step(count) }
    }
}

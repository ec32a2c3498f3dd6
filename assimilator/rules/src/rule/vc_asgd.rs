//! `vc-asgd`: the current model moves towards the returned one.

use super::MergeRule;
use crate::{
    arrival::{Arrival, weight},
    overlap::Overlap,
    pass::Pass,
    rule::Slot,
    state::Counters,
};
use sojourn_protocol::spec::{Alpha, Staleness};

/// `W <- W + (1 - alpha) s(t) (W_c - W)` (Atre et al., 2021, equation 1; with a weight for staleness
/// `FedAsync`, Xie et al., 2019, algorithm 1).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct VcAsgd {
    /// The share of the current model that stays.
    pub alpha: Alpha,
    /// The weight of a stale result.
    pub staleness: Staleness,
}

impl MergeRule for VcAsgd {
    fn slots(&self) -> &'static [Slot] {
        &[]
    }

    fn pass(&self, _: &Counters, arrival: Arrival, _: Overlap) -> Pass {
        Pass::Blend { take: self.share(arrival), scale: 1.0 }
    }

    fn share(&self, arrival: Arrival) -> f64 {
        let change = match self.alpha {
            Alpha::Constant(alpha) => 1.0 - alpha,
            Alpha::Epochs => 1.0 / (f64::from(arrival.epoch.max(1)) + 1.0),
        };
        change * weight(self.staleness, arrival.staleness)
    }
}

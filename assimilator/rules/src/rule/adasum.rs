//! `adasum`: a change is added but for the part of it that others have made already.

use super::MergeRule;
use crate::{
    arrival::{Arrival, weight},
    overlap::Overlap,
    pass::Pass,
    rule::Slot,
    state::Counters,
};
use sojourn_protocol::spec::Staleness;

/// With `M = W - W_b` the change that others have made since the base, `p = <D, M> / <M, M>` in `[0, 1]` and
/// `q = |<D, M>| / <D, D>`: `W <- W + g (D - p M)`, where `g = s(t) / (1 + q)`.
///
/// Changes that are orthogonal add up, changes that are parallel count once: Adasum (Maleki et al., 2021, "Scaling
/// Distributed Training with Adaptive Summation", equation 6), for results that come one after the other. There each of
/// two equals gives up half of the common part; here what is in the model already stays. `1 / (1 + q)` is the gain of
/// `AdaScale` (Johnson et al., 2020, equation 3) as two changes show it: 1 where gradients are all noise, less the more
/// the hosts agree, or undo each other.
///
/// A result of the current version replaces it, bit for bit: with one unit in flight this is hop order.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Adasum {
    /// `s`.
    pub staleness: Staleness,
}

impl MergeRule for Adasum {
    fn slots(&self) -> &'static [Slot] {
        &[]
    }

    fn needs_overlap(&self) -> bool {
        true
    }

    fn pass(&self, _: &Counters, arrival: Arrival, overlap: Overlap) -> Pass {
        if arrival.staleness == 0 {
            return Pass::Blend { take: 1.0, scale: 1.0 };
        }
        let gain = weight(self.staleness, arrival.staleness) / (1.0 + overlap.of_change.abs());
        Pass::AddNew { gain, back: gain * overlap.of_others.clamp(0.0, 1.0) }
    }
}

//! `easgd`: the current model is a centre that moves a little towards each returned one.

use super::MergeRule;
use crate::{arrival::Arrival, overlap::Overlap, pass::Pass, rule::Slot, state::Counters};

/// `beta`: the moving rates of all hosts together (Zhang et al., 2015, section 5).
const ALL_HOSTS: f64 = 0.9;

/// `W <- W + a (W_c - W)` (Zhang et al., 2015, "Deep learning with Elastic Averaging SGD", algorithm 1, the centre's step). There a
/// host keeps a model of its own, which moves towards the centre at the same rate; here a host keeps nothing between units,
/// so that its next unit begins from the centre.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Easgd {
    /// `a`; `beta / C` where not given.
    pub moving_rate: Option<f64>,
}

impl MergeRule for Easgd {
    fn slots(&self) -> &'static [Slot] {
        &[]
    }

    fn pass(&self, _: &Counters, arrival: Arrival, _: Overlap) -> Pass {
        Pass::Blend { take: self.share(arrival), scale: 1.0 }
    }

    fn share(&self, arrival: Arrival) -> f64 {
        self.moving_rate.unwrap_or_else(|| ALL_HOSTS * super::one_over(arrival.concurrency()))
    }
}

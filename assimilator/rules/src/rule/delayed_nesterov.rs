//! `delayed-nesterov`: each change is added at once, their momentum now and then.

use super::{MergeRule, one_over};
use crate::{
    arrival::Arrival,
    overlap::Overlap,
    pass::{Momentum, Pass, Step},
    rule::Slot,
    state::Counters,
};

/// With `N` the period, `e` the rate, `b` the momentum: each arrival `W <- W + e D / N`, `sum <- sum + D`; each
/// `N`-th also `m <- b m + sum / N`, `W <- W + e b m`, `sum <- 0` (Liu et al., 2024, "Asynchronous Local-SGD
/// Training for Language Modeling", delayed Nesterov with `c = 0`; their pseudo-gradient is `-D`). With `N = 1` it is
/// Nesterov's.
///
/// Where `N` is the units in flight and they change between two steps, and where a period ends early by a flush, the
/// step takes the mean of as many as came.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DelayedNesterov {
    /// `N`; `C` where not given.
    pub period: Option<u32>,
    /// `e`.
    pub rate: f64,
    /// `b`.
    pub momentum: f64,
}

impl DelayedNesterov {
    fn step(&self, count: u32) -> Step {
        let momentum = Momentum { decay: self.momentum, lead: self.rate * self.momentum };
        Step { share: one_over(count), rate: 0.0, momentum: Some(momentum) }
    }
}

impl MergeRule for DelayedNesterov {
    fn slots(&self) -> &'static [Slot] {
        &[Slot::Momentum, Slot::Sum]
    }

    fn pass(&self, counters: &Counters, arrival: Arrival, _: Overlap) -> Pass {
        let period = self.period.unwrap_or_else(|| arrival.concurrency());
        let (weight, gain) = (1.0, self.rate * one_over(period));
        let count = counters.gathered().saturating_add(1);
        if arrival.waits(count, period) {
            return Pass::GatherAndAdd { weight, gain };
        }
        Pass::GatherAndStep { weight, gain, step: self.step(count) }
    }
}

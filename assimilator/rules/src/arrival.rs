//! The circumstances of a result that a rule depends on.

use sojourn_protocol::{
    ids::Epoch,
    spec::Staleness,
    unit::{Flush, Merge},
};

/// The circumstances in which a result is merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// Versions of the trial made since the result's base.
    pub staleness: u64,
    /// The result's epoch, counted from 1.
    pub epoch: u32,
    /// Units of the trial in flight, this one included.
    pub in_flight: u32,
    /// Whether more results come for now: where none do, the rule takes its step with what it has.
    pub flush: Flush,
}

impl Arrival {
    /// The circumstances of a merge, of a result of this epoch.
    #[must_use]
    pub fn of(merge: &Merge, epoch: Epoch) -> Self {
        let Merge { staleness, in_flight, flush, .. } = *merge;
        Self { staleness, epoch: epoch.0.saturating_add(1), in_flight, flush }
    }

    /// `C` of the merge rules (docs/internals/merging.md): the units in flight, at least 1.
    #[must_use]
    pub fn concurrency(&self) -> u32 {
        self.in_flight.max(1)
    }

    /// The factor of the first moments where the spec says
    /// [`Discount`](sojourn_protocol::spec::OptimizerMerge::Discount): 1 for a result of the current version, which is
    /// trained on as in hop order.
    #[must_use]
    pub(crate) fn discount(&self) -> f64 {
        1.0 / (1.0 + real(self.staleness))
    }

    /// Does the rule wait for more than these `count` results, this one included, if it steps with `full` of them?
    pub(crate) fn waits(&self, count: u32, full: u32) -> bool {
        count < full && self.flush == Flush::ByRule
    }
}

/// The weight `s(t)` of a result of this staleness, in `(0, 1]`. By `libm`, so that all machines agree on its bits.
#[must_use]
pub fn weight(staleness: Staleness, t: u64) -> f64 {
    match staleness {
        Staleness::Constant => 1.0,
        Staleness::Polynomial { a } => libm::pow(1.0 + real(t), -a),
        Staleness::Hinge { a, b } => 1.0 / (a * real(t.saturating_sub(u64::from(b))) + 1.0),
    }
}

#[expect(clippy::cast_precision_loss, reason = "no staleness comes near 2^53")]
fn real(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_those_of_fedasync() {
        let of = |staleness, ages: [u64; 4]| ages.map(|age| weight(staleness, age));
        assert_eq!(of(Staleness::Constant, [0, 1, 9, 1000]), [1.0; 4]);
        assert_eq!(of(Staleness::ROOT, [0, 3, 15, 99]), [1.0, 0.5, 0.25, 0.1]);
        let hinge = Staleness::Hinge { a: 0.5, b: 4 };
        assert_eq!(of(hinge, [0, 4, 6, 10]), [1.0, 1.0, 0.5, 0.25]);
        let flat = Staleness::Polynomial { a: 0.0 };
        assert_eq!(of(flat, [0, 1, 7, u64::MAX]), [1.0; 4]);
    }
}

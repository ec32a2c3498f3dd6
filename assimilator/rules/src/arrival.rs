//! What a rule gets to know of a result, and how old a result may be.

use sojourn_protocol::spec::Staleness;

/// The circumstances in which a result is merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// Versions of the trial made since the result's base.
    pub staleness: u64,
    /// The result's epoch, counted from 1.
    pub epoch: u32,
    /// Units of the trial in flight, this one included.
    pub in_flight: u32,
}

impl Arrival {
    /// `C` of DESIGN section 7: the units in flight, at least 1.
    #[must_use]
    pub fn concurrency(&self) -> u32 {
        self.in_flight.max(1)
    }
}

/// Results that are merged are younger than this, in versions since their base: `max(16, 4C)` (DESIGN section 7).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bound(pub u64);

impl Bound {
    /// The bound for this many units in flight.
    #[must_use]
    pub fn of(in_flight: u32) -> Self {
        Self((4 * u64::from(in_flight)).max(16))
    }

    /// Is a result of this staleness merged?
    #[must_use]
    pub fn allows(self, staleness: u64) -> bool {
        staleness < self.0
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
    fn the_bound_is_sixteen_or_four_times_the_units_in_flight() {
        for (in_flight, bound) in [(0, 16), (1, 16), (4, 16), (5, 20), (u32::MAX, 17_179_869_180)] {
            assert_eq!(Bound::of(in_flight), Bound(bound));
            assert!(Bound(bound).allows(bound - 1) && !Bound(bound).allows(bound));
        }
    }

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

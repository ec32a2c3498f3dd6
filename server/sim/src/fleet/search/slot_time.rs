//! The use that the slots of a fleet made of their time.

use crate::fleet::quantity::float;

/// Slot time, in microseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct SlotTime {
    /// Of all slots that were there.
    present: u64,
    /// Of slots in which a unit ran.
    busy: u64,
    /// Of slots in which a unit ran or could have: no more than slots that were there, and than trials with something to do.
    usable: u64,
}

impl SlotTime {
    /// For so long there were so many slots, busy slots, and trials with something to train or to evaluate.
    pub(super) fn add(&mut self, micros: u64, slots: u64, busy: u64, runnable: u64) {
        self.present += micros * slots;
        self.busy += micros * busy;
        // A trial may be evaluated on one slot while it trains on another.
        self.usable += micros * slots.min(runnable.max(busy));
    }

    /// The share in which no unit ran.
    pub(super) fn idle(&self) -> f64 {
        1.0 - float(self.busy) / float(self.present.max(1))
    }

    /// The share in which none ran and one could have.
    pub(super) fn avoidable_idle(&self) -> f64 {
        1.0 - float(self.busy) / float(self.usable.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_without_a_trial_is_idle_and_cannot_help_it() {
        let mut time = SlotTime::default();
        time.add(10, 4, 2, 2);
        assert!((time.idle() - 0.5).abs() < 1e-9 && time.avoidable_idle().abs() < 1e-9);
        time.add(10, 4, 2, 9);
        assert!((time.idle() - 0.5).abs() < 1e-9);
        assert!((time.avoidable_idle() - 1.0 / 3.0).abs() < 1e-9);
        let mut time = SlotTime::default();
        time.add(10, 4, 3, 2);
        assert!(time.avoidable_idle().abs() < 1e-9, "an evaluation ran beside its trial's hop");
    }
}

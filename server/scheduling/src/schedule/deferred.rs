//! Units that a slot leaves to other hosts for a while.

use sojourn_state::UnitKey;

/// Units that a slot should leave to other hosts for a while.
#[derive(Debug, Default)]
pub(super) struct Deferred {
    /// Microseconds after which to look again.
    pub(super) wait: Option<u64>,
    /// The priority of a job whose plan has a hop for the slot, and in how many microseconds.
    pub(super) expected: Option<(i32, u64)>,
    /// Evaluations that are left to hosts that would be done sooner.
    pub(super) evaluations: Vec<UnitKey>,
}

impl Deferred {
    /// Look again after so many microseconds, or earlier.
    pub(super) fn wait(&mut self, micros: u64) {
        self.wait = Some(self.wait.map_or(micros, |before| before.min(micros)));
    }

    /// The slot is to have a planned hop of a job of this priority in so many microseconds.
    pub(super) fn expect(&mut self, priority: i32, micros: u64) {
        self.wait(micros);
        // Jobs are asked in the order of their priority.
        self.expected.get_or_insert((priority, micros));
    }

    /// An evaluation is left to hosts that would be done sooner, for so many microseconds.
    pub(super) fn leave_evaluation(&mut self, unit: UnitKey, micros: u64) {
        self.wait(micros);
        self.evaluations.push(unit);
    }
}

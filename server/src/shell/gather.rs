//! How long an append waits for more to go with it.
//!
//! Whoever was answered by the last append asks again at once, but after this one has begun: on a slow disk
//! such callers fall into two halves, each of which waits for the other's sync. A short wait brings them into
//! one group again. PostgreSQL's `commit_delay` and `commit_siblings` are the same means, with the wait set by
//! hand; here it follows from how long an append takes.

use std::time::Duration;

/// Fewer callers than these aren't waited for (PostgreSQL's default of `commit_siblings`).
const SIBLINGS: usize = 5;
/// The longest wait, as a part of an append's time: what is gained by it is up to a whole append.
const PATIENCE: u32 = 3;

/// What the last append was like.
#[derive(Debug, Default)]
pub(super) struct Gathering {
    /// Whom it let go.
    answered: usize,
    /// A smoothed mean of the appends' times.
    took: Duration,
}

/// A wait for more callers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Wait {
    /// How many are worth waiting for, with those that are here.
    pub(super) callers: usize,
    pub(super) longest: Duration,
}

impl Gathering {
    /// Whether more callers should be waited for, where so many are here.
    pub(super) fn wait(&self, here: usize) -> Option<Wait> {
        (self.answered >= SIBLINGS)
            .then(|| Wait { callers: here + self.answered, longest: self.took / PATIENCE })
    }

    /// Notes an append.
    pub(super) fn appended(&mut self, answered: usize, took: Duration) {
        self.answered = answered;
        self.took = if self.took.is_zero() { took } else { (self.took * 7 + took) / 8 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLI: Duration = Duration::from_millis(1);

    #[test]
    fn nobody_waits_for_a_few_callers() {
        let mut gathering = Gathering::default();
        assert_eq!(gathering.wait(3), None);
        gathering.appended(4, MILLI * 8);
        assert_eq!(gathering.wait(4), None);
    }

    #[test]
    fn those_who_were_answered_are_waited_for_up_to_a_third_of_an_append() {
        let mut gathering = Gathering::default();
        gathering.appended(32, MILLI * 9);
        let wait = Wait { callers: 64, longest: MILLI * 3 };
        assert_eq!(gathering.wait(32), Some(wait));
    }

    #[test]
    fn one_slow_append_is_not_believed() {
        let mut gathering = Gathering::default();
        gathering.appended(32, MILLI * 9);
        gathering.appended(32, MILLI * 81);
        assert_eq!(gathering.wait(0).map(|wait| wait.longest), Some(MILLI * 6));
    }
}

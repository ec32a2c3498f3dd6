//! Group commit: how long an append waits for more records to go with it.
//!
//! A caller that was answered by the last append asks again at once, but after this append has begun. On a slow disk
//! the callers fall into two halves, and each half waits for the other's sync. A short wait joins them again.
//! PostgreSQL's `commit_delay` and `commit_siblings` do the same with a wait that is set by hand; here it follows
//! from the time that an append takes.

use std::time::Duration;

/// An append waits only where the last one answered this many callers (PostgreSQL's default of `commit_siblings`).
const MIN_CALLERS: usize = 5;
/// The longest wait is the time of an append divided by this: a wait gains up to a whole append.
const MAX_WAIT_DIVISOR: u32 = 3;

/// The callers that the last append answered, and how long appends take.
#[derive(Debug, Default)]
pub(super) struct GroupCommit {
    /// Callers that the last append answered.
    answered: usize,
    /// A moving average of the times of appends.
    took: Duration,
}

/// A wait for more callers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Wait {
    /// The wait ends when so many callers are there.
    pub(super) callers: usize,
    pub(super) longest: Duration,
}

impl GroupCommit {
    /// Whether to wait for more callers, where so many are there.
    pub(super) fn wait(&self, here: usize) -> Option<Wait> {
        (self.answered >= MIN_CALLERS)
            .then(|| Wait { callers: here + self.answered, longest: self.took / MAX_WAIT_DIVISOR })
    }

    /// Takes in that an append has answered so many callers after this time.
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
    fn few_callers_are_not_waited_for() {
        let mut group_commit = GroupCommit::default();
        assert_eq!(group_commit.wait(3), None);
        group_commit.appended(4, MILLI * 8);
        assert_eq!(group_commit.wait(4), None);
    }

    #[test]
    fn the_wait_lasts_at_most_a_third_of_an_append() {
        let mut group_commit = GroupCommit::default();
        group_commit.appended(32, MILLI * 9);
        let wait = Wait { callers: 64, longest: MILLI * 3 };
        assert_eq!(group_commit.wait(32), Some(wait));
    }

    #[test]
    fn one_slow_append_changes_the_average_little() {
        let mut group_commit = GroupCommit::default();
        group_commit.appended(32, MILLI * 9);
        group_commit.appended(32, MILLI * 81);
        assert_eq!(group_commit.wait(0).map(|wait| wait.longest), Some(MILLI * 6));
    }
}

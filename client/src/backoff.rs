//! Exponential pauses with full jitter (Brooker, "Exponential Backoff And Jitter", 2015): a pause is
//! uniform between nothing and a ceiling that doubles, so a fleet doesn't come back all at once.

use std::{
    hash::{BuildHasher, Hasher, RandomState},
    time::Duration,
};

/// The first ceiling.
const FIRST: Duration = Duration::from_millis(100);
/// The longest that a server's `Retry-After` is obeyed for.
const LONGEST_ASKED: Duration = Duration::from_secs(600);

/// Says how long to pause before the next attempt.
#[derive(Debug, Clone)]
pub(crate) struct Backoff {
    longest: Duration,
    attempts: u32,
}

impl Backoff {
    pub(crate) fn new(longest: Duration) -> Self {
        Self { longest, attempts: 0 }
    }

    /// The next pause, never shorter than the server asked for.
    pub(crate) fn next(&mut self, asked: Option<Duration>) -> Duration {
        // A new `RandomState` is seeded by the system: enough chance for a jitter.
        self.next_at(RandomState::new().build_hasher().finish(), asked)
    }

    /// As [`Backoff::next`], with the chance given.
    fn next_at(&mut self, chance: u64, asked: Option<Duration>) -> Duration {
        let ceiling = FIRST.saturating_mul(1 << self.attempts.min(20)).min(self.longest);
        self.attempts = self.attempts.saturating_add(1);
        let micros = u64::try_from(ceiling.as_micros()).unwrap_or(u64::MAX);
        let jittered = Duration::from_micros(chance % micros.max(1));
        jittered.max(asked.unwrap_or_default().min(LONGEST_ASKED))
    }

    /// Attempts since the last success.
    pub(crate) fn attempts(&self) -> u32 {
        self.attempts
    }

    /// An attempt has succeeded.
    pub(crate) fn reset(&mut self) {
        self.attempts = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn pauses_stay_under_a_ceiling_that_doubles(chances in proptest::collection::vec(any::<u64>(), 1..80)) {
            let longest = Duration::from_secs(30);
            let mut backoff = Backoff::new(longest);
            let mut ceiling = FIRST;
            for chance in chances {
                prop_assert!(backoff.next_at(chance, None) < ceiling);
                ceiling = (ceiling * 2).min(longest);
            }
        }
    }

    #[test]
    fn the_whole_range_is_used_and_success_starts_anew() {
        let mut backoff = Backoff::new(Duration::from_secs(1));
        assert_eq!(backoff.next_at(0, None), Duration::ZERO);
        assert_eq!(backoff.next_at(199_999, None), Duration::from_micros(199_999));
        backoff.reset();
        assert_eq!(backoff.next_at(100_000, None), Duration::ZERO);
    }

    #[test]
    fn what_the_server_asks_for_is_obeyed_within_reason() {
        let mut backoff = Backoff::new(Duration::from_secs(1));
        assert_eq!(backoff.next_at(0, Some(Duration::from_secs(7))), Duration::from_secs(7));
        assert_eq!(backoff.next_at(0, Some(Duration::from_secs(86_400))), LONGEST_ASKED);
    }
}

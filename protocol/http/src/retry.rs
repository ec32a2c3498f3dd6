//! When to try again.
//!
//! Pauses grow exponentially with full jitter (Brooker, "Exponential Backoff And Jitter", 2015): each is uniform
//! between nothing and a ceiling that doubles, so that a fleet doesn't come back all at once. A server's
//! `Retry-After` is a lower bound.

use crate::error::CallError;
use rand::{Rng, RngExt as _};
use std::time::Duration;

/// The first ceiling, unless the caller says otherwise.
const DEFAULT_FIRST: Duration = Duration::from_millis(100);
/// The longest `Retry-After` that is obeyed.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(600);
/// After so many doublings the ceiling stays.
const MAX_DOUBLINGS: u32 = 20;

/// How often a call with a [`RetryPolicy`] is made again.
const MAX_RETRIES: u32 = 5;
/// The ceilings of its pauses: 0.4 s to 6.4 s, so that it takes 6 s on average until it gives up.
const FIRST_CALL_PAUSE: Duration = Duration::from_millis(400);
const MAX_CALL_PAUSE: Duration = Duration::from_secs(10);

/// Says how long to pause before the next attempt.
#[derive(Debug, Clone)]
pub struct Backoff {
    first: Duration,
    max: Duration,
    attempts: u32,
}

impl Backoff {
    /// Pauses below 100 ms at first, and never longer than `max`.
    #[must_use]
    pub const fn new(max: Duration) -> Self {
        Self::from(DEFAULT_FIRST, max)
    }

    /// Pauses below `first` at first, and never longer than `max`.
    #[must_use]
    pub const fn from(first: Duration, max: Duration) -> Self {
        Self { first, max, attempts: 0 }
    }

    /// The next pause, never shorter than the server asked for.
    pub fn next(&mut self, asked: Option<Duration>) -> Duration {
        self.next_with(&mut rand::rng(), asked)
    }

    /// As [`Backoff::next`], with the given randomness.
    fn next_with(&mut self, rng: &mut impl Rng, asked: Option<Duration>) -> Duration {
        let ceiling = self.ceiling();
        self.attempts = self.attempts.saturating_add(1);
        let nanos = rng.random_range(0..ceiling.as_nanos().max(1));
        let jittered = Duration::from_nanos_u128(nanos);
        jittered.max(asked.unwrap_or_default().min(MAX_RETRY_AFTER))
    }

    /// The next pause is shorter than this, unless the server asks for more.
    fn ceiling(&self) -> Duration {
        self.first.saturating_mul(1 << self.attempts.min(MAX_DOUBLINGS)).min(self.max)
    }

    /// Attempts since the last success.
    #[must_use]
    pub const fn attempts(&self) -> u32 {
        self.attempts
    }

    /// An attempt has succeeded.
    pub const fn reset(&mut self) {
        self.attempts = 0;
    }
}

/// Which failures of a call have it made again, a few times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryPolicy {
    /// None: the caller decides.
    Never,
    /// The server refuses for now ([`CallError::is_busy`]).
    WhileBusy,
    /// The server refuses for now or isn't reached ([`CallError::is_away`]). The call may then be carried out twice.
    WhileAway,
}

/// The attempts of one call.
#[derive(Debug)]
pub(crate) struct Attempts {
    policy: RetryPolicy,
    backoff: Backoff,
}

impl RetryPolicy {
    pub(crate) const fn attempts(self) -> Attempts {
        Attempts { policy: self, backoff: Backoff::from(FIRST_CALL_PAUSE, MAX_CALL_PAUSE) }
    }
}

impl Attempts {
    /// The pause before the next attempt; `None` where there is no other, or where the server asks for a pause that
    /// no person would wait for.
    pub(crate) fn pause_after(&mut self, error: &CallError) -> Option<Duration> {
        let passes = match self.policy {
            RetryPolicy::Never => false,
            RetryPolicy::WhileBusy => error.is_busy(),
            RetryPolicy::WhileAway => error.is_away(),
        };
        let asked = error.retry_after();
        let is_short = asked.is_none_or(|asked| asked <= MAX_CALL_PAUSE);
        (passes && is_short && self.backoff.attempts() < MAX_RETRIES)
            .then(|| self.backoff.next(asked))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand::rngs::SmallRng;

    /// Always the same number.
    struct Fixed(u64);

    impl rand::TryRng for Fixed {
        type Error = std::convert::Infallible;
        fn try_next_u32(&mut self) -> Result<u32, Self::Error> {
            Ok((self.0 >> 32) as u32)
        }
        fn try_next_u64(&mut self) -> Result<u64, Self::Error> {
            Ok(self.0)
        }
        fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Self::Error> {
            let [lowest, ..] = self.0.to_le_bytes();
            bytes.fill(lowest);
            Ok(())
        }
    }

    proptest! {
        #[test]
        fn pauses_stay_below_a_ceiling_that_doubles(seed in any::<u64>(), count in 1..80) {
            let max = Duration::from_secs(30);
            let mut backoff = Backoff::new(max);
            let mut rng = <SmallRng as rand::SeedableRng>::seed_from_u64(seed);
            let mut ceiling = DEFAULT_FIRST;
            for _ in 0..count {
                prop_assert!(backoff.next_with(&mut rng, None) < ceiling);
                ceiling = (ceiling * 2).min(max);
            }
        }
    }

    #[test]
    fn pauses_use_the_whole_range_and_a_success_starts_anew() {
        let mut backoff = Backoff::new(Duration::from_secs(1));
        assert_eq!(backoff.next_with(&mut Fixed(0), None), Duration::ZERO);
        let long = backoff.next_with(&mut Fixed(u64::MAX), None);
        assert!(Duration::from_millis(199) < long && long < Duration::from_millis(200), "{long:?}");
        backoff.reset();
        let long = backoff.next_with(&mut Fixed(u64::MAX), None);
        assert!(Duration::from_millis(99) < long && long < Duration::from_millis(100), "{long:?}");
        assert_eq!(Backoff::from(Duration::ZERO, Duration::ZERO).next(None), Duration::ZERO);
    }

    #[test]
    fn retry_after_is_obeyed_within_a_limit() {
        let mut backoff = Backoff::new(Duration::from_secs(1));
        let asked = |seconds| Some(Duration::from_secs(seconds));
        assert_eq!(backoff.next(asked(7)), Duration::from_secs(7));
        assert_eq!(backoff.next(asked(86_400)), MAX_RETRY_AFTER);
    }

    #[test]
    fn a_policy_ends_after_a_few_attempts_and_with_a_long_retry_after() {
        let failure = |status, retry_after| CallError::InvalidResponse {
            server: String::new(),
            status,
            detail: String::new(),
            retry_after,
        };
        let busy = failure(503, None);
        let mut attempts = RetryPolicy::WhileBusy.attempts();
        let pauses = std::iter::from_fn(|| attempts.pause_after(&busy)).count();
        assert_eq!(pauses, MAX_RETRIES as usize);
        assert!(RetryPolicy::Never.attempts().pause_after(&busy).is_none());
        let mut attempts = RetryPolicy::WhileAway.attempts();
        assert!(attempts.pause_after(&failure(404, None)).is_none());
        assert!(attempts.pause_after(&failure(503, Some(Duration::from_secs(60)))).is_none());
        let asked = attempts.pause_after(&failure(503, Some(Duration::from_secs(2))));
        assert!(asked.unwrap() >= Duration::from_secs(2));
    }
}

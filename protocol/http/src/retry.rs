//! When to try again: pauses as [`sojourn_protocol::backoff`] has them, drawn by this process.

use crate::error::CallError;
use rand::{Rng, RngExt as _};
use sojourn_protocol::{backoff, quantity::Micros};
use std::time::Duration;

/// How often a call with a [`RetryPolicy`] is made again.
const MAX_RETRIES: u32 = 5;
/// The ceilings of its pauses: 0.4 s to 6.4 s, so that it takes 6 s on average until it gives up.
const FIRST_CALL_PAUSE: Duration = Duration::from_millis(400);
const MAX_CALL_PAUSE: Duration = Duration::from_secs(10);

/// Says how long to pause before the next attempt.
#[derive(Debug, Clone)]
pub struct Backoff {
    first: Micros,
    max: Micros,
    attempts: u32,
}

impl Backoff {
    /// Pauses below 100 ms at first, and never longer than `max`.
    #[must_use]
    pub fn new(max: Duration) -> Self {
        Self { first: backoff::FIRST_CEILING, max: max.into(), attempts: 0 }
    }

    /// Pauses below `first` at first, and never longer than `max`.
    #[must_use]
    pub fn from(first: Duration, max: Duration) -> Self {
        Self { first: first.into(), max: max.into(), attempts: 0 }
    }

    /// The next pause, never shorter than the server asked for.
    pub fn next(&mut self, asked: Option<Duration>) -> Duration {
        self.next_with(&mut rand::rng(), asked)
    }

    /// As [`Backoff::next`], with the given randomness.
    fn next_with(&mut self, rng: &mut impl Rng, asked: Option<Duration>) -> Duration {
        let ceiling = backoff::ceiling(self.first, self.max, self.attempts);
        self.attempts = self.attempts.saturating_add(1);
        let drawn = Micros(rng.random_range(0..ceiling.0.max(1)));
        Duration::from_micros(backoff::pause(drawn, asked.map(Micros::from)).0)
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
    pub(crate) fn attempts(self) -> Attempts {
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

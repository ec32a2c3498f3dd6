//! Rates of many callers, in memory that doesn't grow: the generic cell rate algorithm (ITU-T I.371, a token bucket that is
//! stored as one time), in a table with a fixed number of slots.
//!
//! A caller's slot is drawn by a keyed hash. Two callers share a slot with probability 1 in [`SLOTS`], and then also its rate. So
//! nobody can make the table grow, and nobody can choose whose slot is shared.
//!
//! The crate `governor` 0.10 keeps an entry for each caller, and can't look whether there is one left without taking it.

use parking_lot::Mutex;
use sojourn_protocol::quantity::SaturatingFrom as _;
use std::{
    hash::{BuildHasher as _, Hash, RandomState},
    time::Duration,
};

/// Slots of a table: 8 bytes each, so 512 KiB.
const SLOTS: usize = 1 << 16;

/// How often something may happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// So often at once, after a long pause.
    pub burst: u32,
    /// And once more for each of these intervals.
    pub interval: Duration,
}

/// The rate of each caller.
#[derive(Debug)]
pub(crate) struct RateLimiter {
    rate: Rate,
    hasher: RandomState,
    /// When the caller of a slot will have all of its burst again, in microseconds.
    full_at: Mutex<Vec<u64>>,
}

impl RateLimiter {
    pub(crate) fn new(rate: Rate) -> Self {
        Self { rate, hasher: RandomState::new(), full_at: Mutex::new(vec![0; SLOTS]) }
    }

    /// Takes one of the caller's share at this time since the start.
    ///
    /// # Errors
    /// How long until there is one, where the share is used up. Nothing is taken then.
    pub(crate) fn take(&self, now: Duration, caller: impl Hash) -> Result<(), Duration> {
        self.with_slot(now, caller, |slot, next| *slot = next)
    }

    /// Is there one left? Nothing is taken.
    ///
    /// # Errors
    /// How long until there is one.
    pub(crate) fn check(&self, now: Duration, caller: impl Hash) -> Result<(), Duration> {
        self.with_slot(now, caller, |_, _| {})
    }

    fn with_slot(
        &self,
        now: Duration,
        caller: impl Hash,
        taken: impl FnOnce(&mut u64, u64),
    ) -> Result<(), Duration> {
        let now = micros(now);
        let interval = micros(self.rate.interval);
        let tolerance = interval.saturating_mul(u64::from(self.rate.burst.saturating_sub(1)));
        let mut slots = self.full_at.lock();
        let count = slots.len() as u64;
        let index = self.hasher.hash_one(caller).checked_rem(count).unwrap_or_default();
        // A table always has the slot.
        let Some(slot) = usize::try_from(index).ok().and_then(|index| slots.get_mut(index)) else {
            return Ok(());
        };
        let full_at = (*slot).max(now);
        match (full_at - now).checked_sub(tolerance) {
            Some(wait) if wait > 0 => Err(Duration::from_micros(wait)),
            _ => {
                taken(slot, full_at.saturating_add(interval));
                Ok(())
            }
        }
    }
}

fn micros(duration: Duration) -> u64 {
    u64::saturating_from(duration.as_micros())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn limiter(burst: u32) -> RateLimiter {
        RateLimiter::new(Rate { burst, interval: 10 * SECOND })
    }

    #[test]
    fn a_burst_is_followed_by_one_in_each_interval() {
        let limiter = limiter(3);
        let begun = 7 * SECOND;
        for _ in 0..3 {
            assert_eq!(limiter.check(begun, "a"), Ok(()));
            assert_eq!(limiter.take(begun, "a"), Ok(()));
        }
        assert_eq!(limiter.check(begun, "a"), Err(10 * SECOND));
        assert_eq!(limiter.take(begun + SECOND, "a"), Err(9 * SECOND));
        // What was refused cost nothing.
        assert_eq!(limiter.take(begun + 10 * SECOND, "a"), Ok(()));
        assert_eq!(limiter.take(begun + 10 * SECOND, "a"), Err(10 * SECOND));
        // After a long pause the burst is there again, and no more than that.
        let later = begun + 1_000 * SECOND;
        let allowed = (0..10).filter(|_| limiter.take(later, "a").is_ok()).count();
        assert_eq!(allowed, 3);
    }

    #[test]
    fn callers_have_rates_of_their_own_and_a_million_of_them_no_more_memory() {
        let limiter = limiter(1);
        assert_eq!(limiter.take(SECOND, ("a", 1)), Ok(()));
        let others = (0..100).filter(|other| limiter.take(SECOND, ("b", *other)).is_ok()).count();
        assert!(others >= 98, "{others} of 100 callers had a slot of their own");
        for caller in 0..1_000_000_u32 {
            let _ = limiter.take(SECOND, caller);
        }
        let slots = limiter.full_at.lock();
        assert_eq!((slots.len(), slots.capacity()), (SLOTS, SLOTS));
    }
}

//! The planner's memory of pools and regions: failures with pauses, and how often machines are taken back.

use crate::settings::Times;
use sojourn_protocol::{
    quantity::SaturatingFrom as _,
    seeds,
    time::{Millis, UnixMillis},
};

/// An hour in milliseconds.
const HOUR: f64 = 3_600_000.0;
/// Machine-hours that the settings' rate weighs as much as.
const PRIOR_HOURS: f64 = 20.0;
/// Machine-hours that the rate of all pools weighs as much as in one of them.
const POOL_PRIOR_HOURS: f64 = 10.0;
/// After so many machine-hours older experience counts half.
const MEMORY_HOURS: f64 = 200.0;
/// After so many doublings a pause stays.
const MAX_DOUBLINGS: u32 = 16;

/// A pause after failures, which doubles with each further one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Pause {
    failures: u32,
    /// When the last failure was.
    failed_at: UnixMillis,
    until: UnixMillis,
}

impl Pause {
    /// Another failure. The pause is between half and all of `first`, doubled for each failure before, and never longer
    /// than `max`.
    pub(crate) fn fail(&mut self, now: UnixMillis, first: Millis, max: Millis, seed: u64) {
        if now < self.until {
            // It was asked in spite of the pause, or twice at a time: it isn't counted again.
            return;
        }
        let doubled = first.0.saturating_mul(1 << self.failures.min(MAX_DOUBLINGS));
        let longest = doubled.min(max.0);
        let drawn = seeds::derive("pause", &[seed]).checked_rem(longest / 2 + 1).unwrap_or(0);
        self.failed_at = now;
        self.until = now + Millis(longest - drawn);
        self.failures = self.failures.saturating_add(1);
    }

    /// A success.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// A success of what was begun at a time. It says nothing of failures since.
    pub(crate) fn clear_since(&mut self, begun: UnixMillis) {
        if begun > self.failed_at {
            self.clear();
        }
    }

    /// Was the last try a failure?
    pub(crate) const fn has_failed(&self) -> bool {
        self.failures > 0
    }

    /// How long it lasts still; none where it is over.
    pub(crate) fn left(&self, now: UnixMillis) -> Option<Millis> {
        (now < self.until).then(|| self.until - now)
    }
}

/// How often machines are taken back: machine-hours and interruptions, of which older ones count less.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Experience {
    hours: f64,
    interruptions: f64,
}

impl Experience {
    /// A machine has run for a time.
    pub(crate) fn ran(&mut self, time: Millis) {
        self.hours += float(time.0) / HOUR;
        if self.hours > MEMORY_HOURS {
            self.hours /= 2.0;
            self.interruptions /= 2.0;
        }
    }

    /// A machine was taken back.
    pub(crate) fn interrupted(&mut self) {
        self.interruptions += 1.0;
    }

    /// Interruptions of a machine in an hour, where `prior` is expected.
    fn rate(&self, prior: f64, weight: f64) -> f64 {
        (prior * weight + self.interruptions) / (weight + self.hours)
    }

    /// The same of all pools, where the settings expect so many in a thousand hours.
    pub(crate) fn overall(&self, per_mille: u32) -> f64 {
        self.rate(f64::from(per_mille) / 1000.0, PRIOR_HOURS)
    }
}

/// The planner's memory of machines of one market in a pool.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct PoolRecord {
    /// The pause after the pool had no capacity.
    pub(crate) no_capacity: Pause,
    experience: Experience,
    interrupted_at: Option<UnixMillis>,
}

impl PoolRecord {
    pub(crate) fn ran(&mut self, time: Millis) {
        self.experience.ran(time);
    }

    pub(crate) fn interrupted(&mut self, now: UnixMillis) {
        self.experience.interrupted();
        self.interrupted_at = Some(now);
    }

    /// Interruptions of a machine in an hour, where all pools have `overall`.
    pub(crate) fn rate(&self, overall: f64) -> f64 {
        self.experience.rate(overall, POOL_PRIOR_HOURS)
    }

    /// Has it just taken a machine back?
    pub(crate) fn is_avoided(&self, now: UnixMillis, times: &Times) -> bool {
        self.interrupted_at.is_some_and(|at| now < at + times.avoid)
    }
}

/// A count as a real number. Plans compare quotients of such numbers; 53 bits are plenty.
pub(crate) fn float(number: u64) -> f64 {
    let [high, low] = [number >> 32, number & u64::from(u32::MAX)].map(u32::saturating_from);
    f64::from(high) * 4_294_967_296.0 + f64::from(low)
}

/// A real number as a count, rounded down, from 0 to 2^32 - 1.
pub(crate) fn count(number: f64) -> u32 {
    let (mut low, mut high) = (0_u32, u32::MAX);
    // Comparisons alone: a cast would be one more rule about what isn't a number.
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        if f64::from(middle) <= number {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_and_end_with_a_success() {
        let (first, max) = (Millis(1000), Millis(3000));
        let mut pause = Pause::default();
        assert_eq!(pause.left(UnixMillis(5)), None);
        pause.fail(UnixMillis(10), first, max, 1);
        let left = pause.left(UnixMillis(10)).unwrap().0;
        assert!((500..=1000).contains(&left), "{left}");
        pause.fail(UnixMillis(11), first, max, 2);
        assert_eq!(pause.left(UnixMillis(10)).unwrap().0, left, "not counted twice");
        for least in [1000, 1500, 1500] {
            let now = pause.until;
            pause.fail(now, first, max, 3);
            let left = pause.left(now).unwrap().0;
            assert!((least..=2 * least).contains(&left), "{left}");
        }
        pause.clear();
        assert_eq!(pause, Pause::default());
    }

    #[test]
    fn rates_go_from_what_is_expected_to_what_is_seen() {
        let mut all = Experience::default();
        assert_eq!(all.overall(100), 0.1);
        for _ in 0..100 {
            all.ran(Millis(3_600_000));
        }
        assert!(all.overall(100) < 0.02);
        let mut pool = PoolRecord::default();
        assert_eq!(pool.rate(0.1), 0.1);
        pool.ran(Millis(10 * 3_600_000));
        for _ in 0..5 {
            pool.interrupted(UnixMillis(7));
        }
        assert_eq!(pool.rate(0.1), 0.3);
        let times = Times::default();
        assert!(pool.is_avoided(UnixMillis(8), &times));
        assert!(!pool.is_avoided(UnixMillis(7) + times.avoid, &times));
    }

    #[test]
    fn counts_become_real_numbers_and_come_back() {
        for number in [0, 1, 77, u32::MAX - 1, u32::MAX] {
            assert_eq!(count(float(u64::from(number))), number);
        }
        assert_eq!((count(2.9), count(-1.0), count(f64::NAN), count(1e300)), (2, 0, 0, u32::MAX));
        assert_eq!(float(1 << 40), 1_099_511_627_776.0);
    }
}

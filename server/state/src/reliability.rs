//! The ratio of deadlines that a host meets, with recent ones weighted most.

use serde::{Deserialize, Serialize};
use sojourn_protocol::{quantity::SaturatingFrom as _, time::UnixMillis};

/// The weight of a new deadline.
const NEW_WEIGHT: u64 = 1 << 16;
/// Each new deadline takes one part in this many from the weight of those before it.
const DECAY_DIVISOR: u64 = 8;
/// Milliseconds after which weights are halved, so that a host that failed long ago is tried again.
const HALF_LIFE: u64 = 3_600_000;

/// The deadlines that a host kept and broke: of leases that it reported while they lived, and of those that ran
/// out. What it gave back in time, or what was taken from it, is neither.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Reliability {
    kept: u64,
    broken: u64,
    at: UnixMillis,
}

impl Reliability {
    /// The host met a deadline.
    pub(super) fn keep(&mut self, at: UnixMillis) {
        *self = self.before_another(at);
        self.kept += NEW_WEIGHT;
    }

    /// The host missed a deadline.
    pub(super) fn break_one(&mut self, at: UnixMillis) {
        *self = self.before_another(at);
        self.broken += NEW_WEIGHT;
    }

    fn before_another(self, at: UnixMillis) -> Self {
        let Self { kept, broken, at } = self.at(at);
        Self { kept: kept - kept / DECAY_DIVISOR, broken: broken - broken / DECAY_DIVISOR, at }
    }

    /// The weights at a later time.
    fn at(self, now: UnixMillis) -> Self {
        let passed = (now - self.at).0;
        let halvings = u32::saturating_from(passed / HALF_LIFE);
        let decayed = |weight: u64| {
            let halved = weight.checked_shr(halvings).unwrap_or(0);
            // Linear between one half-life and the next.
            halved - halved * (passed % HALF_LIFE) / (2 * HALF_LIFE)
        };
        Self { kept: decayed(self.kept), broken: decayed(self.broken), at: self.at.max(now) }
    }

    /// The expected ratio of deadlines that the host meets, in thousandths, as if it had met three more (additive
    /// smoothing). It is 1000 for a host that missed none.
    #[must_use]
    pub fn ratio(self, now: UnixMillis) -> u64 {
        let Self { kept, broken, .. } = self.at(now);
        let kept = kept + 3 * NEW_WEIGHT;
        kept * 1000 / (kept + broken)
    }

    /// Has the host met or missed any deadline?
    #[must_use]
    pub fn is_known(self) -> bool {
        self.kept + self.broken > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_deadlines_count_most() {
        let (mut host, now) = (Reliability::default(), UnixMillis(1_000));
        assert_eq!((host.ratio(now), host.is_known()), (1000, false));
        host.break_one(now);
        assert_eq!((host.ratio(now), host.is_known()), (750, true));
        for _ in 0..20 {
            host.keep(now);
        }
        let after_good_ones = host.ratio(now);
        assert!((980..1000).contains(&after_good_ones), "{after_good_ones}");
        for _ in 0..3 {
            host.break_one(now);
        }
        let after_bad_ones = host.ratio(now);
        assert!((650..750).contains(&after_bad_ones), "{after_bad_ones}");
    }

    #[test]
    fn misses_of_long_ago_count_less() {
        let mut host = Reliability::default();
        host.break_one(UnixMillis(0));
        let hours = [0, 1, 2, 4, 100].map(|hour| host.ratio(UnixMillis(hour * HALF_LIFE)));
        assert_eq!(hours, [750, 857, 923, 979, 1000]);
        assert_eq!(host.ratio(UnixMillis(HALF_LIFE / 2)), 800, "and between them");
    }
}

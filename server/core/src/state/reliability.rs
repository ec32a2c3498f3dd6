//! How well a host keeps its deadlines: what it did lately counts most.

use serde::{Deserialize, Serialize};
use sojourn_protocol::{quantity::SaturatingFrom as _, time::UnixMillis};

/// What one deadline weighs at first.
const ONE: u64 = 1 << 16;
/// Each later deadline takes a part of so many from those before it.
const PART: u64 = 8;
/// And each such time half of them: whoever failed long ago may try again.
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
    /// It reported in time.
    pub(super) fn keep(&mut self, at: UnixMillis) {
        *self = self.before_another(at);
        self.kept += ONE;
    }

    /// A lease of its ran out.
    pub(super) fn break_one(&mut self, at: UnixMillis) {
        *self = self.before_another(at);
        self.broken += ONE;
    }

    fn before_another(self, at: UnixMillis) -> Self {
        let Self { kept, broken, at } = self.at(at);
        Self { kept: kept - kept / PART, broken: broken - broken / PART, at }
    }

    /// What is left of it at a time.
    fn at(self, now: UnixMillis) -> Self {
        let passed = (now - self.at).0;
        let halvings = u32::saturating_from(passed / HALF_LIFE);
        let left = |weight: u64| {
            let halved = weight.checked_shr(halvings).unwrap_or(0);
            // On a straight line from each half to the next.
            halved - halved * (passed % HALF_LIFE) / (2 * HALF_LIFE)
        };
        Self { kept: left(self.kept), broken: left(self.broken), at: self.at.max(now) }
    }

    /// The share of deadlines that the host may be expected to keep, in thousandths: as if it had kept three more
    /// than it did. Whoever broke none has all of it.
    #[must_use]
    pub fn share(self, now: UnixMillis) -> u64 {
        let Self { kept, broken, .. } = self.at(now);
        let kept = kept + 3 * ONE;
        kept * 1000 / (kept + broken)
    }

    /// Is there anything to judge by?
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
        assert_eq!((host.share(now), host.is_known()), (1000, false));
        host.break_one(now);
        assert_eq!((host.share(now), host.is_known()), (750, true));
        for _ in 0..20 {
            host.keep(now);
        }
        let after_good_ones = host.share(now);
        assert!((980..1000).contains(&after_good_ones), "{after_good_ones}");
        for _ in 0..3 {
            host.break_one(now);
        }
        let after_bad_ones = host.share(now);
        assert!((650..750).contains(&after_bad_ones), "{after_bad_ones}");
    }

    #[test]
    fn whoever_failed_long_ago_may_try_again() {
        let mut host = Reliability::default();
        host.break_one(UnixMillis(0));
        let hours = [0, 1, 2, 4, 100].map(|hour| host.share(UnixMillis(hour * HALF_LIFE)));
        assert_eq!(hours, [750, 857, 923, 979, 1000]);
        assert_eq!(host.share(UnixMillis(HALF_LIFE / 2)), 800, "and between them");
    }
}

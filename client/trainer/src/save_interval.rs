//! How often the partial checkpoint of a running hop is saved.

use std::time::{Duration, Instant};

/// Saving takes no more than one part in so many of the time: 2 %.
const MIN_PAUSE_PER_COST: u32 = 50;

/// When a hop was last saved, and how long until the next time. Pure: the caller gives the instants.
#[derive(Debug)]
pub(crate) struct SaveInterval {
    every: Option<Duration>,
    since: Instant,
    pause: Duration,
}

impl SaveInterval {
    /// For a hop that begins at `now`; without `every` it is never saved.
    pub(crate) fn new(every: Option<Duration>, now: Instant) -> Self {
        Self { every, since: now, pause: every.unwrap_or_default() }
    }

    /// Whether it is time to save.
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        self.every.is_some() && now.saturating_duration_since(self.since) >= self.pause
    }

    /// A save was tried, from `began` to `now`.
    pub(crate) fn tried(&mut self, began: Instant, now: Instant) {
        let cost = now.saturating_duration_since(began);
        self.since = now;
        self.pause = self.every.unwrap_or_default().max(cost.saturating_mul(MIN_PAUSE_PER_COST));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cheap_save_keeps_the_interval_and_a_slow_one_lengthens_it() {
        let start = Instant::now();
        let at = |millis| start + Duration::from_millis(millis);
        let mut save_interval = SaveInterval::new(Some(Duration::from_secs(2)), start);
        assert_eq!([1999, 2000].map(|millis| save_interval.is_due(at(millis))), [false, true]);
        save_interval.tried(at(2000), at(2010));
        assert_eq!([4009, 4010].map(|millis| save_interval.is_due(at(millis))), [false, true]);
        save_interval.tried(at(4010), at(4110));
        assert_eq!([9109, 9110].map(|millis| save_interval.is_due(at(millis))), [false, true]);
        assert!(!SaveInterval::new(None, start).is_due(at(1 << 40)));
    }
}

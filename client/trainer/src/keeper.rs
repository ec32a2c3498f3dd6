//! When the part of a hop that is trained so far is worth a place on disk.

use std::time::{Duration, Instant};

/// Keeping takes no more than one part in so many of the time.
const RARELY: u32 = 50;

/// A hop's times of keeping. Pure: the instants are the caller's.
#[derive(Debug)]
pub(crate) struct Keeper {
    every: Option<Duration>,
    since: Instant,
    pause: Duration,
}

impl Keeper {
    /// For a hop that begins at `now`; it is never kept where there is no `every`.
    pub(crate) fn new(every: Option<Duration>, now: Instant) -> Self {
        Self { every, since: now, pause: every.unwrap_or_default() }
    }

    /// Is it time?
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        self.every.is_some() && now.saturating_duration_since(self.since) >= self.pause
    }

    /// It has been tried, from `began` to `now`.
    pub(crate) fn tried(&mut self, began: Instant, now: Instant) {
        let cost = now.saturating_duration_since(began);
        self.since = now;
        self.pause = self.every.unwrap_or_default().max(cost.saturating_mul(RARELY));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_cheap_to_keep_is_kept_as_often_as_wished_and_what_is_dear_more_rarely() {
        let start = Instant::now();
        let at = |millis| start + Duration::from_millis(millis);
        let mut keeper = Keeper::new(Some(Duration::from_secs(2)), start);
        assert_eq!([1999, 2000].map(|millis| keeper.is_due(at(millis))), [false, true]);
        keeper.tried(at(2000), at(2010));
        assert_eq!([4009, 4010].map(|millis| keeper.is_due(at(millis))), [false, true]);
        keeper.tried(at(4010), at(4110));
        assert_eq!([9109, 9110].map(|millis| keeper.is_due(at(millis))), [false, true]);
        assert!(!Keeper::new(None, start).is_due(at(1 << 40)));
    }
}

//! How fast a line is: bytes over the time in which anything moved on it, smoothed, for the server to plan with.

use parking_lot::Mutex;
use sojourn_protocol::quantity::SaturatingFrom as _;
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};
use tokio::time::{Duration, Instant};

/// Fewer bytes say more of the way there and back than of the line.
const MIN_BYTES: u64 = 256 << 10;
/// No time is shorter.
const MIN_TIME: Duration = Duration::from_millis(1);

/// One direction of a line.
#[derive(Debug, Default)]
pub(crate) struct Speed {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Transfers that move.
    moving: u32,
    /// Until when time has been counted.
    counted: Option<Instant>,
    /// Not yet part of the mean.
    bytes: u64,
    time: Duration,
    /// Bytes per second.
    mean: Option<u64>,
    reported: Option<u64>,
}

/// A transfer that counts for as long as this lives.
#[derive(Debug)]
pub(super) struct Run<'a> {
    speed: &'a Speed,
    done: Arc<AtomicU64>,
    from: u64,
}

impl Speed {
    /// Bytes begin to move; `done` counts them.
    pub(super) fn begin(&self, done: Arc<AtomicU64>) -> Run<'_> {
        let mut state = self.state.lock();
        state.pass(Instant::now());
        state.moving += 1;
        let from = done.load(Ordering::Relaxed);
        Run { speed: self, done, from }
    }

    /// Bytes per second as the server is to know it, where the owner allows so many: what was measured, or what is
    /// allowed before that. It stays what it was until it is off by more than a quarter.
    pub(crate) fn to_report(&self, allowed: Option<u64>) -> Option<u64> {
        let mut state = self.state.lock();
        let now = match (state.mean, allowed) {
            (Some(mean), Some(allowed)) => Some(mean.min(allowed)),
            (mean, allowed) => mean.or(allowed),
        };
        let off = match (state.reported, now) {
            (Some(reported), Some(now)) => reported.abs_diff(now) > reported / 4,
            (reported, now) => reported != now,
        };
        if off {
            state.reported = now;
        }
        state.reported
    }
}

impl State {
    /// Counts the time until now, if anything moved.
    fn pass(&mut self, now: Instant) {
        let before = self.counted.replace(now).filter(|_| self.moving > 0);
        self.time += before.map_or(Duration::ZERO, |before| now.saturating_duration_since(before));
    }

    fn take(&mut self) {
        let nanos = self.time.max(MIN_TIME).as_nanos();
        let rate = u128::from(self.bytes) * 1_000_000_000 / nanos;
        let rate = u64::saturating_from(rate).max(1);
        self.mean = Some(self.mean.map_or(rate, |mean| mean - mean / 4 + rate / 4));
    }
}

impl Drop for Run<'_> {
    fn drop(&mut self) {
        let mut state = self.speed.state.lock();
        state.pass(Instant::now());
        state.moving -= 1;
        let moved = self.done.load(Ordering::Relaxed).saturating_sub(self.from);
        state.bytes = state.bytes.saturating_add(moved);
        if state.bytes >= MIN_BYTES {
            state.take();
        }
        if state.bytes >= MIN_BYTES || state.moving == 0 {
            (state.bytes, state.time) = (0, Duration::ZERO);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MB: u64 = 1_000_000;

    async fn transfer(speed: &Speed, bytes: u64, seconds: u64) {
        let done = Arc::new(AtomicU64::new(7));
        let run = speed.begin(Arc::clone(&done));
        tokio::time::advance(Duration::from_secs(seconds)).await;
        done.store(7 + bytes, Ordering::Relaxed);
        drop(run);
    }

    #[tokio::test(start_paused = true)]
    async fn a_rate_is_smoothed_and_reported_when_it_has_changed_by_much() {
        let speed = Speed::default();
        assert_eq!(speed.to_report(None), None);
        assert_eq!(speed.to_report(Some(3 * MB)), Some(3 * MB), "what the owner allows");
        transfer(&speed, 1_000, 60).await;
        assert_eq!(speed.to_report(None), None, "too little to say");
        transfer(&speed, 20 * MB, 2).await;
        assert_eq!(speed.to_report(None), Some(10 * MB));
        transfer(&speed, 14 * MB, 2).await;
        assert_eq!(speed.to_report(None), Some(10 * MB), "about the same");
        for _ in 0..8 {
            transfer(&speed, 2 * MB, 2).await;
        }
        assert!(speed.to_report(None).unwrap() < 3 * MB);
        assert_eq!(speed.to_report(Some(MB / 2)), Some(MB / 2));
    }

    #[tokio::test(start_paused = true)]
    async fn transfers_at_once_share_the_line() {
        let speed = Speed::default();
        let done = Arc::new(AtomicU64::new(0));
        let first = speed.begin(Arc::clone(&done));
        transfer(&speed, 4 * MB, 4).await;
        assert_eq!(speed.to_report(None), Some(MB));
        tokio::time::advance(Duration::from_secs(100)).await;
        done.store(100 * MB, Ordering::Relaxed);
        drop(first);
        assert_eq!(speed.to_report(None), Some(MB), "the same, with nothing counted twice");
    }
}

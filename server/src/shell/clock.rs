//! Time for the core: real, but never going back.

use parking_lot::Mutex;
use sojourn_protocol::{
    quantity::SaturatingFrom as _,
    time::{Millis, UnixMillis},
};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// A source of the time.
pub trait Clock: Send + Sync + 'static {
    /// Now.
    fn now(&self) -> UnixMillis;

    /// Time has been at `at` already (an earlier run of the server stamped it).
    fn at_least(&self, at: UnixMillis);
}

/// The machine's clock where that goes on, and steady time from there where it is set back: leases
/// neither run out at once nor live for an hour more.
#[derive(Debug)]
pub struct SteadyClock<W = fn() -> UnixMillis> {
    wall: W,
    anchor: Mutex<(UnixMillis, Instant)>,
}

impl SteadyClock {
    /// The machine's clock.
    #[must_use]
    pub fn machine() -> Self {
        Self::over(|| {
            let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            UnixMillis(u64::saturating_from(since.as_millis()))
        })
    }
}

impl<W: Fn() -> UnixMillis> SteadyClock<W> {
    /// A clock that may be set.
    pub fn over(wall: W) -> Self {
        let anchor = Mutex::new((wall(), Instant::now()));
        Self { wall, anchor }
    }
}

impl<W: Fn() -> UnixMillis + Send + Sync + 'static> Clock for SteadyClock<W> {
    fn now(&self) -> UnixMillis {
        let mut anchor = self.anchor.lock();
        let passed = u64::saturating_from(anchor.1.elapsed().as_millis());
        let steady = anchor.0 + Millis(passed);
        let wall = (self.wall)();
        if wall > steady {
            *anchor = (wall, Instant::now());
        }
        wall.max(steady)
    }

    fn at_least(&self, at: UnixMillis) {
        let now = self.now();
        let mut anchor = self.anchor.lock();
        if at > now {
            *anchor = (at, Instant::now());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    };

    #[test]
    fn a_clock_that_jumps_back_stays_and_one_that_jumps_forth_is_followed() {
        let wall = Arc::new(AtomicU64::new(1_000_000));
        let clock = SteadyClock::over({
            let wall = Arc::clone(&wall);
            move || UnixMillis(wall.load(Ordering::SeqCst))
        });
        assert!(clock.now() >= UnixMillis(1_000_000));
        wall.store(10, Ordering::SeqCst);
        assert!(clock.now() >= UnixMillis(1_000_000));
        wall.store(2_000_000_000, Ordering::SeqCst);
        assert!(clock.now() >= UnixMillis(2_000_000_000));
        clock.at_least(UnixMillis(3_000_000_000));
        wall.store(20, Ordering::SeqCst);
        let first = clock.now();
        assert!(first >= UnixMillis(3_000_000_000));
        // It goes on from there although the machine's clock stands still.
        while clock.now() == first {
            std::thread::yield_now();
        }
    }
}

//! Time for the core. It goes by a clock that nobody sets, and comes near the machine's clock slowly.
//!
//! ```text
//!   machine's clock    12:00:00  12:00:01  14:00:02 (set by somebody)  14:00:03 ...
//!   time of the core   12:00:00  12:00:01  12:00:02.01                 12:00:03.02 ...
//! ```
//!
//! So a step of the machine's clock ends no lease, no wall time and no blob's grace period at once: lengths of time are at most
//! 1 % wrong while the two differ. After a step of two hours that takes 200 hours; a start sets the time at once.

use crate::boot_time::since_boot;
use parking_lot::Mutex;
use sojourn_protocol::{quantity::SaturatingFrom as _, time::UnixMillis};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// While it differs from the machine's clock, time goes faster or slower by one part in this many.
const SLEW_DIVISOR: u32 = 100;
/// A difference between time and the machine's clock from which on it is logged.
const LOGGED_DIFFERENCE: Duration = Duration::from_secs(10);

/// A source of the time.
pub trait Clock: Send + Sync + 'static {
    /// The time now.
    fn now(&self) -> UnixMillis;

    /// Time has been at `at` already (an earlier run of the server stamped it).
    fn at_least(&self, at: UnixMillis);
}

/// Begins with the machine's clock, then goes by the time that has passed, and never back. Where the machine's clock is set
/// it is followed slowly: time goes by up to 1 % faster, or slower, until they meet.
#[derive(Debug)]
pub struct SteadyClock<W = fn() -> UnixMillis, P = fn() -> Duration> {
    /// The machine's clock.
    wall: W,
    /// The time that has passed since some beginning.
    passed: P,
    last: Mutex<Reading>,
}

/// A reading of the clock.
#[derive(Debug)]
struct Reading {
    /// Since the Unix epoch.
    time: Duration,
    /// The time that had passed by then.
    passed: Duration,
    /// Has the log heard that the machine's clock is elsewhere?
    differs: bool,
}

/// The time of the machine's clock, which may be set back: for what people read, and for terms of days.
pub(crate) fn wall_time() -> UnixMillis {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    UnixMillis(u64::saturating_from(since.as_millis()))
}

impl SteadyClock {
    /// The machine's clock.
    #[must_use]
    pub fn machine() -> Self {
        Self::with(wall_time, since_boot)
    }
}

impl<W: Fn() -> UnixMillis> SteadyClock<W> {
    /// A clock that may be set.
    pub fn over(wall: W) -> Self {
        Self::with(wall, since_boot)
    }
}

impl<W: Fn() -> UnixMillis, P: Fn() -> Duration> SteadyClock<W, P> {
    /// A clock that may be set, and the time that has passed.
    pub fn with(wall: W, passed: P) -> Self {
        let last = Reading { time: since_epoch(wall()), passed: passed(), differs: false };
        Self { wall, passed, last: Mutex::new(last) }
    }
}

impl<W, P> Clock for SteadyClock<W, P>
where
    W: Fn() -> UnixMillis + Send + Sync + 'static,
    P: Fn() -> Duration + Send + Sync + 'static,
{
    fn now(&self) -> UnixMillis {
        let mut last = self.last.lock();
        let passed = (self.passed)();
        let elapsed = passed.saturating_sub(last.passed);
        let steady = last.time.saturating_add(elapsed);
        let (wall, most) = (since_epoch((self.wall)()), elapsed / SLEW_DIVISOR);
        let time = if wall > steady {
            steady.saturating_add(most.min(wall.saturating_sub(steady)))
        } else {
            steady.saturating_sub(most.min(steady.saturating_sub(wall)))
        };
        last.say(time, wall);
        (last.time, last.passed) = (time, last.passed.max(passed));
        UnixMillis(u64::saturating_from(time.as_millis()))
    }

    fn at_least(&self, at: UnixMillis) {
        let mut last = self.last.lock();
        last.time = last.time.max(since_epoch(at));
    }
}

impl Reading {
    /// Logs that the two clocks have come to differ, or have met.
    fn say(&mut self, time: Duration, wall: Duration) {
        let difference = time.abs_diff(wall);
        let differs = difference >= LOGGED_DIFFERENCE;
        if differs == self.differs {
            return;
        }
        self.differs = differs;
        let (seconds, is_ahead) = (difference.as_secs(), wall > time);
        if differs {
            let clock = if is_ahead { "ahead of" } else { "behind" };
            tracing::warn!(
                "the machine's clock is {seconds} s {clock} the server's time, which goes by what has passed and comes near \
                 it by at most 1 %; once the clock is right, a restart sets a time that is behind"
            );
        } else {
            tracing::info!("the server's time and the machine's clock agree again");
        }
    }
}

fn since_epoch(at: UnixMillis) -> Duration {
    Duration::from_millis(at.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    };

    const BEGUN: u64 = 1_700_000_000_000;
    const SECOND: u64 = 1_000;
    const HOUR: u64 = 3600 * SECOND;
    const TEN_YEARS: u64 = 10 * 366 * 24 * HOUR;

    /// A machine whose clock a test sets.
    struct Machine {
        wall: Arc<AtomicU64>,
        passed: Arc<AtomicU64>,
    }

    impl Machine {
        fn new() -> (Self, impl Clock) {
            let (wall, passed) = (Arc::new(AtomicU64::new(BEGUN)), Arc::new(AtomicU64::new(5)));
            let machine = Self { wall: Arc::clone(&wall), passed: Arc::clone(&passed) };
            let clock = SteadyClock::with(
                move || UnixMillis(wall.load(Ordering::SeqCst)),
                move || Duration::from_millis(passed.load(Ordering::SeqCst)),
            );
            (machine, clock)
        }

        fn pass(&self, millis: u64) {
            self.wall.fetch_add(millis, Ordering::SeqCst);
            self.passed.fetch_add(millis, Ordering::SeqCst);
        }

        fn wall(&self) -> u64 {
            self.wall.load(Ordering::SeqCst)
        }

        fn set_forward(&self, millis: u64) {
            self.wall.fetch_add(millis, Ordering::SeqCst);
        }

        fn set_back(&self, millis: u64) {
            self.wall.fetch_sub(millis, Ordering::SeqCst);
        }
    }

    #[test]
    fn time_goes_with_the_machine_while_nobody_sets_its_clock() {
        let (machine, clock) = Machine::new();
        for millis in [0, 1, 7, SECOND, HOUR] {
            machine.pass(millis);
            assert_eq!(clock.now().0, machine.wall());
        }
    }

    #[test]
    fn a_clock_that_is_set_forward_or_back_is_followed_by_at_most_one_part_in_a_hundred() {
        for step in [2 * HOUR, TEN_YEARS] {
            for forward in [true, false] {
                let (machine, clock) = Machine::new();
                if forward {
                    machine.set_forward(step)
                } else {
                    machine.set_back(step)
                }
                let mut last = clock.now();
                assert_eq!(last.0, BEGUN, "nothing has passed");
                // However often it is asked.
                for (millis, times) in [(1, 1_000), (SECOND, 3_599)] {
                    for _ in 0..times {
                        machine.pass(millis);
                        let now = clock.now();
                        assert!(now >= last, "it goes back");
                        last = now;
                    }
                }
                let (passed, hundredth) = (HOUR, HOUR / 100);
                let expected = if forward { passed + hundredth } else { passed - hundredth };
                assert_eq!((last.0 - BEGUN).abs_diff(expected), 0, "forward: {forward}");
            }
        }
    }

    #[test]
    fn time_that_ran_ahead_or_stayed_behind_comes_back() {
        for forward in [true, false] {
            let (machine, clock) = Machine::new();
            if forward {
                machine.set_forward(2 * HOUR)
            } else {
                machine.set_back(2 * HOUR)
            }
            let mut hours = 0;
            while clock.now().0 != machine.wall() {
                machine.pass(HOUR);
                hours += 1;
            }
            assert_eq!(hours, 200, "forward: {forward}");
            // A clock that is mended meanwhile is met where it is.
            machine.set_forward(HOUR);
            machine.pass(HOUR);
            machine.set_back(HOUR);
            machine.pass(HOUR);
            assert_eq!(clock.now().0, machine.wall());
        }
    }

    #[test]
    fn time_goes_on_from_the_last_stamp_of_a_journal_that_is_ahead() {
        let (machine, clock) = Machine::new();
        let last = UnixMillis(BEGUN + TEN_YEARS);
        clock.at_least(last);
        assert_eq!(clock.now(), last);
        machine.pass(100 * SECOND);
        assert_eq!(clock.now().0, last.0 + 99 * SECOND, "slower, as the machine's clock is behind");
        // What is past already changes nothing.
        clock.at_least(UnixMillis(BEGUN));
        assert_eq!(clock.now().0, last.0 + 99 * SECOND);
    }
}

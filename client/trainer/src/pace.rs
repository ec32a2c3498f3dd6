//! How much of the time a unit computes: rests between its batches, and what the slot says meanwhile.
//!
//! Rests change when batches are trained, never what they make.

use sojourn_protocol::trainer::Pace;
use std::{
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

/// Shorter rests are saved up: the clock of a sleeping thread is coarser than a small batch.
const SHORTEST: Duration = Duration::from_millis(2);
/// How much of a rest that took too long is made up for by computing without rests.
const MOST_AHEAD: Duration = Duration::from_millis(500);

/// What the slot has said, shared by the thread that hears it and the one that computes.
#[derive(Debug)]
pub(crate) struct Orders {
    pace: Mutex<Pace>,
    changed: Condvar,
}

impl Default for Orders {
    fn default() -> Self {
        Self { pace: Mutex::new(Pace::FULL), changed: Condvar::new() }
    }
}

impl Orders {
    /// Compute for that share of the time from now on.
    pub(crate) fn pace(&self, pace: Pace) {
        *self.lock() = pace;
        self.changed.notify_all();
    }

    /// End the unit that `stop` belongs to.
    pub(crate) fn stop(&self, stop: &AtomicBool) {
        // Held, so that a rest which has just looked at it hears of it.
        let _pace = self.lock();
        stop.store(true, Ordering::Relaxed);
        self.changed.notify_all();
    }

    fn now(&self) -> Pace {
        *self.lock()
    }

    fn lock(&self) -> MutexGuard<'_, Pace> {
        self.pace.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A running unit's rests.
#[derive(Debug)]
pub(crate) struct Pacer<'a> {
    orders: &'a Orders,
    stop: Arc<AtomicBool>,
    /// Since when the unit computes.
    since: Instant,
    debt: Debt,
}

impl<'a> Pacer<'a> {
    /// For a unit that begins now and ends early when `stop` is set.
    pub(crate) fn new(orders: &'a Orders, stop: Arc<AtomicBool>) -> Self {
        Self { orders, stop, since: Instant::now(), debt: Debt::default() }
    }

    /// Is the unit to end?
    pub(crate) fn stops(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Is there nothing to do but to go on?
    pub(crate) fn is_full(&self) -> bool {
        self.orders.now() == Pace::FULL
    }

    /// Rests after a batch, as long as the pace wants it. Where that is for good, `tell` hears of it first. Gives
    /// how long the unit stood still then.
    pub(crate) fn rest(&mut self, mut tell: impl FnMut()) -> Duration {
        let (mut still, mut told) = (Duration::ZERO, false);
        let mut pace = self.orders.lock();
        let mut now = Instant::now();
        let worked = now.saturating_duration_since(self.since);
        self.debt.worked(worked, *pace);
        while !self.stops() {
            if *pace == Pace::PAUSED && !told {
                // Unlocked: whoever is told may take their time, and a stop must be heard meanwhile.
                drop(pace);
                tell();
                told = true;
                pace = self.orders.lock();
                continue;
            }
            now = Instant::now();
            if *pace == Pace::PAUSED {
                let woken = self.orders.changed.wait(pace);
                pace = woken.unwrap_or_else(PoisonError::into_inner);
                still += now.elapsed();
                // Who has stood still owes nothing.
                self.debt = Debt::default();
            } else if let Some(rest) = self.debt.due() {
                let woken = self.orders.changed.wait_timeout(pace, rest);
                pace = woken.unwrap_or_else(PoisonError::into_inner).0;
                self.debt.rested(now.elapsed());
                if *pace == Pace::FULL {
                    self.debt = Debt::default();
                }
            } else {
                break;
            }
        }
        drop(pace);
        self.since = Instant::now();
        still
    }
}

/// Rest that is owed, in nanoseconds; less than none where rests took longer than they were to. Pure.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Debt(i64);

impl Debt {
    /// Computing for that long at this pace earns a rest.
    fn worked(&mut self, time: Duration, pace: Pace) {
        let percent = i64::from(pace.get());
        // At 0 there is no end to the rest, and at 100 there is none to be had.
        if (1..100).contains(&percent) {
            let owed = nanos(time).saturating_mul(100 - percent) / percent;
            self.0 = self.0.saturating_add(owed);
        } else {
            self.0 = 0;
        }
    }

    /// The rest to take now, if it is worth it.
    fn due(self) -> Option<Duration> {
        let owed = Duration::from_nanos(u64::try_from(self.0).ok()?);
        (owed >= SHORTEST).then_some(owed)
    }

    /// It took that long.
    fn rested(&mut self, time: Duration) {
        self.0 = self.0.saturating_sub(nanos(time)).max(-nanos(MOST_AHEAD));
    }
}

fn nanos(time: Duration) -> i64 {
    i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    fn percent(percent: u8) -> Pace {
        Pace::percent(percent).unwrap()
    }

    #[test]
    fn rests_make_up_the_share_whatever_the_batches_and_the_clock() {
        let millis = Duration::from_millis;
        for (share, batch, late) in [(50, 7, 0), (50, 7, 1), (10, 3, 2), (90, 40, 1), (1, 1, 0)] {
            let (mut debt, mut worked, mut rested) =
                (Debt::default(), Duration::ZERO, Duration::ZERO);
            while worked + rested < Duration::from_secs(100) {
                debt.worked(millis(batch), percent(share));
                worked += millis(batch);
                if let Some(rest) = debt.due() {
                    debt.rested(rest + millis(late));
                    rested += rest + millis(late);
                }
            }
            let is = worked.as_secs_f64() / (worked + rested).as_secs_f64() * 100.0;
            assert!((is - f64::from(share)).abs() < 0.5, "{share}: {is}");
        }
    }

    #[test]
    fn small_rests_are_saved_up_and_long_ones_are_not_made_up_for() {
        let mut debt = Debt::default();
        debt.worked(Duration::from_micros(1500), percent(50));
        assert_eq!(debt.due(), None);
        debt.worked(Duration::from_micros(1500), percent(50));
        assert_eq!(debt.due(), Some(Duration::from_millis(3)));
        // The machine slept for a day.
        debt.rested(Duration::from_secs(86_400));
        debt.worked(Duration::from_millis(503), percent(50));
        assert_eq!(debt.due(), Some(Duration::from_millis(3)));
        debt.worked(Duration::from_secs(1), Pace::FULL);
        assert_eq!(debt.due(), None);
        debt.worked(Duration::MAX, percent(1));
        assert!(debt.due().is_some());
    }

    #[test]
    fn a_unit_at_rest_hears_the_next_pace_and_the_stop() {
        let orders = Orders::default();
        let stop = Arc::new(AtomicBool::new(false));
        let mut pacer = Pacer::new(&orders, Arc::clone(&stop));
        let mut told = 0;
        assert_eq!(pacer.rest(|| told += 1), Duration::ZERO);
        orders.pace(Pace::PAUSED);
        // Told, it wants it to go on: that is heard although it doesn't wait yet.
        pacer.rest(|| {
            told += 1;
            orders.pace(Pace::FULL);
        });
        assert_eq!(told, 1);
        orders.pace(Pace::PAUSED);
        thread::scope(|scope| {
            let resting = scope.spawn(|| pacer.rest(|| {}));
            orders.pace(Pace::FULL);
            resting.join().unwrap();
        });
        // Of a rest of a hundred times a day it hears as well.
        orders.pace(percent(1));
        pacer.since -= Duration::from_secs(86_400);
        thread::scope(|scope| {
            let resting = scope.spawn(|| pacer.rest(|| {}));
            orders.stop(&stop);
            assert_eq!(resting.join().unwrap(), Duration::ZERO);
        });
        orders.pace(Pace::PAUSED);
        assert!(pacer.stops());
        assert_eq!(pacer.rest(|| panic!("it ends")), Duration::ZERO);
    }
}

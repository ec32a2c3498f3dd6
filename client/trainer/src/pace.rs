//! How much of the time a unit computes: rests between its batches, and waits for files that are on their way.
//!
//! Both change when batches are trained, never what they make.

use crate::orders::{Orders, Said};
use rustix::time::{ClockId, clock_gettime};
use sojourn_protocol::{digest::Digest, quantity::SaturatingFrom as _, trainer::Pace};
use std::{
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

/// Shorter rests are saved up: the clock of a sleeping thread is coarser than a small batch.
const MIN_PAUSE: Duration = Duration::from_millis(2);
/// How much of a rest that took too long is made up for by computing without rests.
const MAX_CREDIT: Duration = Duration::from_millis(500);

/// The time that a share is counted of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Meter {
    /// Processor time: that in which others had the core is as good as a rest.
    Processor,
    /// The time of the clock: of a GPU's there is no other.
    Wall,
}

impl Meter {
    /// How long this thread has computed so far.
    fn read(self, begun: Instant) -> Duration {
        match self {
            Meter::Processor => {
                // Since the thread began: neither is negative.
                Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
            }
            Meter::Wall => begun.elapsed(),
        }
    }
}

/// A running unit's rests.
#[derive(Debug)]
pub(crate) struct Pacer<'a> {
    orders: &'a Orders,
    said: Arc<Said>,
    meter: Meter,
    begun: Instant,
    /// When the last rest ended, by clock and by meter.
    since: (Instant, Duration),
    debt: Debt,
}

impl<'a> Pacer<'a> {
    /// For a unit that this thread begins now, and of which `said` says more.
    pub(crate) fn new(orders: &'a Orders, said: Arc<Said>, meter: Meter) -> Self {
        let begun = Instant::now();
        let since = (begun, meter.read(begun));
        Self { orders, said, meter, begun, since, debt: Debt::default() }
    }

    /// Is the unit to end?
    pub(crate) fn stops(&self) -> bool {
        self.said.stops()
    }

    /// Is there nothing to do but to go on?
    pub(crate) fn is_full(&self) -> bool {
        self.orders.now() == Pace::FULL
    }

    /// Rests after a batch, as long as the pace wants it. Where that is for good, `tell` hears of it first. Gives
    /// how long the unit stood still then.
    pub(crate) fn rest(&mut self, mut tell: impl FnMut()) -> Duration {
        let (mut still, mut told) = (Duration::ZERO, false);
        let mut pace = self.orders.hold();
        let mut now = Instant::now();
        let passed = now.saturating_duration_since(self.since.0);
        let worked = self.meter.read(self.begun).saturating_sub(self.since.1);
        self.debt.worked(worked, passed, *pace);
        while !self.stops() {
            if *pace == Pace::PAUSED && !told {
                // Unlocked: whoever is told may take their time, and a stop must be heard meanwhile.
                drop(pace);
                tell();
                told = true;
                pace = self.orders.hold();
                continue;
            }
            now = Instant::now();
            if *pace == Pace::PAUSED {
                pace = self.orders.wait(pace);
                still += now.elapsed();
                // Who has stood still owes nothing.
                self.debt = Debt::default();
            } else if let Some(rest) = self.debt.due() {
                pace = self.orders.wait_for(pace, rest);
                self.debt.rested(now.elapsed());
                if *pace == Pace::FULL {
                    self.debt = Debt::default();
                }
            } else {
                break;
            }
        }
        drop(pace);
        self.go_on();
        still
    }

    /// Where a file lies that was still on its way when the unit began; none where the unit is to end instead.
    /// Where it has to wait, `tell` hears of it first.
    pub(crate) fn file(&mut self, blob: Digest, mut tell: impl FnMut()) -> Option<PathBuf> {
        let mut told = false;
        let mut held = self.orders.hold();
        let found = loop {
            if self.stops() {
                break None;
            }
            // A unit that has stood still goes on as its pace says, one that hasn't has rested already.
            let goes_on = !told || *held > Pace::PAUSED;
            if let Some(path) = self.said.file(blob).filter(|_| goes_on) {
                break Some(path);
            }
            if std::mem::replace(&mut told, true) {
                held = self.orders.wait(held);
            } else {
                // Unlocked, as for a rest.
                drop(held);
                tell();
                held = self.orders.hold();
            }
        };
        drop(held);
        if told {
            // Who has stood still owes nothing.
            self.debt = Debt::default();
            self.go_on();
        }
        found
    }

    /// What has passed until now is no work.
    fn go_on(&mut self) {
        self.since = (Instant::now(), self.meter.read(self.begun));
    }
}

/// Rest that is owed, in nanoseconds; less than none where rests took longer than they were to. Pure.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Debt(i64);

impl Debt {
    /// So much of the time that has passed was computed in, which at this pace earns a rest.
    fn worked(&mut self, worked: Duration, passed: Duration, pace: Pace) {
        let percent = i64::from(pace.get());
        // At 0 there is no end to the rest, and at 100 there is none to be had.
        if (1..100).contains(&percent) {
            let whole = nanos(worked).saturating_mul(100) / percent;
            self.add(whole.saturating_sub(nanos(passed)));
        } else {
            self.0 = 0;
        }
    }

    /// The rest to take now, if it is worth it.
    fn due(self) -> Option<Duration> {
        let owed = Duration::from_nanos(u64::try_from(self.0).ok()?);
        (owed >= MIN_PAUSE).then_some(owed)
    }

    /// It took that long.
    fn rested(&mut self, time: Duration) {
        self.add(-nanos(time));
    }

    fn add(&mut self, nanos_owed: i64) {
        self.0 = self.0.saturating_add(nanos_owed).max(-nanos(MAX_CREDIT));
    }
}

fn nanos(time: Duration) -> i64 {
    i64::saturating_from(time.as_nanos())
}

#[cfg(test)]
mod tests {
    use super::*;
    use sojourn_protocol::trainer::ShardArrived;
    use std::thread;

    fn percent(percent: u8) -> Pace {
        Pace::percent(percent).unwrap()
    }

    #[test]
    fn rests_make_up_the_share_whatever_the_batches_and_the_clock() {
        let millis = Duration::from_millis;
        // Others take the core for a while in each batch.
        for (share, batch, late, taken) in [
            (50, 7, 0, 0),
            (50, 7, 1, 0),
            (10, 3, 2, 0),
            (90, 40, 1, 0),
            (1, 1, 0, 0),
            (50, 7, 1, 5),
        ] {
            let (mut debt, mut worked, mut rested) =
                (Debt::default(), Duration::ZERO, Duration::ZERO);
            while worked + rested < Duration::from_secs(100) {
                debt.worked(millis(batch), millis(batch + taken), percent(share));
                worked += millis(batch);
                rested += millis(taken);
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
        let small = Duration::from_micros(1500);
        debt.worked(small, small, percent(50));
        assert_eq!(debt.due(), None);
        debt.worked(small, small, percent(50));
        assert_eq!(debt.due(), Some(Duration::from_millis(3)));
        // The machine slept for a day.
        debt.rested(Duration::from_secs(86_400));
        let long = Duration::from_millis(503);
        debt.worked(long, long, percent(50));
        assert_eq!(debt.due(), Some(Duration::from_millis(3)));
        debt.worked(long, long, Pace::FULL);
        assert_eq!(debt.due(), None);
        debt.worked(Duration::MAX, long, percent(1));
        assert!(debt.due().is_some());
    }

    #[test]
    fn a_unit_at_rest_hears_the_next_pace_and_the_stop() {
        let orders = Orders::default();
        let said = Said::nothing();
        let mut pacer = Pacer::new(&orders, Arc::clone(&said), Meter::Wall);
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
        // Of a rest of a hundred hours it hears as well.
        orders.pace(percent(1));
        pacer.begun -= Duration::from_secs(3_600);
        assert!(pacer.meter.read(pacer.begun) >= Duration::from_secs(3_600));
        thread::scope(|scope| {
            let resting = scope.spawn(|| pacer.rest(|| {}));
            orders.stop(&said);
            assert_eq!(resting.join().unwrap(), Duration::ZERO);
        });
        orders.pace(Pace::PAUSED);
        assert!(pacer.stops());
        assert_eq!(pacer.rest(|| panic!("it ends")), Duration::ZERO);
    }

    #[test]
    fn a_unit_that_waits_for_a_file_hears_of_it_and_of_the_stop() {
        let orders = Orders::default();
        let said = Said::nothing();
        let mut pacer = Pacer::new(&orders, Arc::clone(&said), Meter::Wall);
        let [early, late, never] = [b"early".as_slice(), b"late", b"never"].map(Digest::of);
        let come =
            |blob: Digest| orders.here(&said, ShardArrived { blob, path: blob.to_string().into() });
        let path = |blob: Digest| Some(PathBuf::from(blob.to_string()));
        come(early);
        assert_eq!(pacer.file(early, || panic!("it is here")), path(early));
        // It comes while the slot is told, and while the unit waits; another, or a pace, isn't it.
        assert_eq!(pacer.file(late, || come(late)), path(late));
        let waits = |pacer: &mut Pacer<'_>, blob, meanwhile: &dyn Fn()| {
            thread::scope(|scope| {
                let (told, hears) = std::sync::mpsc::channel();
                let waiting = scope.spawn(move || pacer.file(blob, || told.send(()).unwrap()));
                hears.recv().unwrap();
                meanwhile();
                waiting.join().unwrap()
            })
        };
        let later = Digest::of(b"later");
        pacer.begun -= Duration::from_secs(3_600);
        let found = waits(&mut pacer, later, &|| {
            orders.pace(percent(1));
            come(never);
            come(later);
        });
        assert_eq!((found, pacer.debt), (path(later), Debt::default()));
        orders.pace(Pace::PAUSED);
        assert_eq!(pacer.file(later, || panic!("it is here")), path(later));
        let paused = Digest::of(b"paused");
        let found = waits(&mut pacer, paused, &|| {
            come(paused);
            orders.pace(Pace::FULL);
        });
        assert_eq!(found, path(paused));
        let other = Digest::of(b"other");
        assert_eq!(waits(&mut pacer, other, &|| orders.stop(&said)), None);
        assert_eq!(pacer.file(never, || panic!("it ends")), None);
    }
}

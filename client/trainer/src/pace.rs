//! Throttles a running unit: pauses between batches keep it to its pace, and it waits for shards that haven't arrived.
//!
//! Both change when a batch is trained, never its result.

use crate::unit_control::{UnitControl, UnitMessages};
use rustix::time::{ClockId, clock_gettime};
use sojourn_protocol::{digest::Digest, quantity::SaturatingFrom as _, trainer::Pace};
use std::{
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

/// Shorter pauses are added up: the clock of a sleeping thread is coarser than a small batch.
const MIN_PAUSE: Duration = Duration::from_millis(2);
/// At most so much of a pause that took too long is made up for by computing without pauses.
const MAX_CREDIT: Duration = Duration::from_millis(500);

/// The clock by which computing time is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Meter {
    /// Processor time: time in which other processes had the core counts as a pause.
    Processor,
    /// Wall-clock time: a GPU's computing time can't be measured otherwise.
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

/// Keeps a running unit to its pace.
#[derive(Debug)]
pub(crate) struct Pacer<'a> {
    control: &'a UnitControl,
    messages: Arc<UnitMessages>,
    meter: Meter,
    begun: Instant,
    /// When the last pause ended, by clock and by meter.
    since: (Instant, Duration),
    debt: Debt,
}

impl<'a> Pacer<'a> {
    /// For a unit that this thread begins now; `messages` are those about it.
    pub(crate) fn new(control: &'a UnitControl, messages: Arc<UnitMessages>, meter: Meter) -> Self {
        let begun = Instant::now();
        let since = (begun, meter.read(begun));
        Self { control, messages, meter, begun, since, debt: Debt::default() }
    }

    /// Whether the unit is to stop.
    pub(crate) fn is_stopped(&self) -> bool {
        self.messages.is_stopped()
    }

    /// Whether the unit computes all the time.
    pub(crate) fn is_full(&self) -> bool {
        self.control.now() == Pace::FULL
    }

    /// Pauses after a batch for as long as the pace asks. At pace 0 it first calls `before_pause`, then waits for another
    /// pace. Gives the time that was spent at pace 0.
    pub(crate) fn pause(&mut self, mut before_pause: impl FnMut()) -> Duration {
        let (mut paused, mut is_reported) = (Duration::ZERO, false);
        let mut pace = self.control.hold();
        let mut now = Instant::now();
        let passed = now.saturating_duration_since(self.since.0);
        let worked = self.meter.read(self.begun).saturating_sub(self.since.1);
        self.debt.worked(worked, passed, *pace);
        while !self.is_stopped() {
            if *pace == Pace::PAUSED && !is_reported {
                // Unlocked: the callback may take long, and a stop must be received meanwhile.
                drop(pace);
                before_pause();
                is_reported = true;
                pace = self.control.hold();
                continue;
            }
            now = Instant::now();
            if *pace == Pace::PAUSED {
                self.control.wait(&mut pace);
                paused += now.elapsed();
                // After pace 0 no pause is owed.
                self.debt = Debt::default();
            } else if let Some(rest) = self.debt.due() {
                self.control.wait_for(&mut pace, rest);
                self.debt.rested(now.elapsed());
                if *pace == Pace::FULL {
                    self.debt = Debt::default();
                }
            } else {
                break;
            }
        }
        drop(pace);
        self.restart_meter();
        paused
    }

    /// The path of a shard that hadn't arrived when the unit began; `None` where the unit is to stop. If it has to wait
    /// for the shard, it calls `before_wait` first.
    pub(crate) fn file(&mut self, blob: Digest, mut before_wait: impl FnMut()) -> Option<PathBuf> {
        let mut has_waited = false;
        let mut held = self.control.hold();
        let found = loop {
            if self.is_stopped() {
                break None;
            }
            // A unit that has waited must not go on at pace 0; one that hasn't was paused after its last batch.
            let goes_on = !has_waited || *held > Pace::PAUSED;
            if let Some(path) = self.messages.file(blob).filter(|_| goes_on) {
                break Some(path);
            }
            if std::mem::replace(&mut has_waited, true) {
                self.control.wait(&mut held);
            } else {
                // Unlocked, as in `pause`.
                drop(held);
                before_wait();
                held = self.control.hold();
            }
        };
        drop(held);
        if has_waited {
            // After a wait no pause is owed.
            self.debt = Debt::default();
            self.restart_meter();
        }
        found
    }

    /// Counts computing time from now on.
    fn restart_meter(&mut self) {
        self.since = (Instant::now(), self.meter.read(self.begun));
    }
}

/// The pause that is owed, in nanoseconds; negative where pauses took longer than they should have. Pure.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Debt(i64);

impl Debt {
    /// Adds the pause for `worked` of computing in `passed` of time, at this pace.
    fn worked(&mut self, worked: Duration, passed: Duration, pace: Pace) {
        let percent = i64::from(pace.get());
        // At 0 the pause has no end, and at 100 there is none.
        if (1..100).contains(&percent) {
            let whole = nanos(worked).saturating_mul(100) / percent;
            self.add(whole.saturating_sub(nanos(passed)));
        } else {
            self.0 = 0;
        }
    }

    /// The pause to take now, if it is long enough.
    fn due(self) -> Option<Duration> {
        let owed = Duration::from_nanos(u64::try_from(self.0).ok()?);
        (owed >= MIN_PAUSE).then_some(owed)
    }

    /// Takes off a pause of this length.
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
    fn rests_make_up_the_ratio_whatever_the_batches_and_the_clock() {
        let millis = Duration::from_millis;
        // Others take the core for a while in each batch.
        for (ratio, batch, late, taken) in [
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
                debt.worked(millis(batch), millis(batch + taken), percent(ratio));
                worked += millis(batch);
                rested += millis(taken);
                if let Some(rest) = debt.due() {
                    debt.rested(rest + millis(late));
                    rested += rest + millis(late);
                }
            }
            let is = worked.as_secs_f64() / (worked + rested).as_secs_f64() * 100.0;
            assert!((is - f64::from(ratio)).abs() < 0.5, "{ratio}: {is}");
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
        let control = UnitControl::default();
        let said = Arc::default();
        let mut pacer = Pacer::new(&control, Arc::clone(&said), Meter::Wall);
        let mut told = 0;
        assert_eq!(pacer.pause(|| told += 1), Duration::ZERO);
        control.set_pace(Pace::PAUSED);
        // Told, it wants it to go on: that is heard although it doesn't wait yet.
        pacer.pause(|| {
            told += 1;
            control.set_pace(Pace::FULL);
        });
        assert_eq!(told, 1);
        control.set_pace(Pace::PAUSED);
        thread::scope(|scope| {
            let resting = scope.spawn(|| pacer.pause(|| {}));
            control.set_pace(Pace::FULL);
            resting.join().unwrap();
        });
        // Of a rest of a hundred hours it hears as well.
        control.set_pace(percent(1));
        pacer.begun -= Duration::from_secs(3_600);
        assert!(pacer.meter.read(pacer.begun) >= Duration::from_secs(3_600));
        thread::scope(|scope| {
            let resting = scope.spawn(|| pacer.pause(|| {}));
            control.stop(&said);
            assert_eq!(resting.join().unwrap(), Duration::ZERO);
        });
        control.set_pace(Pace::PAUSED);
        assert!(pacer.is_stopped());
        assert_eq!(pacer.pause(|| panic!("it ends")), Duration::ZERO);
    }

    #[test]
    fn a_unit_that_waits_for_a_file_hears_of_it_and_of_the_stop() {
        let control = UnitControl::default();
        let said = Arc::default();
        let mut pacer = Pacer::new(&control, Arc::clone(&said), Meter::Wall);
        let [early, late, never] = [b"early".as_slice(), b"late", b"never"].map(Digest::of);
        let come = |blob: Digest| {
            control.shard_arrived(&said, ShardArrived { blob, path: blob.to_string().into() })
        };
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
            control.set_pace(percent(1));
            come(never);
            come(later);
        });
        assert_eq!((found, pacer.debt), (path(later), Debt::default()));
        control.set_pace(Pace::PAUSED);
        assert_eq!(pacer.file(later, || panic!("it is here")), path(later));
        let paused = Digest::of(b"paused");
        let found = waits(&mut pacer, paused, &|| {
            come(paused);
            control.set_pace(Pace::FULL);
        });
        assert_eq!(found, path(paused));
        let other = Digest::of(b"other");
        assert_eq!(waits(&mut pacer, other, &|| control.stop(&said)), None);
        assert_eq!(pacer.file(never, || panic!("it ends")), None);
    }
}

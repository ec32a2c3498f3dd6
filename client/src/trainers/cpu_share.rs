//! A running unit's CPU share, as it is kept: by pauses between batches, or by the kernel.

use sojourn_protocol::{quantity::mul_div, trainer::Pace};
use std::{convert::Infallible, time::Duration};
use tokio::{sync::watch, time::Instant};

/// How a unit's CPU share is kept.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct KeptCpuShare {
    /// The part of the owner's pace at which it computes.
    pub(crate) pace: Pace,
    /// The percentage of the time that the kernel leaves it.
    pub(crate) kernel: u8,
    /// The part of the processor that the unit gets, as a multiple of what it would get with equal CPU shares.
    pub(crate) relative: f64,
}

impl KeptCpuShare {
    /// The CPU share that each unit has where all have equal CPU shares.
    pub(crate) const EQUAL: Self = Self { pace: Pace::FULL, kernel: 100, relative: 1.0 };

    /// The unit's pace where the owner allows this one. A unit that isn't paused goes on.
    fn of(self, owner: Pace) -> Pace {
        let percent = u32::from(owner.get()) * u32::from(self.pace.get());
        let percent = u8::try_from(percent.div_ceil(100)).unwrap_or(100);
        Pace::percent(percent).unwrap_or(owner)
    }
}

/// The CPU share of a unit that runs, and what that has meant for its speed.
#[derive(Debug)]
pub(crate) struct UnitPace {
    owner: watch::Receiver<Pace>,
    cpu_share: watch::Receiver<KeptCpuShare>,
    pace: watch::Sender<Pace>,
    /// The present CPU share, since when it holds, and the time before as equal CPU shares would have taken it.
    kept: KeptCpuShare,
    since: Instant,
    begun: Instant,
    as_equal: Duration,
}

impl UnitPace {
    /// Of a unit that begins now.
    pub(crate) fn new(
        owner: watch::Receiver<Pace>,
        cpu_share: watch::Receiver<KeptCpuShare>,
    ) -> Self {
        let kept = *cpu_share.borrow();
        let pace = watch::Sender::new(kept.of(*owner.borrow()));
        let now = Instant::now();
        Self { owner, cpu_share, pace, kept, since: now, begun: now, as_equal: Duration::ZERO }
    }

    /// The pace that holds at each time.
    pub(crate) fn subscribe(&self) -> watch::Receiver<Pace> {
        self.pace.subscribe()
    }

    /// Keeps the pace for as long as this is polled.
    pub(crate) async fn keep(&mut self) -> Infallible {
        loop {
            let kept = *self.cpu_share.borrow_and_update();
            self.pass();
            self.kept = kept;
            let pace = kept.of(*self.owner.borrow_and_update());
            self.pace.send_if_modified(|now| std::mem::replace(now, pace) != pace);
            let changed = tokio::select! {
                changed = self.owner.changed() => changed,
                changed = self.cpu_share.changed() => changed,
            };
            if changed.is_err() {
                // The driver has forgotten the unit, and is about to abort it.
                return std::future::pending().await;
            }
        }
    }

    /// Counts the time since the last look.
    fn pass(&mut self) {
        let now = Instant::now();
        self.as_equal += (now - self.since).mul_f64(self.kept.relative.max(0.0));
        self.since = now;
    }

    /// A time of training in microseconds, as it would have been with equal CPU shares.
    pub(crate) fn as_equal(&mut self, micros: u64) -> u64 {
        self.pass();
        let (whole, equal) = (self.since - self.begun, self.as_equal);
        let [whole, equal] =
            [whole, equal].map(|time| u64::try_from(time.as_micros()).unwrap_or(u64::MAX));
        if whole == 0 { micros } else { mul_div(micros, equal, whole) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt as _;
    use tokio::time::advance;

    fn percent(percent: u8) -> Pace {
        Pace::percent(percent).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn a_unit_has_its_cpu_share_of_the_owners_pace() {
        let owner = watch::Sender::new(percent(50));
        let cpu_share = watch::Sender::new(KeptCpuShare::EQUAL);
        let mut unit = UnitPace::new(owner.subscribe(), cpu_share.subscribe());
        let pace = unit.subscribe();
        let look = |unit: &mut UnitPace| {
            assert!(unit.keep().now_or_never().is_none());
            pace.borrow().get()
        };
        assert_eq!(look(&mut unit), 50);
        cpu_share.send_replace(KeptCpuShare { pace: percent(25), ..KeptCpuShare::EQUAL });
        assert_eq!(look(&mut unit), 13);
        owner.send_replace(percent(1));
        assert_eq!(look(&mut unit), 1, "a small share isn't a pause");
        owner.send_replace(Pace::PAUSED);
        assert_eq!(look(&mut unit), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_cpu_share_does_not_change_what_is_measured() {
        let owner = watch::Sender::new(Pace::FULL);
        let cpu_share = watch::Sender::new(KeptCpuShare::EQUAL);
        let mut unit = UnitPace::new(owner.subscribe(), cpu_share.subscribe());
        assert_eq!(unit.as_equal(7), 7, "no time has passed");
        advance(Duration::from_secs(10)).await;
        cpu_share.send_replace(KeptCpuShare { relative: 0.25, ..KeptCpuShare::EQUAL });
        assert!(unit.keep().now_or_never().is_none());
        advance(Duration::from_secs(40)).await;
        // Fifty seconds, in which it had as much as in twenty.
        assert_eq!(unit.as_equal(50_000_000), 20_000_000);
        assert_eq!(unit.as_equal(25_000_000), 10_000_000);
    }
}

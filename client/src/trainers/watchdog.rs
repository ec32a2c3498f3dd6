//! Tells when a unit has come to a standstill, by the pace that it had itself.

use parking_lot::Mutex;
use sojourn_protocol::trainer::Pace;
use std::time::Duration;
use tokio::{
    sync::watch,
    time::{Instant, sleep_until},
};

/// A batch may take so many times as long as the longest before it: a trainer of a low priority gets a hundredth
/// of the time while the machine's owner keeps every core busy.
const MAX_SLOWDOWN: u32 = 100;
/// Loading a model, and its first batch, may take so many times as long as any batch may.
const FIRST_BATCH_FACTOR: u32 = 10;

/// Watches one unit. Its time doesn't pass while its owner has it stand still, or while it waits for what is on
/// its way.
#[derive(Debug)]
pub(crate) struct Watchdog {
    /// The shortest time after which a unit may be said to stand still.
    least: Duration,
    state: Mutex<State>,
    /// Does it wait for what is on its way?
    waits: watch::Sender<bool>,
}

#[derive(Debug)]
struct State {
    /// The last sign of progress.
    last: Instant,
    /// The longest time between two of them; none before the second.
    longest: Option<Duration>,
    /// Batches done.
    done: u32,
}

impl Watchdog {
    /// For a unit that starts now.
    pub(crate) fn new(least: Duration) -> Self {
        let state = State { last: Instant::now(), longest: None, done: 0 };
        Self { least, state: Mutex::new(state), waits: watch::Sender::new(false) }
    }

    /// So many batches are done.
    pub(crate) fn done(&self, batches: u32) {
        let mut state = self.state.lock();
        if batches <= state.done {
            return;
        }
        let now = Instant::now();
        let took = now.duration_since(state.last);
        let first = state.done == 0;
        (state.done, state.last) = (batches, now);
        if !first {
            state.longest = state.longest.max(Some(took));
        }
    }

    /// The unit does something that takes time and is no batch.
    pub(crate) fn is_busy(&self) {
        self.state.lock().last = Instant::now();
    }

    /// The unit waits for a shard that is on its way; or the shard has come, and the unit is to go on.
    pub(crate) fn waits(&self, waits: bool) {
        self.is_busy();
        self.waits.send_replace(waits);
    }

    /// Ends when the unit has stood still for longer than it may: says for how long. `quota`: the percentage
    /// of the time that the kernel leaves it, at its full pace.
    pub(crate) async fn stalled(
        &self,
        mut pace: watch::Receiver<Pace>,
        quota: impl Fn() -> u8,
    ) -> Duration {
        let mut waits = self.waits.subscribe();
        loop {
            // The sender lives as long as `self`.
            let _ = waits.wait_for(|waits| !waits).await;
            let ratio = *pace.borrow_and_update();
            if ratio == Pace::PAUSED {
                if pace.changed().await.is_err() {
                    return std::future::pending().await;
                }
                self.is_busy();
                continue;
            }
            let (last, patience) = self.patience(ratio.get().min(quota()));
            if last.elapsed() >= patience {
                return last.elapsed();
            }
            tokio::select! {
                () = sleep_until(last + patience) => {}
                _ = waits.changed() => {}
                changed = pace.changed() => if changed.is_err() {
                    sleep_until(last + patience).await;
                }
            }
        }
    }

    /// Since when, and for how long, it may stand still where it has so many percent of the time.
    fn patience(&self, percent: u8) -> (Instant, Duration) {
        let state = self.state.lock();
        let patience = match state.longest {
            Some(longest) => longest.saturating_mul(MAX_SLOWDOWN).max(self.least),
            None => self.least.saturating_mul(FIRST_BATCH_FACTOR),
        };
        // It may have slowed down since the longest batch.
        let slower = 100 / u32::from(percent.clamp(1, 100));
        (state.last, patience.saturating_mul(slower))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;
    use tokio::time::advance;

    const MIN_STALL: Duration = Duration::from_secs(60);

    fn stalled(dog: &Watchdog, pace: &watch::Sender<Pace>) -> Option<Duration> {
        dog.stalled(pace.subscribe(), || 100).now_or_never()
    }

    #[tokio::test(start_paused = true)]
    async fn a_unit_stands_still_by_its_own_pace() {
        let (dog, pace) = (Watchdog::new(MIN_STALL), watch::Sender::new(Pace::FULL));
        advance(Duration::from_secs(599)).await;
        assert_eq!(stalled(&dog, &pace), None, "its first batch may take long");
        dog.done(1);
        for batch in 2..5 {
            advance(Duration::from_secs(10)).await;
            dog.done(batch);
        }
        advance(Duration::from_secs(999)).await;
        assert_eq!(stalled(&dog, &pace), None, "batches of 10 s may take a hundred times as long");
        dog.done(4);
        advance(Duration::from_secs(1)).await;
        assert_eq!(stalled(&dog, &pace), Some(Duration::from_secs(1000)), "4 was done before");
        dog.done(5);
        assert_eq!(stalled(&dog, &pace), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_unit_that_waits_for_a_shard_does_not_stand_still_until_that_has_come() {
        let (dog, pace) = (Watchdog::new(MIN_STALL), watch::Sender::new(Pace::FULL));
        dog.done(1);
        dog.done(2);
        let mut ends = Box::pin(dog.stalled(pace.subscribe(), || 100));
        assert_eq!(ends.as_mut().now_or_never(), None);
        dog.waits(true);
        // Both a new check and one that has begun before.
        assert_eq!(ends.as_mut().now_or_never(), None);
        advance(Duration::from_secs(86_400)).await;
        assert_eq!((ends.as_mut().now_or_never(), stalled(&dog, &pace)), (None, None));
        dog.waits(false);
        assert_eq!(ends.as_mut().now_or_never(), None);
        advance(MIN_STALL).await;
        assert_eq!(ends.await, MIN_STALL);
        dog.done(3);
        advance(Duration::from_secs(59)).await;
        assert_eq!(stalled(&dog, &pace), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_unit_that_its_owner_slows_down_or_stops_does_not_stand_still() {
        let (dog, pace) = (Watchdog::new(MIN_STALL), watch::Sender::new(Pace::FULL));
        dog.done(1);
        dog.done(2);
        pace.send_replace(Pace::percent(10).unwrap());
        advance(Duration::from_secs(599)).await;
        assert_eq!(stalled(&dog, &pace), None);
        pace.send_replace(Pace::FULL);
        assert!(stalled(&dog, &pace).is_some());
        assert_eq!(dog.stalled(pace.subscribe(), || 10).now_or_never(), None, "a quota of 10 %");
        pace.send_replace(Pace::PAUSED);
        advance(Duration::from_secs(86_400)).await;
        let mut ends = Box::pin(dog.stalled(pace.subscribe(), || 100));
        assert_eq!(ends.as_mut().now_or_never(), None);
        pace.send_replace(Pace::FULL);
        assert_eq!(ends.as_mut().now_or_never(), None, "its time begins anew");
        assert_eq!(ends.await, MIN_STALL);
    }
}

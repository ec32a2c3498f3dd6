//! Limits the rate and the number of transfers: one throttle for each direction, shared by all transfers of a daemon. The
//! rate can change at any time, also for transfers that wait.
//!
//! A token bucket that may be overdrawn by one piece: a piece is paid for after it was taken, so that pieces can be of
//! any size. Waiting transfers are served in the order in which they came, a piece at a time.

use super::{delta_policy::DeltaPolicy, moving::Moving, speed::Speed};
use crate::{control::Transfer, limits::DataUsage};
use sojourn_protocol::{
    inventory::Links,
    quantity::{SaturatingFrom as _, to_u64, to_usize},
};
use std::{num::NonZeroU64, sync::Arc, time::Duration};
use tokio::{
    sync::{Mutex, Semaphore, SemaphorePermit, watch},
    time::{Instant, sleep},
};

/// Transfers that run at once in one direction.
const MAX_TRANSFERS: usize = 4;
/// An idle throttle saves up the bytes of this time, so that late timers cost no speed.
const SLACK: Duration = Duration::from_millis(50);
/// Pieces in a second, so that transfers which share a slow line all move.
const PIECES_PER_SECOND: u64 = 20;
/// Bounds of a piece, in bytes.
const MIN_PIECE: u64 = 1 << 10;
const MAX_PIECE: u64 = 256 << 10;
/// A debt is counted in these parts of a byte: what one byte a second pays in a nanosecond.
const PARTS: i128 = 1_000_000_000;

/// Most bytes of blobs in a second, in each direction; none for no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rates {
    /// From the server.
    pub download: Option<NonZeroU64>,
    /// To the server.
    pub upload: Option<NonZeroU64>,
}

/// Both directions.
#[derive(Debug)]
pub(crate) struct Bandwidth {
    pub(crate) download: Throttle,
    pub(crate) upload: Throttle,
    /// The transfers that run.
    pub(super) moving: Moving,
    /// Which checkpoints are worth a delta.
    pub(super) delta_policy: DeltaPolicy,
    /// Held while a delta is made.
    pub(super) encoding: Mutex<()>,
}

impl Bandwidth {
    /// Bandwidth whose bytes are counted.
    pub(crate) fn new(rates: Rates, usage: &Arc<DataUsage>) -> Self {
        let bandwidth = Self {
            download: Throttle::new(Arc::clone(usage)),
            upload: Throttle::new(Arc::clone(usage)),
            moving: Moving::default(),
            delta_policy: DeltaPolicy::new(),
            encoding: Mutex::default(),
        };
        bandwidth.set(rates);
        bandwidth
    }

    /// From now on these hold, also for transfers under way.
    pub(crate) fn set(&self, rates: Rates) {
        self.download.rate.send_replace(rates.download);
        self.upload.rate.send_replace(rates.upload);
    }

    /// The speed of each direction as reported to the server, in bytes per second.
    pub(crate) fn links(&self) -> Links {
        let speed = |line: &Throttle| line.speed.to_report(line.rate().map(NonZeroU64::get));
        Links { download: speed(&self.download), upload: speed(&self.upload) }
    }

    /// The transfers that move at the moment.
    pub(crate) fn transfers(&self) -> Vec<Transfer> {
        self.moving.list()
    }
}

/// One direction.
#[derive(Debug)]
pub(crate) struct Throttle {
    rate: watch::Sender<Option<NonZeroU64>>,
    /// Held by whoever is next.
    debt: Mutex<Debt>,
    permits: Semaphore,
    /// How fast it is.
    pub(super) speed: Speed,
    /// Counts what passes.
    usage: Arc<DataUsage>,
}

impl Throttle {
    fn new(usage: Arc<DataUsage>) -> Self {
        let debt = Debt { parts: 0, at: Instant::now() };
        Self {
            rate: watch::Sender::new(None),
            debt: Mutex::new(debt),
            permits: Semaphore::new(MAX_TRANSFERS),
            speed: Speed::default(),
            usage,
        }
    }

    /// Waits until fewer than `MAX_TRANSFERS` transfers run. A transfer counts as running for as long as its permit is held.
    pub(crate) async fn permit(&self) -> Option<SemaphorePermit<'_>> {
        // Nobody closes it.
        self.permits.acquire().await.ok()
    }

    /// Waits until the debt of earlier bytes is paid, then adds `bytes` to the debt; without a limit, returns at once. Called
    /// before sending, and after receiving.
    pub(crate) async fn take(&self, bytes: usize) {
        self.usage.count(bytes);
        if self.rate().is_none() {
            return;
        }
        let mut debt = self.debt.lock().await;
        let mut rates = self.rate.subscribe();
        loop {
            let rate = *rates.borrow_and_update();
            let Some(rate) = rate else { break };
            let wait = debt.wait(Instant::now(), rate);
            if wait.is_zero() {
                debt.parts += i128::from(to_u64(bytes)) * PARTS;
                return;
            }
            // The sender lives as long as `self`.
            tokio::select! {
                () = sleep(wait) => {}
                _ = rates.changed() => {}
            }
            // Until now at the old rate.
            debt.pay(Instant::now(), rate);
        }
        debt.parts = 0;
    }

    /// How many bytes to take at once.
    pub(crate) fn piece(&self) -> usize {
        let piece = self.rate().map_or(MAX_PIECE, |rate| rate.get() / PIECES_PER_SECOND);
        to_usize(piece.clamp(MIN_PIECE, MAX_PIECE))
    }

    /// The rate that holds now, in bytes a second.
    pub(crate) fn rate(&self) -> Option<NonZeroU64> {
        *self.rate.borrow()
    }
}

/// The bytes that have passed beyond the rate; negative for bytes that are saved up.
#[derive(Debug)]
struct Debt {
    parts: i128,
    at: Instant,
}

impl Debt {
    /// Reduces the debt by what the rate allows for the time since the last payment.
    fn pay(&mut self, now: Instant, rate: NonZeroU64) {
        let paid = |time: Duration| {
            i128::saturating_from(time.as_nanos()).saturating_mul(rate.get().into())
        };
        let paid_now = paid(now.saturating_duration_since(self.at));
        self.parts = self.parts.saturating_sub(paid_now).max(-paid(SLACK));
        self.at = now;
    }

    /// How long until all is paid.
    fn wait(&mut self, now: Instant, rate: NonZeroU64) -> Duration {
        self.pay(now, rate);
        let nanos = self.parts.max(0).unsigned_abs().div_ceil(rate.get().into());
        Duration::from_nanos(u64::saturating_from(nanos))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(rates: Rates) -> Bandwidth {
        Bandwidth::new(rates, &Arc::default())
    }

    fn rate(bytes: u64) -> Option<NonZeroU64> {
        NonZeroU64::new(bytes)
    }

    fn throttle_of(bytes: u64) -> Throttle {
        lines(Rates { download: rate(bytes), upload: None }).download
    }

    /// Takes pieces until the time is over; how many bytes that were.
    async fn pull(throttle: &Throttle, piece: usize, time: Duration) -> u64 {
        let mut taken = 0;
        let _ = tokio::time::timeout(time, async {
            loop {
                throttle.take(piece).await;
                taken += piece as u64;
            }
        })
        .await;
        taken
    }

    fn is_near(bytes: u64, expected: u64) -> bool {
        bytes.abs_diff(expected) * 20 <= expected
    }

    #[tokio::test(start_paused = true)]
    async fn ten_seconds_carry_what_the_rate_says() {
        for bytes in [20_000, 2_000_000, 20_000_000, 1_000_000_000] {
            let throttle = throttle_of(bytes);
            // Idle time saves up little.
            sleep(Duration::from_secs(100)).await;
            for piece in [throttle.piece(), 1000] {
                let taken = pull(&throttle, piece, Duration::from_secs(10)).await;
                assert!(is_near(taken, 10 * bytes), "{taken} at {bytes} a second");
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn transfers_share_a_line_fairly() {
        let throttle = Arc::new(throttle_of(3_000_000));
        let pulls = (0..3).map(|_| {
            let throttle = Arc::clone(&throttle);
            tokio::spawn(
                async move { pull(&throttle, throttle.piece(), Duration::from_secs(10)).await },
            )
        });
        for taken in futures::future::join_all(pulls).await {
            let taken = taken.unwrap();
            assert!(is_near(taken, 10_000_000), "{taken}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn another_rate_holds_at_once_for_those_who_wait() {
        let bandwidth = lines(Rates { download: rate(1), upload: rate(1) });
        let throttle = &bandwidth.download;
        throttle.take(1_000_000_000).await;
        let begun = Instant::now();
        let faster = async {
            sleep(Duration::from_secs(1)).await;
            bandwidth.set(Rates { download: rate(1_000_000_000), upload: None });
        };
        tokio::join!(throttle.take(1), faster);
        let seconds = begun.elapsed().as_secs_f64();
        assert!((1.9..2.1).contains(&seconds), "{seconds}");
        bandwidth.upload.take(usize::MAX).await;
        bandwidth.upload.take(usize::MAX).await;
        bandwidth.set(Rates { download: rate(1), upload: None });
        throttle.take(1_000_000_000).await;
        let off = async { bandwidth.set(Rates::default()) };
        tokio::join!(throttle.take(1), off);
        assert!(begun.elapsed().as_secs_f64() < 4.0, "a line without a limit is waited for");
    }

    #[tokio::test(start_paused = true)]
    async fn only_so_many_transfers_run_at_once() {
        let throttle = Throttle::new(Arc::default());
        let permits =
            futures::future::join_all((0..MAX_TRANSFERS).map(|_| throttle.permit())).await;
        let next = throttle.permit();
        assert!(tokio::time::timeout(Duration::from_secs(1), next).await.is_err());
        drop(permits);
        assert!(throttle.permit().await.is_some());
    }
}

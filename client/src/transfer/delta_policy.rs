//! Decides whether a checkpoint is sent as its difference from its base, by the measured costs of uploads and deltas. It
//! has no clock of its own.
//!
//! Sent whole, a checkpoint takes its bytes over the line's speed. As a delta it takes a share of that, and
//! time of two processors: here to make it, there to undo it. On a fast line, or for a small checkpoint,
//! that is more than it saves.

use parking_lot::Mutex;
use std::{num::NonZeroU64, time::Duration};

/// A delta must save at least this time: less is lost in costs that aren't measured.
const MIN_GAIN: Duration = Duration::from_millis(5);
/// The weight of a new measurement in the moving average.
const NEW: f64 = 0.3;
/// Seconds for a byte, to make a delta and to undo it, until one was made: both at 300 MB/s.
const FIRST_COST: f64 = 2.0 / 300e6;
/// The ratio of a delta to the whole, until one was made.
const FIRST_RATIO: f64 = 0.75;
/// With each checkpoint that is sent whole, the measured costs of deltas move by this ratio towards the initial ones.
/// Otherwise a machine that was busy once, or a trial whose deltas saved nothing, would decide for ever.
const FORGOTTEN: f64 = 0.02;
/// A trial whose deltas save nothing says little about the next one.
const MAX_RATIO: f64 = 0.9;

/// The measured costs of uploads and deltas.
#[derive(Debug)]
pub(super) struct DeltaPolicy(Mutex<Costs>);

#[derive(Debug, Clone, Copy, PartialEq)]
struct Costs {
    /// Bytes a second; none until something was sent.
    speed: Option<f64>,
    /// Seconds for a byte of the whole.
    cost: f64,
    /// Of the whole.
    ratio: f64,
}

impl DeltaPolicy {
    pub(super) fn new() -> Self {
        Self(Mutex::new(Costs { speed: None, cost: FIRST_COST, ratio: FIRST_RATIO }))
    }

    /// So many bytes went over the line.
    pub(super) fn sent(&self, bytes: u64, took: Duration) {
        let speed = float(bytes) / took.as_secs_f64().max(1e-6);
        let mut costs = self.0.lock();
        costs.speed = Some(costs.speed.map_or(speed, |before| mixed(before, speed)));
    }

    /// A delta was made.
    pub(super) fn made(&self, whole: u64, delta: u64, took: Duration) {
        let whole = float(whole).max(1.0);
        let mut costs = self.0.lock();
        costs.cost = mixed(costs.cost, 2.0 * took.as_secs_f64() / whole);
        costs.ratio = mixed(costs.ratio, float(delta) / whole);
    }

    /// Whether a checkpoint of so many bytes is to be sent as a delta; `rate` is the allowed upload rate.
    pub(super) fn pays(&self, bytes: u64, rate: Option<NonZeroU64>) -> bool {
        let mut costs = self.0.lock();
        let Costs { speed, cost, ratio } = *costs;
        let rate = rate.map(|rate| float(rate.get()));
        let speed = match (speed, rate) {
            (Some(speed), Some(rate)) => speed.min(rate),
            (Some(speed), None) => speed,
            (None, Some(rate)) => rate,
            // The first one measures the line.
            (None, None) => return false,
        };
        let saved = (1.0 - ratio.min(MAX_RATIO)) / speed;
        let pays = float(bytes) * (saved - cost) > MIN_GAIN.as_secs_f64();
        if !pays {
            costs.cost += FORGOTTEN * (FIRST_COST - cost);
            costs.ratio += FORGOTTEN * (FIRST_RATIO - ratio);
        }
        pays
    }
}

fn mixed(before: f64, now: f64) -> f64 {
    before + NEW * (now - before)
}

#[expect(clippy::cast_precision_loss, reason = "an estimate")]
fn float(bytes: u64) -> f64 {
    bytes as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(bytes: u64, millis: u64) -> DeltaPolicy {
        let worth = DeltaPolicy::new();
        worth.sent(bytes, Duration::from_millis(millis));
        worth
    }

    #[test]
    fn a_fast_line_and_a_small_checkpoint_are_not_worth_a_delta() {
        assert!(!DeltaPolicy::new().pays(50_000_000, None), "nothing is known of the line yet");
        // A small one on this very machine.
        assert!(!after(100_000, 2).pays(100_000, None));
        // A large one at 300 MB/s.
        assert!(!after(60_000_000, 200).pays(60_000_000, None));
        assert!(!after(60_000_000, 3000).pays(10_000, None));
    }

    #[test]
    fn a_slow_line_is() {
        // 20 MB/s, measured or as the owner says.
        assert!(after(60_000_000, 3000).pays(60_000_000, None));
        assert!(after(60_000_000, 200).pays(60_000_000, NonZeroU64::new(20_000_000)));
        assert!(DeltaPolicy::new().pays(60_000_000, NonZeroU64::new(20_000_000)));
        assert!(after(100_000, 100).pays(100_000, None));
    }

    #[test]
    fn the_measured_cost_of_deltas_decides() {
        let worth = after(60_000_000, 3000);
        for _ in 0..20 {
            worth.made(60_000_000, 59_000_000, Duration::from_secs(1));
        }
        assert!(!worth.pays(60_000_000, None), "slow to make, and of no use");
        assert!(worth.pays(60_000_000, NonZeroU64::new(1_000_000)), "tried again");
        let again = (0..500).position(|_| worth.pays(60_000_000, None));
        assert!(again.is_some_and(|again| again > 10), "tried again, but not at once: {again:?}");
        for _ in 0..20 {
            worth.made(60_000_000, 40_000_000, Duration::from_millis(100));
        }
        assert!(worth.pays(60_000_000, None));
    }
}

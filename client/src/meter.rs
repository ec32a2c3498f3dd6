//! How fast something counts up, by what is seen of it whenever somebody asks: nothing is measured while nobody does.

use parking_lot::Mutex;
use std::time::Duration;
use tokio::time::Instant;

/// A rate forgets what was before in about this time.
const MEMORY: Duration = Duration::from_secs(8);
/// Questions that come closer together get the same answer.
const MIN_INTERVAL: Duration = Duration::from_millis(250);

/// A rate. The first answer is of the whole time since the beginning, later ones are of the last seconds.
#[derive(Debug)]
pub(crate) struct Meter(Mutex<Seen>);

#[derive(Debug)]
struct Seen {
    at: Instant,
    count: u64,
    rate: Option<f64>,
}

impl Meter {
    /// Begins now, at a count.
    pub(crate) fn new(count: u64) -> Self {
        Self(Mutex::new(Seen { at: Instant::now(), count, rate: None }))
    }

    /// The rate in a second, where it is known; the count has come so far.
    #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
    pub(crate) fn rate(&self, count: u64) -> Option<f64> {
        let mut seen = self.0.lock();
        let now = Instant::now();
        let passed = now.saturating_duration_since(seen.at);
        if passed < MIN_INTERVAL {
            return seen.rate;
        }
        let newest = count.saturating_sub(seen.count) as f64 / passed.as_secs_f64();
        let rate = match seen.rate {
            None => newest,
            Some(before) => {
                let kept = (-passed.as_secs_f64() / MEMORY.as_secs_f64()).exp();
                before * kept + newest * (1.0 - kept)
            }
        };
        *seen = Seen { at: now, count, rate: Some(rate) };
        Some(rate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::advance;

    #[tokio::test(start_paused = true)]
    async fn a_rate_follows_what_is_seen() {
        let meter = Meter::new(100);
        assert_eq!(meter.rate(100), None, "too soon to say");
        advance(Duration::from_secs(10)).await;
        assert_eq!(meter.rate(600), Some(50.0));
        assert_eq!(meter.rate(700), Some(50.0), "asked again at once");
        let mut rate = 0.0;
        for second in 1..=30_u64 {
            advance(Duration::from_secs(1)).await;
            rate = meter.rate(600 + 10 * second).unwrap();
        }
        assert!((10.0..12.0).contains(&rate), "{rate}");
        advance(Duration::from_secs(1)).await;
        assert!(meter.rate(0).unwrap() < rate, "what begins anew is no rate below zero");
    }
}

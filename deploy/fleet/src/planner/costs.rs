//! What work has cost at best, lately: where there is time, purchases wait for prices that are low among these.

use super::pools::float;
use sojourn_protocol::time::{Millis, UnixMillis};
use std::collections::VecDeque;

/// Between two costs that are remembered.
const EVERY: Millis = Millis::from_secs(600);
/// For how long they are remembered.
const LAST: Millis = Millis::from_secs(48 * 3600);
/// Costs of so long a time are needed to say what is low.
const ENOUGH: Millis = Millis::from_secs(2 * 3600);
/// Who has to work for more than this share of the time that is left doesn't wait.
const NO_WAIT: f64 = 0.98;
/// Milliseconds of an hour.
const HOUR: f64 = 3_600_000.0;

/// Costs with their times, the earliest first; of the same work each.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct BestCosts {
    costs: VecDeque<(UnixMillis, f64)>,
}

impl BestCosts {
    /// Work costs so much now.
    pub(super) fn note(&mut self, now: UnixMillis, cost: f64) {
        if self.costs.back().is_some_and(|(last, _)| now < *last + EVERY) || !cost.is_finite() {
            return;
        }
        self.costs.push_back((now, cost));
        while self.costs.front().is_some_and(|(first, _)| *first + LAST < now) {
            self.costs.pop_front();
        }
    }

    /// The most that is to be paid by somebody who has so many times the time that he needs, where machines are taken back
    /// `rate` times an hour; none: he doesn't wait.
    ///
    /// It is the lowest cost with which he would have worked for the share of time that he needs, had he bought at no
    /// more than this in the last days.
    pub(super) fn limit(&self, now: UnixMillis, patience: f64, rate: f64) -> Option<f64> {
        let needed = patience.recip();
        let (first, _) = self.costs.front()?;
        if needed.is_nan() || needed >= NO_WAIT || now < *first + ENOUGH {
            return None;
        }
        let mut costs: Vec<f64> = self.costs.iter().map(|(_, cost)| *cost).collect();
        costs.sort_by(f64::total_cmp);
        // The share grows with the limit.
        let place = costs.partition_point(|limit| self.share_of_time(*limit, rate) < needed);
        costs.get(place).or(costs.last()).copied()
    }

    /// For what share of the time a machine would have been there for somebody who buys one whenever he has none and it
    /// costs at most so much.
    fn share_of_time(&self, limit: f64, rate: f64) -> f64 {
        let (mut there, mut worked, mut all) = (0.0, 0.0, 0.0);
        let mut last: Option<UnixMillis> = None;
        for (at, cost) in &self.costs {
            let hours = float(last.map_or(EVERY, |last| *at - last).0) / HOUR;
            last = Some(*at);
            there = if *cost <= limit { 1.0 } else { there / (1.0 + rate * hours) };
            worked += there * hours;
            all += hours;
        }
        if all > 0.0 { worked / all } else { 1.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(n: u32) -> UnixMillis {
        UnixMillis(u64::from(n) * EVERY.0)
    }

    #[test]
    fn who_has_time_waits_for_what_is_low_among_the_last_costs() {
        let mut costs = BestCosts::default();
        for n in 0..100 {
            costs.note(at(n), f64::from(n % 10));
            costs.note(UnixMillis(at(n).0 + 1), 1000.0);
        }
        // Machines that are taken back at once are there only while they are cheap enough to be bought again.
        let often = 1e9;
        assert_eq!(costs.limit(at(100), 1.0, often), None, "there is no time to spare");
        assert_eq!(costs.limit(at(11), 1.25, often), None, "too little is known");
        assert_eq!(costs.limit(at(100), 1.3, often), Some(7.0));
        assert_eq!(costs.limit(at(100), 9.0, often), Some(1.0));
        for n in 100..500 {
            costs.note(at(n), 5.0);
        }
        assert_eq!(costs.limit(at(500), 1.3, often), Some(5.0));
    }

    #[test]
    fn who_keeps_machines_for_long_can_wait_for_less() {
        let mut costs = BestCosts::default();
        for n in 0..200 {
            costs.note(at(n), if n % 20 == 0 { 1.0 } else { 2.0 });
        }
        assert_eq!(costs.limit(at(200), 1.25, 0.0), Some(1.0), "what is bought stays");
        assert_eq!(costs.limit(at(200), 1.25, 1.0), Some(2.0), "it lasts an hour, of three");
    }
}

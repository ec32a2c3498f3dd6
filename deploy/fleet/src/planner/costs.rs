//! The lowest costs of work, lately: where there is time, purchases wait for prices that are low among these.

use super::pools::float;
use sojourn_protocol::time::{Millis, UnixMillis};
use std::collections::{BTreeMap, VecDeque};

/// The time between two costs that are remembered.
const SAMPLE_INTERVAL: Millis = Millis::from_secs(600);
/// A cost speaks for the time since the one before, but for no more than this.
const MAX_SAMPLE_WEIGHT: Millis = Millis::from_secs(1200);
/// For how long costs are remembered.
const RETENTION: Millis = Millis::from_secs(48 * 3600);
/// Costs of so long a time are needed to say what is low.
const MIN_HISTORY: Millis = Millis::from_secs(2 * 3600);
/// A job that needs this part of the time to its deadline, or more, buys at any price.
const NO_WAIT: f64 = 0.98;
/// Milliseconds of an hour.
const HOUR: f64 = 3_600_000.0;

/// The costs of each kind of work, by the memory of the smallest slots that are large enough for it: prices of smaller slots are no
/// prices for it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Costs(BTreeMap<u64, BestCosts>);

impl Costs {
    /// Is a cost of this kind wanted now?
    pub(super) fn is_due(&self, kind: u64, now: UnixMillis) -> bool {
        self.0.get(&kind).is_none_or(|costs| costs.is_due(now))
    }

    /// Work of a kind costs so much now; infinity where nothing is sold for it.
    pub(super) fn note(&mut self, kind: u64, now: UnixMillis, cost: f64) {
        self.0.entry(kind).or_default().note(now, cost);
    }

    /// Forgets the costs that are too old to be of use.
    pub(super) fn forget(&mut self, now: UnixMillis) {
        self.0
            .retain(|_, costs| costs.costs.back().is_some_and(|(last, _)| now < *last + RETENTION));
    }

    /// The most that is to be paid for a kind: see [`BestCosts::limit`].
    pub(super) fn limit(
        &self,
        kind: u64,
        now: UnixMillis,
        patience: f64,
        rate: f64,
    ) -> Option<f64> {
        self.0.get(&kind)?.limit(now, patience, rate)
    }
}

/// Costs of one kind of work with their times, the earliest first.
#[derive(Debug, Clone, Default, PartialEq)]
struct BestCosts {
    costs: VecDeque<(UnixMillis, f64)>,
}

impl BestCosts {
    fn is_due(&self, now: UnixMillis) -> bool {
        self.costs.back().is_none_or(|(last, _)| now >= *last + SAMPLE_INTERVAL)
    }

    fn note(&mut self, now: UnixMillis, cost: f64) {
        if !self.is_due(now) || cost.is_nan() {
            return;
        }
        self.costs.push_back((now, cost));
        while self.costs.front().is_some_and(|(first, _)| *first + RETENTION < now) {
            self.costs.pop_front();
        }
    }

    /// The most that is to be paid by somebody who has so many times the time that he needs, where machines are taken back
    /// `rate` times an hour; none: he doesn't wait.
    ///
    /// The limit is the lowest cost that would have been enough: had he bought at no more than it in the last days, he would
    /// have worked for the share of time that he needs.
    fn limit(&self, now: UnixMillis, patience: f64, rate: f64) -> Option<f64> {
        let needed = patience.recip();
        if needed.is_nan() || needed >= NO_WAIT {
            return None;
        }
        let known = self.costs.iter().filter(|(at, _)| now <= *at + RETENTION);
        let samples: Vec<(f64, f64)> = known
            .scan(None, |last: &mut Option<UnixMillis>, (at, cost)| {
                // What was between two that lie apart isn't known.
                let time = last.map_or(SAMPLE_INTERVAL, |last| *at - last).min(MAX_SAMPLE_WEIGHT);
                *last = Some(*at);
                Some((float(time.0) / HOUR, *cost))
            })
            .collect();
        if samples.iter().map(|(hours, _)| hours).sum::<f64>() < float(MIN_HISTORY.0) / HOUR {
            return None;
        }
        let mut costs: Vec<f64> = samples.iter().map(|(_, cost)| *cost).collect();
        costs.sort_by(f64::total_cmp);
        // The share grows with the limit.
        let place = costs.partition_point(|limit| ratio_of_time(&samples, *limit, rate) < needed);
        costs.get(place).or(costs.last()).copied()
    }
}

/// For what share of the time of these hours and costs a machine would have been there for somebody who buys one whenever he
/// has none and it costs at most so much.
fn ratio_of_time(samples: &[(f64, f64)], limit: f64, rate: f64) -> f64 {
    let (mut there, mut worked, mut all) = (0.0, 0.0, 0.0);
    for (hours, cost) in samples {
        let buys = *cost <= limit && cost.is_finite();
        there = if buys { 1.0 } else { there / (1.0 + rate * hours) };
        worked += there * hours;
        all += hours;
    }
    if all > 0.0 { worked / all } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(n: u32) -> UnixMillis {
        UnixMillis(u64::from(n) * SAMPLE_INTERVAL.0)
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
        assert_eq!(costs.limit(at(100), 1.3, often), Some(7.0));
        assert_eq!(costs.limit(at(100), 9.0, often), Some(1.0));
        for n in 100..500 {
            costs.note(at(n), 5.0);
        }
        assert_eq!(costs.limit(at(500), 1.3, often), Some(5.0));
    }

    #[test]
    fn a_gap_is_no_time_in_which_work_was_cheap() {
        let mut costs = BestCosts::default();
        let often = 1e9;
        for n in 0..10 {
            costs.note(at(n), 5.0);
        }
        assert_eq!(costs.limit(at(10), 2.0, often), None, "100 minutes are too few");
        // Hours later one cheap sample: it counts for twenty minutes of two hours.
        costs.note(at(100), 1.0);
        assert_eq!(costs.limit(at(100), 2.0, often), Some(5.0));
        // Where nothing was sold, nothing could be waited for.
        let mut costs = BestCosts::default();
        for n in 0..20 {
            costs.note(at(n), if n < 16 { f64::INFINITY } else { 5.0 });
        }
        assert_eq!(costs.limit(at(20), 2.0, often), Some(f64::INFINITY), "it is taken as it comes");
        assert_eq!(costs.limit(at(400), 2.0, often), None, "that is long ago");
    }

    #[test]
    fn each_kind_of_work_has_its_prices() {
        let mut costs = Costs::default();
        for n in 0..20 {
            costs.note(16, at(n), 1.0);
            costs.note(80, at(n), 8.0);
        }
        assert_eq!(costs.limit(16, at(20), 2.0, 0.0), Some(1.0));
        assert_eq!(costs.limit(80, at(20), 2.0, 0.0), Some(8.0));
        assert_eq!(costs.limit(40, at(20), 2.0, 0.0), None);
        costs.forget(at(400));
        assert_eq!(costs, Costs::default());
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

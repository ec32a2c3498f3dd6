//! What work has cost at best, lately: where there is time, purchases wait for prices that are low among these.

use sojourn_protocol::{
    quantity::{to_u64, to_usize},
    time::{Millis, UnixMillis},
};
use std::collections::VecDeque;

/// Between two costs that are remembered.
const EVERY: Millis = Millis::from_secs(600);
/// For how long they are remembered.
const LAST: Millis = Millis::from_secs(48 * 3600);
/// Costs of so long a time are needed to say what is low.
const ENOUGH: Millis = Millis::from_secs(6 * 3600);
/// A machine that is lost is waited for, and lived before that, by about such times that the share of times at which
/// nothing is bought may be so many times the share of time that is spare.
const SHARE: f64 = 1.2;
/// The least share of times at which something is bought.
const LEAST: f64 = 0.35;

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

    /// The most that is to be paid by somebody who has so many times the time that he needs; none: he doesn't wait.
    pub(super) fn limit(&self, now: UnixMillis, patience: f64) -> Option<f64> {
        let share = 1.0 - (patience - 1.0) * SHARE;
        let (first, _) = self.costs.front()?;
        if share >= 0.95 || now < *first + ENOUGH {
            return None;
        }
        let mut costs: Vec<f64> = self.costs.iter().map(|(_, cost)| *cost).collect();
        costs.sort_by(f64::total_cmp);
        let share = share.max(LEAST);
        costs.get(place(costs.len(), share)).copied()
    }
}

/// The place of a quantile among so many.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "there are few hundreds"
)]
fn place(count: usize, share: f64) -> usize {
    to_usize((to_u64(count) as f64 * share) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_time_waits_for_what_is_low_among_the_last_costs() {
        let mut costs = BestCosts::default();
        let at = |n: u32| UnixMillis(u64::from(n) * EVERY.0);
        for n in 0..100 {
            costs.note(at(n), f64::from(n % 10));
            costs.note(UnixMillis(at(n).0 + 1), 1000.0);
        }
        assert_eq!(costs.limit(at(20), 1.0), None, "it has none to spare");
        assert_eq!(costs.limit(at(20), 1.25), None, "too little is known");
        assert_eq!(costs.limit(at(100), 1.25), Some(7.0));
        assert_eq!(costs.limit(at(100), 9.0), Some(3.0));
        for n in 100..500 {
            costs.note(at(n), 5.0);
        }
        assert_eq!(costs.limit(at(500), 1.25), Some(5.0));
    }
}

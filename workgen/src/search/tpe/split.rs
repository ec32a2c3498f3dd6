//! Which observations count as good.

use super::{Observation, Outcome};
use crate::search::stopping::better_first;
use sojourn_protocol::{
    ids::TrialId,
    quantity::{SaturatingFrom as _, to_usize},
    spec::Goal,
};
use std::cmp::Reverse;

/// The most observations that count as good.
const MOST_GOOD: usize = 25;

/// How many of so many that have ended count as good: a tenth, rounded up, and at most 25 (the rule of Optuna and Hyperopt's
/// limit).
fn good_count(ended: usize) -> usize {
    ended.div_ceil(10).min(MOST_GOOD)
}

/// By observation, whether it counts as good. The best of those that have ended do, of which those are better that trained more
/// epochs, and of as many the ones with a better value. Without a finite value none does.
pub(super) fn good(observations: &[&Observation<'_>], goal: Goal) -> Vec<bool> {
    let has_ended = |o: &&&Observation<'_>| !matches!(o.outcome, Outcome::Running);
    let ended = observations.iter().filter(has_ended).count();
    let mut ranked: Vec<(Reverse<u32>, TrialId, f64)> = observations
        .iter()
        .enumerate()
        .filter_map(|(at, observation)| match observation.outcome {
            Outcome::Ended { epochs, value } if value.is_finite() => {
                Some((Reverse(epochs), TrialId(u32::saturating_from(at)), value))
            }
            Outcome::Ended { .. } | Outcome::Running | Outcome::Failed => None,
        })
        .collect();
    let count = good_count(ended).min(ranked.len());
    if count > 0 && count < ranked.len() {
        ranked.select_nth_unstable_by(count, |a, b| {
            a.0.cmp(&b.0).then_with(|| better_first(goal, (a.1, a.2), (b.1, b.2)))
        });
    }
    let mut good = vec![false; observations.len()];
    for (_, at, _) in ranked.iter().take(count) {
        if let Some(good) = good.get_mut(to_usize(at.0)) {
            *good = true;
        }
    }
    good
}

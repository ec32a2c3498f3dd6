//! Which observations count as good.

use super::{Observation, Outcome};
use crate::search::stopping::{Scored, ValueRank};
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
    let mut ranked: Vec<(Reverse<u32>, Scored)> = observations
        .iter()
        .enumerate()
        .filter_map(|(at, observation)| match observation.outcome {
            Outcome::Ended { epochs, value } if value.is_finite() => {
                let (rank, trial) = (ValueRank::of(goal, value), TrialId(u32::saturating_from(at)));
                Some((Reverse(epochs), Scored { rank, trial }))
            }
            Outcome::Ended { .. } | Outcome::Running | Outcome::Failed => None,
        })
        .collect();
    let count = good_count(ended).min(ranked.len());
    if count > 0 && count < ranked.len() {
        ranked.select_nth_unstable(count);
    }
    let mut good = vec![false; observations.len()];
    for (_, scored) in ranked.iter().take(count) {
        if let Some(good) = good.get_mut(to_usize(scored.trial.0)) {
            *good = true;
        }
    }
    good
}

//! Rules that end one trial at a time, and hold none back.

use super::{Decision, Progress, TrialProgress, better_first, judged, with_ids};
use sojourn_protocol::{ids::TrialId, quantity::to_usize, spec::Goal};

/// The median rule: a trial ends whose best value is worse than the median of the others' values after as many epochs as the trial
/// has.
pub(super) fn median(min_epochs: u32, min_trials: u32, progress: &Progress<'_>) -> Vec<Decision> {
    let stop = |(trial, of): (TrialId, &TrialProgress)| {
        let epochs = judged(of, min_epochs, progress.epochs)?;
        let others = with_ids(progress).filter(|(other, _)| *other != trial);
        let values = others.filter_map(|(other, of)| Some((other, *of.values.get(epochs - 1)?)));
        let mut values: Vec<(TrialId, f64)> = values.collect();
        if values.is_empty() || values.len() < to_usize(min_trials) {
            return None;
        }
        values.sort_by(|a, b| better_first(progress.goal, *a, *b));
        let [near, far] = [(values.len() - 1) / 2, values.len() / 2].map(|at| values.get(at));
        let (near, far) = (near?.1, far?.1);
        // Of two in the middle their mean; whether it counts depends on both.
        let median =
            if near.is_finite() && far.is_finite() { f64::midpoint(near, far) } else { f64::NAN };
        let best = best(progress.goal, of.own_values());
        let is_worse = is_better(progress.goal, median, best);
        is_worse.then(|| Decision::Stop {
            trial,
            why: format!(
                "its best after {epochs} epoch{} is {best:.6}, worse than the median of {} others' values then, {median:.6}",
                if epochs == 1 { "" } else { "s" },
                values.len()
            ),
        })
    };
    with_ids(progress).filter_map(stop).collect()
}

/// A trial ends that hasn't become better by more than `min_delta` for `patience` epochs.
pub(super) fn patience(patience: u32, min_delta: f64, progress: &Progress<'_>) -> Vec<Decision> {
    let stop = |(trial, of): (TrialId, &TrialProgress)| {
        judged(of, 1, progress.epochs)?;
        let (mut best, mut since) = (f64::NAN, 0u32);
        for value in of.own_values() {
            let improved = match progress.goal {
                Goal::Min => *value < best - min_delta,
                Goal::Max => *value > best + min_delta,
            };
            if improved || (best.is_nan() && value.is_finite()) {
                (best, since) = (*value, 0);
            } else {
                since += 1;
            }
        }
        let s = if since == 1 { "" } else { "s" };
        (since >= patience).then(|| Decision::Stop {
            trial,
            why: match min_delta {
                0.0 => format!("no better than {best:.6} for {since} epoch{s}"),
                _ => format!(
                    "no better than {best:.6} by more than {min_delta} for {since} epoch{s}"
                ),
            },
        })
    };
    with_ids(progress).filter_map(stop).collect()
}

fn best(goal: Goal, values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::NAN, |best, value| match goal {
        Goal::Min => best.min(value),
        Goal::Max => best.max(value),
    })
}

/// Is `value` better than `other`? Anything finite is better than what isn't.
fn is_better(goal: Goal, value: f64, other: f64) -> bool {
    match (value.is_finite(), other.is_finite()) {
        (true, true) => match goal {
            Goal::Min => value < other,
            Goal::Max => value > other,
        },
        (finite, other) => finite && !other,
    }
}

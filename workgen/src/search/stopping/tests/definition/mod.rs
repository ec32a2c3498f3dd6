//! The rules as they are defined: what follows is found by looking through all trials. They share nothing with what
//! [`Search`](super::super::Search) does but the trials and the texts.

mod asha;
mod halving;
mod single;

use super::super::{Decision, TrialProgress, judged, said_place};
use sojourn_protocol::{
    ids::TrialId,
    spec::{Goal, Stopping},
};
use std::cmp::Ordering;

/// The facts that a rule decides by.
#[derive(Debug, Clone, Copy)]
pub(super) struct Progress<'a> {
    /// The trials; a [`TrialId`] is an index here.
    pub(super) trials: &'a [TrialProgress],
    /// Epochs of a trial that isn't stopped.
    pub(super) epochs: u32,
    /// Is more better?
    pub(super) goal: Goal,
    /// How many more trials should train at once. Only asynchronous rules ask.
    pub(super) room: usize,
}

/// The decisions that follow by a rule from what is known. Nothing where all is decided, and again nothing once this is carried
/// out, until more is known.
pub(super) fn decide(rule: &Stopping, progress: &Progress<'_>) -> Vec<Decision> {
    match *rule {
        Stopping::Asha(halving) => asha::decide(halving, progress),
        Stopping::Sha(halving) => halving::decide_sha(halving, progress),
        Stopping::Hyperband { reduction } => halving::decide_hyperband(reduction, progress),
        Stopping::Median { min_epochs, min_trials } => {
            single::median(min_epochs, min_trials, progress)
        }
        Stopping::Patience { epochs, min_delta } => single::patience(epochs, min_delta, progress),
    }
}

/// The better value first; nothing is worse than what isn't finite, and of equals the lower id comes first.
fn better_first(goal: Goal, a: (TrialId, f64), b: (TrialId, f64)) -> Ordering {
    let by_value = match (a.1.is_finite(), b.1.is_finite()) {
        (true, true) => match goal {
            Goal::Min => a.1.total_cmp(&b.1),
            Goal::Max => b.1.total_cmp(&a.1),
        },
        (finite, other) => other.cmp(&finite),
    };
    by_value.then(a.0.cmp(&b.0))
}

/// Trials with their ids.
fn with_ids<'a>(
    progress: &Progress<'a>,
) -> impl Iterator<Item = (TrialId, &'a TrialProgress)> + use<'a> {
    (0u32..).map(TrialId).zip(progress.trials)
}

//! Early stopping: which trials go on, wait or end, by what is known of all of them.
//!
//! ```text
//!   trials so far: epochs allowed, values after epochs --decide--> Continue { epochs } | Stop
//! ```
//!
//! A trial trains as many epochs as it is allowed and waits then, with its checkpoint and all that its optimiser knows. So to
//! let it go on costs nothing, and to wait for a decision needs no machine.
//!
//! | file | rules |
//! |---|---|
//! | `asha.rs` | asynchronous successive halving |
//! | `halving.rs` | successive halving and Hyperband's brackets, rung by rung |
//! | `single.rs` | median and patience, which end one trial at a time |

mod asha;
mod halving;
mod single;

use sojourn_protocol::{
    ids::TrialId,
    quantity::to_u64,
    spec::{Goal, Stopping},
};
use std::cmp::Ordering;

/// A trial as a rule sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct TrialProgress {
    /// Epochs that it trains before it waits for a decision; 0 before it begins.
    pub allowed: u32,
    /// Epochs that it has trained, evaluated or not.
    pub trained: u32,
    /// The metric after its first epoch, its second and so on, as far as all of them are evaluated.
    pub values: Vec<f64>,
    /// It has finished, failed, or was stopped.
    pub has_ended: bool,
}

impl TrialProgress {
    /// The metric after so many epochs.
    fn after(&self, epochs: u32) -> Option<f64> {
        let index = usize::try_from(epochs).ok()?.checked_sub(1)?;
        self.values.get(index).copied()
    }

    /// All that it is allowed is trained and evaluated, and it hasn't ended.
    fn waits(&self) -> bool {
        !self.has_ended && self.allowed > 0 && self.after(self.allowed).is_some()
    }

    /// It has begun, and there is something of it to train or to evaluate.
    fn is_running(&self) -> bool {
        !self.has_ended && self.allowed > 0 && !self.waits()
    }
}

/// What a rule decides by.
#[derive(Debug, Clone, Copy)]
pub struct Progress<'a> {
    /// The trials; a [`TrialId`] is an index here.
    pub trials: &'a [TrialProgress],
    /// Epochs of a trial that isn't stopped.
    pub epochs: u32,
    /// Is more better?
    pub goal: Goal,
    /// How many more trials should train at once. Only asynchronous rules ask.
    pub room: usize,
}

/// What is decided of a trial, and why, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// It trains up to so many epochs in all.
    Continue {
        /// The trial.
        trial: TrialId,
        /// Epochs in all.
        epochs: u32,
        /// The reason.
        why: String,
    },
    /// It ends with what it has.
    Stop {
        /// The trial.
        trial: TrialId,
        /// The reason.
        why: String,
    },
}

/// Epochs that a trial is allowed when its job begins.
#[must_use]
pub fn first_epochs(rule: Option<&Stopping>, trial: TrialId, epochs: u32) -> u32 {
    match rule {
        None | Some(Stopping::Median { .. } | Stopping::Patience { .. }) => epochs,
        // Trials begin as there is room for them.
        Some(Stopping::Asha(_)) => 0,
        Some(Stopping::Sha(halving)) => halving.rungs(epochs).first().copied().unwrap_or(epochs),
        Some(Stopping::Hyperband { reduction }) => {
            halving::first_epochs_of_bracket(trial, epochs, *reduction)
        }
    }
}

/// What follows by a rule from what is known. Nothing where all is decided, and again nothing once this is carried out, until
/// more is known.
#[must_use]
pub fn decide(rule: &Stopping, progress: &Progress<'_>) -> Vec<Decision> {
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
pub(super) fn better_first(goal: Goal, a: (TrialId, f64), b: (TrialId, f64)) -> Ordering {
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

/// `place 2 of 9 after 1 epoch: the best 3 go on`.
fn said_place(place: usize, of: usize, epochs: u32, go_on: usize) -> String {
    let s = if epochs == 1 { "" } else { "s" };
    let go = if go_on == 1 { "goes" } else { "go" };
    let place = to_u64(place) + 1;
    format!("place {place} of {of} after {epochs} epoch{s}: the best {go_on} {go} on")
}

#[cfg(test)]
mod tests;

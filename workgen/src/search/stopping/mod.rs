//! Early stopping: which trials go on, wait or end, by what is known of all of them.
//!
//! ```text
//!   trial so far: epochs allowed, values after epochs --update--> Search --decide--> Continue { epochs } | Stop
//! ```
//!
//! A trial trains as many epochs as it is allowed and waits then, with its checkpoint and all that its optimiser knows. So to
//! let it go on costs nothing, and to wait for a decision needs no machine.
//!
//! A [`Search`] is told of each trial that has changed, and keeps what its rule decides by in order. So a decision doesn't look
//! through all trials. It follows from the trials alone, whatever the order in which it was told of them: the tests hold it
//! against the rules' definitions, which do look through all of them.
//!
//! | file | rules |
//! |---|---|
//! | `asha.rs` | asynchronous successive halving |
//! | `halving.rs`, `bracket.rs` | successive halving and Hyperband's brackets, rung by rung |
//! | `median.rs`, `patience.rs` | rules that end one trial at a time, and hold none back |
//! | `ranked.rs` | trials in the order of their values, with places |

mod asha;
mod bracket;
mod halving;
mod median;
mod patience;
mod ranked;
mod search;

pub(super) use ranked::{Scored, ValueRank};
pub use search::Search;

use sojourn_protocol::{
    ids::TrialId,
    quantity::{SaturatingFrom as _, to_u64, to_usize},
    spec::Stopping,
};

/// A trial as a rule sees it.
#[derive(Debug, Clone, Default)]
pub struct TrialProgress {
    /// Epochs that it trains before it waits for a decision; 0 before it begins.
    pub allowed: u32,
    /// Epochs that it has trained, evaluated or not.
    pub trained: u32,
    /// The metric after its first epoch, its second and so on, as far as all of them are evaluated.
    pub values: Vec<f64>,
    /// The trial has finished, failed, or was stopped.
    pub has_ended: bool,
    /// So many of its first epochs are those of the trial that it is a clone of: it isn't judged by them.
    pub inherited: u32,
    /// The trial's user has let it go on: no rule ends it.
    pub is_exempt: bool,
}

/// Values are equal where their bits are: also those that are no numbers.
impl PartialEq for TrialProgress {
    fn eq(&self, other: &Self) -> bool {
        let bits =
            |of: &Self| -> Vec<u64> { of.values.iter().map(|value| value.to_bits()).collect() };
        let of = |of: &Self| (of.allowed, of.trained, of.has_ended, of.inherited, of.is_exempt);
        of(self) == of(other) && bits(self) == bits(other)
    }
}

impl Eq for TrialProgress {}

impl TrialProgress {
    /// The metric after so many epochs.
    fn after(&self, epochs: u32) -> Option<f64> {
        let index = usize::try_from(epochs).ok()?.checked_sub(1)?;
        self.values.get(index).copied()
    }

    /// The values of epochs that it has trained itself.
    fn own_values(&self) -> &[f64] {
        self.values.get(to_usize(self.inherited)..).unwrap_or_default()
    }

    /// All that it is allowed is trained and evaluated, and it hasn't ended.
    fn waits(&self) -> bool {
        !self.has_ended && self.allowed > 0 && self.after(self.allowed).is_some()
    }

    /// Whether the trial waits for what follows from the rung of so many epochs, before the rung of `next`. Its user may have
    /// let it train some epochs on from the first.
    fn waits_between(&self, epochs: u32, next: u32) -> bool {
        (epochs..next).contains(&self.allowed) && self.waits()
    }

    /// Whether the trial has begun, and there is something of it to train or to evaluate.
    fn is_running(&self) -> bool {
        !self.has_ended && self.allowed > 0 && !self.waits()
    }

    /// Whether the trial hasn't begun, and hasn't ended either.
    fn is_new(&self) -> bool {
        !self.has_ended && self.allowed == 0
    }
}

/// The decision on a trial, and the reason, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// The trial trains up to so many epochs in all.
    Continue {
        /// The trial.
        trial: TrialId,
        /// Epochs in all.
        epochs: u32,
        /// The reason.
        why: String,
    },
    /// The trial ends with what it has.
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

/// The number of a trial's evaluated epochs, where a rule may end it and enough of them are its own; else none. A trial that
/// has nothing left to train isn't judged: to stop it then saves nothing.
fn judged(of: &TrialProgress, least: u32, all: u32) -> Option<usize> {
    let own = u32::saturating_from(of.own_values().len());
    let is_judged = !of.has_ended && !of.is_exempt && own >= least && of.trained < all;
    is_judged.then_some(of.values.len())
}

/// `place 2 of 9 after 1 epoch: the best 3 go on`.
fn said_place(place: usize, of: usize, epochs: u32, go_on: usize) -> String {
    let s = if epochs == 1 { "" } else { "s" };
    let place = to_u64(place) + 1;
    let go_on = match go_on {
        0 => "too few for one to go on".to_owned(),
        1 => "the best 1 goes on".to_owned(),
        _ => format!("the best {go_on} go on"),
    };
    format!("place {place} of {of} after {epochs} epoch{s}: {go_on}")
}

#[cfg(test)]
mod tests;

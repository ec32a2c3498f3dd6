//! A trial ends that hasn't become better by more than `min_delta` for some epochs. It is compared with itself alone, and a clone not with
//! the trial that it goes on from.

use super::{Decision, TrialProgress, judged};
use sojourn_protocol::{ids::TrialId, spec::Goal};
use std::collections::BTreeMap;

/// The state that the rule keeps of a search.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Patience {
    goal: Goal,
    /// Epochs of a trial that isn't stopped.
    epochs: u32,
    patience: u32,
    min_delta: f64,
    /// Trials to end, and why.
    due: BTreeMap<TrialId, String>,
}

impl Patience {
    pub(super) fn new(patience: u32, min_delta: f64, epochs: u32, goal: Goal) -> Self {
        Self { goal, epochs, patience, min_delta, due: BTreeMap::new() }
    }

    pub(super) fn change(&mut self, trial: TrialId, now: &TrialProgress) {
        match self.reason(now) {
            Some(why) => drop(self.due.insert(trial, why)),
            None => drop(self.due.remove(&trial)),
        }
    }

    pub(super) fn decide(&self) -> Vec<Decision> {
        let stop =
            |(trial, why): (&TrialId, &String)| Decision::Stop { trial: *trial, why: why.clone() };
        self.due.iter().map(stop).collect()
    }

    /// Why a trial is to end, where it is.
    fn reason(&self, of: &TrialProgress) -> Option<String> {
        judged(of, 1, self.epochs)?;
        let (mut best, mut since) = (f64::NAN, 0u32);
        for value in of.own_values() {
            let improved = match self.goal {
                Goal::Min => *value < best - self.min_delta,
                Goal::Max => *value > best + self.min_delta,
            };
            if improved || (best.is_nan() && value.is_finite()) {
                (best, since) = (*value, 0);
            } else {
                since += 1;
            }
        }
        let s = if since == 1 { "" } else { "s" };
        (since >= self.patience).then(|| match self.min_delta {
            0.0 => format!("no better than {best:.6} for {since} epoch{s}"),
            min_delta => {
                format!("no better than {best:.6} by more than {min_delta} for {since} epoch{s}")
            }
        })
    }
}

//! Asynchronous successive halving, as Algorithm 2 of its paper has it: a trial is promoted as soon as it is among the best
//! `1/reduction` of those that have reached its rung, the highest rung first; else another trial begins. Those that wait may be
//! promoted later, when others that are worse have come.
//!
//! A rung keeps those that have reached it in order, and those of them that wait. Of the latter the best are promoted as long as
//! their places are good enough, so a decision looks at no others.

use super::{
    Decision, TrialProgress,
    ranked::{Ranked, Scored, ValueRank},
    said_place,
};
use sojourn_protocol::{
    ids::TrialId,
    quantity::to_usize,
    spec::{Goal, Halving},
};
use std::collections::BTreeSet;

/// The state that the rule keeps of a search.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Asha {
    goal: Goal,
    /// Epochs of a trial that isn't stopped.
    epochs: u32,
    /// Epochs of the first rung.
    first: u32,
    /// All rungs but the last, after which trials have finished.
    rungs: Vec<Rung>,
    /// Trials that haven't begun.
    new: BTreeSet<TrialId>,
    /// How many have begun and have something left to train or to evaluate.
    running: usize,
    /// How many are evaluated after the last epoch.
    whole: usize,
}

#[derive(Debug, Clone, PartialEq)]
struct Rung {
    epochs: u32,
    /// Epochs of the next one.
    next: u32,
    reduction: usize,
    /// The trials that are evaluated after its epochs.
    reached: Ranked,
    /// The trials among `reached` that wait here.
    waiting: BTreeSet<Scored>,
}

impl Asha {
    pub(super) fn new(halving: Halving, epochs: u32, goal: Goal) -> Self {
        let rungs = halving.rungs(epochs);
        let pairs = rungs.iter().zip(rungs.iter().skip(1));
        let rung = |(epochs, next): (&u32, &u32)| Rung {
            epochs: *epochs,
            next: *next,
            reduction: to_usize(halving.reduction).max(2),
            reached: Ranked::default(),
            waiting: BTreeSet::new(),
        };
        Self {
            goal,
            epochs,
            first: rungs.first().copied().unwrap_or(epochs),
            rungs: pairs.map(rung).collect(),
            new: BTreeSet::new(),
            running: 0,
            whole: 0,
        }
    }

    /// A trial was as `before` says, if it was there, and is as `now` says.
    pub(super) fn change(
        &mut self,
        trial: TrialId,
        before: Option<&TrialProgress>,
        now: &TrialProgress,
    ) {
        for rung in &mut self.rungs {
            rung.change(trial, before, now, self.goal);
        }
        if now.is_new() {
            self.new.insert(trial);
        } else {
            self.new.remove(&trial);
        }
        let is_whole = |of: &TrialProgress| of.after(self.epochs).is_some();
        let before_was = |is: &dyn Fn(&TrialProgress) -> bool| usize::from(before.is_some_and(is));
        self.running += usize::from(now.is_running());
        self.running -= before_was(&TrialProgress::is_running);
        self.whole += usize::from(is_whole(now));
        self.whole -= before_was(&is_whole);
    }

    /// How many trials haven't been let begin.
    pub(super) fn held_back(&self) -> usize {
        self.new.len()
    }

    pub(super) fn decide(&self, room: usize, more_to_come: bool) -> Vec<Decision> {
        let promotions = self.rungs.iter().rev().flat_map(Rung::promotions);
        let begins = self.new.iter().map(|trial| Decision::Continue {
            trial: *trial,
            epochs: self.first,
            why: "there is room for another trial".to_owned(),
        });
        let mut all = promotions.chain(begins).peekable();
        if all.peek().is_some() || self.running > 0 || more_to_come {
            return all.take(room).collect();
        }
        // Nothing can change any more. If nobody has come to the end, the best of those who came farthest does.
        if self.whole == 0
            && let Some(farthest) = self.rungs.iter().rev().find_map(Rung::promotion_of_best)
        {
            return vec![farthest];
        }
        self.rungs.iter().flat_map(Rung::stops).collect()
    }
}

impl Rung {
    fn change(
        &mut self,
        trial: TrialId,
        before: Option<&TrialProgress>,
        now: &TrialProgress,
        goal: Goal,
    ) {
        let scored = |of: &TrialProgress| {
            let rank = ValueRank::of(goal, of.after(self.epochs)?);
            Some(Scored { rank, trial })
        };
        let (was, is) = (before.and_then(scored), scored(now));
        let waited = was.filter(|_| before.is_some_and(|of| self.holds(of)));
        let waits = is.filter(|_| self.holds(now));
        if was != is {
            was.into_iter().for_each(|scored| self.reached.remove(scored));
            is.into_iter().for_each(|scored| self.reached.insert(scored));
        }
        if waited != waits {
            if let Some(scored) = waited {
                self.waiting.remove(&scored);
            }
            self.waiting.extend(waits);
        }
    }

    /// Does a trial wait here?
    fn holds(&self, of: &TrialProgress) -> bool {
        of.waits_between(self.epochs, self.next)
    }

    /// How many of those that have reached it may go on.
    fn go_on(&self) -> usize {
        self.reached.len() / self.reduction
    }

    /// The trials that wait, the best first, with their places.
    fn waiting(&self) -> impl Iterator<Item = (usize, TrialId)> {
        self.waiting.iter().map(|scored| (self.reached.place(*scored), scored.trial))
    }

    fn promotion(&self, trial: TrialId, place: usize, go_on: usize) -> Decision {
        let why = said_place(place, self.reached.len(), self.epochs, go_on);
        Decision::Continue { trial, epochs: self.next, why }
    }

    fn promotions(&self) -> impl Iterator<Item = Decision> {
        let go_on = self.go_on();
        let best = self.waiting().take_while(move |(place, _)| *place < go_on);
        best.map(move |(place, trial)| self.promotion(trial, place, go_on))
    }

    fn promotion_of_best(&self) -> Option<Decision> {
        let (place, trial) = self.waiting().next()?;
        Some(self.promotion(trial, place, 1))
    }

    fn stops(&self) -> impl Iterator<Item = Decision> {
        let (of, go_on) = (self.reached.len(), self.go_on());
        self.waiting().map(move |(place, trial)| Decision::Stop {
            trial,
            why: said_place(place, of, self.epochs, go_on),
        })
    }
}

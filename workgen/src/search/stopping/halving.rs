//! Successive halving whose rungs wait for all their trials: the same trials go on whatever the machines were. Hyperband is
//! several brackets of it, which don't wait for each other.

use super::{Decision, TrialProgress, bracket::Bracket};
use sojourn_protocol::{
    ids::TrialId,
    quantity::to_usize,
    spec::{Goal, Halving, hyperband, hyperband_bracket},
};
use std::collections::BTreeSet;

/// The state that the rule keeps of a search.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Brackets {
    goal: Goal,
    /// The brackets of a round, which come again and again until all trials are in one.
    round: Vec<Shape>,
    /// The brackets that have trials. The last may lack some.
    brackets: Vec<Bracket>,
    /// The brackets of which something is to be decided, by their indices.
    due: BTreeSet<usize>,
}

/// A bracket before there are trials in it.
#[derive(Debug, Clone, PartialEq)]
struct Shape {
    /// How many trials it takes.
    trials: usize,
    /// Epochs after which they are compared, rising; the last are all epochs.
    rungs: Vec<u32>,
    reduction: u32,
}

impl Brackets {
    /// One bracket for all trials.
    pub(super) fn of_halving(halving: Halving, epochs: u32, goal: Goal) -> Self {
        let (rungs, reduction) = (halving.rungs(epochs), halving.reduction);
        Self::of_round(vec![Shape { trials: usize::MAX, rungs, reduction }], goal)
    }

    /// The brackets of Hyperband.
    pub(super) fn of_hyperband(reduction: u32, epochs: u32, goal: Goal) -> Self {
        let shape = |bracket: sojourn_protocol::spec::Bracket| Shape {
            trials: to_usize(bracket.trials).max(1),
            rungs: bracket.rungs,
            reduction,
        };
        Self::of_round(hyperband(epochs, reduction).into_iter().map(shape).collect(), goal)
    }

    fn of_round(round: Vec<Shape>, goal: Goal) -> Self {
        Self { goal, round, brackets: Vec::new(), due: BTreeSet::new() }
    }

    /// Takes in all trials of a search at once: each rung is ranked once then.
    pub(super) fn fill(&mut self, trials: &[TrialProgress]) {
        for (trial, of) in (0u32..).map(TrialId).zip(trials) {
            if let Some((_, bracket)) = self.bracket_of(trial) {
                bracket.add(trial, of);
            }
        }
        for (at, bracket) in self.brackets.iter_mut().enumerate() {
            bracket.rank_whole(trials);
            if bracket.is_due() {
                self.due.insert(at);
            }
        }
    }

    /// A trial was as `before` says, if it was there, and is as `now` says, and among `trials`.
    pub(super) fn change(
        &mut self,
        trial: TrialId,
        before: Option<&TrialProgress>,
        now: &TrialProgress,
        trials: &[TrialProgress],
    ) {
        let Some((at, bracket)) = self.bracket_of(trial) else { return };
        bracket.change(trial, before, now, trials);
        if bracket.is_due() {
            self.due.insert(at);
        } else {
            self.due.remove(&at);
        }
    }

    /// A bracket that will get more trials waits for them.
    pub(super) fn decide(&self, more_to_come: bool) -> Vec<Decision> {
        let is_whole = |at: &&usize| !more_to_come || !self.lacks_trials(**at);
        let due = self.due.iter().filter(is_whole).filter_map(|at| self.brackets.get(*at));
        due.flat_map(Bracket::decisions).collect()
    }

    /// Has a bracket fewer trials than it takes? Only the last can.
    fn lacks_trials(&self, at: usize) -> bool {
        let shape = at.checked_rem(self.round.len()).and_then(|at| self.round.get(at));
        let bracket = self.brackets.get(at);
        bracket.zip(shape).is_some_and(|(bracket, shape)| bracket.len() < shape.trials)
    }

    /// The trial's bracket, and its number from 0. Trials come in the order of their ids, and so do brackets.
    fn bracket_of(&mut self, trial: TrialId) -> Option<(usize, &mut Bracket)> {
        let trials = self.round.iter().fold(0, |sum: usize, of| sum.saturating_add(of.trials));
        let rounds = to_usize(trial.0).checked_div(trials)?;
        let mut place = to_usize(trial.0) % trials;
        let mut shapes = self.round.iter().enumerate();
        let (of_round, shape) =
            shapes.find(|(_, shape)| match place.checked_sub(shape.trials) {
                Some(behind) => {
                    place = behind;
                    false
                }
                None => true,
            })?;
        let at = rounds * self.round.len() + of_round;
        if at == self.brackets.len() {
            self.brackets.push(Bracket::new(shape.rungs.clone(), shape.reduction, self.goal));
        }
        Some((at, self.brackets.get_mut(at)?))
    }
}

/// Epochs of the first rung of the trial's bracket.
pub(super) fn first_epochs_of_bracket(trial: TrialId, epochs: u32, reduction: u32) -> u32 {
    let bracket = hyperband_bracket(trial, epochs, reduction);
    bracket.and_then(|(_, bracket)| bracket.rungs.first().copied()).unwrap_or(epochs)
}

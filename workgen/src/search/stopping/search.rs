//! A search under a rule of early stopping: told of one trial after the other, asked what follows.

use super::{
    Decision, TrialProgress, asha::Asha, halving::Brackets, median::Median, patience::Patience,
};
use sojourn_protocol::{
    ids::TrialId,
    quantity::{SaturatingFrom as _, to_usize},
    spec::{Goal, Stopping},
};

/// The trials of a search, with what its rule decides by kept in order. It can be made anew from the trials at any time.
#[derive(Debug, Clone, PartialEq)]
pub struct Search {
    rule: Rule,
    /// A [`TrialId`] is an index here.
    trials: Vec<TrialProgress>,
    /// Will trials be added?
    more_to_come: bool,
}

#[derive(Debug, Clone, PartialEq)]
enum Rule {
    Asha(Asha),
    /// Successive halving, or Hyperband.
    Brackets(Brackets),
    Median(Median),
    Patience(Patience),
}

impl Rule {
    /// A trial was as `before` says, if it was there, and is as `now` says, and among `trials`.
    fn change(
        &mut self,
        trial: TrialId,
        before: Option<&TrialProgress>,
        now: &TrialProgress,
        trials: &[TrialProgress],
    ) {
        match self {
            Rule::Asha(rule) => rule.change(trial, before, now),
            Rule::Brackets(rule) => rule.change(trial, before, now, trials),
            Rule::Median(rule) => rule.change(trial, before, now),
            Rule::Patience(rule) => rule.change(trial, now),
        }
    }
}

impl Search {
    /// A search without trials, of which one that isn't stopped has so many epochs.
    #[must_use]
    pub fn new(rule: &Stopping, epochs: u32, goal: Goal) -> Self {
        let rule = match *rule {
            Stopping::Asha(halving) => Rule::Asha(Asha::new(halving, epochs, goal)),
            Stopping::Sha(halving) => Rule::Brackets(Brackets::of_halving(halving, epochs, goal)),
            Stopping::Hyperband { reduction } => {
                Rule::Brackets(Brackets::of_hyperband(reduction, epochs, goal))
            }
            Stopping::Median { min_epochs, min_trials } => {
                Rule::Median(Median::new(min_epochs, min_trials, epochs, goal))
            }
            Stopping::Patience { epochs: patience, min_delta } => {
                Rule::Patience(Patience::new(patience, min_delta, epochs, goal))
            }
        };
        Self { rule, trials: Vec::new(), more_to_come: false }
    }

    /// A search with these trials.
    #[must_use]
    pub fn from_trials(
        rule: &Stopping,
        epochs: u32,
        goal: Goal,
        trials: impl IntoIterator<Item = TrialProgress>,
    ) -> Self {
        let mut search = Self::new(rule, epochs, goal);
        search.trials = trials.into_iter().collect();
        let Self { rule, trials, .. } = &mut search;
        match rule {
            Rule::Brackets(rule) => rule.fill(trials),
            Rule::Asha(_) | Rule::Median(_) | Rule::Patience(_) => {
                let ids = (0u32..).map(TrialId).zip(trials.iter());
                ids.for_each(|(trial, now)| rule.change(trial, None, now, trials));
            }
        }
        search
    }

    /// The trials, as it was told of them; a [`TrialId`] is an index here.
    #[must_use]
    pub fn trials(&self) -> &[TrialProgress] {
        &self.trials
    }

    /// Says whether trials will be added: rungs that they will be compared in aren't whole before.
    pub fn expect_more(&mut self, more_to_come: bool) {
        self.more_to_come = more_to_come;
    }

    /// A trial is so now. It may have changed in any way, also its past. One with the next id is added; where it has a higher
    /// one, so are those before it, as trials that haven't begun.
    pub fn update(&mut self, trial: TrialId, now: TrialProgress) {
        let index = to_usize(trial.0);
        while self.trials.len() < index {
            self.add(TrialProgress::default());
        }
        let Some(known) = self.trials.get_mut(index) else {
            self.add(now);
            return;
        };
        let before = std::mem::replace(known, now);
        if let Some(now) = self.trials.get(index) {
            self.rule.change(trial, Some(&before), now, &self.trials);
        }
    }

    fn add(&mut self, of: TrialProgress) {
        let trial = TrialId(u32::saturating_from(self.trials.len()));
        self.trials.push(of);
        if let Some(now) = self.trials.last() {
            self.rule.change(trial, None, now, &self.trials);
        }
    }

    /// How many trials the rule hasn't let begin.
    #[must_use]
    pub fn held_back(&self) -> usize {
        match &self.rule {
            Rule::Asha(rule) => rule.held_back(),
            Rule::Brackets(_) | Rule::Median(_) | Rule::Patience(_) => 0,
        }
    }

    /// The decisions that follow from what is known, where so many more trials should train at once; only asynchronous rules
    /// ask for that. Nothing where all is decided, and again nothing once this is carried out and told, until more is known.
    #[must_use]
    pub fn decide(&self, room: usize) -> Vec<Decision> {
        match &self.rule {
            Rule::Asha(rule) => rule.decide(room, self.more_to_come),
            Rule::Brackets(rule) => rule.decide(self.more_to_come),
            Rule::Median(rule) => rule.decide(&self.trials),
            Rule::Patience(rule) => rule.decide(),
        }
    }
}

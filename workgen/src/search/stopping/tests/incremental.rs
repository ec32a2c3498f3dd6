//! A search that is told of one change after the other decides as its rule is defined, whatever the changes are.

use super::{
    super::{Decision, Search, TrialProgress, first_epochs},
    definition::{Progress, decide},
};
use proptest::{prelude::*, sample::Index};
use sojourn_protocol::{
    ids::TrialId,
    quantity::{SaturatingFrom as _, to_usize},
    spec::{Goal, Halving, Stopping},
};

/// One thing that may happen; indices pick among the trials.
#[derive(Debug, Clone)]
enum Step {
    /// The trial trains more, if it may.
    Train(Index, u32),
    /// Some of the epochs that it has trained are evaluated.
    Evaluate(Index, Vec<f64>),
    /// The trial has only so many epochs trained and evaluated, and goes on from there.
    RollBack(Index, u32),
    /// The trial is stopped, has failed, or has been whole.
    End(Index),
    /// The trial goes on although it had ended, up to so many epochs.
    Extend(Index, u32),
    /// An evaluated epoch has another value.
    Replace(Index, Index, f64),
    /// Anything at all.
    Become(Index, TrialProgress),
    Add(u32),
    /// The rule is asked, with room for so many.
    Decide(usize, Carry),
}

/// Which decisions are carried out.
#[derive(Debug, Clone, Copy)]
enum Carry {
    All,
    First,
    None,
}

/// Few different ones, so that there are equals; and some that are no numbers.
fn value() -> impl Strategy<Value = f64> {
    prop_oneof![
        12 => (-4i32..8).prop_map(|n| f64::from(n) / 10.0),
        2 => any::<f64>(),
        1 => prop::sample::select(vec![f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 0.0]),
    ]
}

fn progress() -> impl Strategy<Value = TrialProgress> {
    let values = prop::collection::vec(value(), 0..12);
    (0u32..12, 0u32..12, values, any::<bool>(), 0u32..6, prop::bool::weighted(0.2)).prop_map(
        |(allowed, trained, values, has_ended, inherited, is_exempt)| TrialProgress {
            allowed,
            trained,
            values,
            has_ended,
            inherited,
            is_exempt,
        },
    )
}

fn step() -> impl Strategy<Value = Step> {
    let carry = prop::sample::select(vec![Carry::All, Carry::All, Carry::First, Carry::None]);
    let values = prop::collection::vec(value(), 1..4);
    prop_oneof![
        10 => (any::<Index>(), 1u32..4).prop_map(|(trial, by)| Step::Train(trial, by)),
        14 => (any::<Index>(), values).prop_map(|(trial, values)| Step::Evaluate(trial, values)),
        1 => (any::<Index>(), 0u32..10).prop_map(|(trial, to)| Step::RollBack(trial, to)),
        1 => any::<Index>().prop_map(Step::End),
        1 => (any::<Index>(), 1u32..12).prop_map(|(trial, to)| Step::Extend(trial, to)),
        1 => (any::<Index>(), any::<Index>(), value())
            .prop_map(|(trial, epoch, value)| Step::Replace(trial, epoch, value)),
        1 => (any::<Index>(), progress()).prop_map(|(trial, of)| Step::Become(trial, of)),
        2 => (1u32..4).prop_map(Step::Add),
        10 => (0usize..6, carry).prop_map(|(room, carry)| Step::Decide(room, carry)),
    ]
}

fn rule() -> impl Strategy<Value = Stopping> {
    let halving =
        (2u32..5, 1u32..5).prop_map(|(reduction, min_epochs)| Halving { reduction, min_epochs });
    prop_oneof![
        3 => halving.clone().prop_map(Stopping::Asha),
        3 => halving.prop_map(Stopping::Sha),
        3 => (2u32..5).prop_map(|reduction| Stopping::Hyperband { reduction }),
        3 => (1u32..4, 1u32..6)
            .prop_map(|(min_epochs, min_trials)| Stopping::Median { min_epochs, min_trials }),
        1 => (1u32..5, prop::sample::select(vec![0.0, 0.1]))
            .prop_map(|(epochs, min_delta)| Stopping::Patience { epochs, min_delta }),
    ]
}

struct Run {
    rule: Stopping,
    epochs: u32,
    goal: Goal,
    trials: Vec<TrialProgress>,
    search: Search,
}

impl Run {
    fn new(rule: Stopping, epochs: u32, goal: Goal, trials: u32) -> Self {
        let search = Search::new(&rule, epochs, goal);
        let mut run = Self { rule, epochs, goal, trials: Vec::new(), search };
        run.add(trials);
        run
    }

    fn add(&mut self, more: u32) {
        for _ in 0..more {
            let trial = TrialId(u32::saturating_from(self.trials.len()));
            let allowed = first_epochs(Some(&self.rule), trial, self.epochs);
            let of = TrialProgress { allowed, ..TrialProgress::default() };
            self.trials.push(of.clone());
            self.search.update(trial, of);
        }
    }

    /// Changes a trial, and tells the search.
    fn change(&mut self, index: usize, change: impl FnOnce(&mut TrialProgress)) {
        change(&mut self.trials[index]);
        let trial = TrialId(u32::saturating_from(index));
        self.search.update(trial, self.trials[index].clone());
    }

    fn take(&mut self, step: Step) -> Result<(), TestCaseError> {
        let all = self.epochs;
        let at = |index: Index| index.index(self.trials.len());
        match step {
            Step::Train(trial, by) => self.change(at(trial), |of| {
                if !of.has_ended {
                    of.trained = of.allowed.min(of.trained + by).max(of.trained);
                }
            }),
            Step::Evaluate(trial, values) => self.change(at(trial), |of| {
                let left = to_usize(of.trained).saturating_sub(of.values.len());
                of.values.extend(values.into_iter().take(left));
                of.has_ended |= u32::saturating_from(of.values.len()) >= all;
            }),
            Step::RollBack(trial, to) => self.change(at(trial), |of| {
                of.trained = of.trained.min(to);
                of.values.truncate(to_usize(to));
                of.has_ended = false;
            }),
            Step::End(trial) => self.change(at(trial), |of| of.has_ended = true),
            Step::Extend(trial, to) => self.change(at(trial), |of| {
                of.allowed = of.allowed.max(to);
                of.has_ended = false;
            }),
            Step::Replace(trial, epoch, value) => self.change(at(trial), |of| {
                if !of.values.is_empty() {
                    let epoch = epoch.index(of.values.len());
                    of.values[epoch] = value;
                }
            }),
            Step::Become(trial, now) => self.change(at(trial), |of| *of = now),
            Step::Add(more) => self.add(more),
            Step::Decide(room, carry) => return self.decide(room, carry),
        }
        Ok(())
    }

    fn decide(&mut self, room: usize, carry: Carry) -> Result<(), TestCaseError> {
        let (trials, epochs, goal) = (&self.trials, self.epochs, self.goal);
        let defined = decide(&self.rule, &Progress { trials, epochs, goal, room });
        prop_assert_eq!(&self.search.decide(room), &defined);
        let anew = Search::from_trials(&self.rule, epochs, goal, trials.iter().cloned());
        prop_assert_eq!(&self.search, &anew);
        prop_assert_eq!(&anew.decide(room), &defined);
        let carried = match carry {
            Carry::All => defined.len(),
            Carry::First => 1,
            Carry::None => 0,
        };
        for decision in defined.into_iter().take(carried) {
            match decision {
                Decision::Continue { trial, epochs, .. } => {
                    self.change(to_usize(trial.0), |of| of.allowed = epochs);
                }
                Decision::Stop { trial, .. } => {
                    self.change(to_usize(trial.0), |of| of.has_ended = true);
                }
            }
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    #[test]
    fn any_sequence_of_changes_is_decided_as_the_rule_is_defined(
        rule in rule(),
        epochs in 2u32..12,
        is_min: bool,
        trials in 1u32..30,
        steps in prop::collection::vec(step(), 1..300),
    ) {
        let goal = if is_min { Goal::Min } else { Goal::Max };
        let mut run = Run::new(rule, epochs, goal, trials);
        for step in steps {
            run.take(step)?;
            run.decide(3, Carry::None)?;
        }
    }
}

/// Values come round after round, and each time all is carried out: so rungs fill, and the median stops trials.
#[test]
fn searches_of_many_trials_are_decided_as_their_rules_are_defined() {
    let halving = Halving { reduction: 3, min_epochs: 1 };
    let rules = [
        Stopping::Asha(halving),
        Stopping::Sha(halving),
        Stopping::Hyperband { reduction: 3 },
        Stopping::Median { min_epochs: 1, min_trials: 5 },
        Stopping::Patience { epochs: 2, min_delta: 0.0 },
    ];
    for rule in rules {
        let (epochs, trials) = (9, 700);
        let mut run = Run::new(rule, epochs, Goal::Min, trials);
        let mut decided = 0;
        for round in 0..2 * epochs {
            for index in 0..to_usize(trials) {
                let trial = u32::saturating_from(index);
                if (trial + round) % 3 != 0 && round < epochs {
                    continue;
                }
                let value = f64::from((trial * 7_919 + round * 104_729) % 1_000) / 100.0;
                run.change(index, |of| {
                    if !of.has_ended && of.trained < of.allowed {
                        of.trained += 1;
                    }
                    let is_known = of.values.len() == to_usize(of.trained);
                    of.values.extend((!is_known).then_some(value));
                    of.has_ended |= u32::saturating_from(of.values.len()) >= epochs;
                });
            }
            let before = run.trials.clone();
            run.decide(100, Carry::All).unwrap();
            decided += before.iter().zip(&run.trials).filter(|(a, b)| a != b).count();
        }
        assert!(decided > 100, "{rule:?}: {decided}");
    }
}

//! Rules against the tables of their papers, in any order of arrival; and at each step against their definitions.

mod definition;
mod incremental;

use super::*;
use definition::{Progress, decide};
use proptest::prelude::*;
use sojourn_protocol::{
    quantity::to_usize,
    spec::{Goal, Halving},
};
use std::collections::BTreeMap;

const ASHA: Stopping = Stopping::Asha(Halving { reduction: 3, min_epochs: 1 });
const SHA: Stopping = Stopping::Sha(Halving { reduction: 3, min_epochs: 1 });
const HYPERBAND: Stopping = Stopping::Hyperband { reduction: 3 };

/// A value that says nothing of any other.
fn by_chance(seed: u64, trial: u32, epoch: u32) -> f64 {
    let mixed = (seed ^ u64::from(trial * 101 + epoch)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed >> 40) as f64
}

/// A search in which a trial's value after some epochs is known beforehand.
struct Run<'a> {
    rule: Stopping,
    epochs: u32,
    goal: Goal,
    value: &'a dyn Fn(u32, u32) -> f64,
    trials: Vec<TrialProgress>,
    search: Search,
    /// The trials that went on, and up to which epoch, in order.
    continued: Vec<(u32, u32)>,
    stopped: Vec<u32>,
}

impl<'a> Run<'a> {
    fn new(rule: Stopping, trials: u32, epochs: u32, value: &'a dyn Fn(u32, u32) -> f64) -> Self {
        Self::with_goal(Goal::Max, rule, trials, epochs, value)
    }

    fn with_goal(
        goal: Goal,
        rule: Stopping,
        trials: u32,
        epochs: u32,
        value: &'a dyn Fn(u32, u32) -> f64,
    ) -> Self {
        let first = |trial| TrialProgress {
            allowed: first_epochs(Some(&rule), TrialId(trial), epochs),
            ..TrialProgress::default()
        };
        let trials = (0..trials).map(first).collect();
        let search = Search::new(&rule, epochs, goal);
        let (continued, stopped) = (Vec::new(), Vec::new());
        Self { rule, epochs, goal, value, trials, search, continued, stopped }
    }

    /// Decides with room for so many, and carries it out.
    fn decide(&mut self, room: usize) {
        let (trials, epochs, goal) = (&self.trials, self.epochs, self.goal);
        let progress = Progress { trials, epochs, goal, room };
        let defined = decide(&self.rule, &progress);
        for (trial, of) in (0u32..).map(TrialId).zip(trials) {
            if self.search.trials().get(to_usize(trial.0)) != Some(of) {
                self.search.update(trial, of.clone());
            }
        }
        assert_eq!(self.search.decide(room), defined);
        for decision in defined {
            match decision {
                Decision::Continue { trial, epochs, .. } => {
                    let of = &mut self.trials[to_usize(trial.0)];
                    assert!(epochs > of.allowed && epochs <= self.epochs && !of.has_ended);
                    of.allowed = epochs;
                    self.continued.push((trial.0, epochs));
                }
                Decision::Stop { trial, .. } => {
                    let of = &mut self.trials[to_usize(trial.0)];
                    assert!(!of.has_ended);
                    of.has_ended = true;
                    self.stopped.push(trial.0);
                }
            }
        }
        let (trials, epochs) = (&self.trials, self.epochs);
        let progress = Progress { trials, epochs, goal, room: 0 };
        assert_eq!(decide(&self.rule, &progress), [], "all was decided");
    }

    fn running(&self) -> Vec<usize> {
        (0..self.trials.len()).filter(|index| self.trials[*index].is_running()).collect()
    }

    /// One more epoch of a running trial.
    fn train(&mut self, index: usize) {
        let of = &mut self.trials[index];
        let epoch = u32::saturating_from(of.values.len()) + 1;
        of.values.push((self.value)(u32::saturating_from(index), epoch));
        of.trained = epoch;
        of.has_ended = epoch == self.epochs;
    }

    /// Runs to the end with so many at once; `pick` says whose epoch is next.
    fn run(&mut self, at_once: usize, pick: &mut dyn FnMut(usize) -> usize) {
        loop {
            self.decide(at_once.saturating_sub(self.running().len()));
            let running = self.running();
            if running.is_empty() {
                break;
            }
            self.train(running[pick(running.len()) % running.len()]);
        }
        assert!(self.trials.iter().all(|of| of.has_ended), "{:?}", self.trials);
    }

    /// How many trials have trained so many epochs and no more.
    fn lengths(&self) -> BTreeMap<u32, usize> {
        let mut lengths = BTreeMap::new();
        for of in &self.trials {
            *lengths.entry(u32::saturating_from(of.values.len())).or_default() += 1;
        }
        lengths
    }
}

/// Algorithm 2 of ASHA's paper, word for word, with one worker: whose job is next, and up to which epoch.
fn algorithm_2(trials: u32, epochs: u32, value: &dyn Fn(u32, u32) -> f64) -> Vec<(u32, u32)> {
    let rungs = Halving { reduction: 3, min_epochs: 1 }.rungs(epochs);
    let mut results: Vec<Vec<(u32, f64)>> = vec![Vec::new(); rungs.len()];
    let mut promoted: Vec<Vec<u32>> = vec![Vec::new(); rungs.len()];
    let (mut jobs, mut next) = (Vec::new(), 0);
    loop {
        let promotable = (0..rungs.len() - 1).rev().find_map(|k| {
            let mut candidates = results[k].clone();
            candidates.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
            candidates.truncate(results[k].len() / 3);
            let trial = candidates.iter().find(|(trial, _)| !promoted[k].contains(trial))?.0;
            Some((trial, k))
        });
        let (trial, k) = match promotable {
            Some((trial, k)) => {
                promoted[k].push(trial);
                (trial, k + 1)
            }
            None if next < trials => {
                next += 1;
                (next - 1, 0)
            }
            None => return jobs,
        };
        jobs.push((trial, rungs[k]));
        results[k].push((trial, value(trial, rungs[k])));
    }
}

#[test]
fn asha_with_one_worker_is_the_algorithm_of_its_paper() {
    for seed in 0..20u64 {
        let value = |trial, epoch| by_chance(seed, trial, epoch);
        let mut search = Run::new(ASHA, 30, 9, &value);
        search.run(1, &mut |_| 0);
        assert_eq!(search.continued, algorithm_2(30, 9, &value), "{seed}");
    }
    let better_and_better = |trial: u32, _| f64::from(trial);
    assert_eq!(
        algorithm_2(4, 9, &better_and_better)[..5],
        [(0, 1), (1, 1), (2, 1), (2, 3), (3, 1)]
    );
}

#[test]
fn asha_equals_successive_halving_where_the_best_come_first() {
    let value = |trial: u32, _| -f64::from(trial);
    let mut asha = Run::new(ASHA, 9, 9, &value);
    asha.run(1, &mut |_| 0);
    // Table 1 of the paper: 9, 3 and 1 trials.
    assert_eq!(asha.lengths(), [(1, 6), (3, 2), (9, 1)].into());
    let mut sha = Run::new(SHA, 9, 9, &value);
    sha.run(9, &mut |_| 0);
    assert_eq!(sha.lengths(), asha.lengths());
}

#[test]
fn paused_trials_of_asha_are_promoted_when_worse_ones_have_come() {
    let value = |trial: u32, _| [5.0, 4.0, 3.0, 2.0, 1.0, 0.0][to_usize(trial)];
    let mut search = Run::new(ASHA, 6, 9, &value);
    search.run(1, &mut |_| 0);
    let of_second: Vec<(u32, u32)> =
        search.continued.iter().filter(|(trial, _)| *trial == 1).copied().collect();
    assert_eq!(of_second, [(1, 1), (1, 3)], "one of three at first, one of six later");
}

/// All running trials train one epoch, until the first rung is decided on or is about to be.
fn to_the_first_rung(rule: Stopping, value: &dyn Fn(u32, u32) -> f64) -> Run<'_> {
    let mut search = Run::new(rule, 6, 9, value);
    search.decide(6);
    search.running().into_iter().for_each(|index| search.train(index));
    search
}

#[test]
fn trials_that_went_on_end_although_better_ones_are_added() {
    let value = |trial: u32, _| f64::from(trial);
    for rule in [ASHA, SHA, HYPERBAND] {
        let mut search = to_the_first_rung(rule, &value);
        search.decide(6);
        assert!(search.continued.iter().any(|(_, epochs)| *epochs == 3), "{rule:?}");
        for trial in 6..12 {
            let allowed = first_epochs(Some(&rule), TrialId(trial), 9);
            search.trials.push(TrialProgress { allowed, ..TrialProgress::default() });
        }
        search.run(6, &mut |_| 0);
    }
}

#[test]
fn trials_that_users_let_go_on_between_rungs_wait_for_the_next_one() {
    let value = |trial: u32, _| f64::from(trial);
    for rule in [ASHA, SHA, HYPERBAND] {
        for (trial, allowed) in [(0, 2), (0, 3), (0, 5), (5, 2), (5, 8)] {
            let mut search = to_the_first_rung(rule, &value);
            search.trials[trial].allowed = allowed;
            search.run(6, &mut |_| 0);
        }
    }
}

#[test]
fn of_few_trials_asha_trains_the_best_to_the_end() {
    let value = |trial: u32, _| f64::from(trial);
    for trials in 1..6 {
        let mut search = Run::new(ASHA, trials, 81, &value);
        search.run(2, &mut |_| 0);
        let trained: Vec<usize> = search.trials.iter().map(|of| of.values.len()).collect();
        assert_eq!(trained.iter().max(), Some(&81), "{trained:?}");
    }
    let rule = Stopping::Asha(Halving { reduction: 1000, min_epochs: 1 });
    let mut search = Run::new(rule, 5, 9, &value);
    search.run(5, &mut |_| 0);
    assert_eq!(search.lengths(), [(1, 4), (9, 1)].into());
}

#[test]
fn brackets_of_hyperband_spend_what_its_table_says() {
    let value = |trial: u32, epoch: u32| f64::from(trial * 37 % 128) + f64::from(epoch) / 100.0;
    let trials = HYPERBAND.trials(81).unwrap();
    assert_eq!(trials, 81 + 27 + 9 + 6 + 5);
    let mut search = Run::new(HYPERBAND, trials, 81, &value);
    search.run(1000, &mut |_| 0);
    let lengths = |range: std::ops::Range<usize>| {
        let mut lengths = BTreeMap::new();
        for of in &search.trials[range] {
            *lengths.entry(of.values.len()).or_insert(0) += 1;
        }
        lengths
    };
    assert_eq!(lengths(0..81), [(1, 54), (3, 18), (9, 6), (27, 2), (81, 1)].into());
    assert_eq!(lengths(81..108), [(3, 18), (9, 6), (27, 2), (81, 1)].into());
    assert_eq!(lengths(108..117), [(9, 6), (27, 2), (81, 1)].into());
    assert_eq!(lengths(117..123), [(27, 4), (81, 2)].into());
    assert_eq!(lengths(123..128), [(81, 5)].into());
}

#[test]
fn trials_begin_with_the_first_rung_of_their_bracket_round_after_round() {
    let first = |trial| first_epochs(Some(&HYPERBAND), TrialId(trial), 9);
    let round: Vec<u32> = (0..15).map(first).collect();
    assert_eq!(round, [[1; 9].as_slice(), &[3; 3], &[9; 3]].concat());
    let far = 15 * 100_000_000;
    assert_eq!((far..far + 15).map(first).collect::<Vec<_>>(), round);
}

#[test]
fn a_rung_goes_on_without_trials_that_have_failed() {
    let value = |trial: u32, _| f64::from(trial);
    for rule in [ASHA, SHA] {
        let mut search = Run::new(rule, 9, 9, &value);
        search.decide(9);
        search.trials[8].has_ended = true;
        search.run(9, &mut |_| 0);
        assert_eq!(search.trials[8].values.len(), 0);
        assert_eq!(search.trials[7].values.len(), 9, "{rule:?}");
    }
}

#[test]
fn values_that_are_no_numbers_are_the_worst() {
    let value = |trial: u32, _| if trial == 0 { f64::NAN } else { f64::from(trial) };
    for goal in [Goal::Min, Goal::Max] {
        let mut search = Run::with_goal(goal, SHA, 3, 3, &value);
        search.run(3, &mut |_| 0);
        assert_eq!(search.trials[0].values.len(), 1, "{goal:?}");
    }
}

#[test]
fn a_trial_that_is_worse_than_the_median_ends() {
    let median = Stopping::Median { min_epochs: 2, min_trials: 3 };
    let value = |trial: u32, epoch: u32| f64::from(trial) + f64::from(epoch);
    let mut search = Run::new(median, 5, 4, &value);
    for trial in [4, 3, 2] {
        (0..4).for_each(|_| search.train(trial));
    }
    search.decide(0);
    search.train(0);
    search.decide(0);
    assert_eq!(search.stopped, [0u32; 0], "too few epochs");
    search.train(0);
    // The best is 2; the others' values after two epochs are 4, 5 and 6.
    search.decide(0);
    assert_eq!(search.stopped, [0]);
    (0..2).for_each(|_| search.train(1));
    search.decide(0);
    assert_eq!(search.stopped, [0, 1], "3 is less than the median of 2, 4, 5 and 6");
}

/// As Optuna's `MedianPruner` does: the best so far counts of the trial, of the others the value then, and of two in the middle their
/// mean.
#[test]
fn the_median_is_that_of_values_after_as_many_epochs() {
    let rule = Stopping::Median { min_epochs: 1, min_trials: 2 };
    let of = |values: &[f64], has_ended| TrialProgress {
        allowed: 4,
        trained: u32::saturating_from(values.len()),
        values: values.to_vec(),
        has_ended,
        ..TrialProgress::default()
    };
    let stopped = |last: &[f64]| {
        // After two epochs the others' values are 1 and 3; the median is 2, whatever came before and comes later.
        let others = [of(&[9.0, 1.0, 0.1, 0.1], true), of(&[9.0, 3.0, 3.0], true)];
        let all = [others[0].clone(), others[1].clone(), of(last, false)];
        !Search::from_trials(&rule, 4, Goal::Min, all).decide(0).is_empty()
    };
    assert!(stopped(&[9.0, 2.1]));
    assert!(!stopped(&[9.0, 2.0]), "as good as the median");
    assert!(!stopped(&[1.5, 8.0]), "its best so far counts");
    assert!(
        stopped(&[9.0, 8.0, 1.6]) && !stopped(&[9.0, 8.0, 1.5]),
        "0.1 and 3 have the median 1.55"
    );
    assert!(!stopped(&[9.0, 8.0, 8.0, 8.0]), "there is nothing left to train");
}

#[test]
fn a_trial_that_gets_no_better_ends_after_its_patience() {
    let patience = Stopping::Patience { epochs: 2, min_delta: 0.1 };
    let values = [1.0, 1.5, 1.55, 1.65, 1.7, 1.74, 2.0];
    let value = |_, epoch: u32| values[to_usize(epoch) - 1];
    let mut search = Run::new(patience, 1, 7, &value);
    search.run(1, &mut |_| 0);
    // 1.65 is better than 1.5 by more than 0.1; 1.7 and 1.74 aren't.
    assert_eq!((search.trials[0].values.len(), search.stopped), (6, vec![0]));
    let mut search = Run::with_goal(Goal::Min, patience, 1, 7, &value);
    search.run(1, &mut |_| 0);
    assert_eq!(search.trials[0].values.len(), 3);
    let never = |_, _| f64::NAN;
    let mut search = Run::new(patience, 1, 7, &never);
    search.run(1, &mut |_| 0);
    assert_eq!(search.trials[0].values.len(), 2);
}

#[test]
fn a_clone_is_judged_by_its_own_epochs_and_a_trial_that_goes_on_by_hand_by_none() {
    // The trial got worse after its second epoch; the clone gets better from there on.
    let patience = Stopping::Patience { epochs: 2, min_delta: 0.0 };
    let median = Stopping::Median { min_epochs: 1, min_trials: 1 };
    let of = |values: &[f64], inherited: u32, is_exempt: bool| TrialProgress {
        allowed: 9,
        trained: u32::saturating_from(values.len()),
        values: values.to_vec(),
        inherited,
        is_exempt,
        ..TrialProgress::default()
    };
    let parent = [0.5, 0.8, 0.3, 0.2];
    let stops = |rule: &Stopping, of: TrialProgress| {
        let good = TrialProgress { has_ended: true, values: vec![0.6; 9], ..of.clone() };
        let search = Search::from_trials(rule, 9, Goal::Max, [of, good]);
        !search.decide(0).is_empty()
    };
    for rule in [patience, median] {
        assert!(
            stops(&rule, of(&[&parent[..], &[0.1, 0.1]].concat(), 0, false)) == (rule == patience)
        );
        assert!(!stops(&rule, of(&parent, 4, false)), "nothing of its own");
        assert!(!stops(&rule, of(&[&parent[..], &[0.1, 0.1]].concat(), 0, true)), "by hand");
    }
    let clone = |own: &[f64]| of(&[&parent[..], own].concat(), 4, false);
    assert!(!stops(&patience, clone(&[0.2])));
    assert!(!stops(&patience, clone(&[0.2, 0.3, 0.3])));
    assert!(stops(&patience, clone(&[0.2, 0.1, 0.1])));
    assert!(!stops(&median, clone(&[0.65])));
    assert!(stops(&median, clone(&[0.55])), "the best of its parent isn't its own");
}

proptest! {
    /// Whole rungs decide the same whoever trains faster.
    #[test]
    fn whole_rungs_do_not_depend_on_the_order_of_arrival(
        trials in 1u32..40,
        epochs in 1u32..30,
        seed: u64,
        picks in prop::collection::vec(0usize..1000, 1..50),
    ) {
        let value = |trial, epoch| by_chance(seed, trial, epoch);
        for rule in [SHA, HYPERBAND] {
            let mut first = Run::new(rule, trials, epochs, &value);
            first.run(1, &mut |_| 0);
            let mut at = 0;
            let mut other = Run::new(rule, trials, epochs, &value);
            other.run(1, &mut |_| { at += 1; picks[at % picks.len()] });
            prop_assert_eq!(&first.trials, &other.trials);
        }
    }

    /// On any fleet the search comes to an end, every trial begins, and trials stop at rungs alone.
    #[test]
    fn asha_ends_on_any_fleet(
        trials in 1u32..40,
        epochs in 2u32..30,
        at_once in 1usize..20,
        seed: u64,
        picks in prop::collection::vec(0usize..1000, 1..50),
    ) {
        let value = |trial, epoch| by_chance(seed, trial, epoch);
        let mut at = 0;
        let mut search = Run::new(ASHA, trials, epochs, &value);
        search.run(at_once, &mut |_| { at += 1; picks[at % picks.len()] });
        let rungs = Halving { reduction: 3, min_epochs: 1 }.rungs(epochs);
        prop_assert!(search.lengths().keys().all(|length| rungs.contains(length)));
        prop_assert!(search.trials.iter().all(|of| !of.values.is_empty()));
    }
}

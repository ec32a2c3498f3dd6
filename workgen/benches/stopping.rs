//! How many decisions of early stopping are made a second in a search of which so many trials have results. One decision is one
//! value that arrives at a rung, or after an epoch where the rule has no rungs, and everything that is decided on it and told.
//!
//! Prints one JSON line each. The anchor is sorting as many values, measured in the same run: a rule that looked through all
//! trials would do no less for each decision.

#![expect(clippy::indexing_slicing, reason = "trials are numbered from 0")]
#![expect(clippy::disallowed_methods, reason = "a bench measures time")]
#![expect(clippy::cast_precision_loss, reason = "figures for people")]

#[path = "../../benches/size.rs"]
mod size;

use sojourn_protocol::{
    ids::TrialId,
    quantity::to_usize,
    seeds,
    spec::{Goal, Halving, Stopping},
};
use sojourn_workgen::search::stopping::{Decision, Search, TrialProgress, first_epochs};
use std::{
    collections::VecDeque,
    hint::black_box,
    time::{Duration, Instant},
};

const EPOCHS: u32 = 81;
/// Trials that train at once, where the rule begins them as there is room.
const AT_ONCE: usize = 64;
const ASHA: Stopping = Stopping::Asha(Halving { reduction: 3, min_epochs: 1 });

fn main() {
    let others = [
        Stopping::Sha(Halving { reduction: 3, min_epochs: 1 }),
        Stopping::Hyperband { reduction: 3 },
        Stopping::Median { min_epochs: 1, min_trials: 5 },
        Stopping::Patience { epochs: 5, min_delta: 0.0 },
    ];
    for trials in size::of([10_000, 50_000], [30, 60]) {
        line(&ASHA, trials);
    }
    for rule in &others {
        line(rule, size::of(10_000, 30));
    }
}

fn line(rule: &Stopping, trials: u32) {
    let (value, anchor) = (decisions(rule, trials), sorts(trials));
    let name = rule.name();
    println!(
        "{{\"name\":\"{name} decisions, {trials} trials with results\",\"value\":{value:.0},\"unit\":\"1/s\",\
         \"anchor\":{anchor:.0},\"ratio\":{:.4}}}",
        value / anchor
    );
}

/// Decisions a second, once so many trials have results.
fn decisions(rule: &Stopping, trials: u32) -> f64 {
    let mut run = Run::new(*rule, trials + trials / 4);
    while run.with_results < to_usize(trials) && run.step() {}
    let (begun, mut decisions) = (Instant::now(), 0_u64);
    while begun.elapsed() < Duration::from_millis(size::of(1_000, 1)) && run.step() {
        decisions += 1;
    }
    let took = begun.elapsed().as_secs_f64();
    assert!(decisions > 0 && run.decided > 0, "{rule:?}");
    decisions as f64 / took
}

/// How often a second so many values are sorted.
fn sorts(values: u32) -> f64 {
    let mut rng = seeds::stream("anchor", &[]);
    let values: Vec<f64> = (0..values).map(|_| value(&mut rng)).collect();
    let (begun, mut sorted) = (Instant::now(), 0_u64);
    while begun.elapsed() < Duration::from_millis(size::of(500, 1)) {
        let mut values = black_box(values.clone());
        values.sort_unstable_by(f64::total_cmp);
        black_box(values);
        sorted += 1;
    }
    sorted as f64 / begun.elapsed().as_secs_f64()
}

fn value(rng: &mut rand_chacha::ChaCha8Rng) -> f64 {
    f64::from(seeds::below(rng, 1 << 30)) / f64::from(1 << 30)
}

/// A search whose trials take turns.
struct Run {
    search: Search,
    /// The trials that train, in the order of their turns.
    running: VecDeque<TrialId>,
    trials: Vec<TrialProgress>,
    rng: rand_chacha::ChaCha8Rng,
    with_results: usize,
    decided: usize,
    /// A turn is all epochs that a trial is allowed; else one.
    has_rungs: bool,
}

impl Run {
    fn new(rule: Stopping, trials: u32) -> Self {
        let allowed = |trial| first_epochs(Some(&rule), TrialId(trial), EPOCHS);
        let new = |allowed| TrialProgress { allowed, ..TrialProgress::default() };
        let trials: Vec<TrialProgress> = (0..trials).map(allowed).map(new).collect();
        let running = (0u32..).map(TrialId).zip(&trials).filter(|(_, of)| of.allowed > 0);
        let running = running.map(|(trial, _)| trial).collect();
        let search = Search::from_trials(&rule, EPOCHS, Goal::Min, trials.iter().cloned());
        let rng = seeds::stream("values", &[]);
        let has_rungs = !matches!(rule, Stopping::Median { .. } | Stopping::Patience { .. });
        let mut run = Self { search, running, trials, rng, with_results: 0, decided: 0, has_rungs };
        run.decide();
        run
    }

    /// The next trial has a value, on which is decided. False where all have ended.
    fn step(&mut self) -> bool {
        let mut turns = std::iter::from_fn(|| self.running.pop_front());
        let next = turns.find(|trial| !self.trials[to_usize(trial.0)].has_ended);
        let Some(trial) = next else { return false };
        let of = &mut self.trials[to_usize(trial.0)];
        self.with_results += usize::from(of.values.is_empty());
        let until = if self.has_rungs { of.allowed } else { of.trained + 1 };
        while of.trained < until {
            of.trained += 1;
            of.values.push(value(&mut self.rng));
        }
        of.has_ended = of.trained == EPOCHS;
        if of.trained < of.allowed {
            self.running.push_back(trial);
        }
        self.tell(trial);
        self.decide();
        true
    }

    fn tell(&mut self, trial: TrialId) {
        self.search.update(trial, self.trials[to_usize(trial.0)].clone());
    }

    fn decide(&mut self) {
        for decision in self.search.decide(AT_ONCE.saturating_sub(self.running.len())) {
            self.decided += 1;
            let (trial, until) = match decision {
                Decision::Continue { trial, epochs, .. } => (trial, Some(epochs)),
                Decision::Stop { trial, .. } => (trial, None),
            };
            let of = &mut self.trials[to_usize(trial.0)];
            match until {
                Some(epochs) => {
                    of.allowed = epochs;
                    self.running.push_back(trial);
                }
                None => of.has_ended = true,
            }
            self.tell(trial);
        }
    }
}

//! The knowledge of a rule of early stopping follows from the trials of its job, whatever has happened to them. `Bench` checks
//! all invariants after each command, and L3 is that what is known is what a recount says.

use crate::{
    cross_validation::in_folds,
    early_stopping::searching,
    searching::work,
    support::{Bench, HOST, JOB, OTHER, demand, fail, request},
};
use proptest::{prelude::*, sample::Index};
use sojourn_core::{Command, Core, ReplyTo};
use sojourn_protocol::{
    api::{RollbackOptions, RollbackRequest, WorkRequest},
    ids::{HostId, TrialId},
    report::FailureKind,
};

const RULES: [&str; 5] = [
    "\"asha\"",
    "\"sha\"",
    "\"hyperband\"",
    "{ rule = \"median\", min_trials = 2 }",
    "{ rule = \"patience\", epochs = 1 }",
];

#[derive(Debug, Clone)]
enum Step {
    /// A host asks and does what it gets, so many times.
    Work(bool, u32),
    /// A host asks, and its trainer fails.
    Fail(bool),
    /// A host says that it has so many slots.
    Slots(bool, u32),
    Extend(u32, Option<Index>),
    RollBack(Index),
    Pause(bool),
    Resume,
    Restart,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (any::<bool>(), 1u32..12).prop_map(|(other, times)| Step::Work(other, times)),
        2 => any::<bool>().prop_map(Step::Fail),
        1 => (any::<bool>(), 1u32..6).prop_map(|(other, slots)| Step::Slots(other, slots)),
        1 => (1u32..14, prop::option::of(any::<Index>()))
            .prop_map(|(epochs, trial)| Step::Extend(epochs, trial)),
        2 => any::<Index>().prop_map(Step::RollBack),
        1 => any::<bool>().prop_map(Step::Pause),
        2 => Just(Step::Resume),
        1 => Just(Step::Restart),
    ]
}

fn host(other: bool) -> HostId {
    if other { OTHER } else { HOST }
}

/// Takes a step; a command may be refused.
fn take(bench: &mut Bench, step: &Step, loss: &dyn Fn(u32, u32) -> f64) {
    let trials = bench.core.state().jobs[&JOB].trials.len();
    let trial = |index: &Index| TrialId(u32::try_from(index.index(trials)).unwrap());
    let to = ReplyTo(1);
    match step {
        Step::Work(other, times) => {
            (0..*times).for_each(|_| drop(work(bench, host(*other), loss)));
        }
        Step::Fail(other) => {
            for lease in bench.ask(host(*other), request(1, Vec::new())).leases {
                fail(bench, host(*other), lease.id, FailureKind::NonFinite, "NaN");
            }
        }
        Step::Slots(other, slots) => {
            let demand = vec![demand(*slots, 0, 0)];
            bench.ask(host(*other), WorkRequest { demand, ..request(0, Vec::new()) });
        }
        Step::Extend(epochs, named) => {
            let (epochs, trial) = (*epochs, named.as_ref().map(trial));
            drop(bench.answer(Command::Extend { to, job: JOB, epochs, trial, reopen: false }));
        }
        Step::RollBack(index) => {
            let options = RollbackOptions::default();
            let request = RollbackRequest::Trial { trial: trial(index), epochs: 0, options };
            drop(bench.answer(Command::Rollback { to, job: JOB, request }));
        }
        Step::Pause(now) => drop(bench.answer(Command::Pause { to, job: JOB, now: *now })),
        Step::Resume => drop(bench.answer(Command::Resume { to, job: JOB })),
        Step::Restart => {
            let snapshot = bench.core.snapshot().unwrap();
            bench.core = Core::from_snapshot(&snapshot, *bench.core.config()).unwrap();
            bench.apply(Command::Started);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn what_a_rule_knows_follows_from_the_trials(
        rule in 0..RULES.len(),
        trials in 1u32..16,
        is_folded: bool,
        seed in 1u32..1_000,
        steps in prop::collection::vec(step(), 1..50),
    ) {
        let mut bench = match is_folded {
            true => in_folds(2, trials, 9, &format!("stopping = {}", RULES[rule])),
            false => searching(trials, 9, RULES[rule]),
        };
        let loss = |trial: u32, epoch: u32| f64::from((trial * 31 + epoch * 17) * seed % 101);
        for step in &steps {
            take(&mut bench, step, &loss);
        }
    }
}

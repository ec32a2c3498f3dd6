//! Small problems with known best plans, and that plans give trials their time to move.

use super::*;
use crate::plan::{Iterations, Machine, PACE_ONE, PlanTrial, Step};
use proptest::prelude::*;
use share::Share;

/// A trial of so many hops of so much work.
fn trial(hops: u32, work: u64) -> PlanTrial {
    PlanTrial {
        open: (0..hops).collect(),
        work: vec![work; hops as usize],
        send: 1,
        fetch: 2,
        ..PlanTrial::default()
    }
}

fn problem(trials: Vec<PlanTrial>, machines: usize) -> Problem {
    let holders = vec![None; trials[0].work.len()];
    Problem { trials, machines: vec![Machine::default(); machines], holders, ..Problem::default() }
}

fn plan(problem: &Problem, iterations: u64) -> Schedule {
    assert_eq!(problem.check(), Ok(()));
    let schedule = Migration.plan(problem, 1, &mut Iterations::new(iterations)).unwrap();
    assert_eq!(schedule.check(problem), Ok(()));
    check_moves(problem, &schedule.steps).unwrap();
    schedule
}

/// Does each trial take its time between hops, in one machine and from one to another?
fn check_moves(problem: &Problem, steps: &[Step]) -> Result<(), String> {
    for (number, trial) in (0u32..).zip(&problem.trials) {
        let mut before: Option<&Step> = None;
        for step in steps.iter().filter(|step| step.trial == number) {
            let latency = problem.machines[step.machine as usize].latency;
            let from = match (before, trial.at) {
                (Some(before), _) if before.machine != step.machine => {
                    before.end + trial.send + trial.fetch
                }
                (Some(before), _) if before.epoch != step.epoch => before.end + trial.stay,
                (Some(before), _) if step.start == before.end + latency => step.start,
                (Some(before), _) => before.end + trial.stay,
                (None, Some(at)) if at != step.machine => trial.free_at + trial.fetch,
                (None, _) => trial.begins_at(),
            };
            if step.start < from {
                return Err(format!("{step:?} begins before {from}, after {before:?}"));
            }
            before = Some(step);
        }
    }
    Ok(())
}

fn moves(schedule: &Schedule, trials: u32) -> usize {
    let of = |trial: u32| {
        let steps = schedule.steps.iter().filter(move |step| step.trial == trial);
        let machines: Vec<u32> = steps.map(|step| step.machine).collect();
        machines.windows(2).filter(|two| two[0] != two[1]).count()
    };
    (0..trials).map(of).sum()
}

#[test]
fn one_of_three_trials_is_split_over_two_machines() {
    let problem = problem(vec![trial(10, 3), trial(10, 3), trial(10, 3)], 2);
    assert_eq!(plan(&problem, 0).makespan, 60, "whole trials");
    let schedule = plan(&problem, 50);
    assert_eq!((schedule.makespan, problem.lower_bound()), (45, 45));
    assert_eq!(moves(&schedule, 3), 1);
}

#[test]
fn two_long_trials_share_the_fast_machine() {
    // They exchange machines when each has 6 hops to go on the slow one, or has had them: 28 + 28, or 28 + 3 + 24.
    // In thousands: so that a search has a temperature.
    let mut problem = problem(vec![trial(20, 2_000), trial(20, 2_000)], 2);
    for trial in &mut problem.trials {
        trial.pace = vec![PACE_ONE, 2 * PACE_ONE];
        (trial.send, trial.fetch) = (1_000, 2_000);
    }
    assert_eq!(plan(&problem, 0).makespan, 80_000);
    let schedule = plan(&problem, 200);
    assert_eq!((schedule.makespan, problem.lower_bound()), (56_000, 53_333));
    assert_eq!(moves(&schedule, 2), 2);
}

#[test]
fn a_trial_goes_on_at_its_machine_without_waiting_for_its_checkpoint() {
    let mut problem = problem(vec![trial(4, 5)], 1);
    (problem.trials[0].epochs_after, problem.trials[0].send) = (1, 7);
    problem.trials[0].stay = 0;
    assert_eq!(plan(&problem, 20).makespan, 40);
    problem.trials[0].stay = 7;
    assert_eq!(plan(&problem, 20).makespan, 47);
    // While its checkpoint is on its way too: elsewhere it could begin later.
    (problem.trials[0].at, problem.trials[0].free_at) = (Some(0), 10);
    assert_eq!(plan(&problem, 20).makespan, 57);
    problem.trials[0].stay = 0;
    assert_eq!(plan(&problem, 20).makespan, 43);
}

#[test]
fn a_trial_that_fills_a_gap_ends_when_the_urgent_trial_is_back() {
    // Trial 0 sends for 8 after its first epoch; trial 1, of hops of 3, has the machine meanwhile.
    let mut problem = problem(vec![trial(4, 5), trial(4, 3)], 1);
    for trial in &mut problem.trials {
        (trial.epochs_after, trial.send, trial.stay) = (1, 8, 8);
    }
    let instance = Instance::new(&problem);
    let share = |trial, urgency| Share { trial, machine: 0, first: 0, end: 8, urgency };
    let fillers = |patience| {
        let mut steps = Vec::new();
        let shares = [share(0, 2), share(1, 1)];
        let mut simulation = Simulation::new(&instance);
        simulation.simulate(&shares, patience, &mut |block| block.steps(&instance, &mut steps));
        assert_eq!(Schedule::new(steps.clone()).check(&problem), Ok(()));
        let back = steps.iter().find(|step| (step.trial, step.epoch) == (0, 1)).unwrap().start;
        (steps.iter().filter(|step| step.trial == 1 && step.start < back).count(), back)
    };
    assert_eq!(fillers(Patience::Long), (2, 28));
    assert_eq!(fillers(Patience::Short), (3, 29));
    assert_eq!(fillers(Patience::None), (4, 32));
}

#[test]
fn measured_at_once_is_about_as_step_by_step() {
    let mut problem = problem(vec![trial(6, 50), trial(6, 40), trial(6, 70)], 2);
    problem.trials.iter_mut().for_each(|trial| trial.epochs_after = 2);
    let instance = Instance::new(&problem);
    let mut shares = Vec::new();
    instance.finish_earliest(&[2, 0, 1], &mut [0, 0], &mut shares);
    let mut simulation = Simulation::new(&instance);
    let outcome = simulation.outcome(&shares, Patience::Long, 0, u64::MAX).unwrap();
    assert_eq!(simulation.outcome(&shares, Patience::Long, 0, outcome.ends), Some(outcome));
    assert_eq!(simulation.outcome(&shares, Patience::Long, 0, outcome.ends - 1), None, "too late");
    let mut last = 0;
    let mut steps = Vec::new();
    simulation.simulate(&shares, Patience::Long, &mut |block| {
        block.steps(&instance, &mut steps);
        last = last.max(block.start);
    });
    let sent = steps.iter().map(|step| step.end).max().unwrap() + 1;
    assert_eq!((outcome.ends, outcome.moves), (sent, 0));
}

fn moving_trial(shards: u32, machines: u32) -> impl Strategy<Value = PlanTrial> {
    let at = prop_oneof![Just(None), (0..machines).prop_map(Some)];
    let pace = proptest::collection::vec(PACE_ONE..4 * PACE_ONE, machines as usize);
    let work = proptest::collection::vec(1_u64..40, shards as usize);
    let times = (0_u64..60, 0_u64..20, 0_u64..20, 0_u64..20);
    (times, at, pace, work, 0..=shards, 0_u32..3).prop_map(
        |((free_at, send, fetch, stay), at, pace, work, open, epochs_after)| PlanTrial {
            free_at,
            open: (0..open).collect(),
            epochs_after,
            work,
            pace,
            at,
            send,
            stay: stay.min(send),
            fetch,
            class: None,
        },
    )
}

fn moving() -> impl Strategy<Value = Problem> {
    (1_u32..5, 1_u32..4).prop_flat_map(|(shards, machines)| {
        let machine = (0_u64..50, 0_u64..3);
        let machine = machine.prop_map(|(free_at, latency)| Machine { free_at, latency, class: 0 });
        (
            proptest::collection::vec(moving_trial(shards, machines), 0..7),
            proptest::collection::vec(machine, machines as usize),
        )
            .prop_map(move |(trials, machines)| Problem {
                trials,
                machines,
                holders: vec![None; shards as usize],
                stays_in_class: false,
            })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn trials_take_their_time_to_move(problem in moving(), seed: u64) {
        prop_assert_eq!(problem.check(), Ok(()));
        let plan = |iterations| {
            Migration.plan(&problem, seed, &mut Iterations::new(iterations)).unwrap()
        };
        let schedule = plan(20);
        prop_assert_eq!(schedule.check(&problem), Ok(()));
        prop_assert_eq!(check_moves(&problem, &schedule.steps), Ok(()));
        prop_assert!(schedule.makespan >= problem.lower_bound());
        prop_assert_eq!(plan(20), schedule);
    }
}

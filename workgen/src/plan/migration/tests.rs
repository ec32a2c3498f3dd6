//! Small problems with known best plans, and that plans give trials their time to move.

use super::*;
use crate::plan::{Iterations, Line, Machine, PACE_ONE, PlanTrial, Step};
use proptest::prelude::*;
use share::Share;

/// A trial of so many hops of so much work.
fn trial(hops: u32, work: u64) -> PlanTrial {
    PlanTrial {
        open: (0..hops).collect(),
        work: vec![work; hops as usize],
        checkpoint_bytes: 1,
        ..PlanTrial::default()
    }
}

/// A line that takes 1 microsecond for a byte to the server and 2 for one from it.
const LINE: Line = Line { upload: 1_000_000, download: 500_000, machines: 1 };

fn problem(trials: Vec<PlanTrial>, machines: usize) -> Problem {
    let holders = vec![None; trials[0].work.len()];
    let machines = vec![Machine { line: LINE, ..Machine::default() }; machines];
    Problem { trials, machines, holders, ..Problem::default() }
}

fn plan(problem: &Problem, iterations: u64) -> Schedule {
    assert_eq!(problem.check(), Ok(()));
    let schedule = Migration.plan(problem, 1, &mut Iterations::new(iterations)).unwrap();
    assert_eq!(schedule.check(problem), Ok(()));
    check_moves(problem, &schedule.steps).unwrap();
    schedule
}

/// Does each trial take its time from one machine to another?
fn check_moves(problem: &Problem, steps: &[Step]) -> Result<(), String> {
    for (number, trial) in (0u32..).zip(&problem.trials) {
        let send =
            |machine: u32| problem.machines[machine as usize].line.send(trial.checkpoint_bytes);
        let fetch =
            |machine: u32| problem.machines[machine as usize].line.fetch(trial.checkpoint_bytes);
        let mut before: Option<&Step> = None;
        for step in steps.iter().filter(|step| step.trial == number) {
            let from = match (before, trial.at) {
                (Some(before), _) if before.machine != step.machine => {
                    before.end + send(before.machine) + fetch(step.machine)
                }
                (Some(before), _) => before.end,
                (None, Some((at, _))) if at != step.machine => trial.free_at + fetch(step.machine),
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
        trial.checkpoint_bytes = 1_000;
    }
    assert_eq!(plan(&problem, 0).makespan, 80_000);
    let schedule = plan(&problem, 200);
    assert_eq!((schedule.makespan, problem.lower_bound()), (56_000, 53_333));
    assert_eq!(moves(&schedule, 2), 2);
}

#[test]
fn a_trial_goes_on_at_its_machine_without_waiting_for_its_checkpoint() {
    let mut problem = problem(vec![trial(4, 5)], 1);
    (problem.trials[0].epochs_after, problem.trials[0].checkpoint_bytes) = (1, 7);
    assert_eq!(plan(&problem, 20).makespan, 40);
    // Also while its checkpoint is on its way: elsewhere it could begin later.
    (problem.trials[0].at, problem.trials[0].free_at) = (Some((0, 3)), 10);
    assert_eq!(plan(&problem, 20).makespan, 43);
}

#[test]
fn a_machine_trains_no_faster_than_its_line_takes_the_checkpoints() {
    // Epochs of 20, of which each checkpoint takes 50: each but the first begins when the one before can be sent.
    let mut problem = problem(vec![trial(4, 5)], 1);
    (problem.trials[0].epochs_after, problem.trials[0].checkpoint_bytes) = (3, 50);
    let schedule = plan(&problem, 20);
    let begin = schedule.steps.iter().filter(|step| step.shard == 0).map(|step| step.start);
    assert_eq!(begin.collect::<Vec<u64>>(), [0, 20, 70, 120]);
    // Two machines that share the line have half of it each.
    problem.machines[0].line.machines = 2;
    let begin = plan(&problem, 20).steps.into_iter().filter(|step| step.shard == 0);
    assert_eq!(begin.map(|step| step.start).collect::<Vec<u64>>(), [0, 20, 120, 220]);
}

#[test]
fn trials_go_where_the_lines_are_not_busy() {
    // Two machines of which the first is twice as fast, and has the slower line.
    let mut problem = problem(vec![trial(4, 5), trial(4, 5), trial(4, 5)], 2);
    for trial in &mut problem.trials {
        (trial.epochs_after, trial.checkpoint_bytes) = (3, 50);
        trial.pace = vec![PACE_ONE, 2 * PACE_ONE];
    }
    problem.machines[0].line.upload = 500_000;
    let on_first = |problem: &Problem| {
        let schedule = plan(problem, 100);
        schedule.steps.iter().filter(|step| step.machine == 0).count()
    };
    assert!(on_first(&problem) <= 16, "12 checkpoints, of which its line takes a third");
    problem.trials.iter_mut().for_each(|trial| trial.checkpoint_bytes = 1);
    assert_eq!(on_first(&problem), 32, "two of three trials");
}

#[test]
fn a_trial_that_fills_a_gap_ends_when_the_urgent_trial_comes() {
    // Trial 0 comes after 28; trial 1, of hops of 10, has the machine meanwhile.
    let mut problem = problem(vec![trial(4, 5), trial(4, 10)], 1);
    problem.trials[0].free_at = 28;
    problem.trials[1].epochs_after = 1;
    let instance = Instance::new(&problem);
    let share = |trial: usize, end, urgency| Share { trial, machine: 0, first: 0, end, urgency };
    let fillers = |patience| {
        let shares = [share(0, 4, 2), share(1, 8, 1)];
        let (steps, _) = Simulation::new(&instance).steps(&shares, patience, Turns::None);
        assert_eq!(Schedule::new(steps.clone()).check(&problem), Ok(()));
        let comes = steps.iter().find(|step| step.trial == 0).unwrap().start;
        (steps.iter().filter(|step| step.trial == 1 && step.start < comes).count(), comes)
    };
    assert_eq!(fillers(Patience::Long), (2, 28));
    assert_eq!(fillers(Patience::Short), (3, 30));
    assert_eq!(fillers(Patience::None), (4, 40), "an epoch");
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
    let (steps, sent) = simulation.steps(&shares, Patience::Long, Turns::None);
    assert_eq!(steps.iter().map(|step| step.end).max(), Some(sent - 1));
    assert_eq!((outcome.ends, outcome.moves), (sent, 0));
}

#[test]
fn trials_of_a_machine_take_turns_by_epochs() {
    // The second trial is two epochs behind.
    let mut problem = problem(vec![trial(2, 5), trial(2, 5)], 1);
    for (trial, epoch) in problem.trials.iter_mut().zip([3, 1]) {
        (trial.epochs_after, trial.epoch) = (3, epoch);
    }
    let order = |problem: &Problem| {
        let schedule = plan(problem, 0);
        let epochs = schedule.steps.iter().filter(|step| step.shard == 0);
        (epochs.map(|step| step.trial).collect::<Vec<u32>>(), schedule.makespan)
    };
    assert_eq!(order(&problem), (vec![1, 1, 0, 1, 0, 1, 0, 0], 80));
    problem.spread = Spread::Depth;
    assert_eq!(order(&problem), (vec![0, 0, 0, 0, 1, 1, 1, 1], 80));
}

#[test]
fn trials_that_move_take_turns_where_that_ends_no_later() {
    // Of three trials of 10 epochs on two machines one is split. Its checkpoint takes no time worth mentioning.
    let mut problem = problem(vec![trial(1, 50), trial(1, 50), trial(1, 50)], 2);
    problem.trials.iter_mut().for_each(|trial| trial.epochs_after = 9);
    let schedule = plan(&problem, 50);
    assert!(schedule.makespan <= 760, "{}", schedule.makespan);
    // At each time, what each trial has ended.
    let apart = schedule.steps.iter().map(|at| {
        let ended = |trial: u32| {
            let steps = schedule.steps.iter().filter(|step| step.trial == trial);
            steps.filter(|step| step.end <= at.start).count()
        };
        let ended = [0, 1, 2].map(ended);
        ended.iter().max().unwrap() - ended.iter().min().unwrap()
    });
    assert!(apart.max().unwrap() <= 5, "depth first: 10");
}

fn moving_trial(shards: u32, machines: u32) -> impl Strategy<Value = PlanTrial> {
    let at = prop_oneof![Just(None), (0..machines, 0_u64..60).prop_map(Some)];
    let pace = proptest::collection::vec(PACE_ONE..4 * PACE_ONE, machines as usize);
    let work = proptest::collection::vec(1_u64..40, shards as usize);
    let times = (0_u64..60, 0_u64..20);
    let is_fixed = proptest::bool::weighted(0.3);
    (times, at, pace, work, 0..=shards, 0_u32..3, is_fixed).prop_map(
        move |((free_at, checkpoint_bytes), at, pace, work, open, epochs_after, is_fixed)| {
            let visits = (0..open).rev().chain((0..epochs_after).flat_map(|_| (0..shards).rev()));
            PlanTrial {
                free_at,
                epoch: 0,
                open: (0..open).collect(),
                order: if is_fixed { visits.collect() } else { Vec::new() },
                epochs_after,
                work,
                pace,
                at,
                checkpoint_bytes,
                class: None,
            }
        },
    )
}

fn moving() -> impl Strategy<Value = Problem> {
    (1_u32..5, 1_u32..4).prop_flat_map(|(shards, machines)| {
        let line = (0_u64..2_000_000, 0_u64..2_000_000, 0_u32..3);
        let line = line.prop_map(|(upload, download, machines)| {
            // As slow as 10 microseconds a byte.
            let speed = |speed: u64| if speed == 0 { 0 } else { speed.max(100_000) };
            Line { upload: speed(upload), download: speed(download), machines }
        });
        let times = (0_u64..50, 0_u64..200, 0_u64..3);
        let machine = (times, line).prop_map(|((free_at, line_free_at, latency), line)| Machine {
            free_at,
            line_free_at,
            latency,
            line,
            class: 0,
        });
        (
            proptest::collection::vec(moving_trial(shards, machines), 0..7),
            proptest::collection::vec(machine, machines as usize),
        )
            .prop_map(move |(trials, machines)| Problem {
                trials,
                machines,
                holders: vec![None; shards as usize],
                stays_in_class: false,
                spread: Spread::Breadth,
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

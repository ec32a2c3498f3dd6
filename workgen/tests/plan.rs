//! Properties of every planner on small problems of all kinds.

#![expect(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "small numbers")]

#[path = "../benches/plan/instances.rs"]
mod instances;

use instances::{Holders, convnets};
use proptest::prelude::*;
use sojourn_workgen::plan::{
    Iterations, Line, Machine, PACE_ONE, PlanTrial, PlannerName, Problem, ProblemError, Schedule,
    ScheduleError, Step,
};

fn plan(name: PlannerName, problem: &Problem, seed: u64, iterations: u64) -> Option<Schedule> {
    name.planner().plan(problem, seed, &mut Iterations::new(iterations))
}

fn machine() -> impl Strategy<Value = Machine> {
    (prop_oneof![Just(0), 0_u64..50], prop_oneof![3 => Just(0), 1 => 0_u64..5], 0_u32..3).prop_map(
        |(free_at, latency, class)| Machine { free_at, latency, class, ..Machine::default() },
    )
}

fn trial(shards: usize, machines: usize) -> impl Strategy<Value = PlanTrial> {
    let open = Just((0..shards as u32).collect::<Vec<_>>()).prop_shuffle();
    let pace = prop_oneof![
        Just(Vec::new()),
        proptest::collection::vec(PACE_ONE / 4..PACE_ONE * 4, machines),
        proptest::collection::vec(Just(PACE_ONE), machines),
    ];
    let work = prop_oneof![
        proptest::collection::vec(0_u64..40, shards),
        (1_u64..40).prop_map(move |work| vec![work; shards]),
    ];
    let class = prop_oneof![3 => Just(None), 1 => (0_u32..3).prop_map(Some)];
    let all = Just((0..shards as u32).collect::<Vec<_>>());
    let later = proptest::collection::vec(all.prop_shuffle(), 2);
    let order = proptest::option::weighted(0.3, later);
    (prop_oneof![Just(0), 0_u64..60], open, 0..=shards, 0_u32..3, work, pace, class, order)
        .prop_map(|(free_at, mut open, gone, epochs_after, work, pace, class, later)| {
            open.truncate(open.len() - gone);
            let order = later.map_or_else(Vec::new, |later| {
                let later = later.into_iter().take(epochs_after as usize).flatten();
                open.iter().copied().chain(later).collect()
            });
            let rest = PlanTrial::default();
            PlanTrial { free_at, open, order, epochs_after, work, pace, class, ..rest }
        })
}

fn holders(machines: usize) -> impl Strategy<Value = Option<Vec<u32>>> {
    prop_oneof![
        Just(None),
        (0..machines as u32).prop_map(|machine| Some(vec![machine])),
        proptest::sample::subsequence((0..machines as u32).collect::<Vec<_>>(), 1..=machines)
            .prop_shuffle()
            .prop_map(Some),
    ]
}

fn problem() -> impl Strategy<Value = Problem> {
    (0_usize..6, 0_usize..6, 1_usize..5, 0..3).prop_flat_map(
        |(trials, shards, machines, pinned)| {
            let all = proptest::collection::vec(holders(machines), shards);
            (
                proptest::collection::vec(trial(shards, machines), trials),
                proptest::collection::vec(machine(), machines),
                all,
                proptest::bool::ANY,
            )
                .prop_map(move |(trials, machines, mut holders, stays_in_class)| {
                    if pinned > 0 {
                        for (shard, holders) in holders.iter_mut().enumerate() {
                            *holders = Some(vec![(shard % machines.len()) as u32]);
                        }
                    }
                    let mut problem =
                        Problem { trials, machines, holders, stays_in_class, ..Problem::default() };
                    // Where some trial has no class, any machine is free to all.
                    problem.stays_in_class &= problem.check().is_ok();
                    problem
                })
        },
    )
}

#[test]
fn visits_in_another_order_than_the_fixed_one_are_refused() {
    let trial = |order: &[u32]| PlanTrial {
        open: vec![1, 2],
        order: order.to_vec(),
        epochs_after: 1,
        work: vec![10; 3],
        ..PlanTrial::default()
    };
    let problem = |order: &[u32]| Problem {
        trials: vec![trial(order)],
        machines: vec![Machine::default()],
        holders: vec![None; 3],
        ..Problem::default()
    };
    let fixed = problem(&[2, 1, 0, 2, 1]);
    assert_eq!(fixed.check(), Ok(()));
    for wrong in [&[1, 2][..], &[2, 1, 0, 2], &[2, 0, 1, 2, 1], &[2, 1, 0, 0, 1], &[0; 6]] {
        assert_eq!(problem(wrong).check(), Err(ProblemError::Order { trial: 0 }), "{wrong:?}");
    }
    let visits = |schedule: &Schedule| -> Vec<u32> {
        schedule.steps.iter().map(|step| step.shard).collect()
    };
    for name in PlannerName::ALL {
        let Some(schedule) = plan(name, &fixed, 1, 20) else { continue };
        assert_eq!(visits(&schedule), [2, 1, 0, 2, 1], "{name:?}");
    }
    let free = plan(PlannerName::Ltrp, &problem(&[]), 1, 20).unwrap();
    assert_ne!(visits(&free), [2, 1, 0, 2, 1]);
    let first = free.steps[0];
    assert_eq!(free.check(&fixed), Err(ScheduleError::Visit(first, 2)));
}

/// Of hops that begin at one instant any may be the one that ends too late.
#[test]
fn rollout_takes_no_plan_that_ends_later_than_the_one_it_has() {
    let trial = |free_at, open: &[u32], epochs_after, work: [u64; 5]| PlanTrial {
        free_at,
        open: open.to_vec(),
        epochs_after,
        work: work.to_vec(),
        ..PlanTrial::default()
    };
    let problem = Problem {
        trials: vec![
            trial(41, &[0, 2, 1, 4], 0, [19, 30, 3, 0, 28]),
            trial(0, &[], 1, [37, 30, 27, 15, 5]),
            trial(0, &[0, 1, 2, 3, 4], 0, [2; 5]),
        ],
        machines: vec![Machine::default(), Machine { latency: 1, ..Machine::default() }],
        holders: vec![Some(vec![0]), None, Some(vec![1]), Some(vec![0]), None],
        ..Problem::default()
    };
    let ltrp = plan(PlannerName::Ltrp, &problem, 0, 0).unwrap().makespan;
    for seed in 0..200 {
        let rollout = plan(PlannerName::Rollout, &problem, seed, 34).unwrap().makespan;
        assert!(rollout <= ltrp, "{rollout} after {ltrp}, seed {seed}");
    }
}

/// All begin and end at once: only their numbers tell them apart.
#[test]
fn hops_that_take_no_time_are_in_the_order_of_their_visits() {
    let trial = |order: &[u32], epochs_after| PlanTrial {
        open: vec![0, 1],
        order: order.to_vec(),
        epochs_after,
        work: vec![0, 0],
        ..PlanTrial::default()
    };
    let problem = Problem {
        trials: vec![trial(&[0, 1, 0, 1, 1, 0], 2), trial(&[], 0), trial(&[], 0)],
        machines: vec![Machine::default(); 3],
        holders: vec![Some(vec![0]), Some(vec![1])],
        ..Problem::default()
    };
    for seed in 0..20 {
        let schedule = plan(PlannerName::Randomized, &problem, seed, 20).unwrap();
        assert_eq!(schedule.check(&problem), Ok(()), "seed {seed}");
    }
    let of_one = |shard| Step { trial: 0, epoch: 0, shard, machine: shard, start: 0, end: 1 };
    let short = Problem {
        trials: vec![PlanTrial { work: vec![1, 1], ..trial(&[1, 0], 0) }],
        machines: vec![Machine::default(); 2],
        holders: vec![Some(vec![0]), Some(vec![1])],
        ..Problem::default()
    };
    let second = Step { start: 1, end: 2, ..of_one(1) };
    let wrong = Schedule::new(vec![of_one(0), second]).check(&short);
    assert_eq!(wrong, Err(ScheduleError::Visit(of_one(0), 1)));
}

/// A visit that takes no time passes nobody: the next begins where it ends.
#[test]
fn annealing_keeps_a_fixed_order_of_hops_that_take_no_time() {
    let problem = Problem {
        trials: vec![PlanTrial {
            open: vec![0, 1, 3],
            order: vec![0, 1, 3, 1, 0, 2, 4, 3],
            epochs_after: 1,
            work: vec![0, 0, 0, 1, 0],
            ..PlanTrial::default()
        }],
        machines: vec![Machine { latency: 1, ..Machine::default() }; 2],
        holders: [0, 1, 0, 1, 0].map(|machine| Some(vec![machine])).to_vec(),
        ..Problem::default()
    };
    for seed in 0..50 {
        let schedule = plan(PlannerName::Rollout, &problem, seed, 20).unwrap();
        assert_eq!(schedule.check(&problem), Ok(()), "seed {seed}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn schedules_are_whole_and_keep_the_bound(problem in problem(), seed: u64) {
        prop_assert_eq!(problem.check(), Ok(()));
        for name in PlannerName::ALL {
            let Some(schedule) = plan(name, &problem, seed, 20) else {
                prop_assert!(matches!(name, PlannerName::Cyclic | PlannerName::Migration));
                continue;
            };
            prop_assert_eq!(schedule.check(&problem), Ok(()), "{:?}", name);
            prop_assert!(schedule.makespan >= problem.lower_bound(), "{:?}", name);
            prop_assert_eq!(plan(name, &problem, seed, 20), Some(schedule), "{:?}", name);
        }
    }

    #[test]
    fn rollout_is_never_worse_than_what_it_starts_from(problem in problem(), seed: u64, iterations in 0_u64..40) {
        let rollout = plan(PlannerName::Rollout, &problem, seed, iterations).unwrap().makespan;
        for name in [PlannerName::Ltrp, PlannerName::Cyclic] {
            if let Some(other) = plan(name, &problem, seed, 0) {
                prop_assert!(rollout <= other.makespan);
            }
        }
    }

    #[test]
    fn the_order_of_lists_decides_nothing(problem in problem(), seed: u64) {
        let mut other = problem.clone();
        for trial in &mut other.trials {
            trial.open.reverse();
        }
        for holders in other.holders.iter_mut().flatten() {
            holders.reverse();
        }
        for name in PlannerName::ALL {
            prop_assert_eq!(plan(name, &problem, seed, 10), plan(name, &other, seed, 10));
        }
        prop_assert_eq!(problem.lower_bound(), other.lower_bound());
    }
}

fn mean(name: PlannerName, of: impl Fn(u64) -> Problem, seeds: u64, iterations: u64) -> f64 {
    let ratio = |seed| {
        let problem = of(seed);
        let schedule = plan(name, &problem, seed, iterations);
        schedule.map_or(f64::MAX, |plan| plan.makespan as f64 / problem.lower_bound() as f64)
    };
    (0..seeds).map(ratio).sum::<f64>() / seeds as f64
}

#[test]
fn ratios_are_as_good_as_claimed() {
    let pinned =
        |trials, machines| move |seed| convnets(trials, machines, false, Holders::Pinned, seed);
    assert!(mean(PlannerName::Ltrp, pinned(16, 8), 20, 0) <= 1.01);
    assert!(mean(PlannerName::Rollout, pinned(16, 8), 20, 200) <= 1.002);
    assert!(mean(PlannerName::Ltrp, pinned(64, 32), 20, 0) <= 1.01);
    let equal = |seed| convnets(16, 16, true, Holders::Pinned, seed);
    assert!(mean(PlannerName::Rollout, equal, 20, 200) <= 1.0);
    let anywhere = |seed| convnets(16, 8, false, Holders::All, seed);
    assert!(mean(PlannerName::Ltrp, anywhere, 20, 0) <= 1.025);
}

fn two_by_two() -> Problem {
    Problem::of_open_shop(&[vec![3, 5], vec![4, 2]])
}

#[test]
fn a_small_shop_is_done_in_its_bound() {
    let problem = two_by_two();
    assert_eq!(problem.lower_bound(), 8, "the first job");
    let schedule = plan(PlannerName::Ltrp, &problem, 0, 0).unwrap();
    assert_eq!(schedule.makespan, 8);
    let step =
        |trial, shard, start, end| Step { trial, epoch: 0, shard, machine: shard, start, end };
    let steps = [step(0, 0, 0, 3), step(1, 1, 0, 2), step(1, 0, 3, 7), step(0, 1, 3, 8)];
    assert_eq!(schedule, Schedule::new(steps.to_vec()));
}

#[test]
fn the_bound_knows_machines_trials_and_capacity() {
    let mut problem = Problem::of_open_shop(&[vec![5, 1], vec![5, 1], vec![5, 1]]);
    assert_eq!(problem.lower_bound(), 15, "the first machine");
    problem.machines[0] = Machine { free_at: 7, latency: 2, ..Machine::default() };
    assert_eq!(problem.lower_bound(), 26, "and when it is free, and its rests");
    problem.machines[0] = Machine::default();
    problem.holders = vec![None, None];
    assert_eq!(problem.lower_bound(), 9, "18 on two machines");
    problem.trials[0].free_at = 20;
    assert_eq!(problem.lower_bound(), 26, "the first trial");
    problem.trials[0].free_at = 0;
    problem.trials[0].epochs_after = 3;
    assert_eq!(problem.lower_bound(), 24, "four epochs of the first trial");
    for trial in &mut problem.trials {
        trial.pace = vec![PACE_ONE, 2 * PACE_ONE];
    }
    assert_eq!(problem.lower_bound(), 24, "36 in all, at a speed of one and a half");
    problem.trials.truncate(2);
    problem.trials[1].epochs_after = 3;
    assert_eq!(problem.lower_bound(), 32, "48 at a speed of one and a half");
}

#[test]
fn a_schedule_that_is_none_is_found_out() {
    let problem = two_by_two();
    let good = plan(PlannerName::Ltrp, &problem, 0, 0).unwrap();
    let broken = |change: &dyn Fn(&mut Schedule)| {
        let mut schedule = good.clone();
        change(&mut schedule);
        schedule.check(&problem)
    };
    assert_eq!(broken(&|_| ()), Ok(()));
    let missing = broken(&|schedule| schedule.steps.truncate(3));
    assert!(matches!(missing, Err(ScheduleError::Missing { .. })), "{missing:?}");
    let twice = broken(&|schedule| schedule.steps.push(*schedule.steps.last().unwrap()));
    assert!(matches!(twice, Err(ScheduleError::Twice(_))), "{twice:?}");
    let elsewhere = broken(&|schedule| schedule.steps[0].machine = 1);
    assert!(matches!(elsewhere, Err(ScheduleError::Unknown(_))), "{elsewhere:?}");
    let short = broken(&|schedule| schedule.steps[0].end = 1);
    assert!(matches!(short, Err(ScheduleError::Duration(_, 3))), "{short:?}");
    let overlap = broken(&|schedule| {
        let step = &mut schedule.steps[2];
        (step.start, step.end) = (2, 6);
    });
    assert!(matches!(overlap, Err(ScheduleError::TooEarly(_, 3))), "{overlap:?}");
    let makespan = broken(&|schedule| schedule.makespan = 9);
    assert_eq!(makespan, Err(ScheduleError::Makespan(8, 9)));
    let order = broken(&|schedule| schedule.steps.swap(0, 3));
    assert!(matches!(order, Err(ScheduleError::Order(_))), "{order:?}");
}

#[test]
fn a_problem_that_is_none_is_found_out() {
    let with = |change: &dyn Fn(&mut Problem)| {
        let mut problem = two_by_two();
        change(&mut problem);
        problem.check()
    };
    assert_eq!(with(&|_| ()), Ok(()));
    let length = with(&|problem| problem.trials[1].work.truncate(1));
    assert!(matches!(length, Err(ProblemError::Length { trial: 1, list: "work", .. })));
    let pace = with(&|problem| problem.trials[0].pace = vec![PACE_ONE]);
    assert!(matches!(pace, Err(ProblemError::Length { trial: 0, list: "pace", .. })));
    let open = with(&|problem| problem.trials[0].open.push(1));
    assert_eq!(open, Err(ProblemError::Open { trial: 0, shard: 1 }));
    let holder = with(&|problem| problem.holders[1] = Some(vec![2]));
    assert_eq!(holder, Err(ProblemError::Holder { shard: 1, machine: 2 }));
    let nowhere = with(&|problem| problem.holders[1] = Some(Vec::new()));
    assert_eq!(nowhere, Err(ProblemError::Nowhere { shard: 1, trial: 0 }));
    let long = with(&|problem| problem.trials[0].work[0] = u64::MAX);
    assert_eq!(long, Err(ProblemError::TooLong));
    let many = with(&|problem| problem.trials[0].epochs_after = u32::MAX);
    assert_eq!(many, Err(ProblemError::TooMany));
}

#[test]
fn trials_that_take_time_to_move_stay_where_they_are() {
    let trial = |work: u64, at: u32| PlanTrial {
        open: vec![0, 1],
        epochs_after: 1,
        work: vec![work; 2],
        at: Some((at, 0)),
        checkpoint_bytes: 5,
        ..PlanTrial::default()
    };
    // 1 microsecond a byte to the server, 8 from it.
    let line = Line { upload: 1_000_000, download: 125_000, machines: 1 };
    let problem = Problem {
        trials: vec![trial(10, 1), trial(10, 0), trial(9, 0)],
        machines: vec![Machine { line, ..Machine::default() }; 2],
        holders: vec![None; 2],
        ..Problem::default()
    };
    let schedule = plan(PlannerName::Rollout, &problem, 1, 10).unwrap();
    assert_eq!(schedule.check(&problem), Ok(()));
    let moved = |trial: u32, machine: u32| {
        schedule.steps.iter().any(|step| step.trial == trial && step.machine != machine)
    };
    assert!(!moved(0, 1) && !moved(1, 0) && !moved(2, 0), "{schedule:?}");
    assert_eq!(schedule.makespan, 76);
}

#[test]
fn trials_are_shared_out_over_classes_by_what_each_can_train() {
    // Two machines of a fast class, two of one that is four times as slow.
    let pace = vec![PACE_ONE, PACE_ONE, 4 * PACE_ONE, 4 * PACE_ONE];
    let trial = |work: u64, class| PlanTrial {
        open: vec![0, 1],
        epochs_after: 4,
        work: vec![work; 2],
        pace: pace.clone(),
        class,
        ..PlanTrial::default()
    };
    let machine = |class| Machine { class, ..Machine::default() };
    let mut problem = Problem {
        trials: vec![trial(100, None); 5],
        machines: [0, 0, 7, 7].map(machine).to_vec(),
        holders: vec![None; 2],
        stays_in_class: true,
        ..Problem::default()
    };
    assert_eq!(problem.check(), Ok(()));
    let classes = |problem: &Problem| -> (Vec<usize>, u64) {
        let schedule = plan(PlannerName::Rollout, problem, 1, 50).unwrap();
        assert_eq!(schedule.check(problem), Ok(()));
        let slow = |trial: u32| {
            let mut steps = schedule.steps.iter().filter(|step| step.trial == trial);
            usize::from(steps.next().is_some_and(|step| step.machine > 1))
        };
        ((0..5).map(slow).collect(), schedule.makespan)
    };
    // A trial takes 1,000 on a fast machine. On a slow one it takes 4,000, more than all five on the two fast ones.
    assert_eq!(classes(&problem), (vec![0; 5], 2_500));
    // Of nine on the fast ones the last would end at 4,500.
    problem.trials = [vec![trial(100, None); 5], vec![trial(100, Some(0)); 4]].concat();
    let (slow, makespan) = classes(&problem);
    assert_eq!((slow.iter().sum::<usize>(), makespan), (1, 4_000));
    // One that has begun on a slow machine stays there, whatever that costs.
    problem.trials = vec![trial(100, Some(7)), trial(100, None), trial(100, None)];
    assert_eq!(classes(&problem).1, 4_000);
    problem.trials[0].class = Some(3);
    assert_eq!(problem.check(), Err(ProblemError::NoClass { trial: 0 }));
}

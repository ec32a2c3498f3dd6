//! The integer program against shops whose optimum is known by hand, and against the planners.

#![cfg(feature = "milp")]

use sojourn_sim::milp::{Milp, MilpError, Proof};
use sojourn_workgen::plan::{Iterations, Machine, PACE_ONE, PlannerName, Problem};
use std::time::Duration;

const MILP: Milp = Milp { limit: Duration::from_secs(60) };

#[test]
fn small_shops_are_solved() {
    let shop = Problem::of_open_shop(&[vec![4, 5, 3], vec![6, 2, 4], vec![2, 5, 5]]);
    let plan = MILP.solve(&shop).unwrap();
    assert_eq!(plan.schedule.check(&shop), Ok(()));
    assert_eq!(plan.proof, Proof::Optimal);
    let mut budget = Iterations::new(500);
    let rollout = PlannerName::Rollout.planner().plan(&shop, 0, &mut budget).unwrap();
    assert_eq!(plan.schedule.makespan, rollout.makespan);
}

#[test]
fn operations_that_take_no_time_do_not_bind() {
    let shop = Problem::of_open_shop(&[vec![1, 0, 1], vec![0, 1, 1], vec![1, 1, 0]]);
    let plan = MILP.solve(&shop).unwrap();
    assert_eq!((plan.schedule.check(&shop), plan.proof), (Ok(()), Proof::Optimal));
    assert_eq!(plan.schedule.makespan, 2);
}

#[test]
fn replicas_epochs_and_rests_are_kept() {
    let mut shop = Problem::of_open_shop(&[vec![7, 4], vec![5, 6], vec![3, 3]]);
    shop.holders = vec![None, Some(vec![1])];
    shop.trials[0].pace = vec![2 * PACE_ONE, PACE_ONE];
    shop.trials[1].epochs_after = 1;
    shop.trials[2].free_at = 5;
    shop.machines[0] = Machine { free_at: 3, latency: 1, ..Machine::default() };
    let plan = MILP.solve(&shop).unwrap();
    assert_eq!(plan.schedule.check(&shop), Ok(()));
    assert_eq!(plan.proof, Proof::Optimal);
    for planner in PlannerName::ALL {
        let other = planner.planner().plan(&shop, 0, &mut Iterations::new(200));
        assert!(other.is_none_or(|other| plan.schedule.makespan <= other.makespan));
    }
}

#[test]
fn what_is_too_large_is_refused() {
    let row = |job: u64| (1..40).map(|machine| 1 + job * machine % 97).collect();
    let rows: Vec<Vec<u64>> = (1..60).map(row).collect();
    assert!(matches!(MILP.solve(&Problem::of_open_shop(&rows)), Err(MilpError::TooLarge)));
}

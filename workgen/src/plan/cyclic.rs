//! The cyclic order: in round `r`, trial `t` is at machine `t + r`, a Latin square.
//!
//! ```text
//!   round     0  1  2  3
//!   trial 0   a  b  c  d      exact where a trial's hops are alike, and trials are no more than
//!   trial 1   b  c  d  a      machines; where they are several times as many and alike too, each
//!   trial 2   c  d  a  b      round has that many turns
//!   trial 3   d  a  b  c
//! ```

#![expect(clippy::indexing_slicing, reason = "ids of a checked problem are indices of its tables")]

use super::{Budget, Planner, Problem, Schedule, Step, problem::id, shop::Shop};
use sojourn_protocol::quantity::to_usize;

/// The Latin-square order where it is exact: one shard pinned to each machine, and no schedule that ends
/// sooner.
#[derive(Debug, Clone, Copy, Default)]
pub struct Cyclic;

impl Planner for Cyclic {
    fn plan_class(&self, problem: &Problem, _: u64, _: &mut dyn Budget) -> Option<Schedule> {
        plan(&Shop::new(problem))
    }
}

/// The order, where its end is the lower bound.
pub(super) fn plan(shop: &Shop<'_>) -> Option<Schedule> {
    let whole = |trial: &super::PlanTrial| trial.open.len() == shop.shards;
    let single = shop.shards_of.iter().all(|shards| shards.len() == 1);
    let is_free = |trial: &super::PlanTrial| !trial.has_fixed_order();
    let fits = |trial: &super::PlanTrial| whole(trial) && is_free(trial);
    if !(shop.pinned && single && shop.problem.trials.iter().all(fits)) {
        return None;
    }
    let mut trials: Vec<u64> = shop.problem.trials.iter().map(|trial| trial.free_at).collect();
    let mut machines: Vec<u64> =
        shop.problem.machines.iter().map(|machine| machine.free_at).collect();
    let epochs = shop.problem.trials.iter().map(|trial| trial.epochs_after).max().unwrap_or(0);
    let mut steps = Vec::with_capacity(to_usize(shop.problem.hops()));
    for round in 0..shop.machines * (epochs as usize + 1) {
        let epoch = id(round / shop.machines);
        for (number, trial) in shop.problem.trials.iter().enumerate() {
            if trial.epochs_after < epoch {
                continue;
            }
            let machine = (number + round) % shop.machines;
            let shard = shop.shards_of[machine][0];
            let (trial, machine_id) = (id(number), id(machine));
            let start = trials[number].max(machines[machine]);
            let end = start + shop.time(trial, shard, machine_id);
            steps.push(Step { trial, epoch, shard, machine: machine_id, start, end });
            trials[number] = end;
            machines[machine] = end + shop.problem.machines[machine].latency;
        }
    }
    let schedule = Schedule::new(steps);
    (schedule.makespan == shop.bound).then_some(schedule)
}

//! The fractions that a solver found, as a schedule in whole numbers: the hops in its order, each as soon as it can.

use sojourn_workgen::plan::{Problem, Schedule, Step};
use std::collections::BTreeMap;

/// The schedule in which hops follow each other as the starts that were found for them say, at the machines of
/// their steps.
///
/// Hops that can't overlap are in the order of their middles, too, and these differ by half a hop where starts may be
/// alike but for rounding: a hop that takes no time begins with the one that it comes before.
pub(crate) fn in_order(problem: &Problem, hops: impl Iterator<Item = (f64, Step)>) -> Schedule {
    let middle = |(start, step): (f64, Step)| {
        let takes = problem.time(step.trial, step.shard, step.machine);
        (start + float(takes) / 2.0, step)
    };
    let mut order: Vec<(f64, Step)> = hops.map(middle).collect();
    order.sort_by(|(a, one), (b, other)| {
        let ids = |step: &Step| (step.epoch, step.trial, step.shard);
        a.total_cmp(b).then(ids(one).cmp(&ids(other)))
    });
    // Where rounding has put a hop before the end of the epoch before its own, it comes behind it.
    let mut by_trial: BTreeMap<u32, Vec<Step>> = BTreeMap::new();
    for (_, step) in &order {
        by_trial.entry(step.trial).or_default().push(*step);
    }
    for steps in by_trial.values_mut() {
        steps.sort_by_key(|step| std::cmp::Reverse(step.epoch));
        // The next to come is the last: within an epoch in the order that was found.
        for epoch in steps.chunk_by_mut(|a, b| a.epoch == b.epoch) {
            epoch.reverse();
        }
    }
    let mut trials: Vec<u64> = problem.trials.iter().map(|trial| trial.free_at).collect();
    let mut machines: Vec<u64> = problem.machines.iter().map(|machine| machine.free_at).collect();
    let mut steps = Vec::with_capacity(order.len());
    for (_, next) in order {
        let Some(step) = by_trial.get_mut(&next.trial).and_then(Vec::pop) else { continue };
        let (trial, machine) = (step.trial as usize, step.machine as usize);
        let (Some(trial), Some(free)) = (trials.get_mut(trial), machines.get_mut(machine)) else {
            continue;
        };
        let start = (*trial).max(*free);
        let end = start + problem.time(step.trial, step.shard, step.machine);
        *trial = end;
        *free = end + problem.machines.get(machine).map_or(0, |machine| machine.latency);
        steps.push(Step { start, end, ..step });
    }
    Schedule::new(steps)
}

#[expect(clippy::cast_precision_loss, reason = "solvers take nothing else")]
pub(crate) fn float(time: u64) -> f64 {
    time as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hops_that_take_no_time_come_before_those_that_begin_with_them() {
        let shop = Problem::of_open_shop(&[vec![1, 0, 1], vec![0, 1, 1], vec![1, 1, 0]]);
        // The best there is, as a solver would have it: rounded a little, up or down.
        let starts = [[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]];
        for rounding in [0.0, 1e-7, -1e-7] {
            let hops = (0_u32..).zip(starts).flat_map(|(trial, row)| {
                (0_u32..).zip(row).map(move |(machine, start)| {
                    let start = if trial == machine { start } else { start + rounding };
                    (start, Step { trial, epoch: 0, shard: machine, machine, start: 0, end: 0 })
                })
            });
            let schedule = in_order(&shop, hops);
            assert_eq!(schedule.check(&shop), Ok(()));
            assert_eq!(schedule.makespan, 2, "{schedule:?}");
        }
    }
}

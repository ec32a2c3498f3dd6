//! Times that no schedule can beat.
//!
//! - A machine must train all hops of the shards that it alone holds.
//! - A trial must make all its hops, each on its best machine at the least.
//! - The `k` trials with the most work use `k` machines at a time at the most, so even the `k` fastest
//!   machines, shared without loss, need their time for it; and all trials all machines (Horvath, Lam and
//!   Sethi, "A level algorithm for preemptive scheduling", J. ACM 24(1), 1977).
//!
//! No bound looks at the order of a trial's visits: they hold for an open shop, and so for the job shop that it is where
//! visits are fixed, where they may be further from what can be reached.
//!
//! Where paces differ by trial, a machine counts as being as fast as it is for the trial that it suits
//! best. Speeds round up and times down: a bound may be weak, never wrong.

use super::problem::{Machine, PACE_ONE, PlanTrial, Problem};
use sojourn_protocol::quantity::{mul_div, mul_div_ceil};

/// Fixed point of the speeds.
const ONE: u128 = 1 << 32;

impl Problem {
    /// No schedule ends before this: the largest of the loads of machines, the capacity of all of them, and the
    /// longest trial, each with the time before anything can begin.
    #[must_use]
    pub fn lower_bound(&self) -> u64 {
        let best = Best::new(self);
        let trials = best.ends(self);
        trials.max(loads(self)).max(capacity(self, &best))
    }
}

/// By trial: microseconds that it trains for, each hop on its best machine.
struct Best {
    rest: Vec<u64>,
}

impl Best {
    fn new(problem: &Problem) -> Self {
        let rest = problem.trials.iter().map(|trial| {
            let anywhere = trial.pace.iter().copied().min().unwrap_or(PACE_ONE);
            let best = |shard: usize| {
                let pace = match problem.holders.get(shard) {
                    Some(Some(holders)) if !trial.pace.is_empty() => {
                        let paces =
                            holders.iter().filter_map(|machine| trial.pace.get(*machine as usize));
                        paces.copied().min().unwrap_or(anywhere)
                    }
                    _ => anywhere,
                };
                let work = trial.work.get(shard).copied().unwrap_or(0);
                mul_div_ceil(work, pace, PACE_ONE)
            };
            visits(trial, best)
        });
        Self { rest: rest.collect() }
    }

    fn ends(&self, problem: &Problem) -> u64 {
        let first = problem.machines.iter().map(|machine| machine.free_at).min().unwrap_or(0);
        let busy =
            self.rest.iter().zip(&problem.trials).filter(|(_, trial)| has_hops(problem, trial));
        busy.map(|(rest, trial)| rest + trial.begins_at().max(first)).max().unwrap_or(0)
    }
}

fn has_hops(problem: &Problem, trial: &PlanTrial) -> bool {
    !trial.open.is_empty() || (trial.epochs_after > 0 && !problem.holders.is_empty())
}

/// A sum over all visits of a trial.
fn visits(trial: &PlanTrial, of: impl Fn(usize) -> u64) -> u64 {
    let open: u64 = trial.open.iter().map(|shard| of(*shard as usize)).sum();
    match trial.epochs_after {
        0 => open,
        epochs => open + u64::from(epochs) * (0..trial.work.len()).map(of).sum::<u64>(),
    }
}

/// The machine that is busy longest with shards that it alone holds.
fn loads(problem: &Problem) -> u64 {
    let mut loads = vec![(0_u64, 0_u64, u64::MAX); problem.machines.len()];
    let mut add = |number: usize, shard: usize, times: u64| {
        let alone = match problem.holders.get(shard) {
            Some(Some(holders)) if holders.len() == 1 => holders.first().copied(),
            None | Some(Some(_)) => None,
            Some(None) => (problem.machines.len() == 1).then_some(0),
        };
        let Some(machine) = alone else { return };
        let time = problem.time(super::problem::id(number), super::problem::id(shard), machine);
        let trial = problem.trials.get(number);
        if let (Some((load, hops, first)), Some(trial)) = (loads.get_mut(machine as usize), trial) {
            *load += time * times;
            *hops += times;
            *first = (*first).min(trial.begins_at());
        }
    };
    for (number, trial) in problem.trials.iter().enumerate() {
        for &shard in &trial.open {
            add(number, shard as usize, 1);
        }
        if trial.epochs_after > 0 {
            for shard in 0..trial.work.len() {
                add(number, shard, u64::from(trial.epochs_after));
            }
        }
    }
    let ends = loads.iter().zip(&problem.machines).filter(|((_, hops, _), _)| *hops > 0);
    let end = |((load, hops, first), machine): (&(u64, u64, u64), &Machine)| {
        (*first).max(machine.free_at) + load + (hops - 1) * machine.latency
    };
    ends.map(end).max().unwrap_or(0)
}

/// The capacity of all machines, or of the fastest of them for the longest trials.
fn capacity(problem: &Problem, best: &Best) -> u64 {
    // By machine: how much slower it is than the best machine of the trial that it suits best, as a fraction.
    let mut slowness = vec![(u64::MAX, 1_u64); problem.machines.len()];
    for trial in &problem.trials {
        let least = trial.pace.iter().copied().min().unwrap_or(PACE_ONE).max(1);
        let paces = trial.pace.iter().copied().chain(std::iter::repeat(PACE_ONE));
        for (slow, here) in slowness.iter_mut().zip(paces) {
            if u128::from(here) * u128::from(slow.1) < u128::from(slow.0) * u128::from(least) {
                *slow = (here, least);
            }
        }
    }
    let speed = |((here, least), machine): ((u64, u64), &Machine)| {
        let slow = (u128::from(here) * ONE / u128::from(least)).max(1);
        ((ONE * ONE).div_ceil(slow), machine.free_at)
    };
    let mut speeds: Vec<(u128, u64)> =
        slowness.into_iter().zip(&problem.machines).map(speed).collect();
    // Work is measured on a trial's best machine; only whole trials without rounding count, so each
    // hop gives back the microsecond that rounding may have added.
    let work = |(number, trial): (usize, &PlanTrial)| {
        let least = trial.pace.iter().copied().min().unwrap_or(PACE_ONE);
        let at_best = |shard: usize| {
            let work = trial.work.get(shard).copied().unwrap_or(0);
            mul_div(work, least, PACE_ONE)
        };
        visits(trial, at_best).min(best.rest.get(number).copied().unwrap_or(0))
    };
    let works: Vec<u64> = problem.trials.iter().enumerate().map(work).collect();
    everything(&works, &mut speeds).max(longest(problem, works, speeds))
}

/// When all work is done if the machines share it without loss.
fn everything(works: &[u64], speeds: &mut [(u128, u64)]) -> u64 {
    let work: u128 = works.iter().map(|work| u128::from(*work)).sum();
    if work == 0 {
        return 0;
    }
    // Machines join in the order in which they come free; the end is where the work is done.
    speeds.sort_by_key(|(_, free)| *free);
    let (mut speed, mut ahead, mut end) = (0_u128, 0_u128, u128::MAX);
    for &(more, free) in speeds.iter() {
        if u128::from(free) >= end {
            break;
        }
        speed += more;
        ahead += more * u128::from(free);
        // speed * end - ahead = work * ONE
        end = (work * ONE + ahead) / speed.max(1);
    }
    // An end that is too far away bounds nothing.
    u64::try_from(end).unwrap_or_default()
}

/// When the longest trials are done if they share the fastest machines without loss.
fn longest(problem: &Problem, mut works: Vec<u64>, mut speeds: Vec<(u128, u64)>) -> u64 {
    let first = problem.machines.iter().map(|machine| machine.free_at).min().unwrap_or(0);
    let free = problem.trials.iter().filter(|trial| has_hops(problem, trial));
    let first = first.max(free.map(PlanTrial::begins_at).min().unwrap_or(0));
    works.sort_unstable_by(|a, b| b.cmp(a));
    speeds.sort_unstable_by_key(|(speed, _)| std::cmp::Reverse(*speed));
    let (mut work, mut speed, mut bound) = (0_u128, 0_u128, 0);
    for (more, (faster, _)) in works.into_iter().zip(speeds) {
        work += u128::from(more);
        speed += faster;
        bound = bound.max(work * ONE / speed.max(1));
    }
    if bound == 0 { 0 } else { first + u64::try_from(bound).unwrap_or_default() }
}

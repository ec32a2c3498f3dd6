//! Longest total remaining processing time first, as a whole schedule.
//!
//! Where several machines may train a shard, the longest trial isn't always best served by the first
//! machine that is idle: a slow one may hold up the end of the whole. So the rule looks at when the whole
//! should end. A hop that would push its trial's end beyond that isn't begun while a faster machine comes
//! free soon enough to end it earlier.

#![expect(clippy::indexing_slicing, reason = "ids of a checked problem are indices of its tables")]

use super::{
    Budget, Planner, Problem, Schedule,
    list_schedule::{ListScheduler, Rule},
    shop::Shop,
};
use std::cmp::Reverse;

/// The trial with the longest total remaining processing time goes first, to the idle machine with the most
/// load to come, or to the fastest.
#[derive(Debug, Clone, Copy, Default)]
pub struct Ltrp;

impl Planner for Ltrp {
    fn plan_class(&self, problem: &Problem, _: u64, _: &mut dyn Budget) -> Option<Schedule> {
        plan(&Shop::new(problem)).map(|(schedule, _)| schedule)
    }
}

/// Ends of the whole that are aimed at, in 64ths of the lower bound, where machines differ.
const AIMS: [u64; 5] = [64, 66, 69, 74, 84];

/// The best over the aims, and its aim.
pub(super) fn plan(shop: &Shop<'_>) -> Option<(Schedule, Option<u64>)> {
    let mut best = (ListScheduler::run(shop, &mut Longest::new(shop, None), u64::MAX)?, None);
    if shop.pinned {
        return Some(best);
    }
    for aim in AIMS {
        if best.0.makespan <= shop.bound {
            break;
        }
        let aim = shop.bound + shop.bound / 64 * (aim - 64);
        let limit = best.0.makespan - 1;
        if let Some(found) = ListScheduler::run(shop, &mut Longest::new(shop, Some(aim)), limit) {
            best = (found, Some(aim));
        }
    }
    Some(best)
}

/// The weight that changes nothing.
pub(super) const EVEN: u64 = 1 << 8;

/// The rule. Weights tilt it: `rollout` looks for better ones.
#[derive(Debug)]
pub(super) struct Longest {
    /// By trial: its urgency is what it has left times this.
    trial: Vec<u64>,
    /// By machine: its load to come counts times this.
    machine: Vec<u64>,
    /// When the whole should end.
    aim: Option<u64>,
    /// By trial: what it waits for would end its hop then, and when that machine is free.
    waits: Vec<(u64, u64)>,
}

impl Longest {
    fn new(shop: &Shop<'_>, aim: Option<u64>) -> Self {
        Self::tilted(shop, aim, &(vec![EVEN; shop.trials], vec![EVEN; shop.machines]))
    }

    /// With weights of trials and machines.
    pub(super) fn tilted(
        shop: &Shop<'_>,
        aim: Option<u64>,
        (trial, machine): &(Vec<u64>, Vec<u64>),
    ) -> Self {
        let waits = vec![(0, 0); shop.trials];
        Self { trial: trial.clone(), machine: machine.clone(), aim, waits }
    }

    /// The best of these machines for a trial, with the shard.
    fn best_machine(
        &mut self,
        scheduler: &ListScheduler<'_>,
        trial: u32,
        fresh: bool,
    ) -> Option<(u32, u32)> {
        let machines = if fresh { &scheduler.idle_machines } else { &scheduler.fresh_machines };
        let mut best = None;
        for &machine in machines {
            let Some(shard) = scheduler.shard_for(trial, machine) else { continue };
            let pace = if scheduler.shop.pinned { 0 } else { scheduler.shop.pace(trial, machine) };
            let load = scheduler.machine_load[machine as usize] * self.machine[machine as usize];
            let score = (Reverse(pace), load, Reverse(machine));
            best = best.max(Some((score, shard)));
        }
        best.map(|((_, _, Reverse(machine)), shard)| (shard, machine))
    }

    /// Should it rather wait? Until when, then, and what would end the hop when.
    fn wait(
        &self,
        scheduler: &ListScheduler<'_>,
        trial: u32,
        shard: u32,
        machine: u32,
    ) -> Option<(u64, u64)> {
        let aim = self.aim?;
        let end = scheduler.now + scheduler.shop.time(trial, shard, machine);
        let best = scheduler.shop.best(trial, shard);
        if end + (scheduler.rest[trial as usize] - best) <= aim || end == scheduler.now + best {
            return None;
        }
        let (promise, until) = self.waits[trial as usize];
        if until > scheduler.now && promise < end {
            return Some((promise, until));
        }
        let soonest = |other: &u32| {
            let free = scheduler.free[*other as usize];
            (free + scheduler.shop.time(trial, shard, *other), free)
        };
        let busy = |(_, free): &(u64, u64)| *free > scheduler.now;
        let earliest = match &scheduler.shop.holders[shard as usize] {
            Some(holders) => holders.iter().map(soonest).filter(busy).min(),
            None => (0..super::problem::id(scheduler.shop.machines))
                .map(|p| soonest(&p))
                .filter(busy)
                .min(),
        };
        earliest.filter(|(promise, _)| *promise < end)
    }
}

impl Rule for Longest {
    fn key(&mut self, scheduler: &ListScheduler<'_>, trial: u32) -> u64 {
        scheduler.rest[trial as usize] * self.trial[trial as usize]
    }

    fn decide(&mut self, scheduler: &mut ListScheduler<'_>) {
        let mut index = scheduler.idle.len();
        while index > 0 && (scheduler.fresh_trials > 0 || !scheduler.fresh_machines.is_empty()) {
            index -= 1;
            let (_, Reverse(trial)) = scheduler.idle[index];
            let fresh = scheduler.fresh[trial as usize];
            if fresh {
                scheduler.fresh[trial as usize] = false;
                scheduler.fresh_trials -= 1;
            } else if scheduler.fresh_machines.is_empty() {
                continue;
            }
            let Some((shard, machine)) = self.best_machine(scheduler, trial, fresh) else {
                continue;
            };
            match self.wait(scheduler, trial, shard, machine) {
                None => scheduler.begin(index, shard, machine),
                Some((promise, until)) => {
                    if self.waits[trial as usize] != (promise, until) {
                        self.waits[trial as usize] = (promise, until);
                        scheduler.wake(trial, until);
                    }
                }
            }
        }
    }
}

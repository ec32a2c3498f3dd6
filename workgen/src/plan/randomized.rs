//! Cerebro's Algorithm 1 (VLDB 2020, section 5.3) as a whole schedule: an idle machine takes a random hop
//! that it may do; the baseline.

#![expect(clippy::indexing_slicing, reason = "ids of a checked problem are indices of its tables")]

use super::{
    Budget, Planner, Problem, Schedule,
    list_schedule::{ListScheduler, Rule},
    problem::id,
    shop::Shop,
};
use rand_chacha::ChaCha8Rng;
use sojourn_protocol::seeds;
use std::cmp::Reverse;

/// Idle machines, in random order, each take a random one of the hops that they may do.
#[derive(Debug, Clone, Copy, Default)]
pub struct Randomized;

impl Planner for Randomized {
    fn plan_class(&self, problem: &Problem, seed: u64, _: &mut dyn Budget) -> Option<Schedule> {
        let mut rule = Random { rng: seeds::stream("plan-randomized", &[seed]), hops: Vec::new() };
        ListScheduler::run(&Shop::new(problem), &mut rule, u64::MAX)
    }
}

#[derive(Debug)]
struct Random {
    rng: ChaCha8Rng,
    hops: Vec<(usize, u32)>,
}

impl Rule for Random {
    fn key(&mut self, _: &ListScheduler<'_>, _: u32) -> u64 {
        0
    }

    fn decide(&mut self, scheduler: &mut ListScheduler<'_>) {
        // Without a fresh trial, machines that were idle before have nothing to choose from.
        let machines = if scheduler.fresh_trials > 0 {
            &scheduler.idle_machines
        } else {
            &scheduler.fresh_machines
        };
        let mut machines = machines.clone();
        while !machines.is_empty() && !scheduler.idle.is_empty() {
            let machine =
                machines.swap_remove(seeds::below(&mut self.rng, id(machines.len())) as usize);
            self.hops.clear();
            for (index, (_, Reverse(trial))) in scheduler.idle.iter().enumerate() {
                let shards = scheduler.shop.shards_of[machine as usize].iter();
                let open = shards.filter(|shard| scheduler.is_open(*trial, **shard));
                self.hops.extend(open.map(|shard| (index, *shard)));
            }
            if self.hops.is_empty() {
                continue;
            }
            let chosen = seeds::below(&mut self.rng, id(self.hops.len())) as usize;
            let (index, shard) = self.hops[chosen];
            scheduler.begin(index, shard, machine);
        }
    }
}

//! Cerebro's Algorithm 1 (VLDB 2020, section 5.3) as a whole schedule: an idle place takes a random hop
//! that it may do; the baseline.

#![expect(clippy::indexing_slicing, reason = "ids of a checked problem are indices of its tables")]

use super::{
    Budget, Planner, Problem, Schedule,
    floor::{Floor, Rule},
    problem::id,
    shop::Shop,
};
use rand_chacha::ChaCha8Rng;
use sojourn_protocol::seeds;
use std::cmp::Reverse;

/// Idle places, in random order, each take a random one of the hops that they may do.
#[derive(Debug, Clone, Copy, Default)]
pub struct Randomized;

impl Planner for Randomized {
    fn plan(&self, problem: &Problem, seed: u64, _: &mut dyn Budget) -> Option<Schedule> {
        let mut rule =
            Random { chance: seeds::stream("plan-randomized", &[seed]), hops: Vec::new() };
        Floor::run(&Shop::new(problem), &mut rule, u64::MAX)
    }
}

#[derive(Debug)]
struct Random {
    chance: ChaCha8Rng,
    hops: Vec<(usize, u32)>,
}

impl Rule for Random {
    fn key(&mut self, _: &Floor<'_>, _: u32) -> u64 {
        0
    }

    fn decide(&mut self, floor: &mut Floor<'_>) {
        // Without a fresh trial, places that were idle before have nothing to choose from.
        let places = if floor.fresh_trials > 0 { &floor.idle_places } else { &floor.fresh_places };
        let mut places = places.clone();
        while !places.is_empty() && !floor.idle.is_empty() {
            let place =
                places.swap_remove(seeds::below(&mut self.chance, id(places.len())) as usize);
            self.hops.clear();
            for (index, (_, Reverse(trial))) in floor.idle.iter().enumerate() {
                let shards = floor.shop.shards_of[place as usize].iter();
                let open = shards.filter(|shard| floor.is_open(*trial, **shard));
                self.hops.extend(open.map(|shard| (index, *shard)));
            }
            if self.hops.is_empty() {
                continue;
            }
            let chosen = seeds::below(&mut self.chance, id(self.hops.len())) as usize;
            let (index, shard) = self.hops[chosen];
            floor.begin(index, shard, place);
        }
    }
}

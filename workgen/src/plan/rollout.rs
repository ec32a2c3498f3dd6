//! The best of many: starts from what the plain planners make, tilts the weights of `ltrp`, simulates
//! forward, and keeps what ends soonest.

#![expect(clippy::indexing_slicing, reason = "ids of a checked problem are indices of its tables")]

use super::{
    Budget, Planner, Problem, Schedule, cyclic,
    floor::Floor,
    ltrp::{self, EVEN, Longest},
    problem::id,
    shop::Shop,
};
use rand_chacha::ChaCha8Rng;
use sojourn_protocol::seeds;

/// Restarts around the best weights found so far. Never worse than `ltrp`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Rollout;

impl Planner for Rollout {
    fn plan(&self, problem: &Problem, seed: u64, budget: &mut dyn Budget) -> Option<Schedule> {
        let shop = Shop::new(problem);
        let mut best = cyclic::plan(&shop).or_else(|| ltrp::plan(&shop))?;
        let mut chance = seeds::stream("plan-rollout", &[seed]);
        let mut weights = (vec![EVEN; shop.trials], vec![EVEN; shop.places]);
        while best.makespan > shop.bound && budget.more() {
            let mut rule = Longest::new(&shop, None);
            (rule.trial, rule.place) = weights.clone();
            tilt(&mut rule.trial, &mut chance);
            tilt(&mut rule.place, &mut chance);
            let tried = (rule.trial.clone(), rule.place.clone());
            if let Some(found) = Floor::run(&shop, &mut rule, best.makespan) {
                weights = tried;
                best = found;
            }
        }
        Some(best)
    }
}

/// Moves some weights.
fn tilt(weights: &mut [u64], chance: &mut ChaCha8Rng) {
    if weights.is_empty() {
        return;
    }
    let count = 1 + seeds::below(chance, id(weights.len()));
    for _ in 0..count {
        let index = seeds::below(chance, id(weights.len())) as usize;
        weights[index] = EVEN - 64 + u64::from(seeds::below(chance, 129));
    }
}

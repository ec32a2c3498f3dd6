//! Plans where any place may train any shard, and a trial that changes places moves its checkpoint.
//!
//! Hop by hop a planner would move trials for every small gain; what counts here is where a trial is trained. So what
//! is planned are shares: some hops in a row of one trial, for one place. Three things are done one after the other:
//!
//! 1. Whole trials, the longest first, each to the place where all that it has left ends earliest (list scheduling
//!    of independent jobs by earliest finish on machines of different speeds: Ibarra and Kim, J. ACM 24(2), 1977).
//! 2. Trials packed before a deadline, some of them split over two places (`pack`), with several deadlines and in
//!    several orders, for a third of the budget.
//! 3. A search from the best of these: other places, other splits, other urgencies (`search`, `change`).
//!
//! Each is measured by working it off (`work_off`), which takes a few microseconds:
//!
//! ```text
//!   place 0   [ trial 7 .................. ][ trial 2 .............. ]
//!   place 1   [ trial 2 ...... ][ trial 4, while 7 moves ][ trial 7 . ]
//! ```

#![expect(clippy::indexing_slicing, reason = "ids of a checked problem are indices of its tables")]

mod block;
mod change;
mod ground;
mod lane;
mod pack;
mod search;
mod share;
mod work_off;

use super::{Budget, Planner, Problem, Schedule, WHOLE, problem::id};
use ground::{Ground, by};
use pack::{Gaps, pack};
use rand_chacha::ChaCha8Rng;
use search::{Found, Search};
use sojourn_protocol::seeds;
use work_off::{Floor, Patience};

/// The weight that changes nothing.
const EVEN: u64 = 1 << 8;
/// The share of the budget for packing.
const PACKING: u32 = WHOLE / 10 * 3;
/// The most that are packed.
const PACKS: u32 = 48;
/// Where the time of moves isn't counted, deadlines are nearer to the lower bound than such a part of it.
const NEAR: u64 = 32;
/// It is counted in one case of so many.
const COUNTED: u32 = 4;

/// Whole trials, or such as are split; `None` where some shard is not for all places.
#[derive(Debug, Clone, Copy, Default)]
pub struct Roam;

impl Planner for Roam {
    fn plan(&self, problem: &Problem, seed: u64, budget: &mut dyn Budget) -> Option<Schedule> {
        if problem.holders.iter().any(Option::is_some) || problem.places.is_empty() {
            return None;
        }
        let ground = Ground::new(problem);
        let (bound, aim) = (problem.lower_bound(), ground.aim());
        let mut chance = seeds::stream("plan-roam", &[seed]);
        let mut weights = vec![EVEN; problem.trials.len()];
        let mut shares = Vec::new();
        let mut free: Vec<u64> = problem.places.iter().map(|place| place.free_at).collect();
        ground.finish_earliest(&ground.by_work(&weights), &mut free, &mut shares);
        let mut best = Found { shares: Vec::new(), patience: Patience::None, ends: u64::MAX };
        let mut floor = Floor::new(&ground);
        best.improve(shares, &mut floor, aim);
        let mut packs = 0;
        while best.ends > aim
            && packs < PACKS
            && let Some(spent) = budget.next()
            && spent < PACKING
        {
            packs += 1;
            let mut tried = weights.clone();
            if packs > 1 {
                tilt(&mut tried, &mut chance);
            }
            let (gaps, span) = match seeds::below(&mut chance, COUNTED) {
                0 => (Gaps::Lost, best.ends.saturating_sub(bound)),
                _ => (Gaps::None, bound / NEAR),
            };
            let deadline = bound + by(span, seeds::below(&mut chance, WHOLE).into(), WHOLE.into());
            if let Some(shares) = pack(&ground, &tried, deadline, gaps)
                && best.improve(shares, &mut floor, aim)
            {
                weights = tried;
            }
        }
        let mut search = Search::new(&ground, floor, aim, chance, best);
        while search.ends() > aim
            && let Some(spent) = budget.next()
        {
            search.iterate(spent);
        }
        let (best, mut floor) = search.best();
        let mut steps = Vec::new();
        floor.work_off(&best.shares, best.patience, &mut |block| block.steps(&ground, &mut steps));
        Some(Schedule::new(steps))
    }
}

/// Moves some weights by up to a quarter.
fn tilt(weights: &mut [u64], chance: &mut ChaCha8Rng) {
    if weights.is_empty() {
        return;
    }
    let most = id(weights.len()).min(8);
    for _ in 0..=seeds::below(chance, most) {
        let index = seeds::below(chance, id(weights.len())) as usize;
        weights[index] = EVEN - 64 + u64::from(seeds::below(chance, 129));
    }
}

#[cfg(test)]
mod tests;

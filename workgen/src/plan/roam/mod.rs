//! Plans where any place may train any shard, and a trial that changes places moves its checkpoint.
//!
//! Hop by hop a planner would move trials for every small gain; what counts here is where a trial is trained. Two
//! ways are tried, and the one that ends earlier is taken:
//!
//! - Whole trials, the longest first, each to the place where all that it has left ends earliest (list scheduling
//!   of independent jobs by earliest finish on machines of different speeds: Ibarra and Kim, J. ACM 24(2), 1977).
//! - For a deadline, which is sought by halving: each trial, the longest first, goes where it fits most closely;
//!   one that fits nowhere is split over two places, of which it takes all that is left of the later one
//!   (McNaughton's wrap-around rule, Management Science 6(1), 1959, as Gonzalez and Sahni have it for machines of
//!   different speeds, J. ACM 25(1), 1978).
//!
//! Then every place works its trials off, epoch by epoch: while one sends its checkpoint, another trains. All that
//! is tried with other weights of trials as long as the budget lasts and something better is found now and then.
//!
//! ```text
//!   place 0   [ trial 7, epoch 0 ][ trial 2, epoch 0 ][ trial 7, epoch 1 ] ...
//!                                 '-- 7 sends --'
//! ```

#![expect(clippy::indexing_slicing, reason = "ids of a checked problem are indices of its tables")]

mod ground;
mod pack;
mod work_off;

use super::{Budget, Planner, Problem, Schedule, problem::id};
use ground::{Ground, Share};
use rand_chacha::ChaCha8Rng;
use sojourn_protocol::seeds;

/// The weight that changes nothing.
const EVEN: u64 = 1 << 8;
/// Halvings of the interval in which the deadline is sought.
const HALVINGS: u32 = 10;
/// Each deadline after that is nearer by so much of the best one.
const NEARER: u64 = 256;

/// So many tries in a row that find nothing better are the last.
const FRUITLESS: u32 = 32;

/// Whole trials, or such as are split once; `None` where some shard is not for all places.
#[derive(Debug, Clone, Copy, Default)]
pub struct Roam;

/// Shares of trials by place, and when they end.
struct Found {
    ends: u64,
    shares: Vec<Vec<Share>>,
}

impl Planner for Roam {
    fn plan(&self, problem: &Problem, seed: u64, budget: &mut dyn Budget) -> Option<Schedule> {
        if problem.holders.iter().any(Option::is_some) || problem.places.is_empty() {
            return None;
        }
        let ground = Ground::new(problem);
        let found =
            |shares: Vec<Vec<Share>>| Found { ends: work_off::ends(&ground, &shares), shares };
        let mut weights = vec![EVEN; problem.trials.len()];
        let mut best = found(ground.by_earliest_finish(&weights));
        let bound = problem.lower_bound();
        let mut deadline = best.ends;
        let mut low = bound;
        for _ in 0..HALVINGS {
            if low >= deadline || budget.next().is_none() {
                break;
            }
            let middle = low + (deadline - low) / 2;
            match pack::pack(&ground, &weights, middle) {
                Some(shares) => {
                    deadline = middle;
                    let packed = found(shares);
                    if packed.ends < best.ends {
                        best = packed;
                    }
                }
                None => low = middle + 1,
            }
        }
        let mut chance = seeds::stream("plan-roam", &[seed]);
        let mut fruitless = 0;
        while best.ends > bound && fruitless < FRUITLESS && budget.next().is_some() {
            fruitless += 1;
            let mut tried = weights.clone();
            tilt(&mut tried, &mut chance);
            let nearer = deadline - (deadline - bound.min(deadline)) / 4 - deadline / NEARER;
            let packed = pack::pack(&ground, &tried, nearer.max(bound)).map(found);
            let finished = found(ground.by_earliest_finish(&tried));
            for one in packed.into_iter().chain([finished]) {
                if one.ends < best.ends {
                    best = one;
                    deadline = deadline.min(best.ends);
                    weights.clone_from(&tried);
                    fruitless = 0;
                }
            }
        }
        let mut steps = Vec::new();
        work_off::work_off(&ground, &best.shares, &mut |block| block.steps(&ground, &mut steps));
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

//! Plans where any machine may train any shard, and a trial that changes machines moves its checkpoint.
//!
//! Hop by hop a planner would move trials for every small gain; what counts here is where a trial is trained. So what
//! is planned are shares: some hops in a row of one trial, for one machine. Three things are done one after the other:
//!
//! 1. Whole trials, the longest first, each to the machine where all that it has left ends earliest (list scheduling
//!    of independent jobs by earliest finish on machines of different speeds: Ibarra and Kim, J. ACM 24(2), 1977).
//! 2. Trials packed before a deadline, some of them split over two machines (`pack`), with several deadlines and in
//!    several orders, for a third of the budget.
//! 3. A search from the best of these: other machines, other splits, other urgencies (`search`, `change`).
//!
//! Last come the turns that the trials of a machine take, by epochs, where the plan ends no later for it.
//!
//! Each is measured by working it off (`simulation`), which takes a few microseconds:
//!
//! ```text
//!   machine 0   [ trial 7 .................. ][ trial 2 .............. ]
//!   machine 1   [ trial 2 ...... ][ trial 4, while 7 moves ][ trial 7 . ]
//! ```

#![expect(clippy::indexing_slicing, reason = "ids of a checked problem are indices of its tables")]

mod block;
mod change;
mod instance;
mod lane;
mod pack;
mod search;
mod share;
mod simulation;

use super::{Budget, Planner, Problem, Schedule, Step, WHOLE, problem::id};
use instance::Instance;
use pack::{Gaps, pack};
use rand_chacha::ChaCha8Rng;
use search::{Found, Search};
use simulation::{Patience, Simulation, Turns};
use sojourn_protocol::{quantity::mul_div, seeds, spec::Spread};

/// A plan in which trials take turns may end later by such a part.
const BREADTH: u64 = 128;
/// The weight that changes nothing.
const EVEN: u64 = 1 << 8;
/// The share of the budget for packing.
const PACKING: u32 = WHOLE / 10 * 3;
/// The most that are packed.
const PACKS: u32 = 48;
/// Where the time of moves isn't counted, deadlines are nearer to the lower bound than such a part of it.
const NEAR: u64 = 32;
/// The time of moves is counted in one case of so many.
const COUNTED: u32 = 4;

/// Whole trials, or such as are split; `None` where some shard is not for all machines.
#[derive(Debug, Clone, Copy, Default)]
pub struct Migration;

impl Planner for Migration {
    fn plan_class(
        &self,
        problem: &Problem,
        seed: u64,
        budget: &mut dyn Budget,
    ) -> Option<Schedule> {
        if problem.holders.iter().any(Option::is_some) || problem.machines.is_empty() {
            return None;
        }
        let instance = Instance::new(problem);
        let (bound, aim) = (problem.lower_bound(), instance.aim());
        let mut rng = seeds::stream("plan-roam", &[seed]);
        let mut weights = vec![EVEN; problem.trials.len()];
        let mut shares = Vec::new();
        let mut free: Vec<u64> = problem.machines.iter().map(|machine| machine.free_at).collect();
        instance.finish_earliest(&instance.by_work(&weights), &mut free, &mut shares);
        let mut best = Found { shares: Vec::new(), patience: Patience::None, ends: u64::MAX };
        let mut simulation = Simulation::new(&instance);
        best.improve(shares, &mut simulation, aim);
        let mut packs = 0;
        while best.ends > aim
            && packs < PACKS
            && let Some(spent) = budget.next()
            && spent < PACKING
        {
            packs += 1;
            let mut tried = weights.clone();
            if packs > 1 {
                tilt(&mut tried, &mut rng);
            }
            let (gaps, span) = match seeds::below(&mut rng, COUNTED) {
                0 => (Gaps::Lost, best.ends.saturating_sub(bound)),
                _ => (Gaps::None, bound / NEAR),
            };
            let deadline =
                bound + mul_div(span, seeds::below(&mut rng, WHOLE).into(), WHOLE.into());
            if let Some(shares) = pack(&instance, &tried, deadline, gaps)
                && best.improve(shares, &mut simulation, aim)
            {
                weights = tried;
            }
        }
        let mut search = Search::new(&instance, simulation, aim, rng, best);
        while search.ends() > aim
            && let Some(spent) = budget.next()
        {
            search.iterate(spent);
        }
        let (best, mut simulation) = search.best();
        Some(Schedule::new(order(&best, &mut simulation, problem.spread)))
    }
}

/// The hops of what was found, in the order in which trials come closest to being trained alike; none that ends much
/// later than what was found.
fn order(found: &Found, simulation: &mut Simulation<'_, '_>, spread: Spread) -> Vec<Step> {
    let mut run = |turns| simulation.steps(&found.shares, found.patience, turns);
    let (steps, ends) = run(Turns::None);
    if spread == Spread::Depth {
        return steps;
    }
    let latest = ends.saturating_add(ends / BREADTH);
    let mut in_turn = [Turns::All, Turns::Staying].into_iter().map(run);
    in_turn.find(|(_, ends)| *ends <= latest).map_or(steps, |(steps, _)| steps)
}

/// Moves some weights by up to a quarter.
fn tilt(weights: &mut [u64], rng: &mut ChaCha8Rng) {
    if weights.is_empty() {
        return;
    }
    let most = id(weights.len()).min(8);
    for _ in 0..=seeds::below(rng, most) {
        let index = seeds::below(rng, id(weights.len())) as usize;
        weights[index] = EVEN - 64 + u64::from(seeds::below(rng, 129));
    }
}

#[cfg(test)]
mod tests;

//! Plans where any place may train any shard, and a trial that changes places moves its checkpoint.
//!
//! Hop by hop a planner would move trials for every small gain; what counts here is where a whole trial is
//! trained. So trials go, the longest first, each to the place where all that it has left ends earliest
//! (list scheduling of independent jobs by earliest finish on machines of different speeds: Ibarra and
//! Kim, J. ACM 24(2), 1977); then every place works its trials off, epoch by epoch: while one sends its
//! checkpoint, another trains.
//!
//! ```text
//!   place 0   [ trial 7, epoch 0 ][ trial 2, epoch 0 ][ trial 7, epoch 1 ] ...
//!                                 '-- 7 sends --'
//! ```
//!
//! That is tried with other weights of trials as long as the budget lasts.

#![expect(clippy::indexing_slicing, reason = "ids of a checked problem are indices of its tables")]

use super::{
    Budget, Planner, Problem, Schedule, Step,
    problem::{PACE_ONE, PlanTrial, id},
};
use rand_chacha::ChaCha8Rng;
use sojourn_protocol::seeds;
use std::cmp::Reverse;

/// The weight that changes nothing.
const EVEN: u64 = 1 << 8;

/// Whole trials by earliest finish; `None` where some shard is not for all places.
#[derive(Debug, Clone, Copy, Default)]
pub struct Roam;

impl Planner for Roam {
    fn plan(&self, problem: &Problem, seed: u64, budget: &mut dyn Budget) -> Option<Schedule> {
        if problem.holders.iter().any(Option::is_some) || problem.places.is_empty() {
            return None;
        }
        let ground = Ground::new(problem);
        let mut weights = vec![EVEN; problem.trials.len()];
        let mut best = (ground.ends(&ground.assign(&weights)), weights.clone());
        let mut chance = seeds::stream("plan-roam", &[seed]);
        let bound = problem.lower_bound();
        while best.0 > bound && budget.next().is_some() {
            weights.clone_from(&best.1);
            tilt(&mut weights, &mut chance);
            let ends = ground.ends(&ground.assign(&weights));
            if ends < best.0 {
                best = (ends, weights.clone());
            }
        }
        let mut steps = Vec::new();
        ground.work_off(&ground.assign(&best.1), &mut |step| steps.push(step));
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

/// A problem with what each trial has left worked out.
struct Ground<'a> {
    problem: &'a Problem,
    /// By trial: microseconds of all that it has left, at pace one.
    work: Vec<u64>,
}

impl<'a> Ground<'a> {
    fn new(problem: &'a Problem) -> Self {
        let work = problem.trials.iter().map(|trial| {
            let whole: u64 = trial.work.iter().sum();
            let open: u64 = trial.open.iter().map(|shard| trial.work[*shard as usize]).sum();
            open + whole * u64::from(trial.epochs_after)
        });
        Self { problem, work: work.collect() }
    }

    /// By place: its trials, in the order in which they were given to it.
    fn assign(&self, weights: &[u64]) -> Vec<Vec<u32>> {
        let mut order: Vec<usize> = (0..self.work.len()).collect();
        order.sort_by_key(|&trial| (Reverse(self.work[trial] * weights[trial]), trial));
        let mut free: Vec<u64> = self.problem.places.iter().map(|place| place.free_at).collect();
        let mut places = vec![Vec::new(); free.len()];
        for number in order {
            let trial = &self.problem.trials[number];
            let mut best = (u64::MAX, 0);
            for (place, free) in free.iter().enumerate() {
                let from = trial.free_at + arrives(trial, place);
                best = best.min((
                    (*free).max(from) + scaled(self.work[number], pace(trial, place)),
                    place,
                ));
            }
            let (ends, place) = best;
            free[place] = ends;
            places[place].push(id(number));
        }
        places
    }

    fn ends(&self, places: &[Vec<u32>]) -> u64 {
        let mut last = 0;
        self.work_off(places, &mut |step| {
            last = last.max(step.end + self.problem.trials[step.trial as usize].send);
        });
        last
    }

    /// Every place trains an epoch of the first of its trials that is there, or else of the next to come.
    fn work_off(&self, places: &[Vec<u32>], step: &mut dyn FnMut(Step)) {
        for (place, trials) in places.iter().enumerate() {
            let mut now = self.problem.places[place].free_at;
            let latency = self.problem.places[place].latency;
            // By trial: when it is there, and its epoch.
            let mut left: Vec<(u32, u64, u32)> = trials
                .iter()
                .map(|&number| {
                    let trial = &self.problem.trials[number as usize];
                    let epoch = u32::from(trial.open.is_empty());
                    (number, trial.free_at + arrives(trial, place), epoch)
                })
                .filter(|&(number, _, epoch)| {
                    epoch <= self.problem.trials[number as usize].epochs_after
                })
                .collect();
            while !left.is_empty() {
                let ready = left.iter().position(|(_, at, _)| *at <= now);
                let next =
                    ready.or_else(|| (0..left.len()).min_by_key(|n| left[*n].1)).unwrap_or(0);
                let (number, at, epoch) = left[next];
                let trial = &self.problem.trials[number as usize];
                now = now.max(at);
                let all = 0..id(trial.work.len());
                let open = |shard: &u32| epoch > 0 || trial.open.contains(shard);
                for shard in all.filter(open) {
                    let place = id(place);
                    let end = now + self.problem.time(number, shard, place);
                    step(Step { trial: number, epoch, shard, place, start: now, end });
                    now = end + latency;
                }
                if epoch < trial.epochs_after {
                    left[next] = (number, now + trial.send, epoch + 1);
                } else {
                    left.remove(next);
                }
            }
        }
    }
}

/// How long a trial's checkpoint takes to a place, once it may go.
fn arrives(trial: &PlanTrial, place: usize) -> u64 {
    match trial.at {
        Some(at) if at as usize != place => trial.fetch,
        Some(_) | None => 0,
    }
}

fn pace(trial: &PlanTrial, place: usize) -> u64 {
    trial.pace.get(place).copied().unwrap_or(PACE_ONE)
}

fn scaled(work: u64, pace: u64) -> u64 {
    let micros = (u128::from(work) * u128::from(pace)).div_ceil(u128::from(PACE_ONE));
    u64::try_from(micros).unwrap_or(u64::MAX)
}

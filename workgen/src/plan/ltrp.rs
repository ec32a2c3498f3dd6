//! Longest total remaining processing time first (DESIGN section 6), as a whole schedule.
//!
//! Where several places may train a shard, the longest trial isn't always best served by the first
//! place that is idle: a slow one may hold up the end of the whole. So the rule looks at when the whole
//! should end. A hop that would push its trial's end beyond that isn't begun while a faster place comes
//! free soon enough to end it earlier.

#![expect(clippy::indexing_slicing, reason = "ids of a checked problem are indices of its tables")]

use super::{
    Budget, Planner, Problem, Schedule,
    floor::{Floor, Rule},
    shop::Shop,
};
use std::cmp::Reverse;

/// The trial with the longest total remaining processing time goes first, to the idle place with the most
/// load to come, or to the fastest.
#[derive(Debug, Clone, Copy, Default)]
pub struct Ltrp;

impl Planner for Ltrp {
    fn plan(&self, problem: &Problem, _: u64, _: &mut dyn Budget) -> Option<Schedule> {
        plan(&Shop::new(problem)).map(|(schedule, _)| schedule)
    }
}

/// Ends of the whole that are aimed at, in 64ths of the lower bound, where places differ.
const AIMS: [u64; 5] = [64, 66, 69, 74, 84];

/// The best over the aims, and its aim.
pub(super) fn plan(shop: &Shop<'_>) -> Option<(Schedule, Option<u64>)> {
    let mut best = (Floor::run(shop, &mut Longest::new(shop, None), u64::MAX)?, None);
    if shop.pinned {
        return Some(best);
    }
    for aim in AIMS {
        if best.0.makespan <= shop.bound {
            break;
        }
        let aim = shop.bound + shop.bound / 64 * (aim - 64);
        let limit = best.0.makespan - 1;
        if let Some(found) = Floor::run(shop, &mut Longest::new(shop, Some(aim)), limit) {
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
    /// By place: its load to come counts times this.
    place: Vec<u64>,
    /// When the whole should end.
    aim: Option<u64>,
    /// By trial: what it waits for would end its hop then, and when that place is free.
    waits: Vec<(u64, u64)>,
}

impl Longest {
    fn new(shop: &Shop<'_>, aim: Option<u64>) -> Self {
        Self::tilted(shop, aim, &(vec![EVEN; shop.trials], vec![EVEN; shop.places]))
    }

    /// With weights of trials and places.
    pub(super) fn tilted(
        shop: &Shop<'_>,
        aim: Option<u64>,
        (trial, place): &(Vec<u64>, Vec<u64>),
    ) -> Self {
        let waits = vec![(0, 0); shop.trials];
        Self { trial: trial.clone(), place: place.clone(), aim, waits }
    }

    /// The best of these places for a trial, with the shard.
    fn place(&mut self, floor: &Floor<'_>, trial: u32, fresh: bool) -> Option<(u32, u32)> {
        let places = if fresh { &floor.idle_places } else { &floor.fresh_places };
        let mut best = None;
        for &place in places {
            let Some(shard) = floor.shard_for(trial, place) else { continue };
            let pace = if floor.shop.pinned { 0 } else { floor.shop.pace(trial, place) };
            let load = floor.place_load[place as usize] * self.place[place as usize];
            let score = (Reverse(pace), load, Reverse(place));
            best = best.max(Some((score, shard)));
        }
        best.map(|((_, _, Reverse(place)), shard)| (shard, place))
    }

    /// Should it rather wait? Until when, then, and what would end the hop when.
    fn wait(&self, floor: &Floor<'_>, trial: u32, shard: u32, place: u32) -> Option<(u64, u64)> {
        let aim = self.aim?;
        let end = floor.now + floor.shop.time(trial, shard, place);
        let best = floor.shop.best(trial, shard);
        if end + (floor.rest[trial as usize] - best) <= aim || end == floor.now + best {
            return None;
        }
        let (promise, until) = self.waits[trial as usize];
        if until > floor.now && promise < end {
            return Some((promise, until));
        }
        let soonest = |other: &u32| {
            let free = floor.free[*other as usize];
            (free + floor.shop.time(trial, shard, *other), free)
        };
        let busy = |(_, free): &(u64, u64)| *free > floor.now;
        let earliest = match &floor.shop.holders[shard as usize] {
            Some(holders) => holders.iter().map(soonest).filter(busy).min(),
            None => {
                (0..super::problem::id(floor.shop.places)).map(|p| soonest(&p)).filter(busy).min()
            }
        };
        earliest.filter(|(promise, _)| *promise < end)
    }
}

impl Rule for Longest {
    fn key(&mut self, floor: &Floor<'_>, trial: u32) -> u64 {
        floor.rest[trial as usize] * self.trial[trial as usize]
    }

    fn decide(&mut self, floor: &mut Floor<'_>) {
        let mut index = floor.idle.len();
        while index > 0 && (floor.fresh_trials > 0 || !floor.fresh_places.is_empty()) {
            index -= 1;
            let (_, Reverse(trial)) = floor.idle[index];
            let fresh = floor.fresh[trial as usize];
            if fresh {
                floor.fresh[trial as usize] = false;
                floor.fresh_trials -= 1;
            } else if floor.fresh_places.is_empty() {
                continue;
            }
            let Some((shard, place)) = self.place(floor, trial, fresh) else { continue };
            match self.wait(floor, trial, shard, place) {
                None => floor.begin(index, shard, place),
                Some((promise, until)) => {
                    if self.waits[trial as usize] != (promise, until) {
                        self.waits[trial as usize] = (promise, until);
                        floor.wake(trial, until);
                    }
                }
            }
        }
    }
}

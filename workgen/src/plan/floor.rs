//! The forward simulation that dispatching planners share: time goes from one end of a hop to the next,
//! and whoever has come free is given something.
//!
//! ```text
//!   next instant: ends of hops, trials and places that come free
//!        |  fresh trials, fresh places
//!        v
//!   Rule::decide: begin(trial, shard, place) ...   looks only at pairs with somebody fresh
//! ```
//!
//! A pair that could have begun before has been offered before: only pairs with a fresh trial or a fresh
//! place are new. A rule that refuses a pair on purpose asks to be woken.

#![expect(clippy::indexing_slicing, reason = "ids of a checked problem are indices of its tables")]

use super::{
    problem::id,
    schedule::{Schedule, Step},
    shop::Shop,
};
use std::{cmp::Reverse, collections::BinaryHeap};

/// What decides at each instant.
pub(super) trait Rule {
    /// How urgent an idle trial is; the largest first, ties to the lower id.
    fn key(&mut self, floor: &Floor<'_>, trial: u32) -> u64;
    /// Begins hops until no fresh trial and no fresh place can.
    fn decide(&mut self, floor: &mut Floor<'_>);
}

/// Something comes free.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Trial(u32),
    Wake(u32),
    Place(u32),
}

/// The state of a simulation.
#[derive(Debug)]
pub(super) struct Floor<'a> {
    pub(super) shop: &'a Shop<'a>,
    pub(super) now: u64,
    words: usize,
    /// By trial, then shard in bits: open in the current epoch.
    open: Vec<u64>,
    /// By trial: how many are open.
    opened: Vec<u32>,
    epoch: Vec<u32>,
    epochs_after: Vec<u32>,
    /// By trial: the best times of all that it has left.
    pub(super) rest: Vec<u64>,
    /// By place: the best times of what it alone can train; by shard where others can too.
    pub(super) place_load: Vec<u64>,
    shard_load: Vec<u64>,
    /// By place: visits to shards that it alone can train; endless where it holds others too.
    visits: Vec<u64>,
    /// By place: when it is free.
    pub(super) free: Vec<u64>,
    /// By urgency, the most urgent last.
    pub(super) idle: Vec<(u64, Reverse<u32>)>,
    /// By trial: it may have pairs that were never offered.
    pub(super) fresh: Vec<bool>,
    pub(super) fresh_trials: usize,
    is_idle: Vec<bool>,
    /// Idle places, ascending.
    pub(super) idle_places: Vec<u32>,
    /// Those of them that have come free at this instant.
    pub(super) fresh_places: Vec<u32>,
    events: BinaryHeap<Reverse<(u64, Event)>>,
    steps: Vec<Step>,
}

impl<'a> Floor<'a> {
    fn new(shop: &'a Shop<'a>) -> Self {
        let words = shop.shards.div_ceil(64).max(1);
        let mut floor = Self {
            shop,
            now: 0,
            words,
            open: vec![0; words * shop.trials],
            opened: vec![0; shop.trials],
            epoch: vec![0; shop.trials],
            epochs_after: shop.problem.trials.iter().map(|trial| trial.epochs_after).collect(),
            rest: vec![0; shop.trials],
            place_load: vec![0; shop.places],
            shard_load: vec![0; shop.shards],
            visits: shop
                .shards_of
                .iter()
                .map(|shards| if shop.alone(shards) { 0 } else { u64::MAX })
                .collect(),
            free: shop.problem.places.iter().map(|place| place.free_at).collect(),
            idle: Vec::with_capacity(shop.trials),
            fresh: vec![false; shop.trials],
            fresh_trials: 0,
            is_idle: vec![false; shop.trials],
            idle_places: Vec::with_capacity(shop.places),
            fresh_places: Vec::with_capacity(shop.places),
            events: BinaryHeap::with_capacity(shop.trials + shop.places),
            steps: Vec::with_capacity(usize::try_from(shop.problem.hops()).unwrap_or(0)),
        };
        for (number, trial) in shop.problem.trials.iter().enumerate() {
            for &shard in &trial.open {
                floor.open_shard(number, shard);
                floor.add_load(number, shard, 1);
            }
            if trial.epochs_after > 0 {
                (0..id(shop.shards))
                    .for_each(|shard| floor.add_load(number, shard, u64::from(trial.epochs_after)));
            }
            if floor.next_epoch(number) {
                floor.events.push(Reverse((trial.free_at, Event::Trial(id(number)))));
            }
        }
        for (number, place) in shop.problem.places.iter().enumerate() {
            floor.events.push(Reverse((place.free_at, Event::Place(id(number)))));
        }
        floor
    }

    /// The schedule that a rule makes; `None` where it leaves hops over, which no rule should, or passes
    /// `limit`.
    pub(super) fn run(shop: &'a Shop<'a>, rule: &mut dyn Rule, limit: u64) -> Option<Schedule> {
        let mut floor = Self::new(shop);
        while let Some(&Reverse((now, _))) = floor.events.peek() {
            floor.now = now;
            while let Some(&Reverse((at, event))) = floor.events.peek() {
                if at > now {
                    break;
                }
                floor.events.pop();
                match event {
                    Event::Trial(trial) => floor.arrive(rule, trial),
                    Event::Wake(trial) => floor.freshen(trial),
                    Event::Place(place) if floor.visits[place as usize] == 0 => {}
                    Event::Place(place) => {
                        let at = floor.idle_places.partition_point(|other| *other < place);
                        floor.idle_places.insert(at, place);
                        floor.fresh_places.push(place);
                    }
                }
            }
            floor.fresh_places.sort_unstable();
            rule.decide(&mut floor);
            floor.fresh_places.clear();
            for index in 0..floor.idle.len() {
                if floor.fresh_trials == 0 {
                    break;
                }
                let trial = floor.idle[index].1.0 as usize;
                floor.fresh_trials -=
                    usize::from(std::mem::replace(&mut floor.fresh[trial], false));
            }
            if floor.steps.last().is_some_and(|step| step.end > limit) {
                return None;
            }
        }
        let whole = floor.steps.len() as u64 == shop.problem.hops();
        debug_assert!(whole, "a rule has left hops over");
        // Of several hops that begin at once only the last was looked at above.
        whole.then(|| Schedule::new(floor.steps)).filter(|made| made.makespan <= limit)
    }

    /// A trial comes free.
    fn arrive(&mut self, rule: &mut dyn Rule, trial: u32) {
        let entry = (rule.key(self, trial), Reverse(trial));
        let at = self.idle.partition_point(|other| *other < entry);
        self.idle.insert(at, entry);
        self.is_idle[trial as usize] = true;
        self.freshen(trial);
    }

    /// An idle trial is to be offered everything.
    fn freshen(&mut self, trial: u32) {
        if self.is_idle[trial as usize] {
            let before = std::mem::replace(&mut self.fresh[trial as usize], true);
            self.fresh_trials += usize::from(!before);
        }
    }

    /// Offers a waiting trial everything again at `at`.
    pub(super) fn wake(&mut self, trial: u32, at: u64) {
        self.events.push(Reverse((at.max(self.now + 1), Event::Wake(trial))));
    }

    /// The idle trial at `index` of the idle ones begins a hop.
    pub(super) fn begin(&mut self, index: usize, shard: u32, place: u32) {
        let (_, Reverse(trial)) = self.idle.remove(index);
        let number = trial as usize;
        self.is_idle[number] = false;
        self.fresh_trials -= usize::from(std::mem::replace(&mut self.fresh[number], false));
        self.idle_places.retain(|other| *other != place);
        self.fresh_places.retain(|other| *other != place);
        let start = self.now;
        let end = start + self.shop.time(trial, shard, place);
        let epoch = self.epoch[number];
        self.steps.push(Step { trial, epoch, shard, place, start, end });
        self.open[number * self.words + shard as usize / 64] &= !(1 << (shard % 64));
        self.opened[number] -= 1;
        let best = self.shop.best(trial, shard);
        self.rest[number] -= best;
        self.shard_load[shard as usize] -= best;
        let only = self.shop.place_of[shard as usize];
        if let Some(load) = self.place_load.get_mut(only as usize) {
            *load -= best;
            let visits = &mut self.visits[only as usize];
            *visits -= u64::from(*visits != u64::MAX);
        }
        let free = end + self.shop.problem.places[place as usize].latency;
        self.free[place as usize] = free;
        self.events.push(Reverse((free, Event::Place(place))));
        if self.next_epoch(number) {
            self.events.push(Reverse((end, Event::Trial(trial))));
        }
    }

    /// Has it this shard open?
    pub(super) fn is_open(&self, trial: u32, shard: u32) -> bool {
        self.open[trial as usize * self.words + shard as usize / 64] >> (shard % 64) & 1 == 1
    }

    /// The open shard of a trial that a place should train: the one with most load to come for each
    /// place that could, ties to the lower id.
    pub(super) fn shard_for(&self, trial: u32, place: u32) -> Option<u32> {
        match self.shop.shards_of[place as usize][..] {
            [only] => self.is_open(trial, only).then_some(only),
            ref several => {
                let open = several.iter().filter(|shard| self.is_open(trial, **shard));
                open.max_by_key(|shard| (self.pressure(**shard), Reverse(**shard))).copied()
            }
        }
    }

    /// Load to come for each place that may train the shard.
    fn pressure(&self, shard: u32) -> u64 {
        let holders = self.shop.holders[shard as usize].as_ref();
        let count = holders.map_or(self.shop.places, Vec::len).max(1);
        self.shard_load[shard as usize] / count as u64
    }

    fn open_shard(&mut self, trial: usize, shard: u32) {
        self.open[trial * self.words + shard as usize / 64] |= 1 << (shard % 64);
        self.opened[trial] += 1;
    }

    fn add_load(&mut self, trial: usize, shard: u32, times: u64) {
        let time = self.shop.best(id(trial), shard) * times;
        self.rest[trial] += time;
        self.shard_load[shard as usize] += time;
        let only = self.shop.place_of[shard as usize] as usize;
        if let Some(load) = self.place_load.get_mut(only) {
            *load += time;
            self.visits[only] = self.visits[only].saturating_add(times);
        }
    }

    /// Opens the next epoch where this one is done; false where nothing is left.
    fn next_epoch(&mut self, trial: usize) -> bool {
        if self.opened[trial] > 0 {
            return true;
        }
        if self.epochs_after[trial] == 0 || self.shop.shards == 0 {
            return false;
        }
        self.epochs_after[trial] -= 1;
        self.epoch[trial] += 1;
        (0..id(self.shop.shards)).for_each(|shard| self.open_shard(trial, shard));
        true
    }
}

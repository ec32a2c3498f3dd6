//! The forward simulation that dispatching planners share: time goes from one end of a hop to the next,
//! and whoever has come free is given something.
//!
//! ```text
//!   next instant: ends of hops, trials and machines that come free
//!        |  fresh trials, fresh machines
//!        v
//!   Rule::decide: begin(trial, shard, machine) ...   looks only at pairs with somebody fresh
//! ```
//!
//! A pair that could have begun before has been offered before: only pairs with a fresh trial or a fresh
//! machine are new. A rule that refuses a pair on purpose asks to be woken.

#![expect(clippy::indexing_slicing, reason = "ids of a checked problem are indices of its tables")]

use super::{
    problem::id,
    schedule::{Schedule, Step},
    shop::Shop,
};
use sojourn_protocol::quantity::to_usize;
use std::{cmp::Reverse, collections::BinaryHeap};

/// The rule that decides at each instant.
pub(super) trait Rule {
    /// How urgent an idle trial is; the largest first, ties to the lower id.
    fn key(&mut self, scheduler: &ListScheduler<'_>, trial: u32) -> u64;
    /// Begins hops until no fresh trial and no fresh machine can.
    fn decide(&mut self, scheduler: &mut ListScheduler<'_>);
}

/// Something comes free.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Trial(u32),
    Wake(u32),
    Machine(u32),
}

/// The state of a simulation.
#[derive(Debug)]
pub(super) struct ListScheduler<'a> {
    pub(super) shop: &'a Shop<'a>,
    pub(super) now: u64,
    words: usize,
    /// By trial, then shard in bits: may come next in the current epoch.
    open: Vec<u64>,
    /// By trial: visits left in the current epoch.
    opened: Vec<u32>,
    /// By trial: visits made.
    visited: Vec<usize>,
    epoch: Vec<u32>,
    epochs_after: Vec<u32>,
    /// By trial: the best times of all that it has left.
    pub(super) rest: Vec<u64>,
    /// By machine: the best times of what it alone can train; by shard where others can too.
    pub(super) machine_load: Vec<u64>,
    shard_load: Vec<u64>,
    /// By machine: visits to shards that it alone can train; endless where it holds others too.
    visits: Vec<u64>,
    /// By machine: when it is free.
    pub(super) free: Vec<u64>,
    /// By urgency, the most urgent last.
    pub(super) idle: Vec<(u64, Reverse<u32>)>,
    /// By trial: it may have pairs that were never offered.
    pub(super) fresh: Vec<bool>,
    pub(super) fresh_trials: usize,
    is_idle: Vec<bool>,
    /// Idle machines, ascending.
    pub(super) idle_machines: Vec<u32>,
    /// The idle machines that have come free at this instant.
    pub(super) fresh_machines: Vec<u32>,
    events: BinaryHeap<Reverse<(u64, Event)>>,
    steps: Vec<Step>,
}

impl<'a> ListScheduler<'a> {
    fn new(shop: &'a Shop<'a>) -> Self {
        let words = shop.shards.div_ceil(64).max(1);
        let mut scheduler = Self {
            shop,
            now: 0,
            words,
            open: vec![0; words * shop.trials],
            opened: vec![0; shop.trials],
            visited: vec![0; shop.trials],
            epoch: vec![0; shop.trials],
            epochs_after: shop.problem.trials.iter().map(|trial| trial.epochs_after).collect(),
            rest: vec![0; shop.trials],
            machine_load: vec![0; shop.machines],
            shard_load: vec![0; shop.shards],
            visits: shop
                .shards_of
                .iter()
                .map(|shards| if shop.alone(shards) { 0 } else { u64::MAX })
                .collect(),
            free: shop.problem.machines.iter().map(|machine| machine.free_at).collect(),
            idle: Vec::with_capacity(shop.trials),
            fresh: vec![false; shop.trials],
            fresh_trials: 0,
            is_idle: vec![false; shop.trials],
            idle_machines: Vec::with_capacity(shop.machines),
            fresh_machines: Vec::with_capacity(shop.machines),
            events: BinaryHeap::with_capacity(shop.trials + shop.machines),
            steps: Vec::with_capacity(to_usize(shop.problem.hops())),
        };
        for (number, trial) in shop.problem.trials.iter().enumerate() {
            scheduler.open_shards(number, &trial.open);
            for &shard in &trial.open {
                scheduler.add_load(number, shard, 1);
            }
            if trial.epochs_after > 0 {
                (0..id(shop.shards)).for_each(|shard| {
                    scheduler.add_load(number, shard, u64::from(trial.epochs_after))
                });
            }
            if scheduler.next_epoch(number) {
                scheduler.events.push(Reverse((trial.free_at, Event::Trial(id(number)))));
            }
        }
        for (number, machine) in shop.problem.machines.iter().enumerate() {
            scheduler.events.push(Reverse((machine.free_at, Event::Machine(id(number)))));
        }
        scheduler
    }

    /// The schedule that a rule makes; `None` where it leaves hops over, which no rule should, or passes
    /// `limit`.
    pub(super) fn run(shop: &'a Shop<'a>, rule: &mut dyn Rule, limit: u64) -> Option<Schedule> {
        let mut scheduler = Self::new(shop);
        while let Some(&Reverse((now, _))) = scheduler.events.peek() {
            scheduler.now = now;
            while let Some(&Reverse((at, event))) = scheduler.events.peek() {
                if at > now {
                    break;
                }
                scheduler.events.pop();
                match event {
                    Event::Trial(trial) => scheduler.arrive(rule, trial),
                    Event::Wake(trial) => scheduler.freshen(trial),
                    Event::Machine(machine) if scheduler.visits[machine as usize] == 0 => {}
                    Event::Machine(machine) => {
                        let at = scheduler.idle_machines.partition_point(|other| *other < machine);
                        scheduler.idle_machines.insert(at, machine);
                        scheduler.fresh_machines.push(machine);
                    }
                }
            }
            scheduler.fresh_machines.sort_unstable();
            rule.decide(&mut scheduler);
            scheduler.fresh_machines.clear();
            for index in 0..scheduler.idle.len() {
                if scheduler.fresh_trials == 0 {
                    break;
                }
                let trial = scheduler.idle[index].1.0 as usize;
                scheduler.fresh_trials -=
                    usize::from(std::mem::replace(&mut scheduler.fresh[trial], false));
            }
            if scheduler.steps.last().is_some_and(|step| step.end > limit) {
                return None;
            }
        }
        let whole = scheduler.steps.len() as u64 == shop.problem.hops();
        debug_assert!(whole, "a rule has left hops over");
        // Of several hops that begin at once only the last was looked at above.
        whole.then(|| Schedule::new(scheduler.steps)).filter(|made| made.makespan <= limit)
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
    pub(super) fn begin(&mut self, index: usize, shard: u32, machine: u32) {
        let (_, Reverse(trial)) = self.idle.remove(index);
        let number = trial as usize;
        self.is_idle[number] = false;
        self.fresh_trials -= usize::from(std::mem::replace(&mut self.fresh[number], false));
        self.idle_machines.retain(|other| *other != machine);
        self.fresh_machines.retain(|other| *other != machine);
        let start = self.now;
        let end = start + self.shop.time(trial, shard, machine);
        let epoch = self.epoch[number];
        self.steps.push(Step { trial, epoch, shard, machine, start, end });
        self.open[number * self.words + shard as usize / 64] &= !(1 << (shard % 64));
        self.opened[number] -= 1;
        self.visited[number] += 1;
        if self.opened[number] > 0 {
            self.open_next(number);
        }
        let best = self.shop.best(trial, shard);
        self.rest[number] -= best;
        self.shard_load[shard as usize] -= best;
        let only = self.shop.machine_of[shard as usize];
        if let Some(load) = self.machine_load.get_mut(only as usize) {
            *load -= best;
            let visits = &mut self.visits[only as usize];
            *visits -= u64::from(*visits != u64::MAX);
        }
        let free = end + self.shop.problem.machines[machine as usize].latency;
        self.free[machine as usize] = free;
        self.events.push(Reverse((free, Event::Machine(machine))));
        if self.next_epoch(number) {
            self.events.push(Reverse((end, Event::Trial(trial))));
        }
    }

    /// Has it this shard open?
    pub(super) fn is_open(&self, trial: u32, shard: u32) -> bool {
        self.open[trial as usize * self.words + shard as usize / 64] >> (shard % 64) & 1 == 1
    }

    /// The open shard of a trial that a machine should train: the one with most load to come for each
    /// machine that could, ties to the lower id.
    pub(super) fn shard_for(&self, trial: u32, machine: u32) -> Option<u32> {
        match self.shop.shards_of[machine as usize][..] {
            [only] => self.is_open(trial, only).then_some(only),
            ref several => {
                let open = several.iter().filter(|shard| self.is_open(trial, **shard));
                open.max_by_key(|shard| (self.pressure(**shard), Reverse(**shard))).copied()
            }
        }
    }

    /// Load to come for each machine that may train the shard.
    fn pressure(&self, shard: u32) -> u64 {
        let holders = self.shop.holders[shard as usize].as_ref();
        let count = holders.map_or(self.shop.machines, Vec::len).max(1);
        self.shard_load[shard as usize] / count as u64
    }

    /// Opens these shards of an epoch; where the order of visits is fixed the first of them.
    fn open_shards(&mut self, trial: usize, shards: &[u32]) {
        self.opened[trial] = id(shards.len());
        if self.shop.problem.trials[trial].has_fixed_order() {
            self.open_next(trial);
        } else {
            shards.iter().for_each(|shard| self.open_shard(trial, *shard));
        }
    }

    /// Opens the next shard of a fixed order.
    fn open_next(&mut self, trial: usize) {
        if let Some(shard) = self.shop.problem.trials[trial].ordered(self.visited[trial]) {
            self.open_shard(trial, shard);
        }
    }

    fn open_shard(&mut self, trial: usize, shard: u32) {
        self.open[trial * self.words + shard as usize / 64] |= 1 << (shard % 64);
    }

    fn add_load(&mut self, trial: usize, shard: u32, times: u64) {
        let time = self.shop.best(id(trial), shard) * times;
        self.rest[trial] += time;
        self.shard_load[shard as usize] += time;
        let only = self.shop.machine_of[shard as usize] as usize;
        if let Some(load) = self.machine_load.get_mut(only) {
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
        self.open_shards(trial, &self.shop.all_shards);
        true
    }
}

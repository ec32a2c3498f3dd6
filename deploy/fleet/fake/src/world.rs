//! A market that is the same for whoever buys in it: prices and capacity by pool and time, and how long machines last.

use super::{
    config::{InterruptionConfig, PoolConfig, WorldConfig},
    walk::{self, HOUR, exponential, float, whole},
};
use sojourn_fleet::cloud::{InstanceType, Offers, Pool, Quote};
use sojourn_protocol::{
    money::MicroUsd,
    quantity::{to_u64, to_usize},
    seeds,
    time::{Millis, UnixMillis},
};
use std::collections::BTreeMap;

/// How a spot machine ends, where its owner doesn't end it before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fate {
    /// When it is taken back; never where it is none.
    pub taken_at: Option<UnixMillis>,
    /// When that is told, where it is.
    pub noticed_at: Option<UnixMillis>,
}

/// The market.
#[derive(Debug)]
pub struct World {
    seed: u64,
    from: UnixMillis,
    step: Millis,
    types: BTreeMap<String, InstanceType>,
    pools: BTreeMap<Pool, PoolPath>,
}

/// The course of a pool's prices, capacity and interruptions.
#[derive(Debug)]
struct PoolPath {
    /// The pool's place among the pools: streams of chance go by it.
    number: u64,
    config: PoolConfig,
    prices: Vec<MicroUsd>,
    /// Whether capacity has run out, by step.
    short: Vec<bool>,
    /// The hazard of interruption of one place, summed up to the beginning of each step.
    hazard: Vec<f64>,
    /// The hazard of a step with capacity: it holds after all steps.
    usual: f64,
}

impl World {
    /// Makes all of it.
    #[must_use]
    pub fn new(config: &WorldConfig, seed: u64) -> Self {
        let step = Millis(config.step.0.max(1000));
        let steps = config.length.0.div_ceil(step.0).max(1);
        let pools = (0..)
            .zip(&config.pools)
            .map(|(number, of)| (of.pool.clone(), PoolPath::new(number, of, steps, step, seed)));
        Self { seed, from: config.from, step, types: config.types.clone(), pools: pools.collect() }
    }

    /// The world's pools.
    pub fn pools(&self) -> impl Iterator<Item = &Pool> {
        self.pools.keys()
    }

    /// When it begins.
    #[must_use]
    pub const fn from(&self) -> UnixMillis {
        self.from
    }

    /// How often prices and capacity move.
    #[must_use]
    pub const fn step(&self) -> Millis {
        self.step
    }

    /// A type by its name.
    #[must_use]
    pub fn instance_type(&self, name: &str) -> Option<&InstanceType> {
        self.types.get(name)
    }

    /// Types and prices of a time.
    #[must_use]
    pub fn offers(&self, at: UnixMillis) -> Offers {
        let quotes = self.pools.iter().map(|(pool, path)| {
            let spot = Some(path.price(self.index(at)));
            (pool.clone(), Quote { spot, on_demand: path.config.on_demand })
        });
        Offers { types: self.types.clone(), quotes: quotes.collect() }
    }

    /// The spot price of an hour.
    #[must_use]
    pub fn price(&self, pool: &Pool, at: UnixMillis) -> Option<MicroUsd> {
        Some(self.pools.get(pool)?.price(self.index(at)))
    }

    /// The list price of an hour.
    #[must_use]
    pub fn on_demand(&self, pool: &Pool) -> Option<MicroUsd> {
        Some(self.pools.get(pool)?.config.on_demand)
    }

    /// Spot machines that one buyer can have running there.
    #[must_use]
    pub fn capacity(&self, pool: &Pool, at: UnixMillis) -> u32 {
        let Some(path) = self.pools.get(pool) else { return 0 };
        if path.is_short(self.index(at)) { 0 } else { path.config.capacity.machines }
    }

    /// Machines on demand that one buyer can have running there.
    #[must_use]
    pub fn on_demand_capacity(&self, pool: &Pool) -> u32 {
        self.pools.get(pool).map_or(0, |path| path.config.capacity.on_demand)
    }

    /// How the spot machine that takes a pool's place of this number ends, if it is launched then. The times at which a
    /// place is cleared are the world's: they are the same whoever stands there, and since when.
    #[must_use]
    pub fn fate(&self, pool: &Pool, place: u32, launched_at: UnixMillis) -> Fate {
        let never = Fate { taken_at: None, noticed_at: None };
        let Some(path) = self.pools.get(pool) else { return never };
        let mut chance = seeds::stream("fake-fate", &[self.seed, path.number, place.into()]);
        let mut hazard = 0.0;
        let (taken_at, told) = loop {
            hazard += exponential(&mut chance);
            let told = seeds::unit_f64(&mut chance);
            let Some(after) = path.reaches(hazard, self.step) else { return never };
            let at = self.from + after;
            if at > launched_at {
                break (at, told);
            }
        };
        let InterruptionConfig { noticed, notice, .. } = path.config.interruptions;
        let told_at = UnixMillis(taken_at.0.saturating_sub(notice.0)).max(launched_at);
        Fate { taken_at: Some(taken_at), noticed_at: (told < noticed).then_some(told_at) }
    }

    fn index(&self, at: UnixMillis) -> usize {
        to_usize((at - self.from).0 / self.step.0)
    }
}

impl PoolPath {
    fn new(number: u64, config: &PoolConfig, steps: u64, step: Millis, seed: u64) -> Self {
        let mut chance = seeds::stream("fake-prices", &[seed, number]);
        let prices = walk::path(&config.prices, config.on_demand, steps, step, &mut chance);
        let short = shortages(config, steps, step, &[seed, number]);
        let of_all = float(steps.max(1));
        let ratio = short.iter().map(|short| f64::from(u8::from(*short))).sum::<f64>() / of_all;
        let InterruptionConfig { per_hour, in_shortage, .. } = config.interruptions;
        // So that this share of many machines is gone after an hour.
        let mean = -libm::log1p(-per_hour.clamp(0.0, 0.999));
        let usual = mean / (1.0 + (in_shortage - 1.0) * ratio) * float(step.0) / HOUR;
        let mut sum = 0.0;
        let hazard = std::iter::once(0.0).chain(short.iter().map(|short| {
            sum += if *short { usual * in_shortage } else { usual };
            sum
        }));
        let hazard = hazard.collect();
        Self { number, config: config.clone(), prices, short, hazard, usual }
    }

    fn price(&self, index: usize) -> MicroUsd {
        let price = self.prices.get(index).or(self.prices.last());
        price.copied().unwrap_or(self.config.on_demand)
    }

    /// After all steps there is capacity.
    fn is_short(&self, index: usize) -> bool {
        self.short.get(index).copied().unwrap_or(false)
    }

    /// After which time the hazard adds up to this; never where there is none.
    fn reaches(&self, hazard: f64, step: Millis) -> Option<Millis> {
        let after = self.hazard.partition_point(|sum| *sum <= hazard);
        let begun = after.saturating_sub(1);
        let before = self.hazard.get(begun).copied().unwrap_or(0.0);
        let of_step = self.hazard.get(after).map_or(self.usual, |sum| sum - before);
        let steps = float(to_u64(begun)) + (hazard - before) / of_step;
        (of_step > 0.0).then(|| Millis(whole(steps * float(step.0)).max(1)))
    }
}

/// Steps at which a pool's capacity has run out.
fn shortages(config: &PoolConfig, steps: u64, step: Millis, seed: &[u64]) -> Vec<bool> {
    let mut chance = seeds::stream("fake-capacity", seed);
    let mut short = vec![false; to_usize(steps)];
    let capacity = config.capacity;
    if capacity.shortages <= 0.0 || capacity.shortage.0 == 0 {
        return short;
    }
    let mut at = 0.0;
    while at < float(steps * step.0) {
        at += exponential(&mut chance) / capacity.shortages * HOUR;
        let lasts = exponential(&mut chance) * float(capacity.shortage.0);
        let (from, to) = (whole(at) / step.0, whole(at + lasts).div_ceil(step.0));
        let steps = short.iter_mut().skip(to_usize(from));
        steps.take(to_usize(to - from)).for_each(|short| *short = true);
        at += lasts;
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{pool, world_config};

    #[test]
    fn the_same_ratio_of_machines_is_gone_after_an_hour_whenever_capacity_is_short() {
        for (shortages, in_shortage) in [(0.0, 1.0), (0.05, 10.0)] {
            let mut config = world_config(Millis::from_secs(40 * 86_400));
            config.pools[0].interruptions.per_hour = 0.1;
            config.pools[0].interruptions.in_shortage = in_shortage;
            config.pools[0].capacity.shortages = shortages;
            let world = World::new(&config, 3);
            let hour = Millis::from_secs(3600);
            let gone = (0..8000u32).filter(|n| {
                let launched = UnixMillis(u64::from(*n) * 400_000);
                let taken = world.fate(&pool(0), *n, launched).taken_at;
                taken.is_some_and(|at| at <= launched + hour)
            });
            let ratio = float(to_u64(gone.count())) / 8000.0;
            assert!((0.085..0.115).contains(&ratio), "{ratio}");
        }
    }

    #[test]
    fn a_world_is_the_same_for_the_same_seed_alone() {
        let config = world_config(Millis::from_secs(86_400));
        let prices = |seed| {
            let world = World::new(&config, seed);
            (0..288u64)
                .map(|n| world.price(&pool(0), UnixMillis(n * 300_000)).unwrap())
                .collect::<Vec<_>>()
        };
        assert_eq!(prices(1), prices(1));
        assert_ne!(prices(1), prices(2));
    }

    #[test]
    fn a_place_is_cleared_at_times_that_are_the_worlds() {
        let world = World::new(&world_config(Millis::from_secs(30 * 86_400)), 5);
        let taken = |at| world.fate(&pool(1), 2, at).taken_at.unwrap();
        let first = taken(UnixMillis(0));
        assert_eq!(taken(UnixMillis(first.0 - 1)), first);
        let second = taken(first);
        assert!(second > first && taken(UnixMillis(second.0 - 1)) == second);
        let late = UnixMillis(100 * 86_400_000);
        assert!(taken(late) > late, "also after all steps");
    }

    #[test]
    fn capacity_runs_out_and_comes_back() {
        let mut config = world_config(Millis::from_secs(10 * 86_400));
        config.pools[0].capacity.shortages = 0.1;
        config.pools[0].capacity.shortage = Millis::from_secs(3600);
        let world = World::new(&config, 1);
        let short =
            (0..2880u64).filter(|n| world.capacity(&pool(0), UnixMillis(n * 300_000)) == 0).count();
        assert!((100..600).contains(&short), "{short}");
    }
}

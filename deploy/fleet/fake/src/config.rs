//! The configuration of a made-up world and of a made-up cloud.

use sojourn_fleet::cloud::{InstanceType, Pool};
use sojourn_protocol::{
    machines::Market,
    money::MicroUsd,
    time::{Millis, UnixMillis},
};
use std::collections::BTreeMap;

/// A market: the same for whoever buys in it.
#[derive(Debug, Clone, PartialEq)]
pub struct WorldConfig {
    /// The types, by name.
    pub types: BTreeMap<String, InstanceType>,
    /// The pools.
    pub pools: Vec<PoolConfig>,
    /// When it begins.
    pub from: UnixMillis,
    /// For how long prices and capacity move. They stay as they are after that.
    pub length: Millis,
    /// How often they move; at least a second.
    pub step: Millis,
}

/// One pool.
#[derive(Debug, Clone, PartialEq)]
pub struct PoolConfig {
    /// The pool.
    pub pool: Pool,
    /// The list price of an hour.
    pub on_demand: MicroUsd,
    /// The spot price.
    pub prices: Prices,
    /// How many machines there are.
    pub capacity: CapacityConfig,
    /// How machines are taken back.
    pub interruptions: InterruptionConfig,
}

/// How a spot price moves.
#[derive(Debug, Clone, PartialEq)]
pub enum Prices {
    /// At random, about a mean.
    Walk(Walk),
    /// As it did: prices of an hour, each from a time after the beginning on, in order. The first holds before it too.
    Trace(Vec<(Millis, MicroUsd)>),
}

/// A mean-reverting walk of the price's logarithm (Ornstein and Uhlenbeck), with jumps.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Walk {
    /// The median price, as a share of the list price.
    pub mean: f64,
    /// How fast it comes back: the share of its distance in an hour, for small shares.
    pub reversion: f64,
    /// The standard deviation that it has in the long run, of the logarithm.
    pub deviation: f64,
    /// Jumps in an hour, upwards as often as downwards.
    pub jumps: f64,
    /// The standard deviation of a jump, of the logarithm.
    pub jump: f64,
    /// Never less than this share of the list price.
    pub least: f64,
    /// Never more than this share of the list price.
    pub most: f64,
}

/// How many machines a pool has for one buyer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CapacityConfig {
    /// Spot machines at a time, in plenty.
    pub machines: u32,
    /// How often in an hour it runs out.
    pub shortages: f64,
    /// For how long, in the mean. Then nothing is sold there.
    pub shortage: Millis,
    /// Machines on demand at a time.
    pub on_demand: u32,
}

/// How spot machines are taken back.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct InterruptionConfig {
    /// The share of machines that are gone after an hour.
    pub per_hour: f64,
    /// How many times as likely it is while capacity has run out; the mean over all time stays.
    pub in_shortage: f64,
    /// The share of interruptions that are told before.
    pub noticed: f64,
    /// How long before.
    pub notice: Millis,
}

/// How one buyer's cloud behaves.
#[derive(Debug, Clone, PartialEq)]
pub struct CloudConfig {
    /// From launch until a machine's program starts: the least and the most.
    pub boot: (Millis, Millis),
    /// A machine is listed so long after its launch at the latest.
    pub listed_after: Millis,
    /// For how long machines that have ended are listed.
    pub ended_listed: Millis,
    /// Virtual processors that may run at a time, by region and market; without one there is no quota.
    pub quotas: BTreeMap<(String, Market), u32>,
    /// How calls go wrong.
    pub faults: Faults,
}

/// The share of calls that go wrong, each drawn by itself.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Faults {
    /// Refused for being too many.
    pub throttled: f64,
    /// Not answered, and nothing was done.
    pub away: f64,
    /// Not answered, and it was done all the same.
    pub lost: f64,
    /// Orders that are cut to a part by chance.
    pub partial: f64,
}

impl Default for CloudConfig {
    fn default() -> Self {
        Self {
            boot: (Millis::from_secs(100), Millis::from_secs(180)),
            listed_after: Millis(0),
            ended_listed: Millis::from_secs(3600),
            quotas: BTreeMap::new(),
            faults: Faults::default(),
        }
    }
}

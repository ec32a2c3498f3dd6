//! The worth of a pool's machines for a workload: how fast they are, and what a row costs on them, with all the time that is
//! lost to starts and interruptions.

use super::{
    memory::Memory,
    pools::{count, float},
};
use crate::{
    cloud::{InstanceType, Offers, Pool, Quote},
    settings::Settings,
};
use sojourn_protocol::{
    demand::{MeasuredSpeed, WorkloadDemand},
    machines::Market,
    money::MicroUsd,
    time::{Millis, UnixMillis},
};

/// How much slower than others a type is taken to be until it was measured.
const CAUTION: f64 = 0.8;
/// How much a measurement counts against what was learned before.
const LEARNING: f64 = 0.3;
/// The share of its cost that a row costs more, in thought, where a slot is half as fast as the fastest: results come later.
const SLOWNESS: f64 = 0.05;
/// The most that slowness counts.
const MAX_SLOWNESS: f64 = 0.5;
/// The factor on a row's cost, in thought, in a pool that has just taken a machine back.
const AVOIDED: f64 = 1.5;
/// The least part of its life that a machine is taken to train.
const MIN_USEFUL: f64 = 0.02;
/// Milliseconds of an hour.
const HOUR: f64 = 3_600_000.0;

/// Nanoseconds for a row of a workload in a slot of a type.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Speed {
    pub(super) nanos_per_row: f64,
    pub(super) measured: bool,
}

/// Nanoseconds for a row in a slot of this type, as measured, or else as guessed from what was measured on others.
pub(super) fn speed(
    workload: &WorkloadDemand,
    kind: &InstanceType,
    memory: &Memory,
    settings: &Settings,
) -> Speed {
    if let Some(measured) = measured(workload, &kind.name) {
        return Speed { nanos_per_row: float(measured.nanos_per_row), measured: true };
    }
    let nominal = nominal(workload, kind, settings);
    let learned = memory.speeds.get(&kind.name);
    // Others are compared by how much faster or slower they were than nominal.
    let factor = learned.copied().unwrap_or_else(|| typical(memory) * CAUTION);
    Speed { nanos_per_row: (nominal / factor).max(1.0), measured: learned.is_some() }
}

fn measured<'a>(workload: &'a WorkloadDemand, kind: &str) -> Option<&'a MeasuredSpeed> {
    let measured = workload.measured.iter().find(|measured| measured.instance_type == kind);
    measured.filter(|measured| measured.nanos_per_row > 0)
}

fn nominal(workload: &WorkloadDemand, kind: &InstanceType, settings: &Settings) -> f64 {
    float(workload.nanos_per_row.max(1)) / f64::from(settings.types.nominal_gflops(kind))
}

/// The nanoseconds of a row, at least 1, by which costs of different work are compared.
pub(super) fn reference(workload: &WorkloadDemand) -> f64 {
    float(workload.nanos_per_row.max(1))
}

/// The median of what was learned; 1 where nothing was.
fn typical(memory: &Memory) -> f64 {
    let mut factors: Vec<f64> = memory.speeds.values().copied().collect();
    factors.sort_by(f64::total_cmp);
    factors.get(factors.len() / 2).copied().unwrap_or(1.0)
}

/// Takes in what the server has measured.
pub(super) fn learn(
    memory: &mut Memory,
    workloads: &[&WorkloadDemand],
    offers: &Offers,
    settings: &Settings,
) {
    for kind in offers.types.values() {
        let factors = workloads.iter().filter_map(|workload| {
            let measured = measured(workload, &kind.name)?;
            Some(nominal(workload, kind, settings) / float(measured.nanos_per_row))
        });
        let factors: Vec<f64> = factors.collect();
        let Some(number) = u32::try_from(factors.len()).ok().filter(|number| *number > 0) else {
            continue;
        };
        let mean = factors.iter().sum::<f64>() / f64::from(number);
        let entry = memory.speeds.entry(kind.name.clone()).or_insert(mean);
        *entry += (mean - *entry) * LEARNING;
    }
}

/// The slots that a machine of this type has: as measured, or else by the settings.
pub(super) fn slots(workload: &WorkloadDemand, kind: &InstanceType, settings: &Settings) -> u32 {
    let said = measured(workload, &kind.name).map(|measured| measured.slots);
    said.filter(|slots| *slots > 0).unwrap_or_else(|| settings.types.slots(kind))
}

/// The use that a machine is wanted for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Use<'a> {
    pub(super) workload: &'a WorkloadDemand,
    /// Slots that are of use.
    pub(super) slots: u32,
    /// For how long.
    pub(super) time: Millis,
}

/// The worth of a pool's machine for a use.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Offer {
    pub(super) pool: Pool,
    pub(super) kind: InstanceType,
    pub(super) market: Market,
    pub(super) price: MicroUsd,
    /// The price on demand.
    pub(super) list_price: MicroUsd,
    pub(super) slots: u32,
    pub(super) slot_memory: u64,
    pub(super) speed: Speed,
    /// Millionths of a dollar for a billion rows, with what starts and interruptions cost.
    pub(super) cost: f64,
    /// By this pools are compared: the cost, with something on top for slowness.
    pub(super) score: f64,
}

/// The offer of one pool for a use in a market; none where the pool has none that fits.
pub(super) fn offer(
    pool: &Pool,
    quote: Quote,
    market: Market,
    of: &Use<'_>,
    context: &Context<'_>,
) -> Option<Offer> {
    let Context { offers, settings, memory, now } = *context;
    let kind = offers.types.get(&pool.instance_type)?;
    let price = match market {
        Market::Spot => quote.spot?,
        Market::OnDemand => quote.on_demand,
    };
    let slots = slots(of.workload, kind, settings);
    let speed = speed(of.workload, kind, memory, settings);
    let record = memory.pools.get(&(market, pool.clone())).copied().unwrap_or_default();
    let rate = match market {
        Market::Spot => record.rate(memory.experience.overall(settings.interruptions)),
        Market::OnDemand => 0.0,
    };
    let cost = cost(price, speed, slots.min(of.slots.max(1)), of.time, rate, settings);
    let avoided = market == Market::Spot && record.is_avoided(now, &settings.times);
    Some(Offer {
        pool: pool.clone(),
        kind: kind.clone(),
        market,
        price,
        list_price: quote.on_demand,
        slots,
        slot_memory: settings.types.slot_memory(kind, slots),
        speed,
        cost,
        score: if avoided { cost * AVOIDED } else { cost },
    })
}

/// The sources that offers are computed from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Context<'a> {
    pub(super) offers: &'a Offers,
    pub(super) settings: &'a Settings,
    pub(super) memory: &'a Memory,
    pub(super) now: UnixMillis,
}

/// The cost of a billion rows on a machine that is there for a time, and is taken back `rate` times an hour.
///
/// A machine lives until it is taken back or its work is done: `1 / (rate + 1 / time)` on average. Of each life the start
/// is lost, and where it is taken back some training too.
pub(super) fn cost(
    price: MicroUsd,
    speed: Speed,
    slots: u32,
    time: Millis,
    rate: f64,
    settings: &Settings,
) -> f64 {
    let hours = (float(time.0) / HOUR).max(0.05);
    let per_hour = |time: Millis| float(time.0) / HOUR;
    let ends = rate + 1.0 / hours;
    let lost = ends * per_hour(settings.times.boot) + rate * per_hour(settings.times.lost);
    let useful = (1.0 - lost).max(MIN_USEFUL);
    // Rows in an hour, in billions: an hour has 3.6e12 nanoseconds.
    let rows = 3600.0 / speed.nanos_per_row * f64::from(slots.max(1)) * useful;
    float(price.0) / rows
}

/// Sorts offers, the best first. The slower a slot is than the fastest of them, the more its rows count.
pub(super) fn rank(offers: &mut [Offer]) {
    let fastest =
        offers.iter().map(|offer| offer.speed.nanos_per_row).fold(f64::INFINITY, f64::min);
    for offer in offers.iter_mut() {
        let slower = offer.speed.nanos_per_row / fastest - 1.0;
        offer.score *= 1.0 + (slower * SLOWNESS).min(MAX_SLOWNESS);
    }
    offers.sort_by(|a, b| a.score.total_cmp(&b.score).then_with(|| a.pool.cmp(&b.pool)));
}

/// How long the rows of a trial take at this speed.
pub(super) fn time_of(rows: u64, speed: Speed) -> Millis {
    let seconds = float(rows) * speed.nanos_per_row / 1e9;
    Millis(u64::from(count(seconds)).saturating_mul(1000))
}

/// A price as a real number.
pub(super) fn price(price: MicroUsd) -> f64 {
    float(price.0)
}

/// The cost of a billion rows on a machine that is there already, with all of its slots in use.
pub(super) fn running_cost(price: MicroUsd, speed: Speed, slots: u32) -> f64 {
    float(price.0) * speed.nanos_per_row / 3600.0 / f64::from(slots.max(1))
}

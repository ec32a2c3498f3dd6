//! Which pools sell for a use at the moment, and how they are ordered.

use super::{
    Situation,
    memory::Memory,
    need::SlotDemand,
    pools::{count, float},
    worth::{self, Context, Offer, Use},
};
use crate::cloud::{Pool, Quote};
use sojourn_protocol::{machines::Market, money::MicroUsd, quantity::mul_div, time::UnixMillis};
use std::collections::BTreeSet;

/// Pools of one order, at most.
const MAX_POOLS: usize = 120;
/// So many types are in an order, where so many would do.
const TYPES: usize = 10;
/// Further types are in it where they cost no more than this times the best.
const SPREAD: f64 = 1.5;

/// The offers of one market for a use, the best first: where machines can be had now, that have the memory, and that
/// aren't too dear.
pub(super) fn offers(
    situation: &Situation<'_>,
    memory: &Memory,
    want: &SlotDemand<'_>,
    slots: u32,
    market: Market,
) -> Vec<Offer> {
    let (settings, now) = (situation.settings, situation.now);
    if market == Market::Spot && !settings.markets.spot {
        return Vec::new();
    }
    let context = Context { offers: situation.offers, settings, memory, now };
    let of = Use { workload: want.workload, slots, time: want.time };
    let quotes = situation.offers.quotes.iter();
    let open = quotes.filter(|(pool, quote)| {
        is_admitted(situation, pool)
            && is_open(memory, pool, market, now)
            && (market == Market::OnDemand || !is_dear(situation, quote))
    });
    let offers = open.filter_map(|(pool, quote)| worth::offer(pool, *quote, market, &of, &context));
    let mut offers: Vec<Offer> =
        offers.filter(|offer| offer.slot_memory >= want.workload.memory).collect();
    worth::rank(&mut offers);
    offers
}

/// Has any type that may be bought the memory for it?
pub(super) fn any_type(situation: &Situation<'_>, want: &SlotDemand<'_>) -> bool {
    smallest_slot(situation, want).is_some()
}

/// The memory of the smallest slot that is large enough, of all types that may be bought.
pub(super) fn smallest_slot(situation: &Situation<'_>, want: &SlotDemand<'_>) -> Option<u64> {
    large_enough(situation, want).map(|(memory, _)| memory).min()
}

/// The slots of the smallest machine whose slots are large enough; 0 where there is none.
pub(super) fn fewest_slots(situation: &Situation<'_>, want: &SlotDemand<'_>) -> u32 {
    large_enough(situation, want).map(|(_, slots)| slots).min().unwrap_or(0)
}

/// The types that may be bought and whose slots are large enough: the memory of a slot, and how many slots they have.
fn large_enough(
    situation: &Situation<'_>,
    want: &SlotDemand<'_>,
) -> impl Iterator<Item = (u64, u32)> {
    let settings = situation.settings;
    let admitted = situation.offers.types.values().filter(|kind| settings.types.admit(kind));
    let slots = admitted.map(|kind| {
        let slots = worth::slots(want.workload, kind, settings);
        (settings.types.slot_memory(kind, slots), slots)
    });
    slots.filter(|(memory, _)| *memory >= want.workload.memory)
}

fn is_admitted(situation: &Situation<'_>, pool: &Pool) -> bool {
    let kind = situation.offers.types.get(&pool.instance_type);
    kind.is_some_and(|kind| situation.settings.types.admit(kind))
}

/// Does nothing that was seen speak against asking this pool?
fn is_open(memory: &Memory, pool: &Pool, market: Market, now: UnixMillis) -> bool {
    let record = memory.pools.get(&(market, pool.clone()));
    let quota = memory.quotas.get(&(pool.region.clone(), market));
    record.and_then(|record| record.no_capacity.left(now)).is_none()
        && quota.and_then(|pause| pause.left(now)).is_none()
}

fn is_dear(situation: &Situation<'_>, quote: &Quote) -> bool {
    let percent = u64::from(situation.settings.markets.max_spot_percent);
    quote.spot.is_some_and(|spot| spot.0 > mul_div(quote.on_demand.0, percent, 100))
}

/// The offers that go into one order: of the region of the best one, and none with more slots than are of use, but for the
/// best one. Ten types, where there are so many, and all others that cost little more.
pub(super) fn of_one_order(offers: &[Offer], slots: u32) -> Vec<&Offer> {
    let Some(best) = offers.first() else { return Vec::new() };
    let most = slots.max(best.slots);
    let mut types: BTreeSet<&str> = BTreeSet::new();
    let region = offers.iter().filter(|offer| offer.pool.region == best.pool.region);
    let fitting = region.filter(|offer| offer.slots <= most);
    let chosen = fitting.filter(|offer| {
        let is_known = types.contains(offer.kind.name.as_str());
        let takes = is_known || types.len() < TYPES || offer.score <= best.score * SPREAD;
        if takes {
            types.insert(&offer.kind.name);
        }
        takes
    });
    chosen.take(MAX_POOLS).collect()
}

/// The most that a machine of these offers may cost: their price, with a margin for what it may rise until the purchase;
/// and of spot machines no more than the owner allows.
pub(super) fn price_limit(situation: &Situation<'_>, offers: &[&Offer], margin: bool) -> MicroUsd {
    let markets = &situation.settings.markets;
    let limits = offers.iter().map(|offer| match offer.market {
        Market::OnDemand => offer.price,
        Market::Spot => {
            let percent = u64::from(if margin { markets.price_margin_percent } else { 0 });
            let with_margin = mul_div(offer.price.0, 100 + percent, 100);
            let highest = mul_div(offer.list_price.0, u64::from(markets.max_spot_percent), 100);
            MicroUsd(with_margin.min(highest).max(offer.price.0))
        }
    });
    limits.max().unwrap_or_default()
}

/// A replacement has to be cheaper by this share at least.
pub(super) const WORTH_REPLACING: f64 = 0.05;

/// Is a replacement worth its start? What is saved in the time that is left has to be twice what both machines cost while
/// the new one starts and the old one ends.
pub(super) fn saving(
    situation: &Situation<'_>,
    price: MicroUsd,
    row_cost: f64,
    new: &Offer,
    want: &SlotDemand<'_>,
) -> Option<MicroUsd> {
    let times = &situation.settings.times;
    let hours = |millis: u64| float(millis) / 3_600_000.0;
    let ratio = 1.0 - new.cost / row_cost;
    if !ratio.is_finite() || ratio < WORTH_REPLACING {
        return None;
    }
    let hourly = worth::price(price) * ratio;
    // It is saved until the work is done or the new machine is taken back.
    let rate = situation.memory.experience.overall(situation.settings.interruptions);
    let saved = hourly / (rate + 1.0 / hours(want.time.0).max(0.01));
    let start = worth::price(new.price) * hours(times.boot.0);
    let end = worth::price(price) * hours(times.boot.0.saturating_add(times.lost.0));
    (saved > 2.0 * (start + end)).then(|| MicroUsd(u64::from(count(hourly))))
}

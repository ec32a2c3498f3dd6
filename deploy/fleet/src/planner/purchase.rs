//! The purchases of a plan: for work without slots, on demand where the owner wants that, and in place of machines that cost
//! more.

use super::{
    Situation,
    action::{Action, Purchase},
    assign::{Supply, assign},
    fleet::{Fleet, Machine, Phase},
    market,
    memory::{Memory, Ordered},
    money::Budget,
    need::SlotDemand,
    reason::{Note, PurchaseReason},
    shrink::{Kept, row_cost},
    worth::{self, Offer},
};
use crate::limits::{Limit, Taken};
use sojourn_protocol::{
    machines::{MachineName, Market},
    money::MicroUsd,
    quantity::{mul_div, to_usize},
    seeds,
    time::Millis,
};
use std::collections::BTreeSet;

/// Machines of one order, at most.
const MAX_ORDER: u32 = 100;
/// Orders for one kind of work in a plan, at most.
const MAX_ORDERS: u32 = 4;
/// While a measured type is on offer: the most machines in an order whose best type is unmeasured. An unmeasured type with so
/// many machines, running or ordered, gets no more.
const MAX_UNTRIED: u32 = 2;
/// Machines that are replaced in one plan, at most.
const MAX_REPLACED: u32 = 64;

/// The state while purchases are made: the remaining money and limits, and the orders so far.
#[derive(Debug)]
struct Buyer<'a, 'b> {
    situation: &'b Situation<'a>,
    memory: &'b mut Memory,
    taken: Taken,
    total: Budget,
    jobs: Vec<Budget>,
    /// Machines that may still come to serve each job.
    hosts: Vec<Option<u32>>,
    named: u64,
    actions: Vec<Action>,
    notes: Vec<Note>,
}

/// The purpose of an order, with its bounds.
struct OrderIntent {
    reason: PurchaseReason,
    replaces: Option<MachineName>,
    /// Slots that are of use.
    slots: u32,
    /// Machines, at most.
    machines: u32,
    /// The most that a billion rows may cost on the machines: what costs more is no use.
    most_cost: f64,
}

/// All purchases of a plan. They are noted in the memory as ordered.
pub(super) fn purchase(
    situation: &Situation<'_>,
    fleet: &Fleet<'_>,
    wants: &[SlotDemand<'_>],
    kept: Kept,
    memory: &mut Memory,
) -> (Vec<Action>, Vec<Note>) {
    let now = situation.now;
    let (mut unmet, hosts) = unmet(situation, fleet, wants, &kept);
    let open = wants.iter().any(|want| {
        !market::offers(situation, memory, want, want.buy.max(1), Market::Spot).is_empty()
    });
    note_costs(situation, wants, memory);
    memory.spot_back = if open { memory.spot_back.or(Some(now)) } else { None };
    if unmet.iter().all(|slots| *slots == 0) && open {
        memory.spot_away = None;
    }
    let mut notes = wants_notes(situation, wants);
    let blocked = if !memory.is_settled(now, situation.settings) {
        Some(Note::Settling)
    } else if let Some(left) = memory.pause(now) {
        Some(Note::Paused { left })
    } else {
        let unknown = fleet.machines.iter().find(|machine| machine.known.price.is_none());
        unknown.map(|machine| Note::PriceUnknown { machine: machine.name.clone() })
    };
    if let Some(note) = blocked {
        notes.push(note);
        return (Vec::new(), notes);
    }
    let mut buyer = Buyer {
        situation,
        memory,
        taken: fleet.taken(),
        total: kept.total,
        jobs: kept.jobs,
        hosts,
        named: 0,
        actions: Vec::new(),
        notes,
    };
    buyer.floor(fleet, wants, &mut unmet);
    for (want, unmet) in wants.iter().zip(&mut unmet) {
        buyer.work(fleet, want, unmet);
    }
    if unmet.iter().all(|slots| *slots == 0) {
        buyer.replacements(fleet, wants);
    }
    (buyer.actions, buyer.notes)
}

/// Records the current cost of each kind of work on the best available spot offer, where a sample is due; infinity where there is
/// no offer.
fn note_costs(situation: &Situation<'_>, wants: &[SlotDemand<'_>], memory: &mut Memory) {
    memory.costs.forget(situation.now);
    for want in wants {
        let Some(kind) = market::smallest_slot(situation, want) else { continue };
        if !memory.costs.is_due(kind, situation.now) {
            continue;
        }
        // As a rule few slots are wanted at a time, and larger machines would have some without work.
        let slots = market::fewest_slots(situation, want).min(want.buy).max(1);
        let offers = market::offers(situation, memory, want, slots, Market::Spot);
        // The price of a pool whose last order found no capacity doesn't count: nothing can be bought at that price.
        let sells = |offer: &&Offer| {
            let record = memory.pools.get(&(Market::Spot, offer.pool.clone()));
            record.is_none_or(|record| !record.no_capacity.has_failed())
        };
        let best = offers.iter().find(sells).map(|offer| offer.cost);
        let best = best.map_or(f64::INFINITY, |cost| cost / worth::reference(want.workload));
        memory.costs.note(kind, situation.now, best);
    }
}

/// The slots of each want that no machine has or will have, and how many more machines may serve each job.
fn unmet(
    situation: &Situation<'_>,
    fleet: &Fleet<'_>,
    wants: &[SlotDemand<'_>],
    kept: &Kept,
) -> (Vec<u32>, Vec<Option<u32>>) {
    let staying = fleet.machines.iter().filter(|machine| machine.phase != Phase::Draining);
    let own = staying.filter(|machine| machine.known.replaces.is_none());
    let own = own.map(|machine| Supply { slots: machine.slots, memory: machine.slot_memory });
    let coming = fleet.coming.iter().filter(|coming| coming.replaces.is_none());
    let coming = coming.map(|coming| Supply { slots: coming.slots, memory: coming.slot_memory });
    let supply: Vec<Supply> = own.chain(coming).collect();
    let asks: Vec<_> = wants.iter().map(SlotDemand::buy_ask).collect();
    let assigned = assign(&supply, &asks, &kept.hosts);
    let left = situation.demand.jobs.iter().zip(&kept.hosts).zip(&assigned.hosts);
    let left = left.map(|((_, most), has)| most.map(|most| most.saturating_sub(*has)));
    (assigned.unmet, left.collect())
}

fn wants_notes(situation: &Situation<'_>, wants: &[SlotDemand<'_>]) -> Vec<Note> {
    let mut notes = Vec::new();
    for want in wants {
        if want.buy > 0 && !market::any_type(situation, want) {
            notes.push(Note::NoType {
                job: want.job.name.clone(),
                model: want.workload.model.clone(),
                memory: want.workload.memory,
            });
        }
        if let Some(by) = want.late {
            notes.push(Note::Late { job: want.job.name.clone(), by });
        }
    }
    notes
}

impl Buyer<'_, '_> {
    /// As many machines on demand as the owner wants, while there is work for them.
    fn floor(&mut self, fleet: &Fleet<'_>, wants: &[SlotDemand<'_>], unmet: &mut [u32]) {
        let floor = self.situation.settings.markets.floor;
        let mut missing = floor.saturating_sub(fleet.on_demand());
        for (want, unmet) in wants.iter().zip(unmet) {
            // Slots that spot machines serve already count too: on-demand machines take over the work, and `shrink` ends the spot
            // machines later.
            let useful = want.buy.min(missing);
            if useful == 0 || !market::any_type(self.situation, want) {
                continue;
            }
            let intent = OrderIntent {
                reason: PurchaseReason::Floor { floor },
                replaces: None,
                most_cost: f64::INFINITY,
                slots: want.buy,
                machines: useful,
            };
            let (machines, slots) = self.buy(fleet, want, Market::OnDemand, intent);
            missing = missing.saturating_sub(machines);
            *unmet = unmet.saturating_sub(slots);
        }
    }

    /// Machines for work that has no slot.
    fn work(&mut self, fleet: &Fleet<'_>, want: &SlotDemand<'_>, unmet: &mut u32) {
        if *unmet == 0 || !market::any_type(self.situation, want) {
            return;
        }
        let markets = &self.situation.settings.markets;
        let now = self.situation.now;
        let rate = self.memory.experience.overall(self.situation.settings.interruptions);
        let limit = market::smallest_slot(self.situation, want)
            .and_then(|kind| self.memory.costs.limit(kind, now, want.patience, rate));
        let limit = limit.map_or(f64::INFINITY, |limit| limit * worth::reference(want.workload));
        for _ in 0..MAX_ORDERS {
            if *unmet == 0 {
                return;
            }
            let job = want.job.name.clone();
            let (market, reason) = match self.choose_market(want, *unmet) {
                Market::Spot => (Market::Spot, PurchaseReason::Work { job, slots: *unmet }),
                Market::OnDemand if !markets.spot => {
                    (Market::OnDemand, PurchaseReason::Work { job, slots: *unmet })
                }
                Market::OnDemand => {
                    let since = *self.memory.spot_away.get_or_insert(now);
                    let after = now - since;
                    if !markets.fallback || (after < markets.fallback_after && !want.urgent) {
                        self.notes.push(Note::NoOffer { job, slots: *unmet });
                        return;
                    }
                    let reason = if after < markets.fallback_after {
                        PurchaseReason::Deadline { job, slots: *unmet }
                    } else {
                        PurchaseReason::Fallback { job, slots: *unmet, after }
                    };
                    (Market::OnDemand, reason)
                }
            };
            let intent = OrderIntent {
                reason,
                replaces: None,
                slots: *unmet,
                machines: u32::MAX,
                most_cost: if market == Market::Spot { limit } else { f64::INFINITY },
            };
            let (machines, slots) = self.buy(fleet, want, market, intent);
            *unmet = unmet.saturating_sub(slots);
            if machines == 0 {
                return;
            }
        }
    }

    /// The market to buy on: spot, unless there is no spot offer, or the fallback to on demand is allowed and costs less,
    /// interruptions included.
    fn choose_market(&self, want: &SlotDemand<'_>, slots: u32) -> Market {
        let best = |market| {
            let offers = market::offers(self.situation, self.memory, want, slots, market);
            offers.first().map(|offer| offer.cost)
        };
        let markets = &self.situation.settings.markets;
        match (best(Market::Spot), best(Market::OnDemand)) {
            (Some(spot), Some(on_demand)) if on_demand < spot && markets.fallback => {
                Market::OnDemand
            }
            (Some(_), _) => Market::Spot,
            (None, _) => Market::OnDemand,
        }
    }

    /// Places one order. Returns the number of ordered machines and the least number of slots that they will have.
    fn buy(
        &mut self,
        fleet: &Fleet<'_>,
        want: &SlotDemand<'_>,
        market: Market,
        intent: OrderIntent,
    ) -> (u32, u32) {
        let mut offers = market::offers(self.situation, self.memory, want, intent.slots, market);
        let mut most = intent.machines.min(MAX_ORDER);
        if offers.iter().any(|offer| offer.speed.measured) {
            // Types that were never measured are tried, a few machines of each.
            offers.retain(|offer| offer.speed.measured || !self.is_on_trial(fleet, offer));
            if offers.first().is_some_and(|best| !best.speed.measured) {
                most = most.min(MAX_UNTRIED);
            }
        }
        let any = !offers.is_empty();
        offers.retain(|offer| offer.cost <= intent.most_cost);
        if any && offers.is_empty() {
            let job = want.job.name.clone();
            self.notes.push(Note::Waits { job, slots: intent.slots });
            return (0, 0);
        }
        if offers.is_empty() {
            self.notes.push(Note::NoOffer { job: want.job.name.clone(), slots: intent.slots });
            return (0, 0);
        }
        let pools = market::of_one_order(&offers, intent.slots);
        // Near a limit, an order for the best pool alone may allow more machines: with several pools, the highest price and most
        // vCPUs count.
        let best: Vec<&Offer> = pools.iter().copied().take(1).collect();
        let wide = self.fits(want, &pools, most, intent.slots, true);
        let narrow = self.fits(want, &best, most, intent.slots, false);
        let (pools, fit, margin) =
            if narrow.0 > wide.0 { (best, narrow, false) } else { (pools, wide, true) };
        let (machines, limit) = fit;
        if let Some(limit) = limit {
            let job = want.job.name.clone();
            self.notes.push(Note::LimitReached { job, limit, slots: intent.slots });
        }
        if machines == 0 {
            return (0, 0);
        }
        // A replacement is of no use at a higher price.
        let margin = margin && intent.replaces.is_none();
        let price_limit = market::price_limit(self.situation, &pools, margin);
        let slots = pools.iter().map(|offer| offer.slots).min().unwrap_or(1);
        self.order(want, market, intent, &pools, machines, price_limit);
        (machines, slots.saturating_mul(machines))
    }

    /// Are as many machines of this type there as a first try takes?
    fn is_on_trial(&self, fleet: &Fleet<'_>, offer: &Offer) -> bool {
        let running = fleet.machines.iter();
        let running = running.filter(|m| m.cloud.pool.instance_type == offer.kind.name).count();
        let ordered = self.memory.ordered.values();
        let ordered = ordered.filter(|ordered| ordered.first_type == offer.kind.name).count();
        running + ordered >= to_usize(MAX_UNTRIED)
    }

    /// How many machines of these offers the limits and budgets allow, up to the useful number; and the limit that allows fewer,
    /// if any.
    fn fits(
        &self,
        want: &SlotDemand<'_>,
        offers: &[&Offer],
        most: u32,
        slots: u32,
        margin: bool,
    ) -> (u32, Option<Limit>) {
        let widest = offers.iter().map(|offer| offer.slots).max().unwrap_or(1).max(1);
        let vcpus = offers.iter().map(|offer| offer.kind.vcpus).max().unwrap_or(0);
        let price = market::price_limit(self.situation, offers, margin);
        let hosts = self.hosts.get(want.at).copied().flatten().unwrap_or(u32::MAX);
        let useful = (slots / widest).max(1).min(most).min(hosts);
        let times = &self.situation.settings.times;
        let short =
            Millis(times.start().0.saturating_add(times.stop().0).saturating_add(want.time.0));
        let life = short.min(times.min_life());
        let job = self.jobs.get(want.at).map_or(u32::MAX, |budget| budget.fits(price, life));
        let limits = [
            self.situation.settings.limits.left(&self.taken).fits(vcpus, price),
            (self.total.fits(price, life), Limit::Total),
            (job, Limit::Job),
        ];
        let tightest = limits.into_iter().min_by_key(|(fit, _)| *fit);
        match tightest {
            Some((fit, limit)) if fit < useful => (fit, Some(limit)),
            _ => (useful, None),
        }
    }

    fn order(
        &mut self,
        want: &SlotDemand<'_>,
        market: Market,
        intent: OrderIntent,
        offers: &[&Offer],
        machines: u32,
        price_limit: MicroUsd,
    ) {
        let vcpus = offers.iter().map(|offer| offer.kind.vcpus).max().unwrap_or(0);
        let ordered = Ordered {
            at: self.situation.now,
            market,
            vcpus,
            slots: offers.iter().map(|offer| offer.slots).min().unwrap_or(1),
            memory: offers.iter().map(|offer| offer.slot_memory).min().unwrap_or(0),
            price_limit,
            job: want.job.job,
            first_type: offers.first().map(|offer| offer.kind.name.clone()).unwrap_or_default(),
            replaces: intent.replaces,
            bought: None,
            price: None,
        };
        let names: Vec<MachineName> = (0..machines).filter_map(|_| self.name()).collect();
        for name in &names {
            self.memory.ordered.insert(name.clone(), ordered.clone());
        }
        self.taken.add(machines, vcpus, price_limit);
        self.total.add(machines, price_limit);
        if let Some(budget) = self.jobs.get_mut(want.at) {
            budget.add(machines, price_limit);
        }
        if let Some(Some(hosts)) = self.hosts.get_mut(want.at) {
            *hosts = hosts.saturating_sub(machines);
        }
        self.actions.push(Action::Buy(Purchase {
            machines: names,
            market,
            pools: offers.iter().map(|offer| offer.pool.clone()).collect(),
            price_limit,
            job: want.job.job,
            reason: intent.reason,
        }));
    }

    /// A name that no machine has had: it follows from the seed of the plan and its time.
    fn name(&mut self) -> Option<MachineName> {
        self.named += 1;
        let parts = [self.situation.seed, self.situation.now.0, self.named];
        let unique = seeds::derive("machine", &parts);
        self.situation.settings.machine_name(unique)
    }

    /// Machines in place of others that cost more for the same work.
    fn replacements(&mut self, fleet: &Fleet<'_>, wants: &[SlotDemand<'_>]) {
        let markets = &self.situation.settings.markets;
        let count = |machines: usize| u32::try_from(machines).unwrap_or(u32::MAX);
        let replaceable = mul_div(
            u64::from(count(fleet.machines.len())),
            u64::from(markets.replace_percent),
            100,
        );
        let under_way: BTreeSet<&MachineName> = fleet
            .machines
            .iter()
            .filter_map(|machine| machine.known.replaces.as_ref())
            .chain(fleet.coming.iter().filter_map(|coming| coming.replaces.as_ref()))
            .collect();
        let most = u32::try_from(replaceable).unwrap_or(u32::MAX);
        let most = if markets.replace_percent == 0 { 0 } else { most.max(1) };
        let mut left = most.saturating_sub(count(under_way.len())).min(MAX_REPLACED);
        let mut spare = fleet.on_demand().saturating_sub(markets.floor);
        let mut dearest: Vec<(&Machine<'_>, f64)> = fleet
            .machines
            .iter()
            .filter(|machine| machine.phase == Phase::Working && machine.known.replaces.is_none())
            .filter(|machine| machine.held() > 0 && !under_way.contains(machine.name))
            .map(|machine| (machine, row_cost(self.situation, machine, wants, self.memory)))
            .collect();
        dearest.sort_by(|(a, a_cost), (b, b_cost)| {
            let on_demand_first = b.is_on_demand().cmp(&a.is_on_demand());
            on_demand_first.then(b_cost.total_cmp(a_cost)).then_with(|| a.name.cmp(b.name))
        });
        for (machine, cost) in dearest {
            if left == 0 {
                return;
            }
            if machine.is_on_demand() && (spare == 0 || !self.spot_is_back()) {
                continue;
            }
            let fits = |want: &&SlotDemand<'_>| {
                want.buy > 0 && machine.slot_memory >= want.workload.memory
            };
            let Some(want) = wants.iter().find(fits) else { continue };
            if self.replace(fleet, want, machine, cost) {
                left -= 1;
                spare = spare.saturating_sub(u32::from(machine.is_on_demand()));
            }
        }
    }

    /// Can spot machines be had, and have been for long enough?
    fn spot_is_back(&self) -> bool {
        let since = self.memory.spot_back.map(|since| self.situation.now - since);
        since.is_some_and(|since| since >= self.situation.settings.markets.return_after)
    }

    fn replace(
        &mut self,
        fleet: &Fleet<'_>,
        want: &SlotDemand<'_>,
        machine: &Machine<'_>,
        cost: f64,
    ) -> bool {
        let offers = market::offers(self.situation, self.memory, want, machine.slots, Market::Spot);
        let Some(best) = offers.first() else { return false };
        let same = best.slots == machine.slots;
        let saving = market::saving(self.situation, machine.price, cost, best, want);
        let Some(saving) = saving.filter(|_| same) else { return false };
        let intent = OrderIntent {
            reason: PurchaseReason::Replacement {
                of: machine.name.clone(),
                market: machine.cloud.market,
                saving,
            },
            replaces: Some(machine.name.clone()),
            slots: machine.slots,
            machines: 1,
            most_cost: cost * (1.0 - market::WORTH_REPLACING),
        };
        self.buy(fleet, want, Market::Spot, intent).0 > 0
    }
}

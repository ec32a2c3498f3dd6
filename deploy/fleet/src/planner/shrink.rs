//! Which machines are given back: those that are of no use, those that there is no money for, and those that were replaced.

use super::{
    Situation,
    action::Action,
    assign::{Assignment, Supply, assign},
    fleet::{Coming, Fleet, Machine, Phase},
    memory::Memory,
    money::{Budget, cost},
    need::SlotDemand,
    reason::EndReason,
    worth,
};
use crate::limits::{Limit, Taken};
use sojourn_protocol::{
    ids::JobId,
    machines::MachineName,
    money::MicroUsd,
    quantity::{mul_div, to_usize},
    time::Millis,
};
use std::collections::{BTreeMap, BTreeSet};

/// The money and machines that are left for purchases after machines were given back.
#[derive(Debug, Default)]
pub(super) struct Kept {
    /// The money of all jobs together.
    pub(super) total: Budget,
    /// The money of each job, by its place.
    pub(super) jobs: Vec<Budget>,
    /// How many machines may serve each job.
    pub(super) hosts: Vec<Option<u32>>,
}

/// Gives back what is of no use and what can't be paid, and notes it in memory and fleet.
pub(super) fn shrink(
    situation: &Situation<'_>,
    fleet: &mut Fleet<'_>,
    wants: &[SlotDemand<'_>],
    memory: &mut Memory,
) -> (Vec<Action>, Kept) {
    let mut actions = replaced(situation, fleet, memory);
    let order = keep_order(situation, fleet, wants, memory);
    let mut reasons: BTreeMap<usize, EndReason> = BTreeMap::new();
    over_limits(situation, fleet, &order, &mut reasons);

    let mut total = total_budget(situation, fleet);
    cut(situation, fleet, &order, &total, Limit::Total, &mut reasons);
    stop_paying(situation, &mut total, fleet, &order, &reasons);

    let hosts: Vec<Option<u32>> = situation.demand.jobs.iter().map(|job| job.max_hosts).collect();
    let staying: Vec<usize> =
        order.iter().copied().filter(|index| !reasons.contains_key(index)).collect();
    let mut assigned = keep(fleet, &staying, wants, &hosts);
    let mut jobs = job_budgets(situation, fleet, wants, &staying, &assigned);
    let caps = caps(situation, fleet, wants, &staying, &assigned, &jobs, &hosts);
    let mut unpaid: BTreeSet<usize> = BTreeSet::new();
    if caps != hosts {
        let before = assigned;
        assigned = keep(fleet, &staying, wants, &caps);
        for ((index, before), after) in staying.iter().zip(&before.machines).zip(&assigned.machines)
        {
            if !before.is_empty() && after.is_empty() {
                unpaid.insert(*index);
            }
        }
        jobs = job_budgets(situation, fleet, wants, &staying, &assigned);
    }
    for (index, served) in staying.iter().zip(&assigned.machines) {
        let Some(machine) = fleet.machines.get(*index) else { continue };
        let reason = if unpaid.contains(index) {
            Some(EndReason::Money { limit: Limit::Job })
        } else {
            reason_to_end(situation, machine, served.is_empty(), wants, memory)
        };
        if let Some(reason) = reason {
            reasons.insert(*index, reason);
            total.rate = total.rate.saturating_sub(machine.price);
            total.spent += cost(machine.price, situation.settings.times.stop());
        }
    }
    for (index, reason) in reasons {
        actions.extend(give_back(situation, fleet, index, reason, memory));
    }
    (actions, Kept { total, jobs, hosts: caps })
}

/// Drains machines whose replacement is there.
fn replaced(situation: &Situation<'_>, fleet: &mut Fleet<'_>, memory: &mut Memory) -> Vec<Action> {
    let pairs: Vec<(MachineName, MachineName)> = fleet
        .machines
        .iter()
        .filter(|machine| machine.phase == Phase::Working)
        .filter_map(|machine| Some((machine.known.replaces.clone()?, machine.name.clone())))
        .collect();
    let mut actions = Vec::new();
    for (old, by) in pairs {
        let index = fleet.machines.iter().position(|machine| *machine.name == old);
        let is_there = |index: &usize| {
            fleet.machines.get(*index).is_some_and(|old| old.phase != Phase::Draining)
        };
        if let Some(index) = index.filter(is_there) {
            let reason = EndReason::Replaced { by: by.clone() };
            actions.extend(give_back(situation, fleet, index, reason, memory));
        }
    }
    // A replacement becomes an ordinary machine once the machine that it replaces is gone or draining.
    let staying: BTreeSet<MachineName> = fleet
        .machines
        .iter()
        .filter(|machine| machine.phase != Phase::Draining)
        .map(|machine| machine.name.clone())
        .collect();
    let is_gone = |old: &mut MachineName| !staying.contains(old);
    for machine in &mut fleet.machines {
        machine.known.replaces.take_if(is_gone);
        if let Some(known) = memory.machines.get_mut(machine.name) {
            known.replaces.clone_from(&machine.known.replaces);
        }
    }
    actions
}

/// The indices of machines that aren't draining, in the order in which they are kept: the owner's minimum on demand, then
/// machines with units, then the others; within each group by phase, then the cheapest per row first. Beyond the minimum,
/// replacements come last while the machines that they replace are still there.
fn keep_order(
    situation: &Situation<'_>,
    fleet: &Fleet<'_>,
    wants: &[SlotDemand<'_>],
    memory: &Memory,
) -> Vec<usize> {
    let mut costs: Vec<(usize, &Machine<'_>, f64)> = fleet
        .machines
        .iter()
        .enumerate()
        .filter(|(_, machine)| machine.phase != Phase::Draining)
        .map(|(index, machine)| (index, machine, row_cost(situation, machine, wants, memory)))
        .collect();
    costs.sort_by(|(_, a, a_cost), (_, b, b_cost)| {
        let key = |machine: &Machine<'_>| {
            (machine.known.replaces.is_some(), machine.held() == 0, machine.phase)
        };
        key(a).cmp(&key(b)).then(a_cost.total_cmp(b_cost)).then_with(|| a.name.cmp(b.name))
    });
    let floor = to_usize(situation.settings.markets.floor);
    let mut on_demand: Vec<usize> = costs
        .iter()
        .filter(|(_, machine, _)| machine.is_on_demand())
        .map(|(index, _, _)| *index)
        .take(floor)
        .collect();
    let rest: Vec<usize> = costs
        .iter()
        .map(|(index, _, _)| *index)
        .filter(|index| !on_demand.contains(index))
        .collect();
    on_demand.extend(rest);
    on_demand
}

/// The cost of a billion rows on a machine from now on; where no work or type is known for it, the price of a virtual
/// processor's hour.
pub(super) fn row_cost(
    situation: &Situation<'_>,
    machine: &Machine<'_>,
    wants: &[SlotDemand<'_>],
    memory: &Memory,
) -> f64 {
    let kind = situation.offers.types.get(&machine.cloud.pool.instance_type);
    let fits = |want: &&SlotDemand<'_>| {
        machine.slot_memory == 0 || machine.slot_memory >= want.workload.memory
    };
    let (Some(kind), Some(want)) = (kind, wants.iter().find(fits)) else {
        return f64::from(machine.vcpus.max(1)).recip() * worth::price(machine.price);
    };
    let speed = worth::speed(want.workload, kind, memory, situation.settings);
    worth::running_cost(machine.price, speed, machine.slots)
}

/// A limit was lowered.
fn over_limits(
    situation: &Situation<'_>,
    fleet: &Fleet<'_>,
    order: &[usize],
    reasons: &mut BTreeMap<usize, EndReason>,
) {
    // Draining machines don't count against the limits: otherwise more machines than necessary would be ended while they drain.
    let mut taken = Taken::default();
    for index in order {
        let Some(machine) = fleet.machines.get(*index) else { continue };
        let mut with = taken;
        with.add(1, machine.vcpus, machine.price);
        match situation.settings.limits.exceeded(&with) {
            Some(limit) => {
                reasons.insert(*index, EndReason::Over { limit });
            }
            None => taken = with,
        }
    }
}

/// The budget of all jobs together: what was spent in all, and the price of an hour of the machines that go on.
fn total_budget(situation: &Situation<'_>, fleet: &Fleet<'_>) -> Budget {
    let times = &situation.settings.times;
    let late = situation.now - situation.demand.at;
    let mut budget = Budget {
        limit: situation.settings.limits.total,
        spent: situation.demand.spent,
        rate: MicroUsd(0),
    };
    // The server may not know new machines yet: for these the cost since their launch is added, for others only the cost since
    // `demand.at`.
    let new = Millis(times.interval.0.saturating_mul(4));
    for machine in &fleet.machines {
        let age = situation.now - machine.cloud.launched_at;
        budget.spent += cost(machine.price, if age <= new { age } else { late });
        if machine.phase == Phase::Draining {
            budget.spent += cost(machine.price, times.stop());
        } else {
            budget.rate += machine.price;
        }
    }
    for coming in &fleet.coming {
        budget.spent += cost(coming.price, unseen(situation, coming));
        budget.rate += coming.price;
    }
    budget
}

/// How long an ordered machine costs money before it can be ended: until it must be visible at the cloud, or until now if that is
/// later.
fn unseen(situation: &Situation<'_>, coming: &Coming) -> Millis {
    let visible = coming.at + situation.settings.times.visible;
    visible.max(situation.now) - coming.at
}

/// Gives back what a budget can't pay, the last first.
fn cut(
    situation: &Situation<'_>,
    fleet: &Fleet<'_>,
    order: &[usize],
    budget: &Budget,
    limit: Limit,
    reasons: &mut BTreeMap<usize, EndReason>,
) {
    let times = &situation.settings.times;
    // What was ordered can't be sent back: it counts first.
    let coming = fleet.coming.iter().map(|coming| coming.price);
    let priced = order.iter().filter_map(|index| fleet.machines.get(*index));
    let prices: Vec<MicroUsd> = coming.chain(priced.map(|machine| machine.price)).collect();
    let stay = budget.affordable(&prices, times.stop(), times.interval);
    for index in order.iter().skip(stay.saturating_sub(fleet.coming.len())) {
        reasons.entry(*index).or_insert(EndReason::Money { limit });
    }
}

/// Takes the machines that are to end out of the budget's rate, and adds to what was spent what they cost until their end.
fn stop_paying(
    situation: &Situation<'_>,
    budget: &mut Budget,
    fleet: &Fleet<'_>,
    order: &[usize],
    reasons: &BTreeMap<usize, EndReason>,
) {
    for index in order.iter().filter(|index| reasons.contains_key(index)) {
        if let Some(machine) = fleet.machines.get(*index) {
            budget.rate = budget.rate.saturating_sub(machine.price);
            budget.spent += cost(machine.price, situation.settings.times.stop());
        }
    }
}

/// Assigns the machines that stay to what they are kept for.
fn keep(
    fleet: &Fleet<'_>,
    staying: &[usize],
    wants: &[SlotDemand<'_>],
    hosts: &[Option<u32>],
) -> Assignment {
    let supply: Vec<Supply> = staying
        .iter()
        .filter_map(|index| fleet.machines.get(*index))
        .map(|machine| Supply { slots: machine.slots, memory: machine.slot_memory })
        .collect();
    let asks: Vec<_> = wants.iter().map(SlotDemand::keep_ask).collect();
    assign(&supply, &asks, hosts)
}

/// The budget of each job: what it has spent, and the price of an hour of the machines that are assigned to it.
fn job_budgets(
    situation: &Situation<'_>,
    fleet: &Fleet<'_>,
    wants: &[SlotDemand<'_>],
    staying: &[usize],
    assigned: &Assignment,
) -> Vec<Budget> {
    let times = &situation.settings.times;
    let late = situation.now - situation.demand.at;
    let mut budgets: Vec<Budget> = situation
        .demand
        .jobs
        .iter()
        .map(|job| Budget {
            limit: situation.settings.limits.of_job(job.budget),
            spent: job.spent,
            rate: MicroUsd(0),
        })
        .collect();
    for (index, served) in staying.iter().zip(&assigned.machines) {
        let Some(machine) = fleet.machines.get(*index) else { continue };
        let all: u32 = served.iter().map(|served_ask| served_ask.slots).sum();
        for served_ask in served {
            let job = wants.get(served_ask.ask).and_then(|want| budgets.get_mut(want.at));
            let Some(budget) = job else { continue };
            let part = mul_div(machine.price.0, u64::from(served_ask.slots), u64::from(all.max(1)));
            budget.rate += MicroUsd(part);
            // Until a machine's first unit, the server charges its cost to no job, so the cost since its launch is added here.
            let since =
                if machine.known.worked { late } else { situation.now - machine.cloud.launched_at };
            budget.spent += cost(MicroUsd(part), since);
        }
    }
    // A job that is no longer in the demand is charged nothing. A machine without a known job is charged to the first job.
    let place = |job: Option<JobId>| match job {
        Some(job) => situation.demand.jobs.iter().position(|other| other.job == job),
        None => Some(0),
    };
    let draining = fleet.machines.iter().filter(|machine| machine.phase == Phase::Draining);
    for machine in draining {
        if let Some(budget) = place(machine.known.job).and_then(|place| budgets.get_mut(place)) {
            let since = if machine.known.worked { late } else { Millis(0) };
            budget.spent += cost(machine.price, Millis(times.stop().0.saturating_add(since.0)));
        }
    }
    for coming in &fleet.coming {
        if let Some(budget) = place(Some(coming.job)).and_then(|place| budgets.get_mut(place)) {
            budget.spent += cost(coming.price, unseen(situation, coming));
            budget.rate += coming.price;
        }
    }
    budgets
}

/// How many machines may serve each job: `max_hosts`, and as many as its money pays.
fn caps(
    situation: &Situation<'_>,
    fleet: &Fleet<'_>,
    wants: &[SlotDemand<'_>],
    staying: &[usize],
    assigned: &Assignment,
    budgets: &[Budget],
    hosts: &[Option<u32>],
) -> Vec<Option<u32>> {
    let times = &situation.settings.times;
    let mut caps = hosts.to_vec();
    for (place, (cap, budget)) in caps.iter_mut().zip(budgets).enumerate() {
        let serves = |served: &[super::assign::AskSlots]| {
            served
                .iter()
                .any(|served_ask| wants.get(served_ask.ask).is_some_and(|want| want.at == place))
        };
        let job = situation.demand.jobs.get(place).map(|job| job.job);
        let coming = fleet.coming.iter().filter(|coming| Some(coming.job) == job);
        let coming: Vec<MicroUsd> = coming.map(|coming| coming.price).collect();
        let serving = staying.iter().zip(&assigned.machines);
        let serving = serving.filter(|(_, served)| serves(served));
        let serving = serving.filter_map(|(index, _)| fleet.machines.get(*index));
        let prices: Vec<MicroUsd> =
            coming.iter().copied().chain(serving.map(|machine| machine.price)).collect();
        let stay = budget.affordable(&prices, times.stop(), times.interval);
        if stay < prices.len() {
            let stay = u32::try_from(stay.saturating_sub(coming.len())).unwrap_or(u32::MAX);
            *cap = Some(cap.unwrap_or(u32::MAX).min(stay));
        }
    }
    caps
}

/// The reason to end a machine that has been unneeded or idle for long enough; none if the machine is kept.
fn reason_to_end(
    situation: &Situation<'_>,
    machine: &Machine<'_>,
    unassigned: bool,
    wants: &[SlotDemand<'_>],
    memory: &mut Memory,
) -> Option<EndReason> {
    let (now, times) = (situation.now, &situation.settings.times);
    let known = memory.machines.get_mut(machine.name)?;
    let needed = !unassigned || machine.known.replaces.is_some();
    known.surplus = if needed { None } else { known.surplus.or(Some(now)) };
    let surplus = known.surplus.map(|since| now - since);
    let idle = machine.load.filter(|load| load.held == 0 && machine.phase == Phase::Working);
    let Some(load) = idle else {
        return (surplus? >= times.settle).then_some(EndReason::Surplus);
    };
    let idle = load.idle_since.map_or(Millis(0), |since| now - since);
    if let Some(surplus) = surplus {
        return (surplus >= times.interval.min(times.settle)).then_some(EndReason::Idle);
    }
    if machine.known.replaces.is_some() {
        return None;
    }
    // It is kept for units that are to come: but not for ever.
    let fits = |want: &&SlotDemand<'_>| {
        machine.slot_memory == 0 || machine.slot_memory >= want.workload.memory
    };
    let mut fitting = wants.iter().filter(fits).map(|want| want.workload);
    let waits = if fitting.clone().any(|workload| workload.runnable > 0) {
        // Why it takes none of the units that wait isn't known here.
        Millis(times.idle.0.saturating_mul(3))
    } else if fitting.any(|workload| workload.soon > 0) {
        times.idle
    } else {
        times.settle
    };
    (idle >= waits).then_some(EndReason::IdleTooLong { since: idle })
}

/// The action that ends a machine: it gives its units back first, unless it has never enrolled.
fn give_back(
    situation: &Situation<'_>,
    fleet: &mut Fleet<'_>,
    index: usize,
    reason: EndReason,
    memory: &mut Memory,
) -> Option<Action> {
    let machine = fleet.machines.get_mut(index)?;
    let known = memory.machines.get_mut(machine.name)?;
    let victim = machine.victim();
    let enrolled = machine.load.is_some();
    machine.phase = Phase::Draining;
    if enrolled {
        known.drained = Some(situation.now);
        machine.known.drained = known.drained;
        let within = situation.settings.times.drain;
        return Some(Action::Drain { machine: victim, within, reason });
    }
    known.ended = Some(situation.now);
    machine.known.ended = known.ended;
    Some(Action::End { machine: victim, reason })
}

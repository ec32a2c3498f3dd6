//! The planner's memory from one plan to the next. Nothing of it is kept on disk: after a restart the fleet is read back from
//! its tags, and what was learned of pools and speeds is learned anew.

use super::{
    action::{Action, Purchase},
    costs::Costs,
    pools::{Experience, Pause, PoolRecord},
};
use crate::{
    cloud::{CloudError, CloudMachine, Filled, MachineState, Offers, Pool},
    settings::Settings,
};
use sojourn_protocol::{
    ids::JobId,
    machines::{MachineEnd, MachineName, Market},
    money::MicroUsd,
    seeds,
    time::{Millis, UnixMillis},
};
use std::collections::{BTreeMap, BTreeSet};

/// How many times the fleet must have been listed since the start before anything is bought.
const LOOKS: u32 = 2;
/// The pause of all purchases after a refusal, at first and at most.
const REFUSED: (Millis, Millis) = (Millis::from_secs(30), Millis::from_secs(1800));
/// The same after the cloud asked for fewer requests.
const THROTTLED: (Millis, Millis) = (Millis::from_secs(10), Millis::from_secs(300));
/// The same of a market and region after the account's quota was used up.
const QUOTA: (Millis, Millis) = (Millis::from_secs(300), Millis::from_secs(3600));
/// The same of all purchases after machines that failed.
const FAILED_MACHINES: (Millis, Millis) = (Millis::from_secs(120), Millis::from_secs(3600));

/// The planner's memory from one plan to the next.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Memory {
    pub(crate) looks: u32,
    pub(crate) first_look: Option<UnixMillis>,
    pub(crate) last_look: Option<UnixMillis>,
    /// The machines of the last look that were alive.
    pub(crate) machines: BTreeMap<MachineName, Known>,
    /// Machines that were ordered and not seen yet.
    pub(crate) ordered: BTreeMap<MachineName, Ordered>,
    pub(crate) pools: BTreeMap<(Market, Pool), PoolRecord>,
    pub(crate) experience: Experience,
    pub(crate) quotas: BTreeMap<(String, Market), Pause>,
    pub(crate) refusals: Pause,
    pub(crate) throttles: Pause,
    /// After machines that failed: they never enrolled, ended before that, or fell silent.
    pub(crate) failed_machines: Pause,
    /// The lowest costs of work, lately.
    pub(crate) costs: Costs,
    /// How fast types are, relative to what is said of them.
    pub(crate) speeds: BTreeMap<String, f64>,
    /// Since when no spot machine can be had.
    pub(crate) spot_away: Option<UnixMillis>,
    /// Since when one can.
    pub(crate) spot_back: Option<UnixMillis>,
    /// Prices of machines that weren't seen yet.
    pub(crate) prices: BTreeMap<MachineName, MicroUsd>,
    /// Machines whose name is missing or already taken, by the cloud's id, with the time of first sight or of the last action to
    /// end them.
    pub(crate) nameless: BTreeMap<String, UnixMillis>,
    interruptions: u64,
}

/// A machine that is alive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Known {
    pub(crate) instance: String,
    pub(crate) pool: Pool,
    pub(crate) market: Market,
    /// The price of an hour when it was launched, where that is known.
    pub(crate) price: Option<MicroUsd>,
    /// The job that it was bought for.
    pub(crate) job: Option<JobId>,
    /// The machine that it replaces.
    pub(crate) replaces: Option<MachineName>,
    /// The machine has enrolled.
    pub(crate) enrolled: bool,
    /// The machine has held a unit.
    pub(crate) worked: bool,
    /// Since when the server doesn't know the machine, or knows it but hasn't heard from it since the server's own start.
    pub(crate) unheard: Option<UnixMillis>,
    /// Since when it is of no use.
    pub(crate) surplus: Option<UnixMillis>,
    /// Since when it is to give its units back.
    pub(crate) drained: Option<UnixMillis>,
    /// When the cloud was first asked to end it.
    pub(crate) ended: Option<UnixMillis>,
}

/// A machine that was ordered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ordered {
    pub(crate) at: UnixMillis,
    pub(crate) market: Market,
    /// The highest number of vCPUs of a machine among the order's pools.
    pub(crate) vcpus: u32,
    /// The lowest number of slots of a machine among the order's pools.
    pub(crate) slots: u32,
    /// The smallest memory of a slot among the order's pools, in bytes.
    pub(crate) memory: u64,
    pub(crate) price_limit: MicroUsd,
    pub(crate) job: JobId,
    /// The type of the best pool.
    pub(crate) first_type: String,
    pub(crate) replaces: Option<MachineName>,
    /// The cloud has said that it was bought, where.
    pub(crate) bought: Option<Pool>,
    /// The price of an hour of the machine when it was bought, where it is known.
    pub(crate) price: Option<MicroUsd>,
}

impl Memory {
    /// Sets a machine's hourly price at its launch. Nothing is bought while the price of any live machine is unknown. The machine
    /// may not have been seen at the cloud yet.
    pub fn set_price(&mut self, machine: &MachineName, price: MicroUsd) {
        if let Some(known) = self.machines.get_mut(machine) {
            known.price = Some(price);
        } else if let Some(ordered) = self.ordered.get_mut(machine) {
            ordered.price = Some(price);
        } else {
            self.prices.insert(machine.clone(), price);
        }
    }

    /// The price of an hour of a machine that is alive or was ordered, where it is known.
    #[must_use]
    pub fn price(&self, machine: &MachineName) -> Option<MicroUsd> {
        let known = self.machines.get(machine).and_then(|known| known.price);
        known.or_else(|| self.ordered.get(machine).and_then(|ordered| ordered.price))
    }

    /// Interruptions that were seen.
    #[must_use]
    pub const fn interruptions(&self) -> u64 {
        self.interruptions
    }

    /// Machines of a purchase weren't ordered at all: no token could be had, or the process no longer leads.
    pub fn not_ordered<'a>(&mut self, machines: impl IntoIterator<Item = &'a MachineName>) {
        for machine in machines {
            self.ordered.remove(machine);
        }
    }

    /// An action of a plan wasn't carried out: a call failed, the process no longer leads, or it only says what it would do.
    pub fn not_done(&mut self, action: &Action) {
        let (machine, drained) = match action {
            Action::Buy(purchase) => return self.not_ordered(&purchase.machines),
            Action::Drain { machine, .. } => (machine, true),
            Action::End { machine, .. } => (machine, false),
        };
        let known = machine.name.as_ref().and_then(|name| self.machines.get_mut(name));
        if let Some(known) = known.filter(|known| known.instance == machine.instance) {
            let mark = if drained { &mut known.drained } else { &mut known.ended };
            *mark = None;
        }
    }

    /// Records the outcome of an order. After [`CloudError::Away`], machines whose purchase isn't confirmed count as ordered
    /// until the cloud lists them or [`visible`](crate::settings::Times::visible) has passed.
    pub fn answered(
        &mut self,
        purchase: &Purchase,
        answer: &Result<Filled, CloudError>,
        now: UnixMillis,
        seed: u64,
        offers: &Offers,
        settings: &Settings,
    ) {
        let filled = match answer {
            Ok(filled) => filled,
            Err(CloudError::Away(_)) => {
                self.unanswered(purchase.machines.iter(), now);
                return;
            }
            Err(failure) => {
                self.not_ordered(&purchase.machines);
                self.failed(purchase, failure, now, seed, settings);
                return;
            }
        };
        let mut missing: BTreeSet<&MachineName> = purchase.machines.iter().collect();
        for bought in &filled.bought {
            missing.remove(&bought.name);
            let key = (purchase.market, bought.pool.clone());
            self.pools.entry(key).or_default().no_capacity.clear();
            let quote = offers.quotes.get(&bought.pool);
            let price = quote.and_then(|quote| match purchase.market {
                Market::Spot => quote.spot,
                Market::OnDemand => Some(quote.on_demand),
            });
            if let Some(ordered) = self.ordered.get_mut(&bought.name) {
                ordered.bought = Some(bought.pool.clone());
                ordered.price = ordered.price.or(price);
            }
        }
        if matches!(filled.failure, Some(CloudError::Away(_))) {
            self.unanswered(missing.into_iter(), now);
        } else {
            self.not_ordered(missing);
        }
        if filled.failure.is_none() && purchase.market == Market::Spot {
            self.spot_away = None;
        }
        if !filled.bought.is_empty() {
            self.refusals.clear();
            self.throttles.clear();
            let quota = (purchase.region().to_owned(), purchase.market);
            self.quotas.remove(&quota);
        }
        if let Some(failure) = &filled.failure {
            self.failed(purchase, failure, now, seed, settings);
        }
    }

    /// Restarts the wait for machines whose purchase is unconfirmed: if bought, the cloud lists them within `visible` from now.
    fn unanswered<'a>(&mut self, names: impl Iterator<Item = &'a MachineName>, now: UnixMillis) {
        for name in names {
            if let Some(ordered) = self.ordered.get_mut(name) {
                ordered.at = now;
            }
        }
    }

    fn failed(
        &mut self,
        purchase: &Purchase,
        failure: &CloudError,
        now: UnixMillis,
        seed: u64,
        settings: &Settings,
    ) {
        match failure {
            CloudError::NoCapacity { pools } => {
                let (first, max) = (settings.times.no_capacity, settings.times.no_capacity_max);
                for (index, pool) in (0..).zip(pools) {
                    let record = self.pools.entry((purchase.market, pool.clone())).or_default();
                    record.no_capacity.fail(now, first, max, seeds::derive("pool", &[seed, index]));
                }
            }
            CloudError::Quota { region, market, .. } => {
                let pause = self.quotas.entry((region.clone(), *market)).or_default();
                pause.fail(now, QUOTA.0, QUOTA.1, seed);
            }
            CloudError::Throttled | CloudError::Away(_) => {
                self.throttles.fail(now, THROTTLED.0, THROTTLED.1, seed);
            }
            CloudError::TokenReused | CloudError::Refused(_) => {
                self.refusals.fail(now, REFUSED.0, REFUSED.1, seed);
            }
        }
    }

    /// For how long nothing is to be bought at all.
    pub(crate) fn pause(&self, now: UnixMillis) -> Option<Millis> {
        let pauses = [&self.refusals, &self.throttles, &self.failed_machines];
        pauses.into_iter().filter_map(|pause| pause.left(now)).max()
    }

    /// Has the fleet been looked at often enough since the start?
    pub(crate) fn is_settled(&self, now: UnixMillis, settings: &Settings) -> bool {
        // A cloud shows a machine some seconds after its purchase.
        let apart = Millis(settings.times.interval.0.min(10_000));
        self.looks >= LOOKS && self.first_look.is_some_and(|first| now >= first + apart)
    }

    /// A machine has never enrolled, or has stopped doing anything.
    pub(crate) fn machine_failed(&mut self, now: UnixMillis, seed: u64) {
        self.failed_machines.fail(now, FAILED_MACHINES.0, FAILED_MACHINES.1, seed);
    }

    /// A machine that was launched at a time has enrolled: machines work again.
    pub(crate) fn machine_enrolled(&mut self, launched_at: UnixMillis) {
        self.failed_machines.clear_since(launched_at);
    }

    /// Takes in what the cloud has: machines that came, that were taken back, that ended.
    pub(crate) fn look(
        &mut self,
        now: UnixMillis,
        seed: u64,
        machines: &[CloudMachine],
        settings: &Settings,
    ) {
        let since_last = self.last_look.map_or(Millis(0), |last| now - last);
        self.looks = self.looks.saturating_add(1);
        self.first_look = self.first_look.or(Some(now));
        self.last_look = Some(now);
        let alive = |machine: &&CloudMachine| {
            matches!(machine.state, MachineState::Pending | MachineState::Running)
        };
        // The first machine with a name has it.
        let mut first: BTreeMap<&MachineName, &CloudMachine> = BTreeMap::new();
        for machine in machines.iter().filter(alive) {
            let Some(name) = &machine.name else { continue };
            let other = first.entry(name).or_insert(machine);
            if (machine.launched_at, &machine.instance) < (other.launched_at, &other.instance) {
                *other = machine;
            }
        }
        let gone: Vec<MachineName> =
            self.machines.keys().filter(|name| !first.contains_key(name)).cloned().collect();
        for name in gone {
            if let Some(known) = self.machines.remove(&name) {
                self.gone(&name, &known, machines, now, seed);
            }
        }
        for (name, machine) in first {
            if machine.market == Market::Spot && self.machines.contains_key(name) {
                self.experience.ran(since_last);
                let record = self.pools.entry((Market::Spot, machine.pool.clone())).or_default();
                record.ran(since_last);
            }
            self.seen(name, machine);
        }
        self.forget(now, seed, machines, settings);
    }

    /// A machine isn't alive any more.
    fn gone(
        &mut self,
        name: &MachineName,
        known: &Known,
        machines: &[CloudMachine],
        now: UnixMillis,
        seed: u64,
    ) {
        let now_is = machines.iter().find(|machine| machine.name.as_ref() == Some(name));
        let end = now_is.and_then(|machine| machine.end);
        let by_us = known.ended.is_some() || known.drained.is_some();
        if !known.enrolled && !by_us && end.is_some_and(has_failed) {
            self.machine_failed(now, seed);
        }
        let taken_back = match end {
            Some(end) => end == MachineEnd::Interrupted,
            // The cloud gives no reason: a machine that is no longer listed was interrupted, unless this fleet drained or ended
            // it.
            None => now_is.is_none() && !by_us,
        };
        if taken_back && known.market == Market::Spot {
            self.interruptions = self.interruptions.saturating_add(1);
            self.experience.interrupted();
            let record = self.pools.entry((Market::Spot, known.pool.clone())).or_default();
            record.interrupted(now);
        }
    }

    fn seen(&mut self, name: &MachineName, machine: &CloudMachine) {
        let ordered = self.ordered.remove(name);
        let ordered = ordered.as_ref();
        let told = self.prices.remove(name);
        let known = self.machines.entry(name.clone()).or_insert_with(|| Known {
            instance: machine.instance.clone(),
            pool: machine.pool.clone(),
            market: machine.market,
            price: ordered.map(|ordered| ordered.price.unwrap_or(ordered.price_limit)),
            job: ordered.map(|ordered| ordered.job),
            replaces: ordered.and_then(|ordered| ordered.replaces.clone()),
            enrolled: false,
            worked: false,
            unheard: None,
            surplus: None,
            drained: None,
            ended: None,
        });
        known.price = told.or(known.price);
    }

    /// Orders that came to nothing, and what is too old to be of use.
    fn forget(
        &mut self,
        now: UnixMillis,
        seed: u64,
        machines: &[CloudMachine],
        settings: &Settings,
    ) {
        let ended: BTreeMap<&MachineName, Option<MachineEnd>> = machines
            .iter()
            .filter(|machine| matches!(machine.state, MachineState::Ending | MachineState::Ended))
            .filter_map(|machine| Some((machine.name.as_ref()?, machine.end)))
            .collect();
        // They ended before they were ever seen alive.
        let unseen = self.ordered.iter().filter_map(|(name, ordered)| {
            let end = *ended.get(name)?;
            let is_lost = ordered.market == Market::Spot && !end.is_some_and(has_failed);
            Some((end, ordered.bought.clone().filter(|_| is_lost)))
        });
        for (end, lost) in unseen.collect::<Vec<_>>() {
            if end.is_some_and(has_failed) {
                self.machine_failed(now, seed);
            }
            if let Some(pool) = lost {
                self.pools.entry((Market::Spot, pool)).or_default().interrupted(now);
            }
        }
        self.ordered.retain(|name, ordered| {
            let patience = if ordered.bought.is_some() {
                settings.times.enrol.max(settings.times.visible)
            } else {
                settings.times.visible
            };
            !ended.contains_key(name) && now < ordered.at + patience
        });
        let instances: BTreeSet<&String> =
            machines.iter().map(|machine| &machine.instance).collect();
        self.nameless.retain(|instance, _| instances.contains(instance));
    }
}

/// Did the machine itself fail? It wasn't taken back or given back.
const fn has_failed(end: MachineEnd) -> bool {
    matches!(end, MachineEnd::Itself | MachineEnd::Failed)
}

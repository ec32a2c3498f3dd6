//! The planner at work in virtual time: it looks at cloud and server, plans, and carries its actions out.

use super::ground::{Ground, NOBODY};
use sojourn_core::{Answer, Command, Query};
use sojourn_fleet::{
    cloud::{CloudError, CloudMachine, Filled, Offers},
    planner::{self, Action, Memory, Purchase, Situation, Victim},
    settings::Settings,
};
use sojourn_protocol::{
    demand::DemandView,
    machines::{CostsView, DrainRequest, MachineName, MachineReport, Market},
    money::MicroUsd,
    quantity::to_u64,
    seeds,
    time::{Millis, UnixMillis},
};
use sojourn_sim::fleet::{Machines, Site};
use std::collections::{BTreeMap, BTreeSet};

/// A token is good for so long: a machine that starts later can't enrol.
const TOKEN_LIFETIME: Millis = Millis::from_secs(1200);

/// Until what has failed is tried again: a look at the cloud, or the end of a machine.
const AGAIN: Millis = Millis::from_secs(5);

/// What goes wrong around the planner, beside what its cloud does.
#[derive(Debug, Clone, Default)]
pub struct Trouble {
    /// The share of purchases after which the process dies before it has noted them.
    pub crashes: f64,
    /// From a crash until the next process begins.
    pub restart: Millis,
    /// When the server can't be reached.
    pub away: Vec<(UnixMillis, UnixMillis)>,
}

/// The most that there was of something at a time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Peaks {
    /// Machines that hadn't ended.
    pub machines: u64,
    /// Their virtual processors.
    pub vcpus: u64,
    /// What an hour of them cost.
    pub hourly: MicroUsd,
}

/// The planner, and the process around it.
#[derive(Debug)]
pub struct Buyer {
    /// Its machines.
    pub ground: Ground,
    settings: Settings,
    trouble: Trouble,
    seed: u64,
    memory: Memory,
    /// Spot prices at launch, as the cloud has said.
    prices: BTreeMap<MachineName, MicroUsd>,
    /// Machines that are to be ended, by the cloud's ids.
    ends: BTreeSet<String>,
    /// What the server said last.
    demand: Option<DemandView>,
    plans: u64,
    plan_at: UnixMillis,
    is_done: bool,
    /// The most that there was at a time.
    pub peaks: Peaks,
    /// What the server says that all machines have cost, once they have all ended.
    pub ledger: Option<CostsView>,
    /// How often its process died.
    pub crashes: u64,
}

/// What a plan is made from.
struct Seen {
    offers: Offers,
    machines: Vec<CloudMachine>,
    demand: DemandView,
    /// The server has said it now. Else machines are ended by what it said last, and none is bought.
    is_fresh: bool,
}

impl Buyer {
    /// A planner that has bought nothing yet.
    #[must_use]
    pub fn new(ground: Ground, settings: Settings, trouble: Trouble, seed: u64) -> Self {
        Self {
            ground,
            settings,
            trouble,
            seed,
            memory: Memory::default(),
            prices: BTreeMap::new(),
            ends: BTreeSet::new(),
            demand: None,
            plans: 0,
            plan_at: UnixMillis(0),
            is_done: false,
            peaks: Peaks::default(),
            ledger: None,
            crashes: 0,
        }
    }

    /// One turn of the process.
    fn turn(&mut self, now: UnixMillis, site: &mut dyn Site) -> Result<(), String> {
        self.plan_at = now + self.settings.times.interval;
        self.end(now);
        let Some(seen) = self.look(now, site)? else {
            self.plan_at = self.plan_at.min(now + AGAIN);
            return Ok(());
        };
        if site.all_ended() && self.ground.cloud.alive() == 0 {
            let costs = site.ask(Command::Query { to: NOBODY, query: Query::Costs })?;
            if let Ok(Answer::Costs(costs)) = costs {
                (self.ledger, self.is_done) = (Some(*costs), true);
            }
            return Ok(());
        }
        self.plans += 1;
        let seed = seeds::derive("sim-plan", &[self.seed, self.plans]);
        let plan = planner::plan(&Situation {
            now,
            seed,
            machines: &seen.machines,
            offers: &seen.offers,
            demand: &seen.demand,
            settings: &self.settings,
            memory: &self.memory,
        });
        self.memory = plan.memory;
        for action in plan.actions {
            match action {
                Action::Buy(purchase) if !seen.is_fresh => {
                    self.memory.not_ordered(&purchase.machines);
                }
                Action::Buy(purchase) => {
                    if self.buy(now, seed, &purchase, &seen.offers, site)? == Alive::No {
                        return Ok(());
                    }
                }
                Action::Drain { machine, within, .. } => {
                    let machines = machine.name.into_iter().collect();
                    let request = DrainRequest { machines, within };
                    // What comes of it is seen at the next turn.
                    let _drained = site.ask(Command::DrainMachines { to: NOBODY, request })?;
                }
                Action::End { machine: Victim { instance, .. }, .. } => {
                    self.ends.insert(instance);
                }
            }
        }
        self.end(now);
        Ok(())
    }

    /// Ends what is to end. What can't be ended now is tried again soon: it costs money.
    fn end(&mut self, now: UnixMillis) {
        let all: Vec<String> = self.ends.iter().cloned().collect();
        if all.is_empty() {
            return;
        }
        match self.ground.cloud.end(now, &all) {
            Ok(()) => self.ends.clear(),
            Err(_) => self.plan_at = self.plan_at.min(now + AGAIN),
        }
    }

    /// What cloud and server say; nothing where one of them doesn't answer. The server is told of the machines.
    fn look(&mut self, now: UnixMillis, site: &mut dyn Site) -> Result<Option<Seen>, String> {
        let cloud = &mut self.ground.cloud;
        let Ok(offers) = cloud.offers(now) else { return Ok(None) };
        let Ok(machines) = cloud.machines(now) else { return Ok(None) };
        let mut reports = Vec::new();
        for machine in &machines {
            let Some(name) = &machine.name else { continue };
            let Some(price) = self.price(name, machine, &offers) else { continue };
            self.memory.set_price(name, price);
            reports.extend(report(name, machine, price, &offers));
        }
        let told = site.ask(Command::ReportMachines { to: NOBODY, machines: reports })?;
        let demand = site.ask(Command::Query { to: NOBODY, query: Query::Demand })?;
        let is_fresh = matches!((&told, &demand), (Ok(Answer::Machines(_)), Ok(Answer::Demand(_))));
        if let Ok(Answer::Demand(demand)) = demand {
            self.demand = Some(*demand);
        }
        let Some(demand) = self.demand.clone() else { return Ok(None) };
        Ok(Some(Seen { offers, machines, demand, is_fresh }))
    }

    /// The price of an hour when a machine was launched, where that is known.
    fn price(
        &mut self,
        name: &MachineName,
        machine: &CloudMachine,
        offers: &Offers,
    ) -> Option<MicroUsd> {
        match machine.market {
            Market::OnDemand => offers.quotes.get(&machine.pool).map(|quote| quote.on_demand),
            Market::Spot => match self.prices.get(name) {
                Some(price) => Some(*price),
                None => {
                    let at = machine.launched_at;
                    let price = self.ground.cloud.price_at(&machine.pool, at).ok().flatten()?;
                    self.prices.insert(name.clone(), price);
                    Some(price)
                }
            },
        }
    }

    fn buy(
        &mut self,
        now: UnixMillis,
        seed: u64,
        purchase: &Purchase,
        offers: &Offers,
        site: &mut dyn Site,
    ) -> Result<Alive, String> {
        let mut tokens = Vec::new();
        for machine in &purchase.machines {
            match self.ground.token(machine, TOKEN_LIFETIME, site)? {
                Some(token) => tokens.push(token),
                None => break,
            }
        }
        let without = purchase.machines.iter().skip(tokens.len());
        self.memory.not_ordered(without);
        if tokens.is_empty() {
            return Ok(Alive::Yes);
        }
        let order = purchase.order(tokens);
        let answer: Result<Filled, CloudError> = self.ground.cloud.buy(now, &order);
        self.note_peaks();
        let mut chance = seeds::stream("sim-crash", &[seed, to_u64(purchase.machines.len())]);
        if seeds::unit_f64(&mut chance) < self.trouble.crashes {
            (self.memory, self.prices, self.demand) = (Memory::default(), BTreeMap::new(), None);
            self.crashes += 1;
            self.plan_at = now + self.trouble.restart;
            return Ok(Alive::No);
        }
        self.memory.answered(purchase, &answer, now, seed, offers, &self.settings);
        Ok(Alive::Yes)
    }

    fn note_peaks(&mut self) {
        let cloud = &self.ground.cloud;
        self.peaks.machines = self.peaks.machines.max(to_u64(cloud.alive()));
        self.peaks.vcpus = self.peaks.vcpus.max(cloud.vcpus());
        self.peaks.hourly = self.peaks.hourly.max(cloud.rate());
    }
}

/// Does the process go on?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Alive {
    Yes,
    No,
}

fn report(
    name: &MachineName,
    machine: &CloudMachine,
    price: MicroUsd,
    offers: &Offers,
) -> Option<MachineReport> {
    Some(MachineReport {
        name: name.clone(),
        instance: machine.instance.clone(),
        instance_type: machine.pool.instance_type.clone(),
        zone: machine.pool.zone.clone(),
        market: machine.market,
        price,
        on_demand_price: offers.quotes.get(&machine.pool)?.on_demand,
        launched_at: machine.launched_at,
        ended_at: machine.ended_at,
        end: machine.end,
    })
}

impl Machines for Buyer {
    fn next_at(&self) -> Option<UnixMillis> {
        self.ground.next_at().into_iter().chain([self.plan_at]).min()
    }

    fn act(&mut self, now: UnixMillis, site: &mut dyn Site) -> Result<(), String> {
        self.ground.pump(now, site)?;
        if now >= self.plan_at {
            self.turn(now, site)?;
            self.ground.pump(now, site)?;
        }
        Ok(())
    }

    fn exited(&mut self, now: UnixMillis, machine: &MachineName) {
        self.ground.exited(now, machine);
    }

    fn is_done(&self) -> bool {
        self.is_done
    }

    fn server_is_away(&self, now: UnixMillis) -> bool {
        self.trouble.away.iter().any(|(from, to)| (*from..*to).contains(&now))
    }
}

//! Random worlds: whatever happens, no limit is passed, and the same situation gives the same plan.
//!
//! The world keeps the cloud's bill: what each machine costs from its launch to its end. Orders are filled in part, their
//! answers are lost, machines are taken back, never start, don't obey a drain, and prices move between plan and purchase.

use super::*;
use proptest::prelude::*;
use sojourn_protocol::seeds;
use std::collections::{BTreeMap, BTreeSet};

/// A machine's price and life.
#[derive(Debug, Clone, Copy)]
struct Life {
    price: MicroUsd,
    from: UnixMillis,
    to: Option<UnixMillis>,
    worked: bool,
}

impl Life {
    fn cost(&self, now: UnixMillis) -> MicroUsd {
        self.price.for_time(self.to.unwrap_or(now) - self.from)
    }
}

struct Chaos {
    world: World,
    lives: BTreeMap<MachineName, Life>,
    seed: u64,
    drawn: u64,
    /// Bought machines that the cloud doesn't show yet.
    hidden: Vec<(UnixMillis, CloudMachine)>,
    drains: BTreeMap<MachineName, UnixMillis>,
    work: u32,
}

impl Chaos {
    fn new(seed: u64) -> Self {
        let mut world = World::new();
        world.settings.times.visible = Millis::from_secs(90);
        world.memory = Memory::default();
        let mut chaos = Self {
            world,
            lives: BTreeMap::new(),
            seed,
            drawn: 0,
            hidden: Vec::new(),
            drains: BTreeMap::new(),
            work: 0,
        };
        for (kind, vcpus) in [("a.large", 2), ("b.xlarge", 4), ("c.4xlarge", 16)] {
            for zone in ["eu-1a", "eu-1b", "us-2a"] {
                chaos.world.sell(kind, zone, vcpus, Some("0.03 usd"), "0.12 usd");
            }
        }
        chaos.prices();
        let limits = Limits {
            machines: chaos.draw(12),
            vcpus: chaos.maybe(60),
            hourly: chaos.maybe(600_000).map(|limit| MicroUsd(limit.into())),
            total: chaos.maybe(1_500_000).map(|limit| MicroUsd(limit.into())),
            job: chaos.maybe(1_500_000).map(|limit| MicroUsd(limit.into())),
        };
        chaos.world.settings.limits = limits;
        chaos.world.settings.markets.floor = chaos.draw(3);
        chaos.world.settings.markets.fallback = chaos.draw(2) == 1;
        chaos.work = 400 + chaos.draw(4000);
        chaos.world.job(1, 16);
        if let Some(budget) = chaos.maybe(900_000) {
            chaos.world.demand.jobs[0].budget = Some(MicroUsd(budget.into()));
        }
        if chaos.draw(3) == 0 {
            let deadline = chaos.world.now + Millis::from_secs(u64::from(chaos.draw(20_000)));
            chaos.world.demand.jobs[0].deadline = Some(deadline);
        }
        chaos
    }

    /// A number below `below`.
    fn draw(&mut self, below: u32) -> u32 {
        self.drawn += 1;
        let drawn = seeds::derive("chaos", &[self.seed, self.drawn]);
        u32::try_from(drawn % u64::from(below.max(1))).unwrap()
    }

    fn maybe(&mut self, below: u32) -> Option<u32> {
        (self.draw(3) > 0).then(|| self.draw(below))
    }

    fn prices(&mut self) {
        let pools: Vec<Pool> = self.world.offers.quotes.keys().cloned().collect();
        for pool in pools {
            let vcpus = self.world.offers.types[&pool.instance_type].vcpus;
            let spot = (self.draw(15) > 0)
                .then(|| MicroUsd(u64::from(vcpus * (3000 + self.draw(20_000)))));
            let quote = Quote { spot, on_demand: MicroUsd(u64::from(vcpus) * 25_000) };
            self.world.offers.quotes.insert(pool, quote);
        }
    }

    /// The cloud fills an order, as far as it does.
    fn fill(&mut self, purchase: &Purchase) {
        let mut bought = Vec::new();
        let mut empty = Vec::new();
        for name in &purchase.machines {
            let choice = self.draw(u32::try_from(purchase.pools.len()).unwrap());
            let pool = purchase.pools[usize::try_from(choice).unwrap()].clone();
            let quote = self.world.offers.quotes[&pool];
            let price = match purchase.market {
                Market::Spot => quote.spot.filter(|price| *price <= purchase.price_limit),
                Market::OnDemand => Some(quote.on_demand),
            };
            let Some(price) = price.filter(|_| self.draw(4) > 0) else {
                empty.push(pool);
                continue;
            };
            let from = self.world.now;
            let life = Life { price, from, to: None, worked: false };
            assert!(self.lives.insert(name.clone(), life).is_none(), "{name} was bought twice");
            let machine = CloudMachine {
                name: Some(name.clone()),
                instance: format!("i-{name}"),
                pool: pool.clone(),
                market: purchase.market,
                state: MachineState::Pending,
                launched_at: from,
                ended_at: None,
                end: None,
            };
            let seen = from + Millis::from_secs(u64::from(self.draw(60)));
            self.hidden.push((seen, machine));
            bought.push(Bought { name: name.clone(), instance: format!("i-{name}"), pool });
        }
        let answer = if self.draw(8) == 0 {
            Err(CloudError::Away("the answer was lost".into()))
        } else {
            let failure = (!empty.is_empty()).then_some(CloudError::NoCapacity { pools: empty });
            Ok(Filled { bought, failure })
        };
        self.world.answer(purchase, &answer);
        if let Ok(filled) = answer {
            for bought in filled.bought {
                let price = self.lives[&bought.name].price;
                self.world.memory.set_price(&bought.name, price);
            }
        }
    }

    fn end(&mut self, name: &MachineName, end: MachineEnd) {
        let now = self.world.now;
        let life = self.lives.get_mut(name).unwrap();
        life.to = life.to.or(Some(now));
        self.drains.remove(name);
        self.world.ends(name.as_str(), end);
    }

    /// Time passes: machines come, enrol, work, are taken back, and stop.
    fn pass(&mut self) {
        let now = self.world.now;
        let (come, hidden) = self.hidden.drain(..).partition(|(seen, _)| *seen <= now);
        self.hidden = hidden;
        let come: Vec<(UnixMillis, CloudMachine)> = come;
        self.world.machines.extend(come.into_iter().map(|(_, machine)| machine));
        let alive: Vec<CloudMachine> = self
            .world
            .machines
            .iter()
            .filter(|machine| machine.state != MachineState::Ended)
            .cloned()
            .collect();
        for machine in alive {
            let name = machine.name.clone().unwrap();
            if machine.market == Market::Spot && self.draw(60) == 0 {
                self.end(&name, MachineEnd::Interrupted);
            } else if machine.state == MachineState::Pending && self.draw(4) > 0 {
                let mut machines = self.world.machines.iter_mut();
                let starts = machines.find(|other| other.name.as_ref() == Some(&name)).unwrap();
                starts.state = MachineState::Running;
                if self.draw(10) > 0 {
                    self.world.enrol(&name, 0);
                }
            } else if self.drains.get(&name).is_some_and(|until| *until <= now)
                && let Some(load) =
                    self.world.demand.machines.iter_mut().find(|load| load.machine == name)
            {
                load.stopped = true;
                load.held = 0;
            }
        }
        self.share_out();
        let spent = self.lives.values().map(|life| life.cost(now)).sum();
        self.world.demand.spent = spent;
        let worked = self.lives.values().filter(|life| life.worked);
        self.world.demand.jobs[0].spent = worked.map(|life| life.cost(now)).sum();
    }

    /// The server gives units to machines.
    fn share_out(&mut self) {
        let left = self.work.min(16);
        let mut running = 0;
        for load in &mut self.world.demand.machines {
            let works = running < left && !load.draining && !load.stopped;
            load.held = u32::from(works);
            load.idle_since = if works { None } else { load.idle_since.or(Some(self.world.now)) };
            running += u32::from(works);
            if works {
                self.lives.get_mut(&load.machine).unwrap().worked = true;
            }
        }
        self.work -= running.min(self.work);
        let workload = self.world.workload();
        workload.trials = left;
        workload.parallel = left;
        workload.running = running;
        workload.runnable = left - running;
        workload.longest = u64::from(self.work / 16) * 30_000;
        workload.rows = u64::from(self.work) * 30_000;
    }

    fn carry_out(&mut self, plan: &Plan) {
        for action in &plan.actions {
            match action {
                Action::Buy(purchase) => self.fill(purchase),
                Action::Drain { machine, within, .. } => {
                    let name = machine.name.clone().unwrap();
                    self.world.load(name.as_str()).draining = true;
                    // Some never stop.
                    let time = u64::from(self.draw(240_000)).min(within.0 * 2);
                    self.drains.insert(name, self.world.now + Millis(time));
                }
                Action::End { machine, .. } => {
                    let name = machine.name.clone().unwrap();
                    self.end(&name, MachineEnd::Released);
                }
            }
        }
    }

    /// A round later: what has come about, and the plan.
    fn step(&mut self) -> Plan {
        self.world.now = self.world.now + ROUND;
        self.pass();
        self.world.demand.at = self.world.now;
        for load in &mut self.world.demand.machines {
            load.seen_at = Some(self.world.now);
        }
        let plan = self.world.plan();
        self.world.memory = plan.memory.clone();
        plan
    }

    /// No limit is passed, whatever is known of it.
    fn check(&self, plan: &Plan, round: u32) {
        let (now, limits) = (self.world.now, &self.world.settings.limits);
        let alive: Vec<(&MachineName, &Life)> =
            self.lives.iter().filter(|(_, life)| life.to.is_none()).collect();
        let count = u32::try_from(alive.len()).unwrap();
        assert!(count <= limits.machines, "{count} machines of {}", limits.machines);
        let hidden = self.hidden.iter().map(|(_, machine)| machine);
        let of: BTreeMap<&MachineName, &str> = self
            .world
            .machines
            .iter()
            .chain(hidden)
            .map(|m| (m.name.as_ref().unwrap(), m.pool.instance_type.as_str()))
            .collect();
        let vcpus: u32 =
            alive.iter().map(|(name, _)| self.world.offers.types[of[name]].vcpus).sum();
        assert!(limits.vcpus.is_none_or(|limit| vcpus <= limit), "{vcpus} of {:?}", limits.vcpus);
        let hourly: MicroUsd = alive.iter().map(|(_, life)| life.price).sum();
        assert!(
            limits.hourly.is_none_or(|limit| hourly <= limit),
            "{hourly} of {:?}",
            limits.hourly
        );
        let total: MicroUsd = self.lives.values().map(|life| life.cost(now)).sum();
        assert!(
            limits.total.is_none_or(|limit| total <= limit),
            "{total} of {:?} in round {round}",
            limits.total
        );
        let job = &self.world.demand.jobs[0];
        let worked = self.lives.values().filter(|life| life.worked);
        let spent: MicroUsd = worked.map(|life| life.cost(now)).sum();
        let limit = limits.of_job(job.budget);
        assert!(
            limit.is_none_or(|limit| spent <= limit),
            "{spent} of {limit:?} for the job in round {round}"
        );
        let names: BTreeSet<&str> =
            self.world.machines.iter().map(|machine| machine.instance.as_str()).collect();
        for action in &plan.actions {
            if let Action::Drain { machine, .. } | Action::End { machine, .. } = action {
                assert!(
                    names.contains(machine.instance.as_str()),
                    "{machine:?} isn't of the fleet"
                );
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn no_limit_is_passed_and_nothing_stays_alive(seed: u64) {
        let mut chaos = Chaos::new(seed);
        for round in 0..700 {
            if round == 250 {
                // Another process takes over, and knows nothing but what it sees.
                chaos.world.memory = Memory::default();
                for (name, life) in &chaos.lives {
                    chaos.world.memory.set_price(name, life.price);
                }
            }
            if round == 600 {
                chaos.work = 0;
            }
            chaos.prices();
            let plan = chaos.step();
            chaos.carry_out(&plan);
            chaos.check(&plan, round);
        }
        let alive: Vec<_> = chaos.lives.iter().filter(|(_, life)| life.to.is_none()).collect();
        prop_assert!(alive.is_empty(), "{alive:?}");
    }

    #[test]
    fn the_same_situation_gives_the_same_plan(seed: u64, rounds in 1..60) {
        let mut chaos = Chaos::new(seed);
        for _ in 0..rounds {
            let plan = chaos.step();
            chaos.carry_out(&plan);
        }
        prop_assert_eq!(chaos.world.plan(), chaos.world.plan());
    }

    #[test]
    fn more_work_never_buys_fewer_slots_and_a_lower_limit_never_more(
        trials in 1_u32..60, more in 0_u32..40, limit in 0_u32..60, lower in 0_u32..60,
    ) {
        let bought = |trials: u32, limit: u32| {
            let mut world = World::new();
            world.settings.limits.machines = limit;
            world.job(1, trials);
            purchases(&world.round()).iter().map(|purchase| purchase.machines.len()).sum::<usize>()
        };
        prop_assert!(bought(trials, limit) <= bought(trials + more, limit));
        prop_assert!(bought(trials, limit.saturating_sub(lower)) <= bought(trials, limit));
    }
}

//! Plans in small worlds that the tests write by hand.

mod deadlines;
mod markets;
mod money;
mod random;
mod sweep;
mod work;

use super::{Action, EndReason, Memory, Plan, Purchase, PurchaseReason, Situation, plan};
use crate::{
    cloud::{
        Bought, CloudError, CloudMachine, Filled, InstanceType, MachineState, Offers, Pool, Quote,
    },
    limits::Limits,
    settings::Settings,
};
use sojourn_protocol::{
    demand::{DemandView, JobDemand, MachineLoad, MeasuredSpeed, WorkloadDemand},
    ids::{HostId, JobId},
    machines::{MachineEnd, MachineName, Market},
    money::MicroUsd,
    time::{Millis, UnixMillis},
};

/// Between two plans.
const ROUND: Millis = Millis::from_secs(30);

/// A fleet with its cloud and server, as the planner sees them.
#[derive(Debug, Clone)]
struct World {
    now: UnixMillis,
    settings: Settings,
    offers: Offers,
    demand: DemandView,
    is_old: bool,
    machines: Vec<CloudMachine>,
    memory: Memory,
}

fn pool(kind: &str, zone: &str) -> Pool {
    let region = zone.trim_end_matches(|letter: char| letter.is_ascii_lowercase() && letter != '-');
    Pool { region: region.into(), zone: zone.into(), instance_type: kind.into() }
}

fn usd(text: &str) -> MicroUsd {
    text.parse().unwrap()
}

impl World {
    /// One type of 4 processors at $0.10 on demand and $0.03 as spot, in one zone; no work; two looks ago it started.
    fn new() -> Self {
        let limits = Limits { machines: 100, vcpus: None, hourly: None, total: None, job: None };
        let mut world = Self {
            now: UnixMillis(1_000_000_000),
            settings: Settings::new(limits),
            offers: Offers::default(),
            demand: DemandView::default(),
            is_old: false,
            machines: Vec::new(),
            memory: Memory::default(),
        };
        world.sell("c.xlarge", "eu-1a", 4, Some("0.03 usd"), "0.10 usd");
        world.settle();
        world
    }

    fn settle(&mut self) {
        for _ in 0..2 {
            assert!(self.round().actions.is_empty());
        }
    }

    fn sell(&mut self, kind: &str, zone: &str, vcpus: u32, spot: Option<&str>, on_demand: &str) {
        let memory = u64::from(vcpus) << 31;
        let machine = InstanceType { name: kind.into(), vcpus, memory, gpus: 0, gpu_memory: 0 };
        self.offers.types.insert(kind.into(), machine);
        let quote = Quote { spot: spot.map(usd), on_demand: usd(on_demand) };
        self.offers.quotes.insert(pool(kind, zone), quote);
    }

    /// A job with trials of an hour each, at 40 GFLOP/s.
    fn job(&mut self, id: u64, trials: u32) -> &mut JobDemand {
        let workload = WorkloadDemand {
            model: "mlp".into(),
            memory: 1 << 30,
            trials,
            parallel: trials,
            runnable: trials,
            running: 0,
            soon: 0,
            rows: u64::from(trials) * 3_600_000,
            longest: 3_600_000,
            nanos_per_row: 40_000_000,
            measured: Vec::new(),
        };
        self.demand.jobs.push(JobDemand {
            job: JobId(id),
            name: format!("job-{id}"),
            workloads: vec![workload],
            ..JobDemand::default()
        });
        self.demand.jobs.last_mut().unwrap()
    }

    fn workload(&mut self) -> &mut WorkloadDemand {
        &mut self.demand.jobs[0].workloads[0]
    }

    /// The next plan. Its memory is kept.
    fn round(&mut self) -> Plan {
        self.now = self.now + ROUND;
        if !self.is_old {
            self.demand.at = self.now;
            for load in &mut self.demand.machines {
                load.seen_at = load.seen_at.map(|_| self.now);
            }
        }
        let plan = self.plan();
        self.memory = plan.memory.clone();
        plan
    }

    fn plan(&self) -> Plan {
        plan(&Situation {
            now: self.now,
            seed: self.now.0,
            machines: &self.machines,
            offers: &self.offers,
            demand: &self.demand,
            is_old: self.is_old,
            settings: &self.settings,
            memory: &self.memory,
        })
    }

    fn rounds(&mut self, time: Millis) -> Plan {
        let until = self.now + time;
        loop {
            let plan = self.round();
            if self.now >= until || !plan.actions.is_empty() {
                return plan;
            }
        }
    }

    /// Buys, each machine in the first pool.
    fn buy(&mut self, purchase: &Purchase) {
        let pool = purchase.pools[0].clone();
        let bought = purchase.machines.iter().map(|name| Bought {
            name: name.clone(),
            instance: format!("i-{name}"),
            pool: pool.clone(),
        });
        let filled = Filled { bought: bought.collect(), failure: None };
        for bought in &filled.bought {
            self.launch(&bought.name, bought.pool.clone(), purchase.market);
        }
        self.answer(purchase, &Ok(filled));
    }

    fn answer(&mut self, purchase: &Purchase, answer: &Result<Filled, CloudError>) {
        let (now, offers, settings) = (self.now, &self.offers, &self.settings);
        self.memory.answered(purchase, answer, now, now.0, offers, settings);
    }

    fn launch(&mut self, name: &MachineName, pool: Pool, market: Market) {
        self.machines.push(CloudMachine {
            name: Some(name.clone()),
            instance: format!("i-{name}"),
            pool,
            market,
            state: MachineState::Running,
            launched_at: self.now,
            ended_at: None,
            end: None,
        });
    }

    /// A machine is there, has enrolled, and holds so many units.
    fn works(&mut self, name: &str, kind: &str, market: Market, held: u32) {
        let name: MachineName = name.parse().unwrap();
        self.launch(&name, pool(kind, "eu-1a"), market);
        let quote = self.offers.quotes[&pool(kind, "eu-1a")];
        let price = if market == Market::Spot { quote.spot } else { Some(quote.on_demand) };
        self.memory.set_price(&name, price.unwrap());
        self.enrol(&name, held);
    }

    fn enrol(&mut self, name: &MachineName, held: u32) {
        self.demand.machines.push(MachineLoad {
            machine: name.clone(),
            host: HostId(7),
            seen_at: Some(self.now),
            slots: 1,
            held,
            idle_since: (held == 0).then_some(self.now),
            draining: false,
            stopped: false,
        });
    }

    fn load(&mut self, name: &str) -> &mut MachineLoad {
        let mut loads = self.demand.machines.iter_mut();
        loads.find(|load| load.machine.as_str() == name).unwrap()
    }

    fn ends(&mut self, name: &str, end: MachineEnd) {
        self.demand.machines.retain(|load| load.machine.as_str() != name);
        let named = |machine: &&mut CloudMachine| {
            machine.name.as_ref().is_some_and(|other| other.as_str() == name)
        };
        let now = self.now;
        let machine = self.machines.iter_mut().find(named).unwrap();
        machine.state = MachineState::Ended;
        machine.ended_at = Some(now);
        machine.end = Some(end);
    }
}

/// The purchases of a plan that does nothing else.
fn purchases(plan: &Plan) -> Vec<&Purchase> {
    let buys = plan.actions.iter().map(|action| match action {
        Action::Buy(purchase) => purchase,
        other => panic!("{other:?}"),
    });
    buys.collect()
}

/// The ends of a plan that does nothing else: each machine's name, how it ends, and why.
fn ends(plan: &Plan) -> Vec<(&str, &'static str, EndReason)> {
    let ends = plan.actions.iter().map(|action| match action {
        Action::Drain { machine, reason, .. } => {
            (machine.name.as_ref().map_or("", MachineName::as_str), "drain", reason.clone())
        }
        Action::End { machine, reason } => {
            (machine.name.as_ref().map_or("", MachineName::as_str), "end", reason.clone())
        }
        Action::Buy(purchase) => panic!("{purchase:?}"),
    });
    ends.collect()
}

//! Rounds against a server in memory and a small cloud that is written by hand: crashes, two leaders, lost answers.

use super::*;
use async_trait::async_trait;
use sojourn_fleet::{
    cloud::{Bought, Filled, InstanceType, MachineState, Order, Pool, Quote},
    limits::Limits,
    planner::{Action, Outlook},
};
use sojourn_protocol::{
    demand::{JobDemand, MachineLoad, WorkloadDemand},
    error::{ApiError, ErrorKind},
    ids::{HostId, JobId},
    machines::{
        CostsView, DrainRequest, LeaderAnswer, LeaderRequest, MachineEnd, MachineName,
        MachineReport, MachineView, Market,
    },
    money::MicroUsd,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, MutexGuard},
};

/// The behaviour of a cloud at the next order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fill {
    /// The cloud fills the order.
    All,
    /// The cloud fills the order, and its answer is lost.
    Lost,
    /// Nothing reaches it.
    Never,
    /// The cloud wants fewer requests.
    Throttle,
}

/// Server, cloud and clock of a test.
#[derive(Debug, Clone)]
struct State {
    now: UnixMillis,
    seed: u64,
    leader: Option<(String, UnixMillis)>,
    work: u32,
    reports: BTreeMap<MachineName, MachineReport>,
    /// How often the server was told of machines.
    told: u32,
    drained: BTreeSet<MachineName>,
    tokens: Vec<MachineName>,
    machines: Vec<CloudMachine>,
    bought: u32,
    orders: u32,
    fill: Fill,
    enrolled: BTreeSet<MachineName>,
    /// The next calls of this name fail.
    server_fails: Option<&'static str>,
    cloud_fails: bool,
    /// Time that a token takes.
    token_time: Millis,
}

#[derive(Debug, Clone)]
struct Shared(Arc<Mutex<State>>);

impl Shared {
    fn new(work: u32) -> Self {
        Self(Arc::new(Mutex::new(State {
            now: UnixMillis(1_000_000),
            seed: 0,
            leader: None,
            work,
            reports: BTreeMap::new(),
            told: 0,
            drained: BTreeSet::new(),
            tokens: Vec::new(),
            machines: Vec::new(),
            bought: 0,
            orders: 0,
            fill: Fill::All,
            enrolled: BTreeSet::new(),
            server_fails: None,
            cloud_fails: false,
            token_time: Millis(0),
        })))
    }

    /// To change it. Held for one statement only: calls take it too.
    fn edit(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    /// As it is now.
    fn get(&self) -> State {
        self.edit().clone()
    }

    fn pass(&self, time: Millis) {
        let mut state = self.edit();
        state.now = state.now + time;
    }

    /// A process with a memory of its own.
    fn driver(&self, holder: &str, dry_run: bool) -> Driver<Shared, Shared, Shared> {
        let limits = Limits { machines: 4, vcpus: None, hourly: None, total: None, job: None };
        let options = Options {
            fleet: "team".into(),
            holder: holder.into(),
            settings: Settings::new(limits),
            prices: Millis::from_secs(60),
            dry_run,
        };
        let metrics = Arc::new(Metrics::default());
        Driver::new(self.clone(), self.clone(), options, self.clone(), metrics)
    }

    /// Some rounds, half a minute apart.
    async fn rounds(&self, driver: &mut Driver<Shared, Shared, Shared>, count: u32) -> Round {
        let mut last = Round::Failed;
        for _ in 0..count {
            self.pass(Millis::from_secs(30));
            last = driver.round().await;
        }
        last
    }

    fn alive(&self) -> usize {
        let state = self.edit();
        state.machines.iter().filter(|machine| machine.ended_at.is_none()).count()
    }

    /// The cloud's bill up to now, to the millionth of a dollar.
    fn bill(&self) -> MicroUsd {
        let state = self.edit();
        let costs = state.machines.iter().map(|machine| {
            let time = machine.ended_at.unwrap_or(state.now) - machine.launched_at;
            price_at(machine.launched_at).for_time(time)
        });
        costs.sum()
    }

    /// The costs by the server's ledger up to now, to the millionth of a dollar.
    fn ledger(&self) -> MicroUsd {
        let state = self.edit();
        state.reports.values().map(|report| report.cost(state.now)).sum()
    }
}

/// The price of a spot machine moves.
fn price_at(at: UnixMillis) -> MicroUsd {
    MicroUsd(30_000 + at.0 / 1000 % 97)
}

fn pool() -> Pool {
    Pool { region: "eu-1".into(), zone: "eu-1a".into(), instance_type: "c.xlarge".into() }
}

fn refused(what: &str) -> CallError {
    CallError::Refused {
        server: "http://server".into(),
        error: ApiError::new(ErrorKind::Unavailable, what),
        retry_after: None,
    }
}

impl State {
    fn fails(&self, call: &'static str) -> Result<(), CallError> {
        if self.server_fails == Some(call) { Err(refused(call)) } else { Ok(()) }
    }
}

impl World for Shared {
    fn now(&self) -> UnixMillis {
        self.edit().now
    }

    fn seed(&self) -> u64 {
        let mut state = self.edit();
        state.seed += 1;
        state.seed
    }
}

impl Server for Shared {
    async fn lead(&self, request: &LeaderRequest) -> Result<LeaderAnswer, CallError> {
        let mut state = self.edit();
        state.fails("lead")?;
        let now = state.now;
        let other = state
            .leader
            .clone()
            .filter(|(holder, until)| *holder != request.holder && now < *until);
        if let Some((holder, until)) = other {
            return Ok(LeaderAnswer { holder: Some(holder), leads: false, term: until - now });
        }
        state.leader = Some((request.holder.clone(), now + request.term));
        let holder = Some(request.holder.clone());
        Ok(LeaderAnswer { holder, leads: request.term.0 > 0, term: request.term })
    }

    async fn demand(&self) -> Result<DemandView, CallError> {
        let state = self.edit();
        state.fails("demand")?;
        let running = state.enrolled.len().min(usize::try_from(state.work).unwrap());
        let running = u32::try_from(running).unwrap();
        let workload = WorkloadDemand {
            memory: 1,
            trials: state.work,
            parallel: state.work,
            runnable: state.work - running,
            running,
            rows: u64::from(state.work) * 3_600_000,
            longest: 3_600_000,
            nanos_per_row: 40_000_000,
            ..WorkloadDemand::default()
        };
        let loads = state.enrolled.iter().zip(0_u32..).map(|(machine, index)| MachineLoad {
            machine: machine.clone(),
            host: HostId(1),
            seen_at: Some(state.now),
            slots: 1,
            held: u32::from(index < running),
            idle_since: (index >= running).then_some(state.now),
            draining: state.drained.contains(machine),
            stopped: state.drained.contains(machine),
        });
        let machines = loads.collect();
        let spent = state.reports.values().map(|report| report.cost(state.now)).sum();
        let job = JobDemand { job: JobId(1), workloads: vec![workload], ..JobDemand::default() };
        let jobs = if state.work > 0 { vec![job] } else { Vec::new() };
        Ok(DemandView { at: state.now, spent, jobs, machines, other_slots: 0 })
    }

    async fn report(&self, request: &MachinesRequest) -> Result<(), CallError> {
        let mut state = self.edit();
        state.fails("report")?;
        state.told += 1;
        for report in &request.machines {
            state.reports.insert(report.name.clone(), report.clone());
        }
        Ok(())
    }

    async fn drain(&self, request: &DrainRequest) -> Result<(), CallError> {
        let mut state = self.edit();
        state.fails("drain")?;
        state.drained.extend(request.machines.iter().cloned());
        Ok(())
    }

    async fn costs(&self) -> Result<CostsView, CallError> {
        let state = self.edit();
        let view = |report: &MachineReport| MachineView {
            machine: report.clone(),
            host: None,
            run_time: report.run_time(state.now),
            cost: report.cost(state.now),
            draining: false,
        };
        Ok(CostsView {
            at: state.now,
            cost: MicroUsd(0),
            on_demand_cost: MicroUsd(0),
            unused: MicroUsd(0),
            deleted: MicroUsd(0),
            jobs: Vec::new(),
            machines: state.reports.values().map(view).collect(),
        })
    }

    async fn enrolment_token(&self, machine: &MachineName, _: Millis) -> Result<String, CallError> {
        let mut state = self.edit();
        state.fails("token")?;
        let time = state.token_time;
        state.now = state.now + time;
        state.tokens.push(machine.clone());
        Ok(format!("token-of-{machine}"))
    }
}

#[async_trait]
impl Cloud for Shared {
    async fn offers(&self) -> Result<Offers, CloudError> {
        let mut offers = Offers::default();
        let kind = InstanceType {
            name: "c.xlarge".into(),
            vcpus: 4,
            memory: 8 << 30,
            gpus: 0,
            gpu_memory: 0,
        };
        offers.types.insert(kind.name.clone(), kind);
        let quote = Quote { spot: Some(price_at(self.edit().now)), on_demand: MicroUsd(100_000) };
        offers.quotes.insert(pool(), quote);
        Ok(offers)
    }

    async fn spot_price_at(
        &self,
        _: &Pool,
        at: UnixMillis,
    ) -> Result<Option<MicroUsd>, CloudError> {
        Ok(Some(price_at(at)))
    }

    async fn machines(&self) -> Result<Vec<CloudMachine>, CloudError> {
        let state = self.edit();
        if state.cloud_fails {
            return Err(CloudError::Away("no route".into()));
        }
        Ok(state.machines.clone())
    }

    async fn buy(&self, order: &Order) -> Result<Filled, CloudError> {
        let mut state = self.edit();
        state.orders += 1;
        match state.fill {
            Fill::Never => return Err(CloudError::Away("no route".into())),
            Fill::Throttle => return Err(CloudError::Throttled),
            Fill::All | Fill::Lost => {}
        }
        let mut bought = Vec::new();
        for machine in &order.machines {
            assert_eq!(machine.enrolment_token, format!("token-of-{}", machine.name));
            assert!(state.machines.iter().all(|other| other.name.as_ref() != Some(&machine.name)));
            let launched_at = UnixMillis(state.now.0 + 1234);
            let instance = format!("i-{}", machine.name);
            state.machines.push(CloudMachine {
                name: Some(machine.name.clone()),
                instance: instance.clone(),
                pool: pool(),
                market: order.market,
                state: MachineState::Running,
                launched_at,
                ended_at: None,
                end: None,
            });
            state.bought += 1;
            bought.push(Bought { name: machine.name.clone(), instance, pool: pool() });
        }
        if state.fill == Fill::Lost {
            return Err(CloudError::Away("the answer was lost".into()));
        }
        Ok(Filled { bought, failure: None })
    }

    async fn end(&self, region: &str, instances: &[String]) -> Result<(), CloudError> {
        assert_eq!(region, "eu-1");
        let mut state = self.edit();
        let now = state.now;
        for machine in &mut state.machines {
            if instances.contains(&machine.instance) {
                machine.state = MachineState::Ended;
                machine.ended_at = machine.ended_at.or(Some(now));
            }
        }
        let names: Vec<_> = state.machines.iter().filter(|m| m.ended_at.is_some()).collect();
        let names: BTreeSet<_> = names.iter().filter_map(|machine| machine.name.clone()).collect();
        state.enrolled.retain(|name| !names.contains(name));
        Ok(())
    }
}

fn outlook(round: Round) -> Outlook {
    match round {
        Round::Planned(plan) => plan.outlook,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn machines_are_bought_with_tokens_and_in_the_ledger_to_the_millionth() {
    let shared = Shared::new(3);
    let mut driver = shared.driver("a", false);
    shared.rounds(&mut driver, 1).await;
    assert_eq!(shared.get().bought, 0, "the fleet was seen once only");
    shared.rounds(&mut driver, 1).await;
    assert_eq!((shared.get().bought, shared.get().tokens.len()), (3, 3));
    assert_eq!(shared.get().reports.len(), 3, "it is told at once");
    let names: Vec<_> = shared.get().reports.keys().cloned().collect();
    shared.edit().enrolled.extend(names);
    shared.rounds(&mut driver, 4).await;
    assert_eq!((shared.get().bought, shared.alive()), (3, 3));
    assert_eq!(shared.ledger(), shared.bill());
    let told = shared.get().told;
    shared.rounds(&mut driver, 3).await;
    assert_eq!(shared.get().told, told, "nothing is told twice");
    // The work ends: they are drained, stop, and are ended.
    shared.edit().work = 0;
    shared.rounds(&mut driver, 6).await;
    assert_eq!((shared.get().drained.len(), shared.alive()), (3, 0));
    shared.rounds(&mut driver, 1).await;
    assert_eq!(shared.ledger(), shared.bill());
    let state = shared.get();
    let ends: Vec<_> = state.reports.values().map(|report| report.end).collect();
    assert_eq!(ends, [Some(MachineEnd::Released); 3]);
    assert!(
        driver.metrics.text(state.now).unwrap().contains("sojourn_fleet_bought_machines_total 3\n")
    );
}

#[tokio::test]
async fn a_crash_between_purchase_and_report_neither_doubles_nor_loses_machines() {
    let shared = Shared::new(9);
    let mut first = shared.driver("a", false);
    shared.rounds(&mut first, 1).await;
    // The process ends right after the order: nothing was told.
    shared.edit().fill = Fill::Lost;
    shared.rounds(&mut first, 1).await;
    assert_eq!((shared.get().bought, shared.get().reports.len()), (4, 0));
    drop(first);
    shared.edit().fill = Fill::All;
    let mut second = shared.driver("b", false);
    let round = shared.rounds(&mut second, 1).await;
    assert!(matches!(round, Round::Standby { leader: Some(leader) } if leader == "a"));
    shared.rounds(&mut second, 20).await;
    assert_eq!((shared.get().bought, shared.alive()), (4, 4), "the limit is four");
    assert_eq!(shared.get().reports.len(), 4);
    assert_eq!(shared.ledger(), shared.bill());
}

#[tokio::test]
async fn an_order_without_an_answer_counts_until_it_is_known() {
    let shared = Shared::new(9);
    let mut driver = shared.driver("a", false);
    shared.edit().fill = Fill::Never;
    shared.rounds(&mut driver, 2).await;
    assert_eq!(shared.get().orders, 1);
    shared.edit().fill = Fill::All;
    let visible = driver.options.settings.times.visible;
    let count = u32::try_from(visible.0 / 30_000).unwrap();
    let last = shared.rounds(&mut driver, count - 1).await;
    assert_eq!((shared.get().orders, outlook(last).ordered), (1, 4));
    shared.rounds(&mut driver, 2).await;
    assert_eq!((shared.get().orders, shared.alive()), (2, 4));
}

#[tokio::test]
async fn of_two_processes_one_acts_and_the_other_takes_over() {
    let shared = Shared::new(2);
    let (mut a, mut b) = (shared.driver("a", false), shared.driver("b", false));
    for _ in 0..20 {
        shared.rounds(&mut a, 1).await;
        assert!(matches!(b.round().await, Round::Standby { .. }));
    }
    assert_eq!(shared.get().bought, 2);
    a.shut_down().await;
    shared.pass(Millis::from_secs(30));
    assert!(matches!(b.round().await, Round::Planned(_)), "it was handed over");
    assert!(matches!(a.round().await, Round::Standby { .. }));
    shared.rounds(&mut b, 5).await;
    assert_eq!(shared.get().bought, 2);
}

#[tokio::test]
async fn nothing_is_bought_when_the_term_may_end_meanwhile() {
    let shared = Shared::new(2);
    let mut driver = shared.driver("a", false);
    shared.rounds(&mut driver, 1).await;
    // The server hands out tokens so slowly that the term is nearly over after two.
    shared.edit().token_time = Millis::from_secs(100);
    shared.rounds(&mut driver, 1).await;
    assert_eq!((shared.get().tokens.len(), shared.get().orders), (2, 0));
    // And one that can't reach the server buys nothing, before its term ends or after.
    shared.edit().server_fails = Some("lead");
    shared.pass(Millis::from_secs(200));
    assert!(matches!(driver.round().await, Round::Planned(_)), "by what the server said last");
    assert_eq!(shared.get().orders, 0);
}

#[tokio::test]
async fn failed_calls_end_nothing_and_are_made_again() {
    let shared = Shared::new(2);
    let mut driver = shared.driver("a", false);
    for call in ["demand", "token"] {
        shared.edit().server_fails = Some(call);
        shared.rounds(&mut driver, 3).await;
        assert_eq!(shared.get().orders, 0, "{call}");
    }
    shared.edit().server_fails = None;
    shared.edit().cloud_fails = true;
    assert!(matches!(shared.rounds(&mut driver, 1).await, Round::Failed));
    shared.edit().cloud_fails = false;
    shared.edit().fill = Fill::Throttle;
    shared.rounds(&mut driver, 2).await;
    assert!(shared.get().orders > 0 && shared.get().bought == 0);
    shared.edit().fill = Fill::All;
    shared.edit().server_fails = Some("report");
    shared.rounds(&mut driver, 20).await;
    assert_eq!((shared.alive(), shared.get().bought, shared.get().told), (2, 2, 0));
    shared.edit().server_fails = None;
    shared.rounds(&mut driver, 1).await;
    assert_eq!(shared.get().reports.len(), 2);
    // A drain that fails is asked for again.
    let names: Vec<_> = shared.get().reports.keys().cloned().collect();
    shared.edit().enrolled.extend(names);
    shared.edit().work = 0;
    shared.edit().server_fails = Some("drain");
    shared.rounds(&mut driver, 4).await;
    assert_eq!((shared.alive(), shared.get().drained.len()), (2, 0));
    shared.edit().server_fails = None;
    shared.rounds(&mut driver, 3).await;
    assert_eq!(shared.get().drained.len(), 2);
}

#[tokio::test]
async fn a_dry_run_changes_nothing_and_says_it_again_and_again() {
    let shared = Shared::new(2);
    let mut leader = shared.driver("a", false);
    let mut dry = shared.driver("b", true);
    shared.rounds(&mut dry, 1).await;
    for _ in 0..3 {
        let Round::Planned(plan) = shared.rounds(&mut dry, 1).await else { panic!() };
        assert!(
            matches!(&plan.actions[..], [Action::Buy(purchase)] if purchase.machines.len() == 2)
        );
    }
    assert_eq!((shared.get().orders, shared.get().tokens.len(), shared.get().told), (0, 0, 0));
    assert_eq!(shared.get().leader, None);
    shared.rounds(&mut leader, 2).await;
    let Round::Planned(plan) = shared.rounds(&mut dry, 1).await else { panic!() };
    assert!(plan.actions.is_empty(), "{:?}", plan.actions);
}

#[tokio::test]
async fn machines_of_both_markets_are_told_with_their_prices() {
    let shared = Shared::new(2);
    let mut driver = shared.driver("a", false);
    driver.options.settings.markets.floor = 1;
    shared.rounds(&mut driver, 4).await;
    let state = shared.get();
    let mut prices: Vec<_> =
        state.reports.values().map(|report| (report.market, report.price)).collect();
    prices.sort();
    assert_eq!(prices.len(), 2);
    assert_eq!(prices[1], (Market::OnDemand, MicroUsd(100_000)));
    let spot = state.reports.values().find(|report| report.market == Market::Spot).unwrap();
    assert_eq!(spot.price, price_at(spot.launched_at));
}

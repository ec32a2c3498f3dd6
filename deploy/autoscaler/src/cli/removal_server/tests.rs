//! A removal beside a server that has just started, is led by others, or is away.

use super::*;
use async_trait::async_trait;
use sojourn_fleet::{
    cloud::{CloudMachine, Filled, InstanceType, MachineState, Order, Pool, Quote},
    limits::Limits,
};
use sojourn_protocol::{
    demand::DemandView,
    error::{ApiError, ErrorKind},
    machines::{
        CostsView, DrainRequest, LeaderAnswer, LeaderRequest, MachineEnd, MachineName,
        MachineReport, MachineView, Market,
    },
    money::MicroUsd,
    time::UnixMillis,
};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard},
};

const FIRST: &str = "m-0000000000000001";
const SECOND: &str = "m-0000000000000002";
/// Of which the ledger doesn't know yet.
const NEW: &str = "m-0000000000000003";
/// Which the cloud doesn't list any more.
const GONE: &str = "m-0000000000000004";

/// Server, cloud and clock of a test. Time passes as tokio's does.
#[derive(Clone)]
struct Shared(Arc<Mutex<State>>, tokio::time::Instant);

#[derive(Default)]
struct State {
    /// The server's answers to those who want to lead, in order; the last one is for all that follow.
    answers: Vec<Lead>,
    asked: Vec<LeaderRequest>,
    ledger: BTreeMap<MachineName, MachineReport>,
    machines: Vec<CloudMachine>,
    offers_fail: bool,
}

#[derive(Clone, Copy)]
enum Lead {
    Yes,
    Nobody,
    Other,
    Away,
}

fn refused() -> CallError {
    CallError::Refused {
        server: "http://server".into(),
        error: ApiError::new(ErrorKind::Unavailable, "no"),
        retry_after: None,
    }
}

impl Shared {
    fn new(answers: &[Lead]) -> Self {
        let state = State { answers: answers.to_vec(), ..State::default() };
        Self(Arc::new(Mutex::new(state)), tokio::time::Instant::now())
    }

    fn edit(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    fn removal(&self) -> RemovalServer<Self, Self> {
        let limits = Limits { machines: 4, vcpus: None, hourly: None, total: None, job: None };
        let mut settings = Settings::new(limits);
        settings.times.visible = Millis::from_secs(60);
        RemovalServer::new(self.clone(), self.clone(), "night", settings)
    }

    fn passed(&self) -> Duration {
        self.1.elapsed()
    }
}

impl World for Shared {
    fn now(&self) -> UnixMillis {
        UnixMillis(1_000_000 + u64::try_from(self.passed().as_millis()).unwrap())
    }

    fn seed(&self) -> u64 {
        7
    }
}

impl Server for Shared {
    async fn lead(&self, request: &LeaderRequest) -> Result<LeaderAnswer, CallError> {
        let mut state = self.edit();
        state.asked.push(request.clone());
        let answer = state.answers[0];
        if state.answers.len() > 1 {
            state.answers.remove(0);
        }
        let holder = match answer {
            Lead::Yes => Some(request.holder.clone()),
            Lead::Nobody => None,
            Lead::Other => Some("other".to_owned()),
            Lead::Away => return Err(refused()),
        };
        Ok(LeaderAnswer { holder, leads: matches!(answer, Lead::Yes), term: request.term })
    }

    async fn demand(&self) -> Result<DemandView, CallError> {
        Err(refused())
    }

    async fn report(&self, request: &MachinesRequest) -> Result<(), CallError> {
        let told = request.machines.iter().map(|report| (report.name.clone(), report.clone()));
        self.edit().ledger.extend(told);
        Ok(())
    }

    async fn drain(&self, _: &DrainRequest) -> Result<(), CallError> {
        Err(refused())
    }

    async fn costs(&self) -> Result<CostsView, CallError> {
        let view = |report: &MachineReport| MachineView {
            machine: report.clone(),
            host: None,
            run_time: Millis(0),
            cost: MicroUsd(0),
            draining: false,
        };
        Ok(CostsView {
            at: self.now(),
            cost: MicroUsd(0),
            on_demand_cost: MicroUsd(0),
            unused: MicroUsd(0),
            deleted: MicroUsd(0),
            jobs: Vec::new(),
            machines: self.edit().ledger.values().map(view).collect(),
        })
    }

    async fn enrolment_token(&self, _: &MachineName, _: Millis) -> Result<String, CallError> {
        Err(refused())
    }
}

fn pool() -> Pool {
    Pool { region: "eu-1".into(), zone: "eu-1a".into(), instance_type: "c.xlarge".into() }
}

#[async_trait]
impl Cloud for Shared {
    async fn offers(&self) -> Result<Offers, CloudError> {
        if self.edit().offers_fail {
            return Err(CloudError::Throttled);
        }
        let name = pool().instance_type;
        let kind = InstanceType { name, vcpus: 4, memory: 1, gpus: 0, gpu_memory: 0 };
        let quote = Quote { spot: Some(MicroUsd(30)), on_demand: MicroUsd(100) };
        Ok(Offers { types: [(kind.name.clone(), kind)].into(), quotes: [(pool(), quote)].into() })
    }

    async fn spot_price_at(&self, _: &Pool, _: UnixMillis) -> Result<Option<MicroUsd>, CloudError> {
        Ok(None)
    }

    async fn machines(&self) -> Result<Vec<CloudMachine>, CloudError> {
        Ok(self.edit().machines.clone())
    }

    async fn buy(&self, _: &Order) -> Result<Filled, CloudError> {
        Err(CloudError::Throttled)
    }

    async fn end(&self, _: &str, _: &[String]) -> Result<(), CloudError> {
        Ok(())
    }
}

fn machine(name: &str, state: MachineState) -> CloudMachine {
    CloudMachine {
        name: name.parse().ok(),
        instance: format!("i-{name}"),
        pool: pool(),
        market: Market::Spot,
        state,
        launched_at: UnixMillis(1000),
        ended_at: (state == MachineState::Ended).then_some(UnixMillis(900_000)),
        end: (state != MachineState::Running).then_some(MachineEnd::Released),
    }
}

fn told(name: &str) -> (MachineName, MachineReport) {
    let report = MachineReport {
        name: name.parse().unwrap(),
        instance: format!("i-{name}"),
        instance_type: "c.xlarge".into(),
        zone: "eu-1a".into(),
        market: Market::Spot,
        price: MicroUsd(25),
        on_demand_price: MicroUsd(100),
        launched_at: UnixMillis(1000),
        ended_at: None,
        end: None,
    };
    (report.name.clone(), report)
}

#[tokio::test(start_paused = true)]
async fn a_server_that_has_just_started_is_waited_for() {
    let shared = Shared::new(&[Lead::Nobody, Lead::Nobody, Lead::Yes]);
    let mut removal = shared.removal();
    removal.acquire().await.unwrap();
    assert_eq!(shared.edit().asked.len(), 3);
    assert!(shared.passed() >= Duration::from_secs(60), "{:?}", shared.passed());

    let shared = Shared::new(&[Lead::Nobody]);
    shared.removal().acquire().await.unwrap_err();
    assert!(shared.passed() >= Duration::from_secs(600), "{:?}", shared.passed());

    for answers in [&[Lead::Other][..], &[Lead::Nobody, Lead::Other]] {
        let shared = Shared::new(answers);
        let refused = format!("{:?}", shared.removal().acquire().await.unwrap_err());
        assert!(refused.contains("other buys machines for this fleet"), "{refused}");
    }
    Shared::new(&[Lead::Away]).removal().acquire().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_lease_is_renewed_while_machines_end() {
    let shared = Shared::new(&[Lead::Yes]);
    let mut removal = shared.removal();
    removal.acquire().await.unwrap();
    for _ in 0..180 {
        removal.renew().await.unwrap();
        assert!(removal.lease.may_act(shared.now()));
        tokio::time::sleep(Duration::from_secs(5)).await;
    }
    let renewed = shared.edit().asked.iter().filter(|request| request.renews).count();
    assert!((8..=9).contains(&renewed), "{renewed}");

    shared.edit().answers = vec![Lead::Other];
    tokio::time::sleep(Duration::from_secs(100)).await;
    removal.renew().await.unwrap_err();
}

#[tokio::test(start_paused = true)]
async fn the_ledger_learns_when_machines_ended() {
    let shared = Shared::new(&[Lead::Yes]);
    shared.edit().ledger.extend([told(FIRST), told(SECOND), told(GONE)]);
    let running = MachineState::Running;
    shared.edit().machines = [FIRST, SECOND, NEW].map(|name| machine(name, running)).into();
    let mut removal = shared.removal();
    removal.acquire().await.unwrap();
    removal.report(&shared).await;
    let of = |name: &str| shared.edit().ledger[&name.parse().unwrap()].clone();
    assert_eq!(of(FIRST), told(FIRST).1);
    assert_eq!((of(NEW).price, of(NEW).ended_at), (MicroUsd(30), None));
    assert!(of(GONE).ended_at.is_some());

    shared.edit().machines =
        [machine(FIRST, MachineState::Ended), machine(SECOND, MachineState::Ending)].into();
    removal.report(&shared).await;
    for (name, ended_at) in [(FIRST, UnixMillis(900_000)), (SECOND, shared.now())] {
        let report = of(name);
        assert_eq!((report.ended_at, report.end), (Some(ended_at), Some(MachineEnd::Released)));
        assert_eq!(report.price, MicroUsd(25), "what the server knows");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_comes_back_learns_it_at_the_end() {
    let shared = Shared::new(&[Lead::Away]);
    shared.edit().ledger.extend([told(FIRST)]);
    shared.edit().machines = vec![machine(FIRST, MachineState::Ended)];
    shared.edit().offers_fail = true;
    let mut removal = shared.removal();
    removal.acquire().await.unwrap();
    removal.report(&shared).await;
    let ended = || shared.edit().ledger.values().all(|report| report.ended_at.is_some());
    assert!(!ended(), "it wasn't asked");
    removal.report_last(&shared).await;
    assert!(ended());
}

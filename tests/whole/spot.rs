//! A bought fleet: the autoscaler's own driver over a made-up cloud, whose machines are real clients on this machine.
//! They are taken back with a notice and without. What they have trained is replayed, and the ledger is the cloud's bill.

use crate::{
    http::poll,
    site::{Process, Site, program, spawn},
    support::{Answer, FakeServer},
};
use async_trait::async_trait;
use serde_json::Value;
use sojourn_autoscaler::{
    config::Config,
    driver::{Driver, Options, Round, World as Outside},
    metrics::Metrics,
    server::HttpServer,
};
use sojourn_fake_cloud::{
    CapacityConfig, CloudConfig, FakeClient, FakeCloud, Happens, InterruptionConfig, PoolConfig,
    Prices, World, WorldConfig,
};
use sojourn_fleet::{
    cloud::{Cloud, CloudError, CloudMachine, Filled, InstanceType, Offers, Order, Pool},
    limits::Limits,
    planner::Action,
    settings::{Settings, Times},
};
use sojourn_protocol::{
    machines::{MachineEnd, MachineName, MachineReport},
    money::MicroUsd,
    time::{Millis, UnixMillis},
};
use std::{
    collections::BTreeMap,
    process::Command,
    sync::{Arc, Mutex, PoisonError},
    time::{SystemTime, UNIX_EPOCH},
};

const EPOCHS: u32 = 200;
/// How long before its end a machine hears of it: AWS says two minutes.
const NOTICE: Millis = Millis(20_000);

/// The term of a lease of [`Site`]'s server.
const LEASE_TERM: Millis = Millis(2000);

fn now() -> UnixMillis {
    let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    UnixMillis(u64::try_from(time.as_millis()).unwrap())
}

/// Real time, and numbers that no other call gives.
#[derive(Default)]
struct RealTime(Mutex<u64>);

impl Outside for RealTime {
    fn now(&self) -> UnixMillis {
        now()
    }

    fn seed(&self) -> u64 {
        let mut last = self.0.lock().unwrap();
        *last += 1;
        *last
    }
}

/// The made-up cloud, which remembers what machines are to enrol with.
#[derive(Clone)]
struct LocalCloud {
    fake: FakeClient,
    tokens: Arc<Mutex<BTreeMap<MachineName, String>>>,
}

impl LocalCloud {
    /// One region of two zones with two types; nothing is taken back by chance.
    fn new() -> Self {
        let from = now();
        let types = [("small", 1), ("large", 2)].map(|(name, vcpus)| InstanceType {
            name: name.to_owned(),
            vcpus,
            memory: 8 << 30,
            gpus: 0,
            gpu_memory: 0,
        });
        let pool = |zone: &str, instance_type: &str, price: u64| PoolConfig {
            pool: Pool {
                region: "here-1".into(),
                zone: zone.into(),
                instance_type: instance_type.into(),
            },
            on_demand: MicroUsd(3 * price),
            prices: Prices::Trace(vec![(Millis(0), MicroUsd(price))]),
            capacity: CapacityConfig {
                machines: 8,
                shortages: 0.0,
                shortage: Millis(0),
                on_demand: 8,
            },
            interruptions: InterruptionConfig {
                per_hour: 0.0,
                in_shortage: 1.0,
                noticed: 1.0,
                notice: NOTICE,
            },
        };
        let world = WorldConfig {
            types: types.map(|of| (of.name.clone(), of)).into(),
            pools: vec![
                pool("here-1a", "small", 36_000),
                pool("here-1b", "small", 37_000),
                pool("here-1a", "large", 90_000),
            ],
            from,
            length: Millis::from_secs(3600),
            step: Millis::from_secs(60),
        };
        let boot = (Millis(100), Millis(200));
        let config = CloudConfig { boot, ..CloudConfig::default() };
        let cloud = FakeCloud::new(Arc::new(World::new(&world, 1)), config, 1);
        let fake = FakeClient::new(Arc::new(Mutex::new(cloud)), Arc::new(now));
        Self { fake, tokens: Arc::default() }
    }

    fn token(&self, machine: &MachineName) -> String {
        self.tokens.lock().unwrap_or_else(PoisonError::into_inner)[machine].clone()
    }
}

#[async_trait]
impl Cloud for LocalCloud {
    async fn offers(&self) -> Result<Offers, CloudError> {
        self.fake.offers().await
    }

    async fn spot_price_at(
        &self,
        pool: &Pool,
        at: UnixMillis,
    ) -> Result<Option<MicroUsd>, CloudError> {
        self.fake.spot_price_at(pool, at).await
    }

    async fn machines(&self) -> Result<Vec<CloudMachine>, CloudError> {
        self.fake.machines().await
    }

    async fn buy(&self, order: &Order) -> Result<Filled, CloudError> {
        let tokens = order.machines.iter();
        let tokens = tokens.map(|of| (of.name.clone(), of.enrolment_token.clone()));
        self.tokens.lock().unwrap_or_else(PoisonError::into_inner).extend(tokens);
        self.fake.buy(order).await
    }

    async fn end(&self, region: &str, instances: &[String]) -> Result<(), CloudError> {
        self.fake.end(region, instances).await
    }
}

/// A machine that runs here.
struct Machine {
    client: Process,
    /// When it is taken back, as its metadata service says.
    notice: Arc<Mutex<Option<String>>>,
}

/// The machines, as their cloud has them.
struct Fleet<'a> {
    site: &'a Site,
    cloud: LocalCloud,
    running: BTreeMap<String, Machine>,
}

impl Fleet<'_> {
    /// Starts, tells and kills machines as the cloud says, and tells it of those that have ended by themselves.
    fn follow(&mut self) {
        let events = self.cloud.fake.lock().step(now());
        for event in events {
            match event.happens {
                Happens::Starts => self.start(&event.instance, &event.machine),
                Happens::Noticed(left) => {
                    let at = self.running.get(&event.instance).map(|machine| &machine.notice);
                    if let Some(notice) = at {
                        let time = rfc3339(event.at + left);
                        let text = format!(r#"{{"action": "terminate", "time": "{time}"}}"#);
                        *notice.lock().unwrap() = Some(text);
                    }
                }
                Happens::Ends(_) => {
                    if let Some(mut machine) = self.running.remove(&event.instance) {
                        machine.client.kill();
                    }
                }
            }
        }
        let done = self.running.iter_mut().filter_map(|(instance, machine)| {
            (!machine.client.is_running()).then(|| (instance.clone(), machine.client.wait()))
        });
        for (instance, code) in done.collect::<Vec<_>>() {
            self.running.remove(&instance);
            assert_eq!(code, Some(0), "a client failed:\n{}", self.site.log("server"));
            self.cloud.fake.lock().shut_down_by_itself(now(), &instance);
        }
    }

    /// As its boot script would.
    fn start(&mut self, instance: &str, name: &MachineName) {
        let notice = Arc::new(Mutex::new(None));
        let told = Arc::clone(&notice);
        let metadata = FakeServer::start(move |request| match request.line.as_str() {
            "PUT /latest/api/token" => Answer::json(200, "token"),
            "GET /latest/meta-data/spot/instance-action" => match told.lock().unwrap().clone() {
                Some(text) => Answer::json(200, text),
                None => Answer::json(404, ""),
            },
            _ => Answer::json(404, ""),
        });
        let mut command = Command::new(program());
        command
            .args(["client", "--server", &self.site.url, "--name", name.as_str(), "--slots", "1"])
            .args(["--exit-when-idle", "60s", "--metadata", &metadata.url, "--data"])
            .arg(self.site.path().join(name.as_str()))
            .env("SOJOURN_ENROL_TOKEN", self.cloud.token(name));
        let log = self.site.path().join(format!("{name}.log"));
        let machine = Machine { client: spawn(command, &log), notice };
        self.running.insert(instance.to_owned(), machine);
    }

    /// The instance of a machine that holds a unit, but none of these.
    fn busy(&self, but: &[String]) -> Option<String> {
        let demand = self.site.get("demand");
        let machines = demand["machines"].as_array().unwrap();
        let names: Vec<&str> = machines
            .iter()
            .filter(|machine| machine["held"].as_u64() > Some(0))
            .filter_map(|machine| machine["machine"].as_str())
            .collect();
        let bill = self.cloud.fake.lock().bill();
        let mut live = bill.into_iter().filter(|machine| machine.ended_at.is_none());
        let found = live.find(|machine| {
            names.contains(&machine.name.as_str()) && !but.contains(&machine.instance)
        });
        found.map(|machine| machine.instance)
    }
}

/// A time as EC2 writes it.
fn rfc3339(at: UnixMillis) -> String {
    let second = i64::try_from(at.0 / 1000).unwrap();
    jiff::Timestamp::from_second(second).unwrap().to_string()
}

fn settings() -> Settings {
    let limits = Limits {
        machines: 3,
        vcpus: None,
        hourly: Some(MicroUsd(1_000_000)),
        total: Some(MicroUsd(5_000_000)),
        job: None,
    };
    let times = Times {
        interval: Millis(500),
        boot: Millis(1000),
        enrol: Millis(120_000),
        drain: Millis(20_000),
        lost: Millis(1000),
        idle: Millis(2000),
        settle: Millis(1000),
        min_use: Millis(1000),
        visible: Millis(500),
        silent: Millis(120_000),
        no_capacity: Millis(1000),
        no_capacity_max: Millis(5000),
        avoid: Millis(2000),
        ..Times::default()
    };
    Settings { times, ..Settings::new(limits) }
}

fn driver(site: &Site, cloud: &LocalCloud, name: &str) -> Driver<HttpServer, LocalCloud, RealTime> {
    let file = site.path().join("fleet.toml");
    let token = site.data().join("admin-token");
    let text = format!(
        "fleet = \"local\"\nserver = \"{}\"\ntoken_file = \"{}\"\n[limits]\nmachines = 3\n\
         [ec2]\nuser_data = \"user-data.yaml\"\n[ec2.regions.here-1]\nimage = \"ami-1\"\n",
        site.url,
        token.display()
    );
    std::fs::write(&file, text).unwrap();
    let config = Config::read(&file, &[]).unwrap();
    let options = Options {
        fleet: "local".into(),
        holder: name.into(),
        settings: settings(),
        prices: Millis(0),
        dry_run: false,
    };
    let server = HttpServer::new(&config).unwrap();
    Driver::new(server, cloud.clone(), options, RealTime::default(), Arc::new(Metrics::default()))
}

/// The ends of a job's leases that ran out on a machine after this time.
fn ran_out_after(site: &Site, job: &str, machine: &MachineName, at: UnixMillis) -> Vec<Value> {
    let hosts = site.get("hosts");
    let host = hosts.as_array().unwrap().iter().find(|host| host["name"] == machine.as_str());
    let host = &host.expect("the machine's host")["host"];
    let events = String::from_utf8(site.run(&["events", job, "--json"]).stdout).unwrap();
    let events: Vec<Value> =
        events.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of_kind = |kind: &'static str| events.iter().filter(move |event| event["kind"] == kind);
    let granted = of_kind("lease-granted").filter(|event| event["event"]["host"] == *host);
    let granted: Vec<&Value> = granted.map(|event| &event["event"]["lease"]).collect();
    assert!(!granted.is_empty(), "the machine was granted nothing");
    let ended = of_kind("lease-ended").filter(|event| {
        granted.contains(&&event["event"]["lease"]) && event["at"].as_u64() > Some(at.0)
    });
    let ran_out = |event: &&Value| {
        [Some("silent"), Some("overdue")].contains(&event["event"]["end"].as_str())
    };
    ended.filter(ran_out).cloned().collect()
}

fn reports(costs: &Value) -> BTreeMap<String, Value> {
    let machines = costs["machines"].as_array().unwrap().iter();
    machines.map(|view| (view["machine"]["name"].as_str().unwrap().into(), view.clone())).collect()
}

#[test]
fn a_bought_fleet_is_taken_back_and_bought_again_and_its_ledger_is_the_bill() {
    let site = Site::start();
    let cloud = LocalCloud::new();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let job = site.submit_with(7, EPOCHS, "[1e-3, 3e-3]", "budget = \"2 usd\"");
    let mut fleet = Fleet { site: &site, cloud: cloud.clone(), running: BTreeMap::new() };
    let mut first = driver(&site, &cloud, "first");
    let mut drained = 0;
    let mut round = |driver: &mut Driver<_, _, _>, fleet: &mut Fleet<'_>| {
        fleet.follow();
        let round = runtime.block_on(driver.round());
        assert!(!matches!(round, Round::Standby { .. }), "nobody else leads");
        if let Round::Planned(plan) = round {
            let drains = plan.actions.iter().filter(|of| matches!(of, Action::Drain { .. }));
            drained += drains.count();
        }
        fleet.follow();
        let limits = settings().limits;
        assert!(fleet.cloud.fake.lock().alive() <= usize::try_from(limits.machines).unwrap());
    };

    // One machine hears of its end, and gives back what it has trained. On a slow machine a lease may run out before: that is
    // no lease that it still held when it ended.
    let noticed = poll(|| {
        round(&mut first, &mut fleet);
        fleet.busy(&[])
    });
    let noticed = noticed.expect("no machine ever trained");
    cloud.fake.lock().take_back(now(), &noticed, Some(NOTICE));
    let gone = poll(|| {
        round(&mut first, &mut fleet);
        let bill = cloud.fake.lock().bill();
        let machine = bill.into_iter().find(|machine| machine.instance == noticed)?;
        let ended = machine.ended_at?;
        // By then a lease that it still held would have run out.
        (now() > ended + Millis(2 * LEASE_TERM.0)).then_some((machine.name, ended))
    });
    let (name, ended) = gone.expect("the machine that heard of its end never ended");
    let held = ran_out_after(&site, &job, &name, ended);
    assert!(held.is_empty(), "it gave back all that it held: {held:?}");

    // Another is gone without a word. The process that buys is, too: the next reads the fleet from its tags.
    let vanished = poll(|| {
        round(&mut first, &mut fleet);
        fleet.busy(std::slice::from_ref(&noticed))
    });
    let vanished = vanished.expect("nothing was bought instead");
    cloud.fake.lock().take_back(now(), &vanished, None);
    runtime.block_on(first.shut_down());
    drop(first);
    let mut second = driver(&site, &cloud, "second");
    let over = poll(|| {
        round(&mut second, &mut fleet);
        let state = site.job(&job)["state"].clone();
        (state != "running").then_some(state)
    });
    assert_eq!(over, Some("finished".into()), "{}", site.log("server"));

    // Nothing is to do any more, so nothing is left.
    let left = poll(|| {
        round(&mut second, &mut fleet);
        (cloud.fake.lock().alive() == 0).then_some(())
    });
    assert!(left.is_some(), "machines are left: {:?}", cloud.fake.lock().bill());
    let told = poll(|| {
        round(&mut second, &mut fleet);
        let costs = site.get("costs");
        let ended = reports(&costs).values().all(|view| !view["machine"]["ended_at"].is_null());
        ended.then_some(costs)
    });
    let costs = told.expect("the server never heard of all ends");
    assert!(drained > 0, "idle machines are drained");

    // The ledger is the bill, to the millionth; so are its parts.
    let bill: Vec<MachineReport> = cloud.fake.lock().bill();
    let known = reports(&costs);
    assert_eq!(known.len(), bill.len(), "{costs}");
    let of_vanished = bill.iter().find(|machine| machine.instance == vanished).unwrap();
    let held = ran_out_after(&site, &job, &of_vanished.name, of_vanished.ended_at.unwrap());
    assert!(!held.is_empty(), "what it held ran out");
    for machine in &bill {
        let view = &known[machine.name.as_str()];
        assert_eq!(view["cost"].as_u64(), Some(machine.cost(now()).0), "{view}\n{machine:?}");
        assert_eq!(view["machine"]["price"].as_u64(), Some(machine.price.0));
        let was = |end: MachineEnd| machine.end == Some(end);
        assert!(
            was(MachineEnd::Interrupted) || was(MachineEnd::Itself) || was(MachineEnd::Released)
        );
    }
    let sum: u64 = bill.iter().map(|machine| machine.cost(now()).0).sum();
    let number = |value: &Value| value.as_u64().unwrap();
    let of_job = &costs["jobs"][0];
    let trials = of_job["trials"].as_array().unwrap();
    assert_eq!(trials.len(), 4);
    assert_eq!(
        trials.iter().map(|trial| number(&trial["cost"])).sum::<u64>(),
        number(&of_job["cost"])
    );
    assert_eq!(number(&costs["cost"]), sum);
    assert_eq!(number(&of_job["cost"]) + number(&costs["unused"]), sum);
    let on_demand: u64 = bill.iter().map(|machine| machine.on_demand_cost(now()).0).sum();
    assert_eq!(number(&costs["on_demand_cost"]), on_demand);
    assert!(sum * 2 < on_demand, "a third of the price on demand");
    let shown = site.run(&["jobs", "--cost"]);
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.contains("interrupted") && shown.contains("(66 % saved)"), "{shown}");

    // Nothing was lost, and nothing trained twice.
    for trial in 0..4 {
        let number = trial.to_string();
        let replay = site.json(&["replay", &job, "--trial", &number]);
        assert_eq!(replay["verdict"], "identical", "trial {number}: {replay}");
    }
}

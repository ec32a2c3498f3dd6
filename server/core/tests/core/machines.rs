//! Bought machines: what they cost and for whom, the work that there is for them, their budgets, and how they are given back.

use crate::support::{Bench, HOST, JOB, OTHER, data, done, request};
use sojourn_core::{Answer, Command, Core, Query, ReplyTo};
use sojourn_protocol::{
    api::{HeartbeatRequest, PlacementRequest},
    demand::DemandView,
    digest::Digest,
    error::{ApiError, ErrorKind},
    ids::{HostId, TokenId},
    machines::{
        CostsView, DrainRequest, JobCost, MachineEnd, MachineName, MachineReport, MachinesAnswer,
        Market,
    },
    money::MicroUsd,
    quotas::TokenQuotas,
    time::{Millis, UnixMillis},
    tokens::{TokenGrant, TokenRequest},
    view::TrialState,
};

const TO: ReplyTo = ReplyTo(1);
const HOUR: u64 = 3_600_000;

fn name(text: &str) -> MachineName {
    text.parse().unwrap()
}

fn machine(text: &str, launched_at: u64) -> MachineReport {
    MachineReport {
        name: name(text),
        instance: format!("i-{text}"),
        instance_type: "c6i.large".into(),
        zone: "eu-west-1a".into(),
        market: Market::Spot,
        price: MicroUsd(100_001),
        on_demand_price: MicroUsd(300_000),
        launched_at: UnixMillis(launched_at),
        ended_at: None,
        end: None,
    }
}

fn ended(of: &MachineReport, at: u64) -> MachineReport {
    let (ended_at, end) = (Some(UnixMillis(at)), Some(MachineEnd::Released));
    MachineReport { ended_at, end, ..of.clone() }
}

fn report(bench: &mut Bench, machines: &[MachineReport]) -> Result<u32, ApiError> {
    let machines = machines.to_vec();
    match bench.answer(Command::ReportMachines { to: TO, machines })? {
        Answer::Machines(MachinesAnswer { changed }) => Ok(changed),
        other => panic!("{other:?}"),
    }
}

fn costs(bench: &mut Bench) -> CostsView {
    match bench.answer(Command::Query { to: TO, query: Query::Costs }).unwrap() {
        Answer::Costs(costs) => *costs,
        other => panic!("{other:?}"),
    }
}

fn demand(bench: &mut Bench) -> DemandView {
    match bench.answer(Command::Query { to: TO, query: Query::Demand }).unwrap() {
        Answer::Demand(demand) => *demand,
        other => panic!("{other:?}"),
    }
}

fn drain(bench: &mut Bench, machine: &str, within: u64) -> u32 {
    let request = DrainRequest { machines: vec![name(machine)], within: Millis(within) };
    match bench.answer(Command::DrainMachines { to: TO, request }).unwrap() {
        Answer::Machines(answer) => answer.changed,
        other => panic!("{other:?}"),
    }
}

/// A machine with this name becomes a host, with a token of its own.
fn enrol(bench: &mut Bench, text: &str) -> Result<HostId, ApiError> {
    let grant = TokenGrant::Enrol {
        owner: "".parse().unwrap(),
        hosts: 1,
        machine: Some(name(text)),
        trusted: false,
    };
    let request = TokenRequest {
        label: "".parse().unwrap(),
        grant,
        lifetime: Some(Millis(HOUR)),
        quotas: TokenQuotas::default(),
    };
    let sha256 = Digest::of(format!("secret of {text}").as_bytes());
    let token = match bench.answer(Command::CreateToken { to: TO, request, sha256, by: None })? {
        Answer::Token(token) => token.token,
        other => panic!("{other:?}"),
    };
    enrol_with(bench, text, token)
}

fn enrol_with(bench: &mut Bench, text: &str, with: TokenId) -> Result<HostId, ApiError> {
    let token_sha256 = Digest::of(format!("token of {text} {}", bench.now).as_bytes());
    let name = text.to_owned();
    match bench.answer(Command::EnrolWithToken { to: TO, name, token_sha256, with })? {
        Answer::Enrolled(host) => {
            bench.ask(host, request(0, Vec::new()));
            Ok(host)
        }
        other => panic!("{other:?}"),
    }
}

/// Takes the hosts that cost nothing out of the way.
fn without_others(bench: &mut Bench) {
    for host in [HOST, OTHER] {
        bench.answer(Command::RevokeHost { to: TO, host }).unwrap();
    }
}

fn of_job(costs: &CostsView) -> &JobCost {
    &costs.jobs[0]
}

#[test]
fn a_token_of_a_machine_is_for_one_host() {
    let mut bench = Bench::with_job(2, 1);
    let host = enrol(&mut bench, "m-1").unwrap();
    assert_eq!(bench.core.state().machine_of(host), Some(&name("m-1")));
    bench.now += 1;
    let again = enrol_with(&mut bench, "m-1", TokenId(1)).unwrap_err();
    assert!(again.message.contains("was for one host"), "{again:?}");
    let grant = TokenGrant::Enrol {
        owner: "".parse().unwrap(),
        hosts: 2,
        machine: Some(name("m-2")),
        trusted: false,
    };
    let request = TokenRequest {
        label: "".parse().unwrap(),
        grant,
        lifetime: None,
        quotas: TokenQuotas::default(),
    };
    let sha256 = Digest::of(b"two");
    let two = bench.answer(Command::CreateToken { to: TO, request, sha256, by: None }).unwrap_err();
    assert_eq!(
        (two.kind, two.message.as_str()),
        (ErrorKind::Invalid, "the token of machine m-2 is for one host",)
    );
}

#[test]
fn a_machine_is_paid_by_those_whose_units_it_held_and_the_sum_is_the_bill() {
    let mut bench = Bench::with_job(2, 1);
    without_others(&mut bench);
    let launched = bench.now;
    let host = enrol(&mut bench, "m-1").unwrap();
    let bought = machine("m-1", launched);
    assert_eq!(report(&mut bench, std::slice::from_ref(&bought)), Ok(1));
    assert_eq!(report(&mut bench, std::slice::from_ref(&bought)), Ok(0), "nothing new");
    bench.now += HOUR / 2;
    let unused = costs(&mut bench);
    assert_eq!((unused.cost, unused.unused), (MicroUsd(50_001), MicroUsd(50_001)));
    bench.ask(host, request(0, Vec::new()));
    let first = bench.lease(host);
    bench.now += 3000;
    bench.finish(host, &first);
    let second = bench.lease(host);
    bench.now += 6000;
    // While it is held, it counts for as long as it has been.
    let now = costs(&mut bench);
    let job = of_job(&now);
    assert_eq!((now.cost, now.unused), (job.cost, MicroUsd(0)));
    let parts: Vec<u64> = job.trials.iter().map(|trial| trial.cost.0).collect();
    assert_eq!(parts.iter().sum::<u64>(), now.cost.0);
    assert_eq!(parts.len(), 2, "each trial held one unit");
    assert!(parts[0].abs_diff(now.cost.0 / 3) <= 1, "3 of 9 seconds: {parts:?}");
    bench.finish(host, &second);
    let end = bench.now;
    report(&mut bench, &[ended(&bought, end)]).unwrap();
    bench.now += HOUR;
    let after = costs(&mut bench);
    let bill = bought.price.for_time(Millis(end - launched));
    assert_eq!((after.cost, of_job(&after).cost), (bill, bill), "it costs no more");
    let on_demand = bought.on_demand_price.for_time(Millis(end - launched));
    assert_eq!(after.on_demand_cost, on_demand);
    assert_eq!(after.machines[0].cost, bill);
    assert_eq!(after.machines[0].host, Some(host));
}

#[test]
fn costs_stay_when_machines_jobs_and_the_server_are_gone() {
    let mut bench = Bench::with_job(1, 1);
    without_others(&mut bench);
    let launched = bench.now;
    let host = enrol(&mut bench, "m-1").unwrap();
    let bought = machine("m-1", launched);
    report(&mut bench, std::slice::from_ref(&bought)).unwrap();
    bench.now += 60_000;
    bench.ask(host, request(0, Vec::new()));
    bench.work_to_the_end(&[host]);
    let end = bench.now;
    report(&mut bench, &[ended(&bought, end)]).unwrap();
    let bill = costs(&mut bench).cost;
    let week = Millis::from_secs(7 * 24 * 3600).0;
    bench.now += week + 1;
    let late = report(&mut bench, &[ended(&machine("m-0", launched), end)]).unwrap_err();
    assert!(late.message.contains("more than 7 days ago"), "{late:?}");
    // Whoever reports another one has the old ones counted by trial alone.
    let now = bench.now;
    report(&mut bench, &[ended(&machine("m-2", now), now)]).unwrap();
    let after = costs(&mut bench);
    assert_eq!(after.machines.len(), 1);
    assert_eq!((after.cost, of_job(&after).cost), (bill, bill));
    let snapshot = bench.core.snapshot().unwrap();
    let config = *bench.core.config();
    let restored = Core::from_snapshot(&snapshot, config).unwrap();
    assert_eq!(restored.state(), bench.core.state());
    bench.answer(Command::Delete { to: TO, jobs: vec![JOB], preview: false }).unwrap();
    let after = costs(&mut bench);
    assert_eq!((after.cost, after.deleted, after.jobs.len()), (bill, bill, 0));
}

#[test]
fn what_cannot_be_is_refused() {
    let mut bench = Bench::with_job(1, 1);
    let now = bench.now;
    let before = report(&mut bench, &[ended(&machine("m-1", now), now - 1)]).unwrap_err();
    assert!(before.message.contains("ended before it was launched"), "{before:?}");
    let later = report(&mut bench, &[machine("m-1", now + HOUR)]).unwrap_err();
    assert!(later.message.contains("in the future"), "{later:?}");
    assert_eq!(costs(&mut bench).machines, []);
}

#[test]
fn demand_says_what_hop_order_can_use() {
    let mut bench = Bench::with_job(3, 2);
    let host = enrol(&mut bench, "m-1").unwrap();
    let now = bench.now;
    report(&mut bench, &[machine("m-1", now)]).unwrap();
    let all = demand(&mut bench);
    let job = &all.jobs[0];
    let of = &job.workloads[0];
    assert_eq!((of.trials, of.parallel, of.runnable, of.running, of.soon), (3, 3, 3, 0, 0));
    assert_eq!((of.rows, of.longest), (3 * 2 * 40, 2 * 40), "batches are counted whole");
    assert!(of.nanos_per_row > 0 && of.memory > 0, "{of:?}");
    assert_eq!(all.other_slots, 2, "two hosts that cost nothing");
    let load = &all.machines[0];
    assert_eq!((load.host, load.held, load.idle_since.is_some()), (host, 0, true));
    let lease = bench.lease(host);
    let all = demand(&mut bench);
    let of = &all.jobs[0].workloads[0];
    assert_eq!((of.parallel, of.runnable, of.running, of.soon), (3, 2, 1, 1));
    assert_eq!((all.machines[0].held, all.machines[0].idle_since), (1, None));
    bench.now += 1000;
    bench.report(host, done(&lease)).unwrap();
    bench.assimilate();
    let measured = demand(&mut bench).jobs[0].workloads[0].measured.clone();
    assert_eq!((measured.len(), measured[0].machines), (1, 1));
    assert_eq!(measured[0].instance_type, "c6i.large");
    bench.answer(Command::Pause { to: TO, job: JOB, now: false }).unwrap();
    assert_eq!(demand(&mut bench).jobs, [], "it is paused");
}

#[test]
fn a_machine_that_is_given_back_hears_it_and_gets_nothing_more() {
    let mut bench = Bench::with_job(3, 2);
    without_others(&mut bench);
    let host = enrol(&mut bench, "m-1").unwrap();
    let now = bench.now;
    report(&mut bench, &[machine("m-1", now)]).unwrap();
    let lease = bench.lease(host);
    assert_eq!(drain(&mut bench, "m-1", 120_000), 1);
    bench.now += 5_000;
    assert_eq!(drain(&mut bench, "m-1", 120_000), 0, "it has no more time than before");
    let beat =
        Command::Heartbeat { to: TO, host, request: HeartbeatRequest::new(Vec::new(), Vec::new()) };
    match bench.answer(beat).unwrap() {
        Answer::Heartbeat(answer) => assert_eq!(answer.leave_within, Some(Millis(115_000))),
        other => panic!("{other:?}"),
    }
    let answer = bench.ask(host, request(1, Vec::new()));
    assert_eq!(answer.leave_within, Some(Millis(115_000)));
    let leases: Vec<_> = answer.leases.iter().map(|lease| lease.id).collect();
    assert_eq!(leases, [lease.id], "its own, and no other");
    assert!(demand(&mut bench).machines[0].draining);
    assert_eq!(drain(&mut bench, "m-7", 1000), 0, "nobody knows it");
}

#[test]
fn a_search_that_has_cost_as_much_as_it_may_ends_with_what_it_has() {
    let more = "[search]\ntotal_cost = \"0.15 usd\"\n";
    let mut bench = Bench::with_job_on(data(), 1, 900, more);
    without_others(&mut bench);
    let host = enrol(&mut bench, "m-1").unwrap();
    let dear = MachineReport { price: MicroUsd(10_000_000), ..machine("m-1", bench.now) };
    report(&mut bench, &[dear]).unwrap();
    bench.work_to_the_end(&[host]);
    let spent = demand(&mut bench).jobs.first().map(|job| job.spent);
    assert_eq!(spent, None, "the job has ended");
    let paid = of_job(&costs(&mut bench)).cost;
    // It is counted every five seconds, which cost $0.014.
    assert!((150_000..170_000).contains(&paid.0), "{paid}");
    let trials = bench.trials();
    let why: Vec<_> = trials.iter().filter_map(|trial| trial.stopped.as_deref()).collect();
    assert_eq!(why, ["stopped when all trials together had cost $0.15"]);
    assert_eq!(trials[0].state, TrialState::Finished);
    // Who extends the job means that it goes on.
    let extend = Command::Extend { to: TO, job: JOB, epochs: 901, trial: None, reopen: false };
    bench.answer(extend).unwrap();
    assert_eq!(bench.ask(host, request(1, Vec::new())).leases.len(), 1);
}

#[test]
fn a_machine_that_enrols_late_is_given_back_at_once() {
    let mut bench = Bench::with_job(1, 1);
    let now = bench.now;
    report(&mut bench, &[machine("m-1", now)]).unwrap();
    assert_eq!(drain(&mut bench, "m-1", 1000), 1);
    let host = enrol(&mut bench, "m-1").unwrap();
    let answer = bench.ask(host, request(1, Vec::new()));
    assert_eq!((answer.leases.len(), answer.leave_within), (0, Some(Millis(1000))));
}

#[test]
fn a_job_whose_budget_is_used_up_gets_nothing_more_on_bought_machines() {
    let more = "[placement]\nbudget = \"0.15 usd\"\n";
    let mut bench = Bench::with_job_on(data(), 2, 2, more);
    without_others(&mut bench);
    let host = enrol(&mut bench, "m-1").unwrap();
    let dear = MachineReport { price: MicroUsd(100_000_000), ..machine("m-1", bench.now) };
    report(&mut bench, &[dear]).unwrap();
    let first = bench.lease(host);
    bench.now += 5000;
    bench.finish(host, &first);
    let spent = demand(&mut bench).jobs[0].spent;
    assert_eq!(spent, MicroUsd(138_889), "5 seconds");
    // What is left is counted every five seconds.
    bench.now += 6000;
    let spent = demand(&mut bench).jobs[0].spent;
    assert!(spent > MicroUsd(150_000), "{spent:?}");
    assert_eq!(bench.ask(host, request(1, Vec::new())).leases, []);
    let waiting = bench.job().waiting.unwrap();
    assert!(waiting.contains("its budget of $0.15 is used up after 1 of 8 hops"), "{waiting}");
    let placement =
        PlacementRequest { budget: Some(MicroUsd(9_000_000)), ..PlacementRequest::default() };
    bench.answer(Command::Place { to: TO, job: JOB, placement }).unwrap();
    assert_eq!(bench.ask(host, request(1, Vec::new())).leases.len(), 1, "it has more now");
}

#[test]
fn where_no_machine_is_left_a_job_says_how_much_of_its_budget_is() {
    let some =
        "no host is in contact, and $0.13 of its budget of $0.15 are left after 1 of 8 hops: ";
    let none = "its budget of $0.15 is used up after 1 of 8 hops: ";
    for (price, says) in [(MicroUsd(1_000_000), some), (MicroUsd(10_000_000), none)] {
        let more = "[placement]\nbudget = \"0.15 usd\"\ndeadline = \"1h\"\n";
        let mut bench = Bench::with_job_on(data(), 2, 2, more);
        without_others(&mut bench);
        let host = enrol(&mut bench, "m-1").unwrap();
        let begun = MachineReport { price, ..machine("m-1", bench.now) };
        report(&mut bench, std::slice::from_ref(&begun)).unwrap();
        let first = bench.lease(host);
        bench.finish(host, &first);
        let standing = bench.job().deadline.unwrap();
        assert_eq!(standing, "60 min after it was submitted: in 60 min");
        bench.now += 60_000;
        let ended_at = Some(UnixMillis(bench.now));
        let ended = MachineReport { ended_at, end: Some(MachineEnd::Released), ..begun };
        report(&mut bench, &[ended]).unwrap();
        bench.now += 2 * HOUR;
        bench.apply(Command::Tick);
        let job = bench.job();
        let waiting = job.waiting.unwrap();
        assert!(waiting.starts_with(says), "{waiting}");
        assert_eq!(job.deadline.unwrap(), "60 min after it was submitted: passed 61 min ago");
        bench.answer(Command::Cancel { to: TO, job: JOB }).unwrap();
        assert_eq!(bench.job().deadline, None, "it neither kept nor missed it");
    }
}

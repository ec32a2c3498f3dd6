//! Numeric classes that too few parties offer: where results are verified, no trial begins there.

use crate::support::{Bench, HOST, JOB, OTHER, done, hop, inventory, request};
use sojourn_core::{Answer, By, Command, Core, Event, JournalPosition, Query, Record, ReplyTo};
use sojourn_protocol::{
    api::{NewTrial, SearchRequest, WorkAnswer, WorkRequest},
    digest::Digest,
    ids::{HostId, TrialId},
    inventory::{CPU, Device, Inventory, OfferedClass},
    report::Outcome,
    spec::{Choices, OrderChoice, PlacementSpec, Replicas, Verify, VerifyChoice},
    time::{Millis, UnixMillis},
    tokens::{TokenGrant, TokenRequest},
    unit::{Lease, Unit},
    view::{HostView, Verification},
};
use sojourn_workgen::PolicyName;

const TO: ReplyTo = ReplyTo(1);

fn placement(rate: u32) -> PlacementSpec {
    let verify = Some(Verify { quorum: 2, rate }.into());
    PlacementSpec { verify, ..PlacementSpec::new(OrderChoice::Hop, true, 1) }
}

fn class(name: &str) -> Digest {
    Digest::of(name.as_bytes())
}

/// A processor of this common class, that is faster in these others.
fn device(common: &str, faster: &[&str]) -> Device {
    let offered = faster.iter().chain([&common]).zip([3e9, 2e9, 1e9]);
    let offered = offered.map(|(name, flops)| OfferedClass {
        instructions: (*name).to_owned(),
        numeric_class: class(name),
        flops,
    });
    Device { classes: offered.collect(), ..Device::new(CPU, class(common), 1e9) }
}

fn asks(wanted: u32, device: Device) -> WorkRequest {
    let inventory = Inventory { devices: vec![device], ..inventory("class") };
    WorkRequest { inventory: Some(inventory), ..request(wanted, Vec::new()) }
}

/// A host of a class asks for a unit.
fn ask_as(bench: &mut Bench, host: HostId, name: &str) -> WorkAnswer {
    bench.ask(host, asks(1, device(name, &[])))
}

/// A host of a class shows itself, and wants nothing.
fn show_as(bench: &mut Bench, host: HostId, name: &str) {
    assert_eq!(bench.ask(host, asks(0, device(name, &[]))).leases, []);
}

/// Hosts that enrol as those of one owner.
fn enrol(bench: &mut Bench, owner: &str, hosts: u32) -> Vec<HostId> {
    let grant =
        TokenGrant::Enrol { owner: owner.parse().unwrap(), hosts, machine: None, trusted: false };
    let asked = TokenRequest {
        label: owner.parse().unwrap(),
        grant,
        lifetime: None,
        quotas: Default::default(),
    };
    let sha256 = Digest::of(owner.as_bytes());
    let create = Command::CreateToken { to: TO, request: asked, sha256, by: None };
    let Ok(Answer::Token(token)) = bench.answer(create) else { panic!("no token for {owner}") };
    let hosts = (0..hosts).map(|n| {
        let name = format!("{owner}-{n}");
        let token_sha256 = Digest::of(name.as_bytes());
        let enrol = Command::EnrolWithToken { to: TO, name, token_sha256, with: token.token };
        let Ok(Answer::Enrolled(host)) = bench.answer(enrol) else { panic!("refused") };
        host
    });
    hosts.collect()
}

/// A host reports what follows from its unit alone.
fn right(bench: &mut Bench, host: HostId, lease: &Lease) -> Vec<Event> {
    let mut report = done(lease);
    let Outcome::Trained(trained) = &mut report.outcome else { panic!("{report:?}") };
    let bytes = format!("{:?} {}", hop(lease).base, trained.end);
    trained.checkpoint.sha256 = Digest::of(bytes.as_bytes());
    let uploaded = Some(trained.checkpoint);
    bench.events(Command::Report { to: TO, host, report, uploaded })
}

fn host_view(bench: &mut Bench, host: HostId) -> HostView {
    match bench.answer(Command::Query { to: TO, query: Query::Hosts }) {
        Ok(Answer::Hosts(hosts)) => hosts.into_iter().find(|of| of.host == host).unwrap(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn no_trial_begins_in_a_class_that_one_party_alone_offers_and_everybody_says_so() {
    let mut bench = Bench::with_order(&placement(1000), 1, 1);
    show_as(&mut bench, OTHER, "other class");
    let answer = ask_as(&mut bench, HOST, "class");
    assert_eq!(answer.leases, []);
    let told = answer.waiting.expect("it is told why");
    assert!(told.starts_with("no other party's host in contact offers a numeric class"), "{told}");
    let why = "no numeric class is offered by 2 parties; hosts 1, 2 are alone in theirs";
    assert_eq!(bench.job().waiting.as_deref(), Some(why));
    assert_eq!(bench.trials()[0].waiting.as_deref(), Some(why));
    let view = host_view(&mut bench, HOST);
    assert!(view.alone, "{view:?}");
    let parties: Vec<u64> = view.devices[0].parties.iter().map(|of| of.parties).collect();
    assert_eq!((parties, view.waiting), (vec![1], Some(told)));

    show_as(&mut bench, OTHER, "class");
    let view = host_view(&mut bench, HOST);
    assert!(!view.alone && view.devices[0].parties[0].parties == 2, "{view:?}");
    assert_eq!((bench.job().waiting, view.waiting), (None, None));
    assert_eq!(ask_as(&mut bench, HOST, "class").leases.len(), 1);
}

#[test]
fn a_host_that_waits_is_granted_a_trial_when_a_second_party_comes() {
    let mut bench = Bench::with_order(&placement(1000), 1, 1);
    show_as(&mut bench, OTHER, "other class");
    let to = ReplyTo(7);
    let waits = WorkRequest { wait: Millis(60_000), ..asks(1, device("class", &[])) };
    assert_eq!(bench.events(Command::Ask { to, host: HOST, request: waits }), []);
    let request = asks(0, device("class", &[]));
    let events = bench.events(Command::Ask { to: TO, host: OTHER, request });
    let granted = |event: &Event| matches!(event, Event::LeaseGranted { host: HOST, .. });
    assert!(events.iter().any(granted), "{events:?}");
}

/// The results of a host of an invented class could be repeated by nobody, whatever it claims to be.
#[test]
fn a_host_of_an_invented_class_is_given_no_unit_of_a_verified_job() {
    for replicas in [Replicas::Demand, Replicas::Fixed(1)] {
        for policy in [PolicyName::Ltrp, PolicyName::Rollout, PolicyName::Randomized] {
            let placement = PlacementSpec { replicas, ..placement(1000) };
            let mut bench = Bench::with_all(policy, (1, 100), (2, 1), placement, "");
            let strangers = enrol(&mut bench, "mallory", 3);
            let mut trained = 0;
            for _ in 0..400 {
                bench.now += 100;
                for host in &strangers {
                    let answer = ask_as(&mut bench, *host, "invented");
                    assert_eq!(answer.leases, [], "{policy:?} {replicas:?}");
                }
                for host in [HOST, OTHER] {
                    for lease in bench.ask(host, request(1, Vec::new())).leases {
                        match lease.unit {
                            Unit::Train(_) => drop(right(&mut bench, host, &lease)),
                            Unit::Evaluate(_) => drop(bench.report(host, done(&lease)).unwrap()),
                        }
                        trained += 1;
                    }
                    bench.assimilate();
                }
                if bench.core.state().jobs[&JOB].end.is_some() {
                    break;
                }
            }
            assert!(bench.core.state().jobs[&JOB].end.is_some(), "{policy:?} {replicas:?}");
            assert!(trained > 8);
        }
    }
}

#[test]
fn ten_hosts_of_one_owner_prove_no_class() {
    let mut bench = Bench::with_order(&placement(1000), 1, 1);
    let own = enrol(&mut bench, "lab-3", 10);
    for host in &own {
        show_as(&mut bench, *host, "of lab-3");
    }
    assert_eq!(ask_as(&mut bench, own[0], "of lab-3").leases, []);
    assert!(host_view(&mut bench, own[0]).alone);
    // A job whose results aren't verified is trained there.
    let verify = Some(VerifyChoice::NONE);
    let plain = PlacementSpec { verify, ..PlacementSpec::new(OrderChoice::Hop, true, 1) };
    bench.submit_placed(&plain).unwrap();
    assert_eq!(ask_as(&mut bench, own[0], "of lab-3").leases.len(), 1);
    assert_eq!(host_view(&mut bench, own[0]).waiting, None);
}

#[test]
fn a_device_of_several_classes_begins_in_one_that_is_proved() {
    let mut bench = Bench::with_order(&placement(1000), 1, 1);
    show_as(&mut bench, OTHER, "common");
    let lease = bench.ask(HOST, asks(1, device("common", &["invented", "rare"]))).leases.remove(0);
    assert_eq!(bench.core.state().leases[&lease.id].class, Some(class("common")));
    assert_eq!(lease.instructions.as_deref(), Some("common"));
}

/// A trial goes on in the class that it began in, on a device that begins others in a faster one. What the host keeps for either class
/// it trains.
#[test]
fn a_trial_in_another_class_than_new_ones_ends_where_shards_are_kept_for_both() {
    let placement = PlacementSpec {
        replicas: Replicas::Fixed(1),
        ..PlacementSpec::new(OrderChoice::Hop, true, 1)
    };
    for trials in 1..5 {
        let mut bench = Bench::with_order(&placement, trials, 2);
        let third = enrol(&mut bench, "", 1).remove(0);
        let both = || device("common", &["fast", "rare"]);
        let first = ask_as(&mut bench, OTHER, "common").leases.remove(0);
        right(&mut bench, OTHER, &first);
        bench.assimilate();
        for _ in 0..200 {
            bench.now += 100;
            let asks =
                [(HOST, both()), (OTHER, device("common", &[])), (third, device("fast", &[]))];
            for (host, device) in asks {
                for lease in bench.ask(host, self::asks(1, device)).leases {
                    match lease.unit {
                        Unit::Train(_) => drop(right(&mut bench, host, &lease)),
                        Unit::Evaluate(_) => drop(bench.report(host, done(&lease)).unwrap()),
                    }
                }
                bench.assimilate();
            }
        }
        let waiting = bench.job().waiting;
        assert!(bench.core.state().jobs[&JOB].end.is_some(), "{trials} trials: {waiting:?}");
    }
}

/// The confirmations of a host that has lost trust count for nothing, so a class that it offers isn't proved by it.
#[test]
fn a_host_that_has_lost_trust_proves_no_class() {
    let mut bench = Bench::with_order(&placement(1000), 2, 1);
    let third = enrol(&mut bench, "", 1).remove(0);
    bench.ask(third, request(0, Vec::new()));
    let lie = bench.lease(third);
    bench.report(third, done(&lie)).unwrap();
    for host in [HOST, OTHER] {
        let lease = bench.lease(host);
        right(&mut bench, host, &lease);
    }
    assert!(bench.core.state().hosts[&third].trust.is_lost());
    show_as(&mut bench, OTHER, "other class");
    // It and the liar are of one class.
    assert!(host_view(&mut bench, HOST).alone);
    let leases = bench.ask(HOST, request(1, Vec::new())).leases;
    let begins = |lease: &Lease| matches!(&lease.unit, Unit::Train(hop) if hop.trial == TrialId(1));
    assert!(!leases.iter().any(begins), "{leases:?}");
}

#[test]
fn a_result_waits_while_its_class_has_lost_its_other_party_also_over_a_restart() {
    let mut bench = Bench::with_order(&placement(1000), 1, 1);
    let first = bench.lease(HOST);
    show_as(&mut bench, OTHER, "other class");
    let events = right(&mut bench, HOST, &first);
    assert_eq!(events.last(), Some(&Event::Challenged { lease: first.id }), "{events:?}");
    let (config, snapshot) = (*bench.core.config(), bench.core.snapshot().unwrap());
    bench.core = Core::from_snapshot(&snapshot, config).unwrap();
    bench.events(Command::Started);
    bench.now += 10 * bench.core.config().lease_term.0;
    bench.events(Command::Tick);
    assert_eq!(ask_as(&mut bench, HOST, "class").leases, [], "it can't confirm itself");
    assert_eq!(bench.assimilate(), []);
    let waiting = bench.trials()[0].waiting.clone().expect("a reason");
    assert!(waiting.starts_with("a result of it waits to be verified"), "{waiting}");
    let second = ask_as(&mut bench, OTHER, "class").leases.remove(0);
    let events = right(&mut bench, OTHER, &second);
    let confirmed = vec![first.id, second.id];
    assert!(events.contains(&Event::Verified { confirmed, refuted: Vec::new() }), "{events:?}");
}

/// Records what a server of before did where it found nobody to ask.
fn take_in_unverified(bench: &mut Bench, lease: &Lease) {
    let position = JournalPosition(bench.core.position().0 + 1);
    let (at, event) = (UnixMillis(bench.now), Event::Unverified { lease: lease.id });
    bench.core.fold(&Record { position, at, event }).unwrap();
    bench.events(Command::Started);
    bench.assimilate();
}

/// One trial with one epoch: its first hop was taken in unverified, all that followed was confirmed.
fn with_an_unverified_hop() -> Bench {
    let mut bench = Bench::with_order(&placement(1000), 1, 1);
    let first = bench.lease(HOST);
    right(&mut bench, HOST, &first);
    take_in_unverified(&mut bench, &first);
    for _ in 0..100 {
        bench.now += 100;
        for host in [HOST, OTHER] {
            for lease in bench.ask(host, request(1, Vec::new())).leases {
                match lease.unit {
                    Unit::Train(_) => drop(right(&mut bench, host, &lease)),
                    Unit::Evaluate(_) => drop(bench.report(host, done(&lease)).unwrap()),
                }
            }
            bench.assimilate();
        }
    }
    assert!(bench.core.state().jobs[&JOB].end.is_some());
    bench
}

#[test]
fn what_a_server_of_before_took_in_unverified_is_shown_wherever_it_is() {
    let mut bench = with_an_unverified_hop();
    let trial = bench.core.state().trial(JOB, TrialId(0)).unwrap();
    assert_eq!(trial.history[0].verified, Some(Verification::Unverified));
    let (job, trial) = (bench.job(), bench.trials().remove(0));
    let best = |best: Option<sojourn_protocol::view::BestView>| best.unwrap().unverified;
    assert_eq!((job.unverified, trial.unverified), (1, 1));
    assert_eq!((best(job.best), best(trial.best)), (1, 1));
    let views = [HOST, OTHER].map(|host| host_view(&mut bench, host).unverified);
    assert_eq!(views, [1, 0]);
}

#[test]
fn a_clone_of_an_unverified_trial_is_unverified() {
    let mut bench = with_an_unverified_hop();
    let values = Choices::from([("lr".to_owned(), serde_json::json!(0.5))]);
    let add = vec![NewTrial { values, from: Some(TrialId(0)) }];
    let request = Box::new(SearchRequest { add, ..SearchRequest::default() });
    let by = By::Server;
    bench
        .answer(Command::Extend { to: TO, job: JOB, epochs: 2, trial: None, reopen: false })
        .unwrap();
    bench.answer(Command::ChangeSearch { to: TO, job: JOB, request, by }).unwrap();
    let of_clone = bench.trials().remove(1);
    assert!(of_clone.origin.is_some_and(|origin| origin.epochs == 1), "{of_clone:?}");
    assert_eq!((of_clone.unverified, bench.job().unverified), (1, 1));
}

#[test]
fn a_job_without_verification_begins_in_any_class() {
    let mut bench = Bench::with_order(&PlacementSpec::new(OrderChoice::Hop, true, 1), 1, 1);
    show_as(&mut bench, OTHER, "other class");
    assert_eq!(ask_as(&mut bench, HOST, "class").leases.len(), 1);
}

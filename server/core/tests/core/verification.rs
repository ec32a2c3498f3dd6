//! Verification of results by recomputation (see `docs/internals/trust.md`).

use crate::support::{Bench, HOST, JOB, OTHER, demand, done, hop, inventory, request};
use sojourn_core::{Answer, Command, Core, Event, Fault, LeaseEnd, Query, ReplyTo};
use sojourn_protocol::{
    api::{RollbackOptions, RollbackRequest, RolledBack, WorkRequest},
    digest::Digest,
    ids::{HostId, LeaseId, TrialId, Version},
    inventory::{Device, Inventory},
    report::{Outcome, Report},
    spec::{OrderChoice, PlacementSpec, Verify},
    time::Millis,
    unit::{Lease, Unit},
    view::{JobState, Verification},
};
use sojourn_workgen::PolicyName;

const THIRD: HostId = HostId(3);

fn checked(rate: u32) -> PlacementSpec {
    let verify = Some(Verify { quorum: 2, rate }.into());
    PlacementSpec { verify, ..PlacementSpec::new(OrderChoice::Hop, true, 1) }
}

/// With a third host.
fn bench(rate: u32, trials: u32, epochs: u32) -> Bench {
    let mut bench = Bench::with_order(&checked(rate), trials, epochs);
    let token_sha256 = Digest::of(b"c");
    bench.events(Command::Enrol { to: ReplyTo(1), name: "c".into(), token_sha256 });
    bench.ask(THIRD, request(0, Vec::new()));
    bench
}

/// A report of what a host came to: right where `word` is "right".
fn came_to(word: &str, lease: &Lease) -> Report {
    let mut report = done(lease);
    if let Outcome::Trained(trained) = &mut report.outcome {
        let what = format!("{word} {:?} {}", hop(lease).base, trained.end);
        trained.checkpoint.sha256 = Digest::of(what.as_bytes());
    }
    report
}

fn report(bench: &mut Bench, host: HostId, lease: &Lease, word: &str) -> Vec<Event> {
    let report = came_to(word, lease);
    let Outcome::Trained(trained) = &report.outcome else { panic!("{report:?}") };
    let uploaded = Some(trained.checkpoint);
    bench.events(Command::Report { to: ReplyTo(1), host, report, uploaded })
}

fn verified(bench: &Bench) -> Vec<Option<Verification>> {
    let trial = bench.core.state().trial(JOB, TrialId(0)).unwrap();
    trial.history.iter().map(|hop| hop.verified).collect()
}

#[test]
fn a_result_is_taken_in_when_a_second_host_has_come_to_it() {
    let mut bench = bench(1000, 1, 1);
    let first = bench.lease(HOST);
    let events = report(&mut bench, HOST, &first, "right");
    assert_eq!(events.last(), Some(&Event::Challenged { lease: first.id }), "{events:?}");
    assert_eq!(bench.assimilate(), [], "it waits");
    assert_eq!(bench.ask(HOST, request(1, Vec::new())).leases, [], "not by the same host");
    let second = bench.lease(OTHER);
    assert_eq!(hop(&second), &hop(&first).clone_until(&came_to("right", &first)));
    assert_eq!(bench.ask(THIRD, request(1, Vec::new())).leases, [], "one is enough");
    let events = report(&mut bench, OTHER, &second, "right");
    let confirmed = vec![first.id, second.id];
    assert!(events.contains(&Event::Verified { confirmed, refuted: Vec::new() }), "{events:?}");
    assert!(events.contains(&Event::Superseded { lease: second.id }), "one is enough of them");
    let events = bench.assimilate();
    assert!(matches!(events[1], Event::Assimilated { lease, .. } if lease == first.id));
    assert_eq!(verified(&bench), [Some(Verification::Confirmed)]);
    let trust = bench.core.state().hosts[&OTHER].trust;
    assert_eq!((trust.confirmed, trust.in_row, trust.last_confirmed), (1, 1, second.id));
}

/// Which results are verified is drawn again when the server starts. Where no host comes back, nobody can be asked.
#[test]
fn where_results_are_merged_none_is_stuck_behind_one_that_nobody_can_verify() {
    let verify = Some(Verify { quorum: 2, rate: 300 }.into());
    let placement = PlacementSpec { verify, ..PlacementSpec::new(OrderChoice::Merge, true, 1) };
    let waiting = (0..100).find_map(|at| {
        let mut bench = Bench::with_order(&placement, 1, 1);
        bench.now += at;
        for host in [HOST, OTHER] {
            let lease = bench.lease(host);
            report(&mut bench, host, &lease, "right");
        }
        let trial = bench.core.state().trial(JOB, TrialId(0)).unwrap();
        (trial.awaiting.len() == 2).then_some(bench)
    });
    let mut bench = waiting.expect("two that needn't be verified");
    let (config, snapshot) = (*bench.core.config(), bench.core.snapshot().unwrap());
    let mut drawn = 0;
    for _ in 0..100 {
        bench.core = Core::from_snapshot(&snapshot, config).unwrap();
        bench.now += 1;
        // The invariants are checked: each trial's first result is in the assimilators' queue.
        let mut events = bench.events(Command::Started);
        // Nobody has come who could be asked.
        bench.now += bench.core.config().lease_term.0 + 1;
        events.extend(bench.events(Command::Tick));
        // The second is drawn when the first is taken in.
        (0..2).for_each(|_| events.extend(bench.assimilate()));
        let count = |of: fn(&Event) -> bool| events.iter().filter(|event| of(event)).count();
        let waiting = count(|event| matches!(event, Event::Challenged { .. }));
        let taken = count(|event| matches!(event, Event::Assimilated { .. }));
        assert_eq!(taken + waiting, 2, "{events:?}");
        drawn += waiting;
    }
    assert!(drawn > 0, "some are drawn");
}

/// The host that has lost trust would be the fastest, if it did what it is given.
#[test]
fn nobody_leaves_a_hop_to_a_host_that_has_lost_trust() {
    for word in ["right", "wrong"] {
        let mut bench = bench(1000, 1, 1);
        let claims = |flops: f64, slots| {
            let known = inventory("class");
            let devices = known.devices.iter();
            let devices = devices.map(|device| Device { flops, ..device.clone() }).collect();
            let inventory = Some(Inventory { devices, ..known });
            WorkRequest { inventory, ..request(slots, Vec::new()) }
        };
        let speeds = [(HOST, 1e6), (OTHER, 1e6), (THIRD, 4e6)];
        for (host, flops) in speeds {
            bench.ask(host, claims(flops, 0));
        }
        let first = bench.ask(THIRD, claims(4e6, 1)).leases.remove(0);
        report(&mut bench, THIRD, &first, word);
        for (host, flops) in &speeds[..2] {
            let verification = bench.ask(*host, claims(*flops, 1)).leases;
            verification.iter().for_each(|lease| drop(report(&mut bench, *host, lease, "right")));
        }
        bench.assimilate();
        bench.ask(THIRD, claims(4e6, 0));
        let leases = bench.ask(HOST, claims(1e6, 1)).leases;
        assert_eq!(leases.is_empty(), word == "right", "{leases:?}");
    }
}

/// The trial waits for whoever was asked: a third host is asked when that one falls silent, and not the first again.
#[test]
fn a_witness_that_falls_silent_gets_a_second_one_beside_it() {
    let policy = PolicyName::Ltrp;
    let mut bench = Bench::with_all(policy, (1, 100), (1, 1), checked(1000), "");
    let token_sha256 = Digest::of(b"c");
    bench.events(Command::Enrol { to: ReplyTo(1), name: "c".into(), token_sha256 });
    bench.ask(THIRD, request(0, Vec::new()));
    let first = bench.lease(HOST);
    report(&mut bench, HOST, &first, "right");
    let second = bench.lease(OTHER);
    for (to, host) in [(7, HOST), (8, THIRD)] {
        let request = WorkRequest { wait: Millis(60_000), ..request(1, Vec::new()) };
        bench.apply(Command::Ask { to: ReplyTo(to), host, request });
    }
    let granted = (0..9).find_map(|_| {
        bench.now += 1_000;
        let events = bench.events(Command::Tick);
        events.iter().find_map(|event| match event {
            Event::LeaseGranted { lease, host, speculative_for, .. } => {
                Some((*lease, *host, *speculative_for))
            }
            _ => None,
        })
    });
    let (copy, host, speculative_for) = granted.expect("a second witness");
    assert_eq!((host, speculative_for), (THIRD, Some(second.id)));
    let copy = Lease { id: copy, ..second.clone() };
    let events = report(&mut bench, THIRD, &copy, "right");
    let confirmed = vec![first.id, copy.id];
    assert!(events.contains(&Event::Verified { confirmed, refuted: Vec::new() }), "{events:?}");
    let events = bench.assimilate();
    let dropped = Event::LeaseEnded { lease: second.id, end: LeaseEnd::Revoked };
    assert!(events.contains(&dropped), "{events:?}");
}

trait CloneUntil {
    fn clone_until(&self, report: &Report) -> Self;
}

impl CloneUntil for sojourn_protocol::unit::Hop {
    fn clone_until(&self, report: &Report) -> Self {
        let Outcome::Trained(trained) = &report.outcome else { panic!("{report:?}") };
        Self { until: Some(trained.end.batch), ..self.clone() }
    }
}

#[test]
fn a_third_host_says_which_of_two_is_right() {
    for (first_says, second_says, refuted_is_first) in
        [("wrong", "right", true), ("right", "wrong", false)]
    {
        let mut bench = bench(1000, 1, 1);
        let first = bench.lease(HOST);
        report(&mut bench, HOST, &first, first_says);
        let second = bench.lease(OTHER);
        report(&mut bench, OTHER, &second, second_says);
        assert_eq!(bench.assimilate(), [], "nobody knows");
        let third = bench.lease(THIRD);
        let events = report(&mut bench, THIRD, &third, "right");
        let (wrong, right, liar) = match refuted_is_first {
            true => (first.id, second.id, HOST),
            false => (second.id, first.id, OTHER),
        };
        let ends = Event::Verified { confirmed: vec![right, third.id], refuted: vec![wrong] };
        assert!(events.contains(&ends), "{events:?}");
        let rejected = |event: &Event| matches!(event, Event::Rejected { lease, fault: Fault::Host, .. } if *lease == wrong);
        assert!(events.iter().any(rejected), "{events:?}");
        let events = bench.assimilate();
        assert!(matches!(events[1], Event::Assimilated { lease, .. } if lease == right));
        assert!(bench.core.state().hosts[&liar].trust.is_lost());
    }
}

#[test]
fn a_result_waits_when_the_last_who_could_verify_it_leaves_and_where_opinions_differ() {
    let mut bench = bench(1000, 1, 1);
    let first = bench.lease(HOST);
    report(&mut bench, HOST, &first, "right");
    let second = bench.lease(OTHER);
    bench.events(Command::RevokeHost { to: ReplyTo(1), host: THIRD });
    let events = bench.events(Command::RevokeHost { to: ReplyTo(1), host: OTHER });
    assert!(events.contains(&Event::LeaseEnded { lease: second.id, end: LeaseEnd::Revoked }));
    assert_eq!(bench.assimilate(), [], "nobody has confirmed it");
    let waiting = bench.trials()[0].waiting.clone().expect("a reason");
    assert!(waiting.contains("no other party's host in contact"), "{waiting}");

    let mut bench = self::bench(1000, 1, 1);
    for (host, word) in [(HOST, "one"), (OTHER, "other")] {
        let lease = bench.lease(host);
        report(&mut bench, host, &lease, word);
    }
    let events = bench.events(Command::RevokeHost { to: ReplyTo(1), host: THIRD });
    assert!(!events.iter().any(|event| matches!(event, Event::Unverified { .. })), "{events:?}");
    assert_eq!(bench.assimilate(), []);
}

#[test]
fn trust_is_earned_by_ten_confirmed_results_and_lost_by_one() {
    let trust = |in_row, refuted| sojourn_core::Trust { in_row, refuted, ..Default::default() };
    assert!(!trust(9, 0).is_earned() && trust(10, 0).is_earned() && trust(10, 1).is_earned());
    assert!(trust(9, 1).is_lost() && !trust(10, 1).is_lost() && !trust(0, 0).is_lost());
}

#[test]
fn a_ratio_of_results_is_checked_and_what_is_checked_survives_a_restart() {
    let mut bench = bench(500, 3, 4);
    let mut checked = 0;
    for n in 0..200 {
        bench.now += 100;
        for host in [HOST, OTHER, THIRD] {
            for lease in bench.ask(host, request(1, Vec::new())).leases {
                match lease.unit {
                    Unit::Train(_) => {
                        let events = report(&mut bench, host, &lease, "right");
                        let of = |event: &&Event| matches!(event, Event::Challenged { .. });
                        checked += events.iter().filter(of).count();
                        bench.assimilate();
                    }
                    Unit::Evaluate(_) => drop(bench.report(host, done(&lease)).unwrap()),
                }
            }
        }
        if n % 10 == 9 {
            let config = *bench.core.config();
            bench.core =
                sojourn_core::Core::from_snapshot(&bench.core.snapshot().unwrap(), config).unwrap();
            bench.events(Command::Started);
            for host in [HOST, OTHER, THIRD] {
                bench.ask(host, request(0, Vec::new()));
            }
        }
    }
    assert!(bench.core.state().jobs[&JOB].end.is_some());
    // Of three trials, four epochs and four shards; each is checked with a chance of a half.
    assert!((10..=38).contains(&checked), "{checked} of 48");
}

/// One host works at the one trial until it has this many versions; "right" until then.
fn train(bench: &mut Bench, host: HostId, versions: u32, word: &str) {
    for _ in 0..100 {
        bench.now += 100;
        if bench.core.state().trial(JOB, TrialId(0)).unwrap().version >= Version(versions) {
            return;
        }
        // A hop, and the evaluation that waits.
        let demand = vec![demand(2, 2, 2)];
        let both = WorkRequest { demand, ..request(0, Vec::new()) };
        for lease in bench.ask(host, both).leases {
            match lease.unit {
                Unit::Train(_) => drop(report(bench, host, &lease, word)),
                Unit::Evaluate(_) => drop(bench.report(host, done(&lease)).unwrap()),
            }
            bench.assimilate();
        }
        verify_evaluations(bench);
    }
    panic!("it doesn't come so far");
}

/// The hosts that are asked to verify an evaluation come to the same result.
fn verify_evaluations(bench: &mut Bench) {
    for host in [HOST, OTHER, THIRD] {
        let trial = bench.core.state().trial(JOB, TrialId(0)).unwrap();
        if trial.evaluations_verified().next().is_none() {
            return;
        }
        let asked = bench.ask(host, request(1, Vec::new())).leases;
        for lease in asked {
            assert!(matches!(lease.unit, Unit::Evaluate(_)), "{lease:?}");
            bench.report(host, done(&lease)).unwrap();
        }
    }
}

fn rollback(bench: &mut Bench, request: RollbackRequest) -> Vec<RolledBack> {
    match bench.answer(Command::Rollback { to: ReplyTo(1), job: JOB, request }) {
        Ok(Answer::RolledBack(back)) => back,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_trial_goes_back_to_the_end_of_an_epoch_or_to_its_start() {
    // Of a thousand results one is checked: none of these.
    let mut bench = bench(1, 1, 6);
    train(&mut bench, HOST, 4 * 4 + 2, "right");
    let late = bench.lease(HOST);
    let with = |epochs, preview| RollbackRequest::Trial {
        trial: TrialId(0),
        epochs,
        options: RollbackOptions { preview, reopen: false },
    };
    let to = |epochs| with(epochs, false);
    let back = |epochs, version, epochs_lost| {
        [RolledBack {
            trial: TrialId(0),
            epochs,
            version: Version(version),
            epochs_lost,
            ends: false,
        }]
    };
    // Four whole epochs, and two hops of the fifth.
    let position = bench.core.position();
    assert_eq!(rollback(&mut bench, with(3, true)), back(3, 12, 2));
    assert_eq!(bench.core.position(), position, "that was only looked at");
    assert_eq!(rollback(&mut bench, to(3)), back(3, 12, 2));
    let trial = bench.core.state().trial(JOB, TrialId(0)).unwrap();
    assert_eq!((trial.version, trial.chain.step(), trial.curve.len()), (Version(12), 24, 3));
    assert_eq!(trial.best.map(|best| best.epoch.0 < 3), Some(true));
    // A lease from before is of no use any more, also when its version comes again.
    train(&mut bench, OTHER, 18, "again");
    let events = report(&mut bench, HOST, &late, "right");
    assert!(events.contains(&Event::Superseded { lease: late.id }), "{events:?}");
    // The first epoch's end isn't kept any more. In silence it would begin anew.
    train(&mut bench, OTHER, 20, "again");
    let refused = |bench: &mut Bench, request| {
        bench.answer(Command::Rollback { to: ReplyTo(1), job: JOB, request }).unwrap_err().message
    };
    assert_eq!(
        refused(&mut bench, to(1)),
        "trial 0 can't go back to after epoch 1: only the ends of epochs 3, 4, 5 are kept; with 0 it begins anew"
    );
    assert_eq!(rollback(&mut bench, to(0)), back(0, 0, 5));
    train(&mut bench, OTHER, 24, "right");
    assert!(refused(&mut bench, to(7)).contains("has trained 6 epochs"));
}

#[test]
fn a_job_that_has_ended_stays_as_it_is_unless_it_is_to_go_on() {
    let mut bench = Bench::with_job(1, 1);
    bench.work_to_the_end(&[HOST]);
    let to = |reopen| RollbackRequest::Trial {
        trial: TrialId(0),
        epochs: 0,
        options: RollbackOptions { preview: false, reopen },
    };
    let refused = |bench: &mut Bench, request| {
        bench.answer(Command::Rollback { to: ReplyTo(1), job: JOB, request }).unwrap_err().message
    };
    assert!(refused(&mut bench, to(false)).ends_with("say so with `--reopen`"));
    assert_eq!(bench.job().state, JobState::Finished);
    let lost = [RolledBack {
        trial: TrialId(0),
        epochs: 0,
        version: Version(0),
        epochs_lost: 1,
        ends: false,
    }];
    assert_eq!(rollback(&mut bench, to(true)), lost);
    assert_eq!(bench.job().state, JobState::Running);
    bench.answer(Command::Cancel { to: ReplyTo(1), job: JOB }).unwrap();
    assert_eq!(
        refused(&mut bench, to(true)),
        "job 1 was cancelled: `sojourn extend 1 --epochs 1 --reopen` has it go on"
    );
    assert_eq!(bench.job().state, JobState::Cancelled);
}

#[test]
fn what_a_refuted_host_delivered_is_listed_and_can_be_taken_back() {
    let mut bench = bench(1, 1, 3);
    train(&mut bench, HOST, 2, "right");
    train(&mut bench, OTHER, 5, "poison");
    assert!(doubtful(&mut bench, OTHER).is_empty());
    // It is found out.
    let confirmed = vec![LeaseId(1)];
    let wrong = bench.core.state().trial(JOB, TrialId(0)).unwrap().history[4].lease;
    let position = sojourn_core::JournalPosition(bench.core.position().0 + 1);
    let event = Event::Verified { confirmed, refuted: vec![wrong] };
    let at = sojourn_protocol::time::UnixMillis(bench.now);
    bench.core.fold(&sojourn_core::Record { position, at, event }).unwrap();
    bench.events(Command::Started);
    assert_eq!(doubtful(&mut bench, OTHER), [3, 4, 5]);
    let options = RollbackOptions::default();
    let back = rollback(&mut bench, RollbackRequest::Host { host: OTHER, options });
    let lost = RolledBack {
        trial: TrialId(0),
        epochs: 0,
        version: Version(0),
        epochs_lost: 2,
        ends: false,
    };
    assert_eq!(back, [lost]);
    assert!(doubtful(&mut bench, OTHER).is_empty());
    bench.ask(HOST, WorkRequest { demand: vec![demand(1, 0, 0)], ..request(0, Vec::new()) });
    bench.work_to_the_end(&[HOST, THIRD]);
}

fn doubtful(bench: &mut Bench, host: HostId) -> Vec<u32> {
    match bench.answer(Command::Query { to: ReplyTo(1), query: Query::Hosts }) {
        Ok(Answer::Hosts(hosts)) => {
            let of = hosts.iter().filter(|of| of.host == host).flat_map(|of| &of.suspects);
            of.map(|doubtful| doubtful.version.0).collect()
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn where_results_are_merged_a_check_holds_up_its_shard_alone() {
    let placement = PlacementSpec { order: OrderChoice::Merge, ..checked(1000) };
    let mut bench = Bench::with_order(&placement, 1, 1);
    let slots = |bench: &mut Bench, host, slots| {
        let demand = vec![demand(slots, slots, slots)];
        bench.ask(host, WorkRequest { demand, ..request(0, Vec::new()) }).leases
    };
    let one = slots(&mut bench, HOST, 1).remove(0);
    let two = slots(&mut bench, OTHER, 1).remove(0);
    report(&mut bench, HOST, &one, "right");
    report(&mut bench, OTHER, &two, "right");
    assert_eq!(bench.assimilate(), [], "both are checked");
    // Each gets the other's, and what nobody has had so far.
    let check = slots(&mut bench, HOST, 1).remove(0);
    assert_eq!((hop(&check).start, hop(&check).base), (hop(&two).start, hop(&two).base));
    report(&mut bench, HOST, &check, "right");
    let events = bench.assimilate();
    assert!(
        events
            .iter()
            .any(|event| matches!(event, Event::Assimilated { lease, .. } if *lease == two.id))
    );
    let mut bench_hosts = [HOST, OTHER].into_iter().cycle();
    for _ in 0..40 {
        let host = bench_hosts.next().unwrap();
        for lease in slots(&mut bench, host, 1) {
            match lease.unit {
                Unit::Train(_) => drop(report(&mut bench, host, &lease, "right")),
                Unit::Evaluate(_) => drop(bench.report(host, done(&lease)).unwrap()),
            }
        }
        while !bench.assimilate().is_empty() {}
    }
    assert!(bench.core.state().jobs[&JOB].end.is_some());
    assert_eq!(verified(&bench), [Some(Verification::Confirmed); 4]);
}

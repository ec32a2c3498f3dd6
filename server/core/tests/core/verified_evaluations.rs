//! Verification of evaluations: a host that lies about them chooses no best model, and ends no trial.

use crate::support::{
    Bench, HOST, JOB, OTHER, data_with_test, done, evaluated, evaluation, fail, inventory, request,
};
use sojourn_core::{Answer, Command, Core, Event, ReplyTo};
use sojourn_protocol::{
    api::WorkRequest,
    digest::Digest,
    ids::{HostId, LeaseId, TrialId},
    inventory::Inventory,
    report::{FailureKind, Outcome, Report},
    unit::{Lease, Unit},
    view::{TrialView, Verification},
};

const THIRD: HostId = HostId(3);
/// The host that trains all hops, and holds the next one while the others evaluate.
const TRAINER: HostId = HostId(4);

/// One trial, trained for an epoch by one host of three. Next to no hop is verified.
fn trained(epochs: u32, more: &str) -> Bench {
    let verify = "order = \"hop\"\nreproducible = true\nverify = { quorum = 2, rate = 0.001 }";
    let more = format!("[placement]\n{verify}\n[search]\n{more}");
    let mut bench = Bench::with_job_on(data_with_test(), 1, epochs, &more);
    for (host, name) in [(THIRD, "c"), (TRAINER, "d")] {
        let token_sha256 = Digest::of(name.as_bytes());
        bench.events(Command::Enrol { to: ReplyTo(1), name: name.into(), token_sha256 });
        bench.ask(host, request(0, Vec::new()));
    }
    train_an_epoch(&mut bench);
    bench
}

/// Trains the trial's next epoch, and takes the first hop of the one after it.
fn train_an_epoch(bench: &mut Bench) {
    for _ in 0..2 {
        // What it holds is sent again.
        let lease = bench.lease(TRAINER);
        assert!(matches!(lease.unit, Unit::Train(_)), "{lease:?}");
        bench.finish(TRAINER, &lease);
    }
    if bench.core.state().trial(JOB, TrialId(0)).unwrap().is_runnable() {
        let held = bench.lease(TRAINER);
        assert!(matches!(held.unit, Unit::Train(_)), "{held:?}");
    }
}

/// The evaluation that a host is given.
fn evaluation_for(bench: &mut Bench, host: HostId) -> Lease {
    let lease = bench.lease(host);
    evaluation(&lease);
    lease
}

/// A host reports an evaluation with so many misses in each shard.
fn report(bench: &mut Bench, host: HostId, lease: &Lease, misses: u64) -> Vec<Event> {
    let outcome = Outcome::Evaluated(evaluated(evaluation(lease), misses));
    let report = Report { lease: lease.id, outcome };
    bench.events(Command::Report { to: ReplyTo(1), host, report, uploaded: None })
}

/// Hosts in turn are given an evaluation, and report so many misses in each shard.
fn evaluate_on(bench: &mut Bench, hosts: [HostId; 2], misses: u64) {
    for host in hosts {
        let lease = evaluation_for(bench, host);
        report(bench, host, &lease, misses);
    }
}

/// Hosts are of another numeric class from now on.
fn leave_the_class(bench: &mut Bench, hosts: &[HostId]) {
    hosts.iter().for_each(|host| join_class(bench, *host, "another class"));
}

/// Each of these hosts is of a numeric class of its own from now on.
fn scatter(bench: &mut Bench, hosts: &[HostId]) {
    hosts.iter().for_each(|host| join_class(bench, *host, &format!("of {host}")));
}

fn join_class(bench: &mut Bench, host: HostId, class: &str) {
    bench.ask(host, WorkRequest { inventory: Some(inventory(class)), ..request(0, Vec::new()) });
}

fn trial(bench: &mut Bench) -> TrialView {
    bench.trials().remove(0)
}

fn is_taken_in(events: &[Event], of: LeaseId) -> bool {
    let taken = |event: &Event| match event {
        Event::Evaluated { lease, .. } | Event::ExtraEvaluated { lease, .. } => *lease == of,
        _ => false,
    };
    events.iter().any(taken)
}

#[test]
fn a_lie_that_would_make_the_best_trial_is_refuted_by_two_others() {
    let mut bench = trained(2, "");
    let lie = evaluation_for(&mut bench, HOST);
    let events = report(&mut bench, HOST, &lie, 0);
    assert_eq!(events.last(), Some(&Event::Challenged { lease: lie.id }), "{events:?}");
    assert!(trial(&mut bench).best.is_none(), "it waits");

    let honest = evaluation_for(&mut bench, OTHER);
    assert_eq!(evaluation(&honest), evaluation(&lie));
    report(&mut bench, OTHER, &honest, 1);
    let view = trial(&mut bench);
    assert!(view.best.is_none() && view.waiting.is_none(), "a third host is there: {view:?}");

    let third = evaluation_for(&mut bench, THIRD);
    let events = report(&mut bench, THIRD, &third, 1);
    let (confirmed, refuted) = (vec![honest.id, third.id], vec![lie.id]);
    assert!(events.contains(&Event::Verified { confirmed, refuted }), "{events:?}");
    assert!(is_taken_in(&events, honest.id), "{events:?}");
    assert!(events.contains(&Event::Superseded { lease: third.id }), "one is enough of them");

    let view = trial(&mut bench);
    assert!(view.best.as_ref().is_some_and(|best| best.value < 1.0), "{view:?}");
    assert_eq!(view.curve[0].point.verified, Some(Verification::Confirmed));
    assert_eq!(bench.core.state().hosts[&HOST].trust.refuted, 1);
}

/// The first evaluation makes the only trial the best; worse ones than that are verified by chance alone.
#[test]
fn an_evaluation_on_which_nothing_depends_is_mostly_taken_in_at_once() {
    let mut bench = trained(2, "");
    let first = evaluation_for(&mut bench, HOST);
    report(&mut bench, HOST, &first, 1);
    let second = evaluation_for(&mut bench, OTHER);
    assert!(is_taken_in(&report(&mut bench, OTHER, &second, 1), first.id));
    train_an_epoch(&mut bench);
    let worse = evaluation_for(&mut bench, HOST);
    let events = report(&mut bench, HOST, &worse, 2);
    assert!(is_taken_in(&events, worse.id), "{events:?}");
    assert_eq!(trial(&mut bench).curve[1].point.verified, None);
}

#[test]
fn a_host_that_has_lost_trust_has_all_its_evaluations_verified() {
    let mut bench = trained(2, "");
    let lie = evaluation_for(&mut bench, HOST);
    report(&mut bench, HOST, &lie, 0);
    evaluate_on(&mut bench, [OTHER, THIRD], 1);
    train_an_epoch(&mut bench);
    let worse = evaluation_for(&mut bench, HOST);
    let events = report(&mut bench, HOST, &worse, 2);
    assert_eq!(events.last(), Some(&Event::Challenged { lease: worse.id }), "{events:?}");
}

#[test]
fn a_lie_does_not_end_a_trial_at_its_target() {
    let mut bench = trained(2, "target = 0.999");
    let lie = evaluation_for(&mut bench, HOST);
    report(&mut bench, HOST, &lie, 0);
    assert!(trial(&mut bench).stopped.is_none());
    evaluate_on(&mut bench, [OTHER, THIRD], 1);
    assert!(trial(&mut bench).stopped.is_none(), "nor after it was refuted");
    train_an_epoch(&mut bench);
    evaluate_on(&mut bench, [OTHER, THIRD], 0);
    assert!(trial(&mut bench).stopped.is_some(), "two have come to the same");
}

#[test]
fn the_test_that_ends_a_job_is_verified() {
    let mut bench = trained(1, "");
    evaluate_on(&mut bench, [HOST, OTHER], 1);
    let test = evaluation_for(&mut bench, HOST);
    let events = report(&mut bench, HOST, &test, 0);
    assert_eq!(events.last(), Some(&Event::Challenged { lease: test.id }), "{events:?}");
    assert!(bench.core.state().jobs[&JOB].end.is_none());
    evaluate_on(&mut bench, [OTHER, THIRD], 1);
    let job = &bench.core.state().jobs[&JOB];
    assert!(job.end.is_some());
    assert_eq!(job.trials[0].extras.len(), 1);
    assert_eq!(bench.core.state().hosts[&HOST].trust.refuted, 1);
}

#[test]
fn a_job_is_cancelled_while_an_evaluation_is_verified() {
    let mut bench = trained(1, "");
    evaluate_on(&mut bench, [HOST, OTHER], 1);
    let test = evaluation_for(&mut bench, HOST);
    report(&mut bench, HOST, &test, 1);
    let events = bench.events(Command::Cancel { to: ReplyTo(1), job: JOB });
    assert!(events.contains(&Event::Superseded { lease: test.id }), "{events:?}");
}

#[test]
fn the_evaluation_of_a_host_alone_in_its_numeric_class_waits_for_another_party() {
    let mut bench = trained(1, "target = 0.5");
    scatter(&mut bench, &[OTHER, THIRD, TRAINER]);
    let first = evaluation_for(&mut bench, HOST);
    let events = report(&mut bench, HOST, &first, 0);
    assert_eq!(events.last(), Some(&Event::Challenged { lease: first.id }), "{events:?}");
    let view = trial(&mut bench);
    assert!(view.best.is_none() && view.curve.is_empty() && view.stopped.is_none(), "{view:?}");
    let waiting = view.waiting.expect("a reason");
    assert!(waiting.contains("no other party's host in contact"), "{waiting}");
    assert_eq!(bench.job().waiting, Some(waiting));
    join_class(&mut bench, OTHER, "class");
    let second = evaluation_for(&mut bench, OTHER);
    let events = report(&mut bench, OTHER, &second, 0);
    assert!(is_taken_in(&events, first.id), "{events:?}");
    assert_eq!(trial(&mut bench).curve[0].point.verified, Some(Verification::Confirmed));
}

#[test]
fn an_evaluation_is_done_in_another_class_where_only_one_party_is_of_its_trials() {
    let mut bench = trained(1, "");
    leave_the_class(&mut bench, &[OTHER, THIRD, TRAINER]);
    assert_eq!(bench.ask(HOST, request(1, Vec::new())).leases, [], "nobody could verify it");
    let of_another =
        WorkRequest { inventory: Some(inventory("another class")), ..request(1, Vec::new()) };
    for host in [OTHER, THIRD] {
        let lease = bench.ask(host, of_another.clone()).leases.remove(0);
        report(&mut bench, host, &lease, 1);
    }
    assert_eq!(trial(&mut bench).curve[0].point.verified, Some(Verification::Confirmed));
}

/// A host of a class of its own could never be refuted.
#[test]
fn evaluations_are_left_to_hosts_of_the_class_that_trained_the_trial() {
    let mut bench = trained(1, "");
    let other: Inventory = inventory("another class");
    let ask = WorkRequest { inventory: Some(other), ..request(1, Vec::new()) };
    assert_eq!(bench.ask(OTHER, ask).leases, []);
    evaluation_for(&mut bench, THIRD);
}

#[test]
fn others_evaluate_where_no_host_of_the_class_lends_the_disk() {
    let mut bench = trained(1, "");
    let lends = |class, cache| {
        let inventory = Some(Inventory { cache: Some(cache), ..inventory(class) });
        WorkRequest { inventory, ..request(0, Vec::new()) }
    };
    for host in [HOST, TRAINER] {
        bench.ask(host, lends("class", 100));
    }
    bench.ask(THIRD, lends("another class", 1_000_000));
    let ask = lends("another class", 1_000_000);
    let ask = WorkRequest { demand: request(1, Vec::new()).demand, ..ask };
    let leases = bench.ask(OTHER, ask).leases;
    assert!(matches!(leases[0].unit, Unit::Evaluate(_)), "{leases:?}");
}

/// The others can't do it: who failed gets it again.
#[test]
fn the_only_host_of_the_class_gets_an_evaluation_again_that_it_failed() {
    let mut bench = trained(1, "");
    scatter(&mut bench, &[OTHER, THIRD, TRAINER]);
    let lease = evaluation_for(&mut bench, HOST);
    fail(&mut bench, HOST, lease.id, FailureKind::Died, "killed");
    let inventory = Some(inventory(&format!("of {OTHER}")));
    let ask = WorkRequest { inventory, ..request(1, Vec::new()) };
    assert_eq!(bench.ask(OTHER, ask).leases, []);
    evaluation_for(&mut bench, HOST);
}

#[test]
fn an_evaluation_waits_where_the_others_lend_too_little_disk_to_verify_it() {
    let mut bench = trained(1, "");
    for host in [OTHER, THIRD, TRAINER] {
        let inventory = Some(Inventory { cache: Some(100), ..inventory("class") });
        bench.ask(host, WorkRequest { inventory, ..request(0, Vec::new()) });
    }
    let lease = evaluation_for(&mut bench, HOST);
    let events = report(&mut bench, HOST, &lease, 1);
    assert_eq!(events.last(), Some(&Event::Challenged { lease: lease.id }), "{events:?}");
    let waiting = trial(&mut bench).waiting.expect("a reason");
    assert!(waiting.contains("no other party's host in contact"), "{waiting}");
}

#[test]
fn a_job_says_that_its_test_waits_for_a_third_host() {
    let mut bench = trained(1, "");
    evaluate_on(&mut bench, [HOST, OTHER], 1);
    leave_the_class(&mut bench, &[THIRD, TRAINER]);
    for (host, misses) in [(HOST, 0), (OTHER, 1)] {
        let lease = evaluation_for(&mut bench, host);
        report(&mut bench, host, &lease, misses);
    }
    let waiting = bench.job().waiting.expect("a reason");
    assert!(waiting.contains("came to different results"), "{waiting}");
}

/// One as good would become the best by its lower number.
#[test]
fn an_evaluation_as_good_as_the_best_is_verified() {
    let mut bench = trained(2, "");
    evaluate_on(&mut bench, [HOST, OTHER], 1);
    train_an_epoch(&mut bench);
    let as_good = evaluation_for(&mut bench, HOST);
    let events = report(&mut bench, HOST, &as_good, 1);
    assert_eq!(events.last(), Some(&Event::Challenged { lease: as_good.id }), "{events:?}");
}

#[test]
fn what_is_verified_survives_a_restart() {
    let mut bench = trained(1, "");
    let first = evaluation_for(&mut bench, HOST);
    report(&mut bench, HOST, &first, 1);
    let (config, snapshot) = (*bench.core.config(), bench.core.snapshot().unwrap());
    bench.core = Core::from_snapshot(&snapshot, config).unwrap();
    bench.events(Command::Started);
    for host in [HOST, OTHER, THIRD] {
        let inventory = Some(inventory("class"));
        bench.ask(host, WorkRequest { inventory, ..request(0, Vec::new()) });
    }
    let second = evaluation_for(&mut bench, OTHER);
    let events = report(&mut bench, OTHER, &second, 1);
    assert!(is_taken_in(&events, first.id), "{events:?}");
}

#[test]
fn a_trial_says_that_it_waits_for_a_third_host_where_two_differ() {
    let mut bench = trained(1, "");
    leave_the_class(&mut bench, &[THIRD, TRAINER]);
    for (host, misses) in [(HOST, 0), (OTHER, 1)] {
        let lease = evaluation_for(&mut bench, host);
        report(&mut bench, host, &lease, misses);
    }
    let waiting = trial(&mut bench).waiting.expect("a reason");
    assert!(waiting.contains("came to different results"), "{waiting}");
}

/// The host's first lease has expired; it is given the evaluation again, and reports both.
#[test]
fn a_host_does_not_confirm_itself() {
    let mut bench = trained(1, "");
    let late = evaluation_for(&mut bench, HOST);
    bench.now += 10 * bench.core.config().lease_term.0;
    bench.events(Command::Tick);
    for host in [OTHER, THIRD] {
        bench.ask(
            host,
            WorkRequest { inventory: Some(inventory("class")), ..request(0, Vec::new()) },
        );
    }
    let inventory = Some(inventory("class"));
    let again = bench.ask(HOST, WorkRequest { inventory, ..request(1, Vec::new()) }).leases;
    let [again] = again.as_slice() else { panic!("{again:?}") };
    assert_ne!(again.id, late.id);
    let events = report(&mut bench, HOST, again, 0);
    assert_eq!(events.last(), Some(&Event::Challenged { lease: again.id }), "{events:?}");
    let answer = bench.answer(Command::Report {
        to: ReplyTo(1),
        host: HOST,
        report: Report {
            lease: late.id,
            outcome: Outcome::Evaluated(evaluated(evaluation(&late), 0)),
        },
        uploaded: None,
    });
    assert!(matches!(answer, Ok(Answer::Report(_))), "{answer:?}");
    assert!(bench.core.state().trial(JOB, TrialId(0)).unwrap().curve.is_empty());
    for host in [OTHER, THIRD] {
        let lease = evaluation_for(&mut bench, host);
        bench.report(host, done(&lease)).unwrap();
    }
    let trust = bench.core.state().hosts[&HOST].trust;
    assert_eq!((trust.confirmed, trust.refuted), (0, 2));
}

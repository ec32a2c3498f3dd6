//! Which evaluation a host gets: of a checkpoint that it made itself, where there is one.

use crate::support::{
    Bench, HOST, OTHER, data_with_test, done, evaluation, hop, inventory, request,
};
use sojourn_core::{Command, ReplyTo};
use sojourn_protocol::{
    api::WorkRequest,
    ids::{HostId, TrialId},
    inventory::{Inventory, Links},
    manifest::DataSplit,
    unit::{Lease, Unit},
};

/// An ask of a host whose line brings so many bytes a second.
fn over(download: u64) -> WorkRequest {
    let links = Links { download: Some(download), upload: None };
    WorkRequest {
        inventory: Some(Inventory { links, ..inventory("class") }),
        ..request(1, Vec::new())
    }
}

fn is_evaluation(lease: &Lease) -> bool {
    matches!(lease.unit, Unit::Evaluate(_))
}

/// A job of one trial that one host has trained to its end; the other one's line is slow: a checkpoint takes it
/// about half a second. Nobody has evaluated it yet.
fn trained() -> Bench {
    let mut bench = Bench::with_job_on(data_with_test(), 1, 1, "");
    for _ in 0..2 {
        let lease = bench.lease(HOST);
        hop(&lease);
        bench.finish(HOST, &lease);
    }
    bench.ask(OTHER, WorkRequest { demand: Vec::new(), ..over(SLOW) });
    bench
}

/// Bytes a second.
const SLOW: u64 = 1_000;

#[test]
fn a_host_gets_evaluations_of_its_own_checkpoints_before_older_ones() {
    let mut bench = Bench::with_job(2, 1);
    let (one, two) = (bench.lease(HOST), bench.lease(OTHER));
    bench.finish(HOST, &one);
    bench.finish(OTHER, &two);
    // Each goes on with its own trial.
    let leases = [HOST, OTHER].map(|host| (host, bench.lease(host)));
    let of = |lease: &Lease| hop(lease).trial;
    let made: Vec<(HostId, TrialId)> = leases.iter().map(|(host, of_)| (*host, of(of_))).collect();
    for (host, lease) in &leases {
        bench.finish(*host, lease);
    }
    for (host, trial) in made.into_iter().rev() {
        let lease = bench.lease(host);
        assert_eq!(evaluation(&lease).trial, trial, "{host}");
    }
}

#[test]
fn a_host_with_a_slow_line_leaves_it_to_who_holds_the_checkpoint() {
    let mut bench = trained();
    assert_eq!(bench.ask(OTHER, over(SLOW)).leases, []);
    let lease = bench.lease(HOST);
    assert!(is_evaluation(&lease), "{lease:?}");
    // Likewise the test, which ends the job.
    bench.report(HOST, done(&lease)).unwrap();
    assert_eq!(bench.ask(OTHER, over(SLOW)).leases, []);
    let test = bench.lease(HOST);
    assert_eq!(evaluation(&test).split, DataSplit::Test);
}

#[test]
fn it_is_left_no_longer_than_fetching_would_take() {
    let mut bench = trained();
    assert_eq!(bench.ask(OTHER, over(SLOW)).leases, []);
    bench.now += 2_000;
    let lease = bench.ask(OTHER, over(SLOW)).leases.remove(0);
    assert!(is_evaluation(&lease), "{lease:?}");
}

#[test]
fn it_is_left_to_nobody_who_is_gone_and_not_for_little() {
    let mut bench = trained();
    bench.apply(Command::RevokeHost { to: ReplyTo(1), host: HOST });
    assert!(is_evaluation(&bench.ask(OTHER, over(SLOW)).leases[0]));
    let mut bench = trained();
    assert!(is_evaluation(&bench.ask(OTHER, over(1_000_000)).leases[0]));
}

/// All validation data must be there at once.
#[test]
fn a_host_that_lends_too_little_disk_for_an_evaluation_is_not_given_it() {
    let mut bench = trained();
    // Two shards of 100 bytes and a checkpoint.
    let lends = |cache| {
        let inventory = Inventory { cache: Some(cache), ..inventory("class") };
        WorkRequest { inventory: Some(inventory), ..request(1, Vec::new()) }
    };
    for host in [HOST, OTHER] {
        assert_eq!(bench.ask(host, lends(719)).leases, []);
    }
    let waiting = bench.trials()[0].waiting.clone().expect("a reason");
    assert!(waiting.contains("lends the disk for it"), "{waiting}");
    assert!(is_evaluation(&bench.ask(HOST, lends(720)).leases[0]));
}

//! Hosts that let leases run out: what is known of them, and what they aren't given.

use crate::support::{Bench, HOST, OTHER, request};
use sojourn_core::{Answer, Command, Query, ReplyTo};
use sojourn_protocol::{ids::HostId, unit::Lease};

fn reliability(bench: &mut Bench, host: HostId) -> Option<u64> {
    let Ok(Answer::Hosts(hosts)) =
        bench.answer(Command::Query { to: ReplyTo(1), query: Query::Hosts })
    else {
        panic!("hosts");
    };
    hosts.into_iter().find(|view| view.host == host).unwrap().reliability
}

/// The host takes a unit and falls silent, so many times.
fn breaks(bench: &mut Bench, host: HostId, times: usize) {
    for _ in 0..times {
        bench.lease(host);
        bench.now += 11_000;
        bench.apply(Command::Tick);
    }
}

fn asks(bench: &mut Bench, host: HostId) -> Vec<Lease> {
    bench.ask(host, request(1, Vec::new())).leases
}

#[test]
fn what_a_host_did_last_counts_most() {
    let mut bench = Bench::with_job(2, 4);
    assert_eq!(reliability(&mut bench, OTHER), None);
    breaks(&mut bench, OTHER, 1);
    assert_eq!(reliability(&mut bench, OTHER), Some(750));
    for _ in 0..3 {
        let lease = bench.lease(OTHER);
        bench.finish(OTHER, &lease);
    }
    let ratio = reliability(&mut bench, OTHER).unwrap();
    assert!((850..900).contains(&ratio), "{ratio}");
    assert_eq!(reliability(&mut bench, HOST), None, "it has had nothing");
}

#[test]
fn what_a_host_gives_back_is_no_broken_deadline() {
    let mut bench = Bench::with_job(1, 1);
    let lease = bench.lease(OTHER);
    let (to, reason) = (ReplyTo(1), "stopping".into());
    bench.apply(Command::Release { to, host: OTHER, leases: vec![lease.id], reason });
    assert_eq!(reliability(&mut bench, OTHER), None);
}

#[test]
fn the_hop_that_all_wait_for_goes_to_the_reliable_one_of_two_that_are_as_fast() {
    let mut bench = Bench::with_job(1, 1);
    asks(&mut bench, HOST).iter().for_each(|lease| drop(bench.finish(HOST, lease)));
    breaks(&mut bench, OTHER, 1);
    bench.ask(HOST, request(0, Vec::new()));
    breaks(&mut bench, OTHER, 1);
    bench.ask(HOST, request(0, Vec::new()));
    assert_eq!(asks(&mut bench, OTHER), Vec::new(), "it is left to the other");
    assert_eq!(asks(&mut bench, HOST).len(), 1);
}

#[test]
fn a_host_that_breaks_deadlines_is_better_than_none() {
    let mut bench = Bench::with_job(1, 1);
    breaks(&mut bench, OTHER, 4);
    assert_eq!(asks(&mut bench, OTHER).len(), 1, "the other is silent");
}

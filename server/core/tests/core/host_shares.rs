//! Leases name the policy by which their host divides its processor, and what was seen of a trial goes with it.

use crate::support::{Bench, HOST, JOB, OTHER, evaluation, hop, request};
use sojourn_core::Command;
use sojourn_protocol::{
    api::{HeartbeatRequest, Held, HeldState, WorkRequest},
    ids::HostId,
    quantity::Micros,
    shares::{Carried, HeldShare, LeaseShares, List},
    spec::{First, FlowCon, Order, OrderChoice, PlacementSpec, SharePolicy},
    unit::{Lease, Unit},
};

const LEAST_ATTAINED: SharePolicy = SharePolicy::First(First::new(Order::LeastAttained));

/// A job of one trial under a policy.
fn bench(host_shares: SharePolicy) -> Bench {
    let placement = PlacementSpec::new(OrderChoice::Hop, false, 1);
    Bench::with_order(&PlacementSpec { host_shares, ..placement }, 1, 3)
}

/// The share that a host reports of the trial of a lease that it holds.
fn share(attained: u64) -> HeldShare {
    let carried =
        Carried { list: List::Watching, attained: Micros(attained), ..Carried::default() };
    HeldShare { share: 0.5, carried }
}

/// The host holds a lease, and says so.
fn beat(bench: &mut Bench, host: HostId, lease: &Lease, attained: u64) {
    let state = HeldState::Running { done: 1, of: 2 };
    let holding = vec![Held { share: Some(share(attained)), ..Held::new(lease.id, state) }];
    let to = sojourn_core::ReplyTo(1);
    bench.apply(Command::Heartbeat {
        to,
        host,
        request: HeartbeatRequest::new(holding, Vec::new()),
    });
}

/// The next hop, given to this host; evaluations on the way are done.
fn next_hop(bench: &mut Bench, host: HostId) -> Lease {
    loop {
        let lease = bench.lease(host);
        if matches!(lease.unit, Unit::Train(_)) {
            return lease;
        }
        assert_eq!((evaluation(&lease).job, lease.shares), (JOB, None), "it has an equal share");
        bench.finish(host, &lease);
        bench.assimilate();
    }
}

#[test]
fn leases_of_a_job_with_equal_shares_say_nothing_of_them() {
    let mut bench = bench(SharePolicy::Equal);
    let first = next_hop(&mut bench, HOST);
    assert_eq!(first.shares, None);
    beat(&mut bench, HOST, &first, 7);
    assert_eq!(bench.resent(HOST, first.id).shares, None);
}

#[test]
fn what_a_host_has_seen_goes_with_the_trial() {
    let mut bench = bench(LEAST_ATTAINED);
    let first = next_hop(&mut bench, HOST);
    let new = LeaseShares { policy: LEAST_ATTAINED, carried: None };
    assert_eq!(first.shares, Some(new));
    beat(&mut bench, HOST, &first, 7_000_000);
    // Of a lease of another host nothing is believed.
    beat(&mut bench, OTHER, &first, 9_000_000);
    bench.finish(HOST, &first);
    bench.assimilate();
    let next = next_hop(&mut bench, OTHER);
    assert_eq!(hop(&next).trial, hop(&first).trial);
    let seen = |lease: &Lease| lease.shares.and_then(|shares| shares.carried);
    assert_eq!(seen(&next), Some(share(7_000_000).carried));
    beat(&mut bench, OTHER, &next, 9_000_000);
    // The first host still tells of the lease before.
    beat(&mut bench, HOST, &first, 7_500_000);
    let again = bench.resent(OTHER, next.id);
    assert_eq!(seen(&again), Some(share(9_000_000).carried));
}

#[test]
fn a_request_for_work_tells_of_it_too() {
    let mut bench = bench(SharePolicy::FlowCon(FlowCon::default()));
    let first = next_hop(&mut bench, HOST);
    let held = Held::new(first.id, HeldState::Running { done: 1, of: 2 });
    let holding = vec![Held { share: Some(share(5)), ..held }];
    bench.ask(HOST, WorkRequest { holding, inventory: None, ..request(0, Vec::new()) });
    bench.finish(HOST, &first);
    bench.assimilate();
    let next = next_hop(&mut bench, HOST);
    assert_eq!(next.shares.and_then(|shares| shares.carried), Some(share(5).carried));
}

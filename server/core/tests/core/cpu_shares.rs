//! Leases name the policy by which their host divides its processor, and what was seen of a trial goes with it.

use crate::support::{Bench, HOST, JOB, OTHER, evaluation, hop, request};
use sojourn_core::Command;
use sojourn_protocol::{
    api::{HeartbeatRequest, Held, HeldState, WorkRequest},
    cpu_shares::{Carried, HeldCpuShare, LeaseCpuShares, List},
    ids::HostId,
    quantity::Micros,
    spec::{CpuSharePolicy, First, FlowCon, Order, OrderChoice, PlacementSpec},
    unit::{Lease, Unit},
};

const LEAST_ATTAINED: CpuSharePolicy = CpuSharePolicy::First(First::new(Order::LeastAttained));

/// A job of one trial under a policy.
fn bench(cpu_shares: CpuSharePolicy) -> Bench {
    let placement = PlacementSpec::new(OrderChoice::Hop, false, 1);
    Bench::with_order(&PlacementSpec { cpu_shares, ..placement }, 1, 3)
}

/// The CPU share that a host reports of the trial of a lease that it holds.
fn cpu_share(attained: u64) -> HeldCpuShare {
    let carried =
        Carried { list: List::Watching, attained: Micros(attained), ..Carried::default() };
    HeldCpuShare { cpu_share: 0.5, carried }
}

/// The host holds a lease, and says so.
fn beat(bench: &mut Bench, host: HostId, lease: &Lease, attained: u64) {
    let state = HeldState::Running { done: 1, of: 2 };
    let holding = vec![Held { cpu_share: Some(cpu_share(attained)), ..Held::new(lease.id, state) }];
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
        assert_eq!(
            (evaluation(&lease).job, lease.cpu_shares),
            (JOB, None),
            "it has an equal share"
        );
        bench.finish(host, &lease);
        bench.assimilate();
    }
}

#[test]
fn leases_of_a_job_with_equal_cpu_shares_say_nothing_of_them() {
    let mut bench = bench(CpuSharePolicy::Equal);
    let first = next_hop(&mut bench, HOST);
    assert_eq!(first.cpu_shares, None);
    beat(&mut bench, HOST, &first, 7);
    assert_eq!(bench.resent(HOST, first.id).cpu_shares, None);
}

#[test]
fn what_a_host_has_seen_goes_with_the_trial() {
    let mut bench = bench(LEAST_ATTAINED);
    let first = next_hop(&mut bench, HOST);
    let new = LeaseCpuShares { policy: LEAST_ATTAINED, carried: None };
    assert_eq!(first.cpu_shares, Some(new));
    beat(&mut bench, HOST, &first, 7_000_000);
    // Of a lease of another host nothing is believed.
    beat(&mut bench, OTHER, &first, 9_000_000);
    bench.finish(HOST, &first);
    bench.assimilate();
    let next = next_hop(&mut bench, OTHER);
    assert_eq!(hop(&next).trial, hop(&first).trial);
    let seen = |lease: &Lease| lease.cpu_shares.and_then(|cpu_shares| cpu_shares.carried);
    assert_eq!(seen(&next), Some(cpu_share(7_000_000).carried));
    beat(&mut bench, OTHER, &next, 9_000_000);
    // The first host still tells of the lease before.
    beat(&mut bench, HOST, &first, 7_500_000);
    let again = bench.resent(OTHER, next.id);
    assert_eq!(seen(&again), Some(cpu_share(9_000_000).carried));
}

#[test]
fn a_request_for_work_tells_of_it_too() {
    let mut bench = bench(CpuSharePolicy::FlowCon(FlowCon::default()));
    let first = next_hop(&mut bench, HOST);
    let held = Held::new(first.id, HeldState::Running { done: 1, of: 2 });
    let holding = vec![Held { cpu_share: Some(cpu_share(5)), ..held }];
    bench.ask(HOST, WorkRequest { holding, inventory: None, ..request(0, Vec::new()) });
    bench.finish(HOST, &first);
    bench.assimilate();
    let next = next_hop(&mut bench, HOST);
    assert_eq!(
        next.cpu_shares.and_then(|cpu_shares| cpu_shares.carried),
        Some(cpu_share(5).carried)
    );
}

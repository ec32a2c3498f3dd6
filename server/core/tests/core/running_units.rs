//! Hosts' reports on running units are shown with the units, for as long as these run.

use crate::support::{Bench, HOST, OTHER, request};
use sojourn_core::{Answer, Command, Query, ReplyTo};
use sojourn_protocol::{
    api::{HeartbeatRequest, Held, HeldState},
    cpu_shares::{Carried, HeldCpuShare, List},
    ids::HostId,
    spec::{CpuSharePolicy, First, FlowCon, Order, OrderChoice, PlacementSpec},
    unit::Lease,
    usage::UnitUsage,
    view::{CpuShareView, HeldView},
};

const RUNS: HeldState = HeldState::Running { done: 1, of: 5 };

pub(crate) fn usage(cores: f64) -> UnitUsage {
    UnitUsage {
        cores,
        memory: 1 << 20,
        read_per_second: 0.0,
        written_per_second: 9.0,
        received: Some(3),
        loss: Some(0.5),
    }
}

fn told(lease: &Lease, state: HeldState, cores: f64) -> Held {
    Held { usage: Some(usage(cores)), ..Held::new(lease.id, state) }
}

fn beat(bench: &mut Bench, host: HostId, held: Held) {
    let command = Command::Heartbeat {
        to: ReplyTo(1),
        host,
        request: HeartbeatRequest::new(vec![held], Vec::new()),
    };
    bench.apply(command);
}

/// The one lease that the host holds, as users see it.
fn shown(bench: &mut Bench) -> HeldView {
    let query = Query::Host { host: HOST };
    let Ok(Answer::HostDetail(detail)) = bench.answer(Command::Query { to: ReplyTo(1), query })
    else {
        panic!("no view of the host");
    };
    let [lease] = &detail.host.leases[..] else { panic!("{detail:?}") };
    lease.clone()
}

#[test]
fn what_a_unit_takes_is_shown_while_it_runs() {
    let mut bench = Bench::with_job(1, 1);
    let lease = bench.lease(HOST);
    let waits = told(&lease, HeldState::Waiting, 1.0);
    beat(&mut bench, HOST, waits);
    assert_eq!((shown(&mut bench).running, shown(&mut bench).usage), (false, None));
    // Of a lease of another host nothing is believed.
    beat(&mut bench, OTHER, told(&lease, RUNS, 7.0));
    beat(&mut bench, HOST, Held::new(lease.id, RUNS));
    assert_eq!((shown(&mut bench).running, shown(&mut bench).usage), (true, None));
    beat(&mut bench, HOST, told(&lease, RUNS, 1.5));
    assert_eq!(shown(&mut bench).usage, Some(usage(1.5)));
    // A request for work doesn't say it.
    bench.ask(HOST, request(0, vec![(lease.id, RUNS)]));
    assert_eq!(shown(&mut bench).usage, Some(usage(1.5)));
    beat(&mut bench, HOST, told(&lease, RUNS, 0.5));
    assert_eq!(shown(&mut bench).usage, Some(usage(0.5)));
    beat(&mut bench, HOST, told(&lease, HeldState::Finished, 0.5));
    let view = shown(&mut bench);
    assert_eq!((view.running, view.usage, view.cpu_share), (false, None, None));
}

#[test]
fn nothing_of_an_ended_lease_is_kept() {
    for silent in [false, true] {
        let mut bench = Bench::with_job(1, 1);
        let lease = bench.lease(HOST);
        beat(&mut bench, HOST, told(&lease, RUNS, 1.5));
        if silent {
            bench.now += 1_000_000_000;
            bench.apply(Command::Tick);
            assert!(!bench.core.state().leases.contains_key(&lease.id));
            // It is heard of again, and has no lease any more.
            beat(&mut bench, HOST, told(&lease, RUNS, 1.5));
        } else {
            bench.finish(HOST, &lease);
        }
        // The bench checks the invariants after each command: no ended unit counts as one that runs.
    }
}

#[test]
fn a_cpu_share_is_shown_with_its_list_where_the_policy_has_lists() {
    let first = CpuSharePolicy::First(First::new(Order::LeastAttained));
    let flowcon = CpuSharePolicy::FlowCon(FlowCon::default());
    for (cpu_shares, list) in [(first, None), (flowcon, Some(List::Watching))] {
        let placement = PlacementSpec::new(OrderChoice::Hop, false, 1);
        let mut bench = Bench::with_order(&PlacementSpec { cpu_shares, ..placement }, 1, 1);
        let lease = bench.lease(HOST);
        let carried = Carried { list: List::Watching, ..Carried::default() };
        let cpu_share = HeldCpuShare { cpu_share: 0.5, carried };
        beat(&mut bench, HOST, Held { cpu_share: Some(cpu_share), ..Held::new(lease.id, RUNS) });
        assert_eq!(shown(&mut bench).cpu_share, Some(CpuShareView { cpu_share: 0.5, list }));
    }
}

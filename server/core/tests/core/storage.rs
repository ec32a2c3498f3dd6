//! A server's disk with too little room: what is given out, and what goes on.

use crate::support::{Bench, HOST, OTHER, inventory, request};
use sojourn_core::{Answer, Command, Effect, Event, ReplyTo};
use sojourn_protocol::{
    api::{HeldState, WorkRequest},
    inventory::Inventory,
    reason::WaitReason,
    storage::{Storage, StorageLevel},
    time::Millis,
};

/// An ask that is held open.
const WAITS: ReplyTo = ReplyTo(7);

fn storage(level: StorageLevel) -> Storage {
    Storage { level, free: 5_000_000, reserve: 9_000_000 }
}

fn granted(events: &[Event]) -> usize {
    events.iter().filter(|event| matches!(event, Event::LeaseGranted { .. })).count()
}

#[test]
fn running_work_is_finished_and_nothing_new_is_given_out_until_there_is_room() {
    let mut bench = Bench::with_job(2, 1);
    let lease = bench.lease(HOST);
    assert_eq!(bench.events(Command::Storage(storage(StorageLevel::Low))), []);
    let waiting = WorkRequest { wait: Millis(60_000), ..request(1, Vec::new()) };
    let asks = Command::Ask { to: WAITS, host: OTHER, request: waiting };
    assert_eq!(granted(&bench.events(asks)), 0);
    // The lease that it holds is sent again to a host that has restarted.
    assert_eq!(bench.resent(HOST, lease.id), lease);
    let holding = vec![(lease.id, HeldState::Running { done: 1, of: 3 })];
    assert_eq!(bench.ask(HOST, request(1, holding)).leases, []);
    assert_eq!(bench.job().waiting, None, "a unit runs");
    let done = bench.finish(HOST, &lease);
    assert!(done.iter().any(|event| matches!(event, Event::Assimilated { .. })), "{done:?}");
    assert_eq!(granted(&done), 0, "{done:?}");
    let waits = WaitReason::Storage(storage(StorageLevel::Low)).to_string();
    assert!(waits.contains("5 MB free and keeps 9 MB"), "{waits}");
    assert_eq!(bench.job().waiting, Some(waits.clone()));
    assert_eq!(bench.trials()[0].waiting, Some(waits));

    let goes_on = bench.apply(Command::Storage(storage(StorageLevel::Enough)));
    let answered = goes_on.iter().find_map(|effect| match effect {
        Effect::Reply { to: WAITS, answer: Ok(answer), .. } => Some(&**answer),
        _ => None,
    });
    let Some(Answer::Work(work)) = answered else { panic!("{goes_on:?}") };
    assert_eq!(work.leases.len(), 1, "the host that waits has it at once");
    assert_eq!(bench.job().waiting, None);
}

#[test]
fn a_full_disk_gives_assimilators_nothing_until_there_is_room() {
    let mut bench = Bench::with_job(1, 1);
    let lease = bench.lease(HOST);
    bench.events(Command::Storage(storage(StorageLevel::Full)));
    // What was uploaded before may be reported.
    bench.report(HOST, crate::support::done(&lease)).unwrap();
    assert_eq!(bench.assimilate(), []);
    let effects = bench.apply(Command::Storage(storage(StorageLevel::Low)));
    assert_eq!(effects, [Effect::Assimilate]);
    assert!(!bench.assimilate().is_empty());
}

#[test]
fn hosts_whose_own_disks_have_too_little_room_are_why_a_job_waits() {
    let mut bench = Bench::with_job(1, 1);
    let full = |host, bench: &mut Bench| {
        let inventory = Inventory { disk_is_low: true, ..inventory("class") };
        let demand = Vec::new();
        bench.ask(host, WorkRequest { demand, inventory: Some(inventory), ..request(0, vec![]) })
    };
    assert_eq!(full(HOST, &mut bench).leases, []);
    assert_eq!(bench.job().waiting, None, "the other one has room");
    full(OTHER, &mut bench);
    assert_eq!(bench.job().waiting, Some(WaitReason::FullHosts.to_string()));
}

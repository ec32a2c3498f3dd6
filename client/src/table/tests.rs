//! Stages of leases: what counts, what is told, and what ends.

use super::*;
use sojourn_protocol::api::HeldState;
use std::sync::atomic::Ordering;

const EVERY: Millis = Millis(5000);

fn table(leases: &[u64]) -> Table {
    let table = Table::new();
    for lease in leases {
        assert_eq!(table.take(LeaseId(*lease), "cpu", EVERY), Taken::New);
    }
    table
}

/// Idle and wanted, of so many slots.
fn demand(table: &Table, slots: u32) -> (u32, u32) {
    let demand = table.demand(&[("cpu", slots)]);
    (demand[0].idle, demand[0].wanted)
}

#[test]
fn one_unit_ahead_per_slot_is_asked_for_and_finished_ones_do_not_count() {
    let table = table(&[1, 2]);
    assert_eq!(demand(&table, 2), (0, 2));
    table.running(LeaseId(1), Progress { done: 0, of: 4 });
    assert!(table.finished(LeaseId(1), None));
    assert_eq!(demand(&table, 2), (1, 3));
    let held = |lease, state| Held::new(LeaseId(lease), state);
    assert_eq!(table.holding(), [held(1, HeldState::Finished), held(2, HeldState::Waiting)]);
    table.reporting(LeaseId(1));
    table.reported(LeaseId(1));
    assert_eq!(table.holding(), [held(2, HeldState::Waiting)]);
    assert_eq!(table.awaiting_end(), [LeaseId(1)]);
}

#[test]
fn what_is_being_fetched_is_told_as_it_comes() {
    let table = table(&[1]);
    let held = |state| [Held::new(LeaseId(1), state)];
    let counts = [Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(7))];
    table.fetching(LeaseId(1), counts.to_vec());
    assert_eq!(table.holding(), held(HeldState::Fetching { fetched: 7 }));
    counts[0].store(5, Ordering::Relaxed);
    assert_eq!(table.holding(), held(HeldState::Fetching { fetched: 12 }));
    assert_eq!(demand(&table, 1), (0, 1));
    table.fetched(LeaseId(1));
    assert_eq!(table.holding(), held(HeldState::Waiting));
    table.running(LeaseId(1), Progress { done: 0, of: 4 });
    table.fetching(LeaseId(1), Vec::new());
    assert_eq!(table.holding(), held(HeldState::Running { done: 0, of: 4 }));
}

#[test]
fn a_unit_that_waits_in_its_slot_is_told_with_the_bytes_that_come() {
    let table = table(&[1]);
    let held = |state| [Held::new(LeaseId(1), state)];
    let count = Arc::new(AtomicU64::new(7));
    table.fetching(LeaseId(1), vec![Arc::clone(&count)]);
    table.awaits(LeaseId(1), true);
    assert_eq!(table.holding(), held(HeldState::Fetching { fetched: 7 }), "it has no slot yet");
    table.fetched(LeaseId(1));
    table.running(LeaseId(1), Progress { done: 1, of: 4 });
    table.ends_early(LeaseId(1));
    table.awaits(LeaseId(1), true);
    count.store(9, Ordering::Relaxed);
    assert_eq!(table.holding(), held(HeldState::Awaiting { done: 1, of: 4, fetched: 9 }));
    assert_eq!((demand(&table, 1), table.ending(), table.is_busy()), ((0, 1), 1, true));
    assert!(table.stop_unstarted().is_empty() && table.stop_others().is_empty());
    table.awaits(LeaseId(1), false);
    assert_eq!(table.holding(), held(HeldState::Running { done: 1, of: 4 }));
}

#[test]
fn what_is_being_sent_is_told_as_it_goes() {
    let table = table(&[1]);
    let sent = Arc::new(AtomicU64::new(0));
    table.running(LeaseId(1), Progress { done: 0, of: 4 });
    assert!(table.finished(LeaseId(1), None));
    table.sending(LeaseId(1), Arc::clone(&sent));
    sent.store(7, Ordering::Relaxed);
    let held = |state| [Held::new(LeaseId(1), state)];
    assert_eq!(table.holding(), held(HeldState::Sending { sent: 7 }));
    table.reporting(LeaseId(1));
    assert_eq!(table.holding(), held(HeldState::Finished));
}

#[test]
fn a_lease_that_was_had_is_never_taken_again() {
    let table = table(&[1]);
    assert_eq!(table.take(LeaseId(1), "cpu", EVERY), Taken::Held);
    assert_eq!(table.dropped(LeaseId(1), false), Dropped::Unit);
    assert_eq!(table.take(LeaseId(1), "cpu", EVERY), Taken::Over);
    assert!(!table.finished(LeaseId(1), None));
    assert!(table.holding().is_empty());
}

#[test]
fn a_drop_that_a_report_overtook_changes_nothing() {
    let table = table(&[1]);
    assert!(table.finished(LeaseId(1), None));
    table.reporting(LeaseId(1));
    assert_eq!(table.dropped(LeaseId(1), false), Dropped::Nothing);
    table.reported(LeaseId(1));
    assert_eq!(table.dropped(LeaseId(1), false), Dropped::Nothing);
    assert_eq!(table.dropped(LeaseId(1), true), Dropped::Result);
    assert_eq!(table.dropped(LeaseId(1), true), Dropped::Nothing);
}

#[test]
fn what_is_being_given_back_counts_as_held_but_not_as_work() {
    let table = table(&[1]);
    assert!(table.returning(LeaseId(1)));
    assert_eq!(demand(&table, 1), (1, 2));
    assert_eq!(table.holding().len(), 1);
    assert_eq!(table.heartbeat_every(), Some(Duration::from_secs(5)));
    table.over(LeaseId(1));
    assert_eq!(table.heartbeat_every(), None);
}

#[tokio::test]
async fn dropping_aborts_the_task_even_one_that_comes_late() {
    let table = table(&[1, 2]);
    let first = tokio::spawn(std::future::pending::<()>());
    table.worked_by(LeaseId(1), first.abort_handle());
    table.dropped(LeaseId(1), false);
    assert!(first.await.unwrap_err().is_cancelled());
    table.dropped(LeaseId(2), false);
    let second = tokio::spawn(std::future::pending::<()>());
    table.worked_by(LeaseId(2), second.abort_handle());
    assert!(second.await.unwrap_err().is_cancelled());
}

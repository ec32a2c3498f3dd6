//! Hosts that weren't heard of for long are forgotten, and no others.

use crate::support::{Bench, HOST, OTHER, request};
use sojourn_core::{Answer, Command, Core, DEFAULT_FORGET_HOSTS, Event, Holder, Query, ReplyTo};
use sojourn_protocol::{digest::Digest, error::ErrorKind, ids::HostId};

const TO: ReplyTo = ReplyTo(1);
const DAY: u64 = 24 * 3600 * 1000;

fn days(days: u64) -> u64 {
    days * DAY
}

/// A day passes, in which these hosts are heard of.
fn day(bench: &mut Bench, present: &[HostId]) -> Vec<Event> {
    bench.now += DAY;
    let mut events = bench.events(Command::Tick);
    for host in present {
        bench.ask(*host, request(0, Vec::new()));
    }
    events.retain(|event| matches!(event, Event::HostsSeen { .. } | Event::HostForgotten { .. }));
    events
}

fn forgotten(events: &[Event]) -> Vec<HostId> {
    let forgotten = |event: &Event| match event {
        Event::HostForgotten { host } => Some(*host),
        _ => None,
    };
    events.iter().filter_map(forgotten).collect()
}

fn restored(bench: &Bench) -> Core {
    Core::from_snapshot(&bench.core.snapshot().unwrap(), *bench.core.config()).unwrap()
}

fn holder(bench: &mut Bench, name: &str) -> Option<Holder> {
    let query = Query::HolderOf { token_sha256: Digest::of(name.as_bytes()) };
    match bench.answer(Command::Query { to: TO, query }).unwrap() {
        Answer::HolderOf(holder) => holder,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_host_that_is_away_for_long_is_forgotten_and_its_id_is_not_given_again() {
    let mut bench = Bench::new();
    let mut away = 0;
    let mut notes = 0;
    let at = loop {
        // The other host is heard of each day, the first one for 40 days.
        let present: &[HostId] = if away < 40 { &[HOST, OTHER] } else { &[HOST] };
        let events = day(&mut bench, present);
        away += 1;
        notes += events.iter().filter(|event| matches!(event, Event::HostsSeen { .. })).count();
        if !forgotten(&events).is_empty() {
            assert_eq!(forgotten(&events), [OTHER]);
            break away;
        }
        assert!(away < 400, "it is never forgotten");
    };
    let after = DEFAULT_FORGET_HOSTS.0 / DAY;
    assert!((40 + after..=40 + after * 5 / 3).contains(&at), "after {at} days");
    // Each note is for a third of that time.
    assert!(notes < 12, "{notes}");
    let state = bench.core.state();
    assert!(state.owner_of(OTHER).is_none() && state.owner_of(HOST).is_some());
    assert_eq!(holder(&mut bench, "b"), None);
    let asked = Command::Ask { to: TO, host: OTHER, request: request(1, Vec::new()) };
    let refused = bench.answer(asked).unwrap_err();
    assert_eq!((refused.kind, refused.unknown_token), (ErrorKind::Unauthorized, true));
    assert_eq!(restored(&bench).state(), bench.core.state());
    let enrol = Command::Enrol { to: TO, name: "c".into(), token_sha256: Digest::of(b"c") };
    assert_eq!(bench.answer(enrol).unwrap(), Answer::Enrolled(HostId(3)));
}

#[test]
fn a_host_that_is_heard_of_now_and_then_is_kept_over_restarts() {
    let mut bench = Bench::new();
    for at in 0..300 {
        // Once in 80 days, and the server starts anew each week.
        let present: &[HostId] = if at % 80 == 0 { &[HOST, OTHER] } else { &[HOST] };
        let events = day(&mut bench, present);
        assert!(forgotten(&events).is_empty(), "on day {at}");
        if at % 7 == 0 {
            bench.core = restored(&bench);
            bench.events(Command::Started);
        }
    }
}

#[test]
fn a_server_that_was_off_for_long_lets_its_hosts_come_back() {
    let mut bench = Bench::new();
    for _ in 0..40 {
        day(&mut bench, &[HOST, OTHER]);
    }
    bench.core = restored(&bench);
    bench.now += days(500);
    bench.events(Command::Started);
    bench.now += 3600 * 1000;
    let first = bench.events(Command::Tick);
    assert!(forgotten(&first).is_empty(), "{first:?}");
    bench.ask(HOST, request(0, Vec::new()));
    // The time in which no server was there doesn't count: the other host has as long as ever.
    for n in 0..80 {
        assert_eq!(forgotten(&day(&mut bench, &[HOST])), [], "after {n} days");
    }
    let mut lost = Vec::new();
    for _ in 0..80 {
        lost.extend(forgotten(&day(&mut bench, &[HOST])));
    }
    assert_eq!(lost, [OTHER]);
}

#[test]
fn a_host_with_a_lease_or_a_result_is_kept_and_so_is_one_that_was_revoked() {
    let mut bench = Bench::with_job(2, 1);
    let lease = bench.lease(HOST);
    bench.report(HOST, crate::support::done(&lease)).unwrap();
    bench.events(Command::RevokeHost { to: TO, host: OTHER });
    // Nobody assimilates: the result waits.
    for at in 0..400 {
        assert!(forgotten(&day(&mut bench, &[])).is_empty(), "on day {at}");
    }
    assert_eq!(holder(&mut bench, "b"), Some(Holder::Revoked), "it may not enrol again by itself");
    assert_eq!(restored(&bench).state(), bench.core.state());
    bench.assimilate();
    // Ended leases are forgotten with the events that come.
    bench.now += 2 * DAY;
    let enrol = Command::Enrol { to: TO, name: "c".into(), token_sha256: Digest::of(b"c") };
    let mut lost = forgotten(&bench.events(enrol));
    for _ in 0..5 {
        lost.extend(forgotten(&day(&mut bench, &[])));
    }
    assert_eq!(lost, [HOST]);
    assert_eq!(bench.core.check_invariants(), Ok(()));
}

#[test]
fn a_start_whose_clock_is_months_ahead_forgets_nobody_who_was_there_before() {
    let mut bench = Bench::new();
    for _ in 0..100 {
        day(&mut bench, &[HOST, OTHER]);
    }
    bench.core = restored(&bench);
    bench.now += days(200);
    bench.events(Command::Started);
    // The other host is away for some weeks.
    for n in 0..30 {
        assert_eq!(forgotten(&day(&mut bench, &[HOST])), [], "after {n} days");
    }
    let gone = (0..200).find(|_| !forgotten(&day(&mut bench, &[HOST])).is_empty());
    assert!(gone.is_some(), "but not for ever");
}

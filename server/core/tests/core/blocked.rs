//! Hosts that an operator has blocked: they get nothing new, and finish what they have.

use crate::support::{Bench, HOST, OTHER, request};
use sojourn_core::{Answer, By, Command, Core, Event, Query, ReplyTo};
use sojourn_protocol::{
    api::WorkRequest,
    error::{ApiError, ErrorKind},
    ids::{HostId, TokenId},
    time::Millis,
    view::HostView,
};

const TO: ReplyTo = ReplyTo(1);

fn block(bench: &mut Bench, host: HostId, blocked: bool) -> Result<HostView, ApiError> {
    let by = By::Token(TokenId(2));
    match bench.answer(Command::BlockHost { to: TO, host, blocked, by })? {
        Answer::Host(view) => Ok(*view),
        other => panic!("{other:?}"),
    }
}

fn view(bench: &mut Bench, host: HostId) -> HostView {
    let answer = bench.answer(Command::Query { to: TO, query: Query::Hosts }).unwrap();
    let Answer::Hosts(hosts) = answer else { panic!("{answer:?}") };
    hosts.into_iter().find(|view| view.host == host).unwrap()
}

#[test]
fn a_blocked_host_finishes_what_it_has_and_gets_nothing_new() {
    let mut bench = Bench::with_job(2, 3);
    let lease = bench.lease(HOST);
    assert_eq!(block(&mut bench, HOST, true).unwrap().status(), "blocked");
    assert_eq!(view(&mut bench, HOST).leases.len(), 1, "it keeps its lease");
    bench.finish(HOST, &lease);
    assert_eq!(view(&mut bench, HOST).used, 1, "and its result counts");
    assert!(bench.ask(HOST, request(1, Vec::new())).leases.is_empty());
    // Another host does the work.
    let other = bench.lease(OTHER);
    bench.finish(OTHER, &other);
    assert!(!block(&mut bench, HOST, false).unwrap().blocked);
    bench.lease(HOST);
}

#[test]
fn a_host_that_waits_for_work_gets_it_as_soon_as_it_is_unblocked() {
    let mut bench = Bench::with_job(1, 1);
    block(&mut bench, HOST, true).unwrap();
    block(&mut bench, OTHER, true).unwrap();
    let ask = WorkRequest { wait: Millis(30_000), ..request(1, Vec::new()) };
    let asked = bench.apply(Command::Ask { to: ReplyTo(7), host: HOST, request: ask });
    assert!(
        asked.iter().all(|effect| !format!("{effect:?}").contains("LeaseGranted")),
        "{asked:?}"
    );
    assert!(bench.job().waiting.unwrap().contains("every host in contact is blocked"));
    let by = By::Server;
    let unblock = Command::BlockHost { to: TO, host: HOST, blocked: false, by };
    let events = bench.events(unblock);
    assert!(
        matches!(
            &events[..],
            [Event::HostUnblocked { .. }, .., Event::LeaseGranted { host: HOST, .. }]
        ),
        "{events:?}"
    );
}

#[test]
fn a_block_is_journalled_once_with_who_asked_for_it_and_outlasts_a_restart() {
    let mut bench = Bench::with_job(1, 1);
    let by = By::Token(TokenId(2));
    let command = Command::BlockHost { to: TO, host: HOST, blocked: true, by };
    assert_eq!(bench.events(command.clone()), [Event::HostBlocked { host: HOST, by }]);
    assert_eq!(bench.events(command), []);
    let restored = Core::from_snapshot(&bench.core.snapshot().unwrap(), *bench.core.config());
    assert_eq!(restored.unwrap().state(), bench.core.state());
    assert!(bench.core.state().hosts[&HOST].blocked);
    assert_eq!(block(&mut bench, HostId(99), true).unwrap_err().kind, ErrorKind::NotFound);
    bench.apply(Command::RevokeHost { to: TO, host: OTHER });
    assert_eq!(block(&mut bench, OTHER, true).unwrap_err().kind, ErrorKind::Conflict);
}

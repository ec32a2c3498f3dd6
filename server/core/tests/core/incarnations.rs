//! Two machines with one identity are told apart, and a client that was started again isn't disturbed.

use crate::support::{Bench, HOST, OTHER, request};
use sojourn_core::{Answer, Command, Effect, Event, Query, ReplyTo};
use sojourn_protocol::{
    api::{Held, HeldState, WorkRequest},
    error::{ApiError, ErrorKind},
    incarnation::Incarnation,
    time::Millis,
    view::HostView,
};

const TO: ReplyTo = ReplyTo(1);
const FIRST: Incarnation = Incarnation(0xa);
const COPY: Incarnation = Incarnation(0xb);

fn hear(
    bench: &mut Bench,
    incarnation: Incarnation,
    rival: Option<Incarnation>,
) -> Result<(), ApiError> {
    let command = Command::HearIncarnation { to: TO, host: HOST, incarnation, rival };
    bench.answer(command).map(|answer| assert_eq!(answer, Answer::IncarnationHeard))
}

fn view(bench: &mut Bench) -> HostView {
    let answer = bench.answer(Command::Query { to: TO, query: Query::Hosts }).unwrap();
    let Answer::Hosts(hosts) = answer else { panic!("{answer:?}") };
    hosts.into_iter().find(|view| view.host == HOST).unwrap()
}

/// A refusal that an open request was answered with.
fn refusal(effects: &[Effect], of: ReplyTo) -> ApiError {
    let mut replies = effects.iter().filter_map(|effect| match effect {
        Effect::Reply { to, answer: Err(error), .. } if *to == of => Some(error.clone()),
        _ => None,
    });
    replies.next_back().unwrap_or_else(|| panic!("{effects:?}"))
}

#[test]
fn a_copy_takes_no_unit_of_the_machine_whose_identity_it_has() {
    let mut bench = Bench::with_job(2, 3);
    hear(&mut bench, FIRST, None).unwrap();
    let lease = bench.lease(HOST);
    // The machine has a request open; the copy, of another numeric class, comes.
    let open = WorkRequest { wait: Millis(30_000), inventory: None, ..request(0, Vec::new()) };
    let held = Held::new(lease.id, HeldState::Waiting);
    let open = WorkRequest { holding: vec![held], ..open };
    bench.apply(Command::Ask { to: ReplyTo(7), host: HOST, request: open });
    let command = Command::HearIncarnation { to: TO, host: HOST, incarnation: COPY, rival: None };
    let effects = bench.apply(command);
    assert_eq!(refusal(&effects, TO), ApiError::with_rival(FIRST));
    assert_eq!(refusal(&effects, ReplyTo(7)), ApiError::with_rival(COPY));
    assert_eq!(hear(&mut bench, FIRST, Some(COPY)), Ok(()));
    let refused = hear(&mut bench, COPY, Some(FIRST)).unwrap_err();
    assert_eq!((refused.kind, refused.copied_identity), (ErrorKind::Unauthorized, true));
    assert_eq!((view(&mut bench).leases.len(), view(&mut bench).copies), (1, 1));
    bench.finish(HOST, &lease);
    assert_eq!(view(&mut bench).used, 1);
}

#[test]
fn a_copy_that_has_taken_the_place_is_refused_when_the_other_shows_that_it_is_there() {
    let mut bench = Bench::with_job(2, 3);
    hear(&mut bench, FIRST, None).unwrap();
    assert_eq!(hear(&mut bench, COPY, None), Ok(()), "it may be a restart");
    let open = WorkRequest { wait: Millis(30_000), ..request(0, Vec::new()) };
    bench.apply(Command::Ask { to: ReplyTo(7), host: HOST, request: open });
    let told = hear(&mut bench, FIRST, None).unwrap_err();
    assert_eq!(told, ApiError::with_rival(COPY));
    let again =
        Command::HearIncarnation { to: TO, host: HOST, incarnation: FIRST, rival: Some(COPY) };
    assert_eq!(refusal(&bench.apply(again), ReplyTo(7)), ApiError::copied_identity());
    assert!(hear(&mut bench, COPY, None).unwrap_err().copied_identity);
    let view = view(&mut bench);
    assert_eq!((view.copies, view.copy_found_at.is_some()), (1, true));
}

#[test]
fn a_client_that_is_started_again_goes_on_while_old_requests_come_late() {
    let mut bench = Bench::with_job(2, 3);
    hear(&mut bench, FIRST, None).unwrap();
    let lease = bench.lease(HOST);
    hear(&mut bench, COPY, None).unwrap();
    assert_eq!(bench.resent(HOST, lease.id).id, lease.id);
    for _ in 0..3 {
        assert!(hear(&mut bench, FIRST, None).is_err());
        assert_eq!(hear(&mut bench, COPY, None), Ok(()));
    }
    bench.finish(HOST, &lease);
    assert_eq!((view(&mut bench).used, view(&mut bench).copies), (1, 0));
}

#[test]
fn an_operator_forgets_machines_that_are_gone_and_no_others() {
    let mut bench = Bench::with_job(1, 1);
    let forget = |bench: &mut Bench, host| bench.answer(Command::ForgetHost { to: TO, host });
    let refused = |bench: &mut Bench, host| {
        let error = forget(bench, host).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Conflict, "{error}");
        error.message
    };
    assert!(refused(&mut bench, OTHER).contains("is in contact"));
    assert_eq!(view(&mut bench).away_since, None);
    let lease = bench.lease(HOST);
    assert!(refused(&mut bench, HOST).contains("holds leases"));
    bench.finish(HOST, &lease);
    let seen = bench.now;
    bench.now += 11_000;
    assert!(refused(&mut bench, HOST).contains("still remembered"));
    assert_eq!(view(&mut bench).away_since.map(|since| since.0), Some(seen));
    let events = bench.events(Command::ForgetHost { to: TO, host: OTHER });
    assert_eq!(events, [Event::HostForgotten { host: OTHER }]);
    let unknown = forget(&mut bench, OTHER).unwrap_err();
    assert_eq!(unknown.kind, ErrorKind::NotFound);
    // Revoked, it would enrol again with the token of the server.
    bench.now += 3 * 24 * 3_600_000;
    bench.apply(Command::Tick);
    bench.apply(Command::RevokeHost { to: TO, host: HOST });
    assert!(refused(&mut bench, HOST).contains("revoke that token first"));
}

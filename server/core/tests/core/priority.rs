//! Units that a host hasn't begun give way to a job of higher priority. A slot is kept for the trial that goes on there.

use crate::support::{Bench, HOST, JOB, OTHER, done, events, hop, request};
use sojourn_core::{Answer, Command, Effect, Event, ReplyTo};
use sojourn_protocol::{
    api::{HeldState, WorkAnswer, WorkRequest},
    ids::{JobId, LeaseId},
    time::Millis,
    unit::Lease,
};

const TO: ReplyTo = ReplyTo(1);
/// The reply to the request that is held open.
const OPEN: ReplyTo = ReplyTo(7);
const URGENT: JobId = JobId(2);
const RUNNING: HeldState = HeldState::Running { done: 0, of: 3 };

/// A host that runs a unit of the first job and has one more ahead; its request is held open. The other host is gone.
fn busy_host() -> (Bench, [Lease; 2]) {
    busy_host_of(Bench::with_job(8, 4))
}

fn busy_host_of(mut bench: Bench) -> (Bench, [Lease; 2]) {
    bench.events(Command::RevokeHost { to: TO, host: OTHER });
    let running = bench.lease(HOST);
    let held = vec![(running.id, RUNNING)];
    let mut ahead = bench.ask(HOST, wants(1, held)).leases;
    assert_eq!(ahead.len(), 1);
    let ahead = ahead.remove(0);
    let open = hold_open(&mut bench, vec![(running.id, RUNNING), (ahead.id, HeldState::Waiting)]);
    assert!(open.is_empty(), "it has all that it wants: {open:?}");
    (bench, [running, ahead])
}

/// A request of a host whose slot is busy.
fn wants(wanted: u32, holding: Vec<(LeaseId, HeldState)>) -> WorkRequest {
    let mut request = request(wanted, holding);
    request.demand[0].idle = 0;
    request
}

/// Answers to a request that wants nothing, and waits.
fn hold_open(bench: &mut Bench, holding: Vec<(LeaseId, HeldState)>) -> Vec<WorkAnswer> {
    let request = WorkRequest { wait: Millis(5_000), ..wants(0, holding) };
    work_answers(bench.apply(Command::Ask { to: OPEN, host: HOST, request }))
}

fn work_answers(effects: Vec<Effect>) -> Vec<WorkAnswer> {
    let answers = effects.into_iter().filter_map(|effect| match effect {
        Effect::Reply { to: OPEN, answer: Ok(answer), .. } => match *answer {
            Answer::Work(answer) => Some(*answer),
            other => panic!("{other:?}"),
        },
        _ => None,
    });
    answers.collect()
}

/// A job of one trial is submitted: all that follows, and what the host hears that holds a request open.
fn submit(bench: &mut Bench, priority: i32) -> (Vec<Event>, Vec<WorkAnswer>) {
    let effects = bench.submit_for_effects(1, 4, &format!("[placement]\npriority = {priority}"));
    (events(effects.clone()), work_answers(effects))
}

#[test]
fn what_was_not_begun_gives_way_to_a_job_of_higher_priority() {
    let (mut bench, [running, ahead]) = busy_host();
    let (events, answers) = submit(&mut bench, 50);
    let revoked =
        |event: &Event| matches!(event, Event::LeaseEnded { lease, .. } if *lease == ahead.id);
    assert!(events.iter().any(revoked), "{events:?}");
    assert_eq!(answers.len(), 1, "{answers:?}");
    assert_eq!(answers[0].drop, [ahead.id]);
    let [urgent] = &answers[0].leases[..] else { panic!("{answers:?}") };
    assert_eq!(urgent.unit.job(), URGENT);
    // What runs isn't interrupted, and its result counts.
    let events = bench.finish(HOST, &running);
    assert!(events.iter().any(|event| matches!(event, Event::Assimilated { .. })), "{events:?}");
}

#[test]
fn a_slot_is_kept_for_the_trial_that_goes_on_there() {
    let (mut bench, [running, _]) = busy_host();
    let (_, answers) = submit(&mut bench, 50);
    let urgent = answers[0].leases[0].clone();
    bench.finish(HOST, &running);
    // Nothing of the other job is given ahead: it would begin while the result is on its way.
    let ahead = bench.ask(HOST, wants(1, vec![(urgent.id, RUNNING)]));
    assert!(ahead.leases.is_empty(), "{ahead:?}");
    let sent = vec![(urgent.id, HeldState::Sending { sent: 0 })];
    let idle = bench.ask(HOST, request(1, sent));
    assert!(idle.leases.is_empty(), "{idle:?}");
    let report = bench.report(HOST, done(&urgent));
    assert!(report.is_ok(), "{report:?}");
    let idle = bench.ask(HOST, request(1, Vec::new()));
    assert!(idle.leases.is_empty(), "its result waits to be taken in: {idle:?}");
    bench.assimilate();
    let next = bench.lease(HOST);
    assert_eq!(next.unit.job(), URGENT);
    // With its last hop the slot is free.
    bench.answer(Command::Cancel { to: TO, job: URGENT }).unwrap();
    assert_eq!(bench.lease(HOST).unit.job(), JOB);
}

#[test]
fn a_lease_of_several_hops_ends_early_for_a_job_of_higher_priority() {
    let (mut bench, [running, _]) = busy_host_of(Bench::with_long_leases(4, 8, 4));
    assert!(!hop(&running).then.is_empty(), "of several hops");
    let (_, answers) = submit(&mut bench, 50);
    let [urgent] = &answers[0].leases[..] else { panic!("{answers:?}") };
    assert_eq!(urgent.unit.job(), URGENT);
    assert_eq!(answers[0].stop, [running.id]);
    // Said once.
    let holding = vec![(running.id, RUNNING), (urgent.id, HeldState::Waiting)];
    assert_eq!(bench.ask(HOST, wants(0, holding)).stop, []);
    // Of one hop it goes on to its end, and beside a job of the same priority too.
    let (mut bench, _) = busy_host();
    assert_eq!(submit(&mut bench, 50).1[0].stop, []);
    let (mut bench, _) = busy_host_of(Bench::with_long_leases(4, 8, 4));
    assert_eq!(submit(&mut bench, 0).1, []);
}

#[test]
fn what_was_not_begun_stays_beside_a_job_of_the_same_priority_and_what_runs_stays() {
    let (mut bench, _) = busy_host();
    assert_eq!(submit(&mut bench, 0).1, []);
    let (mut bench, [running, ahead]) = busy_host();
    let begun = hold_open(&mut bench, vec![(running.id, RUNNING), (ahead.id, RUNNING)]);
    assert!(begun.len() == 1 && begun[0].drop.is_empty(), "the request before it ends");
    assert_eq!(submit(&mut bench, 50).1, []);
}

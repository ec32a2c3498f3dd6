//! A host goes on with a trial while the result of its last hops is on its way.

use crate::support::{Bench, HOST, JOB, OTHER, done, hop, inventory, request, version};
use sojourn_core::{Answer, Command, Effect, Event, ReplyTo};
use sojourn_protocol::{
    api::{HeartbeatRequest, Held, HeldState, WorkAnswer, WorkRequest},
    digest::{BlobRef, Digest},
    error::ErrorKind,
    ids::HostId,
    inventory::{Inventory, Links},
    report::{Outcome, Report},
    time::Millis,
    unit::{Base, Lease},
};
use sojourn_workgen::{
    PolicyName,
    plan::{Iterations, Planner as _, Rollout},
};

const TO: ReplyTo = ReplyTo(1);

/// One trial of two epochs for a host with a slow line; each lease is of all shards of an epoch.
fn bench() -> Bench {
    let mut bench = Bench::with_policy(PolicyName::Rollout, 4, 1, 2, "");
    bench.events(Command::RevokeHost { to: TO, host: OTHER });
    let slow = Links { download: Some(100), upload: Some(100) };
    let inventory = Inventory { links: slow, ..inventory("class") };
    let told = WorkRequest { inventory: Some(inventory), ..request(0, Vec::new()) };
    bench.ask(HOST, told);
    bench
}

/// Makes the plans that were asked for.
fn plan(bench: &mut Bench) {
    for effect in std::mem::take(&mut bench.plans) {
        let Effect::Plan { job, version, problem, seed, .. } = effect else { continue };
        let schedule = Rollout.plan(&problem, seed, &mut Iterations::new(20)).map(Box::new);
        bench.apply(Command::PlanReady { job, version, schedule });
    }
}

/// Asks for one unit, holding others.
fn ask(bench: &mut Bench, host: HostId, idle: u32, holding: Vec<Held>) -> WorkAnswer {
    bench.now += 2_000;
    bench.apply(Command::Tick);
    plan(bench);
    bench.ask(host, WorkRequest { holding, inventory: None, ..request(idle, Vec::new()) })
}

fn made(report: &Report) -> BlobRef {
    match &report.outcome {
        Outcome::Trained(trained) => trained.checkpoint,
        other => panic!("{other:?}"),
    }
}

/// A finished unit that its host is uploading.
fn sending(lease: &Lease, made: BlobRef) -> Held {
    Held { result: Some(made), ..Held::new(lease.id, HeldState::Sending { sent: 0 }) }
}

fn running(lease: &Lease) -> Held {
    Held::new(lease.id, HeldState::Running { done: 1, of: 8 })
}

/// The first lease, its report, and what was promised while the result is on its way.
fn promised(bench: &mut Bench) -> (Lease, Report, Lease) {
    let first = ask(bench, HOST, 1, Vec::new()).leases.remove(0);
    let report = done(&first);
    let holding = vec![sending(&first, made(&report))];
    let mut answer = ask(bench, HOST, 1, holding);
    assert_eq!(answer.leases.len(), 1, "{answer:?}");
    (first, report, answer.leases.remove(0))
}

/// The leases that were granted by some events.
fn granted(events: &[Event]) -> Vec<u64> {
    let granted = events.iter().filter_map(|event| match event {
        Event::LeaseGranted { lease, .. } => Some(lease.0),
        _ => None,
    });
    granted.collect()
}

#[test]
fn the_next_epoch_is_given_provisionally_during_the_upload_and_granted_after_it() {
    let mut bench = bench();
    let (first, report, next) = promised(&mut bench);
    assert!(next.id > first.id);
    let (before, hop) = (hop(&first).clone(), hop(&next).clone());
    assert_eq!(hop.base, Base::Checkpoint { version: version(1), blob: made(&report) });
    assert_eq!(hop.start.epoch, before.start.epoch.next());
    assert_eq!(hop.start.step, before.start.step + u64::from(before.to_train()));
    assert_eq!(bench.core.state().leases.len(), 1, "nothing durable has happened");

    // It runs there, and is neither dropped nor given to the host once more.
    let held = vec![sending(&first, made(&report)), running(&next)];
    let answer = ask(&mut bench, HOST, 0, held);
    assert!(answer.leases.is_empty() && answer.drop.is_empty(), "{answer:?}");

    // Its result can't be reported before the other is taken in.
    let early = bench.report(HOST, done(&next)).unwrap_err();
    assert_eq!(early.kind, ErrorKind::Unavailable, "{early:?}");
    bench.report(HOST, report).unwrap();
    let events = bench.assimilate();
    assert_eq!(granted(&events), [next.id.0], "{events:?}");
    assert_eq!(bench.core.state().leases[&next.id].base, version(1));
    let events = bench.finish(HOST, &next);
    assert!(events.iter().any(|event| matches!(event, Event::Assimilated { .. })), "{events:?}");
    let job = &bench.core.state().jobs[&JOB];
    assert!(job.trials[0].chain.is_done());
}

#[test]
fn a_provisional_lease_is_withdrawn_with_the_lease_before_it() {
    let mut bench = bench();
    let (first, report, next) = promised(&mut bench);
    let events = bench.events(Command::Release {
        to: TO,
        host: HOST,
        leases: vec![first.id],
        reason: "x".into(),
    });
    assert!(matches!(events[..], [Event::LeaseEnded { .. }]), "{events:?}");
    let beat = Command::Heartbeat {
        to: TO,
        host: HOST,
        request: HeartbeatRequest::new(
            vec![sending(&first, made(&report)), running(&next)],
            Vec::new(),
        ),
    };
    let Ok(Answer::Heartbeat(answer)) = bench.answer(beat) else { panic!("an answer") };
    assert_eq!(answer.drop, [first.id, next.id]);
    let refused = bench.report(HOST, done(&next)).unwrap_err();
    assert_eq!(refused.kind, ErrorKind::NotFound);
}

#[test]
fn what_was_made_is_another_checkpoint_than_the_host_has_said() {
    let mut bench = bench();
    let first = ask(&mut bench, HOST, 1, Vec::new()).leases.remove(0);
    let report = done(&first);
    let other = BlobRef { sha256: Digest::of(b"other"), ..made(&report) };
    let next = ask(&mut bench, HOST, 1, vec![sending(&first, other)]).leases.remove(0);
    bench.report(HOST, report).unwrap();
    let events = bench.assimilate();
    assert!(granted(&events).is_empty(), "{events:?}");
    let answer = ask(&mut bench, HOST, 0, vec![running(&next)]);
    assert_eq!(answer.drop, [next.id]);
    bench.work_to_the_end(&[HOST]);
}

#[test]
fn a_part_is_nothing_to_go_on_from_as_if_it_were_whole() {
    let mut bench = bench();
    let first = ask(&mut bench, HOST, 1, Vec::new()).leases.remove(0);
    let trained = crate::support::trained_after(&first, 2);
    let report = Report { lease: first.id, outcome: Outcome::Trained(trained.clone()) };
    let holding = vec![sending(&first, trained.checkpoint)];
    let next = ask(&mut bench, HOST, 1, holding).leases.remove(0);
    bench.report(HOST, report).unwrap();
    assert!(!granted(&bench.assimilate()).contains(&next.id.0));
}

#[test]
fn a_paused_job_confirms_no_provisional_lease() {
    let mut bench = bench();
    let (_, report, next) = promised(&mut bench);
    bench.apply(Command::Pause { to: TO, job: JOB, now: false });
    bench.report(HOST, report).unwrap();
    assert!(granted(&bench.assimilate()).is_empty());
    bench.apply(Command::Resume { to: TO, job: JOB });
    let answer = ask(&mut bench, HOST, 0, vec![running(&next)]);
    assert_eq!(answer.drop, [next.id]);
    bench.work_to_the_end(&[HOST]);
}

#[test]
fn a_released_provisional_lease_is_not_granted() {
    let mut bench = bench();
    let (first, report, next) = promised(&mut bench);
    let release =
        Command::Release { to: TO, host: HOST, leases: vec![next.id], reason: "no room".into() };
    let Ok(Answer::Released(answer)) = bench.answer(release) else { panic!("an answer") };
    assert_eq!(answer.released, [next.id]);
    bench.report(HOST, report).unwrap();
    assert!(!granted(&bench.assimilate()).contains(&next.id.0));
    assert!(next.id > first.id);
    bench.work_to_the_end(&[HOST]);
}

#[test]
fn a_provisional_lease_whose_answer_was_lost_is_sent_again() {
    let mut bench = bench();
    let (first, report, next) = promised(&mut bench);
    let answer = ask(&mut bench, HOST, 1, vec![sending(&first, made(&report))]);
    let told = answer.leases.into_iter().map(|lease| (lease.id, lease.unit));
    assert_eq!(told.collect::<Vec<_>>(), [(next.id, next.unit)]);
}

#[test]
fn a_reported_checkpoint_opens_no_blob_to_its_host() {
    let mut bench = bench();
    let first = ask(&mut bench, HOST, 1, Vec::new()).leases.remove(0);
    let secret = BlobRef { sha256: Digest::of(b"secret"), bytes: first.upload_bytes };
    let next = ask(&mut bench, HOST, 1, vec![sending(&first, secret)]).leases.remove(0);
    let read = |blob| Command::AuthorizeRead { to: TO, host: HOST, blob };
    assert!(bench.answer(read(secret.sha256)).is_err());
    assert!(bench.answer(read(hop(&next).shard.blob.sha256)).is_ok());
}

#[test]
fn a_new_server_gives_no_other_lease_the_id_of_a_provisional_one() {
    let mut bench = bench();
    let (first, report, next) = promised(&mut bench);
    let config = *bench.core.config();
    let mut core =
        sojourn_core::Core::from_snapshot(&bench.core.snapshot().unwrap(), config).unwrap();
    std::mem::swap(&mut bench.core, &mut core);
    bench.apply(Command::Started);
    bench.report(HOST, report).unwrap();
    bench.assimilate();
    let mut asks = WorkRequest { holding: vec![running(&next)], ..request(1, Vec::new()) };
    asks.wait = Millis(0);
    let answer = bench.ask(HOST, asks);
    assert_eq!(answer.drop, [next.id]);
    assert!(answer.leases.iter().all(|lease| lease.id > next.id), "{answer:?}");
    assert!(next.id > first.id);
}

#[test]
fn no_lease_is_provisional_where_transfers_are_negligible() {
    let mut bench = Bench::with_policy(PolicyName::Rollout, 4, 1, 2, "");
    bench.events(Command::RevokeHost { to: TO, host: OTHER });
    let first = ask(&mut bench, HOST, 1, Vec::new()).leases.remove(0);
    let report = done(&first);
    let answer = ask(&mut bench, HOST, 1, vec![sending(&first, made(&report))]);
    assert!(answer.leases.is_empty(), "{answer:?}");
}

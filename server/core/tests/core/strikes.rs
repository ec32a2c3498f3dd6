//! Workloads that fail: they are held back, and hosts don't rest for them; hosts that fail what others do are found.

use crate::{
    owners::enrol,
    support::{Bench, HOST, JOB, OTHER, data, done, fail, request, spec},
};
use sojourn_core::{Answer, Command, Effect, PreparedSubmission, Query, ReplyTo};
use sojourn_protocol::{
    ids::{HostId, JobId},
    report::FailureKind::{self, Died, Trainer, WrongUnit},
    unit::{Lease, Unit},
    view::{HostState, JobState, TrialState},
};

const TO: ReplyTo = ReplyTo(1);

fn job_of(bench: &Bench, lease: &Lease) -> JobId {
    bench.core.state().leases[&lease.id].unit.job()
}

fn rests(bench: &mut Bench, host: HostId) -> bool {
    match bench.answer(Command::Query { to: TO, query: Query::Host { host } }) {
        Ok(Answer::HostDetail(detail)) => matches!(detail.host.state, HostState::Resting { .. }),
        other => panic!("{other:?}"),
    }
}

fn state_of(bench: &mut Bench, job: JobId) -> JobState {
    match bench.answer(Command::Query { to: TO, query: Query::Job { job } }) {
        Ok(Answer::Job(job)) => job.summary.state,
        other => panic!("{other:?}"),
    }
}

/// Both hosts have trained a hop of a good job, and six jobs come of which each unit fails.
fn with_six_wrong_jobs() -> Bench {
    let mut bench = Bench::with_job(8, 20);
    bench.work_once(&[HOST, OTHER]);
    for _ in 0..6 {
        bench.submit(1, 1, true).unwrap();
    }
    bench
}

#[test]
fn six_wrong_jobs_rest_no_host() {
    for kind in [Trainer, WrongUnit, Died] {
        let mut bench = with_six_wrong_jobs();
        let (mut good, mut wrong) = (0, 0);
        for _ in 0..40 {
            bench.now += 100;
            for host in [HOST, OTHER] {
                let leases = bench.ask(host, request(1, Vec::new())).leases;
                let lease = leases.first().unwrap_or_else(|| panic!("{host} has work: {kind:?}"));
                match job_of(&bench, lease) {
                    JOB => match &lease.unit {
                        Unit::Train(_) => {
                            bench.finish(host, lease);
                            good += 1;
                        }
                        Unit::Evaluate(_) => {
                            bench.report(host, done(lease)).unwrap();
                            good += 1;
                        }
                    },
                    _ => {
                        fail(&mut bench, host, lease.id, kind, "no such operator");
                        wrong += 1;
                    }
                }
            }
        }
        // A trainer that died says nothing of the unit, which is tried on: alone, with pauses.
        assert!(wrong <= 18, "{wrong} units of wrong jobs were tried: {kind:?}");
        assert_eq!(good + wrong, 80, "both hosts are always at work: {kind:?}");
        for job in 2..=7 {
            let has_failed = state_of(&mut bench, JobId(job)) == JobState::Failed;
            assert_eq!(has_failed, kind != Died, "{job}");
        }
    }
}

#[test]
fn a_workload_that_two_parties_fail_is_tried_alone_until_one_succeeds() {
    let mut bench = Bench::with_job(8, 1);
    for host in [HOST, OTHER] {
        let lease = bench.lease(host);
        fail(&mut bench, host, lease.id, Trainer, "no such operator");
    }
    // One host tries it at once, alone.
    let tried = bench.lease(HOST);
    assert_eq!(bench.ask(OTHER, request(1, Vec::new())).leases, []);
    fail(&mut bench, HOST, tried.id, Trainer, "no such operator");
    for host in [HOST, OTHER] {
        assert_eq!(bench.ask(host, request(1, Vec::new())).leases, [], "after a pause");
        assert!(!rests(&mut bench, host));
    }
    let waits = bench.job().waiting.unwrap();
    assert!(waits.contains("2 hosts so far") && waits.contains("no such operator"), "{waits}");
    let trials = bench.trials();
    assert!(trials.iter().all(|trial| trial.waiting.as_deref() == Some(waits.as_str())));
    assert!(bench.core.next_deadline().is_some_and(|at| at.0 <= bench.now + 10_000));
    bench.now += 10_000;
    bench.apply(Command::Tick);
    let tried = bench.lease(OTHER);
    assert_eq!(bench.ask(HOST, request(1, Vec::new())).leases, []);
    bench.finish(OTHER, &tried);
    assert_eq!(bench.job().waiting, None);
    drop((bench.lease(HOST), bench.lease(OTHER)));
}

#[test]
fn a_party_alone_holds_nothing_back_and_rests_once_others_succeed() {
    let mut bench = Bench::with_job(8, 1);
    let [liar] = enrol(&mut bench, "lab-3", 1)[..] else { panic!("one host") };
    for _ in 0..3 {
        let lease = bench.lease(liar);
        fail(&mut bench, liar, lease.id, WrongUnit, "I say so");
    }
    // Nobody else has tried: it isn't given the workload, and works at others.
    assert!(!rests(&mut bench, liar));
    assert_eq!(bench.ask(liar, request(1, Vec::new())).leases, []);
    bench.submit(1, 2, true).unwrap();
    let other = bench.lease(liar);
    assert_eq!(job_of(&bench, &other), JobId(2));
    // The others are given it as ever, both at once.
    let (first, second) = (bench.lease(HOST), bench.lease(OTHER));
    bench.finish(HOST, &first);
    assert!(rests(&mut bench, liar));
    bench.finish(OTHER, &second);
    assert!(!rests(&mut bench, HOST) && !rests(&mut bench, OTHER));
}

#[test]
fn a_host_that_is_alone_goes_on_with_other_jobs_when_trainers_call_a_unit_wrong() {
    let mut bench = Bench::with_job(1, 1);
    bench.apply(Command::RevokeHost { to: TO, host: OTHER });
    for _ in 0..3 {
        let lease = bench.lease(HOST);
        fail(&mut bench, HOST, lease.id, WrongUnit, "the shard has class 9");
    }
    let error = "the shard has class 9".to_owned();
    assert_eq!(bench.trials()[0].state, TrialState::Failed { error });
    assert!(!rests(&mut bench, HOST));
    bench.submit(1, 2, true).unwrap();
    drop(bench.lease(HOST));
}

/// Else each of very many trials would have to fail three times.
#[test]
fn trials_of_a_workload_that_three_parties_fail_end_at_their_first_failure() {
    let mut bench = Bench::with_job(6, 1);
    let third = enrol(&mut bench, "", 1)[0];
    let mut failures = 0;
    for _ in 0..20 {
        bench.now += 100;
        for host in [HOST, OTHER, third] {
            for lease in bench.ask(host, request(1, Vec::new())).leases {
                fail(&mut bench, host, lease.id, FailureKind::Trainer, "no such operator");
                failures += 1;
            }
        }
    }
    assert_eq!(bench.job().state, JobState::Failed);
    assert!(failures <= 10, "{failures} failures");
}

#[test]
fn a_job_that_was_prepared_is_the_job_that_is_submitted() {
    let (mut plain, mut prepared) = (Bench::with_job(1, 1), Bench::with_job(1, 1));
    let (spec, data) = (Box::new(spec(5, 3, "")), Box::new(data()));
    let made = Box::new(PreparedSubmission::new(spec.clone(), data.clone()).unwrap());
    assert_eq!(made.trials(), 5);
    let nonce = Some("n".to_owned());
    let submit = Command::Submit { to: TO, spec, data, again: false, nonce: nonce.clone() };
    let expected = plain.apply(submit);
    let submit = Command::SubmitPrepared { to: TO, prepared: made, again: false, nonce };
    let written = serde_json::to_string(&submit).unwrap();
    assert_eq!(serde_json::from_str::<Command>(&written).unwrap(), submit);
    assert_eq!(prepared.apply(submit), expected);
    assert!(matches!(expected[0], Effect::Persist(_)));
    assert_eq!(prepared.core.state(), plain.core.state());
}

//! Evaluations outside the search: the test at its end, and what somebody asks for.

use crate::support::{
    Bench, HOST, JOB, OTHER, data, data_with_test, evaluated, evaluation, events, fail, request,
};
use sojourn_core::{
    Answer, AtEnd, Command, Core, Event, LeaseEnd, Query, Record, ReplyTo, RequestedEvaluation,
};
use sojourn_protocol::{
    api::{RollbackOptions, RollbackRequest},
    digest::{BlobRef, Digest},
    error::{ApiError, ErrorKind},
    ids::{Epoch, HostId, JobId, TrialId},
    manifest::DataSplit,
    metrics::{ByClass, ClassDetail, ClassTotals},
    report::{FailureKind, Outcome, Report, ReportEnd, ReportState},
    unit::{Lease, Unit},
    view::{EvaluationState, EvaluationView, JobState},
};

fn name(trial: u32, split: DataSplit, epoch: u32) -> RequestedEvaluation {
    RequestedEvaluation { trial: TrialId(trial), split, epoch: Epoch(epoch) }
}

/// Asks for an evaluation.
fn ask(bench: &mut Bench, trial: u32, split: DataSplit) -> Result<EvaluationView, ApiError> {
    let (to, trial) = (ReplyTo(1), TrialId(trial));
    match bench.answer(Command::Evaluate { to, job: JOB, trial, split })? {
        Answer::Evaluation(view) => Ok(*view),
        other => panic!("{other:?}"),
    }
}

fn evaluations(bench: &mut Bench, trial: u32) -> Vec<EvaluationView> {
    let query = Query::Evaluations { job: JOB, trial: TrialId(trial) };
    match bench.answer(Command::Query { to: ReplyTo(1), query }) {
        Ok(Answer::Evaluations(views)) => views,
        other => panic!("{other:?}"),
    }
}

/// Reports an evaluation with so many misses in each shard.
fn report(bench: &mut Bench, host: HostId, lease: &Lease, misses: u64) -> ReportState {
    let outcome = Outcome::Evaluated(evaluated(evaluation(lease), misses));
    match bench.report(host, Report { lease: lease.id, outcome }) {
        Ok(Answer::Report(answer)) => answer.state,
        other => panic!("{other:?}"),
    }
}

/// Does all hops and the search's evaluations; evaluations of trial 1 have fewer misses.
fn finish_search(bench: &mut Bench) {
    while bench
        .trials()
        .iter()
        .any(|trial| trial.state == sojourn_protocol::view::TrialState::Running)
    {
        let lease = bench.lease(HOST);
        match &lease.unit {
            Unit::Train(_) => drop(bench.finish(HOST, &lease)),
            Unit::Evaluate(evaluation) => {
                assert_eq!(evaluation.split, DataSplit::Valid);
                let misses = if evaluation.trial == TrialId(1) { 1 } else { 2 };
                report(bench, HOST, &lease, misses);
            }
        }
    }
}

/// A job of two trials and one epoch whose search has ended, and the lease of its test.
fn tested() -> (Bench, Lease) {
    let mut bench = Bench::with_tested_job(2, 1);
    finish_search(&mut bench);
    let lease = bench.lease(HOST);
    (bench, lease)
}

#[test]
fn the_best_trial_is_tested_once_when_the_search_has_ended() {
    let (mut bench, lease) = tested();
    let best = bench.job().best.unwrap();
    assert_eq!(best.trial, TrialId(1));
    let unit = evaluation(&lease).clone();
    assert_eq!((unit.split, unit.shards), (DataSplit::Test, data_with_test().test));
    assert_eq!(
        (unit.trial, unit.epoch, unit.checkpoint),
        (best.trial, best.epoch, best.checkpoint)
    );
    assert_eq!(unit.counting.by_class, ClassDetail::Confusion);
    assert!(bench.ask(OTHER, request(1, Vec::new())).leases.is_empty(), "it is tested once");
    let job = bench.job();
    assert_eq!((job.state, job.trials_finished), (JobState::Running, 2));
    assert_eq!(job.waiting.unwrap(), "the best trial is being evaluated on the test data");
    assert_eq!(job.test.unwrap().state, EvaluationState::Running);

    bench.now += 100;
    let ended = report(&mut bench, HOST, &lease, 2);
    assert!(matches!(ended, ReportState::Ended(ReportEnd::Assimilated { .. })), "{ended:?}");
    let job = bench.job();
    assert_eq!((job.state, job.ended_at.unwrap().0), (JobState::Finished, bench.now));
    assert_eq!((job.evaluations, job.evaluations_expected), (2, 2), "it isn't one of the search's");
    assert_eq!(job.best.unwrap(), best, "the search knows nothing of it");
    let result = job.test.unwrap().result().cloned().unwrap();
    assert_eq!((result.metrics.rows, result.metrics.accuracy), (8, Some(0.5)));
    // One class alone was ever a label: F1 is 2 x 4 / (4 + 8), and 0 of the other.
    assert_eq!(result.metrics.f1, Some(1.0 / 3.0));
    assert_eq!(result.metrics.top_k, None, "of two classes it would say nothing");
    let Some(ByClass::Confusion(matrix)) = result.by_class else { panic!("{result:?}") };
    assert_eq!(matrix.0, [[4, 4], [0, 0]]);
    let trials = bench.trials();
    assert_eq!(trials[0].test, None);
    let brief = trials[1].test.clone().unwrap().result().cloned().unwrap();
    assert_eq!((brief.metrics, brief.by_class), (result.metrics, None), "lists are short");
    assert!(bench.ask(HOST, request(1, Vec::new())).leases.is_empty());
}

#[test]
fn a_test_that_fails_three_times_ends_the_job_and_can_be_asked_for_again() {
    let (mut bench, mut lease) = tested();
    for n in 1..=3u32 {
        assert_eq!(bench.job().state, JobState::Running);
        fail(&mut bench, HOST, lease.id, FailureKind::Died, &format!("crash {n}"));
        if n < 3 {
            // Others may try first; where they stay away it comes back.
            bench.now += 10_001;
            lease = bench.lease(HOST);
        }
    }
    let job = bench.job();
    assert_eq!(job.state, JobState::Finished);
    assert_eq!(job.test.unwrap().state, EvaluationState::Failed { error: "crash 3".into() });
    // No other host has confirmed the failures, so they go on counting.
    assert_eq!(bench.core.state().hosts[&HOST].failures_in_a_row, 3);
    let again = ask(&mut bench, 1, DataSplit::Test).unwrap();
    let reason = "host 1 (`a`) is given no work for a while, as its trainers have failed again and again: crash 3";
    assert_eq!(again.state, EvaluationState::Waiting { reason: Some(reason.into()) });
    assert_eq!(bench.job().state, JobState::Finished, "an ended job stays so");
    assert!(bench.ask(HOST, request(1, Vec::new())).leases.is_empty(), "it cools down");
    bench.now += 10_001;
    let lease = bench.lease(HOST);
    assert_eq!(bench.job().leases_live, 1);
    report(&mut bench, HOST, &lease, 0);
    assert_eq!(evaluations(&mut bench, 1).len(), 1, "in the failed one's place");
    assert!(bench.job().test.unwrap().result().is_some());
}

#[test]
fn a_loss_that_is_not_finite_ends_a_test_as_it_ends_a_trial() {
    let (mut bench, lease) = tested();
    fail(&mut bench, HOST, lease.id, FailureKind::NonFinite, "the loss is NaN");
    let lease = bench.lease(OTHER);
    fail(&mut bench, OTHER, lease.id, FailureKind::NonFinite, "the loss is NaN");
    let job = bench.job();
    assert_eq!((job.state, job.trials_failed), (JobState::Finished, 0), "the trial stays finished");
    let error = "the loss is NaN".into();
    assert_eq!(job.test.unwrap().state, EvaluationState::Failed { error });
}

#[test]
fn any_trial_is_evaluated_for_who_asks_and_the_same_checkpoint_once() {
    let mut bench = Bench::with_tested_job(1, 2);
    let error = ask(&mut bench, 0, DataSplit::Test).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Conflict);
    assert_eq!(error.message, "trial 0 of job 1 has no evaluated epoch yet");
    // One epoch and its evaluation; the second epoch's first hop is under way.
    for _ in 0..2 {
        let lease = bench.lease(HOST);
        bench.finish(HOST, &lease);
    }
    let hop = bench.lease(HOST);
    let valid = bench.lease(OTHER);
    report(&mut bench, OTHER, &valid, 2);
    let first = bench.trials()[0].best.clone().unwrap();

    let asked =
        Command::Evaluate { to: ReplyTo(1), job: JOB, trial: TrialId(0), split: DataSplit::Test };
    let opened = bench.events(asked.clone());
    assert_eq!(opened, [Event::ExtraAsked { job: JOB, name: name(0, DataSplit::Test, 0) }]);
    assert!(bench.events(asked.clone()).is_empty(), "it is asked for already");
    let on_valid = ask(&mut bench, 0, DataSplit::Valid).unwrap();
    assert_eq!((on_valid.split, on_valid.epoch), (DataSplit::Valid, Epoch(0)));

    // The best moves on before anybody has looked at the first one: its checkpoint is kept.
    bench.finish(HOST, &hop);
    let test = bench.lease(HOST);
    assert_eq!(evaluation(&test).checkpoint, first.checkpoint, "before hops: somebody waits");
    let other = bench.lease(OTHER);
    assert_eq!(evaluation(&other).split, DataSplit::Valid);
    report(&mut bench, OTHER, &other, 1);
    let hop = bench.lease(OTHER);
    bench.finish(OTHER, &hop);
    let better = bench.lease(OTHER);
    report(&mut bench, OTHER, &better, 0);
    let second = bench.trials()[0].best.clone().unwrap();
    assert_eq!(second.epoch, Epoch(1));
    let references =
        |bench: &Bench, blob: BlobRef| bench.core.state().blobs.references(&blob.sha256);
    assert_eq!(references(&bench, first.checkpoint), 1, "B1: the open evaluation needs it");
    report(&mut bench, HOST, &test, 1);
    assert_eq!(references(&bench, first.checkpoint), 0);

    // The search's own test is of what is best now; both results stay.
    assert_eq!(bench.job().state, JobState::Running);
    let last = bench.lease(HOST);
    assert_eq!(evaluation(&last).epoch, Epoch(1));
    report(&mut bench, HOST, &last, 1);
    assert_eq!(bench.job().state, JobState::Finished);
    let shown: Vec<_> =
        evaluations(&mut bench, 0).iter().map(|view| (view.split, view.epoch.0)).collect();
    let (valid, test) = (DataSplit::Valid, DataSplit::Test);
    assert_eq!(shown, [(valid, 0), (test, 0), (test, 1)]);
    let position = bench.core.position();
    assert!(ask(&mut bench, 0, DataSplit::Test).unwrap().result().is_some(), "done is done");
    assert_eq!(bench.core.position(), position);
}

#[test]
fn what_was_asked_for_in_time_is_not_done_again_at_the_end() {
    let mut bench = Bench::with_tested_job(1, 1);
    for _ in 0..2 {
        let lease = bench.lease(HOST);
        bench.finish(HOST, &lease);
    }
    let valid = bench.lease(HOST);
    report(&mut bench, HOST, &valid, 1);
    // It waits for the test already; asking opens no second one.
    let position = bench.core.position();
    ask(&mut bench, 0, DataSplit::Test).unwrap();
    assert_eq!(bench.core.position(), position);
    let test = bench.lease(HOST);
    report(&mut bench, HOST, &test, 1);
    assert_eq!((bench.job().state, evaluations(&mut bench, 0).len()), (JobState::Finished, 1));
}

#[test]
fn what_can_not_be_evaluated_is_refused_with_the_reason() {
    let mut bench = Bench::with_job(1, 1);
    for _ in 0..3 {
        let lease = bench.lease(HOST);
        bench.finish(HOST, &lease);
    }
    assert_eq!(bench.job().state, JobState::Finished, "without test data nothing is tested");
    assert_eq!(bench.job().test, None);
    let error = ask(&mut bench, 0, DataSplit::Test).unwrap_err();
    assert_eq!(
        (error.kind, error.message.as_str()),
        (ErrorKind::Conflict, "job 1 has no test data")
    );
    let error = ask(&mut bench, 4, DataSplit::Valid).unwrap_err();
    assert_eq!((error.kind, error.message.as_str()), (ErrorKind::NotFound, "job 1 has no trial 4"));
    let (to, trial, split) = (ReplyTo(1), TrialId(0), DataSplit::Valid);
    let error = bench.answer(Command::Evaluate { to, job: JobId(9), trial, split }).unwrap_err();
    assert_eq!((error.kind, error.message.as_str()), (ErrorKind::NotFound, "no job 9"));
    let checkpoint = bench.trials()[0].best.clone().unwrap().checkpoint;
    bench.apply(Command::Lost { blob: checkpoint.sha256 });
    let error = ask(&mut bench, 0, DataSplit::Valid).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Conflict);
    assert!(error.message.contains("lost the best checkpoint of trial 0"), "{error}");
}

#[test]
fn a_test_whose_checkpoint_is_lost_is_given_up_and_the_job_ends() {
    let (mut bench, lease) = tested();
    let blob = evaluation(&lease).checkpoint.sha256;
    let given_up = bench.events(Command::Lost { blob });
    let test = name(1, DataSplit::Test, 0);
    let error = "the server's store has lost the checkpoint".to_owned();
    assert_eq!(
        given_up,
        [
            Event::BlobLost { blob },
            Event::ExtraFailed { job: JOB, name: test, error: error.clone() },
            Event::LeaseEnded { lease: lease.id, end: LeaseEnd::Revoked },
        ]
    );
    let job = bench.job();
    assert_eq!((job.state, job.leases_live), (JobState::Finished, 0));
    assert_eq!(job.test.unwrap().state, EvaluationState::Failed { error });
}

#[test]
fn cancelling_ends_what_was_asked_for_and_an_ended_job_stays_what_it_was() {
    let (mut bench, lease) = tested();
    let ended = Event::LeaseEnded { lease: lease.id, end: LeaseEnd::Revoked };
    let cancel = Command::Cancel { to: ReplyTo(1), job: JOB };
    assert_eq!(bench.events(cancel.clone()), [Event::JobCancelled { job: JOB }, ended]);
    assert_eq!((bench.job().state, bench.job().test), (JobState::Cancelled, None));
    let late = report(&mut bench, HOST, &lease, 1);
    assert_eq!(late, ReportState::Ended(ReportEnd::Superseded));
    assert!(bench.events(cancel.clone()).is_empty(), "nothing is left to end");
    // Of a cancelled job the best checkpoints are still there.
    ask(&mut bench, 0, DataSplit::Valid).unwrap();
    let lease = bench.lease(HOST);
    assert_eq!(bench.events(cancel).len(), 2);
    assert_eq!((bench.job().state, bench.job().leases_live), (JobState::Cancelled, 0));
    report(&mut bench, HOST, &lease, 1);
    assert!(evaluations(&mut bench, 0).is_empty());
}

#[test]
fn a_late_result_of_a_test_is_used_and_the_second_is_superseded() {
    let (mut bench, late) = tested();
    bench.now += 10_001;
    let ended = bench.events(Command::Tick);
    assert_eq!(ended, [Event::LeaseEnded { lease: late.id, end: LeaseEnd::Silent }]);
    let second = bench.lease(OTHER);
    assert_eq!(evaluation(&second).checkpoint, evaluation(&late).checkpoint);
    let outcome = Outcome::Evaluated(evaluated(evaluation(&late), 1));
    let settled = events(bench.apply(Command::Report {
        to: ReplyTo(1),
        host: HOST,
        report: Report { lease: late.id, outcome },
        uploaded: None,
    }));
    assert!(settled.contains(&Event::LeaseEnded { lease: second.id, end: LeaseEnd::Revoked }));
    assert_eq!(bench.job().state, JobState::Finished);
    let state = report(&mut bench, OTHER, &second, 1);
    assert_eq!(state, ReportState::Ended(ReportEnd::Superseded));
}

#[test]
fn counts_that_can_not_be_are_not_believed() {
    for (change, reason) in [
        (0, "nothing was counted by class"),
        (1, "something else was counted"),
        (2, "aren't those of the sums"),
        (3, "are counted where that is asked for"),
        (4, "rows [10, 5] were evaluated instead of [6, 2]"),
    ] {
        let (mut bench, lease) = tested();
        let mut unit = evaluation(&lease).clone();
        if change == 4 {
            unit.shards = data().valid;
        }
        let mut lies = evaluated(&unit, 1);
        match change {
            0 => lies.by_class = None,
            1 => lies.by_class = Some(ByClass::Totals(ClassTotals::default())),
            2 => lies.shards[0].correct = Some(0),
            3 => lies.shards[0].top_k = Some(6),
            _ => {}
        }
        let outcome = Outcome::Evaluated(lies);
        let answer = bench.report(HOST, Report { lease: lease.id, outcome }).unwrap();
        let Answer::Report(answer) = answer else { panic!("{answer:?}") };
        let ReportState::Ended(ReportEnd::Rejected { reason: said }) = answer.state else {
            panic!("{answer:?}");
        };
        assert!(said.contains(reason), "{said}");
        bench.lease(OTHER);
    }
}

#[test]
fn of_a_refused_evaluation_the_journal_keeps_little_however_long_it_is() {
    const MOST_BYTES: usize = 4_000;
    let (mut bench, lease) = tested();
    let mut lies = evaluated(evaluation(&lease), 1);
    lies.shards = lies.shards.iter().cycle().take(100_000).cloned().collect();
    let report = Report { lease: lease.id, outcome: Outcome::Evaluated(lies) };
    let command = Command::Report { to: ReplyTo(1), host: HOST, report, uploaded: None };
    let events = bench.events(command);
    assert!(events.iter().any(|event| matches!(event, Event::Rejected { .. })), "it is refused");
    let bytes = serde_json::to_vec(&events).unwrap().len();
    assert!(bytes < MOST_BYTES, "{bytes} bytes");
}

#[test]
fn a_search_by_macro_f1_counts_classes_and_finds_the_best_by_it() {
    let more = "[search]\nmetric = \"valid/f1\"\n";
    let mut bench = Bench::with_job_on(data(), 1, 2, more);
    for misses in [4, 1] {
        for _ in 0..2 {
            let lease = bench.lease(HOST);
            bench.finish(HOST, &lease);
        }
        // The next epoch's hop goes first.
        let hop = (misses == 4).then(|| bench.lease(OTHER));
        let lease = bench.lease(HOST);
        assert_eq!(evaluation(&lease).counting.by_class, ClassDetail::Totals);
        report(&mut bench, HOST, &lease, misses);
        if let Some(hop) = hop {
            bench.apply(Command::Release {
                to: ReplyTo(1),
                host: OTHER,
                leases: vec![hop.id],
                reason: "x".into(),
            });
        }
    }
    let trial = bench.trials().remove(0);
    // 2 TP / (2 TP + FP + FN) of class 0 with 8 misses of 15 rows, and nothing of class 1.
    assert_eq!(trial.curve[0].point.f1, Some(14.0 / 22.0 / 2.0));
    assert_eq!(trial.best.unwrap().value, 26.0 / 28.0 / 2.0);
}

#[test]
fn a_job_of_an_older_journal_ends_as_it_did() {
    let bench = Bench::with_tested_job(1, 1);
    let job = &bench.core.state().jobs[&JOB];
    assert_eq!(job.at_end, AtEnd::Test);
    let event = Event::JobSubmitted {
        job: JOB,
        spec: Box::new(job.spec.clone()),
        data: Box::new(job.data.clone()),
        key: job.key,
        nonce: None,
        at_end: AtEnd::Nothing,
        by: None,
    };
    let text = serde_json::to_string(&event).unwrap();
    assert!(!text.contains("at_end"), "older programs read it: {text}");
    let read: Event = serde_json::from_str(&text).unwrap();
    assert_eq!(read, event);
    let mut old = Bench::new();
    for blob in data_with_test().blobs() {
        old.apply(Command::Published { to: ReplyTo(1), blob });
    }
    let (position, at) = (old.core.position().0 + 1, sojourn_protocol::time::UnixMillis(1));
    let position = sojourn_core::JournalPosition(position);
    old.core.fold(&Record { position, at, event }).unwrap();
    old.apply(Command::Started);
    for host in [HOST, OTHER] {
        old.ask(host, request(0, Vec::new()));
    }
    finish_search(&mut old);
    assert_eq!((old.job().state, old.job().test), (JobState::Finished, None));
}

#[test]
fn a_start_knows_what_was_asked_for() {
    let (mut bench, lease) = tested();
    ask(&mut bench, 0, DataSplit::Valid).unwrap();
    let config = *bench.core.config();
    let core = Core::from_snapshot(&bench.core.snapshot().unwrap(), config).unwrap();
    assert_eq!(core.state(), bench.core.state());
    bench.core = core;
    bench.now += 3_600_000;
    bench.apply(Command::Started);
    assert_eq!(bench.job().leases_live, 1, "its lease has a fresh term");
    report(&mut bench, HOST, &lease, 1);
    assert_eq!(bench.job().state, JobState::Finished);
    bench.ask(OTHER, request(0, Vec::new()));
    let asked = bench.lease(OTHER);
    assert_eq!(evaluation(&asked).trial, TrialId(0));
    // No lease gives access to test data that no evaluation asks for.
    let blob = Digest::of(b"t0");
    let read = |host| Command::AuthorizeRead { to: ReplyTo(1), host, blob };
    assert_eq!(bench.answer(read(HOST)).unwrap_err().kind, ErrorKind::Forbidden);
    report(&mut bench, OTHER, &asked, 1);
    assert!(evaluations(&mut bench, 0)[0].result().is_some());
}

#[test]
fn a_best_epoch_that_was_trained_again_to_another_checkpoint_is_tested_again() {
    for open in [false, true] {
        let (mut bench, lease) = tested();
        if !open {
            report(&mut bench, HOST, &lease, 2);
            assert_eq!(bench.job().state, JobState::Finished);
        }
        let before = bench.job().best.unwrap();
        let options = RollbackOptions { reopen: true, ..RollbackOptions::default() };
        for trial in [TrialId(0), TrialId(1)] {
            let request = RollbackRequest::Trial { trial, epochs: 0, options };
            let (to, job) = (ReplyTo(1), JOB);
            bench.answer(Command::Rollback { to, job, request }).unwrap();
        }
        if open {
            // The result of the former checkpoint comes late.
            report(&mut bench, HOST, &lease, 2);
        }
        assert_eq!(evaluations(&mut bench, 1), [], "that checkpoint is no epoch's any more");
        finish_search(&mut bench);
        let best = bench.job().best.unwrap();
        assert_eq!((best.trial, best.epoch), (before.trial, before.epoch));
        assert_ne!(best.checkpoint, before.checkpoint);
        let test = bench.lease(HOST);
        assert_eq!(evaluation(&test).checkpoint, best.checkpoint);
        report(&mut bench, HOST, &test, 1);
        let job = bench.job();
        assert_eq!(job.state, JobState::Finished);
        assert_eq!(job.test.unwrap().checkpoint, best.checkpoint);
    }
}

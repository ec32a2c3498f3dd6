//! The disk that jobs take, and jobs that are deleted.

use crate::support::{Bench, HOST, JOB, data, done, hop, request};
use sojourn_core::{Answer, Command, Core, Effect, Event, Query, ReplyTo};
use sojourn_protocol::{
    api::{DeletedJobs, HeartbeatRequest, Submitted},
    error::ErrorKind,
    ids::{JobId, TrialId},
    manifest::DataSplit,
    report::{ReportEnd, ReportState},
};
use std::collections::BTreeSet;

const TO: ReplyTo = ReplyTo(1);

/// Bytes of the blobs that something refers to, as the state counts references; each counted once.
fn kept(bench: &Bench) -> u64 {
    let state = bench.core.state();
    let jobs = state.jobs.values();
    let blobs: BTreeSet<_> = jobs
        .flat_map(|job| job.blobs().chain(job.trials.iter().flat_map(|trial| trial.blobs())))
        .map(|blob| (blob.sha256, blob.bytes))
        .collect();
    assert_eq!(blobs.len(), state.blobs.referenced().count());
    blobs.into_iter().map(|(_, bytes)| bytes).sum()
}

#[test]
fn a_job_takes_the_disk_of_its_data_and_of_what_its_trials_keep() {
    let mut bench = Bench::with_job(2, 2);
    assert_eq!(bench.job().disk_bytes, 400, "four shards");
    let lease = bench.lease(HOST);
    let checkpoint = lease.upload_bytes;
    assert!(checkpoint > 0 && hop(&lease).start.batch == 0);
    bench.finish(HOST, &lease);
    assert_eq!(bench.job().disk_bytes, 400 + checkpoint);
    while bench.job().ended_at.is_none() {
        bench.work_once(&[HOST]);
        assert_eq!(bench.job().disk_bytes, kept(&bench));
    }
    let ended = bench.job().disk_bytes;
    // The last epoch of each trial, and its best one: here they may be the same.
    assert!((400 + 2 * checkpoint..=400 + 4 * checkpoint).contains(&ended), "{ended}");
    // It is known again after a start.
    let snapshot = bench.core.snapshot().unwrap();
    bench.core = Core::from_snapshot(&snapshot, *bench.core.config()).unwrap();
    assert_eq!(bench.job().disk_bytes, ended);
    // Another job on the same data: the shards count for both.
    bench.submit(1, 1, true).unwrap();
    assert_eq!(bench.core.state().jobs[&JobId(2)].disk(), 400);
    assert_eq!(bench.core.state().jobs[&JOB].disk(), ended);
}

fn delete(jobs: &[u64], preview: bool) -> Command {
    let jobs = jobs.iter().copied().map(JobId).collect();
    Command::Delete { to: TO, jobs, preview }
}

fn deleted(bench: &mut Bench, jobs: &[u64], preview: bool) -> DeletedJobs {
    match bench.answer(delete(jobs, preview)) {
        Ok(Answer::Deleted(deleted)) => *deleted,
        other => panic!("{other:?}"),
    }
}

fn refused(bench: &mut Bench, command: Command) -> (ErrorKind, String) {
    let position = bench.core.position();
    let error = bench.answer(command).unwrap_err();
    assert_eq!(bench.core.position(), position, "nothing changed");
    (error.kind, error.message)
}

/// Lets an hour pass in which the shell deletes what it is asked to; says the bytes of what the store has then.
fn collected(bench: &mut Bench) -> u64 {
    let end = bench.now + 3_600_000;
    while bench.now < end {
        bench.now += 10_000;
        for effect in bench.apply(Command::Tick) {
            if let Effect::Delete(blob) = effect {
                bench.apply(Command::Deleted { blob });
            }
        }
    }
    let blobs = bench.core.state().blobs.referenced().count();
    let kept = kept(bench);
    assert_eq!(blobs == 0, kept == 0);
    kept
}

#[test]
fn a_job_that_has_ended_is_deleted_with_the_blobs_that_no_other_refers_to() {
    let mut bench = Bench::with_tested_job(2, 1);
    bench.submit(1, 1, true).unwrap();
    assert_eq!(
        refused(&mut bench, delete(&[1], false)),
        (ErrorKind::Conflict, "job 1 hasn't ended: cancel it first".to_owned())
    );
    while bench.job().ended_at.is_none() {
        bench.work_once(&[HOST]);
    }
    bench.apply(Command::Cancel { to: TO, job: JobId(2) });
    let state = bench.core.state();
    let (first, second) = (state.jobs[&JOB].disk(), state.jobs[&JobId(2)].disk());
    let preview = deleted(&mut bench, &[1], true);
    let [job] = &preview.jobs[..] else { panic!("{preview:?}") };
    assert_eq!((job.job, job.trials, job.disk_bytes), (JOB, 2, first));
    assert_eq!(job.best, bench.job().best);
    assert_eq!(preview.bytes_freed, first - 400, "the other job has four of its shards");
    assert_eq!(deleted(&mut bench, &[1, 2], true).bytes_freed, first + second - 400);
    assert!(bench.core.state().jobs.contains_key(&JOB), "it was only asked");

    assert_eq!(bench.events(delete(&[1], false)), [Event::JobDeleted { job: JOB }]);
    assert_eq!(collected(&mut bench), second, "the store keeps what the other job has");
    assert!(bench.events(delete(&[1], false)).is_empty(), "once");
    let gone = (ErrorKind::NotFound, "job 1 was deleted".to_owned());
    assert_eq!(refused(&mut bench, delete(&[1], true)), gone);
    assert_eq!(refused(&mut bench, Command::Cancel { to: TO, job: JOB }), gone);
    let query = Query::Job { job: JOB };
    assert_eq!(refused(&mut bench, Command::Query { to: TO, query }), gone);
    let unknown = refused(&mut bench, delete(&[2, 9], false));
    assert_eq!(unknown, (ErrorKind::NotFound, "no job 9".to_owned()), "none goes");

    // Its number isn't given again, not even after a start.
    assert_eq!(deleted(&mut bench, &[2], false).bytes_freed, second);
    assert_eq!(collected(&mut bench), 0);
    let snapshot = bench.core.snapshot().unwrap();
    bench.core = Core::from_snapshot(&snapshot, *bench.core.config()).unwrap();
    bench.apply(Command::Started);
    for blob in data().blobs() {
        bench.apply(Command::Published { to: TO, blob });
    }
    let Ok(Answer::Submitted(answer)) = bench.submit(2, 1, false) else { panic!("a new job") };
    assert_eq!((answer.job, answer.submitted), (JobId(3), Submitted::New));
}

#[test]
fn what_comes_late_of_a_deleted_job_is_told_that_there_is_no_such_lease() {
    let mut bench = Bench::with_job(1, 1);
    let lease = bench.lease(HOST);
    bench.apply(Command::Cancel { to: TO, job: JOB });
    assert_eq!(bench.events(delete(&[1], false)), [Event::JobDeleted { job: JOB }]);
    let late = bench.report(HOST, done(&lease)).unwrap_err();
    assert_eq!(late.kind, ErrorKind::NotFound);
    let reported = vec![lease.id];
    let heartbeat = Command::Heartbeat {
        to: TO,
        host: HOST,
        request: HeartbeatRequest::new(Vec::new(), reported),
    };
    let Ok(Answer::Heartbeat(answer)) = bench.answer(heartbeat) else { panic!("an answer") };
    assert_eq!(answer.reports[0].state, ReportState::Ended(ReportEnd::Superseded));
    assert!(bench.ask(HOST, request(1, Vec::new())).leases.is_empty());
}

#[test]
fn a_job_with_an_open_evaluation_is_not_deleted() {
    let mut bench = Bench::with_job(1, 1);
    while bench.job().ended_at.is_none() {
        bench.work_once(&[HOST]);
    }
    let evaluate =
        Command::Evaluate { to: TO, job: JOB, trial: TrialId(0), split: DataSplit::Valid };
    bench.answer(evaluate).unwrap();
    let (kind, said) = refused(&mut bench, delete(&[1], false));
    assert_eq!(kind, ErrorKind::Conflict);
    assert_eq!(said, "an evaluation of job 1 is open: wait for it, or cancel it");
    bench.apply(Command::Cancel { to: TO, job: JOB });
    assert_eq!(bench.events(delete(&[1], false)), [Event::JobDeleted { job: JOB }]);
}

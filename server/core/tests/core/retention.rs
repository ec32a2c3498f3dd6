//! How much of jobs that have ended a server keeps.

use crate::support::{Bench, HOST, JOB};
use sojourn_core::{BeyondRetention, Command, Core, CoreConfig, Event, Query, ReplyTo, Retention};
use sojourn_protocol::{
    error::ErrorKind, ids::JobId, ids::TrialId, manifest::DataSplit, time::Millis,
};

const TO: ReplyTo = ReplyTo(1);
const HOUR: u64 = 3_600_000;

/// Three jobs of two trials on the same data, each of which ended an hour after the one before.
fn three_ended() -> Bench {
    let mut bench = Bench::with_job(2, 2);
    for job in 1..=3 {
        if job > 1 {
            bench.submit(2, 2, true).unwrap();
        }
        while bench.core.state().jobs[&JobId(job)].end.is_none() {
            bench.work_once(&[HOST]);
        }
        bench.now += HOUR;
    }
    bench
}

/// A server starts on the same journal with another setting; says what it does with jobs until nothing is left to do.
fn starts_with(bench: &mut Bench, retention: Retention) -> Vec<Event> {
    let snapshot = bench.core.snapshot().unwrap();
    let config = CoreConfig { retention, ..*bench.core.config() };
    bench.core = Core::from_snapshot(&snapshot, config).unwrap();
    bench.apply(Command::Started);
    passes(bench, 0)
}

/// Time passes, from one thing that is due to the next; says what becomes of jobs.
fn passes(bench: &mut Bench, millis: u64) -> Vec<Event> {
    let until = bench.now + millis;
    let mut events = Vec::new();
    loop {
        events.extend(bench.events(Command::Tick));
        let next = bench.core.next_deadline().map_or(u64::MAX, |next| next.0.max(bench.now));
        if next > until {
            bench.now = until;
            break;
        }
        bench.now = next;
    }
    events.retain(|event| matches!(event, Event::JobThinned { .. } | Event::JobDeleted { .. }));
    events
}

fn thinned(jobs: &[u64]) -> Vec<Event> {
    jobs.iter().map(|job| Event::JobThinned { job: JobId(*job) }).collect()
}

fn keep_jobs(most: u32) -> Retention {
    Retention { jobs: Some(most), ..Retention::default() }
}

#[test]
fn a_thinned_job_keeps_its_figures_and_its_best_model() {
    let mut bench = three_ended();
    let before = (bench.job(), bench.trials());
    assert_eq!(starts_with(&mut bench, Retention::default()), [], "all is kept");
    assert_eq!(starts_with(&mut bench, keep_jobs(1)), thinned(&[1, 2]), "the oldest first");
    assert_eq!(passes(&mut bench, HOUR), [], "once");
    let (job, trials) = (bench.job(), bench.trials());
    let best = job.best.clone().unwrap();
    assert!(job.thinned && !before.0.thinned);
    assert_eq!((&job.best, job.state, job.trials_finished), (&before.0.best, before.0.state, 2));
    assert_eq!(job.disk_bytes, best.checkpoint.bytes);
    let curves = |trials: &[sojourn_protocol::view::TrialView]| -> Vec<_> {
        trials.iter().map(|trial| (trial.curve.clone(), trial.best.clone())).collect()
    };
    assert_eq!(curves(&trials), curves(&before.1));
    assert!(trials.iter().all(|trial| trial.checkpoint.is_none()));
    let state = bench.core.state();
    assert_eq!(state.blobs.references(&best.checkpoint.sha256), 1);
    let other = before.1.iter().find(|trial| trial.trial != best.trial).unwrap();
    assert_eq!(state.blobs.references(&other.checkpoint.unwrap().sha256), 0);
    let shard = state.jobs[&JOB].data.train[0].blob.sha256;
    assert_eq!(state.blobs.references(&shard), 1, "the third job's");
    let snapshot = bench.core.snapshot().unwrap();
    let read = Core::from_snapshot(&snapshot, *bench.core.config()).unwrap();
    assert_eq!(read.state(), bench.core.state());

    // Nothing of it goes on, and it can be deleted.
    let (trial, split) = (TrialId(0), DataSplit::Valid);
    for command in [
        Command::Extend { to: TO, job: JOB, epochs: 9, trial: None, reopen: false },
        Command::Evaluate { to: TO, job: JOB, trial, split },
    ] {
        let error = bench.answer(command).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Conflict);
        assert!(error.message.contains("job 1 is thinned"), "{error}");
    }
    let delete = Command::Delete { to: TO, jobs: vec![JOB], preview: false };
    assert_eq!(bench.events(delete), [Event::JobDeleted { job: JOB }]);
    assert_eq!(bench.core.state().blobs.references(&best.checkpoint.sha256), 0);
}

#[test]
fn jobs_are_kept_by_age_and_those_that_run_are_let_be() {
    let mut bench = three_ended();
    bench.submit(1, 1, true).unwrap();
    let age = Retention { age: Some(Millis(3 * HOUR)), ..Retention::default() };
    // The first job ended a little more than three hours ago.
    assert_eq!(starts_with(&mut bench, age), thinned(&[1]));
    assert_eq!(passes(&mut bench, HOUR), thinned(&[2]));
    assert_eq!(passes(&mut bench, 100 * HOUR), thinned(&[3]), "job 4 runs");
    // What is done later is looked at within a minute, and a job that waits for an evaluation isn't touched.
    while bench.core.state().jobs[&JobId(4)].end.is_none() {
        bench.work_once(&[HOST]);
    }
    let (job, trial, split) = (JobId(4), TrialId(0), DataSplit::Valid);
    bench.answer(Command::Evaluate { to: TO, job, trial, split }).unwrap();
    assert_eq!(passes(&mut bench, 4 * HOUR), []);
    bench.apply(Command::Cancel { to: TO, job });
    assert_eq!(passes(&mut bench, 60_000), thinned(&[4]));
}

#[test]
fn jobs_are_kept_by_bytes_and_their_common_data_counts_once() {
    let mut bench = three_ended();
    let disk = |bench: &Bench, job| bench.core.state().jobs[&JobId(job)].disk();
    let two = disk(&bench, 3) + disk(&bench, 2) - 400;
    let bytes = |most| Retention { bytes: Some(most), ..Retention::default() };
    let three = two + disk(&bench, 1) - 400;
    assert_eq!(starts_with(&mut bench, bytes(three)), []);
    assert_eq!(starts_with(&mut bench, bytes(two)), thinned(&[1]));
    assert_eq!(starts_with(&mut bench, bytes(two - 1)), thinned(&[2]));
    assert_eq!(starts_with(&mut bench, bytes(0)), thinned(&[3]));
}

#[test]
fn the_first_limit_that_is_reached_counts_and_jobs_may_be_deleted_whole() {
    let mut bench = three_ended();
    assert_eq!(starts_with(&mut bench, keep_jobs(2)), thinned(&[1]));
    let delete = Retention {
        jobs: Some(3),
        age: Some(Millis(2 * HOUR)),
        bytes: Some(u64::MAX),
        beyond: BeyondRetention::Delete,
    };
    let deleted = |job| Event::JobDeleted { job: JobId(job) };
    assert_eq!(starts_with(&mut bench, delete), [deleted(1), deleted(2)]);
    let query = Query::Job { job: JOB };
    let error = bench.answer(Command::Query { to: TO, query }).unwrap_err();
    assert_eq!(error.message, "job 1 was deleted");
}

#[test]
fn of_very_many_jobs_a_few_go_in_one_step() {
    let mut bench = Bench::with_job(1, 1);
    bench.apply(Command::Cancel { to: TO, job: JOB });
    for job in 2..=40 {
        bench.submit(1, 1, true).unwrap();
        bench.apply(Command::Cancel { to: TO, job: JobId(job) });
    }
    let retention = keep_jobs(1);
    let snapshot = bench.core.snapshot().unwrap();
    let config = CoreConfig { retention, ..*bench.core.config() };
    bench.core = Core::from_snapshot(&snapshot, config).unwrap();
    bench.apply(Command::Started);
    let mut steps = Vec::new();
    while steps.last() != Some(&0) {
        steps.push(bench.events(Command::Tick).len());
    }
    assert_eq!(steps, [16, 16, 7, 0]);
}

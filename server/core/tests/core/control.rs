//! Jobs that are paused, resumed and extended.

use crate::support::{
    Bench, HOST, JOB, OTHER, data, evaluation, fail, hop, request, trained, version,
};
use sojourn_core::{Answer, Command, Core, Event, LeaseEnd, Query, ReplyTo};
use sojourn_protocol::{
    api::{HeartbeatAnswer, HeartbeatRequest, Held, HeldState},
    error::ErrorKind,
    ids::{HostId, JobId, LeaseId, TrialId},
    report::{FailureKind, Outcome, Report},
    time::Millis,
    unit::{FormerLength, Unit},
    view::{JobState, JobView, TrialHistory},
};

const TO: ReplyTo = ReplyTo(1);
const RUNNING: HeldState = HeldState::Running { done: 0, of: 3 };

fn pause(now: bool) -> Command {
    Command::Pause { to: TO, job: JOB, now }
}

fn resume() -> Command {
    Command::Resume { to: TO, job: JOB }
}

fn extend(epochs: u32, trial: Option<u32>) -> Command {
    Command::Extend { to: TO, job: JOB, epochs, trial: trial.map(TrialId), reopen: false }
}

fn refused(bench: &mut Bench, command: Command) -> (ErrorKind, String) {
    let position = bench.core.position();
    let error = bench.answer(command).unwrap_err();
    assert_eq!(bench.core.position(), position, "nothing changed");
    (error.kind, error.message)
}

/// Two hops and an evaluation: an epoch of the only trial.
fn train_epoch(bench: &mut Bench) {
    for _ in 0..3 {
        let lease = bench.lease(HOST);
        bench.finish(HOST, &lease);
    }
}

fn history(bench: &mut Bench) -> TrialHistory {
    let query = Query::History { job: JOB, trial: TrialId(0) };
    match bench.answer(Command::Query { to: TO, query }) {
        Ok(Answer::History(history)) => *history,
        other => panic!("{other:?}"),
    }
}

fn is_idle(bench: &mut Bench, host: HostId) -> bool {
    bench.ask(host, request(1, Vec::new())).leases.is_empty()
}

#[test]
fn a_paused_job_hands_nothing_out_and_takes_what_runs() {
    let mut data = data();
    data.train.iter_mut().for_each(|shard| shard.rows = 80);
    let mut bench = Bench::with_job_on(data, 2, 1, "");
    let lease = bench.lease(HOST);
    bench.ask(HOST, request(0, vec![(lease.id, RUNNING)]));
    assert_eq!(bench.events(pause(false)), [Event::JobPaused { job: JOB }]);
    assert!(bench.events(pause(false)).is_empty(), "paused once");
    assert!(is_idle(&mut bench, OTHER));
    let JobView { state, waiting, .. } = bench.job();
    assert_eq!(state, JobState::Paused);
    assert_eq!(waiting.unwrap(), "it is paused; 1 unit is still with a machine");
    // It runs on over many heartbeats, and its result counts.
    for done in 1..10 {
        bench.now += 5_000;
        let state = HeldState::Running { done, of: 10 };
        let holding = vec![Held::new(lease.id, state)];
        let heartbeat = Command::Heartbeat {
            to: TO,
            host: HOST,
            request: HeartbeatRequest::new(holding, Vec::new()),
        };
        let answer = HeartbeatAnswer {
            drop: Vec::new(),
            reports: Vec::new(),
            stop: Vec::new(),
            leave_within: None,
        };
        assert_eq!(bench.answer(heartbeat), Ok(Answer::Heartbeat(answer)));
    }
    bench.finish(HOST, &lease);
    assert_eq!(bench.trials()[0].version, version(1));
    assert!(is_idle(&mut bench, HOST));
    assert_eq!(bench.job().waiting.unwrap(), "it is paused: resume it, and it goes on");
    assert_eq!(bench.trials()[0].waiting.as_deref(), Some("its job is paused"));
    // A start changes nothing about it.
    bench.core =
        Core::from_snapshot(&bench.core.snapshot().unwrap(), *bench.core.config()).unwrap();
    bench.apply(Command::Started);
    assert_eq!(bench.job().state, JobState::Paused);
    bench.ask(HOST, request(0, Vec::new()));
    assert!(is_idle(&mut bench, HOST));

    let mut waits = request(1, Vec::new());
    waits.wait = Millis(5_000);
    assert!(bench.apply(Command::Ask { to: ReplyTo(7), host: HOST, request: waits }).is_empty());
    let resumed = bench.events(resume());
    assert!(
        matches!(resumed[..], [Event::JobResumed { job: JOB }, Event::LeaseGranted { .. }]),
        "who waits is answered: {resumed:?}"
    );
    assert!(bench.events(resume()).is_empty(), "resumed once");
    assert_eq!(bench.job().state, JobState::Running);
}

#[test]
fn evaluations_of_a_paused_job_wait() {
    let mut bench = Bench::with_job(1, 1);
    for _ in 0..2 {
        let lease = bench.lease(HOST);
        bench.finish(HOST, &lease);
    }
    bench.apply(pause(false));
    assert!(is_idle(&mut bench, HOST));
    bench.apply(resume());
    evaluation(&bench.lease(HOST));
}

#[test]
fn units_that_have_not_started_are_revoked_by_a_pause() {
    let mut bench = Bench::with_job(3, 1);
    let leases = bench.ask(HOST, request(2, Vec::new())).leases;
    let [runs, waits] = &leases[..] else { panic!("{leases:?}") };
    let (runs, waits) = (runs.id, waits.id);
    bench.ask(HOST, request(0, vec![(runs, RUNNING), (waits, HeldState::Waiting)]));
    bench.apply(pause(false));
    let hold = |lease, state| Held::new(lease, state);
    let holding = vec![hold(runs, RUNNING), hold(waits, HeldState::Fetching { fetched: 9 })];
    let heartbeat = Command::Heartbeat {
        to: TO,
        host: HOST,
        request: HeartbeatRequest::new(holding, Vec::new()),
    };
    let answer = HeartbeatAnswer {
        drop: vec![waits],
        reports: Vec::new(),
        stop: Vec::new(),
        leave_within: None,
    };
    assert_eq!(bench.answer(heartbeat), Ok(Answer::Heartbeat(answer)));
    assert_eq!(bench.job().leases_live, 1);
    // Nor is what a host has lost sent again.
    let lost = bench.ask(HOST, request(1, Vec::new()));
    assert!(lost.leases.is_empty(), "{lost:?}");
    assert_eq!(bench.job().leases_live, 0);
}

#[test]
fn a_pause_at_once_has_a_hop_end_where_it_is() {
    let mut bench = Bench::with_job(1, 1);
    let lease = bench.lease(HOST);
    bench.ask(HOST, request(0, vec![(lease.id, RUNNING)]));
    bench.apply(pause(false));
    assert!(bench.ask(HOST, request(0, vec![(lease.id, RUNNING)])).stop.is_empty());
    // A pause that could wait can be made one at once.
    assert!(bench.events(pause(true)).is_empty(), "the lease lives on");
    let answer = bench.ask(HOST, request(0, vec![(lease.id, RUNNING)]));
    assert_eq!((answer.stop, answer.drop), (vec![lease.id], Vec::new()));
    let answer = bench.ask(HOST, request(0, vec![(lease.id, RUNNING)]));
    assert!(answer.stop.is_empty(), "an ask that waits isn't answered twice for it");
    let beat = || Command::Heartbeat {
        to: ReplyTo(1),
        host: HOST,
        request: HeartbeatRequest::new(vec![Held::new(lease.id, RUNNING)], Vec::new()),
    };
    let Ok(Answer::Heartbeat(answer)) = bench.answer(beat()) else { panic!("no heartbeat") };
    assert_eq!(answer.stop, [lease.id], "a heartbeat says it until it is done");
    let outcome = Outcome::Trained(trained(&lease, 1));
    bench.report(HOST, Report { lease: lease.id, outcome }).unwrap();
    bench.assimilate();
    assert_eq!(bench.job().leases_live, 0);
    bench.apply(resume());
    assert_eq!(hop(&bench.lease(OTHER)).start.batch, 1, "it goes on where it ended");
}

#[test]
fn a_pause_at_once_takes_back_what_has_no_part() {
    let mut bench = Bench::with_job(1, 1);
    for _ in 0..2 {
        let lease = bench.lease(HOST);
        bench.finish(HOST, &lease);
    }
    let lease = bench.lease(HOST);
    assert!(matches!(lease.unit, Unit::Evaluate(_)), "{lease:?}");
    bench.ask(HOST, request(0, vec![(lease.id, RUNNING)]));
    let end = Event::LeaseEnded { lease: lease.id, end: LeaseEnd::Revoked };
    assert_eq!(bench.events(pause(true)), [Event::JobPaused { job: JOB }, end]);
    let answer = bench.ask(HOST, request(1, vec![(lease.id, RUNNING)]));
    assert_eq!((answer.drop, answer.leases), (vec![lease.id], Vec::new()));
}

#[test]
fn an_ended_job_is_neither_paused_nor_resumed() {
    let mut bench = Bench::with_job(1, 1);
    bench.apply(pause(false));
    bench.apply(Command::Cancel { to: TO, job: JOB });
    assert_eq!(bench.job().state, JobState::Cancelled);
    let conflict = |text: &str| (ErrorKind::Conflict, text.to_owned());
    let said = refused(&mut bench, pause(false));
    assert_eq!(said, conflict("job 1 was cancelled: there is nothing to pause"));
    let said = refused(&mut bench, resume());
    assert_eq!(said, conflict("job 1 was cancelled: there is nothing to resume"));
    let unknown = Command::Pause { to: TO, job: JobId(9), now: false };
    assert_eq!(refused(&mut bench, unknown), (ErrorKind::NotFound, "no job 9".to_owned()));
}

#[test]
fn a_finished_job_is_extended_and_goes_on_from_its_last_checkpoint() {
    let mut bench = Bench::with_job(1, 1);
    train_epoch(&mut bench);
    let ended = bench.job();
    assert_eq!((ended.state, ended.hops, ended.hops_expected), (JobState::Finished, 2, 2));
    let last = bench.trials()[0].checkpoint;
    // Days later it is still there.
    for _ in 0..10 {
        bench.now += 24 * 3600 * 1000;
        bench.apply(Command::Tick);
    }
    let extended = Event::JobExtended {
        job: JOB,
        trials: vec![TrialId(0)],
        epochs: 3,
        named: false,
        by: None,
    };
    assert_eq!(bench.events(extend(3, None)), [extended]);
    assert!(bench.events(extend(3, None)).is_empty(), "said twice, done once");
    let job = bench.job();
    assert_eq!((job.state, job.ended_at), (JobState::Running, None));
    assert_eq!((job.hops, job.hops_expected, job.evaluations_expected), (2, 6, 3));
    bench.ask(HOST, request(0, Vec::new()));
    let lease = bench.lease(HOST);
    let next = hop(&lease);
    assert_eq!((next.base.version(), next.base.blob()), (version(2), last));
    // Batches of 8: 3 and 2 in the shards of 20 and 12 rows.
    assert_eq!((next.start.step, next.context.total_steps), (5, 15));
    bench.finish(HOST, &lease);
    // Three more hops, and the evaluations of two epochs.
    for _ in 0..5 {
        assert_eq!(bench.job().state, JobState::Running);
        let lease = bench.lease(HOST);
        bench.finish(HOST, &lease);
    }
    let ended = bench.job();
    assert_eq!((ended.state, ended.hops, ended.evaluations), (JobState::Finished, 6, 3));
    assert_eq!(bench.trials()[0].curve.len(), 3);
}

#[test]
fn what_was_granted_before_an_extension_is_trained_as_it_was_then() {
    let mut bench = Bench::with_job(1, 1);
    let first = bench.lease(HOST);
    bench.finish(HOST, &first);
    let second = bench.lease(HOST);
    bench.apply(extend(2, None));
    // The host has lost it, and gets the same again.
    let again = bench.lease(HOST);
    assert_eq!((again.id, hop(&again)), (second.id, hop(&second)));
    bench.finish(HOST, &again);
    bench.apply(extend(4, Some(0)));
    let third = bench.lease(HOST);
    assert_eq!(hop(&third).context.total_steps, 20);
    bench.finish(HOST, &third);
    let history = history(&mut bench);
    let of = |lease: LeaseId, epochs| FormerLength {
        until: lease,
        epochs,
        total_steps: u64::from(epochs) * 5,
    };
    assert_eq!(history.former, [of(second.id, 1), of(second.id, 2)]);
    let contexts: Vec<_> = history.hops.iter().map(|hop| history.context_of(hop)).collect();
    let granted = [&first, &second, &third].map(|lease| hop(lease).context.clone());
    assert_eq!(contexts, granted, "a replay trains with what was trained with");
}

#[test]
fn one_trial_of_several_is_extended_alone() {
    let mut bench = Bench::with_job(2, 1);
    bench.apply(extend(3, Some(1)));
    let epochs: Vec<u32> = bench.trials().iter().map(|trial| trial.epochs).collect();
    assert_eq!(epochs, [1, 3]);
    let job = bench.job();
    assert_eq!((job.hops_expected, job.evaluations_expected), (8, 4));
    assert_eq!(bench.core.state().jobs[&JOB].load, [4, 4]);
    // The rest catches up; what is as long already stays.
    let rest = Event::JobExtended {
        job: JOB,
        trials: vec![TrialId(0)],
        epochs: 2,
        named: false,
        by: None,
    };
    assert_eq!(bench.events(extend(2, None)), [rest]);
    assert!(bench.events(extend(3, Some(1))).is_empty());
}

#[test]
fn what_can_not_be_extended_is_refused() {
    let mut bench = Bench::with_job(2, 3);
    let said = refused(&mut bench, extend(2, None));
    let fewer = "job 1 trains for 3 epochs already: 2 in all are fewer";
    assert_eq!(said, (ErrorKind::Invalid, fewer.to_owned()));
    let said = refused(&mut bench, extend(5_000_000, None));
    assert_eq!(said.0, ErrorKind::Invalid, "it could not be taken back: {}", said.1);
    let said = refused(&mut bench, extend(1, Some(1)));
    let fewer = "trial 1 of job 1 trains for 3 epochs already: 1 in all are fewer";
    assert_eq!(said, (ErrorKind::Invalid, fewer.to_owned()));
    let said = refused(&mut bench, extend(9, Some(2)));
    assert_eq!(said, (ErrorKind::NotFound, "job 1 has no trial 2".to_owned()));
    for blob in data().blobs() {
        bench.apply(Command::Published { to: TO, blob });
    }
    // A loss that isn't finite, at both hosts, ends a trial.
    for host in [HOST, OTHER] {
        let lease = bench.lease(host);
        assert_eq!(lease.unit.trial(), TrialId(0));
        fail(&mut bench, host, lease.id, FailureKind::NonFinite, "NaN");
    }
    let said = refused(&mut bench, extend(9, Some(0)));
    let failed = "trial 0 of job 1 has failed: it can't go on, but `sojourn trials 1 --retry 0` runs it again";
    assert_eq!(said, (ErrorKind::Conflict, failed.to_owned()));
    let rest = Event::JobExtended {
        job: JOB,
        trials: vec![TrialId(1)],
        epochs: 4,
        named: false,
        by: None,
    };
    assert_eq!(bench.events(extend(4, None)), [rest]);
    for host in [HOST, OTHER] {
        let lease = bench.lease(host);
        fail(&mut bench, host, lease.id, FailureKind::NonFinite, "NaN");
    }
    assert_eq!(bench.job().state, JobState::Failed);
    let said = refused(&mut bench, extend(9, None));
    let failed = "all trials of job 1 have failed: none can go on";
    assert_eq!(said, (ErrorKind::Conflict, failed.to_owned()));

    let mut bench = Bench::with_job(1, 1);
    bench.apply(Command::Cancel { to: TO, job: JOB });
    let said = refused(&mut bench, extend(9, None));
    let cancelled =
        "job 1 was cancelled: `sojourn extend 1 --epochs 1 --reopen` has it go on".to_owned();
    assert_eq!(said, (ErrorKind::Conflict, cancelled));
}

fn reopen(epochs: u32, trial: Option<u32>) -> Command {
    Command::Extend { to: TO, job: JOB, epochs, trial: trial.map(TrialId), reopen: true }
}

#[test]
fn a_cancelled_job_is_reopened_and_goes_on_with_all_that_it_had() {
    let mut bench = Bench::with_job(1, 2);
    // An epoch, whose evaluation waits.
    for _ in 0..2 {
        let lease = bench.lease(HOST);
        bench.finish(HOST, &lease);
    }
    let last = bench.trials()[0].checkpoint;
    let held = bench.lease(HOST);
    bench.apply(Command::Cancel { to: TO, job: JOB });
    for _ in 0..10 {
        bench.now += 24 * 3600 * 1000;
        bench.apply(Command::Tick);
    }
    assert_eq!(bench.job().state, JobState::Cancelled);
    assert!(is_idle(&mut bench, OTHER));
    let extended = Event::JobExtended {
        job: JOB,
        trials: vec![TrialId(0)],
        epochs: 2,
        named: false,
        by: None,
    };
    assert_eq!(bench.events(reopen(2, None)), [extended]);
    assert!(bench.events(reopen(2, None)).is_empty(), "said twice, done once");
    let job = bench.job();
    assert_eq!((job.state, job.hops, job.hops_expected), (JobState::Running, 2, 4));
    assert_eq!(bench.trials()[0].checkpoint, last);
    // Whoever trained on meanwhile is told that nobody wants it.
    let answer = bench.ask(HOST, request(0, vec![(held.id, RUNNING)]));
    assert_eq!(answer.drop, [held.id]);
    // The evaluation that was left is done too.
    for _ in 0..4 {
        let lease = bench.lease(HOST);
        bench.finish(HOST, &lease);
    }
    let ended = bench.job();
    assert_eq!((ended.state, ended.hops, ended.evaluations), (JobState::Finished, 4, 2));
    assert_eq!(bench.trials()[0].curve.len(), 2);
}

#[test]
fn one_trial_of_a_cancelled_job_goes_on_alone() {
    let mut bench = Bench::with_job(2, 1);
    bench.apply(Command::Cancel { to: TO, job: JOB });
    bench.apply(reopen(1, Some(1)));
    for _ in 0..3 {
        let lease = bench.lease(HOST);
        assert_eq!(lease.unit.trial(), TrialId(1));
        bench.finish(HOST, &lease);
    }
    assert_eq!(bench.job().state, JobState::Finished);
    // The other one goes on later, and the job with it.
    let said = refused(&mut bench, extend(1, Some(0)));
    let cancelled = "trial 0 of job 1 was cancelled: `--reopen` has it go on".to_owned();
    assert_eq!(said, (ErrorKind::Conflict, cancelled));
    bench.apply(reopen(1, Some(0)));
    train_epoch(&mut bench);
    assert_eq!(bench.job().state, JobState::Finished);
}

#[test]
fn a_cancelled_job_whose_trials_had_ended_is_not_reopened() {
    let mut bench = Bench::with_job(1, 1);
    train_epoch(&mut bench);
    let over = refused(&mut bench, Command::Cancel { to: TO, job: JOB });
    assert_eq!(over.0, ErrorKind::Conflict);
    // A finished job needs no such word.
    bench.apply(reopen(2, None));
    train_epoch(&mut bench);
    assert_eq!(bench.job().state, JobState::Finished);
}

#[test]
fn a_note_replaces_the_one_before_also_after_the_end_and_a_restart() {
    let mut bench = Bench::with_job(1, 1);
    let note = |bench: &mut Bench, text: &str| {
        bench.events(Command::Note { to: ReplyTo(1), job: JOB, note: text.to_owned() })
    };
    let noted = |text: &str| vec![Event::JobNoted { job: JOB, note: text.to_owned() }];
    assert_eq!(note(&mut bench, "with augmentation"), noted("with augmentation"));
    assert_eq!(note(&mut bench, "with augmentation"), [], "it is noted already");
    assert_eq!(bench.job().note, "with augmentation");
    bench.events(Command::Cancel { to: ReplyTo(1), job: JOB });
    assert_eq!(note(&mut bench, "too slow\u{1b}"), noted("too slow"), "no terminal obeys it");
    let snapshot = bench.core.snapshot().unwrap();
    let again = Core::from_snapshot(&snapshot, *bench.core.config()).unwrap();
    assert_eq!(again.state().jobs[&JOB].note, "too slow");
    assert_eq!(note(&mut bench, ""), noted(""));
    assert_eq!(bench.job().note, "");
    let to = ReplyTo(1);
    let unknown = bench.answer(Command::Note { to, job: JobId(9), note: "x".into() });
    assert_eq!(unknown.unwrap_err().kind, ErrorKind::NotFound);
}

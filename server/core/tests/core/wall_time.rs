//! Jobs whose wall time is over: what is trained is still evaluated, then the search ends; and how they go on.

use crate::{
    stopping::{evaluating, extend, report, revoked, searching},
    support::{Bench, HOST, JOB, OTHER, data, data_with_test, done, evaluation, hop, request},
};
use sojourn_core::{Command, Core, Event, JournalPosition, Record, ReplyTo, state::TrialEnd};
use sojourn_protocol::{
    api::{HeldState, RollbackOptions, RollbackRequest},
    ids::TrialId,
    time::{Millis, UnixMillis},
    unit::Unit,
    view::{JobState, TrialState},
};

const TO: ReplyTo = ReplyTo(1);
/// The wall time of a short job is over.
const OVER: Event = Event::JobTrainingOver { job: JOB, grace: Millis(600_000), used_up: None };

fn tick(bench: &mut Bench) -> Vec<Event> {
    bench.events(Command::Tick)
}

/// Lets time pass, from one thing that is due to the next, until the job's time is up; says the events of then.
fn wait(bench: &mut Bench) -> Vec<Event> {
    for _ in 0..1_000 {
        bench.now = bench.core.next_deadline().expect("something is due").0.max(bench.now);
        let events = tick(bench);
        if events.iter().any(|event| matches!(event, Event::JobTimeUp { .. })) {
            return events;
        }
    }
    panic!("the job goes on: {:?}", bench.job());
}

#[test]
fn a_job_ends_when_its_wall_time_is_over() {
    let mut bench = searching(1, "wall_time = \"5s\"");
    let submitted = bench.now;
    let (evaluation, next) = evaluating(&mut bench);
    report(&mut bench, &evaluation);
    let running = HeldState::Running { done: 1, of: 3 };
    bench.ask(OTHER, request(0, vec![(next.id, running)]));
    assert_eq!(wait(&mut bench), [OVER, revoked(next.id), Event::JobTimeUp { job: JOB }]);
    assert_eq!(bench.now, submitted + 5_000);
    let trial = bench.trials().remove(0);
    assert_eq!(trial.state, TrialState::Finished);
    assert_eq!(trial.stopped.as_deref(), Some("stopped after 5s"));
    assert_eq!(bench.job().state, JobState::Finished);
    assert!(tick(&mut bench).is_empty(), "it ends once");
}

#[test]
fn what_is_trained_is_evaluated_when_the_wall_time_is_over_and_nothing_more_is_trained() {
    let mut bench = searching(1, "wall_time = \"5s\"");
    let (evaluation, next) = evaluating(&mut bench);
    bench.now += 5_000;
    assert_eq!(tick(&mut bench), [OVER, revoked(next.id)]);
    assert_eq!(
        bench.job().waiting.unwrap(),
        "its time is up: nothing more is trained, and what is trained is evaluated for up to 10 min"
    );
    assert!(bench.ask(OTHER, request(1, Vec::new())).leases.is_empty());
    let late = Command::Report { to: TO, host: OTHER, report: done(&next), uploaded: None };
    let events = bench.events(late);
    assert_eq!(events.last(), Some(&Event::Superseded { lease: next.id }), "it was revoked");
    // It is remembered by a server that starts again.
    let snapshot = bench.core.snapshot().unwrap();
    bench.core = Core::from_snapshot(&snapshot, *bench.core.config()).unwrap();
    bench.apply(Command::Started);
    let events = report(&mut bench, &evaluation);
    let [Event::ReportAcknowledged { .. }, Event::Evaluated { .. }, ended] = &events[..] else {
        panic!("{events:?}")
    };
    assert_eq!(*ended, Event::JobTimeUp { job: JOB });
    let trial = bench.trials().remove(0);
    assert_eq!((trial.state, trial.curve.len()), (TrialState::Finished, 1));
    assert_eq!(trial.stopped.as_deref(), Some("stopped after 5s"));
    assert_eq!(bench.job().state, JobState::Finished);
}

#[test]
fn a_result_that_has_come_by_the_end_of_the_wall_time_is_taken_in_and_evaluated() {
    let mut bench = searching(1, "wall_time = \"5s\"");
    let lease = bench.lease(HOST);
    bench.finish(HOST, &lease);
    let last = bench.lease(HOST);
    bench.report(HOST, done(&last)).unwrap();
    bench.now += 5_000;
    assert_eq!(tick(&mut bench), [OVER]);
    bench.assimilate();
    let lease = bench.lease(HOST);
    assert_eq!(evaluation(&lease).epoch.0, 0);
    assert_eq!(report(&mut bench, &lease).last(), Some(&Event::JobTimeUp { job: JOB }));
    assert_eq!(bench.trials()[0].state, TrialState::Finished);
}

#[test]
fn a_trial_that_nobody_has_evaluated_in_the_grace_can_be_extended() {
    let mut bench = searching(2, "wall_time = \"2h\"");
    let submitted = bench.now;
    for _ in 0..4 {
        let lease = bench.lease(HOST);
        bench.finish(HOST, &lease);
    }
    let left: Vec<_> = bench.trials().into_iter().map(|trial| trial.checkpoint).collect();
    assert!(bench.trials().iter().all(|trial| trial.epoch.0 == 1 && trial.curve.is_empty()));
    let grace = Millis(720_000);
    let mut over = Vec::new();
    while over.is_empty() {
        bench.now = bench.core.next_deadline().expect("something is due").0.max(bench.now);
        over = tick(&mut bench);
        over.retain(|event| matches!(event, Event::JobTrainingOver { .. }));
    }
    assert_eq!(
        over,
        [Event::JobTrainingOver { job: JOB, grace, used_up: None }],
        "a tenth of two hours"
    );
    assert_eq!(wait(&mut bench), [Event::JobTimeUp { job: JOB }]);
    assert_eq!(bench.now, submitted + 7_200_000 + 720_000);
    assert_eq!(bench.job().state, JobState::Failed);
    for trial in bench.trials() {
        let error = "stopped after 2h, before an epoch was evaluated".to_owned();
        assert_eq!(trial.state, TrialState::Failed { error });
    }
    let kept: Vec<_> = bench.trials().into_iter().map(|trial| trial.checkpoint).collect();
    assert_eq!(kept, left);
    // Both go on to the three epochs that they were to have, for two hours more.
    bench.now += 1_000;
    let trials = vec![TrialId(0), TrialId(1)];
    assert_eq!(
        bench.events(extend(3, None)),
        [Event::JobExtended { job: JOB, trials, epochs: 3, named: false, by: None }]
    );
    let extended = bench.now;
    bench.ask(HOST, request(0, Vec::new()));
    bench.ask(OTHER, request(0, Vec::new()));
    let mut evaluated = 0;
    while bench.job().state == JobState::Running {
        bench.now += 100;
        let lease = bench.lease(HOST);
        match lease.unit {
            Unit::Train(_) => drop(bench.finish(HOST, &lease)),
            Unit::Evaluate(_) => {
                report(&mut bench, &lease);
                evaluated += 1;
            }
        }
    }
    assert_eq!(evaluated, 6, "the first epochs too, which were trained before");
    assert!(bench.now < extended + 7_200_000);
    assert_eq!(bench.job().state, JobState::Finished);
    for trial in bench.trials() {
        assert_eq!((trial.state, trial.stopped), (TrialState::Finished, None));
    }
}

#[test]
fn a_job_whose_time_is_up_has_it_once_more_when_it_is_extended() {
    let mut bench = searching(1, "wall_time = \"5s\"");
    let (evaluation, _) = evaluating(&mut bench);
    report(&mut bench, &evaluation);
    wait(&mut bench);
    assert_eq!(bench.job().state, JobState::Finished);
    bench.now += 3_600_000;
    assert!(bench.answer(extend(3, None)).is_ok());
    assert_eq!(bench.job().state, JobState::Running);
    let over = bench.now + 5_000;
    assert_eq!(wait(&mut bench), [OVER, Event::JobTimeUp { job: JOB }]);
    assert_eq!(bench.now, over);

    // In the grace: what runs goes on too.
    let mut bench = searching(1, "wall_time = \"5s\"");
    let (evaluation, _) = evaluating(&mut bench);
    bench.now += 5_000;
    tick(&mut bench);
    assert!(bench.answer(extend(3, None)).is_ok());
    assert_eq!(bench.job().waiting, None);
    assert_eq!(hop(&bench.lease(OTHER)).start.epoch.0, 1);
    report(&mut bench, &evaluation);
    assert_eq!(bench.job().state, JobState::Running);
    let over = bench.now + 5_000;
    let events = wait(&mut bench);
    assert_eq!((events[0].clone(), bench.now), (OVER, over));
}

#[test]
fn a_trial_that_finishes_in_the_grace_is_extended_only_for_more_epochs() {
    let mut bench = Bench::with_job_on(data(), 1, 1, "[search]\nwall_time = \"5s\"\n");
    for _ in 0..2 {
        let lease = bench.lease(HOST);
        bench.finish(HOST, &lease);
    }
    bench.now += 5_000;
    assert_eq!(tick(&mut bench), [OVER]);
    bench.ask(HOST, request(0, Vec::new()));
    let lease = bench.lease(HOST);
    report(&mut bench, &lease);
    let trial = bench.trials().remove(0);
    assert_eq!((trial.state, trial.stopped), (TrialState::Finished, None), "it has all its epochs");
    assert!(bench.events(extend(1, None)).is_empty(), "nothing is left of it");
    assert_eq!(bench.job().state, JobState::Finished);
    assert_eq!(bench.events(extend(2, None)).len(), 1);
    assert_eq!(hop(&bench.lease(HOST)).start.epoch.0, 1);
}

#[test]
fn a_pause_lengthens_the_grace() {
    let mut bench = searching(1, "wall_time = \"5s\"");
    let submitted = bench.now;
    evaluating(&mut bench);
    bench.now += 5_000;
    tick(&mut bench);
    bench.apply(Command::Pause { to: TO, job: JOB, now: false });
    bench.now += 3_600_000;
    tick(&mut bench);
    assert_eq!(bench.job().state, JobState::Paused);
    bench.apply(Command::Resume { to: TO, job: JOB });
    assert_eq!(wait(&mut bench).last(), Some(&Event::JobTimeUp { job: JOB }));
    assert_eq!(bench.now, submitted + 5_000 + 3_600_000 + 600_000);
}

#[test]
fn a_journal_of_before_ends_a_job_as_it_did() {
    let mut bench = searching(1, "wall_time = \"5s\"");
    evaluating(&mut bench);
    let snapshot = bench.core.snapshot().unwrap();
    let mut core = Core::from_snapshot(&snapshot, *bench.core.config()).unwrap();
    let position = JournalPosition(core.position().0 + 1);
    let event = Event::JobTimeUp { job: JOB };
    core.fold(&Record { position, at: UnixMillis(bench.now), event }).unwrap();
    let trial = &core.state().jobs[&JOB].trials[0];
    assert!(matches!(trial.end, Some(TrialEnd::Failed(_))), "{:?}", trial.end);
    assert_eq!((trial.stopped.clone(), trial.unevaluated.len()), (None, 0));
}

#[test]
fn trials_without_an_evaluated_epoch_fail_when_time_is_up() {
    let mut bench = searching(2, "wall_time = \"5s\"");
    for _ in 0..40 {
        if bench.trials().iter().any(|trial| !trial.curve.is_empty()) {
            break;
        }
        let lease = bench.lease(HOST);
        match lease.unit {
            Unit::Train(_) => drop(bench.finish(HOST, &lease)),
            Unit::Evaluate(_) => drop(report(&mut bench, &lease)),
        }
    }
    bench.now += 5_000;
    let evaluated: Vec<bool> = bench.trials().iter().map(|trial| !trial.curve.is_empty()).collect();
    tick(&mut bench);
    // Nobody evaluates what is left.
    bench.now += 600_000;
    tick(&mut bench);
    let error = "stopped after 5s, before an epoch was evaluated".to_owned();
    for (trial, evaluated) in bench.trials().into_iter().zip(evaluated) {
        let failed = TrialState::Failed { error: error.clone() };
        assert_eq!(trial.state, if evaluated { TrialState::Finished } else { failed });
    }
    assert_eq!(bench.job().state, JobState::Finished);

    let mut bench = searching(2, "wall_time = \"5s\"");
    bench.now += 5_000;
    assert_eq!(tick(&mut bench), [OVER, Event::JobTimeUp { job: JOB }]);
    let job = bench.job();
    assert_eq!((job.state, job.trials_failed), (JobState::Failed, 2));
    assert_eq!(bench.core.state().jobs[&JOB].load, [0, 0]);
}

#[test]
fn the_best_is_tested_after_the_wall_time() {
    let more = "[search]\nwall_time = \"5s\"\n";
    let mut bench = Bench::with_job_on(data_with_test(), 1, 3, more);
    let (lease, _) = evaluating(&mut bench);
    report(&mut bench, &lease);
    bench.now += 5_000;
    tick(&mut bench);
    bench.ask(HOST, request(0, Vec::new()));
    let lease = bench.lease(HOST);
    assert_eq!(evaluation(&lease).split, sojourn_protocol::manifest::DataSplit::Test);
    bench.now += 1_000;
    report(&mut bench, &lease);
    assert_eq!(bench.job().state, JobState::Finished);
}

#[test]
fn time_in_which_a_job_stands_still_does_not_count() {
    let mut bench = searching(1, "wall_time = \"5s\"");
    bench.now += 4_000;
    bench.apply(Command::Pause { to: TO, job: JOB, now: false });
    bench.now += 3_600_000;
    assert!(tick(&mut bench).is_empty(), "a paused job has time");
    // Nor is it forgotten by a server that starts again.
    bench.core =
        Core::from_snapshot(&bench.core.snapshot().unwrap(), *bench.core.config()).unwrap();
    bench.apply(Command::Started);
    bench.apply(Command::Resume { to: TO, job: JOB });
    bench.core =
        Core::from_snapshot(&bench.core.snapshot().unwrap(), *bench.core.config()).unwrap();
    bench.apply(Command::Started);
    let over = bench.now + 1_000;
    assert_eq!(wait(&mut bench), [OVER, Event::JobTimeUp { job: JOB }]);
    assert_eq!(bench.now, over);
}

/// A job of one trial that has ended an hour ago, after four of its five seconds.
fn ended_with_a_second_left() -> Bench {
    let more = "[search]\nwall_time = \"5s\"\n";
    let mut bench = Bench::with_job_on(data(), 1, 1, more);
    bench.now += 4_000;
    for _ in 0..3 {
        let lease = bench.lease(HOST);
        bench.finish(HOST, &lease);
    }
    assert_eq!(bench.job().state, JobState::Finished);
    bench.now += 3_600_000;
    bench
}

#[test]
fn an_extended_job_has_the_time_that_it_had_left() {
    let mut bench = ended_with_a_second_left();
    assert!(tick(&mut bench).iter().all(|event| !matches!(event, Event::JobTimeUp { .. })));
    bench.apply(extend(2, None));
    assert_eq!(bench.job().state, JobState::Running);
    let over = bench.now + 1_000;
    assert_eq!(wait(&mut bench), [OVER, Event::JobTimeUp { job: JOB }]);
    assert_eq!(bench.now, over);
    let trial = bench.trials().remove(0);
    assert_eq!(trial.stopped.as_deref(), Some("stopped after 5s"), "its first epoch stays");
}

#[test]
fn a_job_that_a_rollback_opens_again_has_the_time_that_it_had_left() {
    let mut bench = ended_with_a_second_left();
    tick(&mut bench);
    let options = RollbackOptions { reopen: true, ..RollbackOptions::default() };
    let request = RollbackRequest::Trial { trial: TrialId(0), epochs: 0, options };
    bench.answer(Command::Rollback { to: TO, job: JOB, request }).unwrap();
    bench.submit(1, 1, true).unwrap();
    assert!(tick(&mut bench).is_empty(), "its time isn't up");
    let over = bench.now + 1_000;
    assert_eq!(wait(&mut bench), [OVER, Event::JobTimeUp { job: JOB }]);
    assert_eq!(bench.now, over);
}

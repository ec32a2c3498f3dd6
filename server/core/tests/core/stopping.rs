//! Searches that end before their last epoch, at their target.

use crate::support::{
    Bench, HOST, JOB, OTHER, data, data_with_test, done, evaluation, hop, request,
};
use sojourn_core::{Answer, Command, Event, LeaseEnd, Offered, ReplyTo};
use sojourn_protocol::{
    error::ErrorKind,
    ids::{LeaseId, TrialId},
    unit::{Lease, Unit},
    view::{JobState, TrialState},
};

const TO: ReplyTo = ReplyTo(1);

/// A job of so many trials over three epochs. Evaluations see an accuracy of 13 of 15, and a loss of 4 / 15.
pub(crate) fn searching(trials: u32, search: &str) -> Bench {
    Bench::with_job_on(data(), trials, 3, &format!("[search]\n{search}\n"))
}

/// Trains the first epoch of the only trial, and gives its evaluation to `HOST` and the next hop to `OTHER`.
pub(crate) fn evaluating(bench: &mut Bench) -> (Lease, Lease) {
    for _ in 0..2 {
        let lease = bench.lease(HOST);
        bench.finish(HOST, &lease);
    }
    let next = bench.lease(OTHER);
    assert_eq!(hop(&next).start.epoch.0, 1);
    let lease = bench.lease(HOST);
    assert_eq!(evaluation(&lease).epoch.0, 0);
    (lease, next)
}

/// Reports what needs no upload; says the events.
pub(crate) fn report(bench: &mut Bench, lease: &Lease) -> Vec<Event> {
    let report = done(lease);
    bench.events(Command::Report { to: TO, host: HOST, report, uploaded: None })
}

pub(crate) fn extend(epochs: u32, trial: Option<u32>) -> Command {
    Command::Extend { to: TO, job: JOB, epochs, trial: trial.map(TrialId), reopen: false }
}

fn refused(bench: &mut Bench, command: Command) -> String {
    let error = bench.answer(command).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Conflict);
    error.message
}

pub(crate) const fn revoked(lease: LeaseId) -> Event {
    Event::LeaseEnded { lease, end: LeaseEnd::Revoked }
}

#[test]
fn a_trial_at_its_target_ends_and_what_it_trains_is_revoked() {
    let mut bench = searching(1, "target = 0.8");
    let (evaluation, next) = evaluating(&mut bench);
    let events = report(&mut bench, &evaluation);
    let [Event::ReportAcknowledged { .. }, Event::Evaluated { .. }, ended] = &events[..] else {
        panic!("{events:?}")
    };
    assert_eq!(*ended, revoked(next.id));
    let trial = bench.trials().remove(0);
    assert_eq!(trial.state, TrialState::Finished);
    assert_eq!(trial.stopped.as_deref(), Some("reached 0.8 after epoch 1"));
    assert_eq!(bench.job().state, JobState::Finished);
    assert_eq!(bench.core.state().jobs[&JOB].load, [0, 0]);
    assert!(bench.ask(OTHER, request(1, Vec::new())).leases.is_empty());
    // The result of the other host comes too late.
    let late = Command::Report { to: TO, host: OTHER, report: done(&next), uploaded: None };
    let events = bench.events(late);
    assert!(
        matches!(events[..], [Event::ReportAcknowledged { .. }, Event::Superseded { .. }]),
        "{events:?}"
    );
}

#[test]
fn a_result_that_waits_when_its_trial_reaches_its_target_is_superseded() {
    let mut bench = searching(1, "target = 0.8");
    let (evaluation, next) = evaluating(&mut bench);
    bench.report(OTHER, done(&next)).unwrap();
    let taken = bench.answer(Command::TakeAssimilation { to: TO, losses: true });
    let Ok(Answer::Assimilation(Some(unit))) = taken else { panic!("{taken:?}") };
    let events = report(&mut bench, &evaluation);
    assert_eq!(events.last(), Some(&Event::Superseded { lease: next.id }));
    let offer = Command::OfferAssimilated {
        to: TO,
        lease: unit.lease,
        version: unit.version,
        checkpoint: unit.trained.checkpoint,
        merged: None,
    };
    assert_eq!(bench.answer(offer), Ok(Answer::Offered(Offered::Stale)));
    assert_eq!(bench.job().state, JobState::Finished);
}

#[test]
fn evaluations_of_other_epochs_end_with_the_trial() {
    let mut bench = searching(1, "target = 0.8");
    let (evaluation, next) = evaluating(&mut bench);
    bench.finish(OTHER, &next);
    let last = bench.lease(OTHER);
    bench.finish(OTHER, &last);
    let third = bench.lease(OTHER);
    assert_eq!(hop(&third).start.epoch.0, 2, "the second epoch waits to be evaluated");
    let events = report(&mut bench, &evaluation);
    assert_eq!(events.last(), Some(&revoked(third.id)));
    let trial = bench.trials().remove(0);
    assert_eq!((trial.state, trial.curve.len()), (TrialState::Finished, 1));
    assert_eq!(trial.best.unwrap().epoch.0, 0);
    assert!(bench.ask(HOST, request(1, Vec::new())).leases.is_empty());
}

#[test]
fn other_trials_go_on() {
    let mut bench = searching(2, "target = 0.8");
    let mut ended = 0;
    while bench.job().state == JobState::Running {
        bench.now += 100;
        let lease = bench.lease(HOST);
        match lease.unit {
            Unit::Train(_) => drop(bench.finish(HOST, &lease)),
            Unit::Evaluate(_) => {
                report(&mut bench, &lease);
                ended += 1;
                assert_eq!(bench.job().trials_finished, ended);
            }
        }
    }
    assert_eq!(ended, 2, "each after its first epoch that was evaluated");
    let because: Vec<_> = bench.trials().into_iter().map(|trial| trial.stopped).collect();
    assert!(because.iter().all(|why| why.as_deref().is_some_and(|why| why.contains("0.8"))));
}

#[test]
fn a_target_is_compared_as_the_metric_is() {
    for (search, epochs) in [
        ("target = 0.9", 3),
        ("metric = \"valid/loss\"\ntarget = 0.3", 1),
        ("metric = \"valid/loss\"\ntarget = 0.2", 3),
    ] {
        let mut bench = searching(1, search);
        while bench.job().state == JobState::Running {
            let leases = bench.ask(HOST, request(2, Vec::new())).leases;
            // Evaluations are reported before more is trained.
            let lease = leases.iter().find(|lease| matches!(lease.unit, Unit::Evaluate(_)));
            let lease = lease.unwrap_or(&leases[0]);
            match lease.unit {
                Unit::Train(_) => drop(bench.finish(HOST, lease)),
                Unit::Evaluate(_) => drop(report(&mut bench, lease)),
            }
        }
        let trial = bench.trials().remove(0);
        assert_eq!(trial.curve.len(), epochs, "{search}");
        assert_eq!(trial.stopped.is_some(), epochs == 1, "{search}");
    }
}

#[test]
fn the_best_is_tested_when_all_have_reached_the_target() {
    let mut bench = Bench::with_job_on(data_with_test(), 1, 3, "[search]\ntarget = 0.8\n");
    let (lease, _) = evaluating(&mut bench);
    report(&mut bench, &lease);
    assert_eq!(bench.job().state, JobState::Running);
    let lease = bench.lease(HOST);
    assert_eq!(evaluation(&lease).split, sojourn_protocol::manifest::DataSplit::Test);
    report(&mut bench, &lease);
    assert_eq!(bench.job().state, JobState::Finished);
    assert!(bench.job().test.is_some());
}

#[test]
fn a_trial_at_its_target_is_not_extended() {
    let mut bench = searching(1, "target = 0.8");
    let (evaluation, _) = evaluating(&mut bench);
    report(&mut bench, &evaluation);
    assert_eq!(
        refused(&mut bench, extend(9, Some(0))),
        "trial 0 of job 1 reached 0.8 after epoch 1: that is its end"
    );
    assert_eq!(
        refused(&mut bench, extend(9, None)),
        "all trials of job 1 have failed or reached the target: none goes on"
    );
    // One of two goes on alone.
    let mut bench = searching(2, "target = 0.8");
    while bench.job().trials_finished == 0 {
        bench.now += 100;
        let lease = bench.lease(HOST);
        match lease.unit {
            Unit::Train(_) => drop(bench.finish(HOST, &lease)),
            Unit::Evaluate(_) => drop(report(&mut bench, &lease)),
        }
    }
    let trials = bench.trials();
    let running = trials.iter().find(|trial| trial.state == TrialState::Running).unwrap().trial;
    let extended =
        Event::JobExtended { job: JOB, trials: vec![running], epochs: 9, named: false, by: None };
    assert_eq!(bench.events(extend(9, None)), [extended]);
}

//! How far trials have got, for people: not started and pruned apart from failed and cancelled.

use crate::{
    searches::searching,
    searching::{by_trial, to_the_end, work},
    support::{Bench, HOST, JOB, done},
};
use sojourn_core::{By, Command, ReplyTo};
use sojourn_protocol::{
    api::{NewTrial, SearchRequest},
    ids::TrialId,
    spec::Choices,
    view::{TrialPhase, TrialState},
};

fn phases(bench: &mut Bench) -> Vec<TrialPhase> {
    bench.trials().iter().map(|trial| trial.phase.unwrap()).collect()
}

#[test]
fn trials_begin_as_not_started_and_end_as_finished_or_pruned() {
    let mut bench = searching(3, "method = \"random\"\ntrials = 3\nstopping = \"sha\"\n");
    assert_eq!(phases(&mut bench), [TrialPhase::NotStarted; 3]);
    bench.lease(HOST);
    let begun = phases(&mut bench);
    let running = begun.iter().filter(|phase| **phase == TrialPhase::Running).count();
    assert_eq!(running, 1, "a host trains it: {begun:?}");
    to_the_end(&mut bench, &by_trial);
    let (finished, pruned) = (TrialPhase::Finished, TrialPhase::Pruned);
    assert_eq!(phases(&mut bench), [finished, pruned, pruned]);
    // The words of before stay.
    let states: Vec<TrialState> = bench.trials().into_iter().map(|trial| trial.state).collect();
    assert_eq!(states, [const { TrialState::Finished }; 3]);
}

#[test]
fn a_job_that_is_cancelled_has_trials_that_were_never_begun() {
    let mut bench = searching(3, "method = \"random\"\ntrials = 3\n");
    while bench.trials().iter().all(|trial| trial.hops == 0) {
        work(&mut bench, HOST, &by_trial);
    }
    let begun: Vec<bool> = bench.trials().iter().map(|trial| trial.hops > 0).collect();
    bench.answer(Command::Cancel { to: ReplyTo(1), job: JOB }).unwrap();
    let expected = begun.iter().map(|begun| match begun {
        true => TrialPhase::Cancelled,
        false => TrialPhase::NotStarted,
    });
    let expected: Vec<TrialPhase> = expected.collect();
    assert!(expected.contains(&TrialPhase::NotStarted), "{begun:?}");
    assert_eq!(phases(&mut bench), expected);
}

#[test]
fn a_clone_that_has_trained_nothing_of_its_own_is_not_started() {
    let mut bench = searching(3, "method = \"random\"\ntrials = 1\n");
    while bench.trials()[0].curve.is_empty() {
        work(&mut bench, HOST, &by_trial);
    }
    let add = vec![NewTrial { values: Choices::new(), from: Some(TrialId(0)) }];
    let request = Box::new(SearchRequest { add, ..SearchRequest::default() });
    let (to, by) = (ReplyTo(1), By::Server);
    bench.answer(Command::ChangeSearch { to, job: JOB, request, by }).unwrap();
    assert_eq!(phases(&mut bench), [TrialPhase::Running, TrialPhase::NotStarted]);
    bench.answer(Command::Cancel { to: ReplyTo(1), job: JOB }).unwrap();
    assert_eq!(phases(&mut bench), [TrialPhase::Cancelled, TrialPhase::NotStarted]);
}

#[test]
fn a_trial_whose_first_result_waits_has_begun() {
    let mut bench = searching(3, "method = \"random\"\ntrials = 1\n");
    let lease = bench.lease(HOST);
    bench.report(HOST, done(&lease)).unwrap();
    assert!(bench.core.state().jobs[&JOB].trials[0].history.is_empty());
    assert_eq!(phases(&mut bench), [TrialPhase::Running]);
}

//! How far trials have got, for people: not started and pruned apart from failed and cancelled.

use crate::{
    searches::searching,
    searching::{by_trial, to_the_end, work},
    support::{Bench, HOST, JOB},
};
use sojourn_core::{Command, ReplyTo};
use sojourn_protocol::view::{TrialPhase, TrialState};

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

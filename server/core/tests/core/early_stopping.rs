//! Rules of early stopping: trials wait after their rung, go on, or end with what they have.

use crate::{
    searching::{by_trial, evaluate, to_the_end, trained, work},
    support::{Bench, HOST, JOB, OTHER, data, request},
};
use sojourn_core::{Command, Core, Event, ReplyTo};
use sojourn_protocol::{
    ids::TrialId,
    time::Millis,
    unit::Unit,
    view::{JobState, TrialState},
};

/// A job compared by its loss, with this rule.
pub(crate) fn searching(trials: u32, epochs: u32, stopping: &str) -> Bench {
    let search = format!("[search]\nmetric = \"valid/loss\"\nstopping = {stopping}\n");
    Bench::with_job_on(data(), trials, epochs, &search)
}

#[test]
fn the_best_of_each_rung_go_on_and_the_others_end_with_what_they_have() {
    for rule in ["\"sha\"", "{ rule = \"sha\", reduction = 3, min_epochs = 1 }"] {
        let mut bench = searching(9, 9, rule);
        assert!(bench.core.state().jobs[&JOB].trials.iter().all(|of| of.chain.epochs() == 1));
        let events = to_the_end(&mut bench, &by_trial);
        assert_eq!(trained(&bench), [9, 3, 3, 1, 1, 1, 1, 1, 1]);
        let job = bench.job();
        assert_eq!((job.state, job.trials_finished), (JobState::Finished, 9));
        assert_eq!((job.hops, job.hops_expected), (2 * 21, 2 * 21));
        let trials = bench.trials();
        assert!(trials.iter().all(|trial| trial.state == TrialState::Finished));
        assert_eq!(
            trials[3].stopped.as_deref(),
            Some("stopped after 1 epoch: place 4 of 9 after 1 epoch: the best 3 go on")
        );
        assert_eq!(trials[0].stopped, None);
        let rungs: Vec<String> =
            trials.iter().take(4).map(|trial| trial.rung.unwrap().to_string()).collect();
        assert_eq!(rungs, ["3/3", "2/3", "2/3", "1/3"]);
        assert_eq!(bench.core.state().jobs[&JOB].load, [0, 0]);
        let went_on = events.iter().filter(|event| matches!(event, Event::TrialContinued { .. }));
        assert_eq!(went_on.count(), 3 + 1);
        assert_eq!(bench.core.check_invariants(), Ok(()));
    }
}

#[test]
fn asha_begins_trials_as_there_are_slots_and_promotes_without_waiting_for_a_rung() {
    let mut bench = searching(9, 9, "\"asha\"");
    let begun = |bench: &Bench| {
        let trials = &bench.core.state().jobs[&JOB].trials;
        trials.iter().filter(|of| of.chain.epochs() > 0).count()
    };
    assert_eq!(begun(&bench), 4, "two for each of two slots");
    let on_rungs = bench.trials().iter().filter(|trial| trial.rung.is_some()).count();
    assert_eq!(on_rungs, 4, "the others are on none yet");
    let waiting = bench.trials()[5].waiting.clone();
    assert_eq!(waiting.as_deref(), Some("the search begins it when fewer trials train"));
    assert_eq!(bench.job().waiting, None, "the job doesn't wait, although trials do");
    let events = to_the_end(&mut bench, &by_trial);
    assert_eq!(trained(&bench)[0], 9);
    assert!(trained(&bench).iter().all(|epochs| [1, 3, 9].contains(epochs)));
    let first = events.iter().position(
        |event| matches!(event, Event::TrialContinued { trial, epochs: 3, .. } if trial.0 == 0),
    );
    let last_begun = events.iter().position(
        |event| matches!(event, Event::TrialContinued { trial, epochs: 1, .. } if trial.0 == 8),
    );
    assert!(first.unwrap() < last_begun.unwrap(), "promoted before the last trial began");
}

#[test]
fn a_server_that_starts_again_goes_on_with_the_search() {
    for rule in ["\"asha\"", "\"sha\"", "\"hyperband\""] {
        let mut bench = searching(9, 9, rule);
        for round in 0.. {
            if bench.core.state().jobs[&JOB].end.is_some() {
                break;
            }
            assert!(round < 2_000);
            work(&mut bench, HOST, &by_trial);
            let snapshot = bench.core.snapshot().unwrap();
            bench.core = Core::from_snapshot(&snapshot, *bench.core.config()).unwrap();
            bench.apply(Command::Started);
            assert_eq!(bench.core.check_invariants(), Ok(()));
        }
        assert_eq!(trained(&bench)[0], 9, "{rule}");
        assert_eq!(bench.job().state, JobState::Finished);
    }
}

#[test]
fn a_trial_that_gets_no_better_ends_while_it_trains() {
    let mut bench = searching(1, 9, "{ rule = \"patience\", epochs = 1 }");
    let mut next = None;
    // The next epoch's hop is with a host when the second evaluation says that nothing got better.
    let loss = |_, _| 1.0;
    for _ in 0..5 {
        work(&mut bench, HOST, &loss);
    }
    for lease in bench.ask(OTHER, request(1, Vec::new())).leases {
        match &lease.unit {
            Unit::Train(_) => next = Some(lease),
            Unit::Evaluate(_) => drop(evaluate(&mut bench, OTHER, &lease, &loss)),
        }
    }
    let mut events = Vec::new();
    while bench.job().state == JobState::Running {
        events.extend(work(&mut bench, HOST, &loss));
        bench.now += 1;
        assert!(bench.now < 1_000_000_000);
    }
    let stopped = events.iter().find_map(|event| match event {
        Event::TrialStopped { why, .. } => Some(why.clone()),
        _ => None,
    });
    assert_eq!(stopped.as_deref(), Some("no better than 1.000000 for 1 epoch"));
    if let Some(next) = next {
        assert!(
            bench.core.state().past.contains_key(&next.id)
                || !bench.core.state().leases.contains_key(&next.id)
        );
    }
    assert_eq!(bench.trials()[0].state, TrialState::Finished);
    assert_eq!(bench.core.state().jobs[&JOB].load, [0, 0]);
}

#[test]
fn a_trial_that_the_search_stopped_goes_on_where_it_is_named() {
    let mut bench = searching(3, 3, "\"sha\"");
    to_the_end(&mut bench, &by_trial);
    assert_eq!(trained(&bench), [3, 1, 1]);
    let extend = |epochs, trial: Option<u32>| Command::Extend {
        to: ReplyTo(1),
        job: JOB,
        epochs,
        trial: trial.map(TrialId),
        reopen: false,
    };
    bench.answer(extend(3, Some(2))).unwrap();
    assert_eq!(bench.job().state, JobState::Running);
    to_the_end(&mut bench, &by_trial);
    assert_eq!(trained(&bench), [3, 1, 3]);
    // Without a name only those go on that weren't stopped.
    bench.answer(extend(4, None)).unwrap();
    to_the_end(&mut bench, &by_trial);
    assert_eq!(trained(&bench), [4, 1, 4]);
}

#[test]
fn a_job_whose_time_is_up_ends_although_trials_wait_for_the_search() {
    let mut bench = searching(9, 9, "\"asha\"\nwall_time = \"60s\"");
    for _ in 0..6 {
        work(&mut bench, HOST, &by_trial);
    }
    bench.now += Millis::from_secs(60).0;
    bench.apply(Command::Tick);
    for _ in 0..10 {
        work(&mut bench, HOST, &by_trial);
    }
    bench.now += Millis::from_secs(3600).0;
    bench.apply(Command::Tick);
    assert_ne!(bench.job().state, JobState::Running);
}

#[test]
fn rules_that_stop_nothing_are_refused_at_the_server_too() {
    let mut bench = Bench::new();
    let known = searching(1, 3, "\"sha\"");
    let mut spec = known.core.state().jobs[&JOB].spec.clone();
    spec.training.epochs = 1;
    let (spec, data) = (Box::new(spec), Box::new(data()));
    let submit = Command::Submit { to: ReplyTo(1), spec, data, again: false, nonce: None };
    let error = bench.answer(submit).unwrap_err();
    assert!(error.message.contains("none would be stopped"), "{}", error.message);
}

fn extend(epochs: u32, trial: Option<u32>) -> Command {
    Command::Extend { to: ReplyTo(1), job: JOB, epochs, trial: trial.map(TrialId), reopen: false }
}

#[test]
fn a_search_that_is_extended_while_it_runs_keeps_its_rungs_and_ends() {
    for rule in ["\"asha\"", "\"sha\"", "\"hyperband\""] {
        for trial in [None, Some(0), Some(8), Some(14)] {
            let mut bench = searching(15, 9, rule);
            for _ in 0..8 {
                work(&mut bench, HOST, &by_trial);
            }
            bench.answer(extend(12, trial)).unwrap();
            to_the_end(&mut bench, &by_trial);
            let trained = trained(&bench);
            let lengths: &[u32] = if trial.is_some() { &[1, 3, 9, 12] } else { &[1, 3, 12] };
            assert!(trained.iter().all(|length| lengths.contains(length)), "{rule}: {trained:?}");
            if let Some(trial) = trial {
                assert_eq!(trained[trial as usize], 12, "{rule}, {trial}: {trained:?}");
            }
            assert_eq!(bench.job().state, JobState::Finished);
            assert_eq!(bench.core.check_invariants(), Ok(()));
        }
    }
}

#[test]
fn a_trial_that_waits_goes_on_to_its_own_epochs_where_it_is_named() {
    let mut bench = searching(9, 9, "\"sha\"");
    bench.answer(extend(9, Some(8))).unwrap();
    to_the_end(&mut bench, &by_trial);
    assert_eq!(trained(&bench), [9, 3, 3, 1, 1, 1, 1, 1, 9]);
}

#[test]
fn a_search_whose_time_was_up_goes_on_with_its_rule() {
    for rule in ["\"asha\"", "\"sha\""] {
        let mut bench = searching(9, 9, &format!("{rule}\nwall_time = \"60s\""));
        for _ in 0..12 {
            work(&mut bench, HOST, &by_trial);
        }
        bench.now += Millis::from_secs(60).0;
        bench.apply(Command::Tick);
        bench.now += Millis::from_secs(3600).0;
        bench.apply(Command::Tick);
        assert_ne!(bench.job().state, JobState::Running);
        bench.answer(extend(9, None)).unwrap();
        to_the_end(&mut bench, &by_trial);
        let trained = trained(&bench);
        assert!(trained.iter().filter(|length| **length == 9).count() < 4, "{rule}: {trained:?}");
        assert!(trained.iter().all(|length| [1, 3, 9].contains(length)), "{rule}: {trained:?}");
    }
}

#[test]
fn a_job_whose_trials_were_all_stopped_says_how_one_goes_on() {
    let mut bench = searching(1, 9, "{ rule = \"patience\", epochs = 1 }");
    to_the_end(&mut bench, &|_, _| 1.0);
    let refused = bench.answer(extend(12, None)).unwrap_err();
    assert!(refused.message.contains("`--trial N` lets one of them go on"), "{}", refused.message);
    let job = bench.job();
    assert_eq!(job.hops, job.hops_expected);
    assert_eq!(job.evaluations, job.evaluations_expected);
}

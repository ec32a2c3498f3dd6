//! The final model of cross-validation: the best configuration, trained on all folds once the search is over.

use crate::{
    cross_validation::in_folds,
    search_changes::change,
    searching::{by_trial, evaluate, to_the_end, trained, work},
    support::{Bench, HOST, JOB, OTHER, fail, request},
};
use sojourn_core::{Command, Event, ReplyTo};
use sojourn_protocol::{
    api::SearchRequest,
    ids::{ShardId, TrialId},
    report::FailureKind,
    unit::Unit,
    view::{JobState, TrialState},
};
use sojourn_state::Trial;
use std::collections::BTreeSet;

/// Two configurations of two folds: the second is the better one in the mean, at its best after one and after two epochs.
fn second_is_best(trial: u32, epochs: u32) -> f64 {
    match (trial, epochs) {
        (2, 1) => 0.2,
        (3, 2) => 0.4,
        (2 | 3, _) => 0.7,
        (0, _) => 0.1,
        _ => 0.9,
    }
}

fn refits(bench: &Bench) -> Vec<&Trial> {
    let trials = &bench.core.state().jobs[&JOB].trials;
    trials.iter().filter(|trial| trial.refit.is_some()).collect()
}

#[test]
fn the_best_configuration_is_trained_on_all_folds_for_their_mean_length() {
    for visits in ["free", "fixed"] {
        let more = format!("refit = true\n[placement]\nvisits = \"{visits}\"");
        let mut bench = in_folds(2, 2, 3, &more);
        let events = to_the_end(&mut bench, &second_is_best);
        let job = bench.job();
        assert_eq!((job.state, job.trials), (JobState::Finished, 5), "{visits}");
        assert_eq!((job.hops, job.hops_expected), (4 * 2 * 3 + 4 * 2, 4 * 2 * 3 + 4 * 2));
        assert_eq!((job.evaluations, job.evaluations_expected), (4 * 3, 4 * 3));
        let view = &bench.trials()[4];
        assert_eq!(
            (view.refit, view.epochs),
            (Some(TrialId(2)), 2),
            "after one epoch and after two"
        );
        assert_eq!((view.state.clone(), view.curve.len()), (TrialState::Finished, 0));
        assert!(!view.choices.contains_key("fold"), "{view:?}");
        let best = job.best.unwrap();
        assert_eq!((best.trial, best.epoch.0), (TrialId(4), 1));
        assert!((best.value - 0.3).abs() < 1e-9, "the mean of its folds: {}", best.value);
        assert_eq!(Some(best.checkpoint), view.checkpoint);
        assert!(job.test.is_some(), "the final model is tested, and not a fold");
        let trial = refits(&bench)[0];
        for epoch in 0..2 {
            let hops = trial.history.iter().filter(|hop| hop.epoch().0 == epoch);
            let visited: BTreeSet<ShardId> =
                hops.flat_map(|hop| hop.shards().collect::<Vec<_>>()).collect();
            assert_eq!(visited.len(), 4, "epoch {epoch}");
        }
        let added = events.iter().filter(|event| matches!(event, Event::TrialsAdded { .. }));
        assert_eq!(added.count(), 1);
        assert_eq!(bench.core.state().jobs[&JOB].load, [0, 0, 0, 0]);
    }
}

#[test]
fn a_job_that_goes_on_has_its_best_configuration_of_then_trained_anew() {
    let mut bench = in_folds(2, 2, 2, "refit = true");
    to_the_end(&mut bench, &second_is_best);
    assert_eq!(bench.job().best.unwrap().trial, TrialId(4));
    let extend = |bench: &mut Bench, trial: Option<TrialId>| {
        let (to, epochs) = (ReplyTo(1), 4);
        bench.answer(Command::Extend { to, job: JOB, epochs, trial, reopen: false })
    };
    let refused = extend(&mut bench, Some(TrialId(4))).unwrap_err();
    assert!(refused.message.contains("as many epochs as the folds"), "{}", refused.message);
    drop(extend(&mut bench, None).unwrap());
    assert_eq!(bench.trials()[4].epochs, 2, "the final model isn't longer than it should be");
    // Now the first configuration becomes the best, after four epochs.
    let loss = |trial: u32, epochs: u32| if trial < 2 && epochs == 4 { 0.0 } else { 0.5 };
    to_the_end(&mut bench, &loss);
    let of: Vec<_> = refits(&bench).iter().map(|of| (of.id, of.refit, of.epochs())).collect();
    let (first, second) = (Some(TrialId(2)), Some(TrialId(0)));
    // By now all of its folds are at 0.2 and 0.4 still: the best is kept.
    assert!((bench.trials()[4].best.as_ref().unwrap().value - 0.3).abs() < 1e-9);
    assert_eq!(of, [(TrialId(4), first, 2), (TrialId(5), second, 4)]);
    assert_eq!(bench.job().best.unwrap().trial, TrialId(5));
}

#[test]
fn configurations_that_are_added_after_a_final_model_have_all_their_folds() {
    for rule in ["", "stopping = \"asha\"\n"] {
        let more = format!(
            "method = \"random\"\ntrials = 2\ncombinations = \"all\"\nrefit = true\n{rule}"
        );
        let mut bench = in_folds(2, 2, 4, &more);
        to_the_end(&mut bench, &by_trial);
        assert_eq!(refits(&bench).len(), 1);
        let request = SearchRequest { trials: Some(4), ..SearchRequest::default() };
        drop(bench.answer(change(request)).unwrap());
        // The last configuration is the best.
        to_the_end(&mut bench, &|trial, _| 0.1 / f64::from(trial + 1));
        let job = &bench.core.state().jobs[&JOB];
        let ids: Vec<Vec<u32>> =
            job.configurations().map(|of| of.iter().map(|trial| trial.id.0).collect()).collect();
        assert_eq!(ids, [[0, 1], [2, 3], [5, 6], [7, 8]], "{rule}");
        for trials in job.configurations() {
            let folds: Vec<_> = trials.iter().map(|of| of.fold.unwrap().number).collect();
            assert_eq!(folds, [0, 1], "{rule}");
            let number = job.configuration_of(trials[1].id);
            assert_eq!(job.configuration(number), trials);
        }
        let last = refits(&bench).last().map(|of| of.refit);
        assert_eq!(last, Some(Some(TrialId(7))), "{rule}");
        assert_eq!(bench.job().best.unwrap().trial, TrialId(9), "{rule}");
        let epochs = trained(&bench);
        assert_eq!((epochs[7], epochs[8]), (4, 4), "{rule}: {epochs:?}");
    }
}

#[test]
fn without_time_or_after_a_failure_the_best_fold_is_the_jobs_best() {
    let mut bench = in_folds(2, 1, 2, "refit = true\ntotal_epochs = 4");
    to_the_end(&mut bench, &by_trial);
    assert_eq!((bench.job().state, refits(&bench).len()), (JobState::Finished, 0));
    assert_eq!(bench.job().best.unwrap().trial, TrialId(0));

    let mut bench = in_folds(2, 1, 2, "refit = true");
    while refits(&bench).is_empty() {
        work(&mut bench, HOST, &by_trial);
    }
    let is_running = |bench: &mut Bench| bench.job().state == JobState::Running;
    for host in [HOST, OTHER].into_iter().cycle().take(200) {
        if !is_running(&mut bench) {
            break;
        }
        bench.now += 100;
        for lease in bench.ask(host, request(1, Vec::new())).leases {
            match lease.unit {
                Unit::Train(_) => fail(&mut bench, host, lease.id, FailureKind::NonFinite, "NaN"),
                Unit::Evaluate(_) => {
                    drop(evaluate(&mut bench, host, &lease, &by_trial));
                }
            }
        }
    }
    let trials = bench.trials();
    assert!(matches!(trials[2].state, TrialState::Failed { .. }), "{:?}", trials[2].state);
    assert_eq!((bench.job().state, trials.len()), (JobState::Finished, 3), "no other is tried");
    assert_eq!(bench.job().best.unwrap().trial, TrialId(0));
}

#[test]
fn a_final_model_that_its_user_stops_is_none() {
    let mut bench = in_folds(2, 1, 2, "refit = true");
    while refits(&bench).is_empty() {
        work(&mut bench, HOST, &by_trial);
    }
    let request = SearchRequest { stop: vec![TrialId(2)], ..SearchRequest::default() };
    drop(bench.answer(change(request)).unwrap());
    to_the_end(&mut bench, &by_trial);
    assert_eq!((bench.job().trials, bench.job().best.unwrap().trial), (3, TrialId(0)));
}

#[test]
fn one_that_ends_the_search_after_its_folds_were_extended_is_followed_by_another() {
    let mut bench = in_folds(2, 1, 2, "refit = true");
    while refits(&bench).is_empty() {
        work(&mut bench, HOST, &by_trial);
    }
    let ask = |_| {
        bench.now += 100;
        bench.ask(HOST, request(1, Vec::new())).leases.pop()
    };
    let held = (0..20).find_map(ask).unwrap();
    assert_eq!(held.unit.trial(), TrialId(2));
    let extend =
        Command::Extend { to: ReplyTo(1), job: JOB, epochs: 4, trial: None, reopen: false };
    drop(bench.answer(extend).unwrap());
    // The folds end first.
    let loss = |_: u32, epochs: u32| 1.0 / f64::from(epochs);
    let are_running = |bench: &Bench| {
        let job = &bench.core.state().jobs[&JOB];
        job.trials.iter().filter(|trial| trial.refit.is_none()).any(Trial::is_running)
    };
    for _ in 0..200 {
        bench.now += 100;
        for lease in bench.ask(OTHER, request(1, Vec::new())).leases {
            match &lease.unit {
                Unit::Train(_) if lease.unit.trial() == TrialId(2) => {}
                Unit::Train(_) => drop(bench.finish(OTHER, &lease)),
                Unit::Evaluate(_) => drop(evaluate(&mut bench, OTHER, &lease, &loss)),
            }
        }
    }
    assert!(!are_running(&bench) && refits(&bench).len() == 1);
    drop(bench.finish(HOST, &held));
    to_the_end(&mut bench, &loss);
    let of: Vec<_> = refits(&bench).iter().map(|of| (of.epochs(), of.best.is_some())).collect();
    // One fold is at its best after its first epoch, the other after its fourth.
    assert_eq!(of, [(1, true), (3, true)]);
    assert_eq!(bench.job().best.unwrap().trial, TrialId(3));
}

#[test]
fn one_that_was_cut_goes_on_when_its_job_does() {
    // Two epochs are better than one.
    let loss = |_: u32, epochs: u32| 1.0 / f64::from(epochs);
    for cut in ["total_epochs = 5", ""] {
        let mut bench = in_folds(2, 1, 2, &format!("refit = true\n{cut}"));
        while refits(&bench).is_empty() {
            work(&mut bench, HOST, &loss);
        }
        if cut.is_empty() {
            work(&mut bench, HOST, &loss);
            drop(bench.answer(Command::Cancel { to: ReplyTo(1), job: JOB }).unwrap());
        } else {
            to_the_end(&mut bench, &loss);
        }
        assert!(
            bench.job().state != JobState::Running && refits(&bench)[0].best.is_none(),
            "{cut}"
        );
        let reopen = cut.is_empty();
        let extend = Command::Extend { to: ReplyTo(1), job: JOB, epochs: 2, trial: None, reopen };
        drop(bench.answer(extend).unwrap());
        to_the_end(&mut bench, &loss);
        assert_eq!((refits(&bench).len(), refits(&bench)[0].epochs()), (1, 2), "{cut}");
        assert_eq!(bench.job().best.unwrap().trial, TrialId(2), "{cut}");
    }
}

//! Cross-validation: each configuration has a trial for each fold, which never trains on what it is evaluated on.

use crate::{
    search_changes::change,
    searching::{by_trial, evaluate, to_the_end, trained, work},
    support::{Bench, HOST, JOB, OTHER, data, data_of_four, fail, request},
};
use sojourn_core::{Command, Event, ReplyTo};
use sojourn_protocol::{
    api::{NewTrial, SearchRequest},
    error::ErrorKind,
    ids::{ShardId, TrialId},
    manifest::{DataManifest, DataSplit},
    report::FailureKind,
    spec::Choices,
    unit::Unit,
    view::{JobState, TrialState},
};
use std::collections::BTreeSet;

/// The data of four shards, none of them for validation.
fn folded() -> DataManifest {
    DataManifest { valid: Vec::new(), ..data_of_four() }
}

/// A job of so many configurations, compared by their loss.
pub(crate) fn in_folds(folds: u32, configurations: u32, epochs: u32, more: &str) -> Bench {
    let search = format!("[search]\nmetric = \"valid/loss\"\nfolds = {folds}\n{more}\n");
    Bench::with_job_on(folded(), configurations, epochs, &search)
}

#[test]
fn a_trial_trains_on_all_shards_but_those_of_its_fold_and_is_evaluated_on_these() {
    for visits in ["free", "fixed"] {
        let placement = format!("[placement]\nvisits = \"{visits}\"");
        let mut bench = in_folds(2, 2, 3, &placement);
        let all: Vec<_> = folded().train.iter().map(|shard| shard.blob).collect();
        let mut evaluations = 0;
        for _ in 0..200 {
            bench.now += 100;
            for lease in bench.ask(HOST, request(1, Vec::new())).leases {
                let fold = lease.unit.trial().0 % 2;
                match &lease.unit {
                    Unit::Train(hop) => {
                        assert_ne!(hop.start.shard.0 % 2, fold, "{hop:?}");
                        drop(bench.finish(HOST, &lease));
                    }
                    Unit::Evaluate(of) => {
                        let is: Vec<_> = of.shards.iter().map(|shard| shard.blob).collect();
                        let held_out = all.iter().skip(fold as usize).step_by(2);
                        let held_out: Vec<_> = held_out.copied().collect();
                        assert_eq!(of.split == DataSplit::Valid, is == held_out, "{of:?}");
                        evaluations += 1;
                        drop(evaluate(&mut bench, HOST, &lease, &by_trial));
                    }
                }
            }
        }
        let job = bench.job();
        assert_eq!((job.state, job.trials), (JobState::Finished, 4), "{visits}");
        assert_eq!((job.hops, job.hops_expected), (4 * 2 * 3, 4 * 2 * 3));
        assert_eq!(evaluations, 4 * 3 + 1, "and the best one is tested");
        let trials = &bench.core.state().jobs[&JOB].trials;
        for trial in trials {
            let visited: BTreeSet<ShardId> =
                trial.history.iter().flat_map(|hop| hop.shards().collect::<Vec<_>>()).collect();
            assert_eq!(visited.len(), 2);
            let batches: u32 = visited.iter().map(|shard| [3, 2, 2, 1][shard.0 as usize]).sum();
            assert_eq!(trial.context.total_steps, u64::from(batches) * 3);
        }
        let folds: Vec<_> = trials.iter().map(|trial| trial.choices["fold"].clone()).collect();
        assert_eq!(folds, [0, 1, 0, 1]);
    }
}

#[test]
fn the_best_model_is_of_the_configuration_with_the_best_mean() {
    let mut bench = in_folds(2, 2, 1, "");
    // One fold of the second configuration is the best of all; its other one is the worst.
    let loss = |trial: u32, _: u32| [0.5, 0.5, 0.25, 1.0][trial as usize];
    let mut seen = false;
    for _ in 0..100 {
        work(&mut bench, HOST, &loss);
        let (of_trials, best) = (bench.trials(), bench.job().best);
        let whole = |first: usize| of_trials[first..first + 2].iter().all(|of| of.best.is_some());
        if best.is_some() && bench.job().state == JobState::Running {
            assert!(whole(0) || whole(2), "no configuration is compared before all its folds are");
            seen = true;
        }
    }
    assert!(seen);
    let best = bench.job().best.unwrap();
    assert_eq!((best.trial, best.value), (TrialId(0), 0.5));
}

#[test]
fn whole_configurations_are_stopped_by_their_means() {
    for rule in ["\"sha\"", "\"asha\"", "\"hyperband\""] {
        let mut bench = in_folds(2, 9, 9, &format!("stopping = {rule}"));
        // By the first fold alone the last configuration would be the best, by the mean the first is.
        let loss = |trial: u32, _: u32| match (trial / 2, trial % 2) {
            (of, 0) => f64::from(10 - of),
            (of, _) => f64::from(of) * 3.0,
        };
        let events = to_the_end(&mut bench, &loss);
        let epochs = trained(&bench);
        assert!(epochs.chunks(2).all(|of| of[0] == of[1]), "{rule}: {epochs:?}");
        assert_eq!(epochs[0], 9, "{rule}: {epochs:?}");
        let stopped = events.iter().filter(|event| matches!(event, Event::TrialStopped { .. }));
        assert!(stopped.count() >= 8, "{rule}");
        let why = bench.trials()[17].stopped.clone();
        if rule == "\"sha\"" {
            assert_eq!(
                why.as_deref(),
                Some("stopped after 1 epoch: place 9 of 9 after 1 epoch: the best 3 go on")
            );
        }
        assert_eq!(bench.core.state().jobs[&JOB].load, [0, 0, 0, 0]);
    }
}

#[test]
fn the_other_folds_of_one_that_failed_end() {
    let mut bench = in_folds(2, 3, 9, "stopping = \"asha\"");
    let has_failed =
        |bench: &mut Bench| matches!(bench.trials()[1].state, TrialState::Failed { .. });
    // Hosts of several parties must come to it.
    for host in [HOST, OTHER].into_iter().cycle().take(200) {
        if has_failed(&mut bench) {
            break;
        }
        bench.now += 100;
        for lease in bench.ask(host, request(1, Vec::new())).leases {
            match lease.unit {
                Unit::Train(_) if lease.unit.trial() == TrialId(1) => {
                    fail(&mut bench, host, lease.id, FailureKind::NonFinite, "NaN");
                }
                Unit::Train(_) => drop(bench.finish(host, &lease)),
                Unit::Evaluate(_) => drop(evaluate(&mut bench, host, &lease, &by_trial)),
            }
        }
    }
    to_the_end(&mut bench, &by_trial);
    let trials = bench.trials();
    assert!(has_failed(&mut bench), "{:?}", trials[1].state);
    let why = trials[0].stopped.as_deref().unwrap();
    assert!(why.ends_with("another fold of its configuration has ended without a value"), "{why}");
    assert_eq!(trained(&bench)[2], 9, "the next configuration goes on");
    assert_eq!(bench.job().best.unwrap().trial, TrialId(2));
}

#[test]
fn a_fold_that_is_ended_by_hand_holds_nothing_up() {
    for rule in ["\"sha\"", "\"asha\"", "\"hyperband\""] {
        let mut bench = in_folds(2, 3, 9, &format!("stopping = {rule}"));
        let request = SearchRequest { stop: vec![TrialId(1)], ..SearchRequest::default() };
        drop(bench.answer(change(request)).unwrap());
        to_the_end(&mut bench, &by_trial);
        assert_eq!(trained(&bench)[1], 0, "{rule}");
        let others = bench.trials()[0].stopped.clone();
        assert!(others.is_some_and(|why| why.contains("ended without a value")), "{rule}");
        assert_eq!(bench.job().best.unwrap().trial, TrialId(2), "{rule}");
    }
}

#[test]
fn a_fold_that_its_user_lets_go_on_trains_to_its_end_whatever_its_configuration_does() {
    for rule in ["\"sha\"", "\"asha\""] {
        let mut bench = in_folds(2, 9, 9, &format!("stopping = {rule}"));
        while trained(&bench)[16] == 0 {
            work(&mut bench, HOST, &by_trial);
        }
        let (to, trial) = (ReplyTo(1), Some(TrialId(16)));
        let extend = Command::Extend { to, job: JOB, epochs: 9, trial, reopen: false };
        drop(bench.answer(extend).unwrap());
        to_the_end(&mut bench, &by_trial);
        assert_eq!((trained(&bench)[16], trained(&bench)[0]), (9, 9), "{rule}");
        assert!(trained(&bench)[17] < 9, "{rule}");
    }
}

#[test]
fn further_configurations_have_all_folds_and_a_clone_of_one_fold_is_refused() {
    let mut bench = in_folds(2, 1, 1, "method = { name = \"tpe\", startup = 2 }\ntrials = 5");
    to_the_end(&mut bench, &by_trial);
    // The space has one combination, which may come again.
    let trials = bench.core.state().jobs[&JOB].trials.len();
    assert_eq!(trials % 2, 0);
    let clone = NewTrial { from: Some(TrialId(1)), values: Choices::new() };
    let request = SearchRequest { add: vec![clone], ..SearchRequest::default() };
    let refused = bench.answer(change(request)).unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Conflict);
    assert!(refused.message.contains("is of one fold"), "{}", refused.message);
}

#[test]
fn folds_need_as_many_shards_and_no_validation_rows() {
    let submit = |data: DataManifest, folds: u32| {
        let mut bench = Bench::new();
        let search = format!("[search]\nfolds = {folds}\n");
        let spec = Box::new(crate::support::spec(1, 1, &search));
        let data = Box::new(data);
        let submit = Command::Submit { to: ReplyTo(1), spec, data, again: false, nonce: None };
        bench.answer(submit).map_err(|error| error.message)
    };
    assert!(submit(folded(), 5).unwrap_err().contains("4 training shards are too few for 5 folds"));
    assert!(submit(data(), 2).unwrap_err().contains("without validation rows of its own"));
    assert_eq!(in_folds(4, 1, 1, "").job().trials, 4);
    // Of data in which groups are kept together in four folds, others than these and two have groups in several.
    let cut_for = |cut: u32, folds: u32| {
        let mut bench = Bench::new();
        let search = format!("[search]\nfolds = {folds}\n");
        let mut spec = Box::new(crate::support::spec(1, 1, &search));
        spec.data.group_folds = Some(cut);
        let data = Box::new(folded());
        let submit = Command::Submit { to: ReplyTo(1), spec, data, again: false, nonce: None };
        bench.answer(submit).map(drop).map_err(|error| error.message).unwrap_err()
    };
    let are_split = |message: &str| message.contains("groups of rows are together in 4 folds");
    assert!(are_split(&cut_for(4, 3)), "{}", cut_for(4, 3));
    // The others lack their data alone.
    for folds in [4, 2] {
        assert!(cut_for(4, folds).contains("upload it first"), "{}", cut_for(4, folds));
    }
}

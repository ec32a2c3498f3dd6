//! Searches of spaces that have fewer combinations than are asked for: each is tried once, and the search ends with a word.

use crate::{
    searching::{by_trial, to_the_end},
    support::{Bench, JOB, data},
};
use serde_json::json;
use sojourn_core::{By, Command, ReplyTo};
use sojourn_protocol::{
    api::{NewTrial, SearchRequest},
    error::ErrorKind,
    jobfile,
    spec::{CombinationRule, JobSpec, OptimizerName},
    view::JobState,
};
use std::collections::BTreeSet;

/// Adam has no momentum: 4 combinations differ.
fn spec(search: &str) -> JobSpec {
    let text = format!(
        "name = \"t\"\nseed = 7\n[data]\ntrain = \"t.csv\"\nlabel = \"y\"\n[[model]]\narch = \"mlp\"\nhidden = [4]\n[training]\nepochs = 1\nbatch_size = 4\noptimizer = {{ name = {{ choice = [\"sgd\", \"adam\"] }}, momentum = {{ choice = [0.0, 0.5, 0.9] }} }}\n[search]\nmetric = \"valid/loss\"\n{search}"
    );
    jobfile::parse(&text).unwrap()
}

/// The optimiser and momentum of each trial.
fn tried(bench: &Bench) -> Vec<(OptimizerName, u64)> {
    let trials = &bench.core.state().jobs[&JOB].trials;
    let optimizers = trials.iter().map(|trial| trial.context.config.training.optimizer);
    optimizers.map(|of| (of.name, of.momentum.to_bits())).collect()
}

#[test]
fn a_search_ends_with_a_word_when_its_space_is_used_up() {
    for method in [
        "method = \"random\"",
        "method = \"sobol\"",
        "method = { name = \"tpe\", startup = 2 }",
        "method = { name = \"tpe\", startup = 2, batch = 3 }",
        "method = { name = \"tpe\", startup = 9 }",
    ] {
        let mut bench = Bench::new();
        bench.begin_with(data(), spec(&format!("{method}\ntrials = 30\n")));
        to_the_end(&mut bench, &by_trial);
        let all = tried(&bench);
        let differ: BTreeSet<_> = all.iter().collect();
        assert_eq!((all.len(), differ.len()), (4, 4), "{method}");
        let job = bench.job();
        assert_eq!((job.state, job.trials), (JobState::Finished, 4), "{method}");
        let why = "4 combinations differ; 30 were asked for";
        assert_eq!(job.search_ended.as_deref(), Some(why), "{method}");
    }
}

#[test]
fn each_combination_of_a_space_that_is_used_up_is_repeated_as_often() {
    let mut bench = Bench::new();
    bench.begin_with(data(), spec("method = \"random\"\ntrials = 30\nrepeat = 2\n"));
    to_the_end(&mut bench, &by_trial);
    let all = tried(&bench);
    let differ: BTreeSet<_> = all.iter().collect();
    assert_eq!((all.len(), differ.len()), (8, 4), "with a seed of its own each time");
    let why = bench.job().search_ended;
    assert_eq!(why.as_deref(), Some("4 combinations differ; 30 were asked for"));
}

#[test]
fn a_search_that_is_extended_tries_no_combination_again() {
    let mut bench = Bench::new();
    bench.begin_with(data(), spec("method = \"random\"\ntrials = 2\n"));
    to_the_end(&mut bench, &by_trial);
    assert_eq!((bench.job().trials, bench.job().search_ended), (2, None));
    let request = Box::new(SearchRequest { trials: Some(9), ..SearchRequest::default() });
    let (to, by) = (ReplyTo(1), By::Server);
    bench.answer(Command::ChangeSearch { to, job: JOB, request, by }).unwrap();
    to_the_end(&mut bench, &by_trial);
    let differ: BTreeSet<_> = tried(&bench).into_iter().collect();
    assert_eq!((bench.job().trials, differ.len()), (4, 4));
    let why = bench.job().search_ended;
    assert_eq!(why.as_deref(), Some("4 combinations differ; 9 were asked for"));
}

/// The trials of a job follow from its specification whenever a journal is read.
#[test]
fn a_journal_of_an_earlier_version_keeps_its_trials() {
    let mut bench = Bench::new();
    let mut earlier = spec("");
    earlier.search.combinations = CombinationRule::All;
    bench.begin_with(data(), earlier);
    assert_eq!(bench.job().trials, 6);
    let momenta = tried(&bench);
    assert_eq!(momenta[5], (OptimizerName::Adam, 0.9f64.to_bits()), "as it was");
}

#[test]
fn a_program_is_told_of_a_combination_that_was_tried() {
    let mut bench = Bench::new();
    bench.begin_with(data(), spec("method = \"ask-tell\"\n"));
    let ask = |bench: &mut Bench, values: &[serde_json::Value]| {
        let new = |values: &serde_json::Value| NewTrial {
            values: serde_json::from_value(values.clone()).unwrap(),
            from: None,
        };
        let add = values.iter().map(new).collect();
        let request = Box::new(SearchRequest { add, ..SearchRequest::default() });
        let (to, by) = (ReplyTo(1), By::Server);
        bench.answer(Command::ChangeSearch { to, job: JOB, request, by })
    };
    let (adam, sgd) = (json!({ "name": "adam" }), json!({ "name": "sgd", "momentum": 0.5 }));
    ask(&mut bench, &[adam.clone(), sgd]).unwrap();
    assert_eq!(bench.job().trials, 2);
    let again = json!({ "name": "adam", "momentum": 0.9 });
    let other = json!({ "name": "sgd", "momentum": 0.9 });
    for values in [vec![again], vec![other.clone(), other]] {
        let refused = ask(&mut bench, &values).unwrap_err();
        assert_eq!(refused.kind, ErrorKind::Conflict);
        let told = "job 1 has a trial of this combination already";
        assert!(refused.message.contains(told), "{}", refused.message);
    }
    assert_eq!(bench.job().trials, 2, "nothing happens");
}

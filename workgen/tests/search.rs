//! Search spaces to trials: counts, order, bounds, and that the same seed gives the same trials.

#![expect(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

use proptest::prelude::*;
use sojourn_protocol::{
    jobfile,
    spec::{Architecture, JobSpec},
};
use sojourn_workgen::{SearchError, trials};

fn job(models: &str, training: &str, search: &str) -> JobSpec {
    let text = format!(
        "name = \"t\"\nseed = 7\n[data]\ntrain = \"t.csv\"\nlabel = \"y\"\nshape = [1, 8, 8]\n{models}\n[training]\nepochs = 1\n{training}\n[search]\n{search}\n"
    );
    jobfile::parse(&text).unwrap()
}

const MLP: &str = "[[model]]\narch = \"mlp\"\nhidden = { choice = [[64], [128, 64], []] }";
const CNN: &str = "[[model]]\narch = \"cnn\"\nchannels = [16, 32]";

#[test]
fn a_grid_takes_every_combination_last_dimension_fastest() {
    let spec = job(
        &format!("{MLP}\n{CNN}"),
        "batch_size = { choice = [32, 64] }\noptimizer = { name = \"adam\", lr = { log_uniform = [1e-4, 1e-2], points = 3 } }",
        "method = \"grid\"",
    );
    let trials = trials(&spec).unwrap();
    assert_eq!(trials.len(), 3 * 2 * 3 + 2 * 3);
    let lrs: Vec<f64> =
        trials.iter().take(4).map(|trial| trial.config.training.optimizer.lr).collect();
    assert_eq!((lrs[0], lrs[2], lrs[3]), (1e-4, 1e-2, 1e-4), "both ends are exact");
    assert!((lrs[1] - 1e-3).abs() < 1e-15);
    assert_eq!(trials[3].config.training.batch_size, 64);
    assert_eq!(trials[18].config.model, Architecture::cnn([16, 32]));
    let names: Vec<&str> = trials[0].choices.keys().map(String::as_str).collect();
    assert_eq!(names, ["model[0].hidden", "training.batch_size", "training.optimizer.lr"]);
    assert!(!trials[18].choices.contains_key("model[1].channels"), "a fixed value is no choice");
}

#[test]
fn a_grid_over_whole_numbers_takes_each_once() {
    let spec = job(MLP, "batch_size = { int = [4, 6], points = 9 }", "method = \"grid\"");
    let sizes: Vec<u32> =
        trials(&spec).unwrap().iter().take(3).map(|t| t.config.training.batch_size).collect();
    assert_eq!(sizes, [4, 5, 6]);
}

#[test]
fn random_trials_stay_when_more_are_asked_for() {
    let training = "optimizer = { name = \"sgd\", lr = { log_uniform = [1e-4, 1.0] }, momentum = { uniform = [0.0, 0.9] } }\nbatch_size = { int = [1, 100] }";
    let few = trials(&job(MLP, training, "method = \"random\"\ntrials = 5")).unwrap();
    let more = trials(&job(MLP, training, "method = \"random\"\ntrials = 50")).unwrap();
    assert_eq!(few[..], more[..5]);
    let fixed = training.replace("{ int = [1, 100] }", "32");
    let without = trials(&job(MLP, &fixed, "method = \"random\"\ntrials = 5")).unwrap();
    let lr = |trial: &sojourn_workgen::Trial| trial.config.training.optimizer.lr;
    assert_eq!(
        few.iter().map(lr).collect::<Vec<_>>(),
        without.iter().map(lr).collect::<Vec<_>>(),
        "each dimension has a stream of its own",
    );
    for trial in &more {
        let training = trial.config.training;
        assert!((1e-4..=1.0).contains(&training.optimizer.lr));
        assert!((0.0..=0.9).contains(&training.optimizer.momentum));
        assert!((1..=100).contains(&training.batch_size));
    }
}

#[test]
fn random_values_are_pinned() {
    // Finished jobs are replayed from their seed: these numbers may never change.
    let spec = job(
        MLP,
        "optimizer = { name = \"sgd\", lr = { log_uniform = [1e-4, 1.0] } }",
        "method = \"random\"\ntrials = 3",
    );
    let all: Vec<String> =
        trials(&spec).unwrap().iter().map(|t| serde_json::to_string(&t.choices).unwrap()).collect();
    assert_eq!(all, PINNED);
}

const PINNED: [&str; 3] = [
    r#"{"model[0].hidden":[64],"training.optimizer.lr":0.7325757567838385}"#,
    r#"{"model[0].hidden":[],"training.optimizer.lr":0.0034741373453865496}"#,
    r#"{"model[0].hidden":[64],"training.optimizer.lr":0.030409301689074898}"#,
];

#[test]
fn a_space_without_values_or_with_too_many_is_refused() {
    let mut spec = job(MLP, "", "method = \"grid\"");
    spec.training.optimizer.lr = sojourn_protocol::spec::Dimension::Choice(Vec::new());
    assert_eq!(
        trials(&spec),
        Err(SearchError::Empty { dimension: "training.optimizer.lr".into() })
    );
    let all: Vec<f64> = (0..300).map(f64::from).collect();
    spec.training.optimizer.lr = sojourn_protocol::spec::Dimension::Choice(all.clone());
    spec.training.optimizer.weight_decay = sojourn_protocol::spec::Dimension::Choice(all);
    assert_eq!(trials(&spec), Err(SearchError::TooMany));
}

#[test]
fn a_range_that_is_none_is_refused_whoever_sends_it() {
    use sojourn_protocol::spec::dimension::{Range, Spread};
    for (spread, low, high) in [
        (Spread::Uniform, 2.0, 1.0),
        (Spread::Integer, 9.0, 3.0),
        (Spread::LogUniform, 0.0, 1.0),
        (Spread::LogUniform, -1.0, 1.0),
        (Spread::Uniform, f64::NAN, 1.0),
        (Spread::Uniform, 0.0, f64::INFINITY),
    ] {
        for method in ["method = \"grid\"", "method = \"random\"\ntrials = 3"] {
            let mut spec = job(MLP, "", method);
            let range = Range { spread, low, high, points: Some(3) };
            spec.training.optimizer.lr = sojourn_protocol::spec::Dimension::Range(range);
            let refused = trials(&spec).unwrap_err();
            assert_eq!(
                refused,
                SearchError::BadRange { dimension: "training.optimizer.lr".into() }
            );
        }
    }
}

#[test]
fn each_configuration_is_trained_with_each_seed() {
    for search in ["method = \"grid\"", "method = \"random\"\ntrials = 4"] {
        let mut spec = job(MLP, "", search);
        let once = trials(&spec).unwrap();
        assert!(once.iter().all(|trial| trial.seed.is_none()));
        spec.seeds = vec![7, 1, 5];
        let all = trials(&spec).unwrap();
        assert_eq!(all.len(), 3 * once.len(), "{search}");
        for (n, trial) in all.iter().enumerate() {
            let seed = spec.seeds[n % 3];
            assert_eq!((trial.seed, &trial.choices["seed"]), (Some(seed), &seed.into()));
            assert_eq!(trial.config, once[n / 3].config, "what is sampled stays");
        }
    }
    let mut spec = job(MLP, "", "method = \"random\"\ntrials = 65536");
    spec.seeds = vec![7, 1];
    assert_eq!(trials(&spec), Err(SearchError::TooMany));
}

proptest! {
    #[test]
    fn ranges_are_kept(low in 1e-6f64..1.0, width in 0.0f64..10.0, seed in any::<u64>()) {
        let mut spec = job(MLP, "optimizer = { name = \"sgd\", lr = { uniform = [0.1, 1.0] } }", "method = \"random\"\ntrials = 20");
        spec.seed = seed;
        let range = sojourn_protocol::spec::dimension::Range {
            spread: sojourn_protocol::spec::dimension::Spread::LogUniform,
            low,
            high: low + width,
            points: None,
        };
        spec.training.optimizer.lr = sojourn_protocol::spec::Dimension::Range(range);
        for trial in trials(&spec).unwrap() {
            let lr = trial.config.training.optimizer.lr;
            prop_assert!(lr >= low && lr <= low + width);
        }
    }
}

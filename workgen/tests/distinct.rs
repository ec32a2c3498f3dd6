//! Combinations of a space differ in settings that their trials make use of, under every procedure; and jobs of earlier versions keep the
//! trials that they had.

#![expect(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

use proptest::prelude::*;
use serde_json::json;
use sojourn_protocol::{
    jobfile,
    spec::{Choices, CombinationRule, JobSpec, OptimizerName, TrialConfig},
};
use sojourn_workgen::{
    SearchError, Trial,
    search::{
        Tried, falls_short, further, given, preview, search,
        tpe::{Observation, Outcome, suggest},
    },
    trials,
};
use std::collections::BTreeSet;

const MLP: &str = "[[model]]\narch = \"mlp\"\nhidden = [8]";
/// Adam has no momentum: 4 combinations differ.
const INACTIVE: &str = "optimizer = { name = { choice = [\"sgd\", \"adam\"] }, momentum = { choice = [0.0, 0.5, 0.9] } }";

fn job(model: &str, training: &str, search: &str) -> JobSpec {
    let text = format!(
        "name = \"t\"\nseed = 7\n[data]\ntrain = \"t.csv\"\nlabel = \"y\"\nshape = [1, 8, 8]\n{model}\n[training]\nepochs = 2\n{training}\n[search]\n{search}\n"
    );
    jobfile::parse(&text).unwrap()
}

fn count(model: &str, training: &str, search: &str) -> usize {
    trials(&job(model, training, search)).unwrap().len()
}

fn configs(trials: &[Trial]) -> BTreeSet<String> {
    trials.iter().map(|trial| json!([trial.model, trial.config]).to_string()).collect()
}

fn momenta(trials: &[Trial]) -> Vec<(OptimizerName, f64)> {
    let of =
        |config: &TrialConfig| (config.training.optimizer.name, config.training.optimizer.momentum);
    trials.iter().map(|trial| of(&trial.config)).collect()
}

#[test]
fn a_grid_has_no_combination_twice_for_settings_without_effect() {
    let all = trials(&job(MLP, INACTIVE, "")).unwrap();
    let (sgd, adam) = (OptimizerName::Sgd, OptimizerName::Adam);
    assert_eq!(momenta(&all), [(sgd, 0.0), (sgd, 0.5), (sgd, 0.9), (adam, 0.0)]);
    let names: Vec<&str> = all[3].choices.keys().map(String::as_str).collect();
    assert_eq!(names, ["training.optimizer.name"], "momentum is no choice of adam's");
    for (training, expected) in [
        (
            "optimizer = { name = { choice = [\"sgd\", \"adam\"] }, beta1 = { choice = [0.8, 0.9] } }",
            3,
        ),
        (
            "optimizer = { name = { choice = [\"adam\", \"adamw\"] }, momentum = { choice = [0.0, 0.5] } }",
            2,
        ),
        (
            "optimizer = { name = { choice = [\"sgd\", \"adam\"] }, momentum = { choice = [0.0, 0.5] }, beta1 = { choice = [0.8, 0.9] }, lr = { choice = [0.1, 0.2] } }",
            8,
        ),
        ("batch_size = { choice = [16, 32, 16] }", 2),
    ] {
        assert_eq!(count(MLP, training, ""), expected, "{training}");
    }
}

#[test]
fn models_have_no_combination_twice_either() {
    let linear = "[[model]]\narch = \"mlp\"\nhidden = { choice = [[], [8]] }\ndropout = { choice = [0.0, 0.5] }\nbatch_norm = { choice = [false, true] }";
    assert_eq!(count(linear, "", ""), 1 + 4, "a linear model has no dropout");
    let cnn = "[[model]]\narch = \"cnn\"\nchannels = [4, 4]\npool = { choice = [\"max\", \"none\"] }\npool_every = { choice = [1, 2] }";
    assert_eq!(count(cnn, "", ""), 3, "nothing is pooled");
    assert_eq!(
        count(&format!("{cnn}\ndropout = 0.5"), "", ""),
        4,
        "dropout is where pooling would be"
    );
}

#[test]
fn jobs_of_earlier_versions_keep_all_combinations() {
    let mut spec = job(MLP, INACTIVE, "");
    assert_eq!(spec.search.combinations, CombinationRule::Distinct);
    spec.search.combinations = CombinationRule::All;
    assert!(!serde_json::to_string(&spec).unwrap().contains("combinations"), "as it was written");
    let all = trials(&spec).unwrap();
    assert_eq!(all.len(), 6);
    assert!(all.iter().all(|trial| trial.choices.contains_key("training.optimizer.momentum")));
    assert_eq!(all, trials(&job(MLP, INACTIVE, "combinations = \"all\"")).unwrap());
}

#[test]
fn the_rule_is_written_only_where_it_makes_a_difference() {
    let continuous = "optimizer = { name = \"sgd\", lr = { log_uniform = [1e-4, 1.0] }, momentum = { choice = [0.0, 0.9] } }";
    for (training, search, expected) in [
        ("", "", CombinationRule::All),
        ("batch_size = { choice = [16, 32] }", "", CombinationRule::All),
        ("batch_size = { choice = [16, 16] }", "", CombinationRule::Distinct),
        (
            "batch_size = { choice = [16, 32] }",
            "method = \"random\"\ntrials = 3",
            CombinationRule::Distinct,
        ),
        (continuous, "method = \"random\"\ntrials = 3", CombinationRule::All),
        (continuous, "method = \"ask-tell\"", CombinationRule::All),
        (
            "optimizer = { name = \"sgd\", lr = { uniform = [0.1, 0.7], points = 7 } }",
            "",
            CombinationRule::Distinct,
        ),
        (
            "optimizer = { name = \"sgd\", lr = { uniform = [0.1, 0.7], step = 0.1 } }",
            "",
            CombinationRule::All,
        ),
        ("", "method = \"random\"\ntrials = 3", CombinationRule::Distinct),
    ] {
        assert_eq!(job(MLP, training, search).search.combinations, expected, "{training} {search}");
    }
}

#[test]
fn constraints_on_settings_without_effect_leave_nothing_out() {
    for (constraint, expected) in [
        // The way round in earlier versions.
        ("optimizer == 'sgd' or momentum == 0", 4),
        ("momentum > 0.4", 3),
        ("not momentum > 0.4", 2),
        ("lr * momentum < 0.0001", 2),
        ("optimizer == 'sgd' and momentum > 0.4", 2),
        ("optimizer == 'adam' and momentum == 7", 1),
        ("momentum != 0.5 and lr > 1", 0),
    ] {
        let spec = job(MLP, INACTIVE, &format!("constraints = [\"{constraint}\"]"));
        assert_eq!(trials(&spec).map_or(0, |all| all.len()), expected, "{constraint}");
    }
}

/// Whether a setting that is fixed counts doesn't hang on the dimensions beside it.
#[test]
fn constraints_on_a_fixed_setting_without_effect_leave_nothing_out() {
    let names = "name = { choice = [\"sgd\", \"adam\"] }, momentum = 0.9";
    let constraints = "constraints = [\"momentum < 0.5\"]";
    for others in ["", ", beta1 = { choice = [0.8, 0.9] }", ", lr = { choice = [0.1, 0.2] }"] {
        let spec = job(MLP, &format!("optimizer = {{ {names}{others} }}"), constraints);
        assert_eq!(spec.search.combinations, CombinationRule::Distinct, "{others}");
        let all = momenta(&trials(&spec).unwrap());
        assert!(all.iter().all(|of| *of == (OptimizerName::Adam, 0.9)), "{others}: {all:?}");
    }
    // No constraint names it.
    let other = "constraints = [\"batch_size < 64\"]";
    let spec = job(MLP, &format!("optimizer = {{ {names} }}"), other);
    assert_eq!(spec.search.combinations, CombinationRule::All);
}

#[test]
fn points_of_a_grid_compare_as_they_are_written() {
    let lr = "optimizer = { name = \"adam\", lr = { log_uniform = [1e-4, 1e-1], points = 4 } }";
    let all = trials(&job(MLP, lr, "constraints = [\"lr == 0.001 or lr == 0.01\"]")).unwrap();
    let lrs: Vec<f64> = all.iter().map(|trial| trial.config.training.optimizer.lr).collect();
    assert_eq!(lrs, [0.001, 0.01]);
    assert_eq!(all[0].choices["training.optimizer.lr"].to_string(), "0.001");
}

#[test]
fn drawn_combinations_come_once_until_the_space_is_used_up() {
    for method in ["random", "sobol"] {
        let of =
            |trials: u32| job(MLP, INACTIVE, &format!("method = \"{method}\"\ntrials = {trials}"));
        let all = search(&of(30)).unwrap().trials;
        assert_eq!((all.len(), configs(&all).len()), (4, 4), "{method}");
        assert_eq!(preview(&of(30)).unwrap().differ, Some(4), "{method}");
        assert_eq!(preview(&of(4)).unwrap().differ, None, "{method}");
        let few = search(&of(2)).unwrap().trials;
        assert_eq!(few, all[..2], "{method}: those before stay as they are");
        let more = further(&of(30), 2..30, &known(&few)).unwrap();
        assert_eq!([few, more].concat(), all, "{method}: as if they had been asked for at once");
        let none = further(&of(30), 4..30, &known(&all)).unwrap_err();
        assert_eq!(none, SearchError::UsedUp { differ: 4, asked: 30 });
        assert_eq!(none.to_string(), "4 combinations differ; 30 were asked for");
    }
}

#[test]
fn suggested_combinations_come_once_until_the_space_is_used_up() {
    let spec = job(MLP, INACTIVE, "method = { name = \"tpe\", startup = 2 }\ntrials = 30");
    assert_eq!(falls_short(&spec), Ok(Some(4)));
    assert_eq!(trials(&spec).unwrap().len(), 2);
    let (all, none) = suggested(&spec);
    assert_eq!((all.len(), configs(&all).len()), (4, 4));
    assert_eq!(none, SearchError::UsedUp { differ: 4, asked: 30 });
}

/// All trials of a search whose combinations are suggested, and why there are no more.
fn suggested(spec: &JobSpec) -> (Vec<Trial>, SearchError) {
    let mut all = trials(spec).unwrap();
    let none = loop {
        let observed = all.iter().map(|trial| Observation {
            model: trial.model,
            choices: &trial.choices,
            outcome: Outcome::Ended { epochs: 2, value: trial.config.training.optimizer.momentum },
        });
        let observed: Vec<_> = observed.collect();
        let tried = Tried::of(all.iter().map(|trial| (trial.model, &trial.config)));
        let index = u32::try_from(all.len()).unwrap();
        match suggest(spec, &observed, index, &tried, &mut |_| true) {
            Ok(trial) => all.push(trial),
            Err(error) => break error,
        }
    };
    (all, none)
}

/// Trials follow from their specification whenever a journal is read, so they stay as they are for ever.
#[test]
fn the_trials_of_a_space_that_is_used_up_are_always_the_same() {
    let training = format!("batch_size = {{ choice = [16, 32, 16] }}\n{INACTIVE}");
    let said = |trials: &[Trial]| -> Vec<String> {
        let said = |trial: &Trial| {
            let of = &trial.config.training;
            format!("{} {} {}", of.batch_size, of.optimizer.name.word(), of.optimizer.momentum)
        };
        trials.iter().map(said).collect()
    };
    let spec = job(MLP, &training, "method = \"random\"\ntrials = 30");
    assert_eq!(
        said(&trials(&spec).unwrap()),
        [
            "32 sgd 0",
            "16 sgd 0.5",
            "16 sgd 0.9",
            "32 adam 0",
            "32 sgd 0.9",
            "16 adam 0",
            "16 sgd 0",
            "32 sgd 0.5"
        ]
    );
    let spec = job(MLP, &training, "method = \"sobol\"\ntrials = 30");
    assert_eq!(
        said(&trials(&spec).unwrap()),
        [
            "32 sgd 0.9",
            "16 adam 0",
            "32 sgd 0.5",
            "16 sgd 0.5",
            "16 sgd 0",
            "32 adam 0",
            "32 sgd 0",
            "16 sgd 0.9"
        ]
    );
    let none = further(&spec, 8..30, &known(&trials(&spec).unwrap())).unwrap_err();
    assert_eq!(none, SearchError::UsedUp { differ: 8, asked: 30 });
    let method = "method = { name = \"tpe\", startup = 2 }\ntrials = 30";
    let (all, none) = suggested(&job(MLP, &training, method));
    assert_eq!((all.len(), configs(&all).len()), (8, 8));
    assert_eq!(said(&all), said(&suggested(&job(MLP, &training, method)).0));
    assert_eq!(none, SearchError::UsedUp { differ: 8, asked: 30 });
}

/// The combinations of these trials.
fn known(trials: &[Trial]) -> Tried {
    Tried::of(trials.iter().map(|trial| (trial.model, &trial.config)))
}

#[test]
fn a_configuration_that_is_repeated_is_one_combination() {
    let spec = job(MLP, INACTIVE, "method = \"random\"\ntrials = 30\nrepeat = 2");
    assert_eq!(preview(&spec).unwrap().differ, Some(4));
    let all = trials(&spec).unwrap();
    let seeds: Vec<Option<u64>> = all.iter().map(|trial| trial.seed).collect();
    assert_eq!(seeds, [Some(7), Some(8)].repeat(4));
    assert_eq!(configs(&all).len(), 4);
    let known = Tried::of(all.iter().map(|trial| (trial.model, &trial.config)));
    let none = further(&spec, 4..30, &known).unwrap_err();
    assert_eq!(none, SearchError::UsedUp { differ: 4, asked: 30 });
}

#[test]
fn a_population_has_each_combination_as_often_where_they_are_few() {
    let all = trials(&job(MLP, INACTIVE, "method = \"pbt\"\ntrials = 8")).unwrap();
    let half = |part: &[Trial]| configs(part).len();
    assert_eq!((half(&all[..4]), half(&all[4..]), all.len()), (4, 4, 8));
    let one = "optimizer = { name = \"sgd\", lr = { choice = [0.1] } }";
    assert_eq!(count(MLP, one, "method = \"pbt\"\ntrials = 4096"), 4096);
}

#[test]
fn spaces_without_end_never_fall_short() {
    let endless = "optimizer = { name = { choice = [\"sgd\", \"adam\"] }, momentum = { uniform = [0.0, 0.9] } }";
    let spec = job(MLP, endless, "method = \"random\"\ntrials = 40");
    assert_eq!(falls_short(&spec), Ok(None));
    let all = trials(&spec).unwrap();
    assert_eq!((all.len(), configs(&all).len()), (40, 40));
    let adam = momenta(&all).into_iter().filter(|(name, _)| *name == OptimizerName::Adam);
    assert_eq!(adam.count(), 1, "the others differ by their momentum");
}

#[test]
fn a_program_may_leave_out_values_without_effect() {
    let spec = job(MLP, INACTIVE, "method = \"ask-tell\"");
    let values = |values: serde_json::Value| -> Choices { serde_json::from_value(values).unwrap() };
    let adam = given(&spec, &values(json!({ "name": "adam" }))).unwrap();
    assert_eq!(given(&spec, &values(json!({ "name": "adam", "momentum": 0.9 }))).unwrap(), adam);
    assert_eq!(adam.choices.len(), 1);
    let lacks = given(&spec, &values(json!({ "name": "sgd" }))).unwrap_err();
    assert_eq!(lacks, SearchError::NotGiven { dimension: "training.optimizer.momentum".into() });
    let twice = json!({ "name": "sgd", "momentum": 0.5, "optimizer.momentum": 0.9 });
    let twice = given(&spec, &values(twice)).unwrap_err();
    assert!(matches!(twice, SearchError::NoDimension { .. }), "{twice}");
    let other = given(&spec, &values(json!({ "name": "adam", "momentun": 0.9 }))).unwrap_err();
    assert_eq!(other, SearchError::NoDimension { name: "momentun".into() });
}

/// A rate that goes with the batch size, by a constraint instead of a formula.
#[test]
fn a_constraint_leaves_the_pairs_of_rate_and_batch_size_that_are_meant() {
    let training = "batch_size = { choice = [64, 128, 256] }\noptimizer = { name = \"sgd\", lr = { choice = [0.025, 0.05, 0.1] } }";
    for constraint in
        ["lr == 0.1 * batch_size / 256", "lr / batch_size < 0.0004 and lr / batch_size > 0.00038"]
    {
        let all = trials(&job(MLP, training, &format!("constraints = [\"{constraint}\"]")));
        let pair =
            |trial: &Trial| (trial.config.training.batch_size, trial.config.training.optimizer.lr);
        let pairs: Vec<_> = all.unwrap().iter().map(pair).collect();
        assert_eq!(pairs, [(64, 0.025), (128, 0.05), (256, 0.1)], "{constraint}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]
    /// As many as there are, whatever the procedure, and each once; a grid of the same space has the same ones.
    #[test]
    fn every_procedure_comes_to_the_same_set(
        seed: u32,
        momenta in prop::collection::btree_set(0u8..9, 1..4),
        sizes in prop::collection::vec(1u32..6, 1..5),
        most in 1u32..40,
    ) {
        let list = momenta.iter().map(|tenths| format!("0.{tenths}")).collect::<Vec<_>>().join(", ");
        let training = format!(
            "batch_size = {{ choice = {sizes:?} }}\noptimizer = {{ name = {{ choice = [\"adam\", \"sgd\"] }}, momentum = {{ choice = [{list}] }} }}"
        );
        let of = |method: &str| {
            let mut spec = job(MLP, &training, method);
            spec.seed = u64::from(seed);
            trials(&spec).unwrap()
        };
        let distinct: BTreeSet<u32> = sizes.iter().copied().collect();
        let grid = of("");
        prop_assert_eq!(grid.len(), distinct.len() * (1 + momenta.len()));
        prop_assert_eq!(configs(&grid).len(), grid.len());
        for method in ["random", "sobol"] {
            let drawn = of(&format!("method = \"{method}\"\ntrials = {most}"));
            prop_assert_eq!(drawn.len(), grid.len().min(usize::try_from(most).unwrap()));
            prop_assert_eq!(configs(&drawn).len(), drawn.len());
            prop_assert!(configs(&drawn).is_subset(&configs(&grid)));
        }
    }
}

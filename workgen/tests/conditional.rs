//! Dimensions that only some trials have: under every procedure, in chains, with constraints.

#![expect(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

use proptest::prelude::*;
use serde_json::json;
use sojourn_protocol::{
    jobfile,
    spec::{Architecture, Choices, JobSpec, OptimizerName, Setting},
};
use sojourn_workgen::{
    SearchError, Trial,
    search::{
        Tried, falls_short, given, models, pbt, preview,
        tpe::{Observation, Outcome, suggest},
    },
    trials,
};
use std::collections::{BTreeMap, BTreeSet};

const MLP: &str = "[[model]]\narch = \"mlp\"\nhidden = { choice = [[8], [4, 4]] }\ndropout = { choice = [0.25, 0.5], when = { hidden = [4, 4] } }";
/// With `MLP` 3 models, and for each 3 times 4 ways to train.
const TRAINING: &str = "batch_size = { choice = [8, 16] }\noptimizer = { name = \"sgd\", lr = { choice = [0.1, 0.2, 0.3] }, weight_decay = { choice = [0.25, 0.5, 0.75], when = { batch_size = 16, lr = [0.1, 0.2] } } }";
const COUNT: usize = 3 * (3 + 2 * 3 + 1);

fn job(model: &str, training: &str, search: &str) -> JobSpec {
    let text = format!(
        "name = \"t\"\nseed = 7\n[data]\ntrain = \"t.csv\"\nlabel = \"y\"\nshape = [1, 8, 8]\n{model}\n[training]\nepochs = 4\n{training}\n[search]\n{search}\n"
    );
    jobfile::parse(&text).unwrap()
}

fn configs(trials: &[Trial]) -> BTreeSet<String> {
    trials.iter().map(|trial| json!([trial.model, trial.config]).to_string()).collect()
}

/// Has each trial the dimensions of `MLP` and `TRAINING` that it meets the conditions of, and no others?
fn check(trials: &[Trial]) {
    for trial in trials {
        let Architecture::Mlp(mlp) = &trial.config.model else { panic!("{trial:?}") };
        let (has_two, training) = (mlp.hidden.len() == 2, trial.config.training);
        assert_eq!(trial.choices.contains_key("model[0].dropout"), has_two, "{trial:?}");
        assert_eq!(mlp.dropout.is_zero(), !has_two, "{trial:?}");
        let decays = training.batch_size == 16 && training.optimizer.lr < 0.25;
        let decay = trial.choices.contains_key("training.optimizer.weight_decay");
        assert_eq!(decay, decays, "{trial:?}");
        assert_eq!(training.optimizer.weight_decay > 0.0, decays, "{trial:?}");
    }
}

#[test]
fn a_grid_has_the_values_of_a_dimension_only_where_trials_have_it() {
    let all = trials(&job(MLP, TRAINING, "")).unwrap();
    assert_eq!((all.len(), configs(&all).len()), (COUNT, COUNT));
    check(&all);
}

#[test]
fn drawn_and_suggested_trials_have_the_dimensions_that_they_meet_the_conditions_of() {
    let grid = configs(&trials(&job(MLP, TRAINING, "")).unwrap());
    for method in ["random", "sobol"] {
        let spec = job(MLP, TRAINING, &format!("method = \"{method}\"\ntrials = 60"));
        assert_eq!(preview(&spec).unwrap().differ, u32::try_from(COUNT).ok(), "{method}");
        let all = trials(&spec).unwrap();
        check(&all);
        assert_eq!(configs(&all), grid, "{method}: each once");
    }
    let spec = job(
        MLP,
        TRAINING,
        "method = { name = \"tpe\", startup = 4 }\ntrials = 60\nstopping = \"hyperband\"",
    );
    assert_eq!(falls_short(&spec).unwrap(), u32::try_from(COUNT).ok());
    let all = suggested(&spec);
    check(&all);
    assert_eq!((all.len(), configs(&all)), (COUNT, grid));
}

/// All trials of a search whose combinations are suggested, until the space is used up.
fn suggested(spec: &JobSpec) -> Vec<Trial> {
    let mut all = trials(spec).unwrap();
    loop {
        let observed = all.iter().map(|trial| Observation {
            model: trial.model,
            choices: &trial.choices,
            outcome: Outcome::Ended {
                epochs: 4,
                value: trial.config.training.optimizer.weight_decay,
            },
        });
        let observed: Vec<_> = observed.collect();
        let tried = Tried::of(all.iter().map(|trial| (trial.model, &trial.config)));
        let index = u32::try_from(all.len()).unwrap();
        match suggest(spec, &observed, index, &tried, &mut |_| true) {
            Ok(trial) => all.push(trial),
            Err(SearchError::UsedUp { .. }) => return all,
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn a_clone_of_a_population_has_the_dimensions_that_it_meets_the_conditions_of() {
    let search = "method = { name = \"pbt\", resample = 0.5 }\ntrials = 8";
    let spec = job(MLP, TRAINING, search);
    let parents = trials(&spec).unwrap();
    check(&parents);
    let mut clones = Vec::new();
    for (number, parent) in (0..).zip(&parents) {
        for generation in 0..8 {
            let replaced = (sojourn_protocol::ids::TrialId(number), generation);
            clones.push(pbt::explore(&spec, parent, replaced, 0.5, &mut |_| true));
        }
    }
    check(&clones);
    let decays = |trial: &&Trial| trial.config.training.optimizer.weight_decay > 0.0;
    let (with, without) = (clones.iter().filter(decays).count(), clones.len());
    assert!(0 < with && with < without, "{with} of {without}");
}

#[test]
fn a_program_gives_values_for_the_dimensions_that_a_trial_has() {
    let spec = job(MLP, TRAINING, "method = \"ask-tell\"");
    let of = |values: serde_json::Value| -> Result<Trial, SearchError> {
        given(&spec, &serde_json::from_value::<Choices>(values).unwrap())
    };
    let few = json!({ "hidden": [8], "batch_size": 8, "lr": 0.1 });
    let trial = of(few).unwrap();
    assert_eq!(trial.choices.len(), 3);
    let more = json!({ "hidden": [8], "batch_size": 8, "lr": 0.1, "dropout": 0.5 });
    assert_eq!(of(more).unwrap(), trial, "says nothing");
    let lacks = of(json!({ "hidden": [4, 4], "batch_size": 8, "lr": 0.1 })).unwrap_err();
    assert_eq!(lacks, SearchError::NotGiven { dimension: "model[0].dropout".into() });
}

/// Chains, across tables and in any order: an optimiser of the largest model alone, with its own momentum.
#[test]
fn conditions_may_be_of_conditional_settings() {
    let training = "optimizer = { name = { choice = [\"sgd\", \"adamw\"], when = { dropout = 0.5 }, otherwise = \"adam\" }, momentum = { choice = [0.5, 0.9], when = { optimizer = \"sgd\" } } }";
    let all = trials(&job(MLP, training, "")).unwrap();
    let names: Vec<(OptimizerName, f64)> = all
        .iter()
        .map(|trial| {
            (trial.config.training.optimizer.name, trial.config.training.optimizer.momentum)
        })
        .collect();
    let (sgd, adam, adamw) = (OptimizerName::Sgd, OptimizerName::Adam, OptimizerName::Adamw);
    assert_eq!(names, [(adam, 0.0), (adam, 0.0), (sgd, 0.5), (sgd, 0.9), (adamw, 0.0)]);
}

#[test]
fn constraints_compare_the_settings_that_a_trial_has() {
    let constrained = |constraint: &str| {
        trials(&job(MLP, TRAINING, &format!("constraints = [\"{constraint}\"]"))).unwrap().len()
    };
    // Without a condition met there is no decay, which is 0.
    assert_eq!(constrained("weight_decay < 0.1"), 3 * (3 + 1));
    assert_eq!(constrained("weight_decay > 0.1"), 3 * 2 * 3);
    assert_eq!(constrained("dropout == 0.25"), 10);
}

#[test]
fn models_of_users_are_those_that_the_conditions_of_their_keys_leave() {
    let model = "[[model]]\narch = \"graph\"\nentry = \"m.py:M\"\nkind = { choice = [\"gru\", \"mlp\"] }\nlayers = { int = [1, 3], when = { kind = \"gru\" }, otherwise = 0 }\nwide = { choice = [true, false], when = { batch_size = 16 }, otherwise = false }";
    let training = "batch_size = { choice = [8, 16] }\noptimizer = { name = \"sgd\", lr = { log_uniform = [0.001, 0.1] } }";
    let spec = job(model, training, "method = \"tpe\"\ntrials = 20");
    let made = models(&spec, 0).unwrap();
    let values: BTreeSet<&BTreeMap<String, Setting>> = made
        .iter()
        .filter_map(|model| match model {
            Architecture::Graph(graph) => Some(&graph.values),
            _ => None,
        })
        .collect();
    assert_eq!(values.len(), (3 + 1) * 2, "{values:?}");
    assert!(values.iter().all(|values| values.len() == 3), "every model has all keys");
    let drawn = trials(&job(model, training, "method = \"random\"\ntrials = 40")).unwrap();
    for trial in &drawn {
        let Architecture::Graph(graph) = &trial.config.model else { panic!("{trial:?}") };
        assert!(values.contains(&graph.values), "{:?}", graph.values);
    }
}

#[test]
fn a_space_sent_with_conditions_that_can_not_be_is_refused() {
    let mut spec = job(MLP, TRAINING, "");
    let text = serde_json::to_string(&spec.training).unwrap().replace("[16]", "[17]");
    spec.training = serde_json::from_str(&text).unwrap();
    let told = "`when` of `training.optimizer.weight_decay`: `batch_size` is `17` in no trial; it may be `16`, `8`";
    assert_eq!(trials(&spec).unwrap_err().to_string(), told);
}

/// Trials follow from their specification whenever a journal is read, so they stay as they are for ever.
#[test]
fn the_trials_of_a_space_with_conditions_are_always_the_same() {
    let said = |method: &str| -> Vec<String> {
        let spec = job(MLP, TRAINING, &format!("method = \"{method}\"\ntrials = 3"));
        let all = trials(&spec).unwrap();
        all.iter().map(|trial| serde_json::to_string(&trial.choices).unwrap()).collect()
    };
    assert_eq!(said("random"), PINNED_RANDOM);
}

const PINNED_RANDOM: [&str; 3] = [
    r#"{"model[0].hidden":[8],"training.batch_size":16,"training.optimizer.lr":0.2,"training.optimizer.weight_decay":0.5}"#,
    r#"{"model[0].hidden":[8],"training.batch_size":8,"training.optimizer.lr":0.2}"#,
    r#"{"model[0].hidden":[8],"training.batch_size":16,"training.optimizer.lr":0.2,"training.optimizer.weight_decay":0.25}"#,
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 30, ..ProptestConfig::default() })]
    /// Each combination once, whatever the seed; those of a larger search begin with those of a smaller one.
    #[test]
    fn drawn_trials_are_a_part_of_the_grid(seed: u32, most in 1u32..40, fewer in 0u32..40) {
        let grid = configs(&trials(&job(MLP, TRAINING, "")).unwrap());
        for method in ["random", "sobol"] {
            let of = |trials_asked: u32| {
                let mut spec = job(MLP, TRAINING, &format!("method = \"{method}\"\ntrials = {trials_asked}"));
                spec.seed = u64::from(seed);
                trials(&spec).unwrap()
            };
            let drawn = of(most);
            check(&drawn);
            prop_assert_eq!(drawn.len(), grid.len().min(usize::try_from(most).unwrap()));
            prop_assert_eq!(configs(&drawn).len(), drawn.len());
            prop_assert!(configs(&drawn).is_subset(&grid));
            let fewer = fewer.clamp(1, most);
            prop_assert_eq!(&of(fewer)[..], &drawn[..of(fewer).len()]);
        }
    }
}

//! Settings that follow from others by a formula, under every procedure.

#![expect(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

use serde_json::json;
use sojourn_protocol::{
    jobfile,
    spec::{Architecture, Choices, JobSpec, Setting},
};
use sojourn_workgen::{
    SearchError, Trial,
    search::{
        Tried, given, models, pbt, preview,
        tpe::{Observation, Outcome, suggest},
    },
    trials,
};
use std::collections::BTreeSet;

const MLP: &str = "[[model]]\narch = \"mlp\"\nhidden = [8]";
const TIED: &str = "batch_size = { choice = [64, 96, 256] }\noptimizer = { name = \"sgd\", lr = \"0.1 * batch_size / 256\" }";

fn job(model: &str, training: &str, search: &str) -> JobSpec {
    let text = format!(
        "name = \"t\"\nseed = 7\n[data]\ntrain = \"t.csv\"\nlabel = \"y\"\nshape = [1, 8, 8]\n{model}\n[training]\nepochs = 4\n{training}\n[search]\n{search}\n"
    );
    jobfile::parse(&text).unwrap()
}

/// The batch sizes and rates of trials.
fn pairs(trials: &[Trial]) -> Vec<(u32, f64)> {
    let of = |trial: &Trial| (trial.config.training.batch_size, trial.config.training.optimizer.lr);
    trials.iter().map(of).collect()
}

fn follow(trials: &[Trial]) {
    for (batch_size, lr) in pairs(trials) {
        assert_eq!(lr.to_bits(), (0.1 * f64::from(batch_size) / 256.0).to_bits(), "{batch_size}");
    }
}

#[test]
fn a_tied_setting_has_its_number_and_makes_no_trials() {
    let all = trials(&job(MLP, TIED, "")).unwrap();
    assert_eq!(pairs(&all), [(64, 0.025), (96, 0.1 * 96.0 / 256.0), (256, 0.1)]);
    let choices = serde_json::to_string(&all[1].choices).unwrap();
    assert_eq!(
        choices,
        r#"{"training.batch_size":96,"training.optimizer.lr":0.037500000000000006}"#
    );
    for method in ["random", "sobol"] {
        let spec = job(MLP, TIED, &format!("method = \"{method}\"\ntrials = 9"));
        assert_eq!(preview(&spec).unwrap().differ, Some(3), "{method}");
        let drawn = trials(&spec).unwrap();
        follow(&drawn);
        assert_eq!(drawn.len(), 3, "{method}");
    }
}

#[test]
fn a_tied_setting_takes_nothing_from_the_other_dimensions() {
    let with = |lr: &str, method: &str| {
        let training = TIED.replace("\"0.1 * batch_size / 256\"", lr);
        let training = format!("{training}\nlabel_smoothing = {{ uniform = [0.0, 0.5] }}");
        trials(&job(MLP, &training, &format!("method = \"{method}\"\ntrials = 20"))).unwrap()
    };
    for method in ["random", "sobol"] {
        let (tied, fixed) = (with("\"0.1 * batch_size / 256\"", method), with("0.1", method));
        follow(&tied);
        for (tied, fixed) in tied.iter().zip(&fixed) {
            let (mut tied, fixed) = (tied.config.training, fixed.config.training);
            tied.optimizer.lr = 0.1;
            assert_eq!(tied, fixed, "{method}");
        }
    }
}

#[test]
fn suggestions_follow_the_formula() {
    let training = format!("{TIED}\nlabel_smoothing = {{ uniform = [0.0, 0.5] }}");
    let spec = job(MLP, &training, "method = { name = \"tpe\", startup = 4 }\ntrials = 12");
    let mut all = trials(&spec).unwrap();
    for index in 4..12 {
        let observed = all.iter().map(|trial| Observation {
            model: trial.model,
            choices: &trial.choices,
            outcome: Outcome::Ended { epochs: 4, value: trial.config.training.label_smoothing },
        });
        let observed: Vec<_> = observed.collect();
        let tried = Tried::of(all.iter().map(|trial| (trial.model, &trial.config)));
        all.push(suggest(&spec, &observed, index, &tried, &mut |_| true).unwrap());
    }
    follow(&all);
    let sizes: BTreeSet<u32> = pairs(&all).into_iter().map(|(size, _)| size).collect();
    assert!(sizes.len() > 1, "{sizes:?}");
    let clones: Vec<Trial> = (0..12)
        .map(|n| {
            let replaced = (sojourn_protocol::ids::TrialId(n), 1);
            pbt::explore(&spec, &all[0], replaced, 0.9, &mut |_| true)
        })
        .collect();
    follow(&clones);
    assert!(pairs(&clones).iter().any(|pair| *pair != pairs(&all[..1])[0]));
}

#[test]
fn formulas_may_name_tied_and_conditional_settings() {
    let training = "batch_size = { choice = [64, 128] }\nclip_norm = { choice = [2, 4], when = { batch_size = 128 }, otherwise = 1 }\noptimizer = { name = \"sgd\", lr = \"momentum / batch_size\", momentum = \"clip_norm / 8\" }\nlabel_smoothing = { formula = \"momentum / 2\", when = { batch_size = 128 } }";
    let all = trials(&job(MLP, training, "constraints = [\"label_smoothing < 0.25\"]")).unwrap();
    let of = |trial: &Trial| {
        let training = trial.config.training;
        (training.optimizer.momentum, training.optimizer.lr, training.label_smoothing)
    };
    let all: Vec<_> = all.iter().map(of).collect();
    assert_eq!(all, [(0.125, 0.125 / 64.0, 0.0), (0.25, 0.25 / 128.0, 0.125)]);
}

#[test]
fn a_number_that_a_setting_can_not_have_is_refused_with_the_combination() {
    let optimizer = |lr: &str| {
        format!(
            "batch_size = {{ choice = [64, 96] }}\noptimizer = {{ name = \"sgd\", lr = \"{lr}\" }}"
        )
    };
    for (training, told) in [
        (
            optimizer("96 - batch_size"),
            "`training.optimizer.lr` can't be 0 with batch_size=96 lr=0",
        ),
        (
            optimizer("1 / (batch_size - 64)"),
            "`training.optimizer.lr` divides by 0 with batch_size=64",
        ),
        (
            "batch_size = { choice = [64, 96] }\nschedule = { name = \"step\", every = \"batch_size / 64\" }".to_owned(),
            "`training.schedule.every` is 1.5 where a whole number is wanted with batch_size=96",
        ),
    ] {
        for search in ["", "method = \"random\"\ntrials = 1", "method = \"tpe\"\ntrials = 1"] {
            let error = trials(&job(MLP, &training, search)).unwrap_err();
            assert_eq!(error.to_string(), told, "{search}");
        }
    }
}

#[test]
fn ends_of_ranges_are_looked_at_before_any_trial_is_drawn() {
    let training = |low: u32| {
        format!(
            "batch_size = {{ int = [{low}, 4096] }}\noptimizer = {{ name = \"sgd\", lr = \"batch_size - 8\" }}"
        )
    };
    for search in [
        "method = \"random\"\ntrials = 1",
        "method = \"sobol\"\ntrials = 1",
        "method = \"ask-tell\"",
    ] {
        let error = preview(&job(MLP, &training(8), search)).unwrap_err();
        let told = "`training.optimizer.lr` can't be 0 with batch_size=8 lr=0";
        assert_eq!(error.to_string(), told, "{search}");
        assert!(preview(&job(MLP, &training(9), search)).is_ok(), "{search}");
    }
}

#[test]
fn suggestions_pass_over_numbers_that_a_setting_can_not_have() {
    // Both ends are possible, and a third of the numbers between them are not.
    let training = "label_smoothing = { uniform = [0.0, 0.9] }\noptimizer = { name = \"sgd\", lr = \"(label_smoothing - 0.3) * (label_smoothing - 0.6)\" }";
    let spec = job(MLP, training, "method = { name = \"tpe\", startup = 1 }\ntrials = 9");
    let tried = Tried::default();
    for index in 0..9 {
        let trial = suggest(&spec, &[], index, &tried, &mut |_| true).unwrap();
        assert!(trial.config.training.optimizer.lr > 0.0);
    }
}

#[test]
fn a_program_gives_no_value_for_a_tied_setting_or_the_same() {
    let spec = job(MLP, TIED, "method = \"ask-tell\"");
    let of = |values: serde_json::Value| -> Result<Trial, SearchError> {
        given(&spec, &serde_json::from_value::<Choices>(values).unwrap())
    };
    let trial = of(json!({ "batch_size": 64 })).unwrap();
    assert_eq!(pairs(std::slice::from_ref(&trial)), [(64, 0.025)]);
    assert_eq!(of(json!({ "batch_size": 64, "lr": 0.025 })).unwrap(), trial);
    let other = of(json!({ "batch_size": 64, "lr": 0.5 })).unwrap_err();
    let outside =
        SearchError::Outside { dimension: "training.optimizer.lr".into(), value: "0.5".into() };
    assert_eq!(other, outside);
}

#[test]
fn keys_of_users_models_are_whole_numbers_where_these_are() {
    let model = "[[model]]\narch = \"graph\"\nentry = \"m.py:M\"\nwidth = { choice = [8, 10] }\nheads = { formula = \"width / 4\" }\nrate = { formula = \"lr / 2\" }";
    let spec = job(
        model,
        "optimizer = { name = \"sgd\", lr = { choice = [0.5, 0.25] } }",
        "method = \"tpe\"\ntrials = 4",
    );
    let mut heads = Vec::new();
    let made = models(&spec, 0).unwrap();
    for model in &made {
        let Architecture::Graph(graph) = model else { panic!("{model:?}") };
        heads.push((graph.values["heads"].clone(), graph.values["rate"].number().unwrap()));
    }
    let whole = Setting::Whole(2);
    let half = Setting::Real(sojourn_protocol::spec::Real(2.5));
    assert_eq!(heads, [(whole.clone(), 0.25), (whole, 0.125), (half.clone(), 0.25), (half, 0.125)]);
}

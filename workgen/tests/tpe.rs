//! The Tree-structured Parzen Estimator as a search has it: what it finds, in which spaces, and that it ends.

#![expect(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

use proptest::prelude::*;
use serde_json::{Value, json};
use sojourn_protocol::{
    jobfile,
    spec::{
        Architecture, Choices, Constraint, Dimension, Goal, JobSpec, OptimizerName,
        dimension::{Normal, Range, Spread},
    },
};
use sojourn_workgen::{
    SearchError, Trial,
    search::{
        Tried,
        tpe::{Observation, Outcome, suggest},
    },
    trials,
};
use std::collections::BTreeSet;

fn job(models: &str, training: &str) -> JobSpec {
    let text = format!(
        "name = \"t\"\nseed = 7\n[data]\ntrain = \"t.csv\"\nlabel = \"y\"\nshape = [1, 8, 8]\n{models}\n[training]\nepochs = 9\n{training}\n[search]\ncombinations = \"all\"\nmethod = \"random\"\ntrials = 100\nmetric = \"valid/loss\""
    );
    jobfile::parse(&text).unwrap()
}

const CNN: &str = "[[model]]\narch = \"cnn\"\nchannels = [16, 32]\n";
const LOG: &str = "optimizer = { name = \"sgd\", lr = { log_uniform = [1e-5, 1.0] }, weight_decay = { log_uniform = [1e-6, 0.1] } }";

/// All kinds of dimensions.
const EVERY_KIND: [&str; 2] = [
    "[[model]]\narch = \"mlp\"\nhidden = { choice = [[64], [128, 64], []] }\ndropout = { uniform = [0.1, 0.6] }\n[[model]]\narch = \"resnet\"\ndepth = 11\nwidth = { log_int = [4, 40] }\n",
    "batch_size = { int = [16, 64], step = 8 }\noptimizer = { name = { choice = [\"sgd\", \"adam\"] }, lr = { log_uniform = [1e-4, 1.0] }, momentum = { normal = [0.9, 0.05], truncate = [0.7, 0.99] }, weight_decay = { log_uniform = [0.001, 0.1], step = 0.001 } }\nschedule = { name = \"cosine\", warmup = { int = [0, 9] } }\nlabel_smoothing = { uniform = [0.0, 0.5], step = 0.1 }",
];

/// The space of those, with normal numbers that have no ends as well.
fn every_kind() -> JobSpec {
    let [models, training] = EVERY_KIND;
    let mut spec = job(models, training);
    spec.training.clip_norm =
        Dimension::Normal(Normal { mean: 2.0, deviation: 1.0, truncate: None });
    spec
}

/// Is it a combination of that space?
fn is_of_every_kind(trial: &Trial) -> bool {
    let training = &trial.config.training;
    let optimizer = training.optimizer;
    let tenths = |number: f64, unit: f64| ((number / unit).round() - number / unit).abs() < 1e-9;
    let model = match &trial.config.model {
        Architecture::Mlp(mlp) => {
            [vec![64], vec![128, 64], vec![]].contains(&mlp.hidden)
                && (0.1..=0.6).contains(&mlp.dropout.0)
                && trial.model == 0
        }
        Architecture::Resnet(resnet) => (4..=40).contains(&resnet.width) && trial.model == 1,
        _ => false,
    };
    let names = if trial.model == 0 { 10 } else { 9 };
    model
        && trial.choices.len() == names
        && training.batch_size.is_multiple_of(8)
        && (16..=64).contains(&training.batch_size)
        && matches!(optimizer.name, OptimizerName::Sgd | OptimizerName::Adam)
        && (1e-4..=1.0).contains(&optimizer.lr)
        && (0.7..=0.99).contains(&optimizer.momentum)
        && (0.001..=0.1).contains(&optimizer.weight_decay)
        && tenths(optimizer.weight_decay, 0.001)
        && training.schedule.warmup <= 9
        && (0.0..=0.5).contains(&training.label_smoothing)
        && tenths(training.label_smoothing, 0.1)
        && trial
            .choices
            .get("training.clip_norm")
            .is_some_and(|clip| clip.as_f64().is_some_and(|clip| (-7.0..=11.0).contains(&clip)))
}

/// A trial that has ended with a value, or is still running.
fn observed(trial: &Trial, value: Option<f64>) -> Observation<'_> {
    let outcome = value.map_or(Outcome::Running, |value| Outcome::Ended { epochs: 9, value });
    Observation { model: trial.model, choices: &trial.choices, outcome }
}

fn next(spec: &JobSpec, known: &[Observation<'_>], index: u32) -> Trial {
    suggest(spec, known, index, &Tried::default(), &mut |_| true).unwrap()
}

/// The trials of a search for the least value: ten random ones, then those that are suggested one after another.
fn searched(spec: &JobSpec, count: u32, value: &dyn Fn(&Trial) -> f64) -> Vec<(Trial, f64)> {
    let mut all: Vec<(Trial, f64)> = Vec::new();
    for trial in trials(spec).unwrap().into_iter().take(10) {
        let value = value(&trial);
        all.push((trial, value));
    }
    for index in 10..count {
        let known: Vec<_> =
            all.iter().map(|(trial, value)| observed(trial, Some(*value))).collect();
        let trial = next(spec, &known, index);
        let value = value(&trial);
        all.push((trial, value));
    }
    all
}

fn best(all: impl Iterator<Item = f64>) -> f64 {
    all.fold(f64::INFINITY, f64::min)
}

/// The best values of 100 suggested and of 100 random trials, means over 20 seeds.
fn means(mut spec: JobSpec, value: impl Fn(&Trial) -> f64) -> [f64; 2] {
    let mut sums = [0.0, 0.0];
    for seed in 0..20 {
        spec.seed = seed;
        sums[0] += best(searched(&spec, 100, &value).into_iter().map(|(_, value)| value));
        sums[1] += best(trials(&spec).unwrap().iter().map(&value));
    }
    sums.map(|sum| sum / 20.0)
}

#[test]
fn it_finds_the_optimum_of_a_quadratic_in_logarithms() {
    let [suggested, random] = means(job(CNN, LOG), |trial| {
        let optimizer = trial.config.training.optimizer;
        (optimizer.lr.log10() + 2.3).powi(2) + 0.3 * (optimizer.weight_decay.log10() + 4.0).powi(2)
    });
    assert!(suggested * 20.0 < random, "{suggested}, random {random}");
}

#[test]
fn it_finds_the_optimum_where_a_category_matters() {
    let mlp = "[[model]]\narch = \"mlp\"\nhidden = { choice = [[64], [128, 64], [], [32]] }";
    let training = "batch_size = { log_int = [8, 512] }\noptimizer = { name = { choice = [\"sgd\", \"adam\", \"adamw\"] }, lr = { log_uniform = [1e-5, 1.0] }, momentum = { normal = [0.9, 0.05], truncate = [0, 0.99] } }\nschedule = { name = \"cosine\", warmup = { int = [0, 100], step = 5 } }";
    let [suggested, random] = means(job(mlp, training), |trial| {
        let training = &trial.config.training;
        let optimizer = training.optimizer;
        // Each optimiser has a best learning rate of its own.
        let (rate, more) = match optimizer.name {
            OptimizerName::Sgd => (-1.0, 0.3),
            OptimizerName::Adam => (-3.0, 0.0),
            OptimizerName::Adamw => (-3.5, 0.15),
        };
        let hidden = trial.choices["model[0].hidden"].as_array().unwrap().len();
        more + [0.3, 0.1, 0.0][hidden]
            + (optimizer.lr.log10() - rate).powi(2)
            + 0.1 * (f64::from(training.batch_size).log2() - 6.0).powi(2)
            + 50.0 * (optimizer.momentum - 0.85).powi(2)
            + 2e-4 * (f64::from(training.schedule.warmup) - 40.0).powi(2)
    });
    assert!(suggested * 4.0 < random, "{suggested}, random {random}");
}

#[test]
fn it_finds_the_optimum_of_the_better_model_table() {
    let models = "[[model]]\narch = \"cnn\"\nchannels = [16, 32]\ndropout = { uniform = [0.0, 0.9] }\n[[model]]\narch = \"resnet\"\ndepth = 11\nwidth = { log_int = [4, 64] }";
    let training = "optimizer = { name = \"sgd\", lr = { log_uniform = [1e-5, 1.0] } }";
    let [suggested, random] = means(job(models, training), |trial| {
        let lr = trial.config.training.optimizer.lr.log10();
        match &trial.config.model {
            Architecture::Resnet(resnet) => {
                (lr + 2.0).powi(2) + 0.3 * (f64::from(resnet.width).log2() - 5.0).powi(2)
            }
            _ => {
                let dropout = trial.choices["model[0].dropout"].as_f64().unwrap();
                0.5 + (lr + 3.0).powi(2) + 4.0 * (dropout - 0.3).powi(2)
            }
        }
    });
    assert!(suggested * 4.0 < random, "{suggested}, random {random}");
}

/// Distances to the nearest other one, in decades of both dimensions, on average.
fn spread(all: &[Trial]) -> f64 {
    let at = |trial: &Trial| {
        let optimizer = trial.config.training.optimizer;
        (optimizer.lr.log10(), optimizer.weight_decay.log10())
    };
    let distance = |a: &Trial, b: &Trial| (at(a).0 - at(b).0).hypot(at(a).1 - at(b).1);
    let nearest = |(n, trial): (usize, &Trial)| {
        let others = all.iter().enumerate().filter(|(other, _)| *other != n);
        best(others.map(|(_, other)| distance(trial, other)))
    };
    let count = u32::try_from(all.len()).unwrap();
    all.iter().enumerate().map(nearest).sum::<f64>() / f64::from(count)
}

#[test]
fn suggestions_made_at_once_differ() {
    let spec = job(CNN, LOG);
    let value = |trial: &Trial| (trial.config.training.optimizer.lr.log10() + 2.3).powi(2);
    let ended = searched(&spec, 40, &value);
    let at_once = |is_known: bool| {
        let mut pending: Vec<Trial> = Vec::new();
        for index in 40..56 {
            let known = ended.iter().map(|(trial, value)| observed(trial, Some(*value)));
            let running = pending.iter().filter(|_| is_known).map(|trial| observed(trial, None));
            let known: Vec<_> = known.chain(running).collect();
            pending.push(next(&spec, &known, index));
        }
        pending
    };
    let (pending, blind) = (at_once(true), at_once(false));
    let distinct: BTreeSet<String> =
        pending.iter().map(|trial| serde_json::to_string(&trial.choices).unwrap()).collect();
    assert_eq!(distinct.len(), 16);
    let (spread, blind) = (spread(&pending), spread(&blind));
    assert!(spread > 1.2 * blind, "{spread}, and {blind} where running ones aren't known");
}

#[test]
fn a_combination_comes_again_only_when_all_were_tried() {
    let spec = job(
        CNN,
        "batch_size = { int = [1, 4] }\noptimizer = { name = { choice = [\"sgd\", \"adam\"] }, lr = { choice = [0.1, 0.2] } }",
    );
    let mut pending: Vec<Trial> = Vec::new();
    for index in 0..17 {
        let known: Vec<_> = pending.iter().map(|trial| observed(trial, None)).collect();
        pending.push(next(&spec, &known, index));
    }
    let distinct: BTreeSet<String> =
        pending.iter().map(|trial| serde_json::to_string(&trial.choices).unwrap()).collect();
    assert_eq!(distinct.len(), 16);
}

#[test]
fn every_kind_of_dimension_has_values_of_its_own() {
    let spec = every_kind();
    let value = |trial: &Trial| (trial.config.training.optimizer.lr.log10() + 2.0).abs();
    let all = searched(&spec, 300, &value);
    assert!(all.iter().all(|(trial, _)| is_of_every_kind(trial)));
    // It still looks everywhere.
    for (name, least) in [
        ("training.batch_size", 7),
        ("training.optimizer.name", 2),
        ("training.optimizer.weight_decay", 20),
        ("training.schedule.warmup", 10),
        ("training.label_smoothing", 6),
        ("training.clip_norm", 290),
        ("model[0].hidden", 3),
        ("model[1].width", 15),
    ] {
        let values: BTreeSet<String> = all
            .iter()
            .filter_map(|(trial, _)| trial.choices.get(name))
            .map(Value::to_string)
            .collect();
        assert!(values.len() >= least, "{name}: {}", values.len());
    }
}

#[test]
fn a_normal_dimension_that_does_not_matter_keeps_to_its_numbers() {
    let mut spec = every_kind();
    let value = |trial: &Trial| (trial.config.training.optimizer.lr.log10() + 2.0).abs();
    for seed in 0..5 {
        spec.seed = seed;
        let all = searched(&spec, 200, &value);
        let deviations = all
            .iter()
            .map(|(trial, _)| (trial.choices["training.clip_norm"].as_f64().unwrap() - 2.0).abs());
        let deviations: Vec<f64> = deviations.collect();
        let mean = deviations.iter().sum::<f64>() / 200.0;
        assert!(mean < 1.5 && deviations.iter().all(|number| *number < 4.5), "seed {seed}: {mean}");
    }
}

#[test]
fn suggestions_follow_from_what_is_known_and_are_pinned() {
    let spec = every_kind();
    let value = |trial: &Trial| (trial.config.training.optimizer.lr.log10() + 2.0).abs();
    let all = searched(&spec, 30, &value);
    let known: Vec<_> = all.iter().map(|(trial, value)| observed(trial, Some(*value))).collect();
    let suggested = next(&spec, &known, 30);
    assert_eq!(suggested, next(&spec, &known, 30));
    assert_ne!(suggested.choices, next(&spec, &known, 31).choices);
    assert_ne!(suggested.choices, next(&JobSpec { seed: 8, ..spec.clone() }, &known, 30).choices);
    // A search is replayed from its seed: these may never change.
    assert_eq!(serde_json::to_string(&suggested.choices).unwrap(), PINNED);
    assert_eq!(serde_json::to_string(&next(&spec, &[], 0).choices).unwrap(), PINNED_FIRST);
    // Where each configuration is trained with several seeds, these are no part of it.
    let with_seed = all.iter().map(|(trial, _)| {
        let mut choices = trial.choices.clone();
        choices.insert("seed".into(), json!(12));
        choices
    });
    let with_seed: Vec<Choices> = with_seed.collect();
    let known: Vec<_> = known
        .iter()
        .zip(&with_seed)
        .map(|(observation, choices)| Observation { choices, ..*observation })
        .collect();
    assert_eq!(suggested, next(&spec, &known, 30));
}

const PINNED: &str = r#"{"model[0].dropout":0.3914973123243284,"model[0].hidden":[],"training.batch_size":40,"training.clip_norm":2.760133912309909,"training.label_smoothing":0.5,"training.optimizer.lr":0.002321232504724259,"training.optimizer.momentum":0.8559816421423366,"training.optimizer.name":"adam","training.optimizer.weight_decay":0.035,"training.schedule.warmup":1}"#;
const PINNED_FIRST: &str = r#"{"model[1].width":4,"training.batch_size":24,"training.clip_norm":1.38035029832445,"training.label_smoothing":0.5,"training.optimizer.lr":0.7145865112332264,"training.optimizer.momentum":0.900786792671048,"training.optimizer.name":"sgd","training.optimizer.weight_decay":0.004,"training.schedule.warmup":9}"#;

#[test]
fn more_is_better_where_the_search_says_so() {
    let mut spec = job(CNN, LOG);
    let all = trials(&spec).unwrap();
    let lr = |trial: &Trial| trial.config.training.optimizer.lr.log10();
    let known: Vec<_> = all.iter().map(|trial| observed(trial, Some(lr(trial)))).collect();
    let low = (100..110).map(|index| lr(&next(&spec, &known, index))).sum::<f64>() / 10.0;
    spec.search.goal = Goal::Max;
    let high = (100..110).map(|index| lr(&next(&spec, &known, index))).sum::<f64>() / 10.0;
    assert!(low < -4.3 && high > -0.7, "{low}, {high}");
}

/// The trials that went on under ASHA were better, whatever the values say of the others.
#[test]
fn trials_that_were_stopped_early_are_no_example() {
    let spec = job(CNN, LOG);
    let all = trials(&spec).unwrap();
    let lr = |trial: &Trial| trial.config.training.optimizer.lr.log10();
    let of = |trial| {
        let outcome = match lr(trial) {
            lr if lr > -1.0 => Outcome::Ended { epochs: 9, value: 2.0 },
            lr if lr > -2.0 => Outcome::Failed,
            lr if lr > -3.0 => Outcome::Ended { epochs: 9, value: f64::NEG_INFINITY },
            _ => Outcome::Ended { epochs: 1, value: 1.0 },
        };
        Observation { outcome, ..observed(trial, None) }
    };
    let known: Vec<_> = all.iter().map(of).collect();
    let suggested: Vec<f64> = (100..110).map(|index| lr(&next(&spec, &known, index))).collect();
    assert!(suggested.iter().all(|lr| *lr > -1.3), "{suggested:?}");
}

#[test]
fn a_refused_combination_is_replaced() {
    let mut spec = job(CNN, LOG);
    let all = trials(&spec).unwrap();
    let lr = |trial: &Trial| trial.config.training.optimizer.lr;
    let known: Vec<_> = all.iter().map(|trial| observed(trial, Some(lr(trial)))).collect();
    let mut refused = Vec::new();
    let accepted = suggest(&spec, &known, 100, &Tried::default(), &mut |trial| {
        if lr(trial) < 1e-2 {
            refused.push(lr(trial));
        }
        lr(trial) >= 1e-2
    });
    assert!(lr(&accepted.unwrap()) >= 1e-2 && refused.len() > 10, "{}", refused.len());
    spec.search.constraints = vec![Constraint::parse("lr * 1000 >= 10").unwrap()];
    assert!(lr(&next(&spec, &known, 100)) >= 1e-2);
    let mut asked = 0;
    let none = suggest(&spec, &known, 100, &Tried::default(), &mut |trial| {
        assert!(lr(trial) >= 1e-2, "who is asked satisfies the constraints");
        asked += 1;
        false
    });
    let rare = SearchError::TooRare { trial: 100, constraint: "lr * 1000 >= 10".into() };
    assert_eq!(none, Err(rare));
    assert!((10..1000).contains(&asked), "{asked}");
    spec.search.constraints.clear();
    let none = suggest(&spec, &known, 100, &Tried::default(), &mut |_| false);
    assert_eq!(none, Err(SearchError::NoneAccepted { trial: 100 }));
    let bad = Range::new(Spread::Uniform, 2.0, 1.0);
    spec.training.optimizer.lr = Dimension::Range(bad);
    let dimension = "training.optimizer.lr".to_owned();
    let refused = suggest(&spec, &known, 100, &Tried::default(), &mut |_| true);
    assert_eq!(refused, Err(SearchError::BadRange { dimension: dimension.clone() }));
    spec.training.optimizer.lr = Dimension::Choice(Vec::new());
    let refused = suggest(&spec, &known, 100, &Tried::default(), &mut |_| true);
    assert_eq!(refused, Err(SearchError::Empty { dimension: "model[0]".into() }));
}

#[test]
fn what_was_learnt_in_another_space_is_kept_where_it_fits() {
    let narrow = job(
        CNN,
        "optimizer = { name = { choice = [\"sgd\", \"adam\"] }, lr = { log_uniform = [1e-4, 1e-2] } }",
    );
    let wide = job(
        CNN,
        "optimizer = { name = { choice = [\"adam\", \"adamw\"] }, lr = { log_uniform = [1e-5, 1.0] } }",
    );
    let lr = |trial: &Trial| trial.config.training.optimizer.lr.log10();
    // What is new of a wider range is looked at as well.
    for (from, to, best, least) in [(&narrow, &wide, -3.0_f64, 7), (&wide, &narrow, 0.0, 15)] {
        let all = trials(from).unwrap();
        let known: Vec<_> =
            all.iter().map(|trial| observed(trial, Some((lr(trial) - best).abs()))).collect();
        let suggested: Vec<f64> = (100..120).map(|index| lr(&next(to, &known, index))).collect();
        let near = suggested.iter().filter(|lr| (*lr - best.min(-2.0)).abs() < 0.2).count();
        assert!(near >= least, "{suggested:?}");
    }
}

fn any_number() -> impl Strategy<Value = f64> {
    prop_oneof![
        any::<f64>(),
        -10.0..10.0,
        Just(f64::NAN),
        Just(f64::INFINITY),
        Just(f64::MIN_POSITIVE),
        Just(f64::MAX),
    ]
}

/// Any JSON, often of a kind that a choice has.
fn any_json() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any_number().prop_map(Value::from),
        (0..70_u32).prop_map(Value::from),
        prop_oneof![Just("sgd"), Just("adam"), Just("lion")].prop_map(Value::from),
        prop::collection::vec(0..130_u32, 0..3).prop_map(Value::from),
        Just(json!([[64]])),
        Just(json!({"choice": [1]})),
    ]
}

fn any_choices() -> impl Strategy<Value = Choices> {
    let names = prop::sample::select(vec![
        "training.batch_size",
        "training.optimizer.name",
        "training.optimizer.lr",
        "training.optimizer.momentum",
        "training.optimizer.weight_decay",
        "training.schedule.warmup",
        "training.label_smoothing",
        "training.clip_norm",
        "model[0].hidden",
        "model[0].dropout",
        "model[1].width",
        "model",
        "seed",
        "",
    ]);
    prop::collection::btree_map(names.prop_map(str::to_owned), any_json(), 0..12)
}

fn any_outcome() -> impl Strategy<Value = Outcome> {
    prop_oneof![
        Just(Outcome::Running),
        Just(Outcome::Failed),
        (any::<u32>(), any_number()).prop_map(|(epochs, value)| Outcome::Ended { epochs, value }),
    ]
}

proptest! {
    #[test]
    fn whatever_is_known_a_suggestion_is_of_the_space(
        history in prop::collection::vec((0..4_u32, any_choices(), any_outcome()), 0..40),
        seed in any::<u64>(),
        index in any::<u32>(),
    ) {
        let mut spec = every_kind();
        spec.seed = seed;
        spec.search.constraints = vec![Constraint::parse("lr * batch_size <= 20").unwrap()];
        let known: Vec<_> = history
            .iter()
            .map(|(model, choices, outcome)| Observation { model: *model, choices, outcome: *outcome })
            .collect();
        let trial = next(&spec, &known, index);
        prop_assert!(is_of_every_kind(&trial), "{:?}", trial.choices);
        let training = &trial.config.training;
        prop_assert!(training.optimizer.lr * f64::from(training.batch_size) <= 20.0);
    }
}

//! Densities against figures of numpy and scipy, and draws against densities.

use super::*;
use crate::search::draw;
use serde_json::{Value, json};
use sojourn_protocol::{
    jobfile,
    spec::{
        Dimension, Goal,
        dimension::{Normal, Range, Spread},
    },
};

fn job(models: &str, training: &str) -> JobSpec {
    let text = format!(
        "name = \"t\"\nseed = 7\n[data]\ntrain = \"t.csv\"\nlabel = \"y\"\nshape = [1, 8, 8]\n{models}\n[training]\nepochs = 9\n{training}\n[search]\nmethod = \"random\"\ntrials = 100\nmetric = \"valid/loss\""
    );
    jobfile::parse(&text).unwrap()
}

const CNN: &str = "[[model]]\narch = \"cnn\"\nchannels = [16, 32]\n";

fn observed(model: u32, choices: &Choices, outcome: Outcome) -> Observation<'_> {
    Observation { model, choices, outcome }
}

fn ended(value: f64) -> Outcome {
    Outcome::Ended { epochs: 9, value }
}

/// The densities of observations over their space.
fn densities<'a>(spec: &JobSpec, space: &'a Space, all: &[Observation<'_>]) -> Densities<'a> {
    let all: Vec<&Observation<'_>> = all.iter().collect();
    Densities::new(space, Places::new(space, &all), &split::good(&all, spec.search.goal))
}

/// The places of a combination in the dimensions of its table.
fn place(space: &Space, model: u32, choices: &Choices) -> Vec<f64> {
    let places = Places::new(space, &[&observed(model, choices, Outcome::Running)]);
    space.of_table(model).iter().map(|dimension| places.columns[*dimension][0]).collect()
}

/// The logarithm of l / g.
fn log_ratio(densities: &mut Densities<'_>, model: u32, place: &[f64]) -> f64 {
    let [good, others] = densities.of_table(model);
    good.log_at(place) - others.log_at(place)
}

/// The figures are those of `workgen/tests/tpe_reference.py`.
#[test]
fn density_ratios_are_those_of_scipy() {
    let reference: Value =
        serde_json::from_str(include_str!("../../../tests/tpe_reference.json")).unwrap();
    let mut spec = jobfile::parse(reference["spec"].as_str().unwrap()).unwrap();
    let without_ends = Normal { mean: -2.0, deviation: 1.5, truncate: None };
    spec.training.optimizer.weight_decay = Dimension::Normal(without_ends);
    let space = Space::new(&spec);
    let parts = |of: &Value| -> (u32, Choices) {
        let model = serde_json::from_value(of["model"].clone()).unwrap();
        (model, serde_json::from_value(of["choices"].clone()).unwrap())
    };
    let mut compared = 0;
    for history in reference["histories"].as_array().unwrap() {
        let all: Vec<(u32, Choices, Outcome)> = history["observations"]
            .as_array()
            .unwrap()
            .iter()
            .map(|of| {
                let (model, choices) = parts(of);
                let outcome = match of["outcome"].as_str().unwrap() {
                    "running" => Outcome::Running,
                    "failed" => Outcome::Failed,
                    _ => Outcome::Ended {
                        epochs: serde_json::from_value(of["epochs"].clone()).unwrap(),
                        value: of["value"].as_f64().unwrap(),
                    },
                };
                (model, choices, outcome)
            })
            .collect();
        let all: Vec<_> = all.iter().map(|(m, choices, o)| observed(*m, choices, *o)).collect();
        let mut densities = densities(&spec, &space, &all);
        for of in history["places"].as_array().unwrap() {
            let (model, choices) = parts(of);
            let place = place(&space, model, &choices);
            assert!(place.iter().all(|place| !place.is_nan()), "{choices:?}");
            let expected = of["log_ratio"].as_f64().unwrap();
            let ratio = log_ratio(&mut densities, model, &place);
            assert!(
                (ratio - expected).abs() < 1e-9,
                "{} trials: {ratio}, not {expected}",
                all.len()
            );
            compared += 1;
        }
    }
    assert_eq!(compared, 48);
}

/// Of 5000 trials that lie evenly on a line the best 25 are within a quarter of a hundredth of the optimum. So the one density is
/// that of a Gaussian with the least bandwidth, and the other one is even but for the 25 that it lacks, as wide as its own least bandwidth.
#[test]
fn with_many_observations_densities_are_what_they_tend_to() {
    let spec = job(CNN, "optimizer = { name = \"sgd\", lr = { log_uniform = [1e-4, 1.0] } }");
    let space = Space::new(&spec);
    let shares: Vec<f64> = (0..5000).map(|n| (f64::from(n) + 0.5) / 5000.0).collect();
    let choices = |share: f64| {
        Choices::from([("training.optimizer.lr".to_owned(), json!(10_f64.powf(4.0 * share - 4.0)))])
    };
    let all: Vec<Choices> = shares.iter().map(|share| choices(*share)).collect();
    let all: Vec<Observation<'_>> = shares
        .iter()
        .zip(&all)
        .map(|(share, choices)| observed(0, choices, ended((share - 0.3).powi(2))))
        .collect();
    let mut densities = densities(&spec, &space, &all);
    for share in [0.2, 0.3, 0.34, 0.4, 0.8] {
        let gauss = |bandwidth: f64| {
            let away: f64 = (share - 0.3) / bandwidth;
            (-away * away / 2.0).exp() / (bandwidth * std::f64::consts::TAU.sqrt())
        };
        let others = (5000.0 - 25.0 * gauss(1.0 / 50.0)) / 4975.0;
        let expected = ((25.0 * gauss(1.0 / 27.0) + 1.0) / 26.0).ln() - others.ln();
        let place = place(&space, 0, &choices(share));
        assert!((place[0] - share).abs() < 1e-12);
        let ratio = log_ratio(&mut densities, 0, &place);
        assert!((ratio - expected).abs() < 0.02, "{share}: {ratio}, not {expected}");
    }
}

/// Where candidates come from is the density of the good ones.
#[test]
fn candidates_are_as_frequent_as_their_density_says() {
    let resnet =
        "[[model]]\narch = \"resnet\"\ndepth = { choice = [11, 20] }\nwidth = { log_int = [4, 9] }";
    let spec = job(&format!("{CNN}{resnet}"), "batch_size = { int = [16, 64], step = 16 }");
    let space = Space::new(&spec);
    let combination = |model, batch_size: u32, depth: u32, width: u32| {
        let mut choices = Choices::from([("training.batch_size".to_owned(), json!(batch_size))]);
        if model == 1 {
            choices.insert("model[1].depth".into(), json!(depth));
            choices.insert("model[1].width".into(), json!(width));
        }
        choices
    };
    let history = [
        (1, combination(1, 32, 20, 5)),
        (0, combination(0, 64, 0, 0)),
        (1, combination(1, 16, 20, 9)),
    ];
    // Of 21 to 30 that have ended three are good.
    let bad: Vec<Observation<'_>> =
        history.iter().cycle().take(20).map(|(m, c)| observed(*m, c, ended(9.0))).collect();
    let good = history.iter().map(|(m, c)| observed(*m, c, ended(1.0)));
    let all: Vec<Observation<'_>> = good.chain(bad).collect();
    let mut densities = densities(&spec, &space, &all);
    let mut counts = std::collections::BTreeMap::<(u32, String), u32>::new();
    let draws = 40_000;
    for drawn in 0..draws {
        let mut candidate = densities.draw(Streams { seed: 3, index: 0, drawn });
        let trial = sample::trial(&spec, &mut candidate).unwrap();
        *counts
            .entry((trial.model, serde_json::to_string(&trial.choices).unwrap()))
            .or_default() += 1;
    }
    let (mut expected_sum, mut worst) = (0.0, 0.0_f64);
    let cnns = [16, 32, 48, 64].map(|size| (0, 1.0 / 8.0, combination(0, size, 0, 0)));
    let mut combinations = cnns.to_vec();
    for size in [16, 32, 48, 64] {
        for depth in [11, 20] {
            for width in 4..=9 {
                let width_share = (f64::from(width + 1) / f64::from(width)).ln() / 2.5_f64.ln();
                let prior = width_share / 16.0;
                combinations.push((1, prior, combination(1, size, depth, width)));
            }
        }
    }
    for (model, prior, choices) in combinations {
        let place = place(&space, model, &choices);
        let expected = densities.of_table(model)[0].log_at(&place).exp() * prior;
        let key = (model, serde_json::to_string(&choices).unwrap());
        let share = f64::from(counts.get(&key).copied().unwrap_or(0)) / f64::from(draws);
        worst = worst.max((share - expected).abs());
        expected_sum += expected;
    }
    assert!((expected_sum - 1.0).abs() < 1e-9, "the probabilities add up to {expected_sum}");
    assert!(worst < 0.006, "{worst}");
}

#[test]
fn who_trained_longer_is_better_and_then_who_has_a_better_value() {
    let choices = Choices::new();
    let of = |outcomes: &[Outcome], goal| {
        let all: Vec<Observation<'_>> =
            outcomes.iter().map(|outcome| observed(0, &choices, *outcome)).collect();
        let good = split::good(&all.iter().collect::<Vec<_>>(), goal);
        (0..good.len()).filter(|at| good[*at]).collect::<Vec<_>>()
    };
    let after = |epochs, value| Outcome::Ended { epochs, value };
    let mut outcomes = vec![after(1, 0.1), after(9, 0.5), after(9, 0.4), after(3, 0.2)];
    assert_eq!(of(&outcomes, Goal::Min), [2]);
    assert_eq!(of(&outcomes, Goal::Max), [1]);
    assert_eq!(of(&[after(1, 3.0), after(1, 3.0)], Goal::Min), [0], "of equals the first");
    // Two of 11 that have ended; running ones aren't counted, failed ones are.
    outcomes.extend([after(9, f64::NAN), after(27, f64::NEG_INFINITY), Outcome::Running]);
    assert_eq!(of(&outcomes, Goal::Min), [2]);
    outcomes.extend([Outcome::Failed; 5]);
    assert_eq!(of(&outcomes, Goal::Min), [1, 2]);
    outcomes.extend([Outcome::Failed; 100]);
    assert_eq!(of(&outcomes, Goal::Min), [0, 1, 2, 3], "a failure is never good");
    let many = vec![after(1, 0.0); 1000];
    assert_eq!(of(&many, Goal::Max), (0..25).collect::<Vec<_>>());
    assert!(of(&[], Goal::Min).is_empty() && of(&[Outcome::Running], Goal::Min).is_empty());
}

#[test]
fn a_place_leads_back_to_its_value() {
    let steps = |spread, low, high, step| Range { step, ..Range::new(spread, low, high) };
    for (range, values) in [
        (steps(Spread::Integer, 3.0, 9.0, None), vec![3.0, 4.0, 9.0]),
        (steps(Spread::Uniform, 0.1, 0.7, Some(0.1)), vec![0.1, 0.3, 0.7]),
        (steps(Spread::LogInteger, 1.0, 1000.0, None), vec![1.0, 2.0, 37.0, 1000.0]),
        (steps(Spread::LogUniform, 0.001, 0.1, Some(0.001)), vec![0.001, 0.035, 0.1]),
        (steps(Spread::LogInteger, 8.0, 120.0, Some(8.0)), vec![8.0, 16.0, 120.0]),
    ] {
        let axis = axis::Axis::of_range(range).unwrap();
        for value in values {
            let place = axis.place(&json!(value)).unwrap();
            assert_eq!(range.steps().unwrap().at(draw::floor(place)), value, "{range:?}");
            assert_eq!(axis.place_at(axis.point(place)), place, "{range:?} {value}");
        }
        let last = f64::from(range.steps().unwrap().count() - 1);
        assert_eq!(axis.place(&json!(-5)), Some(0.0));
        assert_eq!(axis.place(&json!(1e300)), Some(last));
        assert_eq!((axis.cell(0.0)[0], axis.cell(last)[1]), (0.0, 1.0), "{range:?}");
        assert_eq!(axis.place(&json!("3")), None);
    }
    let single = Range::new(Spread::LogUniform, 0.5, 0.5);
    assert_eq!(axis::Axis::of_range(single), None, "a single value is no dimension");
}

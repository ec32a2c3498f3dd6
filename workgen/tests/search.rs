//! Search spaces to trials: counts, order, bounds, and that the same seed gives the same trials.

#![expect(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

use proptest::prelude::*;
use sojourn_protocol::{
    jobfile,
    spec::{
        Architecture, Constraint, Dimension, JobSpec, OptimizerName,
        dimension::{Normal, Range, Spread},
    },
};
use sojourn_workgen::{SearchError, search::search, trials};
use std::collections::BTreeSet;

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

/// The learning rates of a search over `lr` alone.
fn rates(lr: &str, search: &str) -> Vec<f64> {
    let line = format!("optimizer = {{ name = \"sgd\", lr = {lr} }}");
    let all = trials(&job(CNN, &line, search)).unwrap();
    all.iter().map(|trial| trial.config.training.optimizer.lr).collect()
}

/// The batch sizes of one over `batch_size` alone.
fn sizes(size: &str, search: &str) -> Vec<u32> {
    let all = trials(&job(CNN, &format!("batch_size = {size}"), search)).unwrap();
    all.iter().map(|trial| trial.config.training.batch_size).collect()
}

const GRID: &str = "method = \"grid\"";
const MANY: &str = "combinations = \"all\"\nmethod = \"random\"\ntrials = 8000";

/// The ratio of numbers for which this holds.
#[expect(clippy::cast_precision_loss, reason = "a few thousand")]
fn ratio<T: Copy>(all: &[T], holds: impl Fn(T) -> bool) -> f64 {
    all.iter().filter(|value| holds(**value)).count() as f64 / all.len() as f64
}

#[test]
fn a_grid_takes_every_step_as_a_job_file_would_write_it() {
    let all = rates("{ uniform = [0.1, 0.7], step = 0.1 }", GRID);
    assert_eq!(all, [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7], "the nearest to each decimal number");
    let all = rates("{ log_uniform = [1e-4, 3.5e-4], step = 1e-4 }", GRID);
    assert_eq!(all, [1e-4, 2e-4, 3e-4], "an end that no step reaches is no value");
    assert_eq!(rates("{ uniform = [1000000.1, 1000000.4], step = 0.1 }", GRID).len(), 4);
    assert_eq!(sizes("{ int = [16, 64], step = 24 }", GRID), [16, 40, 64]);
    assert_eq!(sizes("{ log_int = [3, 6] }", GRID), [3, 4, 5, 6]);
    assert_eq!(sizes("{ log_int = [16, 1024], points = 4 }", GRID), [16, 64, 256, 1024]);
    assert_eq!(sizes("{ log_int = [1, 4], points = 9 }", GRID), [1, 2, 3, 4], "none twice");
}

#[test]
fn each_step_is_as_likely() {
    let all = rates("{ uniform = [0.1, 0.5], step = 0.1 }", MANY);
    for value in [0.1, 0.2, 0.3, 0.4, 0.5] {
        let ratio = ratio(&all, |rate| rate == value);
        assert!((ratio - 0.2).abs() < 0.02, "{value}: {ratio}");
    }
    let all = sizes("{ int = [2, 8], step = 3 }", MANY);
    for value in [2, 5, 8] {
        let ratio = ratio(&all, |size| size == value);
        assert!((ratio - 1.0 / 3.0).abs() < 0.02, "{value}: {ratio}");
    }
}

#[test]
fn a_logarithm_is_the_natural_one_of_the_ends() {
    let all = rates("{ log_uniform = [1e-4, 1.0] }", MANY);
    for (below, expected) in [(1e-3, 0.25), (1e-2, 0.5), (1e-1, 0.75)] {
        let ratio = ratio(&all, |rate| rate < below);
        assert!((ratio - expected).abs() < 0.02, "{below}: {ratio}");
    }
    // A log-uniform number from 1 up to, but not including, 16, without its fraction.
    let all = sizes("{ log_int = [1, 15] }", MANY);
    for (low, high) in [(1, 2), (2, 4), (4, 8), (8, 16)] {
        let ratio = ratio(&all, |size| low <= size && size < high);
        assert!((ratio - 0.25).abs() < 0.02, "{low} to {high}: {ratio}");
    }
    let all = sizes("{ log_int = [8, 120], step = 8 }", MANY);
    assert!(all.iter().all(|size| size % 8 == 0 && (8..=120).contains(size)));
    let ratio = ratio(&all, |size| size < 32);
    assert!((ratio - 0.5).abs() < 0.02, "{ratio}");
}

#[test]
fn normal_numbers_have_their_mean_and_deviation() {
    let all = rates("{ normal = [5, 0.5], truncate = [1, 9] }", MANY);
    for (below, expected) in [(4.0, 0.0228), (4.5, 0.1587), (5.0, 0.5), (5.5, 0.8413)] {
        let ratio = ratio(&all, |rate| rate < below);
        assert!((ratio - expected).abs() < 0.02, "{below}: {ratio}");
    }
    // Cut off at one deviation below the mean and half a one above it.
    let all = rates("{ normal = [5, 1], truncate = [4, 5.5] }", MANY);
    assert!(all.iter().all(|rate| (4.0..=5.5).contains(rate)));
    let ratio = ratio(&all, |rate| rate < 5.0);
    assert!((ratio - 0.3413 / (0.3413 + 0.1915)).abs() < 0.02, "{ratio}");
    let mut spec = job(CNN, "", MANY);
    let any = Normal { mean: -2.0, deviation: 1.0, truncate: None };
    spec.training.optimizer.weight_decay = Dimension::Normal(any);
    let all: Vec<f64> = trials(&spec)
        .unwrap()
        .iter()
        .map(|trial| trial.config.training.optimizer.weight_decay)
        .collect();
    let ratio = self::ratio(&all, |number| number < -3.0);
    assert!((ratio - 0.1587).abs() < 0.02, "{ratio}");
}

#[test]
fn normal_numbers_that_can_not_be_drawn_are_refused_whoever_sends_them() {
    let lr = || "training.optimizer.lr".to_owned();
    let with = |normal, search| {
        let mut spec = job(CNN, "", search);
        spec.training.optimizer.lr = Dimension::Normal(normal);
        trials(&spec).unwrap_err()
    };
    let good = Normal { mean: 0.1, deviation: 0.1, truncate: None };
    assert_eq!(with(good, GRID), SearchError::NormalInGrid { dimension: lr() });
    for bad in [
        Normal { mean: f64::NAN, ..good },
        Normal { deviation: 0.0, ..good },
        Normal { deviation: f64::MAX, ..good },
        Normal { truncate: Some([0.2, 0.3]), ..good },
        Normal { truncate: Some([0.1, 0.1]), ..good },
        Normal { truncate: Some([0.1, f64::INFINITY]), ..good },
        Normal { truncate: Some([0.1, 0.1 + 1e-9]), ..good },
    ] {
        for search in [MANY, "method = \"sobol\"\ntrials = 3"] {
            assert_eq!(with(bad, search), SearchError::BadNormal { dimension: lr() }, "{bad:?}");
        }
    }
}

#[test]
fn a_dimension_of_one_architecture_is_none_of_the_others() {
    let resnet = "[[model]]\narch = \"resnet\"\ndepth = 11\nwidth = { log_int = [4, 16] }";
    for search in [GRID, "method = \"random\"\ntrials = 40", "method = \"sobol\"\ntrials = 40"] {
        let mut seen = [0, 0];
        for trial in trials(&job(&format!("{CNN}\n{resnet}"), "", search)).unwrap() {
            let of_resnet = matches!(trial.config.model, Architecture::Resnet(_));
            assert_eq!(trial.choices.contains_key("model[1].width"), of_resnet);
            seen[usize::from(of_resnet)] += 1;
        }
        assert!(seen[0] > 0 && seen[1] > 10, "{search}: {seen:?}");
    }
}

#[test]
fn values_of_every_form_are_pinned() {
    let training = "batch_size = { log_int = [8, 512], step = 8 }\noptimizer = { name = \"sgd\", lr = { log_uniform = [0.001, 0.1], step = 0.001 }, momentum = { normal = [0.9, 0.05], truncate = [0, 0.99] }, weight_decay = { uniform = [0, 0.1], step = 0.01 } }";
    let spec = job(CNN, training, "method = \"random\"\ntrials = 2");
    let all: Vec<String> =
        trials(&spec).unwrap().iter().map(|t| serde_json::to_string(&t.choices).unwrap()).collect();
    assert_eq!(all, PINNED_FORMS);
}

const PINNED_FORMS: [&str; 2] = [
    r#"{"training.batch_size":24,"training.optimizer.lr":0.086,"training.optimizer.momentum":0.8236459719330429,"training.optimizer.weight_decay":0.08}"#,
    r#"{"training.batch_size":8,"training.optimizer.lr":0.005,"training.optimizer.momentum":0.9059162100166682,"training.optimizer.weight_decay":0.0}"#,
];

/// The numbers of dimensions in `[0, 1)` that a quasi-random search of so many trials takes.
fn points(trials: u32, seed: u64) -> Vec<[f64; 2]> {
    let training = "optimizer = { name = \"sgd\", lr = { uniform = [1, 2] }, weight_decay = { uniform = [0, 1] } }";
    let mut spec = job(CNN, training, &format!("method = \"sobol\"\ntrials = {trials}"));
    spec.seed = seed;
    let all = sojourn_workgen::trials(&spec).unwrap();
    let optimizers = all.iter().map(|trial| trial.config.training.optimizer);
    optimizers.map(|optimizer| [optimizer.lr - 1.0, optimizer.weight_decay]).collect()
}

/// How many parts of `0..1` a number is in, of so many.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "numbers from 0 on, below 1"
)]
fn part(number: f64, parts: u32) -> usize {
    (number * f64::from(parts)) as usize
}

#[test]
fn quasi_random_points_lie_evenly() {
    for seed in 0..5 {
        let all = points(64, seed);
        for (across, down) in [(64, 1), (32, 2), (16, 4), (8, 8), (4, 16), (2, 32), (1, 64)] {
            let mut hit = vec![0; 64];
            for [x, y] in &all {
                hit[part(*x, across) * usize::try_from(down).unwrap() + part(*y, down)] += 1;
            }
            assert_eq!(hit, vec![1; 64], "seed {seed}, {across} x {down} boxes");
        }
        assert_eq!(points(5, seed)[..], all[..5], "trials that are added leave the others");
    }
    assert_ne!(points(1, 0), points(1, 1));
}

#[test]
fn quasi_random_values_follow_from_the_name_of_the_dimension() {
    let search = "method = \"sobol\"\ntrials = 8";
    let with = |model: &str| {
        let training = "optimizer = { name = \"sgd\", lr = { log_uniform = [1e-4, 1.0] } }\nbatch_size = { choice = [16, 32] }";
        trials(&job(model, training, search)).unwrap()
    };
    let taken = |all: &[sojourn_workgen::Trial]| {
        let training = all.iter().map(|trial| trial.config.training);
        training.map(|training| (training.optimizer.lr, training.batch_size)).collect::<Vec<_>>()
    };
    let plain = with(CNN);
    assert_eq!(taken(&plain), taken(&with(MLP)), "a model's dimensions leave those of training");
    // Of two tables each is taken by half of the trials, and the dimensions of training lie evenly over all of them.
    let both = with(&format!("{MLP}\n{CNN}"));
    assert_eq!(both.iter().filter(|trial| trial.model == 1).count(), 4);
    let octiles = |all: &[sojourn_workgen::Trial]| {
        let lrs = all.iter().map(|trial| trial.config.training.optimizer.lr);
        lrs.map(|lr| part((lr * 1e4).ln() / 1e4_f64.ln(), 8)).collect::<BTreeSet<_>>().len()
    };
    assert_eq!((octiles(&plain), octiles(&both)), (8, 8));
    for batch_size in [16, 32] {
        let of = |trial: &&sojourn_workgen::Trial| trial.config.training.batch_size == batch_size;
        assert_eq!(both.iter().filter(of).count(), 4);
    }
}

#[test]
fn quasi_random_searches_have_all_forms_and_are_pinned() {
    let training = "batch_size = { log_int = [8, 512], step = 8 }\noptimizer = { name = { choice = [\"sgd\", \"adam\"] }, lr = { log_uniform = [1e-4, 1.0] }, momentum = { normal = [0.9, 0.05], truncate = [0, 0.99] }, weight_decay = { uniform = [0, 0.1], step = 0.01 } }\nschedule = { name = \"cosine\", warmup = { int = [0, 100] } }";
    let spec = job(
        &format!("{MLP}\n{CNN}"),
        training,
        "combinations = \"all\"\nmethod = \"sobol\"\ntrials = 3",
    );
    let all: Vec<String> =
        trials(&spec).unwrap().iter().map(|t| serde_json::to_string(&t.choices).unwrap()).collect();
    assert_eq!(all, PINNED_SOBOL);
}

const PINNED_SOBOL: [&str; 3] = [
    r#"{"model[0].hidden":[],"training.batch_size":112,"training.optimizer.lr":0.13370039968934408,"training.optimizer.momentum":0.936573542282046,"training.optimizer.name":"sgd","training.optimizer.weight_decay":0.08,"training.schedule.warmup":65}"#,
    r#"{"training.batch_size":8,"training.optimizer.lr":0.0013370039968934426,"training.optimizer.momentum":0.8717033048243871,"training.optimizer.name":"adam","training.optimizer.weight_decay":0.03,"training.schedule.warmup":15}"#,
    r#"{"training.batch_size":320,"training.optimizer.lr":0.013370039968934416,"training.optimizer.momentum":0.8150724651462264,"training.optimizer.name":"sgd","training.optimizer.weight_decay":0.0,"training.schedule.warmup":90}"#,
];

#[test]
fn a_quasi_random_search_has_at_most_as_many_dimensions_as_the_sequence() {
    let own = |keys: usize, search: &str| {
        let keys: Vec<String> =
            (0..keys).map(|key| format!("k{key} = {{ uniform = [0, 1] }}")).collect();
        let model = format!("[[model]]\narch = \"graph\"\nentry = \"m.py:M\"\n{}", keys.join("\n"));
        let lr = "optimizer = { name = \"sgd\", lr = { uniform = [0.1, 1.0] } }";
        trials(&job(&model, lr, search)).map(|all| all.len())
    };
    let sobol = "method = \"sobol\"\ntrials = 8";
    assert_eq!(own(63, sobol), Ok(8));
    let refused = own(64, sobol);
    assert_eq!(refused, Err(SearchError::TooManyDimensions));
    assert_eq!(
        refused.unwrap_err().to_string(),
        "Sobol's sequence has 64 dimensions here, and the search has more; `random` takes any number"
    );
    assert_eq!(own(64, "method = \"random\"\ntrials = 8"), Ok(8));
}

const SOBOL: &str = "method = \"sobol\"\ntrials = 64";

#[test]
fn a_grid_leaves_out_what_breaks_a_constraint() {
    let training = "batch_size = { choice = [16, 64] }\noptimizer = { name = { choice = [\"sgd\", \"adam\"] }, lr = { choice = [0.5, 0.125, 1] } }";
    let with = |constraints: &str| {
        search(&job(CNN, training, &format!("{GRID}\nconstraints = [{constraints}]"))).unwrap()
    };
    let all = with("");
    assert_eq!((all.trials.len(), all.left_out), (12, 0));
    let some = with("\"lr * batch_size <= 16\", \"optimizer == 'sgd' or lr < 1\"");
    let expected = all.trials.iter().filter(|trial| {
        let training = trial.config.training;
        let optimizer = training.optimizer;
        optimizer.lr * f64::from(training.batch_size) <= 16.0
            && (optimizer.name != OptimizerName::Adam || optimizer.lr < 1.0)
    });
    let expected: Vec<_> = expected.cloned().collect();
    assert_eq!((some.trials.len(), some.left_out), (7, 5));
    assert_eq!(some.trials, expected, "the others stay as they were, in their order");
}

#[test]
fn a_random_trial_is_drawn_again_until_it_satisfies_the_constraints() {
    let training = "optimizer = { name = \"sgd\", lr = { log_uniform = [1e-4, 1.0] }, momentum = { uniform = [0.0, 0.9] } }";
    let with = |constraint: &str| {
        let lines = format!("method = \"random\"\ntrials = 200\nconstraints = [\"{constraint}\"]");
        search(&job(MLP, training, &lines)).unwrap()
    };
    let (all, some) = (with("lr > 0"), with("lr < 0.1 * (1 - momentum)"));
    let holds = |trial: &sojourn_workgen::Trial| {
        let optimizer = trial.config.training.optimizer;
        optimizer.lr < 0.1 * (1.0 - optimizer.momentum)
    };
    assert!(some.trials.iter().all(holds) && some.left_out > 50, "{}", some.left_out);
    assert_eq!((all.trials.len(), all.left_out, some.trials.len()), (200, 0, 200));
    let kept = all.trials.iter().zip(&some.trials).filter(|(before, _)| holds(before));
    let mut count = 0;
    for (before, after) in kept {
        assert_eq!(before, after, "a trial that satisfies it stays");
        count += 1;
    }
    assert!((50..200).contains(&count), "{count}");
    let again: BTreeSet<String> =
        some.trials.iter().map(|trial| serde_json::to_string(&trial.choices).unwrap()).collect();
    assert_eq!(again.len(), 200, "no trial twice");
    let choices = serde_json::to_string(&with("lr < 0.001").trials[0].choices).unwrap();
    assert_eq!(choices, PINNED_AGAIN);
}

const PINNED_AGAIN: &str = r#"{"model[0].hidden":[128,64],"training.optimizer.lr":0.000341348829424716,"training.optimizer.momentum":0.7187718914775251}"#;

#[test]
fn a_quasi_random_search_skips_points_that_break_a_constraint() {
    let training = "optimizer = { name = \"sgd\", lr = { uniform = [0.5, 1.5] } }";
    let with = |lines: &str| search(&job(CNN, training, lines)).unwrap();
    let all = with(SOBOL);
    let some = with("method = \"sobol\"\ntrials = 32\nconstraints = [\"lr < 1\"]");
    let lr = |trial: &sojourn_workgen::Trial| trial.config.training.optimizer.lr;
    let expected: Vec<f64> = all.trials.iter().map(lr).filter(|lr| *lr < 1.0).collect();
    assert_eq!(some.trials.iter().map(lr).collect::<Vec<_>>(), expected);
    assert!((31..=32).contains(&some.left_out), "{}", some.left_out);
}

#[test]
fn a_constraint_is_for_tables_that_have_its_keys() {
    let resnet = "[[model]]\narch = \"resnet\"\ndepth = 11\nwidth = { int = [4, 7] }";
    for lines in [GRID, "method = \"random\"\ntrials = 60", SOBOL] {
        let lines = format!("{lines}\nconstraints = [\"width % 2 == 0\", \"width < 6\"]");
        let all = trials(&job(&format!("{CNN}\n{resnet}"), "", &lines)).unwrap();
        let tables: BTreeSet<u32> = all.iter().map(|trial| trial.model).collect();
        assert_eq!(tables.len(), 2);
        for trial in &all {
            if let Architecture::Resnet(resnet) = trial.config.model {
                assert_eq!(resnet.width, 4);
            }
        }
    }
}

#[test]
fn constraints_that_leave_nothing_are_named() {
    let (many, never) = ("lr < 0.9".to_owned(), "lr < 0.1".to_owned());
    let with = |lines: &str| {
        let training = "optimizer = { name = \"sgd\", lr = { uniform = [0.5, 1.0], step = 0.1 } }";
        let lines = format!("{lines}\nconstraints = [\"{many}\", \"{never}\"]");
        trials(&job(CNN, training, &lines)).unwrap_err()
    };
    assert_eq!(with(GRID), SearchError::NothingLeft { constraint: never.clone() });
    for lines in ["method = \"random\"\ntrials = 2", "method = \"sobol\"\ntrials = 2"] {
        let refused = with(lines);
        assert_eq!(refused, SearchError::TooRare { trial: 0, constraint: never.clone() });
        assert_eq!(
            refused.to_string(),
            "none of 1000 combinations drawn for trial 0 satisfies the constraints; `lr < 0.1` leaves out most of them"
        );
    }
    let mut spec = job(CNN, "", GRID);
    for (text, told) in [
        ("width < 3", "constraint `width < 3` names `width`, which is no key of this job's trials"),
        ("lr / clip_norm < 3", "constraint `lr / clip_norm < 3` divides by 0"),
    ] {
        spec.search.constraints = vec![Constraint::parse(text).unwrap()];
        assert_eq!(trials(&spec).unwrap_err().to_string(), told);
    }
    // A grid isn't tried without end.
    let all: Vec<f64> = (1..2000).map(f64::from).collect();
    spec.training.optimizer.lr = Dimension::Choice(all.clone());
    spec.training.optimizer.weight_decay = Dimension::Choice(all);
    spec.search.constraints = vec![Constraint::parse("lr < 0").unwrap()];
    let refused = trials(&spec).unwrap_err();
    assert_eq!(refused, SearchError::TooManyCombinations { constraint: "lr < 0".into() });
}

#[test]
fn a_space_without_values_or_with_too_many_is_refused() {
    let mut spec = job(MLP, "", "method = \"grid\"");
    spec.training.optimizer.lr = Dimension::Choice(Vec::new());
    assert_eq!(
        trials(&spec),
        Err(SearchError::Empty { dimension: "training.optimizer.lr".into() })
    );
    let all: Vec<f64> = (0..300).map(f64::from).collect();
    spec.training.optimizer.lr = Dimension::Choice(all.clone());
    spec.training.optimizer.weight_decay = Dimension::Choice(all);
    assert_eq!(trials(&spec), Err(SearchError::TooMany));
}

#[test]
fn a_range_that_is_none_is_refused_whoever_sends_it() {
    for (spread, low, high) in [
        (Spread::Uniform, 2.0, 1.0),
        (Spread::Integer, 9.0, 3.0),
        (Spread::LogUniform, 0.0, 1.0),
        (Spread::LogUniform, -1.0, 1.0),
        (Spread::LogInteger, 0.0, 4.0),
        (Spread::Uniform, f64::NAN, 1.0),
        (Spread::Uniform, 0.0, f64::INFINITY),
    ] {
        for method in [GRID, "method = \"random\"\ntrials = 3", "method = \"sobol\"\ntrials = 3"] {
            let mut spec = job(MLP, "", method);
            let range = Range { points: Some(3), ..Range::new(spread, low, high) };
            spec.training.optimizer.lr = Dimension::Range(range);
            let refused = trials(&spec).unwrap_err();
            let bad = SearchError::BadRange { dimension: "training.optimizer.lr".into() };
            assert_eq!(refused, bad);
            for step in [0.0, -1.0, f64::NAN, 1e-300] {
                let range = Range { step: Some(step), ..Range::new(Spread::Uniform, 0.0, 1.0) };
                spec.training.optimizer.lr = Dimension::Range(range);
                assert_eq!(trials(&spec).unwrap_err(), bad, "a step of {step}");
            }
        }
    }
}

#[test]
fn each_configuration_is_trained_with_each_seed() {
    for search in [
        "method = \"grid\"",
        "method = \"random\"\ntrials = 4",
        "combinations = \"all\"\nmethod = \"random\"\ntrials = 4",
    ] {
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
    let mut spec = job(MLP, "", "combinations = \"all\"\nmethod = \"random\"\ntrials = 65536");
    spec.seeds = vec![7, 1];
    assert_eq!(trials(&spec), Err(SearchError::TooMany));
}

proptest! {
    #[test]
    fn ranges_are_kept(low in 1e-6f64..1.0, width in 0.0f64..10.0, seed in any::<u64>()) {
        let mut spec = job(MLP, "optimizer = { name = \"sgd\", lr = { uniform = [0.1, 1.0] } }", "method = \"random\"\ntrials = 20");
        spec.seed = seed;
        let range = Range::new(Spread::LogUniform, low, low + width);
        spec.training.optimizer.lr = Dimension::Range(range);
        for trial in trials(&spec).unwrap() {
            let lr = trial.config.training.optimizer.lr;
            prop_assert!(lr >= low && lr <= low + width);
        }
    }
}

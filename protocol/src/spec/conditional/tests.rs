//! Conditions that are met or not, chains of them, and those that are refused.

use super::{super::dimension::FirstValues, *};
use crate::{jobfile, spec::JobSpec};
use serde_json::{Value, json};

/// A job of two tables, whose dimensions may hang on each other.
fn job(training: &str) -> JobSpec {
    let text = format!(
        "name = \"t\"\n[data]\ntrain = \"t.csv\"\nlabel = \"y\"\nshape = [1, 8, 8]\n[[model]]\narch = \"mlp\"\nhidden = {{ choice = [[64], [32, 8], []] }}\n\
        [[model]]\narch = \"resnet\"\ndepth = 20\nwidth = 8\n[training]\nepochs = 3\n{training}\n[search]\nmethod = \"random\"\ntrials = 4\n"
    );
    jobfile::parse_dimensions(&text).unwrap()
}

/// Takes the values with these numbers, by the ends of dimensions' names; of others the first.
struct Numbered<'a> {
    numbers: &'a [(&'a str, usize)],
    chosen: Vec<(String, Value)>,
}

impl super::super::dimension::Chooser for Numbered<'_> {
    fn index(&mut self, name: &str, count: usize) -> usize {
        let found = self.numbers.iter().find(|(end, _)| name.ends_with(end));
        found.map_or(0, |(_, number)| *number).min(count - 1)
    }
    fn number(&mut self, _: &str, range: &super::super::dimension::Range) -> f64 {
        range.low
    }
    fn normal(&mut self, _: &str, normal: &super::super::dimension::Normal) -> f64 {
        normal.mean
    }
    fn takes_unused(&self) -> bool {
        false
    }
    fn chosen(&mut self, name: &str, value: Value) {
        self.chosen.push((name.to_owned(), value));
    }
}

/// The configuration with these values, and what was chosen.
fn closed(spec: &JobSpec, table: usize, numbers: &[(&str, usize)]) -> (TrialConfig, Vec<String>) {
    let mut chooser = Numbered { numbers, chosen: Vec::new() };
    let config = spec.close(table, &mut chooser).unwrap();
    (config, chooser.chosen.into_iter().map(|(name, value)| format!("{name}={value}")).collect())
}

const SGD: &str = "batch_size = { choice = [8, 16] }\noptimizer = { name = { choice = [\"sgd\", \"adam\"] }, weight_decay = { choice = [0.25, 0.5], when = { batch_size = 16, hidden = [32, 8] }, otherwise = 0.125 } }";

#[test]
fn a_trial_that_does_not_meet_a_condition_has_the_other_value_and_no_choice() {
    let spec = job(SGD);
    let decay = |table: usize, numbers: &[(&str, usize)]| {
        let (config, chosen) = closed(&spec, table, numbers);
        (config.training.optimizer.weight_decay, chosen.len())
    };
    assert_eq!(decay(0, &[("batch_size", 1), ("hidden", 1), ("weight_decay", 1)]), (0.5, 4));
    assert_eq!(decay(0, &[("batch_size", 1), ("hidden", 0), ("weight_decay", 1)]), (0.125, 3));
    assert_eq!(decay(0, &[("batch_size", 0), ("hidden", 1), ("weight_decay", 1)]), (0.125, 3));
    assert_eq!(decay(1, &[("batch_size", 1), ("weight_decay", 1)]), (0.125, 2), "no such setting");
}

#[test]
fn conditions_on_conditional_settings_are_decided_wherever_they_stand() {
    // In the order of the space `sampling` is asked last, and `batch_size` first.
    let spec = job(
        "batch_size = { choice = [8, 16], when = { label_smoothing = 0.25 }, otherwise = 4 }\nlabel_smoothing = { choice = [0.25, 0.5], when = { sampling = \"balanced\" } }\nsampling = { choice = [\"shuffled\", \"balanced\"] }",
    );
    for (numbers, batch_size, chosen) in [
        (&[("sampling", 0)][..], 4, 1),
        (&[("sampling", 1)], 8, 3),
        (&[("sampling", 1), ("batch_size", 1)], 16, 3),
        (&[("sampling", 1), ("label_smoothing", 1)], 4, 2),
    ] {
        let (config, told) = closed(&spec, 1, numbers);
        assert_eq!((config.training.batch_size, told.len()), (batch_size, chosen), "{told:?}");
    }
}

#[test]
fn settings_of_a_conditional_optimizer_are_those_that_it_uses() {
    let spec = job(
        "batch_size = { choice = [8, 16] }\noptimizer = { name = { choice = [\"sgd\", \"adam\"], when = { batch_size = 16 }, otherwise = \"adamw\" }, momentum = { choice = [0.5, 0.25] }, beta1 = { choice = [0.5, 0.75] } }",
    );
    for (numbers, told) in [
        (&[("batch_size", 0)][..], ["batch_size=8", "optimizer.beta1=0.5"].as_slice()),
        (
            &[("batch_size", 1)],
            &["batch_size=16", "optimizer.name=\"sgd\"", "optimizer.momentum=0.5"],
        ),
        (
            &[("batch_size", 1), ("optimizer.name", 1)],
            &["batch_size=16", "optimizer.name=\"adam\"", "optimizer.beta1=0.5"],
        ),
    ] {
        let told: Vec<String> = told.iter().map(|end| format!("training.{end}")).collect();
        let (_, chosen) = closed(&spec, 1, numbers);
        assert_eq!(chosen, told);
    }
}

#[test]
fn a_survey_of_a_space_has_all_dimensions_once() {
    let mut first = FirstValues::default();
    job(SGD).close(0, &mut first).unwrap();
    let names: Vec<&str> = first.names.iter().map(String::as_str).collect();
    let all = [
        "model[0].hidden",
        "training.batch_size",
        "training.optimizer.name",
        "training.optimizer.weight_decay",
    ];
    assert_eq!(names, all);
    let deciding = job(SGD).deciding_dimensions(0, &|name| name.ends_with("weight_decay"));
    assert_eq!(deciding.iter().collect::<Vec<_>>(), ["model[0].hidden", "training.batch_size"]);
}

/// The fault of a condition of `label_smoothing`.
fn fault(when: &str, training: &str) -> Option<String> {
    let line = format!("label_smoothing = {{ choice = [0.25, 0.5], when = {{ {when} }} }}");
    match job(&format!("{line}\n{training}")).check_space().err()? {
        SpaceFault::Condition { why, .. } => Some(why),
        SpaceFault::Formula { .. } => panic!("{training}"),
    }
}

#[test]
fn conditions_of_settings_and_values_that_there_are_stand() {
    for when in [
        "hidden = [32, 8]",
        "hidden = [[32, 8], [64]]",
        "hidden = []",
        "hidden = [[]]",
        "\"model.hidden\" = [64]",
        "epochs = 3",
        "arch = \"resnet\"",
        "arch = [\"mlp\", \"resnet\"]",
        "schedule = \"constant\"",
        "flip = false",
        "crop = 0",
        "precision = \"f32\"",
        "width = 8",
        "batch_size = 12",
        "batch_size = [8.0, 12]",
        "lr = 0.3",
    ] {
        let training = "batch_size = { int = [8, 16], step = 4 }\noptimizer = { name = \"sgd\", lr = { uniform = [0.1, 0.5], step = 0.1 } }";
        assert_eq!(fault(when, training), None, "{when}");
    }
}

#[test]
fn conditions_that_nothing_meets_are_refused() {
    let training = "batch_size = { int = [8, 16], step = 4 }\noptimizer = { name = { choice = [\"sgd\", \"adam\"] }, lr = { uniform = [0.1, 0.5] } }";
    for (when, told) in [
        ("optimiser = \"sgd\"", "is no setting of this job's trials; did you mean `optimizer`?"),
        ("hidden = [32, 9]", "is `32` in no trial; it may be `[32, 8]`, `[64]`, `[]`"),
        ("hidden = [[64], [8]]", "is `[8]` in no trial; it may be `[32, 8]`, `[64]`, `[]`"),
        ("optimizer = \"adamw\"", "is `\"adamw\"` in no trial; it may be `\"adam\"`, `\"sgd\"`"),
        ("optimizer = []", "has no value; one, or a list of them, is wanted"),
        ("batch_size = 10", "is `10` in no trial"),
        ("batch_size = [8, 20]", "is `20` in no trial"),
        ("batch_size = \"8\"", "is `\"8\"` in no trial"),
        ("epochs = 4", "is `4` in no trial; it may be `3`"),
        ("label_smoothing = 0.25", "is the dimension itself; a condition is of other settings"),
        (
            "lr = 0.2",
            "may be any number: a condition is of settings that have whole numbers, steps, or values in a list",
        ),
        (
            "name = \"sgd\"",
            "names `name`, which two keys are called; write `training.optimizer.name` or `training.schedule.name`",
        ),
    ] {
        assert_eq!(fault(when, training).as_deref(), Some(told), "{when}");
    }
}

#[test]
fn conditions_in_circles_are_refused_and_have_no_trial() {
    let circle = "optimizer = { name = \"sgd\", lr = { choice = [0.1, 0.2], when = { label_smoothing = 0.25 } } }";
    let told = "hangs on `training.label_smoothing` itself, by way of `training.optimizer.lr`";
    assert_eq!(fault("lr = 0.1", circle).as_deref(), Some(told));
    let spec =
        job(&format!("label_smoothing = {{ choice = [0.25], when = {{ lr = 0.1 }} }}\n{circle}"));
    let mut chooser = Numbered { numbers: &[], chosen: Vec::new() };
    assert_eq!(spec.close(0, &mut chooser), None);
    // Whether momentum is a setting hangs on the optimiser.
    let training = "optimizer = { name = { choice = [\"sgd\"], when = { momentum = 0.5 }, otherwise = \"adam\" }, momentum = { choice = [0.5, 0.25] } }";
    let why = job(training).check_space().unwrap_err().to_string();
    let told = "`when` of `training.optimizer.name`: `momentum` hangs on `training.optimizer.name` itself, by way of `training.optimizer.momentum`";
    assert_eq!(why, told);
    assert_eq!(job(training).close(0, &mut chooser), None);
}

#[test]
fn a_conditional_dimension_survives_the_wire() {
    let training = job(SGD).training;
    let json = serde_json::to_value(&training).unwrap();
    assert_eq!(
        json["optimizer"]["weight_decay"],
        json!({ "conditional": {
            "dimension": { "choice": [0.25, 0.5] },
            "when": { "batch_size": [16], "hidden": [32, 8] },
            "otherwise": 0.125,
        } })
    );
    let text = json.to_string();
    assert_eq!(serde_json::from_str::<crate::spec::TrainingSpace>(&text).unwrap(), training);
}

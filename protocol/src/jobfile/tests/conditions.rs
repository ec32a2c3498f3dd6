//! `when` of dimensions: what it means, and what is said of conditions that can't be.

use super::*;
use crate::{
    space,
    spec::{
        CombinationRule, Setting,
        dimension::{Condition, Conditional},
    },
};

/// `SMALL` with these lines in `[training]`.
fn with(training: &str) -> String {
    SMALL.replace("epochs = 2\n", &format!("epochs = 2\n{training}\n"))
}

const MOMENTUM: &str = "optimizer = { name = { choice = [\"sgd\", \"adam\"] }, momentum = { choice = [0.5, 0.9], when = { optimizer.name = \"sgd\" } } }";

#[test]
fn a_dimension_with_a_condition_is_its_default_elsewhere() {
    let job = parse(&with(MOMENTUM)).unwrap();
    let sgd = Setting::Text("sgd".into());
    let expected = Conditional {
        dimension: Dimension::Choice(vec![0.5, 0.9]),
        when: Condition([("optimizer.name".to_owned(), vec![sgd])].into()),
        otherwise: 0.0,
    };
    assert_eq!(job.training.optimizer.momentum, Dimension::Conditional(Box::new(expected)));
    let otherwise = with(&MOMENTUM.replace("\"sgd\" } }", "\"sgd\" }, otherwise = 0.25 }"));
    let job = parse(&otherwise).unwrap();
    assert_eq!(job.training.optimizer.momentum.values(), [&0.5, &0.9, &0.25]);
    assert_eq!(job.search.combinations, CombinationRule::Distinct);
}

#[test]
fn a_dimension_with_a_condition_is_written_as_a_job_file_has_it() {
    let job = parse(&with(MOMENTUM)).unwrap();
    let json = space::as_json(&job.models, &job.training);
    let at = "/training/optimizer/momentum";
    assert!(space::places(&json).iter().any(|place| place == at));
    let words = space::in_words(json.pointer(at).unwrap());
    let told = "{ choice = [0.5,0.9], when = { \"optimizer.name\" = [\"sgd\"] }, otherwise = 0.0 }";
    assert_eq!(words, told);
    let again = with(&format!(
        "optimizer = {{ name = {{ choice = [\"sgd\", \"adam\"] }}, momentum = {words} }}"
    ));
    assert_eq!(parse(&again).unwrap().training, job.training);
}

#[test]
fn conditions_that_can_not_be_are_refused_at_their_place() {
    for (training, told) in [
        (
            MOMENTUM.replace("\"sgd\" } }", "\"sdg\" } }"),
            "10: `training.optimizer.momentum.when.optimizer.name` is `\"sdg\"` in no trial; it may be `\"adam\"`, `\"sgd\"`",
        ),
        (
            "batch_size = { choice = [8, 16], when = { hiden = [8] }, otherwise = 4 }".to_owned(),
            "10: `training.batch_size.when.hiden` is no setting of this job's trials; did you mean `hidden`?",
        ),
        (
            "batch_size = { choice = [8, 16], when = \"sgd\" }".to_owned(),
            "10: `training.batch_size.when` is a string (`\"sgd\"`); a table of settings with their values is wanted, e.g. `{ optimizer = \"sgd\" }`",
        ),
        (
            "batch_size = { choice = [8, 16], when = {} }".to_owned(),
            "10: `training.batch_size.when` is empty; a setting with its values is wanted",
        ),
        (
            "batch_size = { choice = [8, 16], otherwise = 4 }".to_owned(),
            "10: `training.batch_size.otherwise` goes with `when`: the value of trials that don't meet it",
        ),
        (
            "optimizer = { name = { choice = [\"sgd\", \"adam\"], when = { batch_size = 32 } } }"
                .to_owned(),
            "10: `training.optimizer.name.otherwise` is missing: the value of trials that don't meet `when`, since the key has no default",
        ),
        (
            "batch_size = { choice = [8, 16], when = { epochs = 2 }, otherwise = 0 }".to_owned(),
            "10: `training.batch_size.otherwise` is 0; a whole number, at least 1, is wanted",
        ),
    ] {
        assert_eq!(errors_of(&with(&training)), told, "{training}");
    }
    // All at once.
    let both = "batch_size = { choice = [8, 16], when = { epochs = 3 } }\nclip_norm = { choice = [1, 2], when = { epochs = 4 } }";
    assert_eq!(errors_of(&with(both)).lines().count(), 2);
}

#[test]
fn keys_of_models_may_have_conditions_and_need_the_other_value_where_they_have_no_default() {
    let model = |hidden: &str| SMALL.replace("hidden = [8]", hidden);
    let job = parse(&model(
        "hidden = { choice = [[8], [4]] }\ndropout = { uniform = [0, 0.5], points = 2, when = { hidden = [8] } }",
    ));
    let [ModelSpace::Mlp(space)] = job.as_ref().unwrap().models.as_slice() else {
        panic!("{job:?}")
    };
    assert_eq!(space.dropout.values(), [&Ratio(0.0)]);
    let told = errors_of(&model("hidden = { choice = [[8], [4]], when = { batch_size = 32 } }"));
    assert!(told.contains("`model[0].hidden.otherwise` is missing"), "{told}");
    let told =
        errors_of(&model("hidden = [8]\ndropout = { choice = [0.25], when = { hidden = [4] } }"));
    assert_eq!(told, "8: `model[0].dropout.when.hidden` is `4` in no trial; it may be `[8]`");
    let graph = |keys: &str| {
        SMALL.replace(
            "arch = \"mlp\"\nhidden = [8]",
            &format!("arch = \"graph\"\nentry = \"m.py:M\"\n{keys}"),
        )
    };
    let keys = "kind = { choice = [\"gru\", \"mlp\"] }\nlayers = { int = [1, 3], when = { kind = \"gru\" }, otherwise = 0 }";
    assert!(parse(&graph(keys)).is_ok());
    let told = errors_of(&graph(&keys.replace(", otherwise = 0", "")));
    assert!(told.contains("`model[0].layers.otherwise` is missing"), "{told}");
}

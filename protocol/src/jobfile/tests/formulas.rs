//! Numbers that follow from other settings: what they mean, and what is said of those that can't be.

use super::*;
use crate::{
    space,
    spec::{Formula, JobSpec},
};

/// `SMALL` with these lines in `[training]`.
fn with(training: &str) -> String {
    SMALL.replace("epochs = 2\n", &format!("epochs = 2\n{training}\n"))
}

fn tied(text: &str) -> Formula {
    Formula::parse(text).unwrap()
}

#[test]
fn a_text_where_a_number_is_wanted_is_a_formula() {
    let job = parse(&with(
        "batch_size = { choice = [64, 128] }\noptimizer = { name = \"sgd\", lr = \"0.1 * batch_size / 256\", momentum = \"1 - lr\" }\nschedule = { name = \"step\", every = \"batch_size * 2\" }",
    ));
    let training = job.unwrap().training;
    assert_eq!(training.optimizer.lr, Dimension::Tied(tied("0.1 * batch_size / 256")));
    assert_eq!(training.optimizer.momentum, Dimension::Tied(tied("1 - lr")));
    assert_eq!(training.schedule.every, Dimension::Tied(tied("batch_size * 2")));
    let json = serde_json::to_value(&training).unwrap();
    assert_eq!(json["optimizer"]["lr"].to_string(), r#"{"tied":"0.1 * batch_size / 256"}"#);
    assert_eq!(serde_json::from_value::<crate::spec::TrainingSpace>(json).unwrap(), training);
}

#[test]
fn a_text_of_a_users_own_model_is_a_text_and_a_formula_says_so() {
    let model = |keys: &str| {
        let graph = format!("arch = \"graph\"\nentry = \"m.py:M\"\n{keys}");
        parse(&SMALL.replace("arch = \"mlp\"\nhidden = [8]", &graph))
    };
    let job =
        model("kind = \"lr\"\nwidth = { choice = [8, 16] }\nheads = { formula = \"width / 4\" }");
    let [ModelSpace::Graph(space)] = &job.unwrap().models[..] else { panic!() };
    assert_eq!(space.values["heads"], Dimension::Tied(tied("width / 4")));
    assert!(matches!(&space.values["kind"], Dimension::Fixed(crate::spec::Setting::Text(_))));
}

#[test]
fn a_formula_is_written_as_a_job_file_has_it() {
    let optimizer = |lr: &str| with(&format!("optimizer = {{ name = \"sgd\", lr = {lr} }}"));
    let when = "{ formula = \"0.1 / batch_size\", when = { hidden = [8] }, otherwise = 0.5 }";
    for lr in ["\"0.1 * batch_size / 256\"", when] {
        let job = parse(&optimizer(lr)).unwrap();
        let json = space::as_json(&job.models, &job.training);
        let at = "/training/optimizer/lr";
        assert!(space::places(&json).iter().any(|place| place == at), "{lr}");
        let words = space::in_words(json.pointer(at).unwrap());
        assert!(words.starts_with("{ formula = \"0.1 "), "{words}");
        assert_eq!(parse(&optimizer(&words)).unwrap().training, job.training, "{words}");
    }
}

#[test]
fn formulas_that_can_not_be_are_refused_at_their_place() {
    for (lr, told) in [
        (
            "\"0.1\"",
            "is a string (`\"0.1\"`), which names no other setting; a number has no quotes",
        ),
        (
            "\"high\"",
            "names `high`, which is no setting of trials with `arch = \"mlp\"`; there are `arch`",
        ),
        (
            "\"0.1 * batchsize\"",
            "names `batchsize`, which is no setting of trials with `arch = \"mlp\"`; did you mean `batch_size`?",
        ),
        ("\"2 * lr\"", "names `lr`, which is the setting itself"),
        (
            "\"1 - momentum\"",
            "names `momentum`, which hangs on `training.optimizer.lr` itself, by way of `training.optimizer.momentum`",
        ),
        ("\"0.1 * optimizer\"", "gives `*` a text; a number is wanted"),
        ("\"hidden / 2\"", "names `hidden`, a list, which can't be compared"),
        ("\"schedule\"", "is a text where a number is wanted"),
        ("\"batch_size > 8\"", "is true or false where a number is wanted"),
        (
            "\"0.1 *\"",
            "is a string (`\"0.1 *\"`), and no formula: it has its end at character 6; a number, a key or `(` is wanted",
        ),
    ] {
        let optimizer =
            format!("optimizer = {{ name = \"sgd\", lr = {lr}, momentum = \"0.5 * lr\" }}");
        let all = errors_of(&with(&optimizer));
        let at = format!("10: `training.optimizer.lr` {told}");
        assert!(all.lines().any(|line| line.starts_with(&at)), "{lr}: {all}");
    }
    let told = errors_of(&with("precision = \"2 * batch_size\""));
    assert!(told.contains("one of `f32`, `bf16`"), "{told}");
    let told = errors_of(&with("batch_size = { formula = \"2\", points = 3 }"));
    assert!(
        told.contains("`training.batch_size.points` goes with a range, not with `formula`"),
        "{told}"
    );
    // Each model table has the settings that a formula names, or is told.
    let second = "[[model]]\narch = \"resnet\"\ndepth = 20\nwidth = 8\n[training]";
    let text = with("batch_size = \"2 * width\"").replace("[training]", second);
    let text = text.replace("label = \"y\"", "label = \"y\"\nshape = [1, 8, 8]");
    let told =
        "`training.batch_size` names `width`, which is no setting of trials with `arch = \"mlp\"`";
    assert!(errors_of(&text).contains(told), "{}", errors_of(&text));
}

#[test]
fn a_formula_is_no_dimension_and_a_setting_that_a_trial_has() {
    let text = with(
        "batch_size = { choice = [8, 16] }\noptimizer = { name = \"sgd\", lr = \"batch_size / 64\" }\n[search]\nconstraints = [\"lr < 0.2\"]",
    );
    let job: JobSpec = parse(&text).unwrap();
    let mut first = crate::spec::dimension::FirstValues::default();
    job.close(0, &mut first).unwrap();
    assert_eq!(first.names, ["training.batch_size"]);
}

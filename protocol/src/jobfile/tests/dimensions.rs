//! The forms of a dimension: what they mean, and what is said of those that mean nothing.

use super::*;
use crate::spec::dimension::Normal;

/// `SMALL` with a learning rate, searched at random.
fn lr(form: &str) -> String {
    let line = format!("epochs = 2\noptimizer = {{ name = \"sgd\", lr = {form} }}");
    let search = "[search]\nmethod = \"random\"\ntrials = 3\n";
    SMALL.replace("epochs = 2", &line) + search
}

fn grid(text: &str) -> String {
    text.replace("method = \"random\"\ntrials = 3", "method = \"grid\"")
}

fn read(form: &str) -> Dimension<f64> {
    parse(&lr(form)).unwrap().training.optimizer.lr
}

#[test]
fn ranges_may_have_steps_and_whole_numbers_a_logarithm() {
    let stepped = |spread, low, high, step| {
        Dimension::Range(Range { step: Some(step), ..Range::new(spread, low, high) })
    };
    assert_eq!(
        read("{ uniform = [0.1, 0.5], step = 0.1 }"),
        stepped(Spread::Uniform, 0.1, 0.5, 0.1)
    );
    assert_eq!(
        read("{ log_uniform = [0.1, 0.5], step = 0.1 }"),
        stepped(Spread::LogUniform, 0.1, 0.5, 0.1)
    );
    assert_eq!(read("{ int = [1, 9], step = 2 }"), stepped(Spread::Integer, 1.0, 9.0, 2.0));
    let plain = Range::new(Spread::LogInteger, 1.0, 9.0);
    assert_eq!(read("{ log_int = [1, 9] }"), Dimension::Range(plain));
    assert_eq!(
        read("{ log_int = [8, 64], step = 8 }"),
        stepped(Spread::LogInteger, 8.0, 64.0, 8.0)
    );
    // A grid takes every step, and every whole number.
    for form in ["{ uniform = [0.1, 0.5], step = 0.1 }", "{ log_int = [1, 9] }"] {
        assert!(parse(&grid(&lr(form))).is_ok(), "{form}");
    }
}

#[test]
fn normal_numbers_have_ends_where_the_key_has_bounds() {
    let truncated = Normal { mean: 0.1, deviation: 0.02, truncate: Some([0.05, 0.2]) };
    assert_eq!(
        read("{ normal = [0.1, 0.02], truncate = [0.05, 0.2] }"),
        Dimension::Normal(truncated)
    );
    let text = lr("0.1").replace(
        "arch = \"mlp\"\nhidden = [8]",
        "arch = \"graph\"\nentry = \"model.py:Cnn\"\nbias = { normal = [0, 1] }",
    );
    let job = parse(&text).unwrap();
    let [ModelSpace::Graph(space)] = job.models.as_slice() else { panic!("{:?}", job.models) };
    let any = Normal { mean: 0.0, deviation: 1.0, truncate: None };
    assert_eq!(space.values["bias"], Dimension::Normal(any));
    let at = "10: `training.optimizer.lr";
    for (form, told) in [
        (
            "{ normal = [0.1, 0.02] }",
            "` is any number; a number above 0 is wanted: `truncate = [low, high]` says from where to where",
        ),
        (
            "{ normal = [0.1, 0.02], truncate = [0, 1] }",
            ".truncate[0]` is 0; a number above 0 is wanted",
        ),
        (
            "{ normal = [0.1, 0.02], truncate = [0.2, 0.3] }",
            ".truncate` is 0.2 to 0.3; ends around the mean, 0.1, are wanted",
        ),
        (
            "{ normal = [0.1, 0.02], truncate = [0.1, 0.1] }",
            ".truncate` is 0.1 to 0.1; ends around the mean, 0.1, are wanted",
        ),
        (
            "{ normal = [0.1, 1e6], truncate = [0.05, 0.2] }",
            ".truncate` is so narrow for a deviation of 1000000 that any number is as likely; `uniform` says that",
        ),
        ("{ normal = [0.1, 0] }", ".normal[1]` is 0; a deviation above 0 is wanted"),
        ("{ normal = [0.1] }", ".normal` has 1 value; `[mean, deviation]` is wanted"),
        (
            "{ uniform = [0.1, 0.2], truncate = [0.1, 0.2] }",
            ".truncate` goes with `normal`, not with `uniform`",
        ),
    ] {
        assert_eq!(errors_of(&lr(form)), format!("{at}{told}"), "{form}");
    }
    assert_eq!(
        errors_of(&grid(&lr("{ normal = [0.1, 0.02], truncate = [0.05, 0.2] }"))),
        "10: `training.optimizer.lr` can't be in a grid search, which takes every value: `normal` goes with every other `method`"
    );
    assert_eq!(
        errors_with("epochs = 2", "epochs = 2\nbatch_size = { normal = [32, 4] }"),
        "10: `training.batch_size.normal` has no meaning here: whole numbers are wanted; `int` and `log_int` give them"
    );
    assert_eq!(
        errors_with("hidden = [8]", "hidden = { normal = [1, 2] }"),
        "7: `model[0].hidden.normal` has no meaning here; `choice` is the way to search over this key"
    );
}

#[test]
fn steps_that_can_not_be_are_refused() {
    let at = "10: `training.optimizer.lr";
    for (form, told) in [
        ("{ uniform = [0.1, 0.2], step = 0 }", ".step` is 0; a number above 0 is wanted"),
        ("{ uniform = [0.1, 0.2], step = 0.5 }", ".step` is 0.5, more than the whole range"),
        (
            "{ uniform = [0.1, 0.2], step = 1e-12 }",
            ".step` is 0.000000000001, so that the range has over 4294967295 values",
        ),
        ("{ int = [1, 5], step = 0.5 }", ".step` is 0.5; `int` needs a whole number"),
        ("{ log_int = [1, 5], step = 0.5 }", ".step` is 0.5; `log_int` needs a whole number"),
        ("{ log_int = [0, 5] }", ".log_int[0]` is 0; the low end of `log_int` must be above 0"),
        (
            "{ log_int = [1, 2.5] }",
            ".log_int` has ends that aren't whole numbers; `log_int` needs them",
        ),
        ("{ int = [1, 9000000000] }", ".int` has over 4294967295 values; `step` makes them fewer"),
        (
            "{ uniform = [0.1, 0.2], step = 0.1, points = 2 }",
            ".points` can't go with `step`: a grid takes every step",
        ),
        ("{ choice = [0.1], step = 1 }", ".step` goes with a range, not with `choice`"),
        ("{ normal = [0.1, 1], step = 1 }", ".step` goes with a range, not with `normal`"),
    ] {
        assert_eq!(errors_of(&lr(form)), format!("{at}{told}"), "{form}");
    }
}

#[test]
fn forms_of_before_are_stored_as_they_were_and_new_ones_come_back() {
    let json = |form: &str| serde_json::to_string(&read(form)).unwrap();
    assert_eq!(
        json("{ uniform = [0.1, 0.5], points = 3 }"),
        r#"{"range":{"spread":"uniform","low":0.1,"high":0.5,"points":3}}"#
    );
    assert_eq!(
        json("{ log_int = [8, 64], step = 8 }"),
        r#"{"range":{"spread":"log_integer","low":8.0,"high":64.0,"step":8.0}}"#
    );
    assert_eq!(
        json("{ normal = [0.1, 0.02], truncate = [0.05, 0.2] }"),
        r#"{"normal":{"mean":0.1,"deviation":0.02,"truncate":[0.05,0.2]}}"#
    );
    for form in [
        "{ uniform = [0.1, 0.5], step = 0.1 }",
        "{ log_int = [1, 9] }",
        "{ normal = [0.1, 0.02], truncate = [0.05, 0.2] }",
    ] {
        assert_eq!(serde_json::from_str::<Dimension<f64>>(&json(form)).unwrap(), read(form));
    }
}

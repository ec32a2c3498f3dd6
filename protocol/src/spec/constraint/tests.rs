//! Tests of constraints, and of the errors of texts that aren't any.

use super::*;
use crate::jobfile;
use proptest::prelude::*;

/// A job of two tables, with these constraints.
fn job(constraints: &[&str]) -> JobSpec {
    let text = "name = \"t\"\n[data]\ntrain = \"t.csv\"\nlabel = \"y\"\nshape = [1, 8, 8]\n\
        [[model]]\narch = \"mlp\"\nhidden = { choice = [[64], [32, 8]] }\nbatch_norm = true\ndropout = 0.25\n\
        [[model]]\narch = \"resnet\"\ndepth = 20\nwidth = { int = [8, 64] }\n\
        [training]\nepochs = 3\nbatch_size = 48\nclip_norm = 0\nprecision = \"bf16\"\n\
        optimizer = { name = \"sgd\", lr = 0.125, momentum = 0.5 }\nschedule = \"cosine\"\n";
    let mut spec = jobfile::parse(text).unwrap();
    spec.search.constraints =
        constraints.iter().map(|text| Constraint::parse(text).unwrap()).collect();
    spec
}

/// Does a constraint hold for the first trial of a table?
fn holds(table: usize, constraint: &str) -> Result<bool, ConstraintFault> {
    let spec = job(&[constraint]);
    let config = spec.close(table, &mut FirstValues::default()).unwrap();
    Ok(Constraints::new(&spec)?.broken(table, &config)?.is_none())
}

#[test]
fn comparisons_follow_pythons_rules() {
    for (constraint, expected) in [
        ("width <= 8", true),
        ("width < 8", false),
        ("width >= 8", true),
        ("width > 8", false),
        ("width == 8", true),
        ("width != 8", false),
        ("lr * batch_size == 6", true),
        ("lr * batch_size + 2 * depth == 46", true),
        ("batch_size - 8 - 8 == 32", true),
        ("batch_size / 4 / 4 == 3", true),
        ("batch_size - (8 - 8) == 48", true),
        ("batch_size % 7 == 6 and -batch_size % 7 == 1", true),
        ("- - width == 8", true),
        ("1e-1 < lr and lr < 2.5E-1", true),
        ("width > 8 or depth == 20 and width == 8", true),
        ("(width > 8 or depth == 20) and width == 9", false),
        ("not width > 8", true),
        ("not (width == 8 and depth == 20)", false),
        ("not not true", true),
        ("optimizer == \"sgd\"", true),
        ("optimizer.name == 'sgd' and training.optimizer.name != 'adam'", true),
        ("schedule == 'cosine' and precision == \"bf16\" and loss == 'cross-entropy'", true),
        ("arch == 'resnet'", true),
        ("optimizer == 'adam' or momentum < 0.6", true),
        ("clip_norm == 0 and epochs == 3 and model.depth < 21", true),
        ("flip == false", true),
        // The right side is asked only where it matters.
        ("clip_norm == 0 or lr / clip_norm < 1", true),
        ("clip_norm > 0 and lr / clip_norm < 1", false),
    ] {
        assert_eq!(holds(1, constraint), Ok(expected), "{constraint}");
    }
}

#[test]
fn a_key_of_another_table_makes_the_constraint_hold() {
    assert_eq!(holds(0, "width < 8"), Ok(true));
    assert_eq!(holds(1, "width < 8"), Ok(false));
    assert_eq!(holds(0, "batch_norm"), Ok(true));
    assert_eq!(holds(0, "not batch_norm"), Ok(false));
    assert_eq!(holds(1, "not batch_norm"), Ok(true));
    assert_eq!(holds(0, "dropout * 4 == width"), Ok(true), "no table has both");
    let spec = job(&["width < 64", "width < 8", "lr > 1"]);
    let constraints = Constraints::new(&spec).unwrap();
    let config = |table| spec.close(table, &mut FirstValues::default()).unwrap();
    assert_eq!(constraints.broken(0, &config(0)), Ok(Some(2)));
    assert_eq!(constraints.broken(1, &config(1)), Ok(Some(1)), "the first one");
}

#[test]
fn constraints_that_can_not_be_decided_are_refused() {
    for (constraint, told) in [
        ("hidden == 3", "names `hidden`, a list, which can't be compared"),
        ("width", "is a number; a comparison is wanted, e.g. `width <= 64`"),
        ("'a'", "is a text; a comparison is wanted, e.g. `width <= 64`"),
        ("width == 'a'", "compares a number with a text"),
        ("optimizer < 'sgd'", "gives `<` a text; a number is wanted"),
        ("width + (width < 8) < 9", "gives `+` true or false; a number is wanted"),
        ("width and true", "gives `and` a number; true or false is wanted"),
        ("not width == 8 or not width", "gives `not` a number; true or false is wanted"),
        ("-arch == 'mlp'", "gives `-` a text; a number is wanted"),
        (
            "name == 'sgd'",
            "names `name`, which two keys are called; write `training.optimizer.name` or `training.schedule.name`",
        ),
    ] {
        let fault = ConstraintFault::Undecided { constraint: 0, why: told.into() };
        assert_eq!(Constraints::new(&job(&[constraint])).unwrap_err(), fault, "{constraint}");
    }
    for (constraint, told) in [
        ("lr / clip_norm < 1", "divides by 0"),
        ("lr % clip_norm < 1", "divides by 0"),
        ("width * 1e308 * 10 > 1", "goes beyond the largest number"),
    ] {
        let fault = ConstraintFault::Undecided { constraint: 0, why: told.into() };
        assert_eq!(holds(1, constraint), Err(fault), "{constraint}");
    }
    let unknown = Constraints::new(&job(&["lr < 1", "lr < 1 or widht < 2"])).unwrap_err();
    let ConstraintFault::Unknown { constraint: 1, name, known } = unknown else {
        panic!("{unknown:?}")
    };
    assert_eq!(name, "widht");
    for key in ["width", "dropout", "lr", "optimizer", "schedule", "batch_size"] {
        assert!(known.contains(key), "{known:?}");
    }
}

#[test]
fn keys_of_own_models_are_keys_too() {
    let text = "name = \"t\"\n[data]\ntrain = \"t.csv\"\nlabel = \"y\"\n\
        [[model]]\narch = \"graph\"\nentry = \"m.py:M\"\nlr = 3\nkind = { choice = [\"gru\", 2] }\ntied = true\nsizes = [1, 2]\nwidth = 2.5\n\
        [training]\nepochs = 3\n";
    let mut spec = jobfile::parse(text).unwrap();
    let mut holds = |constraint: &str| {
        spec.search.constraints = vec![Constraint::parse(constraint).unwrap()];
        let config = spec.close(0, &mut FirstValues::default()).unwrap();
        Ok::<_, ConstraintFault>(Constraints::new(&spec)?.broken(0, &config)?.is_none())
    };
    assert_eq!(holds("model.lr == 3 and optimizer.lr < 1 and width * 2 == 5"), Ok(true));
    assert_eq!(holds("tied and kind == 'gru'"), Ok(true));
    let refused = holds("lr < 1").unwrap_err().to_string();
    assert!(refused.contains("write `training.optimizer.lr` or `model.lr`"), "{refused}");
    let refused = holds("sizes == 1").unwrap_err().to_string();
    assert!(refused.contains("names `sizes`, a list"), "{refused}");
    // Another value of the same key may be of another kind.
    spec.search.constraints = vec![Constraint::parse("kind != 'gru'").unwrap()];
    let mut config = spec.close(0, &mut FirstValues::default()).unwrap();
    let constraints = Constraints::new(&spec).unwrap();
    assert_eq!(constraints.broken(0, &config), Ok(Some(0)));
    let super::super::Architecture::Graph(graph) = &mut config.model else { panic!() };
    graph.values.insert("kind".into(), super::super::Setting::Whole(2));
    assert_eq!(constraints.broken(0, &config), Ok(None), "a number is no text");
}

#[test]
fn a_text_that_is_no_constraint_is_refused_with_the_place() {
    let refused = |text: &str| Constraint::parse(text).unwrap_err().to_string();
    for (text, told) in [
        ("", "has its end at character 1; a number, a key or `(` is wanted"),
        ("width <", "has its end at character 8; a number, a key or `(` is wanted"),
        ("width = 3", "has `=` at character 7; `==` compares"),
        ("width < 3 && lr < 1", "has `&` at character 11; `and` joins comparisons"),
        ("width < 3 || lr < 1", "has `|` at character 11; `or` joins comparisons"),
        ("!width", "has `!` at character 1; `not` is the opposite"),
        ("ä < 3", "has `ä` at character 1; there is no such sign"),
        ("'ä' == 3 ^ 2", "has `^` at character 10; there is no such sign"),
        (
            "1 < width < 3",
            "has `<` at character 11; one comparison compares two values; `and` joins several",
        ),
        ("(width < 3", "has its end at character 11; `)` or a sign such as `<` is wanted"),
        ("width < 3)", "has `)` at character 10; a sign such as `<`, `+` or `and` is wanted"),
        ("2width < 3", "has `width` at character 2; a sign such as `<`, `+` or `and` is wanted"),
        ("width not < 3", "has `not` at character 7; a sign such as `<`, `+` or `and` is wanted"),
        ("1 + not width", "has `not` at character 5; before `not` a parenthesis is wanted"),
        ("optimizer == \"sgd", "has `\"` at character 14; the same sign ends a text"),
        ("lr < 1e999", "has `1` at character 6; a finite number is wanted"),
        ("lr < 1e", "has `1` at character 6; a finite number is wanted"),
        ("a..b < 1", "has `a..b` at character 1; a key is wanted, e.g. `lr` or `optimizer.lr`"),
        ("a. < 1", "has `a.` at character 1; a key is wanted, e.g. `lr` or `optimizer.lr`"),
    ] {
        assert_eq!(refused(text), told, "{text}");
    }
    assert_eq!(refused(&"(".repeat(33)), refused(&"-".repeat(33)));
    assert_eq!(refused(&"not ".repeat(33)), ConstraintError::TooDeep.to_string());
    assert_eq!(refused(&" ".repeat(401)), "has 401 characters; at most 400 are taken");
    let deep = format!("{}1{} < 2", "(".repeat(32), ")".repeat(32));
    assert!(Constraint::parse(&deep).is_ok());
    let long = format!("0{} < 2", "+1".repeat(197));
    assert_eq!(long.len(), 399);
    assert_eq!(holds(0, &long), Ok(false));
}

#[test]
fn a_constraint_is_its_text_on_the_wire() {
    let constraint = Constraint::parse("width  <= 8").unwrap();
    let json = serde_json::to_string(&constraint).unwrap();
    assert_eq!(json, "\"width  <= 8\"");
    assert_eq!(serde_json::from_str::<Constraint>(&json).unwrap(), constraint);
    assert!(serde_json::from_str::<Constraint>("\"width <\"").is_err());
}

proptest! {
    /// Any text gives a constraint or a refusal; never a panic.
    #[test]
    fn no_text_is_left_without_an_answer(text in "(lr|width|arch|sgd|1|0|2.5|e9|<|=|!|\\+|-|\\*|/|%|\\(|\\)|'|\"|\\.| |and |or |not |true|é){0,40}") {
        if let Ok(constraint) = Constraint::parse(&text) {
            prop_assert_eq!(constraint.text(), text.as_str());
            let spec = job(&[&text]);
            if let Ok(constraints) = Constraints::new(&spec) {
                let config = spec.close(1, &mut FirstValues::default()).unwrap();
                let _ = constraints.broken(1, &config);
            }
        }
    }
}

//! Error messages for faults that can occur in any table.

use super::*;

#[test]
fn several_problems_are_told_at_once_in_the_order_of_lines() {
    let text = SMALL.replace("epochs = 2", "epoch = 2").replace("label", "lable");
    assert_eq!(
        errors_of(&text),
        "2: `data.label` is missing: the name of the label column\n\
         4: `data.lable` is no known key; did you mean `label`?\n\
         8: `training.epochs` is missing: how often to pass over the training data\n\
         9: `training.epoch` is no known key; did you mean `epochs`?"
    );
    let error = parse(&text).unwrap_err();
    assert_eq!(error.line(), 2);
    assert_eq!(
        error.to_string(),
        "`data.label` is missing: the name of the label column (and 3 more)"
    );
}

#[test]
fn of_very_many_problems_the_first_are_told_and_that_there_are_more() {
    let zeros = vec!["0"; 1_000_000].join(",");
    let text = SMALL.replace("hidden = [8]", &format!("hidden = [{zeros}]"));
    let error = parse(&text).unwrap_err();
    assert_eq!(error.problems().count(), 101);
    let last = error.problems().last().map(ToString::to_string);
    assert_eq!(last.as_deref(), Some("there are more problems than these"));
}

#[test]
fn a_long_key_or_text_is_told_by_its_beginning_without_what_a_terminal_obeys() {
    let long = "x".repeat(1_000_000);
    for text in [
        SMALL.replace("epochs =", &format!("{long} =")),
        SMALL.replace("\"mlp\"", &format!("\"{long}\"")),
        SMALL.replace("epochs = 2", &format!("epochs = {}", "7".repeat(1_000_000))),
        format!("\"{long}\\u001b[31m\" = 1\n{SMALL}"),
    ] {
        assert_ne!(text, SMALL);
        let error = parse(&text).unwrap_err();
        for problem in error.problems() {
            let said = problem.to_string();
            assert!(said.len() < 2_000 && !said.contains('\u{1b}'), "{} bytes", said.len());
        }
    }
    let told = errors_of(&format!("\"a\\u001b[31m\" = 1\n{SMALL}"));
    assert!(told.starts_with("1: `a[31m` is no known key"), "{told}");
}

#[test]
fn unknown_keys_and_tables_get_the_nearest_word_or_their_place() {
    assert_eq!(
        errors_with("[training]", "[trainning]"),
        "1: `training` is missing: a table `[training]`\n\
         8: `trainning` is no known key or table; did you mean `training`?"
    );
    assert_eq!(
        errors_with("epochs = 2", "epochs = 2\nlr = 0.1"),
        "10: `training.lr` is no known key; did you mean `training.optimizer.lr`?"
    );
    assert_eq!(
        errors_with("epochs = 2", "epochs = 2\nseed = 1"),
        "10: `training.seed` is no known key; did you mean `seed` at the top of the file, before the first table?"
    );
    assert_eq!(
        errors_with("[training]", "[zzz]\nq = 1\n[training]"),
        "8: `zzz` is no known key or table; known here: `name`, `seed`, `data`, `model`, `training`, `search`, `metrics`, `placement`"
    );
    assert_eq!(
        errors_with("hidden = [8]", "hidden = { chioce = [[8]] }"),
        "7: `model[0].hidden.chioce` is no known key; did you mean `choice`?\n\
         7: `model[0].hidden` has none; exactly one of `choice`, `uniform`, `log_uniform`, `int`, `log_int`, `normal`, `formula` is wanted"
    );
}

#[test]
fn wrong_types_say_what_is_there_and_what_is_wanted() {
    assert_eq!(
        errors_with("epochs = 2", "epochs = \"2\""),
        "9: `training.epochs` is a string (`\"2\"`); a whole number from 1 to 1000000 is wanted"
    );
    assert_eq!(
        errors_with("train = \"x.csv\"", "train = 3"),
        "3: `data.train` is a whole number (`3`); a path or a URL is wanted"
    );
    assert_eq!(
        errors_with("hidden = [8]", "hidden = { choice = [8, 16] }"),
        "7: `model[0].hidden.choice[0]` is a whole number (`8`); a list of whole numbers, e.g. `[64, 32]`, is wanted\n\
         7: `model[0].hidden.choice[1]` is a whole number (`16`); a list of whole numbers, e.g. `[64, 32]`, is wanted"
    );
    assert_eq!(
        errors_with("epochs = 2", "epochs = 2\nbatch_size = [32, 64]"),
        "10: `training.batch_size` is a list; one value is wanted, or to search over several: `{ choice = [...] }`"
    );
    assert_eq!(
        errors_with("[[model]]", "[model]"),
        "5: `model` is one table; write `[[model]]`, with two brackets, for each architecture"
    );
    assert_eq!(
        errors_with("epochs = 2", "epochs = 2\n[placement]\nreproducible = 1"),
        "11: `placement.reproducible` is a whole number (`1`); `true` or `false` is wanted"
    );
    assert_eq!(
        errors_with("name = \"small\"", "name = 1979-05-27"),
        "1: `name` is a date; a string is wanted"
    );
}

#[test]
fn numbers_out_of_range_are_refused() {
    for (from, to, wanted) in [
        (
            "epochs = 2",
            "epochs = 0",
            "9: `training.epochs` is 0; a whole number from 1 to 1000000 is wanted",
        ),
        (
            "epochs = 2",
            "epochs = 2.5",
            "9: `training.epochs` is a number (`2.5`); a whole number from 1 to 1000000 is wanted",
        ),
        (
            "epochs = 2",
            "epochs = 99999999999999999999999",
            "9: `training.epochs` is 99999999999999999999999; at most 1000000 is possible",
        ),
        (
            "epochs = 2",
            "epochs = 2\nlocal_epochs = 0",
            "10: `training.local_epochs` is 0; a whole number from 1 to 1000 is wanted",
        ),
        (
            "epochs = 2",
            "epochs = 2\nlocal_epochs = { choice = [1, 2] }",
            "10: `training.local_epochs` is a table; a whole number from 1 to 1000 is wanted",
        ),
        (
            "epochs = 2",
            "epochs = 2\nbatch_size = 0",
            "10: `training.batch_size` is 0; a whole number, at least 1, is wanted",
        ),
        (
            "epochs = 2",
            "epochs = 2\nclip_norm = -1",
            "10: `training.clip_norm` is -1; a number of at least 0 is wanted",
        ),
        (
            "epochs = 2",
            "epochs = 2\noptimizer = { name = \"sgd\", lr = nan }",
            "10: `training.optimizer.lr` is nan; a finite number is wanted",
        ),
        (
            "epochs = 2",
            "epochs = 2\noptimizer = { name = \"sgd\", lr = 0 }",
            "10: `training.optimizer.lr` is 0; a number above 0 is wanted",
        ),
        (
            "epochs = 2",
            "epochs = 2\noptimizer = { name = \"sgd\", momentum = 1.0 }",
            "10: `training.optimizer.momentum` is 1; a number of at least 0 and below 1 is wanted",
        ),
        ("[data]", "seed = -1\n[data]", "2: `seed` is -1; a whole number, at least 0, is wanted"),
        (
            "label = \"y\"",
            "label = \"y\"\nvalid = 1.0",
            "5: `data.valid` is 1; a share above 0 and below 1 is wanted, or the path of a file",
        ),
        (
            "label = \"y\"",
            "label = \"y\"\nvalid = 0.5\ntest = 0.5",
            "6: `data.test` is 0.5 and `data.valid` is 0.5: together they leave no row to train on",
        ),
        (
            "label = \"y\"",
            "label = \"y\"\nshards = 0",
            "5: `data.shards` is 0; a whole number from 1 to 65536 is wanted",
        ),
        (
            "label = \"y\"",
            "label = \"y\"\nshape = []",
            "5: `data.shape` is empty; leave it out for a flat vector",
        ),
        (
            "label = \"y\"",
            "label = \"y\"\nshape = [65536, 65536]",
            "5: `data.shape` has more than 4294967295 values",
        ),
        (
            "label = \"y\"",
            "label = \"y\"\nscale = 0",
            "5: `data.scale` is 0, which would make every feature 0",
        ),
        (
            "label = \"y\"",
            "label = \"y\"\nscale = -1e300",
            "5: `data.scale` is -1e300; a number from 1e-30 to 1e30 is wanted, positive or negative",
        ),
        (
            "hidden = [8]",
            "hidden = [0]",
            "7: `model[0].hidden[0]` is 0; a whole number from 1 to 1048576 is wanted",
        ),
    ] {
        assert_eq!(errors_with(from, to), wanted);
    }
}

#[test]
fn words_get_the_nearest_one_and_later_features_are_named_as_such() {
    let search = |line: &str| errors_with("epochs = 2", &format!("epochs = 2\n[search]\n{line}"));
    assert_eq!(
        errors_with("arch = \"mlp\"", "arch = \"mpl\""),
        "6: `model[0].arch` is `\"mpl\"`; did you mean `mlp`? one of `mlp`, `cnn`, `resnet`, `graph` is wanted"
    );
    assert_eq!(
        errors_with("epochs = 2", "epochs = 2\noptimizer = \"adm\""),
        "10: `training.optimizer` is `\"adm\"`; did you mean `adam`? one of `sgd`, `adam`, `adamw` is wanted"
    );
    assert_eq!(
        search("method = \"gird\""),
        "11: `search.method` is `\"gird\"`; did you mean `grid`? one of `grid`, `random`, `sobol`, `tpe`, `pbt`, `ask-tell`, `epochs` is wanted"
    );
    assert_eq!(
        search("method = \"asha\""),
        "11: `search.method` is `\"asha\"`, a rule of early stopping: set `method = \"random\"` and `stopping = \"asha\"`"
    );
    assert_eq!(
        search("metric = \"accuracy\""),
        "11: `search.metric` is `\"accuracy\"`; did you mean `valid/accuracy`? one of `valid/accuracy`, `valid/top-k`, `valid/f1`, `valid/loss`, `valid/rmse` is wanted"
    );
    assert_eq!(
        errors_with("label = \"y\"", "label = \"y\"\nshards = \"many\""),
        "5: `data.shards` is `\"many\"`; `\"auto\"` or a whole number from 1 to 65536 is wanted"
    );
    assert_eq!(
        errors_with("x.csv", "htps://example.org/x.csv"),
        "3: `data.train` is `\"htps://example.org/x.csv\"`; did you mean `https`? a path, or a URL of `http`, `https`, `s3` is wanted"
    );
}

#[test]
fn keys_that_contradict_each_other_are_refused() {
    assert_eq!(
        errors_with(
            "epochs = 2",
            "epochs = 2\nloss = \"mse\"\n[search]\nmetric = \"valid/accuracy\""
        ),
        "12: `search.metric` is `\"valid/accuracy\"`, which needs labels that are classes; with `training.loss = \"mse\"` one of `valid/loss`, `valid/rmse` is wanted"
    );
    assert_eq!(
        errors_with("epochs = 2", "epochs = 2\n[search]\nmetric = \"valid/rmse\""),
        "11: `search.metric` is `\"valid/rmse\"`, which needs labels that are numbers; with `training.loss = \"cross-entropy\"` one of `valid/accuracy`, `valid/top-k`, `valid/f1`, `valid/loss` is wanted"
    );
    assert_eq!(
        errors_with("epochs = 2", "epochs = 2\nloss = \"mse\"\n[search]\ntop_k = 3"),
        "12: `search.top_k` needs classes; `training.loss` is `\"mse\"`"
    );
    assert_eq!(
        errors_with("arch = \"mlp\"", "arch = \"resnet\"\ndepth = 11"),
        "6: `model[0].arch` is `\"resnet\"`, which needs `data.shape = [channels, height, width]`\n\
         8: `model[0].hidden` is a key of `arch = \"mlp\"` and `arch = \"cnn\"`"
    );
    assert_eq!(
        errors_with("arch = \"mlp\"\nhidden = [8]", "arch = \"cnn\"\nchannels = [8]"),
        "6: `model[0].arch` is `\"cnn\"`, which needs `data.shape = [channels, height, width]`"
    );
    assert_eq!(
        errors_with("epochs = 2", "epochs = 2\noptimizer = { name = \"adam\", momentum = 0.9 }"),
        "10: `training.optimizer.momentum` is no key of this optimiser"
    );
    assert_eq!(
        errors_with("epochs = 2", "epochs = 2\nschedule = { name = \"cosine\", gamma = 0.5 }"),
        "10: `training.schedule.gamma` is a key of the schedule `step`"
    );
}

#[test]
fn syntax_errors_and_duplicates_name_their_line() {
    assert!(errors_with("epochs = 2", "epochs = = 2").starts_with("9: no valid TOML here: "));
    let twice = errors_with("epochs = 2", "epochs = 2\nepochs = 3");
    assert!(twice.starts_with("10: no valid TOML here: duplicate key"), "{twice}");
    assert!(errors_of("").starts_with("1: `name` is missing"));
    assert!(errors_of("\u{0}").starts_with("1: "));
}

proptest::proptest! {
    /// Any text gives a job, or a refusal with a line of the text; never a panic.
    #[test]
    fn no_text_is_left_without_an_answer(text in "(name|seed|\\[data\\]|\\[\\[model\\]\\]|=|\\{|\\}|\\[|\\]|\"|1|\\.|\n| |choice|é){0,60}") {
        if let Err(error) = parse(&text) {
            proptest::prop_assert!(error.line() >= 1);
            proptest::prop_assert!(error.line() <= text.split('\n').count());
        }
    }
}

#[test]
fn what_decays_is_a_word_that_goes_with_a_decay() {
    let with = |keys: &str| {
        errors_with("epochs = 2", &format!("epochs = 2\noptimizer = {{ name = \"adam\", {keys} }}"))
    };
    assert_eq!(
        with("decay = \"matrices\""),
        "10: `training.optimizer.decay` says what `weight_decay` shrinks, which is 0 where it is left out"
    );
    assert_eq!(
        with("weight_decay = 0.1, decay = \"matrix\""),
        "10: `training.optimizer.decay` is `\"matrix\"`; did you mean `matrices`? one of `all`, `matrices` is wanted"
    );
    let table = with("weight_decay = 0.1, decay = { choice = [\"all\", \"matrices\"] }");
    assert!(table.contains("`training.optimizer.decay` is a table"), "{table}");
}

#[test]
fn smoothing_is_refused_where_it_can_not_be() {
    let with = |lines: &str| errors_with("epochs = 2", &format!("epochs = 2\n{lines}"));
    for value in ["0.1", "{ choice = [0, 0.1] }", "{ uniform = [0, 0.1], points = 2 }"] {
        assert_eq!(
            with(&format!("loss = \"mse\"\nlabel_smoothing = {value}")),
            "11: `training.label_smoothing` needs labels that are classes; `training.loss` is `\"mse\"`"
        );
    }
    let wanted = "a number of at least 0 and below 1 is wanted";
    for (value, is) in [("1", "1"), ("-0.1", "-0.1")] {
        assert_eq!(
            with(&format!("label_smoothing = {value}")),
            format!("10: `training.label_smoothing` is {is}; {wanted}")
        );
    }
    assert!(with("label_smooting = 0.1").contains("did you mean `label_smoothing`?"));
}

#[test]
fn weights_and_sampling_by_class_are_refused_where_they_can_not_be() {
    let with = |lines: &str| errors_with("epochs = 2", &format!("epochs = 2\n{lines}"));
    let needs = "needs labels that are classes; `training.loss` is `\"mse\"`";
    assert_eq!(
        with("loss = \"mse\"\nclass_weights = \"balanced\""),
        format!("11: `training.class_weights` {needs}")
    );
    assert_eq!(
        with("loss = \"mse\"\nsampling = { choice = [\"shuffled\", \"balanced\"] }"),
        format!("11: `training.sampling` is `\"balanced\"`, which {needs}")
    );
    assert_eq!(
        with("class_weights = { cat = -1, dog = 0, cow = nan, fox = 1e300, pig = 2 }"),
        "10: `training.class_weights.cat` is -1; a weight above 0 is wanted\n\
         10: `training.class_weights.cow` is nan; a finite number is wanted\n\
         10: `training.class_weights.dog` is 0; a weight above 0 is wanted\n\
         10: `training.class_weights.fox` is 1e300; a weight from 1e-6 to 1e6 is wanted"
    );
    assert_eq!(
        with("class_weights = {}"),
        "10: `training.class_weights` is empty; a weight for each class that hasn't 1 is wanted"
    );
    assert_eq!(
        with("class_weights = [1, 2]"),
        "10: `training.class_weights` is a list; `\"balanced\"`, or a table of weights by class, is wanted"
    );
    assert_eq!(
        with("class_weights = \"balance\""),
        "10: `training.class_weights` is `\"balance\"`; did you mean `balanced`? one of `balanced`, `none` is wanted"
    );
    assert!(with("sampling = \"balance\"").contains("did you mean `balanced`?"));
}

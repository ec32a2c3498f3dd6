//! `[search]`: what trials are compared by, and how many there are.

use super::*;
use crate::{
    jobfile::parse_over,
    spec::{CombinationRule, Spread},
    time::Millis,
};

#[test]
fn mse_is_compared_by_loss() {
    let job = parse(&SMALL.replace("epochs = 2", "epochs = 2\nloss = \"mse\"")).unwrap();
    assert_eq!((job.search.metric, job.search.goal), (Metric::Loss, Goal::Min));
}

#[test]
fn every_metric_has_its_direction_and_top_k_its_k() {
    let job = |loss: &str, search: &str| {
        let table = format!("epochs = 2\nloss = \"{loss}\"\n[search]\n{search}");
        parse(&SMALL.replace("epochs = 2", &table)).unwrap()
    };
    for (loss, metric, goal) in [
        ("cross-entropy", "valid/accuracy", Goal::Max),
        ("cross-entropy", "valid/top-k", Goal::Max),
        ("cross-entropy", "valid/f1", Goal::Max),
        ("cross-entropy", "valid/loss", Goal::Min),
        ("mse", "valid/loss", Goal::Min),
        ("mse", "valid/rmse", Goal::Min),
    ] {
        let search = job(loss, &format!("metric = \"{metric}\"")).search;
        assert_eq!((search.metric.name(), search.goal, search.top_k), (metric, goal, None));
    }
    let search = job("cross-entropy", "metric = \"valid/top-k\"\ntop_k = 3").search;
    assert_eq!((search.metric, search.top_k), (Metric::TopK, Some(3)));
}

#[test]
fn what_a_search_counts_follows_from_its_metric_and_the_labels() {
    use crate::{
        manifest::Labels,
        metrics::{ClassDetail, Counting},
    };
    let classes = |count: u32| Labels::Classes((0..count).map(|n| n.to_string()).collect());
    let search = |metric, top_k| {
        let search = parse(SMALL).unwrap().search;
        crate::spec::SearchSpec { metric, top_k, ..search }
    };
    let plain = search(Metric::Accuracy, None);
    assert_eq!(plain.counting(&classes(10)), Counting::default(), "epochs cost nothing more");
    let all = |top_k, by_class| Counting { top_k, by_class };
    assert_eq!(plain.full_counting(&classes(10)), all(Some(5), ClassDetail::Confusion));
    assert_eq!(plain.full_counting(&classes(5)), all(None, ClassDetail::Confusion));
    assert_eq!(plain.full_counting(&classes(300)), all(Some(5), ClassDetail::Totals));
    assert_eq!(plain.full_counting(&Labels::Number), Counting::default());
    let three = search(Metric::TopK, Some(3));
    assert_eq!(three.counting(&classes(10)), all(Some(3), ClassDetail::Nothing));
    let f1 = search(Metric::F1, None);
    assert_eq!(f1.counting(&classes(10)), all(None, ClassDetail::Totals));

    let refused = |search: &crate::spec::SearchSpec, labels| search.check(&labels).unwrap_err();
    assert_eq!(three.check(&classes(4)), Ok(()));
    assert_eq!(refused(&three, classes(3)), "`search.top_k` is 3; of 3 classes, 1 to 2 is wanted");
    assert_eq!(
        refused(&search(Metric::TopK, None), classes(5)),
        "metric `valid/top-k` with k = 5 says nothing about 5 classes: give a smaller `search.top_k`"
    );
    assert_eq!(
        refused(&f1, classes(16_385)),
        "metric `valid/f1` takes at most 16384 classes, not 16385"
    );
    assert_eq!(
        refused(&search(Metric::Loss, Some(2)), Labels::Number),
        "`search.top_k` needs labels that are classes"
    );
    assert_eq!(
        refused(&search(Metric::Rmse, None), classes(2)),
        "metric `valid/rmse` needs labels that are numbers"
    );
    assert_eq!(refused(&f1, Labels::Number), "metric `valid/f1` needs labels that are classes");
}

#[test]
fn an_empty_or_impossible_search_is_refused() {
    let lr = |lr: &str| {
        errors_with(
            "epochs = 2",
            &format!("epochs = 2\noptimizer = {{ name = \"sgd\", lr = {lr} }}"),
        )
    };
    assert_eq!(
        lr("{ choice = [] }"),
        "10: `training.optimizer.lr.choice` is empty; at least one value is wanted"
    );
    assert_eq!(
        lr("{ uniform = [0.2, 0.1], points = 2 }"),
        "10: `training.optimizer.lr.uniform` has its low end 0.2 above its high end 0.1"
    );
    assert_eq!(
        lr("{ log_uniform = [0, 0.1], points = 2 }"),
        "10: `training.optimizer.lr.log_uniform[0]` is 0; the low end of `log_uniform` must be above 0"
    );
    assert_eq!(
        lr("{ uniform = [0.1, 0.2] }"),
        "10: `training.optimizer.lr` needs `points` in a grid search: how many values to take, e.g. `{ uniform = [0.1, 0.2], points = 3 }`"
    );
    assert_eq!(
        lr("{ uniform = [0.1, 0.2], points = 0 }"),
        "10: `training.optimizer.lr.points` is 0; a whole number from 1 to 1000000 is wanted"
    );
    assert_eq!(
        lr("{ int = [0.5, 2] }"),
        "10: `training.optimizer.lr.int` has ends that aren't whole numbers; `int` needs them"
    );
    assert_eq!(
        lr("{ choice = [0.1], points = 2 }"),
        "10: `training.optimizer.lr.points` goes with a range, not with `choice`"
    );
    assert_eq!(
        lr("{ choice = [0.1], int = [1, 2] }"),
        "10: `training.optimizer.lr` has `choice`, `int`; exactly one of `choice`, `uniform`, `log_uniform`, `int`, `log_int`, `normal`, `formula` is wanted"
    );
    assert_eq!(
        errors_with("hidden = [8]", "hidden = { int = [1, 2] }"),
        "7: `model[0].hidden.int` has no meaning here; `choice` is the way to search over this key"
    );
    assert_eq!(
        errors_with("epochs = 2", "epochs = 2\n[search]\nmethod = \"random\""),
        "10: `search.trials` is missing: how many combinations to try"
    );
    assert_eq!(
        errors_with("epochs = 2", "epochs = 2\n[search]\nmethod = \"random\"\ntrials = 0"),
        "12: `search.trials` is 0; a whole number from 1 to 1000000 is wanted"
    );
    assert_eq!(
        errors_with("epochs = 2", "epochs = 2\n[search]\nmetric = \"valid/loss\"\ngoal = \"max\""),
        "12: `search.goal` would choose the worst trial: of `valid/loss` less is better"
    );
    assert_eq!(
        errors_with("epochs = 2", "epochs = 2\n[search]\ntrials = 3"),
        "11: `search.trials` goes with another `method`; a grid tries every combination"
    );
    let without = SMALL.replace("[[model]]\narch = \"mlp\"\nhidden = [8]\n", "");
    assert_eq!(errors_of(&without), "1: `model` is missing: at least one `[[model]]` table");
    let empty = format!("model = []\n{without}");
    assert_eq!(errors_of(&empty), "1: `model` is empty; at least one `[[model]]` table is wanted");
}

#[test]
fn quasi_random_searches_say_how_many_trials_they_have() {
    let with = |lines: &str| SMALL.replace("epochs = 2", &format!("epochs = 2\n[search]\n{lines}"));
    let search = parse(&with("method = \"sobol\"\ntrials = 16")).unwrap().search;
    assert_eq!(search.method, SearchMethod::Sobol { trials: 16 });
    let json = serde_json::to_string(&search.method).unwrap();
    assert_eq!(json, r#"{"sobol":{"trials":16}}"#);
    assert_eq!(serde_json::from_str::<SearchMethod>(&json).unwrap(), search.method);
    assert_eq!(
        errors_of(&with("method = \"sobol\"")),
        "10: `search.trials` is missing: how many combinations to try"
    );
    assert!(errors_of(&with("method = \"sobel\"")).contains("did you mean `sobol`?"));
}

#[test]
fn procedures_are_words_or_tables_with_their_own_keys() {
    use crate::spec::{Pbt, Tpe};
    let with = |lines: &str| {
        let lines = format!("epochs = 8\n[search]\n{lines}");
        parse(&SMALL.replace("epochs = 2", &lines)).map(|job| job.search.method)
    };
    let tpe = |startup, batch| SearchMethod::Tpe(Tpe { trials: 30, startup, batch });
    assert_eq!(with("method = \"tpe\"\ntrials = 30").unwrap(), tpe(10, None));
    let table = "method = { name = \"tpe\", startup = 4, batch = 6 }\ntrials = 30";
    assert_eq!(with(table).unwrap(), tpe(4, Some(6)));
    let pbt = Pbt { trials: 12, interval: 2, ..Pbt::default() };
    let table = "method = { name = \"pbt\", interval = 2 }\ntrials = 12";
    assert_eq!(with(table).unwrap(), SearchMethod::Pbt(pbt));
    assert_eq!(with("method = \"ask-tell\"").unwrap(), SearchMethod::AskTell { trials: 1_000 });
    assert_eq!(
        with("method = \"epochs\"\ntrials = 7").unwrap(),
        SearchMethod::Epochs { trials: 7 }
    );
    for method in [tpe(4, Some(6)), tpe(1, None), SearchMethod::Pbt(pbt)] {
        let json = serde_json::to_string(&method).unwrap();
        assert_eq!(serde_json::from_str::<SearchMethod>(&json).unwrap(), method);
    }
    for (lines, told) in [
        ("method = \"tpe\"", "`search.trials` is missing"),
        ("method = { name = \"tp\" }", "did you mean `tpe`?"),
        ("method = { startup = 3 }", "`search.method.name` is missing"),
        (
            "method = { name = \"tpe\", interval = 3 }\ntrials = 4",
            "goes with another procedure; this one takes `startup`, `batch`",
        ),
        ("method = { name = \"random\", batch = 3 }\ntrials = 4", "this one takes none"),
        ("method = { name = \"tpe\", startup = 0 }\ntrials = 4", "`search.method.startup` is 0"),
        ("method = { name = \"tpe\", batch = 0 }\ntrials = 4", "`search.method.batch` is 0"),
        ("method = \"pbt\"\ntrials = 1", "`search.trials` is 1; 2 to 4096 is wanted"),
        ("method = { name = \"pbt\", interval = 8 }\ntrials = 4", "nothing would be replaced"),
        ("method = { name = \"pbt\", quantile = 0.6 }\ntrials = 4", "at most 0.5 is wanted"),
        ("method = { name = \"pbt\", resample = 2 }\ntrials = 4", "0 to 1 is wanted"),
        (
            "method = \"pbt\"\ntrials = 4\nstopping = \"asha\"",
            "`search.stopping` is `\"asha\"`, and `method = \"pbt\"` says itself which trials go on",
        ),
    ] {
        let error = with(lines).unwrap_err().to_string();
        assert!(error.contains(told), "{lines}: {error}");
    }
}

#[test]
fn constraints_are_comparisons_of_keys_that_there_are() {
    let with = |constraints: &str| {
        let lines = format!("epochs = 2\n[search]\nconstraints = {constraints}");
        SMALL.replace("epochs = 2", &lines)
    };
    let search = parse(&with("[\"lr * batch_size < 64\", \"dropout < 1\"]")).unwrap().search;
    let texts: Vec<&str> = search.constraints.iter().map(|one| one.text()).collect();
    assert_eq!(texts, ["lr * batch_size < 64", "dropout < 1"]);
    let json = serde_json::to_value(&search).unwrap();
    assert_eq!(json["constraints"], serde_json::json!(texts));
    assert_eq!(serde_json::from_value::<crate::spec::SearchSpec>(json).unwrap(), search);
    for (constraints, told) in [
        (
            "[\"lr < 1\",\n\"widht < 8\"]",
            "12: `search.constraints[1]` names `widht`, which is no key of this job's trials; there are `arch`, `batch_norm`, `batch_size`, `beta1`, `beta2`, `clip_norm`, `crop`, `decay`, `dropout`, `epochs`, `eps`, `every`, `flip`, `floor`, `gamma`, `hidden`, `label_smoothing`, `loss`, `lr`, `momentum`, `optimizer`, `precision`, `sampling`, `schedule`, `warmup`, `weight_decay`",
        ),
        (
            "[\"batchsize < 8\"]",
            "11: `search.constraints[0]` names `batchsize`, which is no key of this job's trials; did you mean `batch_size`?",
        ),
        (
            "[\"hidden < 8\"]",
            "11: `search.constraints[0]` names `hidden`, a list, which can't be compared",
        ),
        (
            "[\"lr <\", 3, \"lr = 2\"]",
            "11: `search.constraints[0]` has its end at character 5; a number, a key or `(` is wanted\n\
             11: `search.constraints[1]` is a whole number (`3`); a comparison, e.g. `\"width <= 64\"`, is wanted\n\
             11: `search.constraints[2]` has `=` at character 4; `==` compares",
        ),
        (
            "\"lr < 1\"",
            "11: `search.constraints` is a string (`\"lr < 1\"`); a list of comparisons, e.g. `[\"width <= 64\"]`, is wanted",
        ),
    ] {
        assert_eq!(errors_of(&with(constraints)), told);
    }
    let many = format!("[{}]", "\"lr < 1\", ".repeat(33));
    assert_eq!(errors_of(&with(&many)), "11: `search.constraints` has more than 32 entries");
}

#[test]
fn a_search_may_end_before_its_last_epoch() {
    let search =
        |lines: &str| SMALL.replace("epochs = 2", &format!("epochs = 2\n[search]\n{lines}"));
    let breadth = parse(&search("spread = \"breadth\"")).unwrap().search.spread;
    assert_eq!(
        (breadth, parse(&search("")).unwrap().search.spread),
        (Spread::Breadth, Spread::Depth)
    );
    let read = parse(&search("target = 0.95\nwall_time = \"2h\"")).unwrap().search;
    assert_eq!((read.target, read.wall_time), (Some(0.95), Some(Millis(7_200_000))));
    assert!(read.reaches_target(0.95) && read.reaches_target(1.0));
    assert!(!read.reaches_target(0.949) && !read.reaches_target(f64::NAN));
    let read = parse(&search("metric = \"valid/loss\"\ntarget = 2")).unwrap().search;
    assert!(read.reaches_target(2.0) && read.reaches_target(0.0) && !read.reaches_target(2.1));
    let plain = parse(SMALL).unwrap().search;
    assert!(!plain.reaches_target(1.0));
    let written = serde_json::to_string(&plain).unwrap();
    assert_eq!(written, r#"{"method":"grid","metric":"valid/accuracy","goal":"max"}"#);
    for (lines, expected) in [
        (
            "target = 95",
            "11: `search.target` is 95; of `valid/accuracy` a number from 0 to 1 is wanted",
        ),
        (
            "metric = \"valid/loss\"\ntarget = -1",
            "12: `search.target` is -1; of `valid/loss` a number from 0 up is wanted",
        ),
        ("target = \"95%\"", "11: `search.target` is a string (`\"95%\"`); a number is wanted"),
        ("wall_time = \"0s\"", "11: `search.wall_time` is 0: nothing would be trained"),
        (
            "wall_time = \"2 hours\"",
            "11: `search.wall_time` is a string (`\"2 hours\"`); a length of time up to a year is wanted, e.g. `90s`, `10min` or `2h`",
        ),
        (
            "wall_time = 2",
            "11: `search.wall_time` is a whole number (`2`); a length of time, e.g. `\"2h\"`, is wanted",
        ),
    ] {
        assert_eq!(errors_of(&search(lines)), expected);
    }
}

#[test]
fn seeds_are_a_number_or_a_dimension() {
    let of = |seed: &str| parse(&SMALL.replacen("name =", &format!("seed = {seed}\nname ="), 1));
    assert_eq!(of("7").map(|spec| (spec.seed, spec.seeds)).unwrap(), (7, vec![]));
    let spec = of("{ choice = [3, 1, 2] }").unwrap();
    assert_eq!((spec.seed, spec.seeds), (3, vec![3, 1, 2]), "shards are those of the first");
    let plain = serde_json::to_string(&parse(SMALL).unwrap()).unwrap();
    assert!(!plain.contains("seeds"), "jobs of before stay what they are");
    let refused = |seed: &str| of(seed).unwrap_err().to_string();
    for (seed, why) in [
        ("{ choice = [] }", "`seed.choice` is empty; a list of seeds is wanted"),
        ("{ choice = [1, 1] }", "is 1, which is in the list before"),
        ("{ choice = [-1] }", "is -1; a whole number, at least 0, is wanted"),
        ("{ uniform = [1, 2] }", "`seed.uniform`"),
        ("\"x\"", "`seed`"),
    ] {
        let said = refused(seed);
        assert!(said.contains(why), "{seed}: {said}");
    }
}

#[test]
fn labels_may_be_smoothed() {
    let with =
        |lines: &str| parse(&SMALL.replace("epochs = 2", &format!("epochs = 2\n{lines}"))).unwrap();
    let smoothing = |lines: &str| with(lines).training.label_smoothing;
    assert_eq!(smoothing("label_smoothing = 0.1"), Dimension::Fixed(0.1));
    let choice = smoothing("label_smoothing = { choice = [0, 0.1] }");
    assert_eq!(choice, Dimension::Choice(vec![0.0, 0.1]));
    assert!(!choice.is_zero());
    // What says nothing, or what is so anyway, is stored as it was before there was the key.
    let plain = serde_json::to_string(&parse(SMALL).unwrap()).unwrap();
    assert!(!plain.contains("label_smoothing"), "{plain}");
    for said in ["label_smoothing = 0", "loss = \"cross-entropy\"\nlabel_smoothing = 0.0"] {
        assert_eq!(serde_json::to_string(&with(said)).unwrap(), plain);
    }
    assert!(
        smoothing("loss = \"mse\"\nlabel_smoothing = { uniform = [0, 0], points = 1 }").is_zero()
    );
}

#[test]
fn decay_is_of_all_parameters_or_of_matrices() {
    let with = |optimizer: &str| {
        parse(&SMALL.replace("epochs = 2", &format!("epochs = 2\noptimizer = {optimizer}")))
            .unwrap()
    };
    let decay = |optimizer: &str| with(optimizer).training.optimizer.decay;
    assert_eq!(decay("{ name = \"adamw\", decay = \"matrices\" }"), DecayScope::Matrices);
    let choice =
        "{ name = { choice = [\"sgd\", \"adamw\"] }, weight_decay = 0, decay = \"matrices\" }";
    assert_eq!(decay(choice), DecayScope::Matrices);
    // What is so anyway is stored as it was before there was the key.
    let all = with("{ name = \"sgd\", decay = \"all\" }");
    let plain = serde_json::to_string(&with("\"sgd\"")).unwrap();
    assert_eq!(serde_json::to_string(&all).unwrap(), plain);
    assert!(!plain.contains("\"decay\""), "{plain}");
}

#[test]
fn classes_may_have_weights_and_be_drawn_equally_often() {
    let with =
        |lines: &str| parse(&SMALL.replace("epochs = 2", &format!("epochs = 2\n{lines}"))).unwrap();
    let weights = |lines: &str| with(lines).training.class_weights;
    assert_eq!(weights("class_weights = \"balanced\""), ClassWeights::Balanced);
    let table = [("0".to_owned(), 2.0), ("a cat".to_owned(), 0.5)];
    assert_eq!(
        weights("class_weights = { 0 = 2, \"a cat\" = 0.5 }"),
        ClassWeights::Table(table.into())
    );
    let balanced = with("sampling = \"balanced\"").training;
    assert_eq!(balanced.sampling, Dimension::Fixed(Sampling::Balanced));
    let both = with("sampling = { choice = [\"shuffled\", \"balanced\"] }").training.sampling;
    assert_eq!(both, Dimension::Choice(vec![Sampling::Shuffled, Sampling::Balanced]));
    // What says nothing, or what is so anyway, is stored as it was before there were the keys.
    let plain = serde_json::to_string(&parse(SMALL).unwrap()).unwrap();
    assert!(!plain.contains("sampling") && !plain.contains("class_weights"), "{plain}");
    let said = with("class_weights = \"none\"\nsampling = \"shuffled\"");
    assert_eq!(serde_json::to_string(&said).unwrap(), plain);
}

#[test]
fn rules_of_early_stopping_are_words_or_tables() {
    use crate::spec::{Halving, SearchMethod, Stopping};
    let with = |search: &str| {
        let table = format!("epochs = 27\n[search]\n{search}");
        parse(&SMALL.replace("epochs = 2", &table))
    };
    let rule = |stopping: &str| with(&format!("stopping = {stopping}")).unwrap().search.stopping;
    let halving = |reduction, min_epochs| Halving { reduction, min_epochs };
    assert_eq!(with("").unwrap().search.stopping, None);
    assert_eq!(rule("\"asha\""), Some(Stopping::Asha(halving(3, 1))));
    let table = "{ rule = \"sha\", reduction = 4, min_epochs = 2 }";
    assert_eq!(rule(table), Some(Stopping::Sha(halving(4, 2))));
    assert_eq!(rule("\"median\""), Some(Stopping::Median { min_epochs: 1, min_trials: 5 }));
    let table = "{ rule = \"patience\", epochs = 3, min_delta = 0.01 }";
    assert_eq!(rule(table), Some(Stopping::Patience { epochs: 3, min_delta: 0.01 }));
    // Hyperband has as many trials as its brackets take, unless the file says otherwise.
    let random = |search: &str| with(search).unwrap().search.method;
    let hyperband = "method = \"random\"\nstopping = \"hyperband\"";
    assert_eq!(random(hyperband), SearchMethod::Random { trials: 27 + 9 + 6 + 4 });
    assert_eq!(random(&format!("{hyperband}\ntrials = 5")), SearchMethod::Random { trials: 5 });

    let refused = |stopping: &str| with(&format!("stopping = {stopping}")).unwrap_err().to_string();
    for (stopping, expected) in [
        ("\"ahsa\"", "`search.stopping` is `\"ahsa\"`; did you mean `asha`?"),
        ("{ reduction = 3 }", "`search.stopping.rule` is missing"),
        (
            "{ rule = \"median\", reduction = 3 }",
            "`search.stopping.reduction` goes with another rule",
        ),
        ("{ rule = \"asha\", min_epochs = 27 }", "none would be stopped"),
        ("{ rule = \"asha\", reduction = 1 }", "2 to 1000 is wanted"),
        ("{ rule = \"asha\", eta = 3 }", "search.stopping"),
    ] {
        let told = refused(stopping);
        assert!(told.contains(expected), "{told}");
    }
}

#[test]
fn combinations_are_distinct_unless_the_file_says_all() {
    let rule = |optimizer: &str, search: &str| {
        let table = format!("epochs = 2\noptimizer = {{ {optimizer} }}\n[search]\n{search}");
        parse(&SMALL.replace("epochs = 2", &table)).unwrap().search.combinations
    };
    let momenta = "name = { choice = [\"sgd\", \"adam\"] }, momentum = { choice = [0, 0.9] }";
    assert_eq!(rule(momenta, ""), CombinationRule::Distinct);
    assert_eq!(rule(momenta, "combinations = \"distinct\""), CombinationRule::Distinct);
    assert_eq!(rule(momenta, "combinations = \"all\""), CombinationRule::All);
    assert_eq!(rule("name = \"sgd\", momentum = 0.9", ""), CombinationRule::All, "nothing varies");
    let table = "epochs = 2\n[search]\ncombinations = \"every\"";
    let refused = parse(&SMALL.replace("epochs = 2", table)).unwrap_err().to_string();
    assert!(refused.contains("`search.combinations` is `\"every\"`"), "{refused}");
}

#[test]
fn each_configuration_is_repeated_with_a_seed_of_its_own_each_time() {
    let with = |top: &str, search: &str| {
        let table = format!("epochs = 2\n[search]\n{search}");
        parse(&format!("{top}\n{}", SMALL.replace("epochs = 2", &table)))
    };
    let seeds = |top: &str, search: &str| {
        let job = with(top, search).unwrap();
        (job.seed, job.seeds)
    };
    assert_eq!(seeds("seed = 7", "repeat = 3"), (7, vec![7, 8, 9]));
    assert_eq!(seeds("", "repeat = 2"), (0, vec![0, 1]));
    let last = u64::MAX;
    assert_eq!(
        seeds("seed = 18446744073709551614", "repeat = 2"),
        (last - 1, vec![last - 1, last])
    );
    assert_eq!(seeds("seed = 7", "repeat = 1"), (7, Vec::new()), "as if nothing were said");
    for (top, search, told) in [
        ("seed = { choice = [1, 2] }", "repeat = 2", "`search.repeat` can't go with `seed = {"),
        ("", "repeat = 0", "`search.repeat` is 0"),
        (
            "seed = 18446744073709551614",
            "repeat = 3",
            "`search.repeat` is 3, and counts up from `seed`, which is 18446744073709551614: 18446744073709551615 is the last seed there is",
        ),
        ("", "repeat = \"often\"", "`search.repeat` is"),
    ] {
        let refused = with(top, search).unwrap_err().to_string();
        assert!(refused.contains(told), "{refused}");
    }
}

#[test]
fn folds_take_the_place_of_validation_rows() {
    let with = |data: &str, search: &str| {
        let table = format!("epochs = 2\n[search]\n{search}");
        let text =
            SMALL.replace("epochs = 2", &table).replace("[data]\n", &format!("[data]\n{data}\n"));
        parse(&text)
    };
    let job = with("", "folds = 5\nrepeat = 2").unwrap();
    assert_eq!((job.search.folds, &job.data.valid), (Some(5), &Split::Folds));
    assert_eq!(job.trials_per_configuration(), 10);
    assert!(!job.search.refit && with("", "folds = 5\nrefit = true").unwrap().search.refit);
    assert_eq!(with("", "repeat = 2").unwrap().search.folds, None);
    for (data, search, told) in [
        ("", "refit = true", "`search.refit` is for `folds`"),
        ("", "folds = 1", "`search.folds` is 1"),
        ("", "folds = 1000", "`search.folds` is 1000"),
        ("valid = 0.2", "folds = 5", "`data.valid` can't go with `search.folds`"),
        ("shards = 4", "folds = 5", "`search.folds` is 5, and `data.shards` is 4"),
        (
            "",
            "folds = 5\nmethod = \"pbt\"\ntrials = 4",
            "`search.folds` can't go with `method = \"pbt\"`",
        ),
        (
            "",
            "folds = 5\nmethod = \"ask-tell\"",
            "`search.folds` can't go with `method = \"ask-tell\"`",
        ),
    ] {
        let refused = with(data, search).unwrap_err().to_string();
        assert!(refused.contains(told), "{refused}");
    }
}

#[test]
fn a_job_over_the_data_of_one_with_folds_has_folds_too() {
    let job =
        |search: &str| SMALL.replace("epochs = 2", &format!("epochs = 2\n[search]\n{search}"));
    let (plain, folded) = (parse(&job("")).unwrap().data, parse(&job("folds = 3")).unwrap().data);
    assert_eq!(parse_over(&job("folds = 3"), &folded).unwrap().data, folded);
    let refused = parse_over(&job("folds = 3"), &plain).unwrap_err().to_string();
    assert!(refused.contains("needs data without validation rows"), "{refused}");
    let refused = parse_over(&job("repeat = 2"), &folded).unwrap_err().to_string();
    assert!(refused.contains("the data of the earlier job has no validation rows"), "{refused}");
}

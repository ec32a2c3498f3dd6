//! What a good job file means, and what each bad one is told.

mod data;
mod models;

use super::parse;
use crate::spec::{
    AugmentSpace, Channels, CnnSpace, Dimension, Goal, Loss, Metric, MlpSpace, ModelSpace,
    OptimizerName, OrderChoice, Pool, Precision, Replicas, ResnetSpace, Scale, ScheduleName,
    SearchMethod, Share, SourceSpec, Split,
    dimension::{Range, Spread},
};

const SMALL: &str = r#"name = "small"
[data]
train = "x.csv"
label = "y"
[[model]]
arch = "mlp"
hidden = [8]
[training]
epochs = 2
"#;

const FULL: &str = r#"name = "full"
seed = 7
[data]
train = "train"
label = "class"
shape = [1, 8, 8]
scale = 0.0625
valid = "valid.csv"
test = 0.1
shards = 8
[[model]]
arch = "mlp"
hidden = { choice = [[64], []] }
[[model]]
arch = "cnn"
channels = [16, 32]
[training]
epochs = 3
batch_size = { choice = [32, 64] }
loss = "cross-entropy"
clip_norm = { uniform = [0, 1.5], points = 2 }
[training.optimizer]
name = { choice = ["sgd", "adamw"] }
lr = { log_uniform = [1e-4, 1e-2], points = 3 }
momentum = 0.9
[training.schedule]
name = "cosine"
warmup = { int = [0, 2] }
[search]
method = "random"
trials = 5
metric = "valid/loss"
goal = "min"
top_k = 3
[placement]
order = "hop"
reproducible = false
threads = 2
"#;

/// `SMALL` with one text replaced, and what is said about it, a line per problem.
fn told(from: &str, to: &str) -> String {
    assert!(SMALL.contains(from), "{from} isn't in the sample");
    said(&SMALL.replacen(from, to, 1))
}

fn said(text: &str) -> String {
    let error = parse(text).expect_err("the file is bad");
    let lines: Vec<String> =
        error.problems().map(|problem| format!("{}: {problem}", problem.line())).collect();
    lines.join("\n")
}

#[test]
fn a_small_file_gets_the_defaults() {
    let job = parse(SMALL).unwrap();
    assert_eq!((job.name.as_str(), job.seed), ("small", 0));
    assert_eq!(job.data.scale, Scale::None);
    assert_eq!(job.data.valid, Split::Share(0.2));
    assert_eq!((job.data.test, job.data.shards, job.data.shape), (None, None, None));
    assert_eq!(job.training.batch_size, Dimension::Fixed(32));
    assert_eq!(job.training.loss, Loss::CrossEntropy);
    assert_eq!(job.training.optimizer.name, Dimension::Fixed(OptimizerName::Adam));
    assert_eq!(job.training.schedule.name, ScheduleName::Constant);
    assert_eq!(job.search.method, SearchMethod::Grid);
    assert_eq!((job.search.metric, job.search.goal), (Metric::Accuracy, Goal::Max));
    assert_eq!(job.placement.order, OrderChoice::Auto);
    assert!(job.placement.reproducible);
    assert_eq!(job.placement.threads, 1);
}

#[test]
fn every_key_is_read() {
    let job = parse(FULL).unwrap();
    assert_eq!(job.seed, 7);
    assert_eq!(job.data.shape, Some(vec![1, 8, 8]));
    assert_eq!(job.data.scale, Scale::Constant(0.0625));
    assert_eq!(job.data.valid, Split::File("valid.csv".into()));
    assert_eq!((job.data.test, job.data.shards), (Some(Split::Share(0.1)), Some(8)));
    assert_eq!(
        job.models,
        [
            ModelSpace::mlp(Dimension::Choice(vec![vec![64], vec![]])),
            ModelSpace::cnn(Dimension::Fixed(vec![16, 32])),
        ]
    );
    assert_eq!(job.training.batch_size, Dimension::Choice(vec![32, 64]));
    let range = |spread, low, high, points| Range { spread, low, high, points };
    assert_eq!(job.training.clip_norm, Dimension::Range(range(Spread::Uniform, 0.0, 1.5, Some(2))));
    let optimizer = job.training.optimizer;
    assert_eq!(optimizer.name, Dimension::Choice(vec![OptimizerName::Sgd, OptimizerName::Adamw]));
    assert_eq!(optimizer.lr, Dimension::Range(range(Spread::LogUniform, 1e-4, 1e-2, Some(3))));
    assert_eq!(optimizer.momentum, Dimension::Fixed(0.9));
    assert_eq!(job.training.schedule.name, ScheduleName::Cosine);
    assert_eq!(
        job.training.schedule.warmup,
        Dimension::Range(range(Spread::Integer, 0.0, 2.0, None))
    );
    assert_eq!(job.search.method, SearchMethod::Random { trials: 5 });
    assert_eq!((job.search.metric, job.search.goal), (Metric::Loss, Goal::Min));
    assert_eq!(job.search.top_k, Some(3));
    assert_eq!(job.placement.order, OrderChoice::Hop);
    assert!(!job.placement.reproducible);
    assert_eq!(job.placement.threads, 2);
}

#[test]
fn the_jobs_of_the_examples_are_read() {
    let job = parse(include_str!("../../../examples/digits/job.toml")).unwrap();
    assert_eq!((job.name.as_str(), job.models.len()), ("digits", 2));
    let job = parse(include_str!("../../../examples/digits/resnet.toml")).unwrap();
    assert_eq!((job.name.as_str(), job.models.len()), ("digits-deep", 2));
    let job = parse(include_str!("../../../examples/mnist/job.toml")).unwrap();
    assert_eq!((job.name.as_str(), job.models.len()), ("mnist", 2));
    let job = parse(include_str!("../../../examples/cifar10/job.toml")).unwrap();
    assert_eq!((job.name.as_str(), job.models.len()), ("cifar10", 2));
}

#[test]
fn an_optimizer_may_be_a_word_and_adamw_decays_by_default() {
    let job = parse(&SMALL.replace("epochs = 2", "epochs = 2\noptimizer = \"adamw\"")).unwrap();
    assert_eq!(job.training.optimizer.name, Dimension::Fixed(OptimizerName::Adamw));
    assert_eq!(job.training.optimizer.weight_decay, Dimension::Fixed(0.01));
}

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
fn several_problems_are_told_at_once_in_the_order_of_lines() {
    let text = SMALL.replace("epochs = 2", "epoch = 2").replace("label", "lable");
    assert_eq!(
        said(&text),
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
fn unknown_keys_and_tables_get_the_nearest_word_or_their_place() {
    assert_eq!(
        told("[training]", "[trainning]"),
        "1: `training` is missing: a table `[training]`\n\
         8: `trainning` is no known key or table; did you mean `training`?"
    );
    assert_eq!(
        told("epochs = 2", "epochs = 2\nlr = 0.1"),
        "10: `training.lr` is no known key; did you mean `training.optimizer.lr`?"
    );
    assert_eq!(
        told("epochs = 2", "epochs = 2\nseed = 1"),
        "10: `training.seed` is no known key; did you mean `seed` at the top of the file, before the first table?"
    );
    assert_eq!(
        told("[training]", "[zzz]\nq = 1\n[training]"),
        "8: `zzz` is no known key or table; known here: `name`, `seed`, `data`, `model`, `training`, `search`, `placement`"
    );
    assert_eq!(
        told("hidden = [8]", "hidden = { chioce = [[8]] }"),
        "7: `model[0].hidden.chioce` is no known key; did you mean `choice`?\n\
         7: `model[0].hidden` has none; exactly one of `choice`, `uniform`, `log_uniform`, `int` is wanted"
    );
}

#[test]
fn wrong_types_say_what_is_there_and_what_is_wanted() {
    assert_eq!(
        told("epochs = 2", "epochs = \"2\""),
        "9: `training.epochs` is a string (`\"2\"`); a whole number from 1 to 1000000 is wanted"
    );
    assert_eq!(
        told("train = \"x.csv\"", "train = 3"),
        "3: `data.train` is a whole number (`3`); a path or a URL is wanted"
    );
    assert_eq!(
        told("hidden = [8]", "hidden = { choice = [8, 16] }"),
        "7: `model[0].hidden.choice[0]` is a whole number (`8`); a list of whole numbers, e.g. `[64, 32]`, is wanted\n\
         7: `model[0].hidden.choice[1]` is a whole number (`16`); a list of whole numbers, e.g. `[64, 32]`, is wanted"
    );
    assert_eq!(
        told("epochs = 2", "epochs = 2\nbatch_size = [32, 64]"),
        "10: `training.batch_size` is a list; one value is wanted, or to search over several: `{ choice = [...] }`"
    );
    assert_eq!(
        told("[[model]]", "[model]"),
        "5: `model` is one table; write `[[model]]`, with two brackets, for each architecture"
    );
    assert_eq!(
        told("epochs = 2", "epochs = 2\n[placement]\nreproducible = 1"),
        "11: `placement.reproducible` is a whole number (`1`); `true` or `false` is wanted"
    );
    assert_eq!(
        told("name = \"small\"", "name = 1979-05-27"),
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
            "hidden = [8]",
            "hidden = [0]",
            "7: `model[0].hidden[0]` is 0; a whole number from 1 to 1048576 is wanted",
        ),
    ] {
        assert_eq!(told(from, to), wanted);
    }
}

#[test]
fn an_empty_or_impossible_search_is_refused() {
    let lr = |lr: &str| {
        told("epochs = 2", &format!("epochs = 2\noptimizer = {{ name = \"sgd\", lr = {lr} }}"))
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
        "10: `training.optimizer.lr` has `choice`, `int`; exactly one of `choice`, `uniform`, `log_uniform`, `int` is wanted"
    );
    assert_eq!(
        told("hidden = [8]", "hidden = { int = [1, 2] }"),
        "7: `model[0].hidden.int` has no meaning here; `choice` is the way to search over this key"
    );
    assert_eq!(
        told("epochs = 2", "epochs = 2\n[search]\nmethod = \"random\""),
        "10: `search.trials` is missing: how many combinations to draw"
    );
    assert_eq!(
        told("epochs = 2", "epochs = 2\n[search]\nmethod = \"random\"\ntrials = 0"),
        "12: `search.trials` is 0; a whole number from 1 to 1000000 is wanted"
    );
    assert_eq!(
        told("epochs = 2", "epochs = 2\n[search]\nmetric = \"valid/loss\"\ngoal = \"max\""),
        "12: `search.goal` would choose the worst trial: of `valid/loss` less is better"
    );
    assert_eq!(
        told("epochs = 2", "epochs = 2\n[search]\ntrials = 3"),
        "11: `search.trials` goes with `method = \"random\"`; a grid tries every combination"
    );
    let without = SMALL.replace("[[model]]\narch = \"mlp\"\nhidden = [8]\n", "");
    assert_eq!(said(&without), "1: `model` is missing: at least one `[[model]]` table");
    let empty = format!("model = []\n{without}");
    assert_eq!(said(&empty), "1: `model` is empty; at least one `[[model]]` table is wanted");
}

#[test]
fn a_job_says_how_it_stands_to_others() {
    let text =
        format!("{SMALL}[placement]\nreplicas = 3\npriority = -5\nshare = 4\nmax_hosts = 2\n");
    let placement = parse(&text).unwrap().placement;
    assert_eq!(placement.replicas, Replicas::Fixed(3));
    assert_eq!((placement.priority, placement.share), (-5, 4));
    assert_eq!(placement.max_hosts, Some(2));
    let plain = parse(&format!("{SMALL}[placement]\nreplicas = \"demand\"\n")).unwrap();
    assert_eq!(plain, parse(SMALL).unwrap(), "which is what holds anyway");
}

#[test]
fn words_get_the_nearest_one_and_later_features_are_named_as_such() {
    let search = |line: &str| told("epochs = 2", &format!("epochs = 2\n[search]\n{line}"));
    let placement = |line: &str| told("epochs = 2", &format!("epochs = 2\n[placement]\n{line}"));
    assert_eq!(
        told("arch = \"mlp\"", "arch = \"mpl\""),
        "6: `model[0].arch` is `\"mpl\"`; did you mean `mlp`? one of `mlp`, `cnn`, `resnet` is wanted"
    );
    assert_eq!(
        told("epochs = 2", "epochs = 2\noptimizer = \"adm\""),
        "10: `training.optimizer` is `\"adm\"`; did you mean `adam`? one of `sgd`, `adam`, `adamw` is wanted"
    );
    assert_eq!(
        search("method = \"gird\""),
        "11: `search.method` is `\"gird\"`; did you mean `grid`? one of `grid`, `random` is wanted"
    );
    for later in ["tpe", "asha", "hyperband", "pbt"] {
        assert_eq!(
            search(&format!("method = \"{later}\"")),
            format!(
                "11: `search.method` is `\"{later}\"`, which this version has not got; it has `grid` and `random`"
            )
        );
    }
    assert_eq!(
        search("metric = \"accuracy\""),
        "11: `search.metric` is `\"accuracy\"`; did you mean `valid/accuracy`? one of `valid/accuracy`, `valid/top-k`, `valid/f1`, `valid/loss`, `valid/rmse` is wanted"
    );
    assert_eq!(
        placement("order = \"merge\""),
        "11: `placement.order` is `\"merge\"`: merging, which this version has not got; it trains in hop order"
    );
    assert_eq!(
        placement("merge = { rule = \"vc-asgd\" }"),
        "11: `placement.merge` asks for merging, which this version has not got; it trains in hop order"
    );
    assert_eq!(
        placement("replicas = \"demnad\""),
        "11: `placement.replicas` is `\"demnad\"`; did you mean `demand`? one of `demand` is wanted"
    );
    assert_eq!(
        placement("priority = 101"),
        "11: `placement.priority` is 101; at most 100 is possible"
    );
    assert_eq!(
        placement("max_hosts = 0"),
        "11: `placement.max_hosts` is 0; a whole number from 1 to 10000000 is wanted"
    );
    assert_eq!(
        told("label = \"y\"", "label = \"y\"\nshards = \"many\""),
        "5: `data.shards` is `\"many\"`; `\"auto\"` or a whole number from 1 to 65536 is wanted"
    );
    assert_eq!(
        told("x.csv", "htps://example.org/x.csv"),
        "3: `data.train` is `\"htps://example.org/x.csv\"`; did you mean `https`? a path, or a URL of `http`, `https`, `s3` is wanted"
    );
}

#[test]
fn keys_that_contradict_each_other_are_refused() {
    assert_eq!(
        told("epochs = 2", "epochs = 2\nloss = \"mse\"\n[search]\nmetric = \"valid/accuracy\""),
        "12: `search.metric` is `\"valid/accuracy\"`, which needs labels that are classes; with `training.loss = \"mse\"` one of `valid/loss`, `valid/rmse` is wanted"
    );
    assert_eq!(
        told("epochs = 2", "epochs = 2\n[search]\nmetric = \"valid/rmse\""),
        "11: `search.metric` is `\"valid/rmse\"`, which needs labels that are numbers; with `training.loss = \"cross-entropy\"` one of `valid/accuracy`, `valid/top-k`, `valid/f1`, `valid/loss` is wanted"
    );
    assert_eq!(
        told("epochs = 2", "epochs = 2\nloss = \"mse\"\n[search]\ntop_k = 3"),
        "12: `search.top_k` needs classes; `training.loss` is `\"mse\"`"
    );
    assert_eq!(
        told("arch = \"mlp\"", "arch = \"resnet\"\ndepth = 11"),
        "6: `model[0].arch` is `\"resnet\"`, which needs `data.shape = [channels, height, width]`\n\
         8: `model[0].hidden` is a key of `arch = \"mlp\"` and `arch = \"cnn\"`"
    );
    assert_eq!(
        told("arch = \"mlp\"\nhidden = [8]", "arch = \"cnn\"\nchannels = [8]"),
        "6: `model[0].arch` is `\"cnn\"`, which needs `data.shape = [channels, height, width]`"
    );
    assert_eq!(
        told("epochs = 2", "epochs = 2\noptimizer = { name = \"adam\", momentum = 0.9 }"),
        "10: `training.optimizer.momentum` is no key of this optimiser"
    );
    assert_eq!(
        told("epochs = 2", "epochs = 2\nschedule = { name = \"cosine\", gamma = 0.5 }"),
        "10: `training.schedule.gamma` is a key of the schedule `step`"
    );
}

#[test]
fn syntax_errors_and_duplicates_name_their_line() {
    assert!(told("epochs = 2", "epochs = = 2").starts_with("9: no valid TOML here: "));
    let twice = told("epochs = 2", "epochs = 2\nepochs = 3");
    assert!(twice.starts_with("10: no valid TOML here: duplicate key"), "{twice}");
    assert!(said("").starts_with("1: `name` is missing"));
    assert!(said("\u{0}").starts_with("1: "));
}

proptest::proptest! {
    /// Whatever the text, there is a job or a refusal with a line of the text; never a panic.
    #[test]
    fn no_text_is_left_without_an_answer(text in "(name|seed|\\[data\\]|\\[\\[model\\]\\]|=|\\{|\\}|\\[|\\]|\"|1|\\.|\n| |choice|é){0,60}") {
        if let Err(error) = parse(&text) {
            proptest::prop_assert!(error.line() >= 1);
            proptest::prop_assert!(error.line() <= text.split('\n').count());
        }
    }
}

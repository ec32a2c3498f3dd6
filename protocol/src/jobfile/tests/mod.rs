//! Good job files and their meaning, bad ones and their messages.

mod columns;
mod conditions;
mod data;
mod dimensions;
mod faults;
mod formulas;
mod graphs;
mod merge;
mod models;
mod placement;
mod search;

use super::parse;
use crate::spec::{
    AugmentSpace, CategoriesSpec, Channels, ClassWeights, CnnSpace, Coding, Columns, DecayScope,
    Dimension, Goal, Loss, Metric, Missing, MlpSpace, ModelSpace, OptimizerName, OrderChoice, Pool,
    Precision, Ratio, Replicas, ResnetSpace, Sampling, Scale, ScaleLabel, ScheduleName,
    SearchMethod, Separator, ShardSizes, SourceSpec, Split,
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
fn errors_with(from: &str, to: &str) -> String {
    assert!(SMALL.contains(from), "{from} isn't in the sample");
    errors_of(&SMALL.replacen(from, to, 1))
}

fn errors_of(text: &str) -> String {
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
    assert_eq!(job.data.valid, Split::Ratio(0.2));
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
    assert_eq!((job.data.test, job.data.shards), (Some(Split::Ratio(0.1)), Some(8)));
    assert_eq!(
        job.models,
        [
            ModelSpace::mlp(Dimension::Choice(vec![vec![64], vec![]])),
            ModelSpace::cnn(Dimension::Fixed(vec![16, 32])),
        ]
    );
    assert_eq!(job.training.batch_size, Dimension::Choice(vec![32, 64]));
    let range = |spread, low, high, points| Range { points, ..Range::new(spread, low, high) };
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
    let job = parse(include_str!("../../../../examples/digits/job.toml")).unwrap();
    assert_eq!((job.name.as_str(), job.models.len()), ("digits", 2));
    let job = parse(include_str!("../../../../examples/digits/resnet.toml")).unwrap();
    assert_eq!((job.name.as_str(), job.models.len()), ("digits-deep", 2));
    let job = parse(include_str!("../../../../examples/mnist/job.toml")).unwrap();
    assert_eq!((job.name.as_str(), job.models.len()), ("mnist", 2));
    let job = parse(include_str!("../../../../examples/cifar10/job.toml")).unwrap();
    assert_eq!((job.name.as_str(), job.models.len()), ("cifar10", 2));
}

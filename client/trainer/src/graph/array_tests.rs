//! Arrays of a graph's evaluation: added up over chunks and shards, and refused where they aren't what the graph says.

use super::tests::{Nodes, architecture, evaluate_over, graph_with, initial, mlp_outputs};
use crate::{
    data::Shards,
    fixture::{TORCH_RNG, World, context, mlp},
    unit,
};
use serde_json::{Value, json};
use sojourn_protocol::{
    metrics::{ByClass, ClassDetail, Counting},
    report::Evaluated,
    trainer::TrainerLine,
    unit::{Evaluation, Unit},
};
use std::{ops::ControlFlow, time::Duration};
use tch::Device;

/// A number that is 1 where a class is that of its column, `[rows, 3]`.
fn hot(nodes: &mut Nodes, classes: &Value) -> Value {
    let all = nodes.add("aten.arange.default", json!([3]));
    let column = nodes.add("aten.unsqueeze.default", json!([classes, 1]));
    let same = nodes.add("aten.eq.Tensor", json!([column, all]));
    nodes.add("aten.to.dtype", json!([same, {"dtype": "F32"}]))
}

/// The confusion matrix as a sum, times `factor`.
fn pairs(factor: Value) -> impl Fn(&mut Nodes, &Value, &mut Value) {
    move |nodes, best, sums| {
        let labels = hot(nodes, &json!({"c": "y"}));
        let (labels, best) = (nodes.add("aten.t.default", json!([labels])), hot(nodes, best));
        let pairs = nodes.add("aten.matmul.default", json!([labels, best]));
        sums["pairs"] = nodes.add("aten.mul.Tensor", json!([pairs, factor]));
    }
}

/// The results of an evaluation over the same shard twice, in chunks of few rows: the graph's, and those of the built-in model.
fn evaluated(factor: Value, shape: &[u64]) -> Result<(Evaluated, Evaluated), String> {
    let mut world = World::new();
    let file = graph_with(&mlp(), &mlp_outputs, &pairs(factor), json!({"pairs": shape}));
    let built_in = world.hop(context(mlp()));
    // So wide a model is given three rows at once.
    let model = architecture(&mut world, &file, 1 << 20);
    let hop = world.hop(context(model));
    let checkpoint = world.put(&initial(&hop, &file));
    let shards = vec![world.shard; 2];
    let of_graph = evaluate_over(&world, &hop.context, checkpoint, shards.clone());
    let of_graph = of_graph.map_err(|error| error.to_failure().message)?;
    let by_class = ClassDetail::Confusion;
    let evaluation = Evaluation {
        job: built_in.job,
        trial: built_in.trial,
        epoch: sojourn_protocol::ids::Epoch(0),
        version: sojourn_protocol::ids::Version(1),
        checkpoint: world.put(&initial(&built_in, &[])),
        shards,
        split: sojourn_protocol::manifest::DataSplit::Valid,
        counting: Counting { by_class, ..Counting::default() },
        context: built_in.context,
    };
    let request = world.request(Unit::Evaluate(evaluation));
    let _alone = TORCH_RNG.lock();
    let line = unit::run(&request, &mut Shards::on(Device::Cpu), &mut |_| {
        ControlFlow::Continue(Duration::ZERO)
    });
    let Ok(TrainerLine::Evaluated(counted)) = line else { panic!("{line:?}") };
    Ok((of_graph, counted))
}

#[test]
fn a_matrix_is_added_up_over_chunks_and_shards_to_that_of_the_built_in_model() {
    let (of_graph, counted) = evaluated(json!(1), &[3, 3]).unwrap();
    let Some(ByClass::Confusion(matrix)) = &counted.by_class else { panic!("{counted:?}") };
    let pairs = &of_graph.arrays["pairs"];
    let expected = matrix.0.concat();
    assert_eq!(pairs.shape, [3, 3]);
    assert_eq!(pairs.numbers, expected.iter().map(|count| *count as f64).collect::<Vec<_>>());
    assert_eq!(expected.iter().sum::<u64>(), of_graph.sums().rows);
    assert_eq!(pairs.macro_f1(), counted.by_class.as_ref().map(ByClass::macro_f1));
    assert!(of_graph.shards.iter().all(|sums| !sums.named.contains_key("pairs")));
    assert_eq!(of_graph.by_class, None);
    let without = Evaluated { arrays: [].into(), ..of_graph.clone() };
    assert_ne!(of_graph.digest(), without.digest(), "verification compares arrays too");
}

#[test]
fn an_array_that_is_not_what_the_graph_says_is_refused() {
    let told = evaluated(json!(1), &[9]).unwrap_err();
    assert_eq!(told, "the graph's sum `pairs` is [3, 3] instead of [9]");
    let told = evaluated(json!({"float": "inf"}), &[3, 3]).unwrap_err();
    assert!(told.contains("the sum `pairs` of the evaluation has"), "{told}");
}

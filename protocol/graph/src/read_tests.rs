//! Files that are read, refused, and mutated.

use super::*;
use crate::argument::{Argument, Whole};
use proptest::prelude::*;
use serde_json::{Value, json};
use sojourn_codec::encode;
use sojourn_protocol::digest::{BlobRef, Digest};
use std::sync::Arc;

/// A small model with everything: a constant, given numbers, a buffer, whole numbers, several results, two stages.
fn example() -> Value {
    json!({
        "graph": 1, "torch": "2.11.0",
        "columns": {"x": ["F32", [4]], "y": ["I64", []]},
        "tensors": [
            {"name": "w", "dtype": "F32", "shape": [3, 4], "role": "parameter", "start": {"fan_in": 4}},
            {"name": "seen", "dtype": "I64", "shape": [], "role": "buffer", "start": "zeros"},
            {"name": "mask", "dtype": "F32", "shape": [4], "role": "constant"},
            {"name": "v", "dtype": "F32", "shape": [2], "role": "parameter", "start": "given"}
        ],
        "train": [
            {"nodes": [
                {"op": "aten.add_.Tensor", "args": [{"t": "seen"}, 1], "no_grad": true},
                {"op": "aten.mul.Tensor", "args": [{"c": "x"}, {"t": "mask"}]},
                {"op": "aten.linear.default", "args": [{"n": 1}, {"t": "w"}]},
                {"op": "aten.relu_.default", "args": [{"n": 2}]},
                {"op": "sym.size", "args": [{"c": "y"}, 0]},
                {"op": "aten.view.default", "args": [{"n": 3}, [{"n": 4}, 3]]},
                {"op": "aten.cross_entropy_loss.default", "args": [{"n": 5}, {"c": "y"}]}
            ], "loss": {"n": 6}, "moves": ["w"]},
            {"nodes": [{"op": "aten.sum.default", "args": [{"t": "v"}]}], "loss": {"n": 0}, "moves": ["v"]}
        ],
        "evaluate": {"nodes": [
            {"op": "aten.linear.default", "args": [{"c": "x"}, {"t": "w"}]},
            {"op": "aten.max.dim", "args": [{"n": 0}, 1]},
            {"op": "aten.eq.Tensor", "args": [{"n": 1, "i": 1}, {"c": "y"}]},
            {"op": "aten.sum.default", "args": [{"n": 2}], "kwargs": {"dtype": {"dtype": "F64"}}},
            {"op": "aten.cross_entropy_loss.default", "args": [{"n": 0}, {"c": "y"}, null, 2]}
        ], "sums": {"loss": {"n": 4}, "accuracy": {"n": 3}}},
        "predict": {"nodes": [
            {"op": "aten.chunk.default", "args": [{"c": "x"}, 2, 1]},
            {"op": "aten.cat.default", "args": [{"n": 0}, 1]},
            {"op": "aten.cat.default", "args": [[{"n": 1}, {"n": 0, "i": 1}], 1]}
        ], "outputs": {"n": 2}}
    })
}

/// The file of this JSON, with the example's numbers.
fn file(json: &Value) -> Vec<u8> {
    file_of(serde_json::to_string(json).unwrap().as_bytes())
}

fn file_of(json: &[u8]) -> Vec<u8> {
    encode(&[
        Tensor::f32("constant.mask", [4], &[0.0, 1.0, 1.0, 0.0]),
        Tensor::f32("given.v", [2], &[0.5, 1.5]),
        Tensor::u8("graph", [json.len() as u64], json),
    ])
    .unwrap()
}

/// The error of the example after a change at a JSON pointer.
fn changed(pointer: &str, value: Value) -> String {
    let mut json = example();
    *json.pointer_mut(pointer).unwrap_or_else(|| panic!("{pointer}")) = value;
    let error = Graph::read(&file(&json)).map(|_| ()).unwrap_err();
    sojourn_protocol::error::error_chain(&error)
}

#[test]
fn a_graph_is_read_with_its_defaults() {
    let graph = Graph::read(&file(&example())).unwrap();
    assert_eq!(graph.constants, [Tensor::f32("mask", [4], &[0.0, 1.0, 1.0, 0.0])]);
    let [first, second] = graph.train.as_slice() else { panic!("{graph:?}") };
    assert_eq!((first.moves.as_slice(), second.moves.as_slice()), (&[0][..], &[1][..]));
    assert_eq!(first.loss, Source::Node(6));
    let add = &first.list.nodes[0];
    assert!(add.no_grad && add.operator.name == "aten.add_.Tensor");
    let one = Argument::Whole(Whole::Number(1));
    assert_eq!(add.arguments, [Argument::Tensor(Source::Tensor(1)), one.clone(), one]);
    let linear = &first.list.nodes[2];
    assert_eq!(linear.arguments[2], Argument::Nothing);
    assert_eq!(graph.evaluate.sums.keys().collect::<Vec<_>>(), ["accuracy", "loss"]);
    assert!(graph.evaluate.shapes.is_empty());
    assert_eq!(graph.predict.unwrap().list.nodes[1].arguments[0], Argument::AllOf(0));
}

#[test]
fn a_column_that_is_changed_in_place_is_told() {
    let mut json = example();
    let nodes = json!([
        {"op": "aten.view.default", "args": [{"c": "x"}, [-1, 2, 2]]},
        {"op": "aten.dropout.default", "args": [{"n": 0}, 0.5, false]},
        {"op": "aten.relu_.default", "args": [{"n": 1}]}
    ]);
    *json.pointer_mut("/predict/nodes").unwrap() = nodes;
    let graph = Graph::read(&file(&json)).unwrap();
    assert_eq!(graph.predict.unwrap().list.changed_columns, BTreeSet::from([0]));
    assert!(graph.evaluate.list.changed_columns.is_empty());
    // Through all tensors of a list, which may be one alone.
    let nodes = json!([
        {"op": "aten.chunk.default", "args": [{"c": "x"}, 1, 0]},
        {"op": "aten.einsum.default", "args": [{"text": "ab->ab"}, {"n": 0}]},
        {"op": "aten.zero_.default", "args": [{"n": 1}]}
    ]);
    *json.pointer_mut("/predict/nodes").unwrap() = nodes;
    let graph = Graph::read(&file(&json)).unwrap();
    assert_eq!(graph.predict.unwrap().list.changed_columns, BTreeSet::from([0]));
}

#[test]
fn what_the_format_does_not_allow_is_refused_in_words() {
    for (pointer, value, expected) in [
        ("/graph", json!(2), "a graph of version 2"),
        ("/torch", json!(2), "invalid type"),
        ("/columns/x/0", json!("U64"), "column `x` is of a type that no batch has"),
        ("/columns", json!({"a b": ["F32", []]}), "column `a b` can't be a name in Python"),
        ("/columns", json!({"z": ["F32", []]}), "no column `x`"),
        ("/tensors/0/name", json!("lineage"), "has a name that a checkpoint's tensor can't have"),
        ("/tensors/1/name", json!("w"), "is there twice"),
        ("/tensors/0/dtype", json!("F64"), "not in single precision"),
        ("/tensors/2/name", json!("other"), "tensor `other` has no numbers in the file"),
        ("/tensors/3/shape", json!([3]), "another type or shape in the file"),
        ("/tensors/3/start", json!("ones"), "the file has tensors that the graph doesn't"),
        ("/tensors/0/shape", json!([1u64 << 32, 1u64 << 32]), "is too large"),
        ("/train", json!([]), "`train` has no stage"),
        ("/train/0/moves", json!([]), "is empty"),
        ("/train/0/moves", json!(["v", "w"]), "out of order"),
        ("/train/0/moves", json!(["seen"]), "has no parameter `seen`"),
        ("/train/0/loss", json!({"n": 7}), "node 7 isn't before it"),
        ("/train/0/loss", json!({"n": 4}), "node 4 gives a whole number"),
        ("/train/0/loss", json!({"n": 6, "i": 0}), "node 6 gives no tensor 0"),
        ("/train/0/nodes/2/op", json!("aten.as_strided.default"), "is no operator"),
        ("/train/0/nodes/2/args/0", json!({"n": 2}), "node 2 isn't before it"),
        ("/train/0/nodes/2/args/1", json!({"t": "u"}), "no tensor `u`"),
        ("/train/0/nodes/2/args/1", json!(null), "it can't be left out"),
        ("/train/0/nodes/2/args/1", json!(1.5), "something that is no tensor"),
        ("/train/0/nodes/2/args", json!([{"n": 1}]), "lacks `weight`"),
        ("/train/0/nodes/3/args", json!([{"n": 2}, 1]), "too many arguments"),
        ("/train/0/nodes/0/args/0", json!({"t": "w"}), "changes a parameter or constant itself"),
        ("/train/0/nodes/0/args/0", json!({"t": "mask"}), "changes a parameter or constant itself"),
        ("/train/0/nodes/5/args/1", json!([{"n": 3}, 3]), "node 3 gives no whole number"),
        ("/train/0/nodes/5/args/1", json!([[1]]), "a list in a list"),
        ("/train/0/nodes/5/args/1", json!([1.5]), "it must be a whole number"),
        (
            "/evaluate/nodes/0",
            json!({"op": "aten.add_.Tensor", "args": [{"t": "seen"}, 1]}),
            "which only training may",
        ),
        ("/evaluate/nodes/1/args/1", json!("x"), "invalid type"),
        ("/evaluate/nodes/3/kwargs", json!({"generator": null}), "takes no `generator`"),
        (
            "/evaluate/nodes/3/kwargs/dtype",
            json!({"dtype": "U64"}),
            "a type that PyTorch computes with",
        ),
        ("/evaluate/sums", json!({"accuracy": {"n": 3}}), "`sums` has no `loss`"),
        ("/evaluate/sums/loss", json!({"n": 1}), "node 1 gives several tensors"),
        ("/predict/nodes/0/args/0", json!({"c": "z"}), "no column `z`"),
        ("/predict/outputs", json!({"n": 0, "t": "w"}), "an argument of two kinds"),
        ("/predict/outputs", json!({"j": 1}), "unknown"),
    ] {
        let said = changed(pointer, value.clone());
        assert!(said.contains(expected), "{pointer} = {value}: `{said}`");
    }
    let twice = serde_json::to_string(&example()).unwrap();
    let twice = twice.replace(r#""sums":{"#, r#""sums":{"loss":{"n":4},"#);
    let error = Graph::read(&file_of(twice.as_bytes())).unwrap_err().to_string();
    assert!(error.contains("there twice"), "{error}");
}

#[test]
fn more_than_a_graph_may_have_is_refused() {
    let node = json!({"op": "aten.relu.default", "args": [{"c": "x"}]});
    let nodes = Value::Array(vec![node; 100_000]);
    assert_eq!(changed("/predict/nodes", nodes), "a graph may have 100000 nodes at most");
    let sums: serde_json::Map<_, _> = (0..65).map(|n| (format!("{n}"), json!({"n": 4}))).collect();
    assert_eq!(changed("/evaluate/sums", sums.into()), "a graph may have 64 sums at most");
}

#[test]
fn sums_may_be_arrays_whose_shapes_are_said_and_bounded() {
    let with = |shapes: Value| {
        let mut json = example();
        json["evaluate"]["sums"]["pairs"] = json!({"n": 3});
        json["evaluate"]["shapes"] = shapes;
        Graph::read(&file(&json))
    };
    let graph = with(json!({"pairs": [256, 256]})).unwrap();
    assert_eq!(graph.evaluate.shapes, [("pairs".to_owned(), vec![256, 256])].into());
    for (shapes, expected) in [
        (json!({"pairs": [256, 257]}), "sum `pairs` is too large"),
        (json!({"pairs": [u64::MAX, u64::MAX]}), "sum `pairs` is too large"),
        (json!({"pairs": []}), "sum `pairs` has a shape that no array"),
        (json!({"pairs": [0]}), "sum `pairs` has a shape that no array"),
        (json!({"loss": [1]}), "sum `loss` must be one number"),
        (json!({"other": [1]}), "sum `other` has a shape, and is no sum"),
        (json!({"pairs": [-1]}), "invalid value"),
        (json!({"pairs": 3}), "invalid type"),
    ] {
        let error = sojourn_protocol::error::error_chain(&with(shapes.clone()).unwrap_err());
        assert!(error.contains(expected), "{shapes}: {error}");
    }
}

#[test]
fn the_summary_of_a_unit_must_be_the_files() {
    let graph = Graph::read(&file(&example())).unwrap();
    let summary = graph.summary(BlobRef { sha256: Digest::of(b""), bytes: 0 }, 0, 0);
    assert_eq!(graph.agrees_with(&summary), Ok(()));
    let with = |tensors: &[GraphTensor]| ExportedGraph {
        tensors: Arc::new(tensors.to_vec()),
        ..summary.clone()
    };
    let mut tensors = summary.tensors.to_vec();
    assert!(graph.agrees_with(&with(&tensors[1..])).is_err());
    tensors[0].shape = vec![4, 3];
    let error = graph.agrees_with(&with(&tensors)).unwrap_err();
    assert_eq!(error.to_string(), "tensor `w` isn't the same in the unit and in the file");
    let mut others = summary;
    others.columns.clear();
    let error = graph.agrees_with(&others).unwrap_err();
    assert_eq!(error.to_string(), "`columns` aren't the same in the unit and in the file");
}

/// JSON of any form, with the words of the format in it.
fn any_json() -> impl Strategy<Value = Value> {
    let word = prop::sample::select(vec![
        "n", "i", "t", "c", "w", "x", "dtype", "F32", "op", "args", "inf", "loss",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-3i64..8).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        word.clone().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 20, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(word.clone().prop_map(str::to_owned), inner, 0..3)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// All places of a JSON value.
fn pointers(value: &Value, at: String, into: &mut Vec<String>) {
    match value {
        Value::Array(list) => {
            for (n, inner) in list.iter().enumerate() {
                pointers(inner, format!("{at}/{n}"), into);
            }
        }
        Value::Object(map) => {
            for (key, inner) in map {
                pointers(inner, format!("{at}/{key}"), into);
            }
        }
        _ => {}
    }
    into.push(at);
}

/// Does every node refer to what is before it, with one argument for each parameter?
fn is_sound(graph: &Graph) -> bool {
    let list = |list: &NodeList| {
        list.nodes.iter().enumerate().all(|(at, node)| {
            let before = |node: &usize| *node < at;
            let whole = |whole: &Whole| !matches!(whole, Whole::Node(node) if *node >= at);
            let source = |source: &Source| match source {
                Source::Node(node) | Source::Item { node, .. } => before(node),
                Source::Tensor(index) => *index < graph.tensors.len(),
                Source::Column(index) => *index < graph.columns.len(),
            };
            node.arguments.len() == node.operator.parameters.len()
                && node.arguments.iter().all(|argument| match argument {
                    Argument::Tensor(of) => source(of),
                    Argument::Tensors(all) => all.iter().flatten().all(source),
                    Argument::AllOf(node) => before(node),
                    Argument::Whole(of) => whole(of),
                    Argument::Wholes(all) => all.iter().all(whole),
                    _ => true,
                })
        })
    };
    let stages = graph.train.iter().map(|stage| &stage.list);
    let rest = graph.predict.iter().map(|predict| &predict.list);
    stages.chain(rest).chain([&graph.evaluate.list]).all(list)
}

proptest! {
    #[test]
    fn any_json_is_refused_or_sound(json in any_json()) {
        if let Ok(graph) = Graph::read(&file(&json)) {
            prop_assert!(is_sound(&graph));
        }
    }

    #[test]
    fn a_changed_graph_is_refused_or_sound(json in any_json(), at in any::<prop::sample::Index>()) {
        let mut graph = example();
        let mut places = Vec::new();
        pointers(&graph, String::new(), &mut places);
        *graph.pointer_mut(at.get::<String>(&places)).unwrap() = json;
        if let Ok(graph) = Graph::read(&file(&graph)) {
            prop_assert!(is_sound(&graph));
        }
    }

    #[test]
    fn mutated_bytes_are_refused_or_sound(at in any::<prop::sample::Index>(), byte in any::<u8>(), cut in any::<bool>()) {
        let mut bytes = file(&example());
        let at = at.index(bytes.len());
        if cut { bytes.truncate(at) } else { bytes[at] = byte }
        if let Ok(graph) = Graph::read(&bytes) {
            prop_assert!(is_sound(&graph));
        }
    }
}

//! Graphs that are put together by hand: those of built-in models, which train to the very bytes of these, and refusals.

use crate::{
    data::Shards,
    error::TrainError,
    fixture::{TORCH_RNG, World, cnn, context, mlp},
    predict::{LastModel, predict},
    unit,
};
use serde_json::{Value, json};
use sojourn_codec::{Tensor as Stored, decode, encode};
use sojourn_model::TrialModel;
use sojourn_protocol::{
    digest::BlobRef,
    ids::{Epoch, JobId, TrialId, Version},
    manifest::{DataSplit, Shard},
    metrics::Counting,
    report::{Evaluated, Sums},
    spec::{
        Architecture, DecayScope, Graph, GraphRole, GraphTensor, Optimizer, OptimizerName,
        Precision,
    },
    trainer::{Predict, TrainerLine},
    unit::{Base, Evaluation, Hop, TrialContext, Unit},
};
use std::{collections::BTreeMap, fs, ops::ControlFlow, sync::Arc, time::Duration};
use tch::Device;

#[test]
fn every_operator_of_the_table_can_be_called() {
    for name in sojourn_graph::operators() {
        for written in [false, true] {
            assert!(super::operators::find(name, written).is_some(), "{name}");
        }
    }
    assert!(super::operators::find("aten.as_strided.default", false).is_none());
}

/// Nodes in the making.
#[derive(Default)]
pub(super) struct Nodes(Vec<Value>);

impl Nodes {
    /// Adds a node, and gives the argument that stands for it.
    pub(super) fn add(&mut self, op: &str, args: Value) -> Value {
        self.0.push(json!({"op": op, "args": args}));
        json!({"n": self.0.len() - 1})
    }
}

/// The graph file of a built-in model, put together by hand: its tensors, and nodes for the outputs.
fn graph_of(model: &Architecture, outputs: &dyn Fn(&mut Nodes) -> Value) -> Vec<u8> {
    graph_with(model, outputs, &|_, _, _| (), json!({}))
}

/// The same with further sums, of the outputs and the largest of each row, and the shapes of those that are arrays.
pub(super) fn graph_with(
    model: &Architecture,
    outputs: &dyn Fn(&mut Nodes) -> Value,
    more: &dyn Fn(&mut Nodes, &Value, &mut Value),
    shapes: Value,
) -> Vec<u8> {
    let list = |more: &dyn Fn(&mut Nodes, Value) -> Value| {
        let mut nodes = Nodes::default();
        let outputs = outputs(&mut nodes);
        let result = more(&mut nodes, outputs);
        (nodes.0, result)
    };
    let y = || json!({"c": "y"});
    let (train, loss) =
        list(&|nodes, of| nodes.add("aten.cross_entropy_loss.default", json!([of, y()])));
    let (evaluate, sums) = list(&|nodes, of| {
        let loss = nodes.add("aten.cross_entropy_loss.default", json!([of, y(), null, 2]));
        let best = nodes.add("aten.argmax.default", json!([of, 1]));
        let right = nodes.add("aten.eq.Tensor", json!([best, y()]));
        let accuracy = nodes.add("aten.sum.default", json!([right]));
        let mut sums = json!({"loss": loss, "accuracy": accuracy});
        more(nodes, &best, &mut sums);
        sums
    });
    let (predict, outputs) = list(&|_, of| of);
    file(&json!({
        "graph": 1, "torch": "2.11.0",
        "columns": {"x": ["F32", [1, 4, 4]], "y": ["I64", []]},
        "tensors": tensors_of(model),
        "train": [{"nodes": train, "loss": loss}],
        "evaluate": {"nodes": evaluate, "sums": sums, "shapes": shapes},
        "predict": {"nodes": predict, "outputs": outputs}
    }))
}

fn tensors_of(model: &Architecture) -> Vec<GraphTensor> {
    let model = TrialModel::of(model, &[1, 4, 4], 3).unwrap();
    let of = |tensor: &sojourn_model::Parameter| GraphTensor {
        name: tensor.name.clone(),
        dtype: tensor.dtype,
        shape: tensor.shape.clone(),
        role: GraphRole::Parameter,
        start: Some(tensor.start),
    };
    model.parameters().iter().map(of).collect()
}

fn file(json: &Value) -> Vec<u8> {
    let json = serde_json::to_vec(json).unwrap();
    encode(&[Stored::u8("graph", [json.len() as u64], &json)]).unwrap()
}

pub(super) fn mlp_outputs(nodes: &mut Nodes) -> Value {
    let mut flow = nodes.add("aten.flatten.using_ints", json!([{"c": "x"}, 1]));
    for layer in 0..3 {
        let [weight, bias] =
            ["weight", "bias"].map(|name| json!({"t": format!("layers.{layer}.{name}")}));
        flow = nodes.add("aten.linear.default", json!([flow, weight, bias]));
        if layer < 2 {
            flow = nodes.add("aten.relu_.default", json!([flow]));
        }
    }
    flow
}

fn cnn_outputs(nodes: &mut Nodes) -> Value {
    let mut flow = json!({"c": "x"});
    for layer in 0..2 {
        let [weight, bias] =
            ["weight", "bias"].map(|name| json!({"t": format!("layers.{layer}.{name}")}));
        flow = nodes.add("aten.conv2d.default", json!([flow, weight, bias, [1, 1], [1, 1]]));
        flow = nodes.add("aten.relu_.default", json!([flow]));
        flow = nodes.add("aten.max_pool2d.default", json!([flow, [2, 2], [2, 2]]));
    }
    let flow = nodes.add("aten.flatten.using_ints", json!([flow, 1]));
    nodes
        .add("aten.linear.default", json!([flow, {"t": "layers.2.weight"}, {"t": "layers.2.bias"}]))
}

/// The architecture of a graph file, which is put among the files.
pub(super) fn architecture(world: &mut World, file: &[u8], widest: u64) -> Architecture {
    let graph = sojourn_graph::Graph::read(file).unwrap();
    let exported = graph.summary(world.put(file), 1, widest);
    let entry = "model.py:Model".into();
    Architecture::Graph(Graph { entry, values: BTreeMap::new(), exported: Some(exported) })
}

/// The built-in models, each with its graph's file.
fn pairs() -> [(Architecture, Vec<u8>); 2] {
    [(mlp(), graph_of(&mlp(), &mlp_outputs)), (cnn(), graph_of(&cnn(), &cnn_outputs))]
}

pub(super) fn evaluate(world: &World, context: &Arc<TrialContext>, checkpoint: BlobRef) -> Sums {
    evaluate_over(world, context, checkpoint, vec![world.shard]).unwrap().shards[0].clone()
}

/// An evaluation over these shards.
pub(super) fn evaluate_over(
    world: &World,
    context: &Arc<TrialContext>,
    checkpoint: BlobRef,
    shards: Vec<Shard>,
) -> Result<Evaluated, TrainError> {
    let evaluation = Evaluation {
        job: JobId(1),
        trial: TrialId(2),
        epoch: Epoch(0),
        version: Version(1),
        checkpoint,
        shards,
        split: DataSplit::Valid,
        counting: Counting::default(),
        context: Arc::clone(context),
    };
    let request = world.request(Unit::Evaluate(evaluation));
    let mut shards = Shards::on(Device::Cpu);
    let _alone = TORCH_RNG.lock();
    let line = unit::run(&request, &mut shards, &mut |_| ControlFlow::Continue(Duration::ZERO))?;
    let TrainerLine::Evaluated(evaluated) = line else { panic!("not evaluated") };
    Ok(evaluated)
}

#[test]
fn graphs_of_built_in_models_train_to_their_bytes_wherever_they_are_cut() {
    for (model, file) in pairs() {
        for (name, momentum, precision, decay) in [
            (OptimizerName::Sgd, 0.0, Precision::F32, DecayScope::All),
            (OptimizerName::Sgd, 0.9, Precision::F32, DecayScope::Matrices),
            (OptimizerName::Adam, 0.0, Precision::F32, DecayScope::All),
            (OptimizerName::Adamw, 0.0, Precision::F32, DecayScope::All),
            (OptimizerName::Adamw, 0.0, Precision::F32, DecayScope::Matrices),
            (OptimizerName::Adam, 0.0, Precision::Bf16, DecayScope::Matrices),
        ] {
            let mut world = World::new();
            let mut built_in = context(model.clone());
            let training = &mut built_in.config.training;
            training.optimizer =
                Optimizer { name, momentum, weight_decay: 0.01, decay, ..training.optimizer };
            training.precision = precision;
            let mut of_graph = built_in.clone();
            of_graph.config.model = architecture(&mut world, &file, 16);
            let (built_in, of_graph) = (world.hop(built_in), world.hop(of_graph));
            let batches = of_graph.batches();
            let (expected, bytes) = world.train(&built_in, batches).unwrap();
            let (trained, same) = world.train(&of_graph, batches).unwrap();
            assert!(same == bytes, "{name:?} {precision:?}");
            assert_eq!(trained.sums, Sums { correct: None, ..expected.sums });
            for cut in 1..batches {
                let (first, checkpoint) = world.train(&of_graph, cut).unwrap();
                let rest = world.rest(&of_graph, &first, &checkpoint);
                let (_, again) = world.train(&rest, batches).unwrap();
                assert!(again == bytes, "cut at {cut}");
            }
            let blob = world.put(&bytes);
            let [a, b] = [&built_in, &of_graph].map(|hop| evaluate(&world, &hop.context, blob));
            assert_eq!((a.rows, a.accuracy()), (b.rows, b.accuracy()));
            assert!((a.loss - b.loss).abs() < 1e-3 * a.loss, "{a:?} {b:?}");
        }
    }
}

/// Version 0 of a hop's trial, of trial 2.
pub(super) fn initial(hop: &Hop, file: &[u8]) -> Vec<u8> {
    let Base::Initial { seed } = hop.base else { panic!("{hop:?}") };
    let lineage =
        sojourn_model::Lineage { trial: hop.trial, ..sojourn_model::Lineage::initial(seed) };
    match file {
        [] => sojourn_model::initial_checkpoint(&hop.context, seed, lineage).unwrap(),
        _ => sojourn_model::graph_checkpoint(&hop.context, file, seed, lineage).unwrap(),
    }
}

/// The outputs of a model for a file's rows.
fn outputs(
    world: &mut World,
    hop: &Hop,
    checkpoint: &[u8],
) -> Result<(Vec<u64>, Vec<f32>), TrainError> {
    let rows = world.folder.path().join("rows");
    let x: Vec<f32> = (0..7 * 16u8).map(|n| f32::from(n % 11) - 4.0).collect();
    fs::write(&rows, encode(&[Stored::f32("x", [7, 16], &x)]).unwrap()).unwrap();
    let checkpoint = world.put(checkpoint).sha256;
    let (files, output) = (world.files.clone(), world.folder.path().join("outputs"));
    let context = TrialContext::clone(&hop.context);
    let request = Predict { context, checkpoint, files, rows, output };
    // A prediction begins with a seed of its own.
    let _alone = TORCH_RNG.lock();
    predict(&request, &mut LastModel::default(), Device::Cpu)?;
    let file = fs::read(&request.output).unwrap();
    let views = decode(&file).unwrap();
    Ok((views[0].shape.clone(), views[0].f32s().unwrap().collect()))
}

#[test]
fn a_graph_predicts_as_the_built_in_model_does() {
    for (model, file) in pairs() {
        let mut world = World::new();
        let built_in = world.hop(context(model));
        let of_graph = world_hop(&mut world, &file);
        let checkpoint = initial(&built_in, &[]);
        let a = outputs(&mut world, &built_in, &checkpoint).unwrap();
        let checkpoint = initial(&of_graph, &file);
        let b = outputs(&mut world, &of_graph, &checkpoint).unwrap();
        assert_eq!(a, b);
        assert_eq!(b.0, [7, 3]);
    }
}

fn world_hop(world: &mut World, file: &[u8]) -> Hop {
    let model = architecture(world, file, 16);
    world.hop(context(model))
}

/// A model of one weight matrix, whose training and evaluation have these nodes and results.
fn small(train: Value, loss: Value, evaluate: Value, sums: Value) -> Vec<u8> {
    file(&json!({
        "graph": 1, "torch": "2.11.0",
        "columns": {"x": ["F32", [16]], "y": ["I64", []]},
        "tensors": [
            {"name": "w", "dtype": "F32", "shape": [3, 16], "role": "parameter", "start": {"fan_in": 16}},
            {"name": "seen", "dtype": "I64", "shape": [], "role": "buffer", "start": "zeros"},
            {"name": "mean", "dtype": "F32", "shape": [3], "role": "buffer", "start": "ones"},
            {"name": "free", "dtype": "F32", "shape": [5], "role": "parameter", "start": "ones"}
        ],
        "train": [{"nodes": train, "loss": loss}],
        "evaluate": {"nodes": evaluate, "sums": sums}
    }))
}

/// A loss that can be trained, as the first three nodes.
pub(super) fn trained() -> Vec<Value> {
    vec![
        json!({"op": "aten.linear.default", "args": [{"c": "x"}, {"t": "w"}]}),
        json!({"op": "aten.mul.Tensor", "args": [{"n": 0}, {"t": "mean"}]}),
        json!({"op": "aten.cross_entropy_loss.default", "args": [{"n": 1}, {"c": "y"}]}),
    ]
}

/// Trains one hop by these nodes; gives the checkpoint's tensors, or the refusal.
pub(super) fn train_by(nodes: &[Value]) -> Result<BTreeMap<String, Vec<u8>>, String> {
    let mut nodes = nodes.to_vec();
    nodes.extend(trained().split_off(nodes.len().min(3)));
    let nodes = if nodes.len() > 3 { nodes } else { trained() };
    let sums = json!({"loss": {"n": 2}});
    let file = small(Value::Array(nodes), json!({"n": 2}), Value::Array(trained()), sums);
    let mut world = World::new();
    let hop = world_hop(&mut world, &file);
    let trained = world.train(&hop, hop.batches());
    let (_, bytes) = trained.map_err(|error| error.to_failure().message)?;
    let views = decode(&bytes).unwrap();
    Ok(views.iter().map(|view| (view.name.clone(), view.data.to_vec())).collect())
}

#[test]
fn buffers_are_moved_by_the_nodes_alone_whatever_their_type() {
    let mut nodes = trained();
    nodes.push(json!({"op": "aten.add_.Tensor", "args": [{"t": "seen"}, 1], "no_grad": true}));
    nodes.push(json!({"op": "aten.mean.dim", "args": [{"n": 0}, [0]], "no_grad": true}));
    nodes.push(json!({"op": "aten.mul_.Tensor", "args": [{"t": "mean"}, 0.5], "no_grad": true}));
    let error = train_by(&nodes).unwrap_err();
    assert!(error.contains("modified by an inplace operation"), "{error}");
    // What is needed for a gradient is the buffer's own, and no other's.
    nodes[1] = json!({"op": "aten.add.Tensor", "args": [{"n": 0}, {"t": "mean"}]});
    let tensors = train_by(&nodes).unwrap();
    assert_eq!(tensors["seen"], 8i64.to_le_bytes());
    assert_eq!(tensors["mean"], [1f32 / 256.0; 3].map(f32::to_le_bytes).concat());
    // A parameter that the loss knows nothing of has no gradient: its decay is 0 here.
    assert_eq!(tensors["free"], [1f32; 5].map(f32::to_le_bytes).concat());
}

#[test]
fn a_view_is_copied_where_strides_want_it_unless_something_is_written_through_it() {
    let mut nodes = trained();
    nodes.push(json!({"op": "aten.transpose.int", "args": [{"n": 1}, 0, 1], "no_grad": true}));
    nodes.push(json!({"op": "aten.view.default", "args": [{"n": 3}, [-1]], "no_grad": true}));
    nodes
        .push(json!({"op": "aten.view_as.default", "args": [{"n": 3}, {"n": 4}], "no_grad": true}));
    nodes.push(json!({"op": "aten.unsqueeze.default", "args": [{"n": 4}, 0], "no_grad": true}));
    train_by(&nodes).unwrap();
    // Into a copy it would be lost.
    nodes.push(json!({"op": "aten.relu_.default", "args": [{"n": 6}], "no_grad": true}));
    let error = train_by(&nodes).unwrap_err();
    assert!(error.contains("view size is not compatible"), "{error}");
}

#[test]
fn what_would_be_too_much_or_break_libtorch_is_refused_by_its_node() {
    for (node, expected) in [
        (json!({"op": "aten.zeros.default", "args": [[65536, 65536, 4]]}), "17179869184 elements"),
        (
            json!({"op": "aten.full.default", "args": [[9_000_000_000i64], 1.0]}),
            "9000000000 elements",
        ),
        (json!({"op": "aten.zeros.default", "args": [[-1]]}), "node 3 (`aten.zeros.default`)"),
        (json!({"op": "aten.arange.default", "args": [1e18]}), "can't count"),
        (json!({"op": "aten.arange.start_step", "args": [0, 1, 0]}), "can't count"),
        (
            json!({"op": "aten.arange.start_step", "args": [0, 9, 0.5], "kwargs": {"dtype": {"dtype": "I64"}}}),
            "can't count",
        ),
        (
            json!({"op": "aten.div.Tensor_mode", "args": [{"t": "seen"}, -1], "kwargs": {"rounding_mode": {"text": "trunc"}}}),
            "not by `trunc`",
        ),
        (
            json!({"op": "aten.scaled_dot_product_attention.default", "args": [{"t": "w"}, {"t": "w"}, {"t": "mean"}]}),
            "don't go together",
        ),
        (
            json!({"op": "aten.lstm.input", "args": [{"t": "w"}, [{"t": "w"}, {"t": "w"}], [{"t": "w"}, {"t": "w"}], false, 1, 0.0, true, false, true]}),
            "a sequence has three dimensions",
        ),
        (
            json!({"op": "aten.repeat.default", "args": [{"t": "w"}, [1i64 << 20, 1i64 << 20]]}),
            "elements",
        ),
        (json!({"op": "aten.expand.default", "args": [{"t": "seen"}, [1i64 << 40]]}), "elements"),
        (json!({"op": "aten.outer.default", "args": [{"t": "free"}, {"t": "w"}]}), "but got 2-D"),
        (json!({"op": "aten.chunk.default", "args": [{"t": "w"}, 0]}), "can't go by 0"),
        (json!({"op": "aten.split.Tensor", "args": [{"t": "w"}, 0]}), "can't go by 0"),
        (json!({"op": "aten.one_hot.default", "args": [{"c": "y"}]}), "can't go by -1"),
        (json!({"op": "aten.max_pool1d.default", "args": [{"t": "w"}, 2, 0]}), "can't go by 0"),
        (
            json!({"op": "aten.conv1d.default", "args": [{"t": "w"}, {"t": "w"}, null, 1, 0, 1, 0]}),
            "can't go by 0",
        ),
        (json!({"op": "aten.pad.default", "args": [{"t": "w"}, [1i64 << 40, 0]]}), "elements"),
        (
            json!({"op": "aten.index.Tensor", "args": [{"t": "w"}, [{"t": "mean"}]]}),
            "whole numbers",
        ),
        (
            json!({"op": "aten.view.default", "args": [{"t": "w"}, [7, 7]]}),
            "invalid for input of size 48",
        ),
        (
            json!({"op": "aten.lstm.input", "args": [{"t": "w"}, [{"t": "w"}, {"t": "w"}], [{"t": "w"}], true, 1, 0.0, true, false, true]}),
            "1 layers have no 1 weights",
        ),
        (
            json!({"op": "aten.einsum.default", "args": [{"text": "ab,cd->abcd"}, [{"t": "w"}, {"t": "w"}]]}),
            "",
        ),
        (json!({"op": "sym.size", "args": [{"t": "w"}, 2]}), "no dimension 2"),
        (json!({"op": "sym.floordiv", "args": [1, 0]}), "no whole number"),
        (json!({"op": "sym.mul", "args": [i64::MAX, 2]}), "no whole number"),
        (
            json!({"op": "aten.mse_loss.default", "args": [{"t": "w"}, {"t": "w"}, 7]}),
            "no reduction 7",
        ),
    ] {
        let mut nodes = trained();
        nodes.push(node.clone());
        match train_by(&nodes) {
            Ok(_) => assert!(expected.is_empty(), "{node} was taken"),
            Err(error) => assert!(error.contains(expected), "{node}: `{error}`"),
        }
    }
}

#[test]
fn a_graph_that_does_not_fit_its_unit_is_refused_in_words() {
    let sums = json!({"loss": {"n": 2}});
    let nodes = || Value::Array(trained());
    let file = small(nodes(), json!({"n": 2}), nodes(), sums.clone());
    let mut world = World::new();
    let hop = world_hop(&mut world, &file);
    let checkpoint = initial(&hop, &file);
    let error = outputs(&mut world, &hop, &checkpoint).unwrap_err().to_string();
    assert_eq!(error, "the model's code says nothing of predictions: it has no `predict`");

    let refused = |world: &World, hop: &Hop, change: &dyn Fn(&mut TrialContext)| {
        let mut hop = hop.clone();
        change(Arc::make_mut(&mut hop.context));
        world.train(&hop, 1).unwrap_err().to_failure().message
    };
    let error = refused(&world, &hop, &|context| {
        context.targets = sojourn_protocol::manifest::Targets::Weighted(vec![1.0; 3]);
    });
    assert!(error.contains("labels as they are"), "{error}");
    let error = refused(&world, &hop, &|context| {
        let Architecture::Graph(graph) = &mut context.config.model else { return };
        let exported = graph.exported.as_mut().unwrap();
        Arc::make_mut(&mut exported.tensors).pop();
    });
    assert!(error.contains("tensor `free` isn't the same in the unit and in the file"), "{error}");

    let row_losses = small(nodes(), json!({"n": 1}), nodes(), sums);
    let hop = world_hop(&mut world, &row_losses);
    let error = refused(&world, &hop, &|_| ());
    assert_eq!(error, "the graph's loss is [8, 3], and no number");
}

//! Graphs of built-in models, which train to the very bytes of those; and graphs of PyTorch's own, against its losses.

use crate::{
    data::Shards,
    error::TrainError,
    fixture::{World, cnn, context, mlp},
    predict::{LastModel, predict},
    unit,
};
use serde_json::{Value, json};
use sojourn_codec::{Tensor as Stored, decode, encode};
use sojourn_model::TrialModel;
use sojourn_protocol::{
    digest::{BlobRef, Digest},
    ids::{Epoch, JobId, TrialId, Version},
    manifest::{DataSplit, Shard},
    metrics::Counting,
    report::Sums,
    seeds,
    spec::{
        Architecture, ExportedGraph, Graph, GraphRole, GraphTensor, Loss, Optimizer, OptimizerName,
        Precision, Start,
    },
    trainer::{Predict, TrainerLine},
    unit::{Base, Evaluation, Hop, TrialContext, Unit},
};
use std::{collections::BTreeMap, fs, ops::ControlFlow, path::Path, sync::Arc, time::Duration};
use tch::{Device, Kind, Tensor};

#[test]
fn every_operator_of_the_table_can_be_called() {
    for name in sojourn_graph::operators() {
        assert!(super::operators::find(name).is_some(), "{name}");
    }
    assert!(super::operators::find("aten.as_strided.default").is_none());
}

/// Nodes in the making.
#[derive(Default)]
struct Nodes(Vec<Value>);

impl Nodes {
    /// Adds a node, and gives the argument that stands for it.
    fn add(&mut self, op: &str, args: Value) -> Value {
        self.0.push(json!({"op": op, "args": args}));
        json!({"n": self.0.len() - 1})
    }
}

/// The graph file of a built-in model, put together by hand: its tensors, and nodes for the outputs.
fn graph_of(model: &Architecture, outputs: &dyn Fn(&mut Nodes) -> Value) -> Vec<u8> {
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
        json!({"loss": loss, "accuracy": accuracy})
    });
    let (predict, outputs) = list(&|_, of| of);
    file(&json!({
        "graph": 1, "torch": "2.11.0",
        "columns": {"x": ["F32", [1, 4, 4]], "y": ["I64", []]},
        "tensors": tensors_of(model),
        "train": [{"nodes": train, "loss": loss}],
        "evaluate": {"nodes": evaluate, "sums": sums},
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

fn mlp_outputs(nodes: &mut Nodes) -> Value {
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
fn architecture(world: &mut World, file: &[u8], widest: u64) -> Architecture {
    let graph = sojourn_graph::Graph::read(file).unwrap();
    let kept = graph.tensors.into_iter().filter(|tensor| tensor.role != GraphRole::Constant);
    let exported = ExportedGraph {
        file: world.put(file),
        tensors: Arc::new(kept.collect()),
        flops_per_row: 1,
        widest,
    };
    let entry = "model.py:Model".into();
    Architecture::Graph(Graph { entry, values: BTreeMap::new(), exported: Some(exported) })
}

/// The built-in models, each with its graph's file.
fn pairs() -> [(Architecture, Vec<u8>); 2] {
    [(mlp(), graph_of(&mlp(), &mlp_outputs)), (cnn(), graph_of(&cnn(), &cnn_outputs))]
}

fn evaluate(world: &World, context: &Arc<TrialContext>, checkpoint: BlobRef) -> Sums {
    let evaluation = Evaluation {
        job: JobId(1),
        trial: TrialId(2),
        epoch: Epoch(0),
        version: Version(1),
        checkpoint,
        shards: vec![world.shard],
        split: DataSplit::Valid,
        counting: Counting::default(),
        context: Arc::clone(context),
    };
    let request = world.request(Unit::Evaluate(evaluation));
    let mut shards = Shards::on(Device::Cpu);
    let line = unit::run(&request, &mut shards, &mut |_| ControlFlow::Continue(Duration::ZERO));
    let TrainerLine::Evaluated(evaluated) = line.unwrap() else { panic!("not evaluated") };
    evaluated.shards[0]
}

#[test]
fn graphs_of_built_in_models_train_to_their_bytes_wherever_they_are_cut() {
    for (model, file) in pairs() {
        for (name, momentum, precision) in [
            (OptimizerName::Sgd, 0.0, Precision::F32),
            (OptimizerName::Sgd, 0.9, Precision::F32),
            (OptimizerName::Adam, 0.0, Precision::F32),
            (OptimizerName::Adamw, 0.0, Precision::F32),
            (OptimizerName::Adam, 0.0, Precision::Bf16),
        ] {
            let mut world = World::new();
            let mut built_in = context(model.clone());
            let training = &mut built_in.config.training;
            training.optimizer =
                Optimizer { name, momentum, weight_decay: 0.01, ..training.optimizer };
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
            assert_eq!((a.rows, a.correct), (b.rows, b.correct));
            assert!((a.loss - b.loss).abs() < 1e-3 * a.loss, "{a:?} {b:?}");
        }
    }
}

/// What PyTorch made of an exported model over made-up rows: beside its graph in `tests/graphs`.
struct Fixture {
    name: String,
    file: Vec<u8>,
    json: Value,
}

fn fixtures() -> Vec<Fixture> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/graphs");
    let mut fixtures = Vec::new();
    for entry in fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "json") {
            let json = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
            let file = fs::read(path.with_extension("safetensors")).unwrap();
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            fixtures.push(Fixture { name, file, json });
        }
    }
    fixtures.sort_by(|a, b| a.name.cmp(&b.name));
    assert!(fixtures.len() >= 10, "{} fixtures", fixtures.len());
    fixtures
}

impl Fixture {
    fn number(&self, pointer: &str) -> Option<u64> {
        self.json.pointer(pointer).and_then(Value::as_u64)
    }

    /// The hop over all rows, which come in the order of PyTorch's batches.
    fn hop(&self, world: &mut World) -> Hop {
        let columns = sojourn_graph::Graph::read(&self.file).unwrap().columns;
        let column = |name| columns.iter().find(|column| column.name == name);
        let shape = &column("x").unwrap().shape;
        let by_class = column("y").is_none_or(|y| y.dtype == sojourn_model::Dtype::I64);
        let optimizer = Optimizer {
            weight_decay: self.json["optimizer"]["weight_decay"].as_f64().unwrap(),
            ..Optimizer::new(OptimizerName::Adamw, self.json["optimizer"]["lr"].as_f64().unwrap())
        };
        let loss = if by_class { Loss::CrossEntropy } else { Loss::Mse };
        let batch_size = u32::try_from(self.number("/batch_size").unwrap()).unwrap();
        let model = architecture(world, &self.file, 1);
        let mut context = context(model);
        context.config.training =
            sojourn_protocol::spec::TrainingConfig::new(1, batch_size, loss, optimizer);
        context.shape = shape.iter().map(|side| u32::try_from(*side).unwrap()).collect();
        context.outputs = if by_class { self.json["classes"].as_u64().unwrap() as u32 } else { 1 };
        let seed = self.number("/hop_seed").unwrap();
        world.shard = self.shard(world, shape.iter().product(), seed, by_class);
        let base = Base::Initial { seed: self.number("/weights_seed").unwrap() };
        Hop { base, seed, ..world.hop(context) }
    }

    /// Made-up rows, as `sojourn.rows` of the Python package makes them.
    fn shard(&self, world: &mut World, features: u64, hop_seed: u64, by_class: bool) -> Shard {
        use rand_core::Rng as _;
        let rows = u32::try_from(self.number("/rows/count").unwrap()).unwrap();
        let mut rng = seeds::stream("made-up-rows", &[self.number("/rows/seed").unwrap()]);
        let tokens = self.number("/rows/tokens_from").zip(self.number("/rows/vocabulary"));
        let unit = |word: u32| (f64::from(word >> 8) / 16_777_216.0) as f32;
        let mut row = |_| {
            let of = |at: u64| match (tokens, rng.next_u32()) {
                (Some((from, vocabulary)), word) if at >= from => {
                    (u64::from(word) % vocabulary) as f32
                }
                (_, word) => unit(word),
            };
            (0..features).map(of).collect::<Vec<f32>>()
        };
        let x: Vec<Vec<f32>> = (0..rows).map(&mut row).collect();
        let y: Vec<u32> = (0..rows).map(|_| rng.next_u32()).collect();
        // Row `b` of the batches lies where the hop looks for its row `b`.
        let order = seeds::row_order(hop_seed, rows);
        let mut places = vec![0; order.len()];
        order.iter().zip(0..).for_each(|(place, row)| places[*place as usize] = row);
        let x: Vec<f32> = places.iter().flat_map(|row: &usize| x[*row].clone()).collect();
        let classes = self.number("/classes").unwrap_or(1);
        let y = match by_class {
            true => {
                let y = places.iter().map(|row| (u64::from(y[*row]) % classes) as i64);
                Stored::i64("y", [u64::from(rows)], &y.collect::<Vec<_>>())
            }
            false => {
                let y = places.iter().map(|row| unit(y[*row]));
                Stored::f32("y", [u64::from(rows)], &y.collect::<Vec<_>>())
            }
        };
        let x = Stored::f32("x", [u64::from(rows), features], &x);
        Shard { blob: world.put(&encode(&[x, y]).unwrap()), rows }
    }

    /// The loss of each batch; of several stages together.
    fn losses(&self) -> Vec<f64> {
        let of_stages = |stages: &Value| {
            stages.as_array().unwrap().iter().map(|loss| loss.as_f64().unwrap()).sum()
        };
        self.json["losses"].as_array().unwrap().iter().map(of_stages).collect()
    }
}

#[test]
fn exported_models_train_as_in_pytorch_and_cut_to_the_same_bytes() {
    for fixture in fixtures() {
        let name = &fixture.name;
        let mut world = World::new();
        let hop = fixture.hop(&mut world);
        let batches = hop.batches();
        let (whole, bytes) = world.train(&hop, batches).unwrap();
        let (mut rest, mut losses) = (hop.clone(), Vec::new());
        let mut last = Vec::new();
        for batch in 1..=batches {
            let (part, checkpoint) = world.train(&rest, batch).unwrap();
            losses.push(part.sums.mean_loss());
            rest = world.rest(&hop, &part, &checkpoint);
            last = checkpoint;
        }
        assert!(last == bytes, "{name}: cut before each batch");
        let expected = fixture.losses();
        assert_eq!(losses.len(), expected.len(), "{name}");
        let worst =
            losses.iter().zip(&expected).map(|(a, b)| ((a - b) / b).abs()).fold(0.0, f64::max);
        println!(
            "{name}: first {} of {}, worst relative difference {worst:e}",
            losses[0], expected[0]
        );
        assert!(
            (losses[0] - expected[0]).abs() <= 1e-12 * expected[0].abs(),
            "{name}: {losses:?} {expected:?}"
        );
        assert!(worst < 1e-4, "{name}: {losses:?} {expected:?}");
        let _ = whole;
    }
}

//! Version 0 of trials, and the lineage in a checkpoint.

use crate::file::{compare, context, hex, hex_of};
use serde_json::{Value, json};
use sojourn_codec::{Tensor, decode};
use sojourn_model::{Dtype, Lineage, Parameter, Start, initial_checkpoint, initial_values};
use sojourn_protocol::{
    digest::{BlobRef, Digest},
    ids::{Epoch, ShardId, TrialId},
    position::Position,
    spec::{Architecture, Cnn, ExportedGraph, Graph, GraphRole, GraphTensor, Mlp, Optimizer},
    spec::{OptimizerName, Real},
    unit::TrialContext,
};
use std::{collections::BTreeMap, sync::Arc};

const SGD: Optimizer = Optimizer::new(OptimizerName::Sgd, 0.1);
const ADAM: Optimizer = Optimizer::new(OptimizerName::Adam, 0.1);
const SEED: u64 = 7;

#[test]
fn initial_weights_are_those_of_the_file() {
    let norm = Cnn { batch_norm: true, hidden: vec![3], ..Cnn::new([2]) };
    let trials = [
        context(Architecture::mlp([3]), &[4], SGD),
        context(Architecture::Mlp(Mlp::default()), &[1, 2, 2], ADAM),
        context(Architecture::Cnn(norm), &[1, 4, 4], SGD),
        context(Architecture::Graph(graph()), &[4], SGD),
    ];
    let starts = [
        Start::Zeros,
        Start::Ones,
        Start::Constant(Real(0.1)),
        Start::FanIn(3),
        Start::Uniform([Real(-0.1), Real(0.3)]),
        Start::Normal([Real(0.5), Real(0.02)]),
    ];
    let starts = starts.map(|start| {
        let (name, dtype) = ("w".to_owned(), Dtype::F32);
        let tensor = Parameter { name, dtype, shape: vec![2, 3], start };
        let values = hex_of(&initial_values(SEED, 1, &tensor));
        json!({"start": start, "seed": SEED, "index": 1, "shape": [2, 3], "values": values})
    });
    let content = json!({"checkpoints": trials.map(|trial| first(&trial)), "starts": starts});
    compare("initial-weights.json", &content);
}

fn first(context: &TrialContext) -> Value {
    let file = initial_checkpoint(context, SEED, Lineage::initial(SEED)).unwrap();
    let tensors = decode(&file).unwrap();
    let tensors: BTreeMap<&str, String> =
        tensors.iter().map(|tensor| (tensor.name.as_str(), hex(tensor.data))).collect();
    let (bytes, sha256) = (file.len(), Digest::of(&file));
    json!({"context": context, "seed": SEED, "tensors": tensors, "bytes": bytes, "sha256": sha256})
}

/// A graph with a buffer, whose tensors begin in different ways.
fn graph() -> Graph {
    let tensor = |name: &str, dtype, shape: &[u64], role, start| GraphTensor {
        name: name.into(),
        dtype,
        shape: shape.to_vec(),
        role,
        start: Some(start),
    };
    let (parameter, buffer) = (GraphRole::Parameter, GraphRole::Buffer);
    let normal = Start::Normal([Real(0.0), Real(0.02)]);
    let tensors = vec![
        tensor("net.steps", Dtype::I64, &[], buffer, Start::Ones),
        tensor("net.0.weight", Dtype::F32, &[2, 4], parameter, normal),
        tensor("net.0.bias", Dtype::F32, &[2], parameter, Start::FanIn(4)),
    ];
    let exported = ExportedGraph {
        tensors: Arc::new(tensors),
        flops_per_row: 16,
        widest: 4,
        sums: vec!["loss".into()],
        ..ExportedGraph::of_file(BlobRef { sha256: Digest::of(b"a graph's file"), bytes: 14 })
    };
    Graph { entry: "model.py:Net".into(), values: BTreeMap::new(), exported: Some(exported) }
}

#[test]
fn lineages_are_those_of_the_file() {
    let place = |epoch, shard, batch, step| Position {
        epoch: Epoch(epoch),
        shard: ShardId(shard),
        batch,
        step,
    };
    let lineages = [
        Lineage::initial(SEED),
        Lineage { hop_seed: 77, trial: TrialId(2), position: place(1, 3, 5, 21) },
        // The upper half of the seeds is negative in the tensor.
        Lineage { hop_seed: u64::MAX - 1, trial: TrialId(0), position: place(0, 0, 8, 8) },
    ];
    let lineages = lineages.map(|lineage| {
        let Lineage { hop_seed, trial, position } = lineage;
        let numbers = lineage.to_numbers();
        let tensor = Tensor::i64("lineage", [Lineage::LENGTH], &numbers);
        json!({
            "hop_seed": hop_seed,
            "trial": trial,
            "position": position,
            "numbers": numbers,
            "data": hex(&tensor.data),
        })
    });
    compare("lineages.json", &json!({ "lineages": lineages }));
}

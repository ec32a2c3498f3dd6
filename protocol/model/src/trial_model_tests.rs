//! Graphs' tensors: their checkpoints, their first numbers, refusals.

use super::*;
use crate::{
    BufferKind, CheckpointLayout, Lineage, Role, base_checkpoint, checkpoint::tests::context,
    initial_checkpoint, weights_checkpoint, weights_parameters,
};
use sojourn_codec::{Tensor, decode, encode};
use sojourn_protocol::{
    digest::{BlobRef, Digest},
    spec::{OptimizerName, Real},
    unit::{Base, TrialContext},
};

fn tensor(name: &str, dtype: Dtype, shape: &[u64], role: GraphRole, start: Start) -> GraphTensor {
    GraphTensor { name: name.into(), dtype, shape: shape.to_vec(), role, start: Some(start) }
}

fn parameter_of(name: &str, shape: &[u64], start: Start) -> GraphTensor {
    tensor(name, Dtype::F32, shape, GraphRole::Parameter, start)
}

fn graph(tensors: Vec<GraphTensor>) -> Architecture {
    let file = BlobRef { sha256: Digest::of(b"graph"), bytes: 5 };
    let tensors = tensors.into();
    let exported = Some(ExportedGraph {
        tensors,
        flops_per_row: 6,
        widest: 3,
        sums: vec!["loss".into()],
        ..ExportedGraph::of_file(file)
    });
    Architecture::Graph(Graph { entry: "model.py:Net".into(), values: [].into(), exported })
}

/// The tensors of `Linear(3, 2)` and `BatchNorm1d(2)`.
fn norm_net() -> Vec<GraphTensor> {
    vec![
        parameter_of("net.0.weight", &[2, 3], Start::FanIn(3)),
        parameter_of("net.0.bias", &[2], Start::FanIn(3)),
        parameter_of("net.1.weight", &[2], Start::Ones),
        parameter_of("net.1.bias", &[2], Start::Zeros),
        tensor("net.1.running_mean", Dtype::F32, &[2], GraphRole::Buffer, Start::Zeros),
        tensor("net.1.running_var", Dtype::F32, &[2], GraphRole::Buffer, Start::Ones),
        tensor("net.1.num_batches_tracked", Dtype::I64, &[], GraphRole::Buffer, Start::Zeros),
    ]
}

fn adam(model: Architecture) -> TrialContext {
    context(model, OptimizerName::Adam, 0.0)
}

#[test]
fn a_graphs_checkpoint_has_its_tensors_with_their_roles() {
    let layout = CheckpointLayout::of(&adam(graph(norm_net()))).unwrap();
    let names: Vec<&str> = layout.parameters().iter().map(|spec| spec.name.as_str()).collect();
    assert_eq!(names, ["net.0.weight", "net.0.bias", "net.1.weight", "net.1.bias"]);
    assert_eq!(layout.tensors().len(), 7 + 2 * 4 + 1);
    assert_eq!(layout.role("net.0.bias"), Some(Role::Parameter));
    assert_eq!(layout.role("net.1.running_var"), Some(Role::Buffer(BufferKind::Real)));
    assert_eq!(layout.role("net.1.num_batches_tracked"), Some(Role::Buffer(BufferKind::Whole)));
    assert_eq!(layout.role(LINEAGE), Some(Role::Lineage));
    assert_eq!(layout.role("net.0"), None);
    assert!(matches!(layout.role("optimizer.exp_avg.net.0.bias"), Some(Role::Optimizer(_))));
    let model = layout.trial_model();
    assert_eq!((model.trainable_count(), model.parameter_count()), (12, 17));
    assert_eq!((model.flops_per_row(), model.widest()), (6, 3));
}

/// The built-in `mlp` and a graph of the same tensors begin with the same bytes.
#[test]
fn a_graph_begins_as_the_built_in_architecture() {
    let built_in = adam(Architecture::mlp([5]));
    let layout = CheckpointLayout::of(&built_in).unwrap();
    let tensors = layout.trial_model().parameters().iter();
    let tensors = tensors.map(|p| parameter_of(&p.name, &p.shape, p.start)).collect();
    let of = |context: &TrialContext| initial_checkpoint(context, 7, Lineage::initial(7)).unwrap();
    assert_eq!(of(&adam(graph(tensors))), of(&built_in));
}

#[test]
fn first_numbers_are_as_the_graph_says() {
    let real = Real;
    let mut tensors = norm_net();
    tensors.push(parameter_of("a", &[4000], Start::Normal([real(1.0), real(0.5)])));
    tensors.push(parameter_of("b", &[4000], Start::Uniform([real(2.0), real(3.0)])));
    tensors.push(parameter_of("c", &[2], Start::Constant(real(0.25))));
    tensors.push(tensor("n", Dtype::I32, &[2], GraphRole::Buffer, Start::Ones));
    let context = adam(graph(tensors));
    let file = initial_checkpoint(&context, 3, Lineage::initial(3)).unwrap();
    let layout = CheckpointLayout::of(&context).unwrap();
    assert_eq!(file.len() as u64, layout.file_bytes());
    let views = decode(&file).unwrap();
    let find = |name: &str| views.iter().find(|view| view.name == name).unwrap();
    let numbers = |name: &str| find(name).f32s().unwrap().map(f64::from).collect::<Vec<_>>();
    let mean = |numbers: &[f64]| numbers.iter().sum::<f64>() / numbers.len() as f64;
    let normal = numbers("a");
    let squares: Vec<f64> = normal.iter().map(|value| (value - 1.0).powi(2)).collect();
    assert!((mean(&normal) - 1.0).abs() < 0.03 && (mean(&squares) - 0.25).abs() < 0.02);
    let uniform = numbers("b");
    assert!(uniform.iter().all(|value| (2.0..=3.0).contains(value)));
    assert!((mean(&uniform) - 2.5).abs() < 0.02);
    assert_eq!(numbers("c"), [0.25, 0.25]);
    assert_eq!(find("n").data, [1, 0, 0, 0, 1, 0, 0, 0]);
    assert_eq!(find("net.1.num_batches_tracked").data, [0; 8]);
    // Written down once: other values break every replay.
    assert_eq!(Digest::of(&file).to_string(), PINNED);
}

const PINNED: &str = "be0e50876a9aa8eb5485398cfdbd5e9d009587ac55e2fee4c5920a84e1433093";

#[test]
fn given_numbers_come_from_the_graphs_file() {
    let given = || parameter_of("net.weight", &[2], Start::Given);
    let context = adam(graph(vec![given(), parameter_of("net.bias", &[1], Start::Zeros)]));
    let error = initial_checkpoint(&context, 1, Lineage::initial(1)).unwrap_err();
    assert_eq!(error, ModelError::NotGiven("net.weight".into()));
    let made = |file: Vec<u8>| {
        let base = Base::Initial { seed: 1 };
        base_checkpoint::<Vec<u8>, ModelError>(&context, base, |blob| {
            assert_eq!(blob.sha256, Digest::of(b"graph"));
            Ok(file)
        })
    };
    let numbers = Tensor::f32("given.net.weight", [2u64], &[3.0, -4.0]);
    let checkpoint = made(encode(&[numbers]).unwrap()).unwrap();
    let views = decode(&checkpoint).unwrap();
    let weight = views.iter().find(|view| view.name == "net.weight").unwrap();
    assert_eq!(weight.f32s().unwrap().collect::<Vec<_>>(), [3.0, -4.0]);
    let other = Tensor::f32("given.net.weight", [1u64], &[3.0]);
    assert!(matches!(made(encode(&[other]).unwrap()), Err(ModelError::OtherTensor { .. })));
    assert!(made(b"garbage".to_vec()).is_err());
}

#[test]
fn a_graphs_weights_are_taken_over_with_its_counters() {
    let trained = adam(graph(norm_net()));
    let first = initial_checkpoint(&trained, 1, Lineage::initial(1)).unwrap();
    let weights = weights_parameters(&first).unwrap();
    let start = weights_checkpoint(&trained, &weights, Lineage::initial(1)).unwrap();
    assert_eq!(start, first);
}

#[test]
fn tensors_that_no_checkpoint_can_have_are_refused() {
    let refused = |tensors: Vec<GraphTensor>| {
        let model = TrialModel::of(&graph(tensors), &[3], 2);
        model.map(|_| ()).unwrap_err().to_string()
    };
    let with = |tensor: GraphTensor| {
        let mut tensors = norm_net();
        tensors.push(tensor);
        refused(tensors)
    };
    let of = |name: &str| parameter_of(name, &[1], Start::Zeros);
    assert!(with(of("net.0.weight")).contains("is there twice"));
    for name in [
        "lineage",
        "optimizer.exp_avg.a",
        "scaling.mean",
        "sojourn.a",
        "",
        "a\nb",
        &"n".repeat(201),
    ] {
        assert!(with(of(name)).contains("has a name"), "{name:?}");
    }
    let typed = |dtype, role| with(tensor("t", dtype, &[1], role, Start::Zeros));
    assert!(typed(Dtype::F64, GraphRole::Parameter).contains("not in single precision"));
    assert!(typed(Dtype::Bool, GraphRole::Buffer).contains("not F32, I32 or I64"));
    assert!(typed(Dtype::F32, GraphRole::Constant).contains("is a constant"));
    let begins = |start| with(parameter_of("t", &[1], start));
    for start in [
        Start::FanIn(0),
        Start::Constant(Real(f64::NAN)),
        Start::Uniform([Real(1.0), Real(0.0)]),
        Start::Normal([Real(0.0), Real(-1.0)]),
    ] {
        assert!(begins(start).contains("begins with"), "{start:?}");
    }
    assert!(with(parameter_of("t", &[1 << 31], Start::Zeros)).contains("parameters"));
    assert!(with(parameter_of("t", &[u64::MAX, 3], Start::Zeros)).contains("laid out"));
    assert!(refused(Vec::new()).contains("no parameters"));
    let many = (0..10_001).map(|n| of(&format!("t{n}"))).collect();
    assert!(refused(many).contains("more than 10000 tensors"));
    let unexported = Architecture::Graph(Graph {
        entry: "model.py:Net".into(),
        values: [].into(),
        exported: None,
    });
    assert!(TrialModel::of(&unexported, &[3], 2).unwrap_err().to_string().contains("exported"));
}

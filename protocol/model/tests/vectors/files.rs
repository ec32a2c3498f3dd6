//! Canonical files: tensors of all types, shards, and the layout of checkpoints.

use crate::file::{compare, context, hex};
use serde_json::{Value, json};
use sojourn_codec::{Tensor, decode, encode};
use sojourn_model::{CheckpointLayout, Dtype};
use sojourn_protocol::{
    digest::Digest,
    spec::{Architecture, Optimizer, OptimizerName},
};

fn tensor(name: &str, dtype: Dtype, shape: &[u64], data: &[u8]) -> Tensor {
    Tensor { name: name.into(), dtype, shape: shape.to_vec(), data: data.to_vec() }
}

fn described(tensors: &[Tensor]) -> Vec<Value> {
    let one = |Tensor { name, dtype, shape, data }: &Tensor| json!({"name": name, "dtype": dtype, "shape": shape, "data": hex(data)});
    tensors.iter().map(one).collect()
}

/// The file of tensors that are given in this order.
fn written(tensors: &[Tensor]) -> Value {
    let file = encode(tensors).unwrap();
    let (given, sha256) = (described(tensors), Digest::of(&file));
    json!({"tensors": given, "file": hex(&file), "bytes": file.len(), "sha256": sha256})
}

#[test]
fn canonical_files_are_those_of_the_file() {
    let every: Vec<Tensor> = Dtype::ALL
        .iter()
        .map(|dtype| tensor(&dtype.name().to_lowercase(), *dtype, &[1], &vec![1; size(*dtype)]))
        .collect();
    let names = ["b", "B", "a.10", "a.2", "é \"\\\n"];
    let names = names.map(|name| Tensor::f32(name, [1u64], &[1.0]));
    let files = [
        written(&[]),
        written(&[Tensor::f32("b", [2u64], &[1.0, -2.0]), Tensor::i64("a", [1u64], &[-7])]),
        written(&[tensor("scalar", Dtype::F64, &[], &1.5f64.to_le_bytes())]),
        written(&[Tensor::f32("empty", [0u64, 3], &[])]),
        written(&names),
        written(&every),
    ];
    // Each is good for other readers of the format, and no blob.
    let entry = |name: &str, begin: u64| {
        format!(r#""{name}":{{"dtype":"U8","shape":[1],"data_offsets":[{begin},{}]}}"#, begin + 1)
    };
    let (a, b) = (entry("a", 0), entry("b", 1));
    let refused = [
        ("a description", format!(r#"{{"__metadata__":{{"by":"me"}},{a},{b}}}"#)),
        ("names out of order", format!("{{{},{}}}", entry("b", 0), entry("a", 1))),
        ("a space", format!("{{{a}, {b}}}")),
        ("no padding to eight bytes", format!("{{{a},{}}}", entry("bb", 1))),
        ("an escape", format!("{{{a},{}}}", entry("\\u0062", 1))),
    ];
    let refused = refused.map(|(why, json)| {
        let padding =
            if why.starts_with("no padding") { 0 } else { json.len().next_multiple_of(8) };
        let json = format!("{json:padding$}");
        let mut file = u64::try_from(json.len()).unwrap().to_le_bytes().to_vec();
        file.extend(json.bytes().chain([1, 2]));
        assert!(decode(&file).is_err(), "{why}");
        json!({"why": why, "file": hex(&file)})
    });
    compare("safetensors.json", &json!({"files": files, "refused": refused}));
}

fn size(dtype: Dtype) -> usize {
    usize::try_from(dtype.bytes()).unwrap()
}

#[test]
fn shards_are_those_of_the_file() {
    let shards = [
        written(&[
            Tensor::f32("x", [3u64, 2], &[0.0, 0.5, -1.0, 1.5, 2.0, 1e-3]),
            Tensor::i64("y", [3u64], &[0, 2, 1]),
        ]),
        written(&[
            Tensor::u8("x", [2u64, 4], &[0, 1, 127, 255, 3, 4, 5, 6]),
            Tensor::f32("y", [2u64], &[151.5, -2.0]),
        ]),
    ];
    // Rows as a model takes them: `x * factor`, or `(x - mean) / std` and 0 where `std` is 0.
    let scaling = written(&[
        Tensor::f32("mean", [2u64], &[0.5, 1.0]),
        Tensor::f32("std", [2u64], &[0.25, 0.0]),
    ]);
    compare("shards.json", &json!({"shards": shards, "scaling": scaling}));
}

#[test]
fn checkpoints_have_the_layout_of_the_file() {
    let sgd = Optimizer::new(OptimizerName::Sgd, 0.1);
    let optimizers = [
        ("sgd", sgd),
        ("sgd with momentum", Optimizer { momentum: 0.9, ..sgd }),
        ("adam", Optimizer { name: OptimizerName::Adam, ..sgd }),
        ("adamw", Optimizer { name: OptimizerName::Adamw, ..sgd }),
    ];
    let layouts = optimizers.map(|(word, optimizer)| {
        let context = context(Architecture::mlp([3]), &[4], optimizer);
        let layout = CheckpointLayout::of(&context).unwrap();
        let tensors: Vec<Value> = layout
            .layout()
            .tensors()
            .iter()
            .map(|(spec, range)| json!([spec.name, spec.dtype, spec.shape, range.start, range.end]))
            .collect();
        let parameters: Vec<&str> =
            layout.parameters().iter().map(|spec| spec.name.as_str()).collect();
        json!({
            "optimizer": word,
            "context": context,
            "parameters": parameters,
            "tensors": tensors,
            "header": hex(layout.layout().header()),
            "bytes": layout.file_bytes(),
        })
    });
    compare("checkpoints.json", &json!({ "layouts": layouts }));
}

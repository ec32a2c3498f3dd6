//! Windows that no tensor has room for: libtorch would count through them, or through what it believes lies around them.

use super::tests::{train_by, trained};
use serde_json::{Value, json};

const VAST: i64 = 1 << 40;

/// The outcome of training a graph that has this node.
fn told(node: &Value) -> Result<(), String> {
    let mut nodes = trained();
    // As one image: `[1, 3, 16]`.
    nodes.push(json!({"op": "aten.unsqueeze.default", "args": [{"t": "w"}, 0]}));
    nodes.push(node.clone());
    train_by(&nodes).map(drop)
}

#[test]
fn windows_of_vast_sizes_are_refused_before_libtorch_sees_them() {
    let lines = json!({"n": 3});
    let node = |name: &str, args: Value| json!({"op": format!("aten.{name}"), "args": args, "no_grad": true});
    let mut nodes = vec![];
    for (name, ceil) in [("max_pool1d", 5), ("max_pool2d", 5), ("avg_pool1d", 4), ("avg_pool2d", 4)]
    {
        let name = format!("{name}.default");
        let all = |kernel: i64, stride: i64, padding: i64, dilation: i64| {
            let mut args = vec![lines.clone(), json!(kernel), json!(stride), json!(padding)];
            args.extend((ceil == 5).then(|| json!(dilation)));
            args.push(json!(true));
            node(&name, args.into())
        };
        nodes.push(all(VAST, VAST, 0, 1));
        nodes.push(all(VAST, 1, VAST / 2, 1));
        nodes.push(all(2, VAST, 1, 1));
        nodes.push(all(i64::MAX, i64::MAX, i64::MAX / 2, 1));
        nodes.push(all(1 << 25, 1 << 25, 1 << 24, 1));
        if ceil == 5 {
            nodes.push(all(2, 1, 1, VAST));
        }
    }
    for (stride, padding, dilation) in
        [(VAST, 0, 1), (1, VAST, 1), (1, 0, VAST), (1, i64::MAX, i64::MAX)]
    {
        let args = json!([lines, lines, null, stride, padding, dilation, 1]);
        nodes.push(node("conv1d.default", args.clone()));
        let args = json!([lines, lines, null, stride, {"text": "same"}, dilation, 1]);
        if padding == 0 {
            nodes.push(node("conv1d.padding", args));
        }
        let args = json!([lines, lines, null, stride, padding, 0, 1, dilation]);
        nodes.push(node("conv_transpose1d.default", args));
    }
    for node in nodes {
        let error = told(&node).unwrap_err();
        assert!(error.contains("are the most") || error.contains("can't go by"), "{node}: {error}");
    }
}

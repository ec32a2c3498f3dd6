//! A checkpoint as its difference from another one.

use crate::file::{compare, hex, is_recording, recorded};
use serde_json::{Value, json};
use sojourn_codec::{
    Tensor,
    delta::{Named, decode, encode},
    encode as file_of,
};
use sojourn_protocol::digest::Digest;

/// zstd's output depends on its version, so a recorded delta is decoded, not made anew.
#[test]
fn deltas_give_the_results_of_the_file() {
    let momentum = |numbers: &[f32]| Tensor::f32("optimizer.momentum_buffer.w", [4u64], numbers);
    let lineage = |step| Tensor::i64("lineage", [6u64], &[77, 2, 0, 3, step, step]);
    let pairs = [
        (
            vec![Tensor::f32("w", [2u64], &[1.0, -2.0])],
            vec![Tensor::f32("w", [2u64], &[1.0, -2.0])],
        ),
        (
            vec![
                Tensor::f32("w", [4u64], &[1.0, -2.0, 0.99, 0.0]),
                momentum(&[0.0; 4]),
                lineage(0),
            ],
            vec![
                Tensor::f32("w", [4u64], &[1.0001, -1.9999, 1.0, -1e-9]),
                momentum(&[0.5, -0.25, 1e-3, 4.0]),
                lineage(5),
            ],
        ),
    ];
    let known = if is_recording() { Value::Null } else { recorded("deltas.json") };
    let deltas: Vec<Value> = pairs
        .into_iter()
        .enumerate()
        .map(|(number, (base, result))| {
            let (base, result) = (file_of(&base).unwrap(), file_of(&result).unwrap());
            let [named, new] =
                [&base, &result].map(|bytes| Named { digest: Digest::of(bytes).0, bytes });
            let delta = match known["deltas"][number]["delta"].as_str() {
                Some(text) => unhex(text),
                None => encode(named, new).unwrap(),
            };
            assert_eq!(decode(named, &delta, 1 << 20).unwrap(), result);
            json!({
                "base": hex(&base),
                "base_sha256": Digest::of(&base),
                "result": hex(&result),
                "result_sha256": Digest::of(&result),
                "delta": hex(&delta),
            })
        })
        .collect();
    compare("deltas.json", &json!({ "deltas": deltas }));
}

fn unhex(text: &str) -> Vec<u8> {
    let digits = text.as_bytes().chunks_exact(2);
    digits.map(|pair| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

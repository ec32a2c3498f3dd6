//! Seeds, streams of chance, and the orders made of them.

use crate::file::compare;
use rand_core::Rng;
use serde_json::{Value, json};
use sojourn_protocol::{
    digest::Digest,
    ids::{Epoch, ShardId, TrialId},
    minibatches::Minibatches,
    seeds,
};

const JOBS: [u64; 3] = [0, 7, u64::MAX];

#[test]
fn seeds_and_streams_are_those_of_the_file() {
    let derived = [
        ("hop", vec![7, 2, 0, 3]),
        ("batch", vec![77, 5]),
        ("row-order", vec![77]),
        ("weights", vec![7, 0]),
        ("initial-weights", vec![7, 2]),
        ("visit-order", vec![7, 1]),
        ("any word", vec![]),
        ("any word", vec![u64::MAX]),
    ];
    let derived = derived.map(|(domain, parts)| {
        let seed = seeds::derive(domain, &parts);
        json!({"domain": domain, "parts": parts, "seed": seed})
    });
    let initial = JOBS.map(|job_seed| {
        let seed = seeds::initial_weights(job_seed, TrialId(2));
        json!({"job_seed": job_seed, "trial": 2, "seed": seed})
    });
    let hops = JOBS.map(|job_seed| {
        let seed = seeds::hop(job_seed, TrialId(2), Epoch(1), ShardId(3));
        json!({"job_seed": job_seed, "trial": 2, "epoch": 1, "shard": 3, "seed": seed})
    });
    let batches = [(77, 0), (77, 1), (77, 12), (u64::MAX, 4)].map(
        |(hop_seed, batch)| json!({"hop_seed": hop_seed, "batch": batch, "seed": seeds::batch(hop_seed, batch)}),
    );
    let streams = [("row-order", vec![77]), ("weights", vec![7, 0])].map(|(domain, parts)| {
        let mut rng = seeds::stream(domain, &parts);
        // Two blocks of ChaCha and a half.
        let words: Vec<u32> = (0..40).map(|_| rng.next_u32()).collect();
        json!({"domain": domain, "parts": parts, "words": words})
    });
    let below = [1, 2, 10, 1000, 3_000_000_000].map(|bound| {
        let mut rng = seeds::stream("below", &[u64::from(bound)]);
        let draws: Vec<u32> = (0..8).map(|_| seeds::below(&mut rng, bound)).collect();
        json!({"domain": "below", "parts": [bound], "bound": bound, "draws": draws})
    });
    compare(
        "seeds.json",
        &json!({
            "derive": derived,
            "initial_weights": initial,
            "hop": hops,
            "batch": batches,
            "streams": streams,
            "below": below,
        }),
    );
}

#[test]
fn orders_of_rows_and_visits_are_those_of_the_file() {
    let orders = [(77, 1), (77, 2), (77, 7), (78, 7), (77, 33)].map(|(hop_seed, rows)| {
        json!({"hop_seed": hop_seed, "rows": rows, "order": seeds::row_order(hop_seed, rows)})
    });
    // A large one by the digest of its indices, 32 bits each, little-endian.
    let long = [(77, 1000), (u64::MAX, 70_000)].map(|(hop_seed, rows)| {
        let order = seeds::row_order(hop_seed, rows);
        json!({"hop_seed": hop_seed, "rows": rows, "first": order[..8], "sha256": digest(&order)})
    });
    let labels: [&[i64]; 3] = [&[0], &[1, 0, 0, 0, 0, 0, 0, 0, 4, 0], &[2, 2, 1, 1, 0, 0]];
    let balanced = labels.map(|labels| {
        json!({"hop_seed": 77, "labels": labels, "rows": seeds::balanced_rows(77, labels)})
    });
    let passes = [(77, 0), (77, 1), (77, 2), (78, 1)].map(|(hop_seed, pass)| {
        json!({"hop_seed": hop_seed, "pass": pass, "seed": seeds::pass(hop_seed, pass)})
    });
    let visits = [(0, 0), (1, 0), (6, 0), (0, 1)].map(|(trial, epoch)| {
        let order = seeds::visit_order(7, TrialId(trial), Epoch(epoch), 5);
        json!({"job_seed": 7, "trial": trial, "epoch": epoch, "shards": 5, "order": order})
    });
    let sizes = [(1, 8), (8, 8), (9, 8), (61, 8), (5, 100)].map(
        |(rows, size)| json!({"rows": rows, "batch_size": size, "batches": Minibatches::new(size, 1).of_pass(rows)}),
    );
    compare(
        "row-orders.json",
        &json!({
            "row_order": orders,
            "long_row_order": long,
            "balanced_rows": balanced,
            "passes": passes,
            "visit_order": visits,
            "batches": sizes,
        }),
    );
}

fn digest(order: &[u32]) -> Value {
    let bytes: Vec<u8> = order.iter().flat_map(|row| row.to_le_bytes()).collect();
    json!(Digest::of(&bytes))
}

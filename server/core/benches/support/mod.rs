//! What the benches of jobs have in common: their data, and plausible results.

use sojourn_protocol::{
    digest::{BlobRef, Digest},
    manifest::{DataManifest, Labels, Scaling, Shard, Targets},
    report::{Evaluated, Outcome, Sums, Trained},
    unit::{Lease, Unit},
};

/// The blob of a shard.
pub(crate) fn shard_blob(shard: u32) -> BlobRef {
    BlobRef { sha256: Digest::of(&shard.to_le_bytes()), bytes: 100 }
}

/// Data of so many shards to train on, and one more to evaluate on; of 64 rows each.
pub(crate) fn data(shards: u32) -> DataManifest {
    let shard = |n: u32| Shard { blob: shard_blob(n), rows: 64 };
    DataManifest {
        columns: Vec::new(),
        shape: vec![4],
        features: ["a", "b", "c", "d"].map(String::from).to_vec(),
        labels: Labels::Classes(vec!["0".into(), "1".into()]),
        categories: Vec::new(),
        fill: Vec::new(),
        scaling: Scaling::None,
        targets: Targets::Plain,
        train: (0..shards).map(shard).collect(),
        valid: vec![shard(shards)],
        test: Vec::new(),
    }
}

/// A plausible outcome of a lease's unit, with the checkpoint that was uploaded. `loss` is that of each row.
pub(crate) fn outcome(lease: &Lease, loss: f64) -> (Outcome, Option<BlobRef>) {
    let sums = |rows: u64| {
        let all = loss * f64::from(u32::try_from(rows).unwrap());
        Sums { rows, loss: all, correct: Some(1), ..Sums::default() }
    };
    match &lease.unit {
        Unit::Train(hop) => {
            let sha256 = Digest::of(&lease.id.0.to_le_bytes());
            let checkpoint = BlobRef { sha256, bytes: lease.upload_bytes };
            let end = hop.position_after(hop.to_train());
            let rows = hop.rows_to(end).unwrap();
            let trained = Trained {
                base: hop.base.version(),
                checkpoint,
                end,
                sums: sums(rows),
                train_micros: 1_000_000,
            };
            (Outcome::Trained(trained), Some(checkpoint))
        }
        Unit::Evaluate(evaluation) => {
            let evaluated = Evaluated {
                version: evaluation.version,
                shards: evaluation.shards.iter().map(|shard| sums(shard.rows.into())).collect(),
                by_class: None,
                arrays: [].into(),
                train_micros: 1000,
            };
            (Outcome::Evaluated(evaluated), None)
        }
    }
}

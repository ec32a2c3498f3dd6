//! The data of the benches of jobs.

use sojourn_protocol::{
    digest::{BlobRef, Digest},
    manifest::{DataManifest, Labels, Scaling, Shard, Targets},
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

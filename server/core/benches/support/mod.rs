//! The data of the benches of jobs, and hosts that ask for work.

use sojourn_protocol::{
    api::WorkRequest,
    digest::{BlobRef, Digest},
    inventory::{CPU, Demand, Device, Inventory},
    manifest::{DataManifest, Labels, Scaling, Shard, Targets},
    time::Millis,
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

/// The request of a host that has these shards, and this many slots on its one device, all of them idle.
pub(crate) fn request(
    slots: u32,
    cached: impl IntoIterator<Item = u32>,
    wait: Millis,
) -> WorkRequest {
    let inventory = Inventory {
        cached: cached.into_iter().map(|shard| shard_blob(shard).sha256).collect(),
        devices: vec![Device::new(CPU, Digest::of(b"class"), 1e9)],
        client: "bench".into(),
        ..Inventory::default()
    };
    WorkRequest {
        demand: vec![Demand { device: CPU.into(), slots, idle: slots, wanted: slots }],
        holding: Vec::new(),
        reported: Vec::new(),
        wait,
        inventory: Some(inventory),
    }
}

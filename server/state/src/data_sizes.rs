//! How much disk the data of a job takes: kept, as a request for work asks it for each trial.

use sojourn_protocol::manifest::{DataManifest, DataSplit, Shard};

/// Sizes in bytes of a job's data. They follow from the manifest, so they aren't stored.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DataSizes {
    /// Of the largest shard to train on.
    largest_shard: u64,
    /// Of all shards of the splits that models are evaluated on.
    valid: u64,
    test: u64,
}

impl DataSizes {
    pub(super) fn of(data: &DataManifest) -> Self {
        let bytes = |shards: &[Shard]| {
            shards.iter().map(|shard| shard.blob.bytes).fold(0, u64::saturating_add)
        };
        let largest_shard = data.train.iter().map(|shard| shard.blob.bytes).max().unwrap_or(0);
        Self { largest_shard, valid: bytes(&data.valid), test: bytes(&data.test) }
    }

    /// Bytes of the largest shard to train on.
    pub const fn largest_shard(&self) -> u64 {
        self.largest_shard
    }

    /// Bytes of all shards of a split.
    pub const fn split(&self, split: DataSplit) -> u64 {
        match split {
            DataSplit::Valid => self.valid,
            DataSplit::Test => self.test,
        }
    }
}

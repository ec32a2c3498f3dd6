//! How much disk the data of a job takes: kept, as a request for work asks it for each trial.

use sojourn_protocol::{
    cross_validation::Fold,
    manifest::{DataManifest, DataSplit, Shard},
};

/// Sizes in bytes of a job's data. They follow from the manifest, so they aren't stored.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DataSizes {
    /// Of the largest shard to train on.
    largest_shard: u64,
    /// Of all shards of the splits that models are evaluated on; of folds, of the largest one.
    valid: u64,
    test: u64,
}

impl DataSizes {
    /// `folds`: how many folds of the training shards are validated on in turn, where there are such.
    pub(super) fn of(data: &DataManifest, folds: Option<u32>) -> Self {
        let bytes = |shards: &[Shard]| {
            shards.iter().map(|shard| shard.blob.bytes).fold(0, u64::saturating_add)
        };
        let largest_shard = data.train.iter().map(|shard| shard.blob.bytes).max().unwrap_or(0);
        let of_fold = |fold| bytes(&data.split_of(Some(fold), DataSplit::Valid));
        let valid = match folds {
            None => bytes(&data.valid),
            Some(of) => (0..of).map(|number| of_fold(Fold { number, of })).max().unwrap_or(0),
        };
        Self { largest_shard, valid, test: bytes(&data.test) }
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

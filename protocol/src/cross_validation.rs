//! Cross-validation: each configuration is trained once for each fold, over all training shards but those of the fold, and evaluated
//! on these (Stone, 1974).
//!
//! ```text
//!   folds = 3     shard 0  shard 1  shard 2  shard 3  shard 4
//!   of fold          0        1        2        0        1
//! ```
//!
//! So nothing is cut or stored for it: shards that are trained on for one fold are evaluated on for another.

use crate::{
    ids::ShardId,
    manifest::{DataManifest, DataSplit, Shard},
    minibatches::Minibatches,
    quantity::SaturatingFrom as _,
};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// The fewest folds: with one no shard would be left to train on.
pub const MIN_FOLDS: u32 = 2;
/// The most folds.
pub const MAX_FOLDS: u32 = 100;

/// A fold of a job's training shards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fold {
    /// Counted from 0.
    pub number: u32,
    /// How many folds there are, at least [`MIN_FOLDS`].
    pub of: u32,
}

impl Fold {
    /// Is a shard left out of training, and evaluated on?
    #[must_use]
    pub const fn holds_out(&self, shard: ShardId) -> bool {
        match shard.0.checked_rem(self.of) {
            Some(of_shard) => of_shard == self.number,
            None => false,
        }
    }

    /// How many of so many shards a trial of this fold is trained on.
    #[must_use]
    pub fn trained_of(&self, shards: u64) -> u64 {
        let (number, of) = (u64::from(self.number), u64::from(self.of));
        match shards.saturating_add(of).saturating_sub(number + 1).checked_div(of) {
            Some(held_out) => shards.saturating_sub(held_out),
            None => shards,
        }
    }

    /// The shards that are left out, in order.
    fn held_out(self, train: &[Shard]) -> impl Iterator<Item = Shard> + '_ {
        let all = (0..).map(ShardId).zip(train);
        all.filter(move |(shard, _)| self.holds_out(*shard)).map(|(_, shard)| *shard)
    }
}

/// The mean of the values of a configuration's folds, by which it is compared; of at least one.
#[must_use]
pub fn mean_over_folds(values: &[f64]) -> f64 {
    let count = f64::from(u32::saturating_from(values.len()));
    values.iter().sum::<f64>() / count
}

impl DataManifest {
    /// The shards that a trial of this fold is evaluated on.
    #[must_use]
    pub fn split_of(&self, fold: Option<Fold>, split: DataSplit) -> Cow<'_, [Shard]> {
        match (fold, split) {
            (Some(fold), DataSplit::Valid) => Cow::Owned(fold.held_out(&self.train).collect()),
            (None, _) | (_, DataSplit::Test) => Cow::Borrowed(self.split(split)),
        }
    }

    /// Optimiser steps of one epoch of a trial of this fold.
    #[must_use]
    pub fn steps_per_epoch(&self, fold: Option<Fold>, minibatches: Minibatches) -> u64 {
        let trained = (0..).map(ShardId).zip(&self.train);
        let trained = trained.filter(|(shard, _)| fold.is_none_or(|fold| !fold.holds_out(*shard)));
        trained.map(|(_, shard)| u64::from(minibatches.of_hop(shard.rows))).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_shard_is_left_out_by_one_fold() {
        for of in MIN_FOLDS..9 {
            for shard in (0..40).map(ShardId) {
                let folds = (0..of).map(|number| Fold { number, of });
                assert_eq!(folds.filter(|fold| fold.holds_out(shard)).count(), 1, "{shard:?}");
            }
        }
        assert!(!Fold { number: 0, of: 0 }.holds_out(ShardId(0)));
    }

    #[test]
    fn a_fold_trains_on_those_that_it_does_not_hold_out() {
        for (number, of, shards) in
            [(0, 3, 7), (1, 3, 7), (2, 3, 7), (2, 3, 2), (4, 5, 5), (0, 2, 1)]
        {
            let fold = Fold { number, of };
            let trained = (0..shards).filter(|shard| !fold.holds_out(ShardId(*shard))).count();
            assert_eq!(fold.trained_of(shards.into()), trained as u64, "{fold:?} of {shards}");
        }
    }
}

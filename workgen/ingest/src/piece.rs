//! Parts of the data, and the shards of one.

use sojourn_protocol::quantity::to_u64;

/// The use of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Part {
    Train,
    Valid,
    Test,
}

impl Part {
    /// The permutation that its own file's rows go through.
    pub(crate) const fn stream(self) -> u64 {
        match self {
            Part::Train => 0,
            Part::Valid => 1,
            Part::Test => 2,
        }
    }
}

/// The rows of one part, from one file or folder.
#[derive(Debug, Clone)]
pub(crate) struct Piece {
    pub(crate) part: Part,
    /// The part whose file they come from.
    pub(crate) from: Part,
    pub(crate) rows: u64,
    pub(crate) sizes: Sizes,
    pub(crate) first_shard: usize,
    /// How far its shards are apart: 1, or the number of folds of which it is one.
    pub(crate) step: usize,
}

/// The rows of a part's shards.
#[derive(Debug, Clone)]
pub(crate) enum Sizes {
    /// So many shards of equal size (the first few have one more); rows are dealt round-robin.
    Equal(u64),
    /// For each shard, the end of its range of places.
    Ends(Vec<u64>),
}

impl Piece {
    pub(crate) fn shards(&self) -> u64 {
        match &self.sizes {
            Sizes::Equal(shards) => *shards,
            Sizes::Ends(ends) => to_u64(ends.len()),
        }
    }

    /// Rows of its shard `index`.
    pub(crate) fn rows_of(&self, index: u64) -> u64 {
        let end = |ends: &[u64], index: u64| {
            usize::try_from(index).ok().and_then(|index| ends.get(index).copied()).unwrap_or(0)
        };
        match &self.sizes {
            Sizes::Equal(shards) => self.rows / shards + u64::from(index < self.rows % shards),
            Sizes::Ends(ends) => {
                let before = index.checked_sub(1).map_or(0, |before| end(ends, before));
                end(ends, index).saturating_sub(before)
            }
        }
    }

    /// The shard of its row at `place`, among all shards of the plan.
    pub(crate) fn shard_of(&self, place: u64) -> Option<usize> {
        let index = match &self.sizes {
            Sizes::Equal(shards) => usize::try_from(place % shards).ok()?,
            Sizes::Ends(ends) => ends.partition_point(|end| *end <= place),
        };
        Some(self.first_shard + index * self.step)
    }

    /// All of its shards: the place of each among all shards of the plan, and its rows.
    pub(crate) fn all(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        let places = (self.first_shard..).step_by(self.step);
        places.zip((0..self.shards()).map(|index| self.rows_of(index)))
    }
}

/// A ratio of the rows, rounded, at least one.
pub(crate) fn ratio_of(rows: u64, ratio: f64) -> u64 {
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share in (0, 1) of a row count that is exact in an f64"
    )]
    let ratio = (rows as f64 * ratio).round() as u64;
    ratio.max(1)
}

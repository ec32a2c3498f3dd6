//! One trial's way over its shards: which are left in this epoch, and where each one stands.
//!
//! ```text
//!   epoch 0                     epoch 1
//!   shard 2  shard 0  shard 1 | shard 1 ...      any order within an epoch, no gap, no repeat
//!   [0..n)   [0..k)[k..n) ...                    a hop may come in parts: positions say where
//! ```
//!
//! This is where invariant H1 lives: [`Chain::advance`] takes a part only where the shard's trained
//! batches end, so no batch is trained twice or left out, and an epoch ends when every shard has.
//! [`Chain::advance_through`] is the same for a part that goes through several shards in a row.

use serde::{Deserialize, Serialize};
use sojourn_protocol::{
    ids::{Epoch, ShardId},
    manifest::Shard,
    position::{Position, batches},
};

/// A trial's progress in hop order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Chain {
    epochs: u32,
    epoch: Epoch,
    step: u64,
    /// Batches of each shard.
    sizes: Vec<u32>,
    /// Batches of each shard trained in this epoch.
    done: Vec<u32>,
    /// Batches left in all epochs.
    left: u64,
}

/// What a part of a hop ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Advance {
    /// The shard has batches left.
    Part,
    /// The hop is whole.
    Hop,
    /// The hop is whole, and with it this epoch.
    Epoch(Epoch),
}

/// What a part that may go through several shards ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Through {
    /// How many of the further shards it has come to; all before the last that it has come to are whole.
    pub further: usize,
    /// What it ended on that last one.
    pub last: Advance,
}

/// Why a part doesn't continue the chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ChainError {
    /// Not where the shard's trained batches end.
    #[error("the part starts at {start}, the chain stands at {}", .expected.map_or_else(|| "its end".into(), |at| at.to_string()))]
    NotNext {
        /// Where the part starts.
        start: Position,
        /// Where it should; `None` where the shard is no shard or the trial is done.
        expected: Option<Position>,
    },
    /// It ends before it starts, behind the shard, elsewhere, or with another count of steps.
    #[error("the part ends at {end}, which does not follow from {start}")]
    BadEnd {
        /// Where it starts.
        start: Position,
        /// Where it ends.
        end: Position,
    },
}

impl Chain {
    /// A trial that has trained nothing, over `shards`, each at least one row.
    #[must_use]
    pub fn new(epochs: u32, batch_size: u32, shards: &[Shard]) -> Self {
        let sizes: Vec<u32> =
            shards.iter().map(|shard| batches(u64::from(shard.rows), batch_size)).collect();
        let per_epoch: u64 = sizes.iter().map(|size| u64::from(*size)).sum();
        Self {
            epochs,
            epoch: Epoch(0),
            step: 0,
            done: vec![0; sizes.len()],
            sizes,
            left: per_epoch * u64::from(epochs),
        }
    }

    /// Goes on to `epochs` epochs in all; fewer than it has change nothing.
    pub fn extend(&mut self, epochs: u32) {
        let more = u64::from(epochs.saturating_sub(self.epochs));
        let per_epoch: u64 = self.sizes.iter().map(|size| u64::from(*size)).sum();
        self.left += per_epoch * more;
        self.epochs = self.epochs.max(epochs);
    }

    /// All epochs are trained.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.left == 0
    }

    /// The epoch that is being trained; the number of epochs when done.
    #[must_use]
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Optimiser steps taken.
    #[must_use]
    pub fn step(&self) -> u64 {
        self.step
    }

    /// Batches left in all epochs.
    #[must_use]
    pub fn left(&self) -> u64 {
        self.left
    }

    /// Batches left of `shard` in this epoch.
    #[must_use]
    pub fn left_of(&self, shard: ShardId) -> u32 {
        self.standing(shard).map_or(0, |(done, size)| size - done)
    }

    /// Shards with batches left in this epoch, in order.
    pub fn open(&self) -> impl Iterator<Item = ShardId> + '_ {
        let standing = self.done.iter().zip(&self.sizes).zip(0u32..);
        let running = !self.is_done();
        standing
            .filter(move |((done, size), _)| running && done < size)
            .map(|(_, shard)| ShardId(shard))
    }

    /// Where the next part over `shard` starts; `None` where nothing of it is left.
    #[must_use]
    pub fn next(&self, shard: ShardId) -> Option<Position> {
        let (done, size) = self.standing(shard)?;
        (done < size && !self.is_done()).then_some(Position {
            epoch: self.epoch,
            shard,
            batch: done,
            step: self.step,
        })
    }

    /// The same, with nothing left of these shards: they are for others.
    #[must_use]
    pub fn without(&self, shards: impl IntoIterator<Item = ShardId>) -> Self {
        let mut chain = self.clone();
        for shard in shards {
            let index = sojourn_protocol::unit::shard_index(shard);
            if let (Some(done), Some(size)) = (chain.done.get_mut(index), self.sizes.get(index)) {
                *done = *size;
            }
        }
        chain
    }

    /// Whole hops trained: shards ended, over all epochs.
    #[must_use]
    pub fn hops(&self) -> u64 {
        let shards = u64::try_from(self.sizes.len()).unwrap_or(u64::MAX);
        let open = u64::try_from(self.open().count()).unwrap_or(u64::MAX);
        if self.is_done() {
            return shards * u64::from(self.epochs);
        }
        shards * u64::from(self.epoch.0) + shards - open
    }

    /// Takes a trained part into the chain.
    ///
    /// # Errors
    /// [`ChainError`] where the part isn't what comes next; the chain is unchanged then.
    pub fn advance(&mut self, start: Position, end: Position) -> Result<Advance, ChainError> {
        let expected = self.next(start.shard);
        if expected != Some(start) {
            return Err(ChainError::NotNext { start, expected });
        }
        let size = self.standing(start.shard).map_or(0, |(_, size)| size);
        let trained = end.batch.saturating_sub(start.batch);
        let follows = Position { batch: end.batch, step: start.step + u64::from(trained), ..start };
        if trained == 0 || end.batch > size || end != follows {
            return Err(ChainError::BadEnd { start, end });
        }
        let index = sojourn_protocol::unit::shard_index(start.shard);
        if let Some(done) = self.done.get_mut(index) {
            *done = end.batch;
        }
        self.step = end.step;
        self.left -= u64::from(trained);
        if end.batch < size {
            return Ok(Advance::Part);
        }
        if self.done != self.sizes {
            return Ok(Advance::Hop);
        }
        let ended = self.epoch;
        self.epoch = ended.next();
        self.done.fill(0);
        Ok(Advance::Epoch(ended))
    }

    /// Takes a trained part into the chain that went through several shards of an epoch: over the rest of
    /// `start`'s, then over those of `then` in order, as far as `end`. All of it, or nothing.
    ///
    /// # Errors
    /// [`ChainError`] where any of it isn't what comes next; the chain is unchanged then.
    pub fn advance_through(
        &mut self,
        start: Position,
        then: &[ShardId],
        end: Position,
    ) -> Result<Through, ChainError> {
        if end.shard == start.shard {
            return Ok(Through { further: 0, last: self.advance(start, end)? });
        }
        let Some(last) = then.iter().position(|shard| *shard == end.shard) else {
            return Err(ChainError::BadEnd { start, end });
        };
        let mut chain = self.clone();
        let mut at = start;
        for shard in then.iter().take(last + 1) {
            let size = chain.standing(at.shard).map_or(0, |(_, size)| size);
            let trained = u64::from(size.saturating_sub(at.batch));
            chain.advance(at, Position { batch: size, step: at.step + trained, ..at })?;
            let next = Position { shard: *shard, batch: 0, step: at.step + trained, ..at };
            // Behind an epoch's end the next one begins, and a shard that is done comes round again.
            let expected = chain.next(*shard);
            if expected != Some(next) {
                return Err(ChainError::NotNext { start: next, expected });
            }
            at = next;
        }
        let advance = chain.advance(at, end)?;
        *self = chain;
        Ok(Through { further: last + 1, last: advance })
    }

    fn standing(&self, shard: ShardId) -> Option<(u32, u32)> {
        let index = sojourn_protocol::unit::shard_index(shard);
        Some((*self.done.get(index)?, *self.sizes.get(index)?))
    }
}

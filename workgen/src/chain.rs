//! A trial's hop chain: which shards it still has to visit in this epoch, and how far each one is trained.
//!
//! ```text
//!   epoch 0                     epoch 1
//!   shard 2  shard 0  shard 1 | shard 1 ...      any order within an epoch, no gap, no repeat
//!   [0..n)   [0..k)[k..n) ...                    a hop may come in parts: positions say where
//! ```
//!
//! A trial of a fold visits all shards but those of the fold ([`Chain::without_fold`]), which have no batches here.
//!
//! Where visits are fixed ([`Chain::with_fixed_visits`]) there is one order for each epoch, that of
//! [`seeds::visit_order`]. Then only one shard may come next.
//!
//! The chain holds invariant H1: [`Chain::advance`] takes a part only where the shard's trained batches end. So no
//! batch is trained twice or left out, and an epoch ends when every shard has ended. [`Chain::advance_through`] does
//! the same for a part that goes through several shards in a row.

use serde::{Deserialize, Serialize};
use sojourn_protocol::{
    cross_validation::Fold,
    ids::{Epoch, ShardId, TrialId},
    manifest::Shard,
    minibatches::Minibatches,
    position::Position,
    quantity::{SaturatingFrom as _, to_u64},
    seeds,
    unit::shard_index,
};

/// A trial's progress in hop order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Chain {
    epochs: u32,
    epoch: Epoch,
    step: u64,
    /// Batches of each shard; 0 of those that it doesn't visit.
    sizes: Vec<u32>,
    /// How many shards it doesn't visit.
    #[serde(default, skip_serializing_if = "is_zero")]
    unvisited: u64,
    /// Batches of each shard trained in this epoch.
    done: Vec<u32>,
    /// Batches that remain in all epochs.
    #[serde(rename = "left")]
    remaining: u64,
    /// The order of visits where it is fixed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    visits: Option<FixedVisits>,
}

/// The fixed order of a trial's visits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FixedVisits {
    job_seed: u64,
    trial: TrialId,
    /// The shards in the order of this epoch.
    order: Vec<ShardId>,
}

impl FixedVisits {
    /// Takes the order of an epoch's visits, of shards with so many batches each.
    fn of_epoch(&mut self, epoch: Epoch, sizes: &[u32]) {
        let shards = u32::saturating_from(sizes.len());
        self.order = seeds::visit_order(self.job_seed, self.trial, epoch, shards);
        self.order.retain(|shard| sizes.get(shard_index(*shard)).is_some_and(|size| *size > 0));
    }
}

/// How much a part of a hop completes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Advance {
    /// A part of the hop: the shard has batches left.
    Part,
    /// The hop is whole.
    Hop,
    /// The hop is whole, and with it this epoch.
    Epoch(Epoch),
}

/// How far a part goes that may go through several shards, and how much it completes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Through {
    /// The number of further shards that it reaches. All shards before the last one that it reaches are whole.
    pub further: usize,
    /// How much it completes of that last one.
    pub last: Advance,
}

/// Why a part doesn't continue the chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says it")]
pub enum ChainError {
    /// The part doesn't start where the shard's trained batches end.
    #[error("the part starts at {start}, the chain stands at {}", .expected.map_or_else(|| "its end".into(), |at| at.to_string()))]
    NotNext {
        start: Position,
        /// Where it should; `None` where the shard is no shard or the trial is done.
        expected: Option<Position>,
    },
    /// The part ends before it starts, after the shard's end, in another shard, or with another count of steps.
    #[error("the part ends at {end}, which does not follow from {start}")]
    BadEnd { start: Position, end: Position },
}

impl Chain {
    /// The chain of a trial that has trained nothing, over `shards` of at least one row each.
    #[must_use]
    pub fn new(epochs: u32, minibatches: Minibatches, shards: &[Shard]) -> Self {
        let sizes: Vec<u32> = shards.iter().map(|shard| minibatches.of_hop(shard.rows)).collect();
        let per_epoch: u64 = sizes.iter().map(|size| u64::from(*size)).sum();
        Self {
            epochs,
            epoch: Epoch(0),
            step: 0,
            done: vec![0; sizes.len()],
            sizes,
            unvisited: 0,
            remaining: per_epoch * u64::from(epochs),
            visits: None,
        }
    }

    /// The same chain of a trial that has trained nothing, which visits no shard of this fold.
    #[must_use]
    pub fn without_fold(mut self, fold: Option<Fold>) -> Self {
        let Some(fold) = fold else { return self };
        for (shard, size) in (0..).map(ShardId).zip(&mut self.sizes) {
            if fold.holds_out(shard) {
                self.unvisited += u64::from(*size > 0);
                *size = 0;
            }
        }
        let per_epoch: u64 = self.sizes.iter().map(|size| u64::from(*size)).sum();
        self.remaining = per_epoch * u64::from(self.epochs);
        self
    }

    /// The same chain, with the visits of this trial in the order of [`seeds::visit_order`].
    #[must_use]
    pub fn with_fixed_visits(mut self, job_seed: u64, trial: TrialId) -> Self {
        let mut visits = FixedVisits { job_seed, trial, order: Vec::new() };
        visits.of_epoch(self.epoch, &self.sizes);
        self.visits = Some(visits);
        self
    }

    /// The same chain, which begins after so many epochs, with so many steps taken: those of another trial.
    #[must_use]
    pub fn after(mut self, epochs: u32, step: u64) -> Self {
        let per_epoch: u64 = self.sizes.iter().map(|size| u64::from(*size)).sum();
        self.epochs = self.epochs.max(epochs);
        (self.epoch, self.step) = (Epoch(epochs), step);
        self.remaining = per_epoch * u64::from(self.epochs - epochs);
        if let Some(visits) = &mut self.visits {
            visits.of_epoch(self.epoch, &self.sizes);
        }
        self
    }

    /// Does it stand between two epochs, or at its end?
    #[must_use]
    pub fn is_between_epochs(&self) -> bool {
        self.is_done() || self.done.iter().all(|done| *done == 0)
    }

    /// Is the order of its visits fixed?
    #[must_use]
    pub fn has_fixed_visits(&self) -> bool {
        self.visits.is_some()
    }

    /// Extends the chain to `epochs` epochs in all. A smaller number changes nothing.
    pub fn extend(&mut self, epochs: u32) {
        let more = u64::from(epochs.saturating_sub(self.epochs));
        let per_epoch: u64 = self.sizes.iter().map(|size| u64::from(*size)).sum();
        self.remaining += per_epoch * more;
        self.epochs = self.epochs.max(epochs);
    }

    /// All epochs are trained.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.remaining == 0
    }

    /// The epoch that is being trained; the number of epochs when done.
    #[must_use]
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// How many epochs it has, trained or not.
    #[must_use]
    pub fn epochs(&self) -> u32 {
        self.epochs
    }

    /// Optimiser steps taken.
    #[must_use]
    pub fn step(&self) -> u64 {
        self.step
    }

    /// Batches that remain in all epochs.
    #[must_use]
    pub fn remaining(&self) -> u64 {
        self.remaining
    }

    /// Batches of `shard` that remain in this epoch.
    #[must_use]
    pub fn remaining_in(&self, shard: ShardId) -> u32 {
        self.progress(shard).map_or(0, |(done, size)| size - done)
    }

    /// Shards with batches left in this epoch: in the order of their visits where that is fixed, else by number.
    pub fn open(&self) -> impl Iterator<Item = ShardId> + '_ {
        let fixed = self.visits.as_ref().map(|visits| {
            let order = visits.order.iter().copied();
            // One after the other they were trained.
            order.skip(visits.order.partition_point(|shard| !self.is_open(*shard)))
        });
        let all = if fixed.is_none() { 0..u32::saturating_from(self.sizes.len()) } else { 0..0 };
        let all = fixed.into_iter().flatten().chain(all.map(ShardId));
        all.filter(|shard| self.is_open(*shard))
    }

    /// The open shards that may come next: all, or the first where the order of visits is fixed.
    pub fn next_shards(&self) -> impl Iterator<Item = ShardId> + '_ {
        let most = if self.has_fixed_visits() { 1 } else { usize::MAX };
        self.open().take(most)
    }

    /// Does a shard have batches left in this epoch?
    #[must_use]
    pub fn is_open(&self, shard: ShardId) -> bool {
        !self.is_done() && self.progress(shard).is_some_and(|(done, size)| done < size)
    }

    /// Does it have all of them left?
    #[must_use]
    pub fn is_untouched(&self, shard: ShardId) -> bool {
        self.is_open(shard) && self.progress(shard).is_some_and(|(done, _)| done == 0)
    }

    /// Where the next part over `shard` starts; `None` where no batches of it remain, or another shard comes first.
    #[must_use]
    pub fn next(&self, shard: ShardId) -> Option<Position> {
        let (done, _) = self.progress(shard)?;
        let first = !self.has_fixed_visits() || self.open().next() == Some(shard);
        (first && self.is_open(shard)).then_some(Position {
            epoch: self.epoch,
            shard,
            batch: done,
            step: self.step,
        })
    }

    /// The same chain, with these shards complete in this epoch: they are reserved for others.
    #[must_use]
    pub fn without(&self, shards: impl IntoIterator<Item = ShardId>) -> Self {
        let mut chain = self.clone();
        for shard in shards {
            let index = shard_index(shard);
            if let (Some(done), Some(size)) = (chain.done.get_mut(index), self.sizes.get(index)) {
                *done = *size;
            }
        }
        chain
    }

    /// Does it visit this shard in each epoch?
    #[must_use]
    pub fn visits(&self, shard: ShardId) -> bool {
        self.sizes.get(shard_index(shard)).is_some_and(|size| *size > 0)
    }

    /// How many hops an epoch has.
    #[must_use]
    pub fn hops_per_epoch(&self) -> u64 {
        to_u64(self.sizes.len()).saturating_sub(self.unvisited)
    }

    /// Whole hops trained, over all epochs.
    #[must_use]
    pub fn hops(&self) -> u64 {
        let per_epoch = self.hops_per_epoch();
        if self.is_done() {
            return per_epoch * u64::from(self.epochs);
        }
        let visited = self.done.iter().zip(&self.sizes).filter(|(_, size)| **size > 0);
        let whole = visited.filter(|(done, size)| done >= size);
        per_epoch * u64::from(self.epoch.0) + to_u64(whole.count())
    }

    /// Advances the chain by a trained part.
    ///
    /// # Errors
    /// [`ChainError`] where the part isn't what comes next; the chain is unchanged then.
    pub fn advance(&mut self, start: Position, end: Position) -> Result<Advance, ChainError> {
        let expected = self.next(start.shard);
        if expected != Some(start) {
            return Err(ChainError::NotNext { start, expected });
        }
        let size = self.progress(start.shard).map_or(0, |(_, size)| size);
        let trained = end.batch.saturating_sub(start.batch);
        let follows = Position { batch: end.batch, step: start.step + u64::from(trained), ..start };
        if trained == 0 || end.batch > size || end != follows {
            return Err(ChainError::BadEnd { start, end });
        }
        let index = shard_index(start.shard);
        if let Some(done) = self.done.get_mut(index) {
            *done = end.batch;
        }
        self.step = end.step;
        self.remaining -= u64::from(trained);
        if end.batch < size {
            return Ok(Advance::Part);
        }
        if self.done != self.sizes {
            return Ok(Advance::Hop);
        }
        let ended = self.epoch;
        self.epoch = ended.next();
        self.done.fill(0);
        if let Some(visits) = &mut self.visits {
            visits.of_epoch(self.epoch, &self.sizes);
        }
        Ok(Advance::Epoch(ended))
    }

    /// Advances the chain by a trained part that went through several shards of an epoch: over the rest of
    /// `start`'s shard, then over those of `then` in order, up to `end`. It takes all of it, or nothing.
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
            let size = chain.progress(at.shard).map_or(0, |(_, size)| size);
            let trained = u64::from(size.saturating_sub(at.batch));
            chain.advance(at, Position { batch: size, step: at.step + trained, ..at })?;
            let next = Position { shard: *shard, batch: 0, step: at.step + trained, ..at };
            // After an epoch's last shard the next epoch begins, where a trained shard is open again.
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

    /// Batches of `shard` that are trained in this epoch, and its batches in all; `None` where there is no such shard.
    #[must_use]
    pub fn progress(&self, shard: ShardId) -> Option<(u32, u32)> {
        let index = shard_index(shard);
        Some((*self.done.get(index)?, *self.sizes.get(index)?))
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_zero(count: &u64) -> bool {
    *count == 0
}

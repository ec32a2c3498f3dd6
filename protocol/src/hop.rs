//! A hop, the most frequent unit, and hop batches: several hops of one trial in a row, under one lease.
//!
//! ```text
//!   start                                                    whole
//!   shard 4 [12..20)      then shard 1 [0..20)   shard 7 [0..9)
//!   one base ------------------------------------------------> one result, one version
//! ```
//!
//! A result may end anywhere in a batch: the segments before its end are whole.

use crate::{
    context::{Base, TrialContext},
    digest::BlobRef,
    ids::{JobId, ShardId, TrialId},
    manifest::Shard,
    minibatches::Minibatches,
    position::Position,
};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A hop, or the rest of one, and perhaps further hops of the same epoch. It trains a trial over one shard's
/// batches from `start.batch` on, then over all batches of each shard of `then`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Hop {
    /// The job.
    pub job: JobId,
    /// The trial.
    pub trial: TrialId,
    /// The checkpoint to start from.
    pub base: Base,
    /// Where training starts; `start.batch` is 0 unless a partial checkpoint precedes.
    pub start: Position,
    /// The first shard's data.
    pub shard: Shard,
    /// The first hop's seed ([`crate::seeds::hop`]): the same for all parts of one hop.
    #[serde(with = "crate::decimal")]
    #[cfg_attr(feature = "openapi", schema(value_type = crate::decimal::Seed))]
    pub seed: u64,
    /// The context that the trial's units share.
    pub context: Arc<TrialContext>,
    /// The hops that follow, in order; each from its first batch.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub then: Vec<NextHop>,
    /// The end of the batch: before this batch of rows of its last shard, where that isn't trained to its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<u32>,
}

/// A further hop under the same lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = Leg))]
#[serde(deny_unknown_fields)]
pub struct NextHop {
    /// The shard to visit.
    pub shard_id: ShardId,
    /// The shard's data.
    pub shard: Shard,
    /// The hop's seed ([`crate::seeds::hop`]).
    #[serde(with = "crate::decimal")]
    #[cfg_attr(feature = "openapi", schema(value_type = crate::decimal::Seed))]
    pub seed: u64,
}

/// The part of a hop batch that one shard has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShardSegment {
    /// Where it starts.
    pub start: Position,
    /// Where it ends: after the shard's last batch.
    pub end: Position,
    /// The shard's data.
    pub shard: Shard,
    /// The hop's seed.
    pub seed: u64,
}

impl ShardSegment {
    fn new(start: Position, shard: Shard, seed: u64, minibatches: Minibatches) -> Self {
        let end = up_to(start, minibatches.of_hop(shard.rows));
        Self { start, end, shard, seed }
    }

    /// The same, but no further than to this batch.
    fn until(self, batch: Option<u32>) -> Self {
        let end = batch.map_or(self.end.batch, |batch| batch.min(self.end.batch));
        Self { end: up_to(self.start, end), ..self }
    }

    /// How many batches the segment has.
    #[must_use]
    pub fn batches(&self) -> u32 {
        self.end.batch.saturating_sub(self.start.batch)
    }

    /// The trial's step at one of its batches.
    #[must_use]
    pub fn step_at(&self, batch: u32) -> u64 {
        up_to(self.start, batch).step
    }

    /// The position before batch `batch`; `None` where that isn't on it, its start included.
    #[must_use]
    pub fn position_at(&self, batch: u32) -> Option<Position> {
        let on_it = self.start.batch < batch && batch <= self.end.batch;
        on_it.then(|| up_to(self.start, batch))
    }

    /// Rows of its batches before `batch`.
    #[must_use]
    pub fn rows_to(&self, batch: u32, minibatches: Minibatches) -> u64 {
        let before = |batch| minibatches.rows_before(self.shard.rows, batch);
        before(batch).saturating_sub(before(self.start.batch))
    }
}

impl Hop {
    /// Batches of the whole first hop.
    #[must_use]
    pub fn batches(&self) -> u32 {
        self.minibatches().of_hop(self.shard.rows)
    }

    /// The position after training the first shard up to batch `end` (exclusive).
    #[must_use]
    pub fn position_at(&self, end: u32) -> Position {
        up_to(self.start, end)
    }

    /// The first shard's segment.
    #[must_use]
    pub fn first(&self) -> ShardSegment {
        let first = ShardSegment::new(self.start, self.shard, self.seed, self.minibatches());
        first.until(self.until.filter(|_| self.then.is_empty()))
    }

    /// The segment of each shard, in order.
    pub fn segments(&self) -> impl Iterator<Item = ShardSegment> + '_ {
        let first = self.first();
        let last = self.then.len();
        let further = (1..).zip(&self.then).scan(first.end, move |at, (n, next)| {
            let start = Position { shard: next.shard_id, batch: 0, ..*at };
            let segment = ShardSegment::new(start, next.shard, next.seed, self.minibatches());
            let segment = segment.until(self.until.filter(|_| n == last));
            *at = segment.end;
            Some(segment)
        });
        std::iter::once(first).chain(further)
    }

    /// Batches of rows of the whole hop batch.
    #[must_use]
    pub fn to_train(&self) -> u32 {
        self.segments().map(|segment| segment.batches()).fold(0, u32::saturating_add)
    }

    /// The position after so many batches, at least one; the end where there are fewer. Between two shards that is
    /// the end of the former.
    #[must_use]
    pub fn position_after(&self, done: u32) -> Position {
        let mut remaining = done;
        let mut at = self.start;
        for segment in self.segments().take_while(|_| done > 0) {
            if remaining <= segment.batches() {
                return up_to(segment.start, segment.start.batch.saturating_add(remaining));
            }
            remaining -= segment.batches();
            at = segment.end;
        }
        at
    }

    /// The segment in which a result with this end position ends; `None` where it is in none.
    #[must_use]
    pub fn segment_to(&self, end: Position) -> Option<ShardSegment> {
        self.segments().find(|segment| segment.position_at(end.batch) == Some(end))
    }

    /// Rows of all batches up to a position; `None` where the position is in no segment.
    #[must_use]
    pub fn rows_to(&self, end: Position) -> Option<u64> {
        let last = self.segment_to(end)?;
        let before = self.segments().take_while(|segment| *segment != last);
        let rows = |segment: &ShardSegment, batch| segment.rows_to(batch, self.minibatches());
        let whole: u64 = before.map(|segment| rows(&segment, segment.end.batch)).sum();
        Some(whole + rows(&last, end.batch))
    }

    /// The shards of all hops.
    pub(crate) fn shards(&self) -> impl Iterator<Item = BlobRef> + '_ {
        let further = self.then.iter().map(|next| next.shard.blob);
        std::iter::once(self.shard.blob).chain(further)
    }

    fn minibatches(&self) -> Minibatches {
        self.context.config.training.minibatches()
    }
}

/// The position before batch `batch` of the same shard.
fn up_to(start: Position, batch: u32) -> Position {
    let trained = u64::from(batch.saturating_sub(start.batch));
    Position { batch, step: start.step + trained, ..start }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        digest::Digest,
        ids::Epoch,
        manifest::{Scaling, Targets},
        spec::{Architecture, Loss, Optimizer, OptimizerName, TrainingConfig, TrialConfig},
    };

    const START: Position = Position { epoch: Epoch(1), shard: ShardId(4), batch: 2, step: 30 };

    fn shard(rows: u32) -> Shard {
        Shard { blob: BlobRef { sha256: Digest::of(&rows.to_le_bytes()), bytes: 1 }, rows }
    }

    /// The rest of a shard of 20 rows from its third batch of 8 on, then shards of 9 and 3 rows.
    fn hop() -> Hop {
        let optimizer = Optimizer::new(OptimizerName::Sgd, 0.1);
        let training = TrainingConfig::new(3, 8, Loss::Mse, optimizer);
        let next =
            |n, rows| NextHop { shard_id: ShardId(n), shard: shard(rows), seed: u64::from(n) };
        Hop {
            job: JobId(1),
            trial: TrialId(0),
            base: Base::Initial { seed: 1 },
            start: START,
            shard: shard(20),
            seed: 4,
            context: TrialContext {
                config: TrialConfig { model: Architecture::mlp([]), training },
                columns: Vec::new(),
                shape: vec![1],
                outputs: 1,
                scaling: Scaling::None,
                targets: Targets::Plain,
                total_steps: 90,
                pinned_threads: None,
            }
            .into(),
            then: vec![next(1, 9), next(7, 3)],
            until: None,
        }
    }

    fn at(shard: u32, batch: u32, step: u64) -> Position {
        Position { shard: ShardId(shard), batch, step, ..START }
    }

    #[test]
    fn a_hop_batch_goes_through_its_shards_and_counts_on() {
        let hop = hop();
        let ends: Vec<Position> = hop.segments().map(|segment| segment.end).collect();
        assert_eq!(ends, [at(4, 3, 31), at(1, 2, 33), at(7, 1, 34)]);
        assert_eq!(hop.to_train(), 4);
        let after: Vec<Position> = (0..6).map(|done| hop.position_after(done)).collect();
        assert_eq!(after, [START, ends[0], at(1, 1, 32), ends[1], ends[2], ends[2]]);
        let blobs: Vec<BlobRef> = hop.shards().collect();
        assert_eq!(blobs, [20, 9, 3].map(|rows| shard(rows).blob));
    }

    #[test]
    fn a_result_that_ends_in_no_segment_has_no_rows() {
        let hop = hop();
        let rows = |end| hop.rows_to(end);
        assert_eq!(rows(at(4, 3, 31)), Some(4));
        assert_eq!(rows(at(1, 1, 32)), Some(12));
        assert_eq!(rows(at(1, 2, 33)), Some(13));
        assert_eq!(rows(at(7, 1, 34)), Some(16));
        for off in [START, at(4, 4, 32), at(1, 0, 31), at(1, 1, 33), at(2, 1, 32), at(7, 1, 32)] {
            assert_eq!(rows(off), None, "{off}");
        }
        assert_eq!(rows(Position { epoch: Epoch(0), ..at(1, 1, 32) }), None);
        assert_eq!(hop.segment_to(at(1, 1, 32)).map(|segment| segment.seed), Some(1));
    }

    #[test]
    fn a_hop_batch_may_end_within_its_last_shard() {
        let ends = |hop: &Hop| hop.segments().map(|segment| segment.end).collect::<Vec<_>>();
        let mut two = hop();
        (two.then, two.until) = (vec![two.then[0]], Some(1));
        assert_eq!(ends(&two), [at(4, 3, 31), at(1, 1, 32)]);
        assert_eq!((two.to_train(), two.rows_to(at(1, 2, 33))), (2, None));
        let mut one = hop();
        (one.then, one.start.batch, one.until) = (Vec::new(), 0, Some(2));
        assert_eq!((ends(&one), one.first().end), (vec![at(4, 2, 32)], at(4, 2, 32)));
        one.until = Some(9);
        assert_eq!(ends(&one), [at(4, 3, 33)]);
    }

    #[test]
    fn a_single_hop_is_written_as_it_was_before_there_were_batches() {
        let several = serde_json::to_value(hop()).unwrap();
        let one = serde_json::to_value(Hop { then: Vec::new(), ..hop() }).unwrap();
        assert_eq!((several.get("then").is_some(), one.get("then")), (true, None));
        assert_eq!(serde_json::from_value::<Hop>(several).unwrap(), hop());
        assert!(serde_json::from_value::<Hop>(one).unwrap().then.is_empty());
    }
}

//! Training as a hash: a checkpoint's digest names everything that was trained into it, in order.

use sojourn_protocol::{
    digest::{BlobRef, Digest},
    metrics::{ByClass, ClassDetail, Confusion},
    position::Position,
    report::{Evaluated, Sums},
    unit::{Base, Evaluation, Hop},
    view::TrialHistory,
};
use std::ops::Range;

/// The checkpoint of a hop, and of those that follow it under its lease, trained as far as `end`.
#[must_use]
pub fn train(hop: &Hop, end: Position, bytes: u64) -> BlobRef {
    let mut made = BlobRef { sha256: base(&hop.base), bytes };
    for stretch in hop.stretches() {
        let last = stretch.position_at(end.batch) == Some(end);
        let until = if last { end.batch } else { stretch.end.batch };
        let batches = stretch.start.batch..until;
        made = step(made.sha256, stretch.seed, hop.context.total_steps, batches, bytes);
        if last {
            break;
        }
    }
    made
}

/// The digests that one machine gets that trains a trial's history alone, hop after hop.
#[must_use]
pub fn replay(history: &TrialHistory) -> Vec<Digest> {
    let mut base = history.first_base();
    let mut digests = Vec::new();
    for record in &history.hops {
        let Some(hop) = history.hop_of(record, base) else { break };
        let blob = train(&hop, record.end, record.checkpoint.bytes);
        digests.push(blob.sha256);
        base = Base::Checkpoint { version: record.version, blob };
    }
    digests
}

/// What a host says of an evaluation: made-up metrics that depend on the checkpoint alone.
#[must_use]
pub fn evaluated(evaluation: &Evaluation) -> Evaluated {
    let of = |rows| sums(&evaluation.checkpoint.sha256, rows);
    let shards = evaluation.shards.iter().map(|shard| of(shard.rows)).collect();
    let mut evaluated =
        Evaluated { version: evaluation.version, shards, by_class: None, train_micros: 1000 };
    let sums = evaluated.sums();
    let correct = sums.correct.unwrap_or(0);
    let matrix = Confusion(vec![vec![correct, sums.rows - correct], vec![0, 0]]);
    evaluated.by_class = match evaluation.counting.by_class {
        ClassDetail::Nothing => None,
        ClassDetail::Totals => Some(ByClass::Totals(matrix.totals())),
        ClassDetail::Confusion => Some(ByClass::Confusion(matrix)),
    };
    evaluated
}

/// Made-up sums over `rows`.
#[must_use]
pub fn sums(checkpoint: &Digest, rows: u32) -> Sums {
    let chance = u64::from(checkpoint.0.first().copied().unwrap_or(0));
    let rows = u64::from(rows);
    Sums { rows, loss: 1.0, correct: Some(rows * chance / 255), ..Sums::default() }
}

fn base(base: &Base) -> Digest {
    match base {
        Base::Initial { seed } => Digest::of(&seed.to_le_bytes()),
        Base::Given { parameters, .. } => parameters.sha256,
        Base::Checkpoint { blob, .. } => blob.sha256,
    }
}

fn step(base: Digest, hop_seed: u64, total: u64, batches: Range<u32>, bytes: u64) -> BlobRef {
    // Batch by batch, so that a hop in two parts gives the digest of the whole.
    let mut at = base;
    for batch in batches {
        let mut text = at.0.to_vec();
        text.extend(hop_seed.to_le_bytes());
        // As a schedule does, it depends on how long the trial is to be.
        text.extend(total.to_le_bytes());
        text.extend(batch.to_le_bytes());
        at = Digest::of(&text);
    }
    BlobRef { sha256: at, bytes }
}

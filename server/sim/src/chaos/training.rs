//! Training as a hash: a checkpoint's digest names everything that was trained into it, in order.

use sojourn_core::state::{Job, Trial};
use sojourn_protocol::{
    digest::{BlobRef, Digest},
    ids::{Epoch, LeaseId, Version},
    metrics::{ByClass, ClassDetail, Confusion},
    position::Position,
    quantity::SaturatingFrom as _,
    report::{Evaluated, Sums},
    seeds,
    unit::{Base, Evaluation, Flush, Hop, shard_index},
    view::{MergeRecord, TrialHistory},
};
use std::{collections::BTreeMap, ops::Range};

/// The checkpoint of a hop, and of those that follow it under its lease, trained as far as `end`.
#[must_use]
pub fn train(hop: &Hop, end: Position, bytes: u64) -> BlobRef {
    let mut made = BlobRef { sha256: base(&hop.base), bytes };
    for stretch in hop.segments() {
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

/// The checkpoint of a trial with fixed visits after all its epochs, or those after which the search has stopped it.
#[must_use]
pub fn of_job(job: &Job, trial: &Trial) -> Option<BlobRef> {
    after(job, trial, trial.length())
}

/// The same after so many epochs. A clone has those of the other trial, up to where it goes on from it.
fn after(job: &Job, trial: &Trial, epochs: u32) -> Option<BlobRef> {
    let (seed, total) = (trial.seed_in(job), trial.context.total_steps);
    let minibatches = trial.context.config.training.minibatches();
    let shards = u32::saturating_from(job.data.train.len());
    let (first, mut made) = match trial.origin {
        Some(origin) => {
            let made = after(job, job.trial(origin.trial)?, origin.epochs)?;
            (origin.epochs, made.sha256)
        }
        None => (0, base(&Base::first(trial.initial_seed, trial.initial_weights))),
    };
    for epoch in (first..epochs).map(Epoch) {
        let order = seeds::visit_order(job.spec.seed, trial.id, epoch, shards);
        for shard in order.into_iter().filter(|shard| trial.chain.visits(*shard)) {
            let rows = job.data.train.get(shard_index(shard))?.rows;
            let hop_seed = seeds::hop(seed, trial.id, epoch, shard);
            let batches = 0..minibatches.of_hop(rows);
            made = step(made, hop_seed, total, batches, trial.checkpoint_bytes).sha256;
        }
    }
    Some(BlobRef { sha256: made, bytes: trial.checkpoint_bytes })
}

/// The versions and facts with which a result is merged.
#[derive(Debug, Clone, Copy)]
pub struct With {
    /// The version that it began from, and the current one.
    pub base: Base,
    /// See `base`.
    pub current: Base,
    /// The rule's state.
    pub state: Option<BlobRef>,
    /// Further facts that a rule is told.
    pub staleness: u64,
    /// See `staleness`.
    pub in_flight: u32,
    /// See `staleness`.
    pub flush: Flush,
}

/// The version that a result is merged into, and the rule's state: they name all that went into them.
#[must_use]
pub fn merge(returned: BlobRef, with: &With) -> (BlobRef, BlobRef) {
    let state = with.state.map_or(Digest([0; 32]), |state| state.sha256);
    let mut text = Vec::new();
    for digest in [returned.sha256, base(&with.base), base(&with.current), state] {
        text.extend(digest.0);
    }
    text.extend(with.staleness.to_le_bytes());
    text.extend(with.in_flight.to_le_bytes());
    text.push(u8::from(with.flush == Flush::Now));
    let made = Digest::of(&text);
    text.push(1);
    let (bytes, state) = (returned.bytes, Digest::of(&text));
    (BlobRef { sha256: made, bytes }, BlobRef { sha256: state, bytes: 1 })
}

/// The versions of a trial's history that aren't what one machine makes of the versions before them.
#[must_use]
pub fn different(history: &TrialHistory) -> Vec<Version> {
    let mut made = BTreeMap::from([(Version(0), history.first_base())]);
    let (mut current, mut state) = (history.first_base(), None);
    let mut different = Vec::new();
    for record in &history.hops {
        let from = record.merged.map_or(current.version(), |merged| merged.base);
        let base = made.get(&from).copied();
        let hop = base.and_then(|base| history.hop_of(record, base).map(|hop| (base, hop)));
        let right = hop.map(|(base, hop)| {
            let steps = record.end.step - record.start.step;
            let end = Position { step: hop.start.step + steps, ..record.end };
            let returned = train(&hop, end, record.checkpoint.bytes);
            let Some(merged) = record.merged else { return (returned, None) };
            let MergeRecord { staleness, in_flight, flush, from, .. } = merged;
            // It says itself where a rule begins anew.
            let state = from.and(state);
            let with = With { base, current, state, staleness, in_flight, flush };
            let (next, state) = merge(returned, &with);
            (next, Some(state))
        });
        if right != Some((record.checkpoint, record.merged.map(|merged| merged.state))) {
            different.push(record.version);
        }
        current = Base::Checkpoint { version: record.version, blob: record.checkpoint };
        state = record.merged.map(|merged| merged.state);
        made.insert(record.version, current);
    }
    different
}

/// The report of a host on an evaluation: made-up metrics that depend on the checkpoint alone.
#[must_use]
pub fn evaluated(evaluation: &Evaluation) -> Evaluated {
    let of = |rows| sums(&evaluation.checkpoint.sha256, rows);
    let shards = evaluation.shards.iter().map(|shard| of(shard.rows)).collect();
    let mut evaluated = Evaluated {
        version: evaluation.version,
        shards,
        by_class: None,
        arrays: BTreeMap::new(),
        train_micros: 1000,
    };
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

/// A made-up loss of a hop after so many batches: it falls, and it trembles.
pub fn loss(lease: LeaseId, done: u32) -> f64 {
    let chance = seeds::below(&mut seeds::stream("loss", &[lease.0, u64::from(done)]), 8);
    1.0 / f64::from(1 + done) + f64::from(chance) / 16.0
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
        Base::InitialWeights { parameters, .. } => parameters.sha256,
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

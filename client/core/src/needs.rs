//! The blobs of a unit: those that it begins with, and the shards of its later hops, which come while it runs.

use crate::{action::BlobClass, event::TransferView};
use sojourn_protocol::{
    digest::{BlobRef, Digest},
    unit::Unit,
};
use std::collections::VecDeque;

/// A blob that a unit needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Need {
    /// The blob's name and size.
    pub blob: BlobRef,
    /// The blob's use.
    pub class: BlobClass,
}

/// The blobs that a unit needs, in the order in which it does.
#[derive(Debug, Clone, Default)]
pub struct Needs {
    /// The blobs that the unit begins with.
    pub first: Vec<Need>,
    /// The blobs that the unit needs later.
    pub later: Vec<Need>,
    /// How far the fetching of `later` is.
    pub(crate) rest: Rest,
}

/// How far the fetching of a unit's later shards is.
#[derive(Debug, Clone, Default)]
pub(crate) enum Rest {
    /// Not begun.
    #[default]
    NotBegun,
    /// One is on its way, and these come after it. Those that were on the disk aren't among them.
    Coming(Digest, VecDeque<Need>),
    /// All were asked for, or nothing more will be.
    Over,
}

impl Needs {
    /// The needs of a unit.
    #[must_use]
    pub fn of(unit: &Unit) -> Self {
        let model = model_of(unit);
        let mut first = unit.blobs();
        let mut later = Vec::new();
        if let Unit::Train(hop) = unit {
            let further = hop.then.iter().map(|leg| leg.shard.blob);
            for blob in further.filter(|blob| *blob != hop.shard.blob) {
                if first.contains(&blob) {
                    first.retain(|other| *other != blob);
                    later.push(blob);
                }
            }
        }
        let mut unique: Vec<BlobRef> = Vec::with_capacity(first.len());
        for blob in first {
            if !unique.contains(&blob) {
                unique.push(blob);
            }
        }
        let need = |blob: BlobRef| {
            let is_model = model == Some(blob);
            let class = if is_model { BlobClass::Checkpoint } else { BlobClass::Data };
            Need { blob, class }
        };
        Self {
            first: unique.into_iter().map(need).collect(),
            later: later.into_iter().map(need).collect(),
            rest: Rest::NotBegun,
        }
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Need> {
        self.first.iter().chain(&self.later)
    }

    /// The checkpoint that the unit goes on from, or evaluates.
    pub(crate) fn checkpoint(&self) -> Option<BlobRef> {
        let mut first = self.first.iter();
        first.find(|need| need.class == BlobClass::Checkpoint).map(|need| need.blob)
    }

    /// Does the unit need it in a later hop?
    pub(crate) fn is_later(&self, blob: &Digest) -> bool {
        self.later.iter().any(|need| need.blob.sha256 == *blob)
    }

    /// Bytes of its blobs that are on the disk.
    pub(crate) fn fetched(&self, view: &impl TransferView) -> u64 {
        let here = self.all().map(|need| view.fetched(&need.blob.sha256));
        here.fold(0, u64::saturating_add)
    }

    /// Bytes of its blobs that aren't on the disk.
    pub(crate) fn missing(&self, view: &impl TransferView) -> u64 {
        let missing = self.all().filter(|need| !view.has(&need.blob.sha256));
        missing.map(|need| need.blob.bytes).fold(0, u64::saturating_add)
    }
}

/// The checkpoint that a unit goes on from, or evaluates.
#[must_use]
pub fn model_of(unit: &Unit) -> Option<BlobRef> {
    match unit {
        Unit::Train(hop) => hop.base.blob(),
        Unit::Evaluate(evaluation) => Some(evaluation.checkpoint),
    }
}

/// Batches of a unit, over all its shards.
#[must_use]
pub fn batches_of(unit: &Unit) -> u32 {
    match unit {
        Unit::Train(hop) => hop.to_train(),
        Unit::Evaluate(evaluation) => {
            let minibatches = evaluation.context.config.training.minibatches();
            let batches = evaluation.shards.iter().map(|shard| minibatches.of_pass(shard.rows));
            batches.fold(0, u32::saturating_add)
        }
    }
}

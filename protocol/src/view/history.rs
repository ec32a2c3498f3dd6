//! The history of a trial: all that is needed to train it again.

use crate::{
    digest::{BlobRef, Digest},
    ids::{Epoch, HostId, JobId, LeaseId, ShardId, TrialId, Version},
    manifest::DataManifest,
    metrics::is_default,
    position::Position,
    seeds,
    spec::MergeSpec,
    unit::{Base, Flush, FormerLength, Hop, NextHop, Origin, TrialContext, shard_index},
};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// All that is needed to train one trial again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TrialHistory {
    /// The job.
    pub job: JobId,
    /// The trial.
    pub trial: TrialId,
    /// Seed of the job, or of the trial where seeds are a dimension of the search.
    #[serde(with = "crate::decimal")]
    #[cfg_attr(feature = "openapi", schema(value_type = crate::decimal::Seed))]
    pub job_seed: u64,
    /// The context that the trial's units share now; see [`TrialHistory::context_of`].
    pub context: Arc<TrialContext>,
    /// How long the trial was to be before each of its extensions, the earliest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub former: Vec<FormerLength>,
    /// The job's data.
    pub data: DataManifest,
    /// The numeric class of the hops, where one class made all of them.
    pub numeric_class: Option<Digest>,
    /// The parameters that the trial started from, where the job file names some.
    #[serde(rename = "given", default, skip_serializing_if = "Option::is_none")]
    pub initial_weights: Option<BlobRef>,
    /// Where the trial goes on from, where it is a clone of another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    /// How results were merged, where any was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merge: Option<MergeSpec>,
    /// The hops (or parts of hops, or several in a row) in the order in which they made versions 1, 2, ...
    pub hops: Vec<HopRecord>,
}

impl TrialHistory {
    /// The base of version 1.
    #[must_use]
    pub fn first_base(&self) -> Base {
        match &self.origin {
            Some(origin) => origin.base(),
            None => {
                Base::first(seeds::initial_weights(self.job_seed, self.trial), self.initial_weights)
            }
        }
    }

    /// The context that a hop of the history was trained with.
    #[must_use]
    pub fn context_of(&self, hop: &HopRecord) -> Arc<TrialContext> {
        self.context.as_of(hop.lease, &self.former)
    }

    /// Optimiser steps before a record's hop: those of its base, which isn't the version before where the result was
    /// merged.
    fn first_step(&self, record: &HopRecord) -> u64 {
        let Some(merged) = &record.merged else { return record.start.step };
        let made = self.hops.iter().find(|made| made.version == merged.base);
        made.map_or(0, |made| made.end.step)
    }

    /// The hop that was trained for a record of the history, from this base: as far as the shard that it
    /// ended on. `None` where the data lacks a shard of it.
    #[must_use]
    pub fn hop_of(&self, record: &HopRecord, base: Base) -> Option<Hop> {
        let leg = |shard_id: ShardId| {
            let shard = *self.data.train.get(shard_index(shard_id))?;
            let seed = seeds::hop(self.job_seed, self.trial, record.epoch(), shard_id);
            Some(NextHop { shard_id, shard, seed })
        };
        let NextHop { shard, seed, .. } = leg(record.start.shard)?;
        Some(Hop {
            job: self.job,
            trial: self.trial,
            base,
            start: Position { step: self.first_step(record), ..record.start },
            shard,
            seed,
            context: self.context_of(record),
            then: record.then.iter().copied().map(leg).collect::<Option<_>>()?,
            until: None,
        })
    }
}

/// One part of a trial's history: what made a version. That is a hop, a part of one, or several in a row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct HopRecord {
    /// The version that it made.
    pub version: Version,
    /// The lease whose result it was.
    pub lease: LeaseId,
    /// The host that trained it.
    pub host: HostId,
    /// Where it began.
    pub start: Position,
    /// Where it ended: in the same epoch, and on the last shard that it visited.
    pub end: Position,
    /// The checkpoint that it made.
    pub checkpoint: BlobRef,
    /// The shards that it visited after its first, each from the first batch; all but the last are whole.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub then: Vec<ShardId>,
    /// How its result was merged, where it didn't replace the version before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merged: Option<MergeRecord>,
    /// Whether other hosts came to the same, where they were to be asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verified: Option<Verification>,
}

impl HopRecord {
    /// The epoch that it belongs to.
    #[must_use]
    pub const fn epoch(&self) -> Epoch {
        self.start.epoch
    }

    /// The shards that it visited, in order.
    pub fn shards(&self) -> impl Iterator<Item = ShardId> + '_ {
        std::iter::once(self.start.shard).chain(self.then.iter().copied())
    }
}

/// The outcome of a result's verification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Verification {
    /// Other hosts came to the same.
    Confirmed,
    /// A server of before took it in though nobody was there to ask, or too few parties agreed.
    Unverified,
}

/// How a result was merged into the version before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct MergeRecord {
    /// The version that was trained.
    pub base: Version,
    /// Versions of the trial that had been made since.
    pub staleness: u64,
    /// Units of the trial that were in flight at once.
    pub in_flight: u32,
    /// Whether what the rule had gathered was used with it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub flush: Flush,
    /// The rule's state that it was merged with; none where the version before came from hop order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<BlobRef>,
    /// The rule's state that was made with the version.
    pub state: BlobRef,
}

//! Workunits: what a host is asked to do, complete in itself.

use crate::{
    cpu_shares::LeaseCpuShares,
    digest::BlobRef,
    ids::{Epoch, JobId, LeaseId, ShardId, TrialId, Version},
    manifest::{DataSplit, Scaling, Shard},
    metrics::{Counting, is_default},
    position::Position,
    quantity::to_usize,
    spec::MergeSpec,
    time::{Millis, UnixMillis},
};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

pub use crate::{
    context::{Base, FormerLength, Origin, TrialContext},
    hop::{Hop, NextHop, ShardSegment},
};

/// Evaluate one checkpoint over all shards of a split.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Evaluation {
    /// The job.
    pub job: JobId,
    /// The trial.
    pub trial: TrialId,
    /// The epoch that the checkpoint ended.
    pub epoch: Epoch,
    /// The checkpoint's number.
    pub version: Version,
    /// The checkpoint.
    pub checkpoint: BlobRef,
    /// The data.
    pub shards: Vec<Shard>,
    /// Which rows those are.
    #[serde(default, skip_serializing_if = "is_default")]
    pub split: DataSplit,
    /// Counts beside the loss and the hits.
    #[serde(default, skip_serializing_if = "is_default")]
    pub counting: Counting,
    /// The context that the trial's units share.
    pub context: Arc<TrialContext>,
}

/// Work to hand out to a host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// A hop to train.
    Train(Hop),
    /// A checkpoint to evaluate.
    Evaluate(Evaluation),
}

impl Unit {
    /// The job that it belongs to.
    #[must_use]
    pub const fn job(&self) -> JobId {
        match self {
            Unit::Train(hop) => hop.job,
            Unit::Evaluate(evaluation) => evaluation.job,
        }
    }

    /// The trial that it belongs to.
    #[must_use]
    pub const fn trial(&self) -> TrialId {
        match self {
            Unit::Train(hop) => hop.trial,
            Unit::Evaluate(evaluation) => evaluation.trial,
        }
    }

    /// The context that the trial's units share.
    #[must_use]
    pub fn context(&self) -> &TrialContext {
        match self {
            Unit::Train(hop) => &hop.context,
            Unit::Evaluate(evaluation) => &evaluation.context,
        }
    }

    /// Every blob that a host needs for it: all before it can start, but for the shards of a hop's further legs.
    #[must_use]
    pub fn blobs(&self) -> Vec<BlobRef> {
        let mut blobs: Vec<BlobRef> = match self {
            Unit::Train(hop) => hop.base.blob().into_iter().chain(hop.shards()).collect(),
            Unit::Evaluate(evaluation) => {
                let shards = evaluation.shards.iter().map(|shard| shard.blob);
                std::iter::once(evaluation.checkpoint).chain(shards).collect()
            }
        };
        if let Scaling::Standard(blob) = self.context().scaling {
            blobs.push(blob);
        }
        if let Some(graph) = self.context().config.model.exported() {
            blobs.push(graph.file);
        }
        blobs
    }
}

/// One attempt at a unit by one host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Lease {
    /// The lease's number, never used again.
    pub id: LeaseId,
    /// The work to do.
    pub unit: Unit,
    /// On which of the host's devices.
    pub device: String,
    /// The instruction set of the numeric class in which a reproducible unit is to be computed
    /// ([`OfferedClass::instructions`](crate::inventory::OfferedClass::instructions)). Left out for devices that
    /// offer one class without a name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// Contact the server about this lease before then (server time).
    pub renew_by: UnixMillis,
    /// How often to send a heartbeat while the lease is held.
    pub heartbeat_every: Millis,
    /// The exact size of the checkpoint to upload; 0 where none is.
    pub upload_bytes: u64,
    /// How its host divides its processor, where not equally.
    #[serde(rename = "shares", default, skip_serializing_if = "Option::is_none")]
    pub cpu_shares: Option<LeaseCpuShares>,
}

/// How a result is to be merged, where it doesn't replace its trial's version (docs/internals/merging.md).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Merge {
    /// The rule.
    pub spec: MergeSpec,
    /// The trial's current version; the result's own base is its hop's.
    pub current: Base,
    /// The rule's state that was made with the current version; none where that came from hop order.
    pub state: Option<BlobRef>,
    /// Versions of the trial made since the result's base.
    pub staleness: u64,
    /// Units of the trial that were in flight at once, at least 1.
    pub in_flight: u32,
    /// Where the trial stands after the merge.
    pub position: Position,
    /// Whether what the rule has gathered is used now.
    pub flush: Flush,
    /// The canary check before the merge, where the job asks for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub canary: Option<Canary>,
}

/// Held-out rows on which the loss of a result must not explode.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Canary {
    /// The rows.
    pub shard: Shard,
    /// More than so many times the current version's loss is too much.
    pub most: f64,
}

impl Canary {
    /// The evaluation of a checkpoint of a hop's trial on these rows.
    #[must_use]
    pub fn evaluation(&self, hop: &Hop, version: Version, checkpoint: BlobRef) -> Evaluation {
        Evaluation {
            job: hop.job,
            // Version 0 says no trial.
            trial: if version == Version(0) { TrialId(0) } else { hop.trial },
            epoch: hop.start.epoch,
            version,
            checkpoint,
            shards: vec![self.shard],
            split: DataSplit::Valid,
            counting: Counting::default(),
            context: Arc::clone(&hop.context),
        }
    }
}

/// Whether a merge also uses what its rule has gathered and not used: at the end of an epoch, and of merging.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Flush {
    /// When the rule says so.
    #[default]
    ByRule,
    /// After this result.
    Now,
}

/// The training shard's id is an index into the manifest.
#[must_use]
pub fn shard_index(shard: ShardId) -> usize {
    to_usize(shard.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        digest::Digest,
        manifest::Targets,
        position::Position,
        spec::{
            Architecture, ExportedGraph, Graph, Loss, Optimizer, OptimizerName, TrainingConfig,
            TrialConfig,
        },
    };

    #[test]
    fn a_unit_of_a_graph_needs_the_graphs_file() {
        let blob = |name: &[u8]| BlobRef { sha256: Digest::of(name), bytes: 1 };
        let exported = ExportedGraph::of_file(blob(b"graph"));
        let graph = |exported| Graph { entry: "model.py".into(), values: [].into(), exported };
        let unit = |exported| {
            let optimizer = Optimizer::new(OptimizerName::Sgd, 0.1);
            let context = TrialContext {
                config: TrialConfig {
                    model: Architecture::Graph(graph(exported)),
                    training: TrainingConfig::new(1, 8, Loss::CrossEntropy, optimizer),
                },
                columns: Vec::new(),
                shape: vec![4],
                outputs: 2,
                scaling: Scaling::Standard(blob(b"scaling")),
                targets: Targets::Plain,
                total_steps: 1,
                pinned_threads: None,
            };
            Unit::Train(Hop {
                job: JobId(0),
                trial: TrialId(0),
                base: Base::Initial { seed: 0 },
                start: Position { epoch: Epoch(0), shard: ShardId(0), batch: 0, step: 0 },
                shard: Shard { blob: blob(b"shard"), rows: 8 },
                seed: 0,
                context: context.into(),
                then: Vec::new(),
                until: None,
            })
        };
        let expected = [b"shard".as_slice(), b"scaling", b"graph"].map(blob);
        assert_eq!(unit(Some(exported)).blobs(), expected);
        assert_eq!(unit(None).blobs(), expected[..2]);
    }
}

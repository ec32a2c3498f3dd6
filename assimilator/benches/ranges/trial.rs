//! A trial of 17 million numbers, without optimiser state, that `delayed-nesterov` merges: its checkpoints are of 68 MB,
//! its states of 137 MB.

use crate::size;
use sojourn_model::{CheckpointLayout, Lineage, initial_checkpoint};
use sojourn_protocol::{
    digest::{BlobRef, Digest},
    ids::{Epoch, JobId, ShardId, TrialId},
    manifest::{Scaling, Shard, Targets},
    position::Position,
    spec::{
        Architecture, Loss, MergeSpec, Optimizer, OptimizerName, RuleSpec, TrainingConfig,
        TrialConfig,
    },
    unit::{Base, Hop, TrialContext},
};
use sojourn_rules::Merger;

pub(crate) const FIRST: Base = Base::Initial { seed: 1 };

/// Bytes over which checkpoints are split: far below the default, as a merge is to take a second, not a minute.
pub(crate) fn split_over() -> u64 {
    size::of(16 << 20, 256 << 10)
}

/// The least bytes of a range that come of it.
pub(crate) fn least() -> u64 {
    split_over() / 8
}

pub(crate) fn context() -> TrialContext {
    let optimizer = Optimizer::new(OptimizerName::Sgd, 0.1);
    let training = TrainingConfig::new(1, 32, Loss::CrossEntropy, optimizer);
    TrialContext {
        config: TrialConfig {
            model: Architecture::mlp(size::of([4096, 4096], [512, 512])),
            training,
        },
        columns: Vec::new(),
        shape: vec![64],
        outputs: 10,
        scaling: Scaling::None,
        targets: Targets::Plain,
        total_steps: 1,
        pinned_threads: None,
    }
}

pub(crate) fn spec() -> MergeSpec {
    MergeSpec { rule: RuleSpec::DELAYED_NESTEROV, ..MergeSpec::default() }
}

pub(crate) fn merger() -> Merger {
    Merger::new(&spec(), CheckpointLayout::of(&context()).unwrap()).unwrap()
}

pub(crate) fn hop(base: Base) -> Hop {
    let blob = BlobRef { sha256: Digest::of(b"shard"), bytes: 5 };
    Hop {
        job: JobId(1),
        trial: TrialId(0),
        base,
        start: Position { epoch: Epoch(0), shard: ShardId(0), batch: 0, step: 0 },
        shard: Shard { blob, rows: 32 },
        seed: 7,
        context: context().into(),
        then: Vec::new(),
        until: None,
    }
}

/// The checkpoint that a client returns.
pub(crate) fn result() -> Vec<u8> {
    let hop = hop(FIRST);
    let position = hop.position_at(hop.batches());
    let lineage = Lineage { hop_seed: hop.seed, trial: hop.trial, position };
    initial_checkpoint(&hop.context, 10, lineage).unwrap()
}

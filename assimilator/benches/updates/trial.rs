//! A trial of the VC-ASGD paper's network, without optimiser state: its checkpoints are of 20 MB.

use crate::size;
use sojourn_model::{Lineage, initial_checkpoint};
use sojourn_protocol::{
    digest::{BlobRef, Digest},
    ids::{Epoch, JobId, ShardId, TrialId},
    manifest::{Scaling, Shard, Targets},
    position::Position,
    spec::{Architecture, Loss, Optimizer, OptimizerName, Resnet, TrainingConfig, TrialConfig},
    unit::{Base, Hop, TrialContext},
};

/// Layers of the network.
const DEPTH: u32 = 164;
/// The network's parameters, with its running statistics.
const COUNT: u64 = 4_972_746;

pub(crate) const FIRST: Base = Base::Initial { seed: 1 };

pub(crate) fn context() -> TrialContext {
    let resnet = Resnet { depth: size::of(DEPTH, 11), width: Resnet::WIDTH };
    let optimizer = Optimizer::new(OptimizerName::Sgd, 0.1);
    let training = TrainingConfig::new(1, 32, Loss::CrossEntropy, optimizer);
    TrialContext {
        config: TrialConfig { model: Architecture::Resnet(resnet), training },
        columns: Vec::new(),
        shape: vec![3, 32, 32],
        outputs: 10,
        scaling: Scaling::None,
        targets: Targets::Plain,
        total_steps: 1,
        pinned_threads: None,
    }
}

/// Is a model of so many parameters the network, where it is of all its layers?
pub(crate) fn is_network(parameters: u64) -> bool {
    size::of(DEPTH, 11) != DEPTH || parameters == COUNT
}

/// The hop that a client is to do.
pub(crate) fn hop(client: u64, base: Base) -> Hop {
    let blob = BlobRef { sha256: Digest::of(b"shard"), bytes: 5 };
    Hop {
        job: JobId(1),
        trial: TrialId(0),
        base,
        start: Position { epoch: Epoch(0), shard: ShardId(0), batch: 0, step: 0 },
        shard: Shard { blob, rows: 32 },
        seed: client,
        context: context().into(),
        then: Vec::new(),
        until: None,
    }
}

/// The checkpoint that a client returns.
pub(crate) fn result(client: u64) -> Vec<u8> {
    let hop = hop(client, FIRST);
    let position = hop.position_at(hop.batches());
    let lineage = Lineage { hop_seed: hop.seed, trial: hop.trial, position };
    initial_checkpoint(&hop.context, 10 + client, lineage).unwrap()
}

//! Leases and answers of a server.

use sojourn_protocol::{
    api::WorkAnswer,
    digest::BlobRef,
    ids::{Epoch, JobId, LeaseId, ShardId, TrialId},
    manifest::{Scaling, Shard, Targets},
    position::Position,
    spec::{Architecture, Loss, Optimizer, OptimizerName, TrainingConfig, TrialConfig},
    time::{Millis, UnixMillis},
    unit::{Base, Hop, Lease, TrialContext, Unit},
};

/// A hop over this shard, whose result has so many bytes.
pub(crate) fn lease(id: u64, shard: BlobRef, upload_bytes: u64) -> Lease {
    let optimizer = Optimizer::new(OptimizerName::Sgd, 0.1);
    let context = TrialContext {
        config: TrialConfig {
            model: Architecture::mlp([]),
            training: TrainingConfig::new(1, 4, Loss::Mse, optimizer),
        },
        columns: Vec::new(),
        shape: vec![1],
        outputs: 1,
        scaling: Scaling::None,
        targets: Targets::Plain,
        total_steps: 9,
        pinned_threads: None,
    };
    let unit = Unit::Train(Hop {
        job: JobId(1),
        trial: TrialId(0),
        base: Base::Initial { seed: 1 },
        start: Position { epoch: Epoch(0), shard: ShardId(0), batch: 0, step: 0 },
        shard: Shard { blob: shard, rows: 36 },
        seed: 1,
        context: context.into(),
        then: Vec::new(),
        until: None,
    });
    Lease {
        id: LeaseId(id),
        unit,
        device: "cpu".into(),
        renew_by: UnixMillis(0),
        heartbeat_every: Millis(1000),
        upload_bytes,
        instructions: None,
        cpu_shares: None,
    }
}

/// An answer that gives these leases.
pub(crate) fn gives(leases: Vec<Lease>) -> WorkAnswer {
    WorkAnswer {
        leases,
        drop: Vec::new(),
        reports: Vec::new(),
        ask_again: Millis(0),
        send_inventory: false,
        stop: Vec::new(),
        fetch: Vec::new(),
        evict: Vec::new(),
        waiting: None,
        leave_within: None,
    }
}

//! The whole daemon against a server and a trainer that fail as they are told.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    unreachable_pub,
    reason = "this whole crate is a test: what isn't there fails it"
)]

mod basics;
mod bytes;
mod coming;
mod deltas;
mod devices;
mod direct;
mod ends;
mod faults;
mod http;
mod limits;
mod metadata;
mod notices;
mod packed;
mod promises;
mod rates;
mod restarts;
mod server;
mod trainer;
mod usage;

use server::{ENROLMENT, Server, World};
use sojourn_client::{
    CacheFor, ClientConfig, ClientError, GpuChoice, Rates, Timing, limits::Allowance,
    log::LogChoice, run_with,
};
use sojourn_protocol::{
    digest::BlobRef,
    ids::{Epoch, JobId, LeaseId, ShardId, TrialId, Version},
    inventory::CPU,
    manifest::{DataSplit, Scaling, Shard, Targets},
    metrics::Counting,
    position::Position,
    spec::{Architecture, Loss, Optimizer, OptimizerName, TrainingConfig, TrialConfig},
    time::{Millis, UnixMillis},
    unit::{Base, Evaluation, Hop, Lease, NextHop, TrialContext, Unit},
};
use std::{path::Path, sync::Arc, time::Duration};
use tempfile::TempDir;
use tokio::{runtime::Runtime, sync::oneshot, task::JoinHandle};
use trainer::Trainer;

/// A daemon in a runtime of its own, so that it can be killed with all its tasks.
struct Daemon {
    runtime: Runtime,
    task: JoinHandle<Result<(), ClientError>>,
    shutdown: oneshot::Sender<()>,
}

fn config(server: &Server, dir: &TempDir) -> ClientConfig {
    ClientConfig {
        cpu_slots: 0,
        server: server.url.clone(),
        ca: None,
        token: Some(ENROLMENT.into()),
        name: "test".into(),
        data: dir.path().join("client"),
        slots: Some(1),
        gpus: GpuChoice::Off,
        cache_bytes: 1 << 20,
        cache_for: CacheFor::default(),
        rates: Rates::default(),
        allowance: Allowance::default(),
        log: LogChoice::Off,
        trainer: None,
        metadata: None,
        send_log: true,
        timing: Timing { longest_pause: Duration::from_millis(50), ..Timing::default() },
    }
}

impl Daemon {
    fn start(config: ClientConfig, trainer: &Arc<Trainer>) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let (shutdown, asked) = oneshot::channel();
        let trainer = Arc::clone(trainer);
        let task =
            runtime.spawn(run_with(config, move |slot| Ok(trainer.runner(slot)), async move {
                let _ = asked.await;
            }));
        Self { runtime, task, shutdown }
    }

    /// The result that the daemon ends with, left alone.
    async fn ended(self) -> Result<(), ClientError> {
        let Self { runtime, task, shutdown } = self;
        let result = task.await.unwrap();
        drop(shutdown);
        drop_runtime(runtime).await;
        result
    }

    /// Ends it as SIGTERM does.
    async fn stop(self) -> Result<(), ClientError> {
        let Self { runtime, task, shutdown } = self;
        let _ = shutdown.send(());
        let result = task.await.unwrap();
        drop_runtime(runtime).await;
        result
    }

    /// Ends it without a word to anyone.
    async fn kill(self) {
        drop_runtime(self.runtime).await;
    }
}

async fn drop_runtime(runtime: Runtime) {
    tokio::task::spawn_blocking(move || drop(runtime)).await.unwrap();
}

/// Bytes of a checkpoint that the fake trainer makes.
const CHECKPOINT: u32 = 1000;

fn context(checkpoint: u32) -> TrialContext {
    let optimizer = Optimizer::new(OptimizerName::Sgd, 0.1);
    let training = TrainingConfig::new(1, 4, Loss::Mse, optimizer);
    TrialContext {
        config: TrialConfig { model: Architecture::mlp([]), training },
        columns: Vec::new(),
        shape: vec![checkpoint],
        outputs: 1,
        scaling: Scaling::None,
        targets: Targets::Plain,
        total_steps: 2,
        pinned_threads: Some(1),
    }
}

/// A hop of trial 0 over a shard, whose checkpoint has `checkpoint` bytes.
fn hop_of(lease: u64, base: Base, shard: BlobRef, checkpoint: u32) -> Lease {
    let start = Position { epoch: Epoch(0), shard: ShardId(0), batch: 0, step: 0 };
    let unit = Unit::Train(Hop {
        job: JobId(1),
        trial: TrialId(0),
        base,
        start,
        shard: Shard { blob: shard, rows: 8 },
        seed: lease,
        context: context(checkpoint).into(),
        then: Vec::new(),
        until: None,
    });
    Lease {
        device: CPU.into(),
        id: LeaseId(lease),
        unit,
        renew_by: UnixMillis(0),
        heartbeat_every: Millis(60_000),
        upload_bytes: u64::from(checkpoint),
        cpu_shares: None,
        instructions: None,
    }
}

fn hop(lease: u64, shard: BlobRef) -> Lease {
    hop_of(lease, Base::Initial { seed: 1 }, shard, CHECKPOINT)
}

fn evaluation(lease: u64, checkpoint: BlobRef, shards: &[BlobRef]) -> Lease {
    let shards = shards.iter().map(|blob| Shard { blob: *blob, rows: 3 }).collect();
    let unit = Unit::Evaluate(Evaluation {
        job: JobId(1),
        trial: TrialId(0),
        epoch: Epoch(0),
        version: Version(1),
        checkpoint,
        shards,
        split: DataSplit::Valid,
        counting: Counting::default(),
        context: context(CHECKPOINT).into(),
    });
    Lease { unit, upload_bytes: 0, ..hop(lease, checkpoint) }
}

/// Puts a shard and so many hops over it into the world.
fn queue_hops(world: &mut World, leases: std::ops::RangeInclusive<u64>) -> BlobRef {
    let shard = world.put(b"the rows of one shard");
    world.queue.extend(leases.map(|lease| hop(lease, shard)));
    shard
}

/// A lease of three hops of two batches each, over the shard that is there and two others. Gives the three.
fn queue_several(world: &mut World, lease: u64) -> [BlobRef; 3] {
    let first = world.put(b"the rows of one shard");
    let mut leg = |n: u8| {
        let blob = world.put(format!("the rows of shard {n}").as_bytes());
        NextHop { shard_id: ShardId(n.into()), shard: Shard { blob, rows: 8 }, seed: 9 }
    };
    let then = vec![leg(5), leg(3)];
    let shards = [first, then[0].shard.blob, then[1].shard.blob];
    let several = hop(lease, first);
    let Unit::Train(way) = several.unit.clone() else { panic!("a hop") };
    world.queue.push_back(Lease { unit: Unit::Train(Hop { then, ..way }), ..several });
    shards
}

/// Files below a folder of the daemon's.
fn files(dir: &TempDir, folder: &str) -> Vec<String> {
    fn walk(folder: &Path, found: &mut Vec<String>) {
        for file in std::fs::read_dir(folder).unwrap() {
            let path = file.unwrap().path();
            if path.is_dir() {
                walk(&path, found);
            } else {
                found.push(path.file_name().unwrap().to_str().unwrap().to_owned());
            }
        }
    }
    let mut found = Vec::new();
    walk(&dir.path().join("client").join(folder), &mut found);
    found.sort();
    found
}

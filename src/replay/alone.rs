//! Trains a trial from its job file and data alone, where the order of its visits is fixed: what a fleet makes of it, made on
//! this machine without a server.

use crate::cli::terminal::{causes::slot_failure, exit::Failure};
use serde::Serialize;
use sojourn_protocol::{
    cross_validation::Fold,
    digest::{BlobRef, Digest},
    ids::{Epoch, JobId, ShardId, TrialId, Version},
    manifest::DataManifest,
    position::Position,
    report::Outcome,
    seeds,
    spec::JobSpec,
    trainer::RunUnit,
    unit::{Base, Hop, NextHop, TrialContext, Unit, shard_index},
};
use sojourn_slot::{Slot, full_pace};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    future::pending,
    path::{Path, PathBuf},
    sync::Arc,
};

/// The checkpoint after an epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct EpochMade {
    pub(crate) epoch: Epoch,
    pub(crate) sha256: Digest,
}

/// A trial of a job with fixed visits, and where its blobs lie.
pub(crate) struct TrialAlone<'a> {
    pub(crate) spec: &'a JobSpec,
    pub(crate) data: &'a DataManifest,
    pub(crate) trial: TrialId,
    /// The trial's, or its job's.
    pub(crate) seed: u64,
    /// The fold that it is trained without.
    pub(crate) fold: Option<Fold>,
    pub(crate) context: Arc<TrialContext>,
    pub(crate) first: Base,
    pub(crate) files: BTreeMap<Digest, PathBuf>,
}

impl TrialAlone<'_> {
    /// Trains all epochs in `slot`, with checkpoints in `folder`; `made` hears of each. An epoch is one unit: that a fleet
    /// cuts it into many changes no byte.
    ///
    /// # Errors
    /// Where the trainer fails.
    pub(crate) async fn train(
        mut self,
        slot: &mut Slot,
        folder: &Path,
        made: &mut dyn FnMut(EpochMade),
    ) -> Result<(), Failure> {
        let (mut base, mut step) = (self.first, 0);
        let mut before: Option<(Digest, PathBuf)> = None;
        for epoch in (0..self.context.config.training.epochs).map(Epoch) {
            let hop = self.hop(epoch, base, step);
            let hop = hop.ok_or_else(|| Failure::work("the job has no training shards"))?;
            step = hop.segments().last().map_or(step, |segment| segment.end.step);
            let output = folder.join(format!("epoch-{epoch}"));
            let blob = self.run(slot, hop, &output).await?;
            self.files.insert(blob.sha256, output.clone());
            if let Some((digest, path)) = before.replace((blob.sha256, output))
                && digest != blob.sha256
            {
                self.files.remove(&digest);
                // Only space is lost where it can't be removed.
                let _ = fs::remove_file(path);
            }
            base = Base::Checkpoint { version: Version(epoch.0 + 1), blob };
            made(EpochMade { epoch, sha256: blob.sha256 });
        }
        Ok(())
    }

    /// All hops of an epoch.
    fn hop(&self, epoch: Epoch, base: Base, step: u64) -> Option<Hop> {
        let shards = u32::try_from(self.data.train.len()).ok()?;
        let leg = |shard_id: ShardId| {
            let shard = *self.data.train.get(shard_index(shard_id))?;
            let seed = seeds::hop(self.seed, self.trial, epoch, shard_id);
            Some(NextHop { shard_id, shard, seed })
        };
        let order = seeds::visit_order(self.spec.seed, self.trial, epoch, shards);
        let is_visited = |shard: &ShardId| self.fold.is_none_or(|fold| !fold.holds_out(*shard));
        let order = order.into_iter().filter(is_visited);
        let mut hops = order.map(leg);
        let NextHop { shard_id, shard, seed } = hops.next()??;
        Some(Hop {
            job: JobId(1),
            trial: self.trial,
            base,
            start: Position { epoch, shard: shard_id, batch: 0, step },
            shard,
            seed,
            context: Arc::clone(&self.context),
            then: hops.collect::<Option<_>>()?,
            until: None,
        })
    }

    async fn run(&self, slot: &mut Slot, hop: Hop, output: &Path) -> Result<BlobRef, Failure> {
        let epoch = hop.start.epoch.0 + 1;
        let run = RunUnit {
            unit: Unit::Train(hop),
            files: self.files.clone(),
            pending: BTreeSet::new(),
            output: output.to_owned(),
            until: None,
            keep_every: None,
        };
        match slot.run(run, |_| {}, pending(), full_pace()).await.map_err(slot_failure)? {
            Outcome::Trained(trained) => Ok(trained.checkpoint),
            Outcome::Failed(failure) => {
                Err(Failure::work(format!("epoch {epoch} can't be trained: {}", failure.message)))
            }
            Outcome::Evaluated(_) => {
                Err(Failure::work("the trainer evaluated instead of training"))
            }
        }
    }
}

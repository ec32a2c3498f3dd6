//! The partial checkpoint of a running hop, on disk. It is sent if the rest of the hop fails.

use crate::storage::outbox::{Finished, Outbox};
use sojourn_http::trace::UNITS;
use sojourn_protocol::{
    error::error_chain,
    report::{Outcome, Report, Trained},
    unit::Lease,
};
use std::path::Path;

/// The last partial checkpoint of a hop. It outlives this value on disk: a daemon that is killed sends it after its next
/// start. If the lease ends otherwise, it is removed then.
#[derive(Debug)]
pub(crate) struct PartialCheckpoint<'a> {
    outbox: &'a Outbox,
    lease: &'a Lease,
    kept: Option<Finished>,
    /// Whether it was logged that a partial checkpoint can't be kept.
    is_reported: bool,
}

impl<'a> PartialCheckpoint<'a> {
    /// Without a checkpoint yet.
    pub(crate) fn new(outbox: &'a Outbox, lease: &'a Lease) -> Self {
        Self { outbox, lease, kept: None, is_reported: false }
    }

    /// Keeps a checkpoint that the trainer has written to `path`, in place of the one before it. False if that fails.
    pub(crate) fn keep(&mut self, trained: Trained, path: &Path) -> bool {
        let (lease, end) = (self.lease.id, trained.end);
        let (promised, expected) = (trained.checkpoint.bytes, self.lease.upload_bytes);
        if promised != expected {
            tracing::warn!(%lease, %end, promised, expected, "a partial checkpoint has the wrong size; ignored");
            return false;
        }
        let report = Report { lease, outcome: Outcome::Trained(trained) };
        match self.outbox.store(report, self.lease.heartbeat_every, path) {
            Ok(finished) => {
                tracing::debug!(target: UNITS, lease = lease.0, %end, "kept a partial checkpoint");
                self.kept = Some(finished);
                self.is_reported = false;
                true
            }
            Err(error) => {
                self.not_kept(&error_chain(&error));
                false
            }
        }
    }

    /// Logs that a checkpoint could not be written; the unit goes on with the one before it, or without. Logged once,
    /// until one can be kept again.
    pub(crate) fn not_kept(&mut self, reason: &str) {
        let lease = self.lease.id;
        if std::mem::replace(&mut self.is_reported, true) {
            tracing::debug!(%lease, reason, "a partial checkpoint still can't be kept");
        } else {
            tracing::warn!(%lease, reason, "a partial checkpoint can't be kept; the hop goes on");
        }
    }

    /// Whether there is a partial checkpoint.
    pub(crate) fn is_kept(&self) -> bool {
        self.kept.is_some()
    }

    /// Gives the partial checkpoint as the unit's result.
    pub(crate) fn take(self) -> Option<Finished> {
        self.kept
    }

    /// The final result has replaced it on disk.
    pub(crate) fn replaced(&mut self) {
        self.kept = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sojourn_protocol::{
        digest::{BlobRef, Digest},
        ids::{Epoch, JobId, LeaseId, ShardId, TrialId, Version},
        manifest::{Scaling, Shard, Targets},
        position::Position,
        report::Sums,
        spec::{Architecture, Loss, Optimizer, OptimizerName, TrainingConfig, TrialConfig},
        time::{Millis, UnixMillis},
        unit::{Base, Hop, TrialContext, Unit},
    };
    use std::fs;

    const START: Position = Position { epoch: Epoch(0), shard: ShardId(0), batch: 0, step: 0 };

    fn lease() -> Lease {
        let optimizer = Optimizer::new(OptimizerName::Sgd, 0.1);
        let training = TrainingConfig::new(1, 4, Loss::Mse, optimizer);
        let context = TrialContext {
            config: TrialConfig { model: Architecture::mlp([]), training },
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
            start: START,
            shard: Shard { blob: blob(b"shard"), rows: 36 },
            seed: 1,
            context: context.into(),
            then: Vec::new(),
            until: None,
        });
        let (renew_by, heartbeat_every) = (UnixMillis(0), Millis(1));
        let device = "cpu".to_owned();
        let (upload_bytes, instructions) = (5, None);
        Lease {
            id: LeaseId(7),
            unit,
            renew_by,
            heartbeat_every,
            upload_bytes,
            cpu_shares: None,
            device,
            instructions,
        }
    }

    fn blob(bytes: &[u8]) -> BlobRef {
        BlobRef { sha256: Digest::of(bytes), bytes: bytes.len() as u64 }
    }

    fn trained(batch: u32, bytes: &[u8]) -> Trained {
        Trained {
            base: Version(0),
            checkpoint: blob(bytes),
            end: Position { batch, step: u64::from(batch), ..START },
            sums: Sums::default(),
            train_micros: 1,
        }
    }

    #[test]
    fn a_failed_save_keeps_the_earlier_checkpoint_and_is_logged_once() {
        let (dir, lease) = (tempfile::tempdir().unwrap(), lease());
        let root = dir.path().join("outbox");
        fs::create_dir(&root).unwrap();
        let (outbox, _) = Outbox::open(root.clone()).unwrap();
        let mut part = PartialCheckpoint::new(&outbox, &lease);
        let output = dir.path().join("part");
        fs::write(&output, b"first").unwrap();
        assert!(part.keep(trained(1, b"first"), &output));
        assert!(part.is_kept() && !part.is_reported);
        // The trainer, or the outbox, finds no room.
        part.not_kept("no space left on device");
        assert!(part.is_reported);
        assert!(!part.keep(trained(2, b"later"), &dir.path().join("missing")));
        assert!(part.is_reported);
        assert_eq!(
            Outbox::open(root).unwrap().1,
            part.kept.clone().into_iter().collect::<Vec<_>>()
        );
        let end = |part: &PartialCheckpoint<'_>| match &part.kept.as_ref().unwrap().report.outcome {
            Outcome::Trained(trained) => trained.end.batch,
            other => panic!("{other:?}"),
        };
        assert_eq!(end(&part), 1);
        fs::write(&output, b"third").unwrap();
        assert!(part.keep(trained(3, b"third"), &output));
        assert_eq!((end(&part), part.is_reported), (3, false), "there is room again");
    }
}

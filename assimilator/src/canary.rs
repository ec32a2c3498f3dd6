//! The loss check before a merge: a result's loss on held-out rows, compared with that of the current version.

use crate::queue::Unit;
use parking_lot::Mutex;
use sojourn_protocol::{
    digest::{BlobRef, Digest},
    ids::{JobId, Version},
    report::{FailureKind, Outcome},
    trainer::RunUnit,
    unit::{self, Canary, Evaluation},
};
use sojourn_rules::{Refusal, check_canary};
use sojourn_slot::{Slot, SlotConfig, SlotError, full_pace};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt, fs,
    future::pending,
    io,
    path::PathBuf,
};
use tokio::runtime::Handle;

/// A file for the trainer.
#[derive(Debug, Clone, Copy)]
pub struct Contents<'a> {
    /// The file's name in a unit.
    pub blob: BlobRef,
    /// The file's contents.
    pub bytes: &'a [u8],
}

/// Why there is no loss.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says it")]
pub enum LossError {
    #[error("no trainer can be started")]
    Trainer(#[from] SlotError),
    #[error("a file for the trainer can't be written")]
    File(#[from] io::Error),
    #[error("the trainer can't evaluate it: {0}")]
    Failed(String),
}

/// Computes losses of checkpoints.
pub trait Losses: fmt::Debug + Send + Sync + 'static {
    /// The mean loss of a checkpoint over rows; `files` are all that the evaluation names.
    ///
    /// # Errors
    /// Where it can't be computed now.
    fn loss(&self, evaluation: Evaluation, files: &[Contents<'_>]) -> Result<f64, LossError>;
}

/// A trainer process on this machine, started when it is first needed.
#[derive(Debug)]
pub struct Trainer {
    runtime: Handle,
    slot: Mutex<Slot>,
}

impl Trainer {
    /// A trainer that is started as `config` says.
    #[must_use]
    pub fn new(config: SlotConfig, runtime: Handle) -> Self {
        Self { runtime, slot: Mutex::new(Slot::new(config)) }
    }
}

impl Losses for Trainer {
    fn loss(&self, evaluation: Evaluation, named: &[Contents<'_>]) -> Result<f64, LossError> {
        let folder = tempfile::tempdir()?;
        let mut files: BTreeMap<Digest, PathBuf> = BTreeMap::new();
        for file in named {
            let path = folder.path().join(file.blob.sha256.to_string());
            fs::write(&path, file.bytes)?;
            files.insert(file.blob.sha256, path);
        }
        let request = RunUnit {
            unit: unit::Unit::Evaluate(evaluation),
            files,
            pending: BTreeSet::new(),
            output: folder.path().join("output"),
            until: None,
            keep_every: None,
        };
        // After a panic half-way, the slot starts its trainer anew.
        let mut slot = self.slot.lock();
        mean_loss(self.runtime.block_on(slot.run(request, |_| {}, pending(), full_pace()))?)
    }
}

/// The mean loss of an evaluation. A loss that isn't finite is an answer too: another evaluation would give the same.
fn mean_loss(outcome: Outcome) -> Result<f64, LossError> {
    match outcome {
        Outcome::Evaluated(evaluated) => Ok(evaluated.sums().mean_loss()),
        Outcome::Failed(failure) if failure.kind == FailureKind::NonFinite => Ok(f64::INFINITY),
        Outcome::Failed(failure) => Err(LossError::Failed(failure.message)),
        Outcome::Trained(_) => Err(LossError::Failed("it has trained instead".into())),
    }
}

/// Compares losses. Remembers the loss of the version that was evaluated last. Jobs over other data may have the same one at first.
#[derive(Debug)]
pub(crate) struct CanaryCheck {
    losses: Box<dyn Losses>,
    known: Mutex<Option<((JobId, Digest), f64)>>,
}

impl CanaryCheck {
    pub(crate) fn new(losses: impl Losses) -> Self {
        Self { losses: Box::new(losses), known: Mutex::default() }
    }

    /// The data that the evaluations of a canary need.
    pub(crate) fn data(unit: &Unit, canary: &Canary) -> Vec<BlobRef> {
        let checkpoint = unit.trained.checkpoint;
        let evaluation = canary.evaluation(&unit.hop, unit.version, checkpoint);
        let mut blobs = unit::Unit::Evaluate(evaluation).blobs();
        blobs.retain(|blob| *blob != checkpoint);
        blobs
    }

    /// The refusal of a result whose loss is too high compared with the current version's. `data` holds all blobs that
    /// [`CanaryCheck::data`] names.
    pub(crate) fn refuses(
        &self,
        unit: &Unit,
        canary: &Canary,
        (current, result): ((Version, Contents<'_>), Contents<'_>),
        data: &[Contents<'_>],
    ) -> Result<Option<Refusal>, LossError> {
        let loss = |version: Version, checkpoint: Contents<'_>| {
            let evaluation = canary.evaluation(&unit.hop, version, checkpoint.blob);
            let files = [&[checkpoint], data].concat();
            self.losses.loss(evaluation, &files)
        };
        let (version, current) = current;
        let name = (unit.hop.job, current.blob.sha256);
        let of_current = match self.known.lock().filter(|(of, _)| *of == name) {
            Some((_, loss)) => loss,
            None => loss(version, current)?,
        };
        *self.known.lock() = Some((name, of_current));
        let of_result = loss(unit.version, result)?;
        Ok(check_canary(canary.most, of_current, of_result).err())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sojourn_protocol::report::Failure;

    #[test]
    fn a_loss_that_is_not_finite_is_an_answer_and_other_failures_are_none() {
        let failed = |kind| Outcome::Failed(Failure { kind, message: "why".into() });
        let loss = mean_loss(failed(FailureKind::NonFinite)).unwrap();
        assert!(
            check_canary(2.0, 0.5, loss).is_err(),
            "the result is refused, not looked at again"
        );
        let error = mean_loss(failed(FailureKind::Trainer)).unwrap_err();
        assert_eq!(error.to_string(), "the trainer can't evaluate it: why");
    }
}

//! One assimilation: from the upload to the offer.

use crate::queue::{Offer, Queue, QueueError, Unit};
use sojourn_blobs::{BlobError, BlobStore, UploadError, UploadName, Uploads};
use sojourn_codec::{TensorView, decode};
use sojourn_model::{CheckpointLayout, Lineage, initial_checkpoint};
use sojourn_protocol::unit::{Base, Hop};
use sojourn_rules::{Refusal, delta_norm, screen};
use tokio::runtime::Handle;

/// What became of one unit.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// It is the trial's next version.
    Assimilated,
    /// It was refused, for this reason.
    Rejected(String),
    /// The report had ended otherwise meanwhile.
    Stale,
}

/// Why a unit could not be finished now; it comes again.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Trouble {
    #[error(transparent)]
    Queue(#[from] QueueError),
    #[error("the upload can't be read")]
    Upload(#[source] UploadError),
    #[error("the checkpoint can't be stored")]
    Store(#[source] BlobError),
    #[error("the base can't be read")]
    Base(#[source] BlobError),
}

/// Checks uploads and makes them versions, one at a time.
#[derive(Debug)]
pub struct Assimilator<Q> {
    queue: Q,
    uploads: Uploads,
    blobs: BlobStore,
    runtime: Handle,
}

impl<Q: Queue> Assimilator<Q> {
    /// An assimilator of a queue, over the server's own uploads and blobs.
    pub const fn new(queue: Q, uploads: Uploads, blobs: BlobStore, runtime: Handle) -> Self {
        Self { queue, uploads, blobs, runtime }
    }

    /// Takes one unit and does it; `None` where there is none. Blocks, so not for async tasks.
    /// Trouble with storage or queue is logged; the unit then comes again.
    #[must_use]
    pub fn step(&self) -> Option<Outcome> {
        let unit = match self.queue.take() {
            Ok(unit) => unit?,
            Err(error) => {
                tracing::warn!(%error, "can't take assimilation work");
                return None;
            }
        };
        match self.assimilate(&unit) {
            Ok(outcome) => {
                let (lease, version) = (unit.lease.0, unit.version.0);
                tracing::debug!(lease, version, ?outcome, "assimilation ended");
                Some(outcome)
            }
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(
                    lease = unit.lease.0,
                    error,
                    "assimilation didn't end; it comes again"
                );
                None
            }
        }
    }

    fn assimilate(&self, unit: &Unit) -> Result<Outcome, Trouble> {
        let (lease, checkpoint) = (unit.lease, unit.trained.checkpoint);
        let name = UploadName::Lease(lease);
        let bytes = match self.uploads.read(name, checkpoint) {
            Ok(bytes) => bytes,
            Err(error @ (UploadError::NotComplete { .. } | UploadError::DigestMismatch { .. })) => {
                return self.reject(unit, format!("the upload was lost: {error}"));
            }
            Err(error) => return Err(Trouble::Upload(error)),
        };
        match self.check(unit, &bytes)? {
            Ok(norm) => tracing::debug!(lease = lease.0, norm, "checked"),
            Err(refusal) => return self.reject(unit, refusal.to_string()),
        }
        // Rule `replace`: the next version is the upload, byte for byte.
        let file = self.uploads.complete(name, checkpoint).map_err(Trouble::Upload)?;
        match self.runtime.block_on(self.blobs.publish(checkpoint, &file)) {
            Ok(()) => {}
            Err(error @ BlobError::Unverified { .. }) => {
                return self.reject(unit, format!("the upload was lost: {error}"));
            }
            Err(error) => return Err(Trouble::Store(error)),
        }
        Ok(match self.queue.assimilated(lease, unit.version, checkpoint)? {
            Offer::Taken => Outcome::Assimilated,
            Offer::Stale => Outcome::Stale,
        })
    }

    fn reject(&self, unit: &Unit, reason: String) -> Result<Outcome, Trouble> {
        Ok(match self.queue.rejected(unit.lease, &reason)? {
            Offer::Taken => Outcome::Rejected(reason),
            Offer::Stale => Outcome::Stale,
        })
    }

    /// All checks; the norm of the change where they pass (NaN where the base is lost).
    fn check(&self, unit: &Unit, bytes: &[u8]) -> Result<Result<f64, Refusal>, Trouble> {
        let checked = CheckpointLayout::of(&unit.hop.context)
            .map_err(Refusal::Lineage)
            .and_then(|layout| Ok((screen(&layout, &unit.hop, &unit.trained, bytes)?, layout)));
        let (checked, layout) = match checked {
            Ok(checked) => checked,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let (says, expected) = (checked.lineage.position, unit.expected_end);
        if says != expected {
            return Ok(Err(Refusal::Position {
                what: "checkpoint's batch",
                expected: expected.batch.to_string(),
                actual: u64::from(says.batch),
            }));
        }
        let base = match self.base(&unit.hop, checked.lineage)? {
            Ok(Some(base)) => base,
            // A base that was damaged on disk must not hold up the version that replaces it.
            Ok(None) => return Ok(Ok(f64::NAN)),
            Err(refusal) => return Ok(Err(refusal)),
        };
        let norm = |base: &[TensorView<'_>]| delta_norm(&layout, base, &checked.tensors);
        Ok(decode(&base).map_err(Refusal::Codec).and_then(|base| norm(&base)))
    }

    /// The base's bytes; `None` where they are lost.
    fn base(
        &self,
        hop: &Hop,
        lineage: Lineage,
    ) -> Result<Result<Option<Vec<u8>>, Refusal>, Trouble> {
        match hop.base {
            Base::Initial { seed } => Ok(initial_checkpoint(&hop.context, seed, lineage)
                .map(Some)
                .map_err(Refusal::Lineage)),
            Base::Checkpoint { blob, .. } => {
                match self.runtime.block_on(self.blobs.bytes(blob.sha256)) {
                    Ok(bytes) => Ok(Ok(Some(bytes.into()))),
                    Err(error @ (BlobError::Missing(_) | BlobError::Altered { .. })) => {
                        tracing::warn!(%error, "the base of an upload is lost");
                        Ok(Ok(None))
                    }
                    Err(error) => Err(Trouble::Base(error)),
                }
            }
        }
    }
}

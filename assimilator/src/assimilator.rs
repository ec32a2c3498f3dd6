//! One assimilation: from the upload to the offer.

use crate::queue::{Fault, Made, Offer, Queue, QueueError, Unit};
use bytes::Bytes;
use sojourn_blobs::{BlobError, BlobStore, UploadError, UploadName, Uploads};
use sojourn_model::CheckpointLayout;
use sojourn_rules::{Next, Refusal, replace, screen};
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

/// How one look for work ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// There was nothing to do.
    Nothing,
    /// One unit has ended.
    Done(Outcome),
    /// Storage or queue failed: there may well be work, now or soon.
    Trouble,
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

    /// Takes one unit and does it. Blocks, so not for async tasks. Trouble with storage or queue is
    /// logged; the unit then comes again.
    #[must_use]
    pub fn step(&self) -> Step {
        let unit = match self.queue.take() {
            Ok(Some(unit)) => unit,
            Ok(None) => return Step::Nothing,
            Err(error) => {
                tracing::warn!(%error, "can't take assimilation work");
                return Step::Trouble;
            }
        };
        match self.assimilate(&unit) {
            Ok(outcome) => {
                let (lease, version) = (unit.lease.0, unit.version.0);
                tracing::debug!(lease, version, ?outcome, "assimilation ended");
                Step::Done(outcome)
            }
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(
                    lease = unit.lease.0,
                    error,
                    "assimilation didn't end; it comes again"
                );
                Step::Trouble
            }
        }
    }

    fn assimilate(&self, unit: &Unit) -> Result<Outcome, Trouble> {
        let (lease, checkpoint) = (unit.lease, unit.trained.checkpoint);
        let name = UploadName::Lease(lease);
        let bytes = match self.uploads.read(name, checkpoint) {
            Ok(bytes) => Bytes::from(bytes),
            Err(error) if is_lost(&error) => return self.lost(unit, &error),
            Err(error) => return Err(Trouble::Upload(error)),
        };
        let next = match check(unit, &bytes) {
            Ok(next) => next,
            Err(refusal) => return self.reject(unit, Fault::Host, refusal.to_string()),
        };
        // Until the offer is answered: a deletion in between would leave a version without bytes.
        let _hold = self.runtime.block_on(self.blobs.hold(next.checkpoint.sha256));
        match self.runtime.block_on(self.blobs.publish_bytes(next.checkpoint, bytes)) {
            Ok(()) => {}
            Err(error @ BlobError::Unverified { .. }) => return self.lost(unit, &error),
            Err(error) => return Err(Trouble::Store(error)),
        }
        let Next { version, checkpoint } = next;
        let made = Made { version, checkpoint, merged: None };
        Ok(match self.queue.assimilated(lease, made)? {
            Offer::Taken => Outcome::Assimilated,
            Offer::Stale => Outcome::Stale,
        })
    }

    /// What was acknowledged isn't on the server's disk any more: no host is to blame.
    fn lost(&self, unit: &Unit, error: &dyn std::error::Error) -> Result<Outcome, Trouble> {
        tracing::error!(lease = unit.lease.0, error = %error, "an acknowledged upload was lost");
        self.reject(unit, Fault::Server, format!("the server lost the upload: {error}"))
    }

    fn reject(&self, unit: &Unit, fault: Fault, reason: String) -> Result<Outcome, Trouble> {
        Ok(match self.queue.rejected(unit.lease, fault, &reason)? {
            Offer::Taken => Outcome::Rejected(reason),
            Offer::Stale => Outcome::Stale,
        })
    }
}

/// Is the upload gone or not what it was, rather than unreadable just now?
fn is_lost(error: &UploadError) -> bool {
    match error {
        UploadError::NotComplete { .. } | UploadError::DigestMismatch { .. } => true,
        UploadError::File { source, .. } => source.kind() == std::io::ErrorKind::NotFound,
        _ => false,
    }
}

/// All checks, and the version that they allow.
fn check(unit: &Unit, bytes: &[u8]) -> Result<Next, Refusal> {
    let layout = CheckpointLayout::of(&unit.hop.context).map_err(Refusal::Lineage)?;
    let checked = screen(&layout, &unit.hop, &unit.trained, bytes)?;
    let (says, expected) = (checked.lineage.position, unit.expected_end);
    if says != expected {
        return Err(Refusal::Position {
            what: "checkpoint's batch",
            expected: expected.batch.to_string(),
            actual: u64::from(says.batch),
        });
    }
    Ok(replace(&unit.hop, &checked))
}

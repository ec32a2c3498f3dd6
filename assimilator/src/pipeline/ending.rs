//! How a unit ends: its version is offered, or its result is refused, or something that it needs is lost.

use super::{Assimilator, Outcome, PipelineError};
use crate::{
    merge::VersionError,
    queue::{Fault, NewVersion, Offer, Queue, Unit},
};
use sojourn_blobs::BlobError;
use sojourn_http::trace::UNITS;
use sojourn_protocol::digest::Digest;
use sojourn_rules::MergeError;

/// How often a version is published and offered at most. It is done again where its blobs are deleted in between.
const MAX_OFFERS: u32 = 3;

impl<Q: Queue> Assimilator<Q> {
    /// Ends a unit whose result can't be merged.
    pub(super) fn merge_failed(
        &self,
        unit: &Unit,
        error: VersionError,
    ) -> Result<Outcome, PipelineError> {
        match error {
            VersionError::Rules(error @ MergeError::Norm(_)) => {
                self.reject(unit, Fault::Host, error.to_string())
            }
            VersionError::Canary(refusal) => self.reject(unit, Fault::Host, refusal.to_string()),
            VersionError::Store(BlobError::Missing(blob) | BlobError::Altered { blob, .. }) => {
                self.blob_missing(unit, blob)
            }
            error => Err(PipelineError::Merge(error)),
        }
    }

    /// Publishes and offers a version; again where its blobs were deleted in between. That happens while another process
    /// holds them.
    pub(super) fn publish_and_offer(
        &self,
        unit: &Unit,
        made: NewVersion,
        publish: impl Fn() -> Result<(), BlobError>,
    ) -> Result<Outcome, PipelineError> {
        let mut remaining = MAX_OFFERS;
        loop {
            tracing::debug!(target: UNITS, lease = unit.lease.0, "version made");
            publish().map_err(PipelineError::Store)?;
            tracing::debug!(target: UNITS, lease = unit.lease.0, "version published");
            remaining -= 1;
            match self.offer(unit, made) {
                Err(PipelineError::Unpublished) if remaining > 0 => {}
                ended => return ended,
            }
        }
    }

    pub(super) fn offer(&self, unit: &Unit, made: NewVersion) -> Result<Outcome, PipelineError> {
        match self.queue.assimilated(unit.lease, made)? {
            Offer::Taken => Ok(Outcome::Assimilated),
            Offer::Stale => Ok(Outcome::Stale),
            Offer::Unpublished => Err(PipelineError::Unpublished),
        }
    }

    /// A blob that the merge needs is missing from the store, or damaged. Where it still is, the server is told of the
    /// loss, and the result is rejected without blame for its host.
    fn blob_missing(&self, unit: &Unit, blob: Digest) -> Result<Outcome, PipelineError> {
        let hold = self.runtime.block_on(self.blobs.hold(blob));
        match self.runtime.block_on(self.blobs.bytes(blob)) {
            Err(BlobError::Missing(_) | BlobError::Altered { .. }) => {
                if self.queue.lost(unit.lease, blob)? == Offer::Stale {
                    return Err(PipelineError::Reappeared(blob));
                }
            }
            Ok(_) => return Err(PipelineError::Reappeared(blob)),
            Err(error) => return Err(PipelineError::Merge(error.into())),
        }
        drop(hold);
        let lease = unit.lease.0;
        tracing::error!(lease, %blob, "a blob that a merge needs is lost");
        let reason = format!("the server lost blob `{blob}`, which it was to be merged with");
        self.reject(unit, Fault::Server, reason)
    }

    /// The server has lost an acknowledged upload. Its host isn't to blame.
    pub(super) fn lost(&self, unit: &Unit, why: &str) -> Result<Outcome, PipelineError> {
        tracing::error!(lease = unit.lease.0, why, "an acknowledged upload was lost");
        self.reject(unit, Fault::Server, format!("the server lost the upload: {why}"))
    }

    pub(super) fn reject(
        &self,
        unit: &Unit,
        fault: Fault,
        reason: String,
    ) -> Result<Outcome, PipelineError> {
        match self.queue.rejected(unit.lease, fault, &reason)? {
            Offer::Taken => Ok(Outcome::Rejected(reason)),
            Offer::Stale => Ok(Outcome::Stale),
            Offer::Unpublished => Err(PipelineError::Unpublished),
        }
    }
}

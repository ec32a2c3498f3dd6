//! Where this process's own assimilators read uploads: in the spool folder, or else in the store, which has
//! what hosts put there themselves and what came through a server before this one.

use bytes::Bytes;
use sojourn_assimilator::{SourceError, StagedUploads, UploadSource};
use sojourn_blobs::{BlobError, Named, Uploads};
use sojourn_protocol::{digest::BlobRef, ids::LeaseId};
use std::ops::Range;

#[derive(Debug)]
pub(crate) struct Spooled {
    pub(crate) uploads: Uploads,
    pub(crate) staged: Option<StagedUploads>,
}

impl UploadSource for Spooled {
    fn read(&self, lease: LeaseId, checkpoint: BlobRef) -> Result<Named, SourceError> {
        let spooled = UploadSource::read(&self.uploads, lease, checkpoint);
        match (&self.staged, spooled) {
            (Some(staged), Err(_)) => staged.read(lease, checkpoint),
            (_, spooled) => spooled,
        }
    }

    fn read_range(
        &self,
        lease: LeaseId,
        checkpoint: BlobRef,
        range: Range<u64>,
    ) -> Result<Bytes, SourceError> {
        let spooled = UploadSource::read_range(&self.uploads, lease, checkpoint, range.clone());
        match (&self.staged, spooled) {
            (Some(staged), Err(_)) => staged.read_range(lease, checkpoint, range),
            (_, spooled) => spooled,
        }
    }

    fn publish(&self, lease: LeaseId, upload: &Named) -> Option<Result<(), BlobError>> {
        self.staged.as_ref()?.publish(lease, upload)
    }
}

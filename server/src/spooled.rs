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

impl Spooled {
    /// From the spool folder, or else from the store.
    fn either<T>(
        &self,
        read: impl Fn(&dyn UploadSource) -> Result<T, SourceError>,
    ) -> Result<T, SourceError> {
        match (&self.staged, read(&self.uploads)) {
            (Some(staged), Err(_)) => read(staged),
            (_, spooled) => spooled,
        }
    }
}

impl UploadSource for Spooled {
    fn read(&self, lease: LeaseId, checkpoint: BlobRef) -> Result<Named, SourceError> {
        self.either(|source| source.read(lease, checkpoint))
    }

    fn read_range(
        &self,
        lease: LeaseId,
        checkpoint: BlobRef,
        range: Range<u64>,
    ) -> Result<Bytes, SourceError> {
        self.either(|source| source.read_range(lease, checkpoint, range.clone()))
    }

    fn publish(&self, lease: LeaseId, upload: &Named) -> Option<Result<(), BlobError>> {
        self.staged.as_ref()?.publish(lease, upload)
    }
}

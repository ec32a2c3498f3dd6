//! The uploads that assimilators of the server's own process read.
//!
//! An upload is in the spool folder, or else in the object store: there are those that hosts put there themselves, and
//! those that came through a server before this one.

use crate::upload_source::{SourceError, StagedUploads, UploadSource};
use bytes::Bytes;
use sojourn_blobs::{BlobError, HashedBytes, Uploads};
use sojourn_protocol::{digest::BlobRef, ids::LeaseId};
use std::ops::Range;

/// Uploads in the spool folder, or else in the object store.
#[derive(Debug)]
pub struct SpooledOrStaged {
    /// The spool folder.
    pub uploads: Uploads,
    /// The object store, where the blobs are in one.
    pub staged: Option<StagedUploads>,
}

impl SpooledOrStaged {
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

impl UploadSource for SpooledOrStaged {
    fn read(&self, lease: LeaseId, checkpoint: BlobRef) -> Result<HashedBytes, SourceError> {
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

    fn publish(&self, lease: LeaseId, upload: &HashedBytes) -> Option<Result<(), BlobError>> {
        self.staged.as_ref()?.publish(lease, upload)
    }
}

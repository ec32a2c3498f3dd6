//! Where the uploads of hosts are read.

use bytes::Bytes;
use sojourn_blobs::{BlobError, HashedBytes, Staging, UploadError, UploadName, Uploads};
use sojourn_protocol::{digest::BlobRef, ids::LeaseId};
use std::{error::Error, fmt, io, ops::Range};
use tokio::runtime::Handle;

/// Why an upload can't be read.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says it")]
pub enum SourceError {
    /// The upload is gone, or its bytes aren't those that were acknowledged.
    #[error("{0}")]
    Lost(String),
    #[error("the upload can't be read")]
    Unreadable(#[source] Box<dyn Error + Send + Sync>),
}

/// Acknowledged uploads.
pub trait UploadSource: fmt::Debug + Send + Sync + 'static {
    /// The upload of a lease. Blocks.
    ///
    /// # Errors
    /// Where it is lost, or can't be read now.
    fn read(&self, lease: LeaseId, checkpoint: BlobRef) -> Result<HashedBytes, SourceError>;

    /// The bytes `range` of a lease's upload, without a check of their digest. Blocks.
    ///
    /// # Errors
    /// As [`UploadSource::read`].
    fn read_range(
        &self,
        lease: LeaseId,
        checkpoint: BlobRef,
        range: Range<u64>,
    ) -> Result<Bytes, SourceError> {
        let whole = self.read(lease, checkpoint)?.into_bytes();
        let span = usize::try_from(range.start).ok().zip(usize::try_from(range.end).ok());
        let span = span.filter(|(start, end)| start <= end && *end <= whole.len());
        Ok(span.map_or_else(Bytes::new, |(start, end)| whole.slice(start..end)))
    }

    /// Makes an upload a blob where the store can do that without the bytes being sent again; `None` where it can't.
    /// Blocks.
    fn publish(&self, _: LeaseId, _: &HashedBytes) -> Option<Result<(), BlobError>> {
        None
    }
}

impl SourceError {
    fn of(error: UploadError) -> Self {
        if is_lost(&error) {
            Self::Lost(error.to_string())
        } else {
            Self::Unreadable(Box::new(error))
        }
    }
}

impl UploadSource for Uploads {
    fn read(&self, lease: LeaseId, checkpoint: BlobRef) -> Result<HashedBytes, SourceError> {
        Uploads::read(self, UploadName::Lease(lease), checkpoint).map_err(SourceError::of)
    }

    fn read_range(
        &self,
        lease: LeaseId,
        checkpoint: BlobRef,
        range: Range<u64>,
    ) -> Result<Bytes, SourceError> {
        let name = UploadName::Lease(lease);
        Uploads::read_range(self, name, checkpoint, range).map_err(SourceError::of)
    }
}

/// Is the upload gone or altered, rather than unreadable for now?
fn is_lost(error: &UploadError) -> bool {
    match error {
        UploadError::NotComplete { .. } | UploadError::DigestMismatch { .. } => true,
        UploadError::File { source, .. } => source.kind() == io::ErrorKind::NotFound,
        _ => false,
    }
}

/// Uploads in the object store, where every process can read them.
#[derive(Debug, Clone)]
pub struct StagedUploads {
    staging: Staging,
    runtime: Handle,
}

impl StagedUploads {
    /// The uploads of a staging area.
    #[must_use]
    pub const fn new(staging: Staging, runtime: Handle) -> Self {
        Self { staging, runtime }
    }
}

impl UploadSource for StagedUploads {
    fn read(&self, lease: LeaseId, checkpoint: BlobRef) -> Result<HashedBytes, SourceError> {
        let staged = self.runtime.block_on(self.staging.staged(lease, checkpoint));
        staged.map_err(SourceError::of)
    }

    fn read_range(
        &self,
        lease: LeaseId,
        checkpoint: BlobRef,
        range: Range<u64>,
    ) -> Result<Bytes, SourceError> {
        let staged = self.runtime.block_on(self.staging.staged_range(lease, checkpoint, range));
        staged.map_err(SourceError::of)
    }

    fn publish(&self, lease: LeaseId, upload: &HashedBytes) -> Option<Result<(), BlobError>> {
        Some(self.runtime.block_on(self.staging.publish(lease, upload)))
    }
}

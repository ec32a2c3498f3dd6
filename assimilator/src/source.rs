//! Where the uploads of hosts are read from.

use bytes::Bytes;
use sojourn_blobs::{BlobError, Named, Staging, UploadError, UploadName, Uploads};
use sojourn_protocol::{digest::BlobRef, ids::LeaseId};
use std::{error::Error, fmt, io, ops::Range};
use tokio::runtime::Handle;

/// Why an upload can't be read.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// It is gone, or isn't what it was when it was acknowledged.
    #[error("{0}")]
    Lost(String),
    /// Not just now.
    #[error("the upload can't be read")]
    Trouble(#[source] Box<dyn Error + Send + Sync>),
}

/// Acknowledged uploads.
pub trait UploadSource: fmt::Debug + Send + Sync + 'static {
    /// What was uploaded under a lease. Blocks.
    ///
    /// # Errors
    /// Where it is lost, or can't be read just now.
    fn read(&self, lease: LeaseId, checkpoint: BlobRef) -> Result<Named, SourceError>;

    /// The bytes `range` of what was uploaded under a lease, unchecked. Blocks.
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
        let place = usize::try_from(range.start).ok().zip(usize::try_from(range.end).ok());
        let place = place.filter(|(start, end)| start <= end && *end <= whole.len());
        Ok(place.map_or_else(Bytes::new, |(start, end)| whole.slice(start..end)))
    }

    /// Makes an upload a blob where that is cheaper than to put its bytes into the store once more; `None` where it
    /// isn't. Blocks.
    fn publish(&self, _: LeaseId, _: &Named) -> Option<Result<(), BlobError>> {
        None
    }
}

impl SourceError {
    fn of(error: UploadError) -> Self {
        if is_lost(&error) { Self::Lost(error.to_string()) } else { Self::Trouble(Box::new(error)) }
    }
}

impl UploadSource for Uploads {
    fn read(&self, lease: LeaseId, checkpoint: BlobRef) -> Result<Named, SourceError> {
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

/// Is the upload gone or not what it was, rather than unreadable just now?
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
    /// Those that are staged there.
    #[must_use]
    pub const fn new(staging: Staging, runtime: Handle) -> Self {
        Self { staging, runtime }
    }
}

impl UploadSource for StagedUploads {
    fn read(&self, lease: LeaseId, checkpoint: BlobRef) -> Result<Named, SourceError> {
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

    fn publish(&self, lease: LeaseId, upload: &Named) -> Option<Result<(), BlobError>> {
        Some(self.runtime.block_on(self.staging.publish(lease, upload)))
    }
}

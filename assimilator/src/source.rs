//! Where the uploads of hosts are read from.

use sojourn_blobs::{Named, UploadError, UploadName, Uploads};
use sojourn_protocol::{digest::BlobRef, ids::LeaseId};
use std::{error::Error, fmt, io};

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
}

impl UploadSource for Uploads {
    fn read(&self, lease: LeaseId, checkpoint: BlobRef) -> Result<Named, SourceError> {
        Uploads::read(self, UploadName::Lease(lease), checkpoint).map_err(|error| {
            if is_lost(&error) {
                SourceError::Lost(error.to_string())
            } else {
                SourceError::Trouble(Box::new(error))
            }
        })
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

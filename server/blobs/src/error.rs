//! Errors of blobs and uploads.

use crate::upload_name::UploadName;
use sojourn_protocol::digest::{BlobRef, Digest};
use std::{io, path::PathBuf};

/// Why a blob could not be read or stored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "each variant's message says it")]
pub enum BlobError {
    #[error("no blob `{0}` in the store")]
    Missing(Digest),
    /// The stored bytes don't have the blob's digest. The blob must be published again.
    #[error("the stored bytes of blob `{blob}` were altered or truncated: they are `{found}`")]
    Altered { blob: Digest, found: Digest },
    #[error("the stored bytes of blob `{0}` became fewer while they were read")]
    Shortened(Digest),
    #[error(
        "the file to publish as blob `{}` ({} bytes) is `{found}` ({bytes} bytes)",
        blob.sha256,
        blob.bytes
    )]
    Unverified { blob: BlobRef, found: Digest, bytes: u64 },
    #[error("range {start}..{end} is outside blob `{blob}` of {bytes} bytes")]
    Range { blob: Digest, bytes: u64, start: u64, end: u64 },
    #[error("no space left for blobs")]
    Full,
    #[error("the blob store failed")]
    Store(#[source] object_store::Error),
    #[error("can't use `{}`", path.display())]
    File { path: PathBuf, source: io::Error },
}

impl BlobError {
    /// Classifies a store's error: a full disk is one of its own.
    pub(crate) fn store(error: object_store::Error) -> Self {
        if disk_is_full(&error) { BlobError::Full } else { BlobError::Store(error) }
    }

    /// Classifies an I/O error: a full disk is one of its own.
    pub(crate) fn io(path: &std::path::Path, source: io::Error) -> Self {
        if full(source.kind()) {
            BlobError::Full
        } else {
            BlobError::File { path: path.to_owned(), source }
        }
    }
}

fn disk_is_full(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        let io = error.downcast_ref::<io::Error>();
        if io.is_some_and(|io| full(io.kind())) {
            return true;
        }
        cause = error.source();
    }
    false
}

const fn full(kind: io::ErrorKind) -> bool {
    matches!(kind, io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// Why an upload did not go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "each variant's message says it")]
pub enum UploadError {
    #[error("the upload goes on at byte {held}, not at {given}")]
    WrongOffset { held: u64, given: u64 },
    /// More bytes than were declared. The upload was deleted.
    #[error("more bytes than the declared {declared}")]
    TooLarge { declared: u64 },
    /// All bytes are there, and they don't have the declared digest. The upload was deleted.
    #[error("the bytes have digest `{found}`, not the declared `{declared}`")]
    DigestMismatch { declared: Digest, found: Digest },
    #[error("the body is no valid zstd stream")]
    Undecodable(#[source] io::Error),
    #[error("another request has taken over the upload of {0}")]
    TakenOver(UploadName),
    #[error("there is no complete upload of {name} with digest `{blob}`")]
    NotComplete { name: UploadName, blob: Digest },
    /// The report of the upload was acknowledged for other bytes.
    #[error("the report of {0} was taken: no other bytes are taken for it")]
    Reported(UploadName),
    #[error("no space left for uploads")]
    Full,
    /// The object store failed. Its objects are still there.
    #[error(transparent)]
    Store(BlobError),
    #[error("can't use `{}`", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("a call on the spool folder was cut short ({0})")]
    Interrupted(String),
}

impl UploadError {
    /// Classifies an I/O error: a full disk is one of its own.
    pub(crate) fn io(path: &std::path::Path, source: io::Error) -> Self {
        if full(source.kind()) {
            UploadError::Full
        } else {
            UploadError::File { path: path.to_owned(), source }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_found_in_any_cause_of_an_error() {
        let store = |kind: io::ErrorKind| {
            // As the local store wraps it.
            let inner = object_store::Error::Generic {
                store: "inner",
                source: Box::new(io::Error::from(kind)),
            };
            BlobError::store(object_store::Error::Generic {
                store: "LocalFileSystem",
                source: Box::new(inner),
            })
        };
        assert!(matches!(store(io::ErrorKind::StorageFull), BlobError::Full));
        assert!(matches!(store(io::ErrorKind::QuotaExceeded), BlobError::Full));
        assert!(matches!(store(io::ErrorKind::PermissionDenied), BlobError::Store(_)));
    }
}

//! Bytes with their digest.

use bytes::Bytes;
use sojourn_protocol::digest::{BlobRef, Digest};

/// Bytes in memory and their verified digest, so that they needn't be hashed again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HashedBytes {
    blob: BlobRef,
    bytes: Bytes,
}

impl HashedBytes {
    /// Hashes bytes.
    #[must_use]
    pub fn of(bytes: Bytes) -> Self {
        let blob = BlobRef { sha256: Digest::of(&bytes), bytes: bytes.len() as u64 };
        Self { blob, bytes }
    }

    /// Digest and size.
    #[must_use]
    pub const fn blob(&self) -> BlobRef {
        self.blob
    }

    /// The bytes.
    #[must_use]
    pub const fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// The bytes, without the digest.
    #[must_use]
    pub fn into_bytes(self) -> Bytes {
        self.bytes
    }
}

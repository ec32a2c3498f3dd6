//! Compressed copies of blobs, beside the blobs: hosts fetch shards in fewer bytes.
//!
//! ```text
//! sha256/ab/<sha256>       the blob
//! sha256/ab/<sha256>.zst   the same bytes as one zstd frame; empty where that saves less than a tenth
//! ```
//!
//! A copy is made when somebody first asks for it, and is deleted with its blob. The store doesn't verify a copy: its reader unpacks
//! it, and checks the digest of the blob.

use crate::{
    error::BlobError,
    objects::{folder_of, time_of},
    ranged::delete,
    store::{BlobBytes, BlobStore, Remote, whole},
};
use futures::TryStreamExt as _;
use object_store::{Error, ObjectStoreExt as _, PutPayload, path::Path as Key, signer::Method};
use reqwest::Url;
use sojourn_codec::packed::pack;
use sojourn_protocol::{
    digest::{BlobRef, Digest},
    quantity::{SaturatingFrom as _, to_u64, to_usize},
    time::UnixMillis,
};
use std::time::Duration;
use tokio::sync::Semaphore;

/// The ending of the keys of compressed copies.
pub(crate) const ENDING: &str = ".zst";
/// Larger blobs are not compressed: each is held in memory meanwhile. `shards = "auto"` makes none that is larger.
const MAX_RAW_BYTES: u64 = 256 << 20;
/// A copy of a smaller blob is an object more than it is worth.
const MIN_RAW_BYTES: u64 = 4 << 10;
/// KiB of blobs that are compressed at once.
const MAX_PACKING_KIB: usize = 256 << 10;
static PACKING: Semaphore = Semaphore::const_new(MAX_PACKING_KIB);

/// A compressed copy of a blob.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PackedCopy {
    /// The blob.
    pub blob: Digest,
    /// Size of the copy; 0 where the blob is not worth one.
    pub bytes: u64,
    /// When it was stored, by the store's clock.
    pub at: UnixMillis,
}

impl BlobStore {
    /// The size of a blob's compressed copy, which is made where there is none yet; `None` where the blob is not worth one.
    /// The caller doesn't hold the blob.
    ///
    /// # Errors
    /// As [`BlobStore::bytes`], [`BlobError::Full`], or where the store fails.
    pub async fn packed_size(&self, blob: BlobRef) -> Result<Option<u64>, BlobError> {
        if !(MIN_RAW_BYTES..=MAX_RAW_BYTES).contains(&blob.bytes) {
            return Ok(None);
        }
        if let Some(bytes) = self.stored_packed_size(blob.sha256).await? {
            return Ok(worth(bytes));
        }
        // Many hosts may ask for a new shard at once: the first one has it compressed, and the others wait.
        let _hold = self.hold(blob.sha256).await;
        if let Some(bytes) = self.stored_packed_size(blob.sha256).await? {
            return Ok(worth(bytes));
        }
        self.pack(blob).await.map(worth)
    }

    /// Makes the copy, and gives its size. The caller holds the blob.
    async fn pack(&self, blob: BlobRef) -> Result<u64, BlobError> {
        let kib = to_usize(blob.bytes >> 10).clamp(1, MAX_PACKING_KIB);
        // The semaphore is never closed.
        let _room = PACKING.acquire_many(u32::saturating_from(kib)).await;
        let raw = self.bytes(blob.sha256).await?;
        // It takes a core for a while, which others may wait for.
        let packed = tokio::task::spawn_blocking(move || pack(&raw).unwrap_or_default());
        let packed = packed.await.map_err(|_| BlobError::Shortened(blob.sha256))?;
        let bytes = to_u64(packed.len());
        let put = self.store().put(&packed_key(blob.sha256), PutPayload::from(packed)).await;
        put.map(|_| bytes).map_err(BlobError::store)
    }

    /// The size of the copy that is stored; `None` where there is none.
    async fn stored_packed_size(&self, blob: Digest) -> Result<Option<u64>, BlobError> {
        match self.store().head(&packed_key(blob)).await {
            Ok(meta) => Ok(Some(meta.size)),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(BlobError::store(error)),
        }
    }

    /// The bytes of a compressed copy, and how many they are.
    ///
    /// # Errors
    /// [`BlobError::Missing`], or where the store fails.
    pub async fn read_packed(&self, blob: Digest) -> Result<(u64, BlobBytes), BlobError> {
        match self.store().get(&packed_key(blob)).await {
            Ok(got) => Ok((got.meta.size, whole(blob, got))),
            Err(Error::NotFound { .. }) => Err(BlobError::Missing(blob)),
            Err(error) => Err(BlobError::store(error)),
        }
    }

    /// A URL that gives a compressed copy for so long; `None` where the store has no such URLs.
    ///
    /// # Errors
    /// Where the store fails.
    pub async fn packed_url(&self, blob: Digest, term: Duration) -> Result<Option<Url>, BlobError> {
        let Some(Remote { signer, .. }) = self.remote() else { return Ok(None) };
        let url = signer.signed_url(Method::GET, &packed_key(blob), term).await;
        url.map(Some).map_err(BlobError::store)
    }

    /// Every compressed copy in the store.
    ///
    /// # Errors
    /// Where the store fails.
    pub async fn list_packed(&self) -> Result<Vec<PackedCopy>, BlobError> {
        let mut copies = Vec::new();
        let mut objects = self.store().list(Some(&Key::from("sha256")));
        while let Some(meta) = objects.try_next().await.map_err(BlobError::store)? {
            if let Some(blob) = packed(&meta.location) {
                copies.push(PackedCopy { blob, bytes: meta.size, at: time_of(&meta) });
            }
        }
        copies.sort_unstable_by_key(|copy| copy.blob);
        Ok(copies)
    }

    /// Deletes a blob's compressed copy. A missing one is no error.
    ///
    /// # Errors
    /// Where the store fails.
    pub async fn delete_packed(&self, blob: Digest) -> Result<(), BlobError> {
        delete(self.store(), &packed_key(blob)).await
    }
}

/// The size of a copy that is worth its while.
fn worth(bytes: u64) -> Option<u64> {
    (bytes > 0).then_some(bytes)
}

/// The key of a blob's compressed copy.
fn packed_key(blob: Digest) -> Key {
    Key::from(format!("{}/{blob}{ENDING}", folder_of(blob)))
}

/// The blob of which this is the copy's key.
fn packed(key: &Key) -> Option<Digest> {
    key.filename()?.strip_suffix(ENDING)?.parse().ok()
}

//! Complete uploads of leases in the object store, where every server and every assimilator can read them.
//!
//! ```text
//! uploads/lease-12/<sha256>            a whole upload, or a part of one, under its own digest
//! uploads/lease-12/<sha256>.manifest   made last: of which parts that upload consists, in which order
//! ```
//!
//! The digest of each object was verified: by the server that put it there, or by the store itself, which takes only bytes
//! of the digest that the URL was signed for.

use crate::{
    error::{BlobError, UploadError},
    hashed_bytes::HashedBytes,
    objects::{CONCURRENT_PARTS, blob_key, size_of, time_of},
    store::BlobStore,
    upload_name::UploadName,
};
use bytes::{Bytes, BytesMut};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use object_store::{
    Error, GetOptions, GetRange, ObjectMeta, ObjectStoreExt as _, PutPayload, path::Path as Key,
};
use sojourn_protocol::{
    digest::{BlobRef, Digest},
    ids::LeaseId,
    quantity::to_usize,
    time::UnixMillis,
};
use std::{ops::Range, path::Path};

/// Bytes of one request.
const RANGE_BYTES: u64 = 16 << 20;
/// The folder of all uploads.
const FOLDER: &str = "uploads";
/// The largest manifest, in bytes: one of 100,000 parts has about 8 MiB.
const MAX_MANIFEST_BYTES: u64 = 8 << 20;

/// The complete uploads in a store; cheap to clone.
#[derive(Debug, Clone)]
pub struct Staging {
    blobs: BlobStore,
}

/// One object that belongs to a lease's upload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Staged {
    /// The lease.
    pub lease: LeaseId,
    /// The object's size in bytes.
    pub bytes: u64,
    /// When it was put there, by the store's clock.
    pub at: UnixMillis,
    key: Key,
}

impl BlobStore {
    /// The complete uploads beside these blobs.
    #[must_use]
    pub fn staging(&self) -> Staging {
        Staging { blobs: self.clone() }
    }
}

impl Staging {
    pub(crate) const fn blobs(&self) -> &BlobStore {
        &self.blobs
    }

    /// The store's clock.
    ///
    /// # Errors
    /// Where the store fails.
    pub async fn now(&self) -> Result<UnixMillis, BlobError> {
        self.blobs.now().await
    }

    /// Is this whole upload there? Looks at names and sizes alone.
    ///
    /// # Errors
    /// Where the store fails.
    pub async fn is_staged(&self, lease: LeaseId, blob: BlobRef) -> Result<bool, BlobError> {
        let store = self.blobs.store();
        if size_of(store.head(&whole(lease, blob.sha256)).await)? == Some(blob.bytes) {
            return Ok(true);
        }
        Ok(self.manifest(lease, blob).await?.is_some())
    }

    /// The bytes of a whole upload, hashed as they were read: those of `blob`. Large ones come in several
    /// requests at once.
    ///
    /// # Errors
    /// [`UploadError::NotComplete`], [`UploadError::DigestMismatch`], [`UploadError::Store`].
    pub async fn staged(&self, lease: LeaseId, blob: BlobRef) -> Result<HashedBytes, UploadError> {
        let name = UploadName::Lease(lease);
        let not_complete = || UploadError::NotComplete { name, blob: blob.sha256 };
        let key = whole(lease, blob.sha256);
        let size = size_of(self.blobs.store().head(&key).await).map_err(UploadError::Store)?;
        let bytes = if size == Some(blob.bytes) {
            self.read(ranges(&key, blob.bytes), blob.bytes).await
        } else {
            let parts = self.manifest(lease, blob).await.map_err(UploadError::Store)?;
            let parts = parts.ok_or_else(not_complete)?;
            let parts = parts.into_iter().map(|of| (whole(lease, of.sha256), None));
            self.read(parts.collect(), blob.bytes).await
        };
        let bytes = match bytes {
            Ok(bytes) => bytes,
            // It was removed meanwhile.
            Err(Error::NotFound { .. }) => return Err(not_complete()),
            Err(error) => return Err(UploadError::Store(BlobError::store(error))),
        };
        let named = HashedBytes::of(bytes);
        if named.blob() == blob {
            return Ok(named);
        }
        Err(UploadError::DigestMismatch { declared: blob.sha256, found: named.blob().sha256 })
    }

    /// The bytes `range` of an upload, of which few others are fetched. They aren't checked: whoever asks knows a digest
    /// of them.
    ///
    /// # Errors
    /// [`UploadError::NotComplete`], [`UploadError::Store`].
    pub async fn staged_range(
        &self,
        lease: LeaseId,
        blob: BlobRef,
        range: Range<u64>,
    ) -> Result<Bytes, UploadError> {
        let name = UploadName::Lease(lease);
        let not_complete = || UploadError::NotComplete { name, blob: blob.sha256 };
        let key = whole(lease, blob.sha256);
        let store_error = |error| match error {
            Error::NotFound { .. } => not_complete(),
            error => UploadError::Store(BlobError::store(error)),
        };
        let size = size_of(self.blobs.store().head(&key).await).map_err(UploadError::Store)?;
        if size == Some(blob.bytes) {
            return self.blobs.store().get_range(&key, range).await.map_err(store_error);
        }
        let parts = self.manifest(lease, blob).await.map_err(UploadError::Store)?;
        let mut end = 0u64;
        let within = parts.ok_or_else(not_complete)?.into_iter().filter_map(|part| {
            let start = end;
            end = start.saturating_add(part.bytes);
            let (from, to) = (range.start.max(start), range.end.min(end));
            let bounds = GetRange::Bounded(from.saturating_sub(start)..to.saturating_sub(start));
            (from < to).then(|| (whole(lease, part.sha256), Some(bounds)))
        });
        let bytes = range.end.saturating_sub(range.start);
        self.read(within.collect(), bytes).await.map_err(store_error)
    }

    /// Stores a file as a lease's whole upload. It is durable when this returns. A file that isn't `blob` is refused, and
    /// nothing is stored.
    ///
    /// # Errors
    /// As [`BlobStore::publish`].
    pub async fn stage(&self, lease: LeaseId, blob: BlobRef, file: &Path) -> Result<(), BlobError> {
        self.blobs.put_file(&whole(lease, blob.sha256), blob, file).await.map(drop)
    }

    /// As [`Staging::stage`], of bytes in memory.
    ///
    /// # Errors
    /// [`BlobError::Full`], or where the store fails.
    pub async fn stage_bytes(&self, lease: LeaseId, named: HashedBytes) -> Result<(), BlobError> {
        let key = whole(lease, named.blob().sha256);
        self.blobs.put(&key, named).await.map(drop)
    }

    /// Makes the upload that `upload` was read from a blob, and returns once that lasts. Where the store can
    /// copy, the bytes don't travel again. To be done under a hold of the blob, or checked under one later,
    /// as any publish.
    ///
    /// # Errors
    /// [`BlobError::Full`], or where the store fails.
    pub async fn publish(&self, lease: LeaseId, upload: &HashedBytes) -> Result<(), BlobError> {
        let blob = upload.blob();
        if self.blobs.remote().is_some() {
            let from = whole(lease, blob.sha256);
            match self.blobs.store().copy(&from, &blob_key(blob.sha256)).await {
                // The store confirms the copy: some answer before they have made it.
                Ok(()) if self.blobs.stored_size(blob.sha256).await? == Some(blob.bytes) => {
                    return Ok(());
                }
                // It came in parts, was removed, or is too large to be copied: the bytes are in memory.
                Ok(()) | Err(Error::NotFound { .. } | Error::NotSupported { .. }) => {}
                Err(error) => return Err(BlobError::store(error)),
            }
        }
        self.blobs.publish_bytes(upload.clone()).await
    }

    /// Makes one upload of parts that were staged each by itself: writes its manifest.
    ///
    /// # Errors
    /// [`BlobError::Missing`] where a part isn't there or has another size, or where the store fails.
    pub async fn join(
        &self,
        lease: LeaseId,
        blob: BlobRef,
        parts: &[BlobRef],
    ) -> Result<(), BlobError> {
        let absent = self.absent(lease, parts).await?;
        if let Some(of) = absent.first() {
            return Err(BlobError::Missing(of.sha256));
        }
        if sum(parts) != Some(blob.bytes) {
            return Err(BlobError::Missing(blob.sha256));
        }
        let lines = parts.iter().map(|of| format!("{} {}\n", of.sha256, of.bytes));
        let text: String = lines.collect();
        let manifest = manifest(lease, blob.sha256);
        let put = self.blobs.store().put(&manifest, PutPayload::from(text)).await;
        put.map(drop).map_err(BlobError::store)
    }

    /// The parts among these that the lease hasn't got here.
    ///
    /// # Errors
    /// Where the store fails.
    pub async fn absent(
        &self,
        lease: LeaseId,
        parts: &[BlobRef],
    ) -> Result<Vec<BlobRef>, BlobError> {
        let looked = parts.iter().map(|of| async move {
            let head = self.blobs.store().head(&whole(lease, of.sha256)).await;
            Ok((size_of(head)? != Some(of.bytes)).then_some(*of))
        });
        let found: Vec<Option<BlobRef>> =
            stream::iter(looked).buffered(CONCURRENT_PARTS).try_collect().await?;
        Ok(found.into_iter().flatten().collect())
    }

    /// Deletes all objects of a lease. None is no error.
    ///
    /// # Errors
    /// Where the store fails.
    pub async fn unstage(&self, lease: LeaseId) -> Result<(), BlobError> {
        for staged in self.under(&Key::from(format!("{FOLDER}/lease-{lease}"))).await? {
            self.remove(&staged).await?;
        }
        Ok(())
    }

    /// All objects of every lease.
    ///
    /// # Errors
    /// Where the store fails.
    pub async fn list(&self) -> Result<Vec<Staged>, BlobError> {
        self.under(&Key::from(FOLDER)).await
    }

    /// Deletes one object of a lease's upload. A missing one is no error.
    ///
    /// # Errors
    /// Where the store fails.
    pub async fn remove(&self, staged: &Staged) -> Result<(), BlobError> {
        match self.blobs.store().delete(&staged.key).await {
            Ok(()) | Err(Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(BlobError::store(error)),
        }
    }

    async fn under(&self, folder: &Key) -> Result<Vec<Staged>, BlobError> {
        let objects = self.blobs.store().list(Some(folder)).map_err(BlobError::store);
        objects.try_filter_map(async |meta| Ok(Staged::of(meta))).try_collect().await
    }

    /// The parts of an upload that came in parts, once it is whole.
    async fn manifest(
        &self,
        lease: LeaseId,
        blob: BlobRef,
    ) -> Result<Option<Vec<BlobRef>>, BlobError> {
        let got = match self.blobs.store().get(&manifest(lease, blob.sha256)).await {
            Ok(got) if got.meta.size <= MAX_MANIFEST_BYTES => got.bytes().await,
            Ok(_) | Err(Error::NotFound { .. }) => return Ok(None),
            Err(error) => Err(error),
        };
        let text = got.map_err(BlobError::store)?;
        let parts = parts_of(&String::from_utf8_lossy(&text));
        Ok(parts.filter(|parts| sum(parts) == Some(blob.bytes)))
    }

    /// The bytes of these pieces, one after another; no more than `bytes` are held.
    async fn read(
        &self,
        pieces: Vec<(Key, Option<GetRange>)>,
        bytes: u64,
    ) -> object_store::Result<Bytes> {
        let store = self.blobs.store();
        let mut pieces = stream::iter(pieces)
            .map(|(key, range)| async move {
                let options = GetOptions { range, ..GetOptions::default() };
                store.get_opts(&key, options).await?.bytes().await
            })
            .buffered(CONCURRENT_PARTS);
        let mut all = BytesMut::new();
        while let Some(piece) = pieces.try_next().await? {
            all.reserve(to_usize(bytes).saturating_sub(all.len()));
            all.extend_from_slice(&piece);
        }
        Ok(all.freeze())
    }
}

impl Staged {
    /// The bytes of the object; `None` for a manifest.
    #[must_use]
    pub fn blob(&self) -> Option<BlobRef> {
        let sha256 = self.key.filename()?.parse().ok()?;
        Some(BlobRef { sha256, bytes: self.bytes })
    }

    fn of(meta: ObjectMeta) -> Option<Self> {
        let lease = meta.location.parts().nth(1)?;
        let lease = lease.as_ref().strip_prefix("lease-")?.parse().ok()?;
        Some(Self { lease, bytes: meta.size, at: time_of(&meta), key: meta.location })
    }
}

/// Where a lease's whole upload lies, or a part of it.
pub(crate) fn whole(lease: LeaseId, upload: Digest) -> Key {
    Key::from(format!("{FOLDER}/lease-{lease}/{upload}"))
}

fn manifest(lease: LeaseId, upload: Digest) -> Key {
    Key::from(format!("{FOLDER}/lease-{lease}/{upload}.manifest"))
}

/// The parts that a manifest names.
fn parts_of(text: &str) -> Option<Vec<BlobRef>> {
    let part = |line: &str| {
        let (sha256, bytes) = line.split_once(' ')?;
        Some(BlobRef { sha256: sha256.parse().ok()?, bytes: bytes.parse().ok()? })
    };
    text.lines().map(part).collect()
}

fn sum(parts: &[BlobRef]) -> Option<u64> {
    parts.iter().try_fold(0u64, |sum, part| sum.checked_add(part.bytes))
}

/// One object in pieces that can be asked for at once.
fn ranges(key: &Key, bytes: u64) -> Vec<(Key, Option<GetRange>)> {
    if bytes <= RANGE_BYTES {
        return vec![(key.clone(), None)];
    }
    let starts = (0..bytes.div_ceil(RANGE_BYTES)).map(|piece| piece.saturating_mul(RANGE_BYTES));
    let range = |start: u64| GetRange::Bounded(start..start.saturating_add(RANGE_BYTES).min(bytes));
    starts.map(|start| (key.clone(), Some(range(start)))).collect()
}

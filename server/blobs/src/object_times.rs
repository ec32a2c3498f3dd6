//! The times at which objects were stored, by the store's own clock: the only clock that ages are computed with.

use crate::{
    error::BlobError,
    logged::Logged,
    objects::{blob_key, index_key, indexed, time_of},
    probe,
    store::BlobStore,
};
use futures::TryStreamExt as _;
use object_store::{Error, ObjectStoreExt as _, PutPayload, path::Path as Key};
use sojourn_protocol::{
    digest::{BlobRef, Digest},
    quantity::SaturatingFrom as _,
    time::UnixMillis,
};
use std::{cmp::Reverse, time::SystemTime};

impl BlobStore {
    /// When the blob was stored, by the store's clock.
    ///
    /// # Errors
    /// Where the store fails.
    pub async fn stored_at(&self, blob: Digest) -> Result<Option<UnixMillis>, BlobError> {
        let mut found = self.small(blob).map(|file| millis(file.at));
        for key in [blob_key(blob), index_key(blob)] {
            match self.store().head(&key).await {
                Ok(meta) => found = found.max(Some(time_of(&meta))),
                Err(Error::NotFound { .. }) => {}
                Err(error) => return Err(BlobError::store(error)),
            }
        }
        Ok(found)
    }

    /// As [`BlobStore::list`], with the time at which each was stored, by the store's clock.
    ///
    /// # Errors
    /// Where the store fails.
    pub async fn list_aged(&self) -> Result<Vec<(BlobRef, UnixMillis)>, BlobError> {
        let mut blobs = Vec::new();
        // First of those in memory: one that is written to its file meanwhile is found there too.
        let small = self.logged().map(Logged::list).unwrap_or_default();
        blobs.extend(small.into_iter().map(|(blob, at)| (blob, millis(at))));
        let mut objects = self.store().list(Some(&Key::from("sha256")));
        while let Some(meta) = objects.try_next().await.map_err(BlobError::store)? {
            let name = meta.location.filename().and_then(|name| name.parse().ok());
            let blob = match (name, indexed(&meta.location)) {
                (Some(sha256), _) => BlobRef { sha256, bytes: meta.size },
                (None, Some(sha256)) => {
                    let bytes = self.size_indexed(sha256, meta.size).await?;
                    BlobRef { sha256, bytes }
                }
                (None, None) => continue,
            };
            blobs.push((blob, time_of(&meta)));
        }
        // A blob that is stored in two ways has the later time.
        blobs.sort_unstable_by_key(|(blob, at)| (*blob, Reverse(*at)));
        blobs.dedup_by_key(|(blob, _)| blob.sha256);
        Ok(blobs)
    }

    /// The store's own time. Writes a small object.
    ///
    /// # Errors
    /// Where the store fails.
    pub async fn now(&self) -> Result<UnixMillis, BlobError> {
        let key = probe::key();
        let put = self.store().put(&key, PutPayload::from_static(b"What time is it?")).await;
        put.map_err(BlobError::store)?;
        let meta = self.store().head(&key).await.map_err(BlobError::store)?;
        self.store().delete(&key).await.map_err(BlobError::store)?;
        Ok(time_of(&meta))
    }

    /// Deletes the objects of probes before `before`, which killed processes have left.
    ///
    /// # Errors
    /// Where the store fails.
    pub async fn sweep_probes(&self, before: UnixMillis) -> Result<(), BlobError> {
        let mut objects = self.store().list(Some(&Key::from(probe::FOLDER)));
        while let Some(meta) = objects.try_next().await.map_err(BlobError::store)? {
            if time_of(&meta) < before {
                self.store().delete(&meta.location).await.map_err(BlobError::store)?;
            }
        }
        Ok(())
    }
}

fn millis(at: SystemTime) -> UnixMillis {
    let since = at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    UnixMillis(u64::saturating_from(since.as_millis()))
}

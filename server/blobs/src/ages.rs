//! Since when things lie in a store, by the store's own clock: the only one by which ages in it are told.

use crate::{
    error::BlobError,
    proof,
    ranged::{index_key, indexed},
    store::{BlobStore, key},
};
use futures::TryStreamExt as _;
use object_store::{Error, ObjectMeta, ObjectStoreExt as _, PutPayload, path::Path as Key};
use sojourn_protocol::{
    digest::{BlobRef, Digest},
    time::UnixMillis,
};
use std::cmp::Reverse;

/// When the store was given an object.
pub(crate) fn time_of(meta: &ObjectMeta) -> UnixMillis {
    UnixMillis(u64::try_from(meta.last_modified.timestamp_millis()).unwrap_or(0))
}

impl BlobStore {
    /// When the store was given what it has under a blob's name, by its own clock.
    ///
    /// # Errors
    /// Trouble with the store.
    pub async fn stored_at(&self, blob: Digest) -> Result<Option<UnixMillis>, BlobError> {
        let mut found = None;
        for key in [key(blob), index_key(blob)] {
            match self.store().head(&key).await {
                Ok(meta) => found = found.max(Some(time_of(&meta))),
                Err(Error::NotFound { .. }) => {}
                Err(error) => return Err(BlobError::store(error)),
            }
        }
        Ok(found)
    }

    /// As [`BlobStore::list`], with when the store was given each, by its own clock.
    ///
    /// # Errors
    /// Trouble with the store.
    pub async fn list_aged(&self) -> Result<Vec<(BlobRef, UnixMillis)>, BlobError> {
        let mut blobs = Vec::new();
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
        // Of one that is stored both ways, the later time.
        blobs.sort_unstable_by_key(|(blob, at)| (*blob, Reverse(*at)));
        blobs.dedup_by_key(|(blob, _)| blob.sha256);
        Ok(blobs)
    }

    /// The store's own time. Writes a small object.
    ///
    /// # Errors
    /// Trouble with the store.
    pub async fn now(&self) -> Result<UnixMillis, BlobError> {
        let key = proof::key();
        let put = self.store().put(&key, PutPayload::from_static(b"What time is it?")).await;
        put.map_err(BlobError::store)?;
        let meta = self.store().head(&key).await.map_err(BlobError::store)?;
        self.store().delete(&key).await.map_err(BlobError::store)?;
        Ok(time_of(&meta))
    }

    /// Throws away what processes that were killed have left of trials before `before`.
    ///
    /// # Errors
    /// Trouble with the store.
    pub async fn sweep_trials(&self, before: UnixMillis) -> Result<(), BlobError> {
        let mut objects = self.store().list(Some(&Key::from(proof::FOLDER)));
        while let Some(meta) = objects.try_next().await.map_err(BlobError::store)? {
            if time_of(&meta) < before {
                self.store().delete(&meta.location).await.map_err(BlobError::store)?;
            }
        }
        Ok(())
    }
}

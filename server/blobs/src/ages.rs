//! Since when things lie in a store, by the store's own clock: the only one by which ages in it are told.

use crate::{
    error::BlobError,
    proof,
    store::{BlobStore, key},
};
use futures::TryStreamExt as _;
use object_store::{Error, ObjectMeta, ObjectStoreExt as _, PutPayload, path::Path as Key};
use sojourn_protocol::{
    digest::{BlobRef, Digest},
    time::UnixMillis,
};

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
        match self.store().head(&key(blob)).await {
            Ok(meta) => Ok(Some(time_of(&meta))),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(BlobError::store(error)),
        }
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
            let blob = name.map(|sha256| BlobRef { sha256, bytes: meta.size });
            blobs.extend(blob.map(|blob| (blob, time_of(&meta))));
        }
        blobs.sort_unstable();
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

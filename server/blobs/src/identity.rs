//! Which store it is, by an object in it with a name that no other store has; other notes beside the blobs; and which object a
//! blob is.

use crate::{error::BlobError, objects::blob_key, store::BlobStore};
use object_store::{
    Error, ObjectMeta, ObjectStoreExt as _, PutMode, PutPayload, path::Path as Key,
};
use sojourn_protocol::digest::Digest;

/// The object's key.
const IDENTITY: &str = "store-id";

impl BlobStore {
    /// The store's id. Where it has none yet it is `new`, of random text: of several processes that give one at the same time,
    /// all are told the same.
    ///
    /// # Errors
    /// Where the store fails.
    pub async fn identity(&self, new: &str) -> Result<String, BlobError> {
        if let Some(id) = self.given_identity().await? {
            return Ok(id);
        }
        let key = Key::from(IDENTITY);
        let made = || PutPayload::from(format!("{new}\n").into_bytes());
        let put = self.store().put_opts(&key, made(), PutMode::Create.into()).await;
        let was_quicker =
            matches!(&put, Err(Error::AlreadyExists { .. } | Error::Precondition { .. }));
        if put.is_err() && !was_quicker {
            // Stores that know no conditions: of two at the same time, the last counts.
            self.store().put(&key, made()).await.map_err(BlobError::store)?;
        }
        self.given_identity().await?.ok_or_else(|| {
            let source = "the id of the store was written there, and isn't there".into();
            BlobError::Store(Error::Generic { store: "blobs", source })
        })
    }

    /// Names the object that a blob is stored as: another one, once it was written anew. `None` where there is no such object.
    ///
    /// # Errors
    /// Where the store fails.
    pub async fn stamp(&self, blob: Digest) -> Result<Option<String>, BlobError> {
        match self.store().head(&blob_key(blob)).await {
            Ok(meta) => {
                let ObjectMeta { last_modified, size, e_tag, .. } = meta;
                Ok(Some(e_tag.unwrap_or_else(|| format!("{last_modified} {size}"))))
            }
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(BlobError::store(error)),
        }
    }

    async fn given_identity(&self) -> Result<Option<String>, BlobError> {
        Ok(self.note(IDENTITY).await?.map(|text| text.trim().to_owned()))
    }

    /// The text of a note that the servers of the store keep beside the blobs; `None` where there is none.
    ///
    /// # Errors
    /// Where the store fails.
    pub async fn note(&self, name: &str) -> Result<Option<String>, BlobError> {
        let got = match self.store().get(&Key::from(name)).await {
            Ok(got) => got,
            Err(Error::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(BlobError::store(error)),
        };
        let bytes = got.bytes().await.map_err(BlobError::store)?;
        Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
    }

    /// Replaces a note. It is durable when this returns.
    ///
    /// # Errors
    /// Where the store fails.
    pub async fn set_note(&self, name: &str, text: &str) -> Result<(), BlobError> {
        let text = PutPayload::from(text.as_bytes().to_vec());
        self.store().put(&Key::from(name), text).await.map(|_| ()).map_err(BlobError::store)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_store_keeps_the_first_id_that_it_was_given() {
        let (one, two) = (BlobStore::in_memory(), BlobStore::in_memory());
        assert_eq!(one.identity("a").await.unwrap(), "a");
        assert_eq!(one.identity("b").await.unwrap(), "a");
        assert_eq!(two.identity("b").await.unwrap(), "b");

        let folder = tempfile::tempdir().unwrap();
        let open = || BlobStore::open(&folder.path().join("blobs")).unwrap();
        assert_eq!(open().identity("c").await.unwrap(), "c");
        assert_eq!(open().identity("d").await.unwrap(), "c");
    }
}

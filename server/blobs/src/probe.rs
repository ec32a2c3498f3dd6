//! Probes a store before anything relies on it: a small object is written, read and deleted.

use crate::store::BlobStore;
use object_store::{Error, ObjectStoreExt as _, PutPayload, path::Path as Key};
use sojourn_protocol::error::error_chain;
use std::{
    process,
    sync::atomic::{AtomicU64, Ordering},
    time::{SystemTime, UNIX_EPOCH},
};

/// The folder of the objects that probes write.
pub(crate) const FOLDER: &str = "trials";
/// The bytes that a probe writes.
const CONTENT: &str = "Sojourn tries whether it can use this store.";

/// Why a store can't be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "each variant's message says it")]
pub enum ProbeError {
    #[error("there is no such bucket or container")]
    NoBucket(#[source] Error),
    #[error("the store refuses the key: it is unknown, or its secret is another")]
    WrongKey(#[source] Error),
    #[error("the store refuses the time: this machine's clock is wrong by more than it allows")]
    Clock(#[source] Error),
    #[error("the key has no right to {0} objects there")]
    Forbidden(&'static str, #[source] Error),
    #[error("can't {0} an object there")]
    Failed(&'static str, #[source] Error),
    #[error("an object that was written there was read as something else")]
    Altered,
}

impl ProbeError {
    fn of(doing: &'static str, error: Error) -> Self {
        // One of the messages has the store's own code.
        let said = error_chain(&error);
        let says = |word: &str| said.contains(word);
        if says("RequestTimeTooSkewed") || says("RequestExpired") {
            ProbeError::Clock(error)
        } else if says("NoSuchBucket") || says("ContainerNotFound") {
            ProbeError::NoBucket(error)
        } else if says("InvalidAccessKeyId")
            || says("NotSignedUp")
            || says("SignatureDoesNotMatch")
            || matches!(error, Error::Unauthenticated { .. })
        {
            ProbeError::WrongKey(error)
        } else {
            match error {
                // A write needs nothing but the bucket.
                Error::NotFound { .. } if doing == "write" => ProbeError::NoBucket(error),
                Error::PermissionDenied { .. } => ProbeError::Forbidden(doing, error),
                _ => ProbeError::Failed(doing, error),
            }
        }
    }
}

/// Writes, reads and deletes a small object.
pub(crate) async fn run(blobs: &BlobStore) -> Result<(), ProbeError> {
    let (store, key) = (blobs.store(), key());
    let fault = |doing| move |error| ProbeError::of(doing, error);
    store.put(&key, PutPayload::from_static(CONTENT.as_bytes())).await.map_err(fault("write"))?;
    let got = store.get(&key).await.map_err(fault("read"))?;
    let bytes = got.bytes().await.map_err(fault("read"))?;
    store.delete(&key).await.map_err(fault("delete"))?;
    if bytes == CONTENT { Ok(()) } else { Err(ProbeError::Altered) }
}

/// A unique key: several processes may probe the same store at once.
pub(crate) fn key() -> Key {
    static PROBES: AtomicU64 = AtomicU64::new(0);
    let trial = PROBES.fetch_add(1, Ordering::Relaxed);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    Key::from(format!("{FOLDER}/{}-{now}-{trial}", process::id()))
}

//! Keys and metadata of the objects that blobs are stored as.

use crate::error::BlobError;
use object_store::{ObjectMeta, path::Path as Key};
use sojourn_protocol::{digest::Digest, quantity::SaturatingFrom as _, time::UnixMillis};

/// Parts of one object that are sent or fetched at once.
pub(crate) const CONCURRENT_PARTS: usize = 4;
/// The ending of the keys of indexes.
const INDEX_ENDING: &str = ".ranges";

/// The size of an object by its metadata; `None` where there is no object.
pub(crate) fn size_of(head: object_store::Result<ObjectMeta>) -> Result<Option<u64>, BlobError> {
    match head {
        Ok(meta) => Ok(Some(meta.size)),
        Err(object_store::Error::NotFound { .. }) => Ok(None),
        Err(error) => Err(BlobError::store(error)),
    }
}

/// The key of a blob that is one object.
pub(crate) fn blob_key(blob: Digest) -> Key {
    Key::from(format!("{}/{blob}", folder_of(blob)))
}

/// The folder of all that belongs to a blob.
pub(crate) fn folder_of(blob: Digest) -> String {
    let folder: String = blob.to_string().chars().take(2).collect();
    format!("sha256/{folder}")
}

/// The key of the index of a blob that is stored in pieces.
pub(crate) fn index_key(blob: Digest) -> Key {
    Key::from(format!("{}/{blob}{INDEX_ENDING}", folder_of(blob)))
}

/// The blob of which this is the index's key.
pub(crate) fn indexed(key: &Key) -> Option<Digest> {
    key.filename()?.strip_suffix(INDEX_ENDING)?.parse().ok()
}

/// When the store was given an object, by the store's clock.
pub(crate) fn time_of(meta: &ObjectMeta) -> UnixMillis {
    UnixMillis(u64::saturating_from(meta.last_modified.timestamp_millis()))
}

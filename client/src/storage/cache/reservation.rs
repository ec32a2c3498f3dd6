//! Blobs that are on their way into the cache.

use super::{Cache, Class, Pin, index::Trust};
use sojourn_protocol::digest::BlobRef;
use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

/// Room for a blob that is on its way, and the name that it is written under meanwhile. Dropped before
/// the blob is whole, what has come of it is kept for the next attempt while there is room.
#[derive(Debug)]
pub(crate) struct Reservation {
    pub(super) cache: Arc<Cache>,
    pub(super) blob: BlobRef,
    pub(super) path: PathBuf,
}

impl Reservation {
    /// Where to write the bytes meanwhile.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Would the cache pack the blob, as one of this class? That takes a while.
    pub(crate) fn is_packed_as(&self, class: Class) -> bool {
        self.cache.packs(self.blob, class)
    }

    /// The file under [`Reservation::path`] is whole and has the blob's digest: takes it in, pinned. Blocks where it is packed
    /// ([`Reservation::is_packed_as`]).
    pub(crate) fn publish(mut self, class: Class) -> io::Result<Pin> {
        let BlobRef { sha256: digest, bytes } = self.blob;
        let path = self.cache.path(&digest, class);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let packed = match self.is_packed_as(class) {
            true => self.cache.write_packed(self.blob, &self.path)?,
            false => None,
        };
        let cache = Arc::clone(&self.cache);
        let (path, unpacked) = match packed {
            None => {
                fs::rename(&self.path, &path)?;
                (path, None)
            }
            Some(_) => {
                let unpacked = cache.take_unpacked(self.blob, &self.path)?;
                (unpacked.path().to_owned(), Some(unpacked))
            }
        };
        let generation = self.cache.change(|index| {
            if packed.is_none() {
                // Else they are those of the unpacked file.
                index.unreserve(bytes);
            }
            index.insert(digest, class, packed.unwrap_or(bytes), Trust::Checked);
            index.pin(&digest)
        });
        // Nothing is left to give back, or to keep.
        self.blob.bytes = 0;
        Ok(Pin { cache, digest, generation, path, unpacked })
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let BlobRef { sha256: digest, bytes } = self.blob;
        let length = fs::metadata(&self.path).map_or(0, |meta| meta.len());
        // A checkpoint of the same bytes may have been made here meanwhile.
        let known = self.cache.state.lock().index.get(&digest).is_some();
        let kept = length > 0 && length <= bytes && !known;
        if !kept {
            // Removed before the accounts: afterwards the name may be somebody else's.
            let _ = fs::remove_file(&self.path);
        }
        self.cache.change(|index| {
            index.unreserve(bytes);
            if kept {
                index.insert(digest, Class::Part, length, Trust::Unchecked);
            }
        });
    }
}

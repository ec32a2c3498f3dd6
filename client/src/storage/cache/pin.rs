//! Blobs in use.

use super::{Cache, index::Generation, unpacked::Unpacked};
use sojourn_protocol::digest::Digest;
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

/// A blob in use: it stays where it is until this is dropped.
#[derive(Debug)]
pub(crate) struct Pin {
    pub(super) cache: Arc<Cache>,
    pub(super) digest: Digest,
    /// None where the index doesn't know the blob.
    pub(super) generation: Option<Generation>,
    pub(super) path: PathBuf,
    /// Where the cache has the blob packed: the file under `path`, which goes with its last pin.
    pub(super) unpacked: Option<Arc<Unpacked>>,
}

impl Pin {
    /// Which blob it is.
    pub(crate) fn digest(&self) -> Digest {
        self.digest
    }

    /// Where the bytes lie.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        if let Some(generation) = self.generation {
            self.cache.change(|index| index.unpin(&self.digest, generation));
        }
    }
}

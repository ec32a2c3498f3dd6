//! Large bytes that are hashed, and written to the store's folder meanwhile.
//!
//! ```text
//!   prepare:  hash the bytes        | side by side
//!             write and sync a file |
//!   publish:  rename that file to the blob's name, sync the folder that has it
//! ```
//!
//! A blob is named by its digest, so its file would otherwise be written only when all bytes are hashed. Both take about as
//! long. A file that isn't published is deleted with its [`Prepared`]; a start deletes those that a crash leaves.

use crate::{
    disk::{RealDisk, sync_folder},
    error::BlobError,
    hashed_bytes::HashedBytes,
    objects::blob_key,
    store::BlobStore,
    write_ahead_log::MAX_SMALL_BYTES,
};
use bytes::Bytes;
use object_store::ObjectStoreExt as _;
use parking_lot::Mutex;
use std::{
    fs::{self, File},
    io::{self, Write as _},
    path::{Path, PathBuf},
};
use tokio::task::{self, JoinError};

/// Bytes with their digest. In a store that is a folder their file may already last, under another name.
#[derive(Debug)]
pub struct Prepared {
    named: HashedBytes,
    file: Mutex<Option<UnnamedFile>>,
}

/// A file that lasts and has no blob's name yet. It is deleted with this, unless it got one.
#[derive(Debug)]
struct UnnamedFile {
    path: Option<PathBuf>,
}

impl Prepared {
    /// The bytes.
    #[must_use]
    pub const fn named(&self) -> &HashedBytes {
        &self.named
    }
}

impl Drop for UnnamedFile {
    fn drop(&mut self) {
        if let Some(path) = self.path.take() {
            // A file that stays is deleted at the next start.
            let _ = fs::remove_file(path);
        }
    }
}

impl UnnamedFile {
    fn write(folder: &Path, bytes: &[u8]) -> io::Result<Self> {
        let (unnamed, mut file) = Self::create(folder)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        Ok(unnamed)
    }

    /// A new file. Its name is one that the local store takes for a half-written object.
    fn create(folder: &Path) -> io::Result<(Self, File)> {
        let mut number = 0_u64;
        loop {
            let path = folder.join(format!("unnamed#{number}"));
            match File::create_new(&path) {
                Ok(file) => return Ok((Self { path: Some(path) }, file)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
                Err(error) => return Err(error),
            }
        }
    }

    /// Gives the file its name in a folder of `root`. It lasts when this returns.
    fn rename(mut self, root: &Path, name: &str) -> io::Result<()> {
        let path = root.join(name);
        let folder = path.parent().unwrap_or(root);
        if !folder.is_dir() {
            fs::create_dir_all(folder)?;
            for above in folder.ancestors().skip(1).take_while(|above| above.starts_with(root)) {
                sync_folder(&RealDisk, above)?;
            }
        }
        if let Some(unnamed) = &self.path {
            fs::rename(unnamed, &path)?;
            // Another file may have that name from now on.
            self.path = None;
        }
        sync_folder(&RealDisk, folder)
    }
}

impl BlobStore {
    /// Hashes bytes for [`BlobStore::publish_prepared`]. Nothing is published; but large bytes are written to the disk
    /// meanwhile, where the store is a folder.
    ///
    /// # Errors
    /// [`BlobError::File`] where the hashing is cut short, as by the end of the program.
    pub async fn prepare(&self, bytes: Bytes) -> Result<Prepared, BlobError> {
        if bytes.len() as u64 <= MAX_SMALL_BYTES {
            return Ok(Prepared { named: HashedBytes::of(bytes), file: Mutex::default() });
        }
        let to_write = self.folder().map(|folder| (folder.to_owned(), bytes.clone()));
        let write = async {
            let (folder, bytes) = to_write?;
            let written = task::spawn_blocking(move || UnnamedFile::write(&folder, &bytes));
            // Where that fails, the bytes are written when they are published, and the error is that one's.
            written.await.ok()?.ok()
        };
        let hash = task::spawn_blocking(move || HashedBytes::of(bytes));
        let (file, named) = tokio::join!(write, hash);
        let named = named.map_err(|error| self.cut_short(error))?;
        Ok(Prepared { named, file: Mutex::new(file) })
    }

    /// Stores prepared bytes under their digest. They are durable when this returns. To do so again is no error.
    ///
    /// # Errors
    /// As [`BlobStore::publish_bytes`].
    pub async fn publish_prepared(&self, prepared: &Prepared) -> Result<(), BlobError> {
        let file = prepared.file.lock().take();
        let (Some(file), Some(folder)) = (file, self.folder()) else {
            return self.publish_bytes(prepared.named.clone()).await;
        };
        let key = blob_key(prepared.named.blob().sha256);
        let (root, name) = (folder.to_owned(), key.to_string());
        let renamed = task::spawn_blocking(move || {
            file.rename(&root, &name).map_err(|source| BlobError::io(&root, source))
        });
        renamed.await.map_err(|error| self.cut_short(error))??;
        let stored = self.store().head(&key).await.map_err(BlobError::store)?;
        self.remember(prepared.named.blob().sha256, stored.e_tag);
        Ok(())
    }

    fn cut_short(&self, error: JoinError) -> BlobError {
        let path = self.folder().unwrap_or(Path::new("")).to_owned();
        BlobError::File { path, source: io::Error::other(error) }
    }
}

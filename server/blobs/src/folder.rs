//! Blobs in a folder.

use crate::{error::BlobError, logged::Logged, store::BlobStore, write_ahead_log::WriteAheadLog};
use object_store::local::LocalFileSystem;
use std::{path::Path, sync::Arc, time::Duration};

/// A half-written file that is older than this is abandoned.
const ABANDONED_TIMEOUT: Duration = Duration::from_secs(7 * 24 * 3600);

impl BlobStore {
    /// Blobs in a folder, which is made if it is missing. Files of an interrupted publish are deleted, so only one process
    /// may have the folder open for writing.
    ///
    /// # Errors
    /// Where the folder can't be made or read.
    pub fn open(folder: &Path) -> Result<Self, BlobError> {
        let file_error = |source| BlobError::File { path: folder.to_owned(), source };
        std::fs::create_dir_all(folder).map_err(file_error)?;
        remove_staging(folder, Duration::ZERO).map_err(file_error)?;
        Self::in_folder(folder)
    }

    /// As [`BlobStore::open`]; small blobs become durable through a log of a folder above, many by one sync.
    ///
    /// # Errors
    /// As [`BlobStore::open`].
    pub fn with_log(folder: &Path, log: WriteAheadLog) -> Result<Self, BlobError> {
        let mut store = Self::open(folder)?;
        store.set_log(Logged::new(log, folder));
        Ok(store)
    }

    /// As [`BlobStore::open`], for several processes at once: only old files of an interrupted publish are deleted.
    pub(crate) fn open_shared(folder: &Path) -> Result<Self, BlobError> {
        let file_error = |source| BlobError::File { path: folder.to_owned(), source };
        std::fs::create_dir_all(folder).map_err(file_error)?;
        remove_staging(folder, ABANDONED_TIMEOUT).map_err(file_error)?;
        Self::in_folder(folder)
    }

    fn in_folder(folder: &Path) -> Result<Self, BlobError> {
        let store = LocalFileSystem::new_with_prefix(folder).map_err(BlobError::store)?;
        let mut blobs = Self::over(Arc::new(store.with_fsync(true)));
        blobs.set_folder(folder);
        Ok(blobs)
    }
}

/// The local store and `prepared` write to `NAME#N` and rename, the write-ahead log to `NAME.tmp`; a crash in between leaves such files.
pub(crate) fn is_staging(name: &str) -> bool {
    name.contains('#') || name.ends_with(".tmp")
}

fn remove_staging(folder: &Path, age: Duration) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            remove_staging(&entry.path(), age)?;
        } else if is_staging(&entry.file_name().to_string_lossy())
            && (age.is_zero()
                || entry.metadata()?.modified()?.elapsed().is_ok_and(|past| past > age))
        {
            std::fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

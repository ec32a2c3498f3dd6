//! The files of all uploads: on the disk, or in the memory of the write-ahead log.

use crate::{
    disk::Disk,
    error::UploadError,
    upload_name::UploadName,
    write_ahead_log::{SmallFile, WriteAheadLog},
};
use sojourn_files::if_exists;
use sojourn_protocol::digest::BlobRef;
use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

/// The folder, and how uploads get there.
pub(crate) struct Spool {
    pub(crate) folder: PathBuf,
    pub(crate) disk: Arc<dyn Disk>,
    /// Small uploads that come whole become durable through it; without it, each is synced by itself.
    pub(crate) log: Option<WriteAheadLog>,
}

impl Spool {
    /// The file of an upload; its ending is that of its state.
    pub(crate) fn path(&self, name: UploadName, blob: BlobRef, ending: &str) -> PathBuf {
        self.folder.join(spool_name(name, blob, ending))
    }

    /// The file of a complete upload, while it is in memory only.
    pub(crate) fn in_memory(&self, path: &Path) -> Option<SmallFile> {
        self.log.as_ref()?.get(path)
    }

    /// Writes the file of a complete upload to its path, if it is in memory only.
    pub(crate) fn write_out(&self, path: &Path) -> Result<(), UploadError> {
        let written = self.log.as_ref().map_or(Ok(()), |log| log.write_out(path));
        written.map_err(|source| UploadError::io(path, source))
    }

    pub(crate) fn remove(&self, path: &Path) -> Result<(), UploadError> {
        let removed = match &self.log {
            Some(log) => log.remove(path),
            None => if_exists(fs::remove_file(path)).map(drop),
        };
        removed.map_err(|source| UploadError::io(path, source))
    }
}

/// The name of an upload's file; its ending is that of its state.
pub(crate) fn spool_name(name: UploadName, blob: BlobRef, ending: &str) -> String {
    format!("{name}.{}.{}.{ending}", blob.sha256, blob.bytes)
}

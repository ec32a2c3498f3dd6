//! Small blobs of a folder, which become durable through the write-ahead log and stay in memory for a while.

use crate::{
    error::BlobError,
    hashed_bytes::HashedBytes,
    objects::blob_key,
    write_ahead_log::{SmallFile, WriteAheadLog},
};
use sojourn_protocol::digest::{BlobRef, Digest};
use std::{
    io,
    path::{Path, PathBuf},
    time::SystemTime,
};

/// The log of a store's folder.
#[derive(Debug, Clone)]
pub(crate) struct Logged {
    log: WriteAheadLog,
    folder: PathBuf,
}

impl Logged {
    pub(crate) fn new(log: WriteAheadLog, folder: &Path) -> Self {
        Self { log, folder: folder.to_owned() }
    }

    /// Whether a blob of so many bytes is to be put into the log now.
    pub(crate) fn takes(&self, bytes: u64) -> bool {
        self.log.takes(bytes)
    }

    /// Stores a small blob. It is durable when this returns.
    pub(crate) async fn put(&self, named: HashedBytes) -> Result<(), BlobError> {
        let blob = named.blob().sha256;
        self.run(blob, move |log, path| log.put(path, &named)).await
    }

    /// Deletes a blob from memory and its file from the disk. A missing one is no error.
    pub(crate) async fn delete(&self, blob: Digest) -> Result<(), BlobError> {
        self.run(blob, WriteAheadLog::remove).await
    }

    /// The blob, while it is in memory only. Its bytes were verified when they came there.
    pub(crate) fn get(&self, blob: Digest) -> Option<SmallFile> {
        self.log.get(&self.path(blob))
    }

    /// All blobs that are in memory only, with the times at which they were put.
    pub(crate) fn list(&self) -> Vec<(BlobRef, SystemTime)> {
        let blob = |file: SmallFile| {
            let sha256 = file.path.file_name()?.to_str()?.parse().ok()?;
            Some((BlobRef { sha256, bytes: file.bytes.len() as u64 }, file.at))
        };
        self.log.list(&self.folder).into_iter().filter_map(blob).collect()
    }

    /// The path of a blob's file.
    fn path(&self, blob: Digest) -> PathBuf {
        self.folder.join(blob_key(blob).as_ref())
    }

    /// Runs a call of the log on the file of a blob.
    async fn run(
        &self,
        blob: Digest,
        call: impl FnOnce(&WriteAheadLog, &Path) -> io::Result<()> + Send + 'static,
    ) -> Result<(), BlobError> {
        let (log, path) = (self.log.clone(), self.path(blob));
        let called = tokio::task::spawn_blocking(move || {
            call(&log, &path).map_err(|source| BlobError::io(&path, source))
        });
        let panicked = |error| Err(BlobError::io(&self.folder, io::Error::other(error)));
        called.await.unwrap_or_else(panicked)
    }
}

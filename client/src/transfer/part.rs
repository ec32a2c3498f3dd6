//! The bytes of one blob on their way to the disk: where they are written, how many there are, and
//! whether they are right. Knows no network.

use super::READ;
use crate::storage::cache::{Class, Pin, Reservation};
use bytes::Bytes;
use sojourn_protocol::digest::{BlobRef, Hasher};
use std::{
    fs::File,
    io::{self, Read, Seek, Write},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};
use tokio::sync::{OwnedMutexGuard, mpsc};

/// A blob in the making. It owns the room and the right to write there, so that a fetch which is dropped
/// in the middle gives up both only when the thread that writes for it has written its last byte.
pub(super) struct Part {
    blob: BlobRef,
    file: File,
    hasher: Hasher,
    written: u64,
    /// Told of every change of `written`.
    fetched: Arc<AtomicU64>,
    room: Reservation,
    /// Goes last.
    alone: OwnedMutexGuard<()>,
}

impl Part {
    /// Begins, or goes on with what an earlier attempt has left in the room.
    pub(super) async fn take_up(
        blob: BlobRef,
        room: Reservation,
        fetched: Arc<AtomicU64>,
        alone: OwnedMutexGuard<()>,
    ) -> io::Result<Self> {
        let taken = tokio::task::spawn_blocking(move || {
            let mut options = File::options();
            let file =
                options.read(true).write(true).create(true).truncate(false).open(room.path())?;
            let hasher = Hasher::default();
            Self { blob, file, hasher, written: 0, fetched, room, alone }.reread()
        });
        taken.await.map_err(io::Error::other)?
    }

    /// Hashes what the file has. Blocks.
    fn reread(mut self) -> io::Result<Self> {
        let mut buffer = vec![0; READ];
        loop {
            let read = self.file.read(&mut buffer)?;
            if read == 0 {
                break;
            }
            self.took(buffer.get(..read).unwrap_or_default());
        }
        if self.written > self.blob.bytes { self.rewound() } else { Ok(self) }
    }

    /// Begins anew.
    pub(super) fn rewound(mut self) -> io::Result<Self> {
        self.file.set_len(0)?;
        self.file.rewind()?;
        self.hasher = Hasher::default();
        self.written = 0;
        self.fetched.store(0, Ordering::Relaxed);
        Ok(self)
    }

    /// Takes chunks until there are no more. Blocks.
    pub(super) fn append(mut self, mut chunks: mpsc::Receiver<Bytes>) -> io::Result<Self> {
        while let Some(chunk) = chunks.blocking_recv() {
            self.file.write_all(&chunk)?;
            self.took(&chunk);
        }
        Ok(self)
    }

    fn took(&mut self, bytes: &[u8]) {
        self.hasher.update(bytes);
        self.written = self.written.saturating_add(bytes.len() as u64);
        self.fetched.store(self.written, Ordering::Relaxed);
    }

    /// Bytes so far, as they come.
    pub(super) fn count(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.fetched)
    }

    /// Bytes so far.
    pub(super) fn written(&self) -> u64 {
        self.written
    }

    /// Are there as many bytes as the blob has?
    pub(super) fn is_long_enough(&self) -> bool {
        self.written == self.blob.bytes
    }

    /// Is it the blob?
    pub(super) fn is_right(&self) -> bool {
        self.hasher.clone().finish() == self.blob.sha256
    }

    /// Gives what [`Part::is_right`] to the cache.
    pub(super) fn publish(self, class: Class) -> io::Result<Pin> {
        let Self { room, alone, .. } = self;
        let pin = room.publish(class);
        drop(alone);
        pin
    }
}

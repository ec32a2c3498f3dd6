//! The bytes of one blob on their way to the disk: where they are written, how many there are, and
//! whether they are right. Knows no network.

use super::READ;
use crate::storage::cache::{Class, Pin, Reservation};
use bytes::Bytes;
use sojourn_codec::packed::{UnpackError, Unpacker};
use sojourn_http::Encoding;
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

/// How far chunks were taken.
pub(super) enum Appended {
    /// All of them were.
    Whole(Part),
    /// One wasn't what its encoding says: nothing of the part counts.
    Malformed(Part),
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

    /// Takes chunks until there are no more. No more is ever unpacked than the blob has. Blocks.
    pub(super) fn append(
        mut self,
        mut chunks: mpsc::Receiver<Bytes>,
        encoding: Encoding,
    ) -> io::Result<Appended> {
        let mut unpacker = match encoding {
            Encoding::Identity => None,
            Encoding::Zstd => Some(Unpacker::new(self.blob.bytes)?),
        };
        while let Some(chunk) = chunks.blocking_recv() {
            let Some(unpacker) = &mut unpacker else {
                self.write(&chunk)?;
                continue;
            };
            match unpacker.push(&chunk, &mut |bytes| self.write(bytes)) {
                Ok(()) => {}
                Err(UnpackError::Sink(error)) => return Err(error),
                Err(UnpackError::Zstd(_) | UnpackError::TooLong { .. }) => {
                    return Ok(Appended::Malformed(self));
                }
            }
        }
        Ok(Appended::Whole(self))
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)?;
        self.took(bytes);
        Ok(())
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
    pub(super) async fn publish(self, class: Class) -> io::Result<Pin> {
        let Self { room, alone, .. } = self;
        let pin = match room.is_packed_as(class) {
            false => room.publish(class),
            true => {
                let published = tokio::task::spawn_blocking(move || room.publish(class));
                published.await.map_err(io::Error::other)?
            }
        };
        drop(alone);
        pin
    }
}

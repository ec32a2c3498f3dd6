//! Counts transfers since the server started: bytes of blobs, uploads and downloads of hosts.

use sojourn_protocol::quantity::to_u64;
use std::sync::atomic::{AtomicU64, Ordering};

/// Four counters.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    received: AtomicU64,
    sent: AtomicU64,
    uploads: AtomicU64,
    downloads: AtomicU64,
}

/// The counters at one moment.
#[derive(Debug, Clone, Copy)]
pub(super) struct Totals {
    pub(super) received_bytes: u64,
    pub(super) sent_bytes: u64,
    pub(super) uploads: u64,
    pub(super) downloads: u64,
}

impl Traffic {
    /// Counts bytes that came as a request's body.
    pub(super) fn received(&self, bytes: usize) {
        self.received.fetch_add(to_u64(bytes), Ordering::Relaxed);
    }

    /// Counts bytes that an answer streams.
    pub(super) fn sent(&self, bytes: usize) {
        self.sent.fetch_add(to_u64(bytes), Ordering::Relaxed);
    }

    /// Counts a host's upload of a checkpoint.
    pub(super) fn uploaded(&self) {
        self.uploads.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a host's download of a blob.
    pub(super) fn downloaded(&self) {
        self.downloads.fetch_add(1, Ordering::Relaxed);
    }

    /// All of them.
    pub(super) fn totals(&self) -> Totals {
        let now = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Totals {
            received_bytes: now(&self.received),
            sent_bytes: now(&self.sent),
            uploads: now(&self.uploads),
            downloads: now(&self.downloads),
        }
    }
}

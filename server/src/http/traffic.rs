//! Bytes of blobs that have gone in and out since the server started.

use std::sync::atomic::{AtomicU64, Ordering};

/// Two counters.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    received: AtomicU64,
    sent: AtomicU64,
}

impl Traffic {
    /// Counts bytes that came as a request's body.
    pub(super) fn received(&self, bytes: usize) {
        self.received.fetch_add(u64::try_from(bytes).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Counts bytes that an answer streams.
    pub(super) fn sent(&self, bytes: usize) {
        self.sent.fetch_add(u64::try_from(bytes).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// (received, sent).
    pub(super) fn totals(&self) -> (u64, u64) {
        (self.received.load(Ordering::Relaxed), self.sent.load(Ordering::Relaxed))
    }
}

//! Locks on single blobs: one task at a time changes a blob.
//!
//! A publish has two steps: the store gets the blob, and the core hears of it. So has a deletion. Both steps are done under
//! one hold, so that publish and deletion never interleave.

use sojourn_protocol::digest::Digest;
use std::{
    collections::HashMap,
    sync::{Arc, Weak},
};
use tokio::sync::{Mutex, OwnedMutexGuard};

/// The exclusive right to change one blob, until it is dropped.
#[derive(Debug)]
#[must_use = "the blob is free again once this is dropped"]
pub struct Hold {
    _guard: OwnedMutexGuard<()>,
}

/// The holds of one store. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Holds {
    table: Arc<parking_lot::Mutex<HashMap<Digest, Weak<Mutex<()>>>>>,
}

impl Holds {
    pub(crate) async fn hold(&self, blob: Digest) -> Hold {
        let mutex = self.mutex(blob);
        Hold { _guard: mutex.lock_owned().await }
    }

    fn mutex(&self, blob: Digest) -> Arc<Mutex<()>> {
        let mut table = self.table.lock();
        if let Some(held) = table.get(&blob).and_then(Weak::upgrade) {
            return held;
        }
        // Entries without a holder or waiter go. Few blobs are held at any time.
        table.retain(|_, mutex| mutex.strong_count() > 0);
        let mutex = Arc::new(Mutex::new(()));
        table.insert(blob, Arc::downgrade(&mutex));
        mutex
    }
}

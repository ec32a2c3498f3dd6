//! One at a time may change what the store and whoever counts references say of a blob.
//!
//! A publish and what is said of it, and a deletion and what is said of that, are two steps each, of
//! two parties. Whoever takes both under a hold can't meet the other in between.

use crate::uploads::lock;
use sojourn_protocol::digest::Digest;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex as Table, Weak},
};
use tokio::sync::{Mutex, OwnedMutexGuard};

/// The right to change one blob, until it is dropped.
#[derive(Debug)]
#[must_use = "the blob is free again once this is dropped"]
pub struct Hold {
    _guard: OwnedMutexGuard<()>,
}

/// Who holds what; clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Holds {
    table: Arc<Table<HashMap<Digest, Weak<Mutex<()>>>>>,
}

impl Holds {
    pub(crate) async fn hold(&self, blob: Digest) -> Hold {
        let mutex = self.mutex(blob);
        Hold { _guard: mutex.lock_owned().await }
    }

    fn mutex(&self, blob: Digest) -> Arc<Mutex<()>> {
        let mut table = lock(&self.table);
        if let Some(held) = table.get(&blob).and_then(Weak::upgrade) {
            return held;
        }
        // Those that nobody holds or waits for any more; few are held at any time.
        table.retain(|_, mutex| mutex.strong_count() > 0);
        let mutex = Arc::new(Mutex::new(()));
        table.insert(blob, Arc::downgrade(&mutex));
        mutex
    }
}

//! The agent's view of blobs on the disk and of bytes on their way.

use crate::{storage::cache::Cache, transfer::SharedDownload};
use sojourn_client_core::TransferView;
use sojourn_protocol::{digest::Digest, ids::LeaseId};
use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

/// The cache, and the counters of those who move bytes.
#[derive(Debug)]
pub(super) struct Transfers {
    cache: Arc<Cache>,
    flights: BTreeMap<Digest, Arc<SharedDownload>>,
    sent: BTreeMap<LeaseId, Arc<AtomicU64>>,
}

impl Transfers {
    pub(super) fn new(cache: Arc<Cache>) -> Self {
        Self { cache, flights: BTreeMap::new(), sent: BTreeMap::new() }
    }

    /// The blob's bytes count from now on.
    pub(super) fn fetches(&mut self, blob: Digest, flight: Arc<SharedDownload>) {
        self.flights.insert(blob, flight);
    }

    /// They don't any more.
    pub(super) fn forget_blob(&mut self, blob: &Digest) {
        self.flights.remove(blob);
    }

    /// Counts the bytes of a lease's checkpoint that are sent.
    pub(super) fn sends(&mut self, lease: LeaseId) -> Arc<AtomicU64> {
        Arc::clone(self.sent.entry(lease).or_default())
    }

    /// They don't count any more.
    pub(super) fn forget_lease(&mut self, lease: LeaseId) {
        self.sent.remove(&lease);
    }

    pub(super) fn retain(&mut self, is_held: impl Fn(LeaseId) -> bool) {
        self.sent.retain(|lease, _| is_held(*lease));
    }
}

impl TransferView for Transfers {
    fn has(&self, blob: &Digest) -> bool {
        self.cache.has_file(blob)
    }

    fn fetched(&self, blob: &Digest) -> u64 {
        self.flights.get(blob).map_or(0, |flight| flight.fetched().load(Ordering::Relaxed))
    }

    fn sent(&self, lease: LeaseId) -> u64 {
        self.sent.get(&lease).map_or(0, |sent| sent.load(Ordering::Relaxed))
    }

    fn has_room(&self, bytes: u64) -> bool {
        self.cache.has_free(bytes)
    }
}

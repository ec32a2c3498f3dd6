//! The agent's view of cached blobs and of running transfers.

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

/// Bytes of memory that a unit may take on a device.
type DeviceMemory = Box<dyn Fn(&str) -> Option<u64> + Send + Sync>;

/// The cache, the byte counters of running transfers, and the memory of the devices.
pub(super) struct Transfers {
    cache: Arc<Cache>,
    memory: DeviceMemory,
    flights: BTreeMap<Digest, Arc<SharedDownload>>,
    sent: BTreeMap<LeaseId, Arc<AtomicU64>>,
}

impl Transfers {
    pub(super) fn new(cache: Arc<Cache>, memory: DeviceMemory) -> Self {
        Self { cache, memory, flights: BTreeMap::new(), sent: BTreeMap::new() }
    }

    /// Counts a blob's downloaded bytes from now on.
    pub(super) fn add_download(&mut self, blob: Digest, flight: Arc<SharedDownload>) {
        self.flights.insert(blob, flight);
    }

    /// Stops counting a blob's bytes.
    pub(super) fn forget_blob(&mut self, blob: &Digest) {
        self.flights.remove(blob);
    }

    /// Counts the uploaded bytes of a lease's checkpoint.
    pub(super) fn add_upload(&mut self, lease: LeaseId) -> Arc<AtomicU64> {
        Arc::clone(self.sent.entry(lease).or_default())
    }

    /// Stops counting a lease's bytes.
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

    fn capacity(&self) -> u64 {
        self.cache.limit()
    }

    fn memory(&self, device: &str) -> Option<u64> {
        (self.memory)(device)
    }
}

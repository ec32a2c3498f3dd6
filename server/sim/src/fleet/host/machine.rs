//! The machine under an agent: its disk, and the two directions of its line.

use crate::fleet::{
    cache::Cache,
    link::{Ending, Link},
    scenario::HostGroup,
};
use sojourn_client_core::{Micros, StoredResult, TransferView};
use sojourn_protocol::{
    digest::{BlobRef, Digest},
    ids::{JobId, LeaseId, TrialId},
    report::Report,
    unit::Unit,
};
use std::collections::BTreeMap;

/// A blob on its way from the server.
#[derive(Debug)]
pub(super) struct Fetch {
    /// With as many bytes as it really has.
    pub(super) blob: BlobRef,
    /// The trial whose checkpoint it is; `None` of a shard.
    pub(super) trial: Option<(JobId, TrialId)>,
    /// No unit needs it yet.
    pub(super) is_prefetch: bool,
}

/// A unit's result, which is kept until the server is done with it.
#[derive(Debug)]
pub(super) struct StoredReport {
    pub(super) report: Report,
    pub(super) checkpoint: Option<BlobRef>,
    /// Bytes that the checkpoint really has.
    pub(super) bytes: u64,
    /// Of these, the bytes that the server has.
    pub(super) sent: u64,
}

/// The part of a host that stays when its program ends, and the transfers on its line.
#[derive(Debug)]
pub(crate) struct Machine {
    pub(super) cache: Cache,
    pub(super) outbox: BTreeMap<LeaseId, StoredReport>,
    /// Bytes of blobs that were fetched in part.
    partial: BTreeMap<Digest, u64>,
    pub(super) down: Link<Fetch>,
    pub(super) up: Link<LeaseId>,
}

impl Machine {
    pub(super) fn new(group: &HostGroup) -> Self {
        Self {
            cache: Cache::new(group.cache.map(|bytes| bytes.0)),
            outbox: BTreeMap::new(),
            partial: BTreeMap::new(),
            down: Link::new(group.download, group.latency.0),
            up: Link::new(group.upload, group.latency.0),
        }
    }

    /// Results that a new agent finds on the disk.
    pub(super) fn stored(&self, heartbeat_interval: Micros) -> Vec<StoredResult> {
        let stored = self.outbox.iter().map(|(lease, stored)| StoredResult {
            lease: *lease,
            heartbeat_interval,
            has_checkpoint: stored.checkpoint.is_some(),
        });
        stored.collect()
    }

    /// Fetches a blob, or the rest of it. Gives the end of the transfer, where it is the only one.
    pub(super) fn fetch(&mut self, fetch: Fetch, now: u64) -> Option<Ending> {
        let here = self.partial.get(&fetch.blob.sha256).copied().unwrap_or(0);
        let bytes = fetch.blob.bytes.saturating_sub(here);
        self.down.push(now, fetch, bytes)
    }

    /// A download is through, where it is still this one; with the end of the next.
    pub(super) fn fetched(&mut self, serial: u32, now: u64) -> Option<(Fetch, Option<Ending>)> {
        let (fetch, _, next) = self.down.end(now, serial)?;
        self.partial.remove(&fetch.blob.sha256);
        Some((fetch, next))
    }

    /// Gives a download up; what has come of it stays. Gives the end of the next, where that begins now.
    pub(super) fn cancel_fetch(&mut self, blob: &Digest, now: u64) -> Option<Ending> {
        if self.down.items().next().is_some_and(|first| first.blob.sha256 == *blob) {
            self.keep_partial(now);
        }
        self.down.retain(now, |fetch| fetch.blob.sha256 != *blob)
    }

    /// Keeps what has come of the download that is on the line.
    fn keep_partial(&mut self, now: u64) {
        if let Some(first) = self.down.items().next() {
            let here = self.partial.entry(first.blob.sha256).or_default();
            *here = here.saturating_add(self.down.progress(now)).min(first.blob.bytes);
        }
    }

    /// Sends a result's checkpoint, or the rest of it. Gives the end of the transfer, where it is the only one.
    pub(super) fn upload(&mut self, lease: LeaseId, now: u64) -> Option<Ending> {
        let stored = self.outbox.get(&lease)?;
        let bytes = stored.bytes.saturating_sub(stored.sent);
        self.up.push(now, lease, bytes)
    }

    /// Deletes a result, and ends whatever sends it. Gives the end of the next upload, where that begins now.
    pub(super) fn delete_result(&mut self, lease: LeaseId, now: u64) -> Option<Ending> {
        self.outbox.remove(&lease);
        self.up.retain(now, |other| *other != lease)
    }

    /// Power is cut. What is on the disk stays, unless another machine takes this one's place. Gives the bytes that
    /// were sent of the upload on the line.
    pub(super) fn crash(&mut self, is_replaced: bool, now: u64) -> u64 {
        let sent = self.up.progress(now);
        if is_replaced {
            self.cache.clear();
            self.outbox.clear();
            self.partial.clear();
        } else {
            self.keep_partial(now);
            let first = self.up.items().next().copied();
            if let Some(stored) = first.and_then(|lease| self.outbox.get_mut(&lease)) {
                stored.sent = stored.sent.saturating_add(sent).min(stored.bytes);
            }
            self.cache.unpin_all();
        }
        self.down.clear();
        self.up.clear();
        sent
    }

    /// The state of blobs, as an agent may ask about it now.
    pub(super) const fn view(&self, now: u64) -> View<'_> {
        View { machine: self, now }
    }
}

/// See [`Machine::view`].
#[derive(Debug, Clone, Copy)]
pub(super) struct View<'a> {
    machine: &'a Machine,
    now: u64,
}

impl TransferView for View<'_> {
    fn has(&self, blob: &Digest) -> bool {
        self.machine.cache.bytes_of(blob).is_some()
    }

    fn fetched(&self, blob: &Digest) -> u64 {
        let Machine { cache, partial, down, .. } = self.machine;
        if let Some(bytes) = cache.bytes_of(blob) {
            return bytes;
        }
        let is_first = down.items().next().is_some_and(|first| first.blob.sha256 == *blob);
        let coming = if is_first { down.progress(self.now) } else { 0 };
        partial.get(blob).copied().unwrap_or(0).saturating_add(coming)
    }

    fn sent(&self, lease: LeaseId) -> u64 {
        let Machine { outbox, up, .. } = self.machine;
        let sent = outbox.get(&lease).map_or(0, |stored| stored.sent);
        let is_first = up.items().next() == Some(&lease);
        sent.saturating_add(if is_first { up.progress(self.now) } else { 0 })
    }

    fn has_room(&self, bytes: u64) -> bool {
        self.machine.cache.has_room(bytes)
    }

    fn capacity(&self) -> u64 {
        self.machine.cache.limit()
    }

    /// Units in work take what they need, also beyond the cache: plans don't know yet that one may wait for the room of
    /// another.
    fn capacity_for_units(&self) -> u64 {
        u64::MAX
    }
}

/// The trial whose checkpoint a unit begins with.
pub(super) fn trial_of(unit: &Unit, blob: &BlobRef) -> Option<(JobId, TrialId)> {
    let is_model = sojourn_client_core::model_of(unit) == Some(*blob);
    is_model.then(|| (unit.job(), unit.trial()))
}

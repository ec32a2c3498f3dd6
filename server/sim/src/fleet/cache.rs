//! What a host keeps on its disk: shards, and the last checkpoint that it had of each trial.

use sojourn_protocol::{
    digest::{BlobRef, Digest},
    ids::{JobId, TrialId},
};
use std::collections::BTreeMap;

/// The trial that a cached checkpoint belongs to; none of a shard.
pub(crate) type CheckpointOf = Option<(JobId, TrialId)>;

#[derive(Debug, Clone, Copy)]
struct Entry {
    bytes: u64,
    /// When it was used last, counted in uses.
    used: u64,
    trial: CheckpointOf,
    /// A unit in work needs it.
    is_pinned: bool,
}

/// Least recently used blobs go first, down to the owner's limit. What is pinned stays.
#[derive(Debug)]
pub(crate) struct Cache {
    entries: BTreeMap<Digest, Entry>,
    /// The last checkpoint of each trial: it replaces the one before.
    checkpoints: BTreeMap<(JobId, TrialId), Digest>,
    limit: u64,
    bytes: u64,
    uses: u64,
}

impl Cache {
    pub(crate) fn new(limit: Option<u64>) -> Self {
        Self {
            entries: BTreeMap::new(),
            checkpoints: BTreeMap::new(),
            limit: limit.unwrap_or(u64::MAX),
            bytes: 0,
            uses: 0,
        }
    }

    /// The bytes of a blob; none where it isn't here.
    pub(crate) fn bytes_of(&self, blob: &Digest) -> Option<u64> {
        self.entries.get(blob).map(|entry| entry.bytes)
    }

    /// Keeps a blob until it is unpinned. False where it isn't here.
    pub(crate) fn pin(&mut self, blob: &Digest) -> bool {
        self.uses += 1;
        let Some(entry) = self.entries.get_mut(blob) else { return false };
        (entry.used, entry.is_pinned) = (self.uses, true);
        true
    }

    /// No unit in work needs the blob any more.
    pub(crate) fn unpin(&mut self, blob: &Digest) {
        let Some(entry) = self.entries.get_mut(blob) else { return };
        entry.is_pinned = false;
        let is_replaced = |of| self.checkpoints.get(&of) != Some(blob);
        if entry.trial.is_some_and(is_replaced) {
            self.remove(blob);
        }
    }

    /// The most bytes that it may hold.
    pub(crate) const fn limit(&self) -> u64 {
        self.limit
    }

    /// Is there room for so much more within the limit?
    pub(crate) const fn has_room(&self, bytes: u64) -> bool {
        self.bytes.saturating_add(bytes) <= self.limit
    }

    /// Takes a blob in, which is pinned or not. What is beyond the limit goes, least recently used first.
    pub(crate) fn insert(
        &mut self,
        blob: &BlobRef,
        trial: CheckpointOf,
        is_pinned: bool,
    ) -> Evicted {
        self.uses += 1;
        let entry = Entry { bytes: blob.bytes, used: self.uses, trial, is_pinned };
        let before = self.entries.insert(blob.sha256, entry);
        self.bytes = self.bytes - before.map_or(0, |entry| entry.bytes) + blob.bytes;
        if let Some(trial) = trial
            && let Some(before) = self.checkpoints.insert(trial, blob.sha256)
            && before != blob.sha256
        {
            self.evict(&before);
        }
        let mut evicted = Evicted::Nothing;
        while self.bytes > self.limit {
            let free = self.entries.iter().filter(|(_, entry)| !entry.is_pinned);
            let oldest = free.min_by_key(|(_, entry)| entry.used);
            let Some((blob, trial)) = oldest.map(|(blob, entry)| (*blob, entry.trial)) else {
                break;
            };
            self.remove(&blob);
            if trial.is_none() {
                evicted = Evicted::Data;
            }
        }
        evicted
    }

    /// Deletes a blob, unless a unit in work needs it.
    pub(crate) fn evict(&mut self, blob: &Digest) {
        if self.entries.get(blob).is_some_and(|entry| !entry.is_pinned) {
            self.remove(blob);
        }
    }

    fn remove(&mut self, blob: &Digest) {
        let Some(entry) = self.entries.remove(blob) else { return };
        self.bytes -= entry.bytes;
        if let Some(trial) = entry.trial
            && self.checkpoints.get(&trial) == Some(blob)
        {
            self.checkpoints.remove(&trial);
        }
    }

    /// The program has ended: nothing is in work.
    pub(crate) fn unpin_all(&mut self) {
        let pinned = self.entries.iter().filter(|(_, entry)| entry.is_pinned);
        for blob in pinned.map(|(blob, _)| *blob).collect::<Vec<_>>() {
            self.unpin(&blob);
        }
    }

    pub(crate) fn clear(&mut self) {
        self.entries.clear();
        self.checkpoints.clear();
        self.bytes = 0;
    }

    /// Digests of the shards, as an inventory lists them.
    pub(crate) fn shards(&self) -> Vec<Digest> {
        let shards = self.entries.iter().filter(|(_, entry)| entry.trial.is_none());
        shards.map(|(blob, _)| *blob).collect()
    }
}

/// Whether shards had to go, which the server is to hear.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Evicted {
    /// No shard.
    Nothing,
    /// At least one.
    Data,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blob(n: u8, bytes: u64) -> BlobRef {
        BlobRef { sha256: Digest::of(&[n]), bytes }
    }

    #[test]
    fn the_least_recently_used_goes_and_what_is_pinned_stays() {
        let mut cache = Cache::new(Some(30));
        let name = |n: u8| blob(n, 10).sha256;
        for n in 0..3 {
            assert_eq!(cache.insert(&blob(n, 10), None, false), Evicted::Nothing);
        }
        assert!(cache.pin(&name(0)) && !cache.pin(&name(9)));
        assert_eq!(cache.insert(&blob(3, 10), None, true), Evicted::Data);
        assert!(cache.pin(&name(0)) && !cache.pin(&name(1)) && cache.pin(&name(2)));
        assert_eq!(cache.insert(&blob(4, 10), None, true), Evicted::Nothing);
        assert_eq!(cache.bytes, 40, "over the limit, as there is no other way");
        cache.evict(&name(2));
        assert!(cache.bytes_of(&name(2)).is_some(), "a unit needs it");
        cache.unpin(&name(2));
        assert_eq!(cache.insert(&blob(4, 10), None, false), Evicted::Data);
        assert_eq!((cache.bytes, cache.bytes_of(&name(2))), (30, None));
        cache.evict(&name(4));
        assert_eq!((cache.bytes, cache.shards().len()), (20, 2));
    }

    #[test]
    fn a_trials_next_checkpoint_takes_the_place_of_the_last() {
        let mut cache = Cache::new(None);
        let trial = Some((JobId(1), TrialId(2)));
        cache.insert(&blob(7, 5), trial, false);
        cache.insert(&blob(8, 5), trial, true);
        assert_eq!((cache.bytes, cache.bytes_of(&blob(7, 5).sha256)), (5, None));
        // A unit trains from it still.
        cache.insert(&blob(9, 5), trial, false);
        assert_eq!(cache.bytes, 10);
        cache.unpin_all();
        assert_eq!((cache.bytes, cache.bytes_of(&blob(9, 5).sha256)), (5, Some(5)));
        assert!(cache.shards().is_empty());
    }
}

//! The blobs that a host keeps on its disk: shards and checkpoints, as the client's cache does.

use sojourn_client_core::BlobClass;
use sojourn_protocol::digest::{BlobRef, Digest};
use std::collections::BTreeMap;

/// The most checkpoints that are kept, however much room there is. The client keeps more; nobody asks for those.
const MAX_CHECKPOINTS: usize = 32;

#[derive(Debug, Clone, Copy)]
struct Entry {
    bytes: u64,
    /// When it was used last, counted in uses.
    used: u64,
    class: BlobClass,
    /// A unit in work needs it.
    is_pinned: bool,
}

/// Checkpoints go before shards, and of each the least recently used first, down to the owner's limit. What is pinned
/// stays.
#[derive(Debug)]
pub(crate) struct Cache {
    entries: BTreeMap<Digest, Entry>,
    checkpoints: usize,
    limit: u64,
    bytes: u64,
    uses: u64,
}

impl Cache {
    pub(crate) fn new(limit: Option<u64>) -> Self {
        Self {
            entries: BTreeMap::new(),
            checkpoints: 0,
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
        if let Some(entry) = self.entries.get_mut(blob) {
            entry.is_pinned = false;
        }
    }

    /// The most bytes that it may hold.
    pub(crate) const fn limit(&self) -> u64 {
        self.limit
    }

    /// Is there room for so much more within the limit, if only checkpoints go for it?
    pub(crate) fn has_room(&self, bytes: u64) -> bool {
        let stays = |entry: &&Entry| entry.class == BlobClass::Data || entry.is_pinned;
        let fixed: u64 = self.entries.values().filter(stays).map(|entry| entry.bytes).sum();
        fixed.saturating_add(bytes) <= self.limit
    }

    /// Takes a blob in, which is pinned or not, and deletes what must go for it.
    pub(crate) fn insert(&mut self, blob: &BlobRef, class: BlobClass, is_pinned: bool) -> Evicted {
        self.remove(&blob.sha256);
        self.uses += 1;
        let entry = Entry { bytes: blob.bytes, used: self.uses, class, is_pinned };
        self.entries.insert(blob.sha256, entry);
        self.bytes += blob.bytes;
        self.checkpoints += usize::from(class == BlobClass::Checkpoint);
        let mut evicted = Evicted::Nothing;
        while self.bytes > self.limit || self.checkpoints > MAX_CHECKPOINTS {
            let is_full = self.bytes > self.limit;
            let is_data = |entry: &Entry| entry.class == BlobClass::Data;
            let free = self.entries.iter().filter(|(_, entry)| !entry.is_pinned);
            let may_go = free.filter(|(_, entry)| is_full || !is_data(entry));
            let oldest = may_go.min_by_key(|(_, entry)| (is_data(entry), entry.used));
            let Some((blob, is_data)) = oldest.map(|(blob, entry)| (*blob, is_data(entry))) else {
                break;
            };
            self.remove(&blob);
            if is_data {
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
        self.checkpoints -= usize::from(entry.class == BlobClass::Checkpoint);
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
        self.checkpoints = 0;
        self.bytes = 0;
    }

    /// Digests of the shards, as an inventory lists them.
    pub(crate) fn shards(&self) -> Vec<Digest> {
        let shards = self.entries.iter().filter(|(_, entry)| entry.class == BlobClass::Data);
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
            assert_eq!(cache.insert(&blob(n, 10), BlobClass::Data, false), Evicted::Nothing);
        }
        assert!(cache.pin(&name(0)) && !cache.pin(&name(9)));
        assert_eq!(cache.insert(&blob(3, 10), BlobClass::Data, true), Evicted::Data);
        assert!(cache.pin(&name(0)) && !cache.pin(&name(1)) && cache.pin(&name(2)));
        assert_eq!(cache.insert(&blob(4, 10), BlobClass::Data, true), Evicted::Nothing);
        assert_eq!(cache.bytes, 40, "over the limit, as there is no other way");
        cache.evict(&name(2));
        assert!(cache.bytes_of(&name(2)).is_some(), "a unit needs it");
        cache.unpin(&name(2));
        assert_eq!(cache.insert(&blob(4, 10), BlobClass::Data, false), Evicted::Data);
        assert_eq!((cache.bytes, cache.bytes_of(&name(2))), (30, None));
        cache.evict(&name(4));
        assert_eq!((cache.bytes, cache.shards().len()), (20, 2));
    }

    #[test]
    fn checkpoints_go_before_shards_and_there_are_never_many() {
        let mut cache = Cache::new(Some(100));
        cache.insert(&blob(0, 90), BlobClass::Data, false);
        for n in 1..=2 {
            assert_eq!(cache.insert(&blob(n, 10), BlobClass::Checkpoint, false), Evicted::Nothing);
        }
        let kept = |cache: &Cache, n: u8| cache.bytes_of(&blob(n, 0).sha256).is_some();
        assert_eq!([0, 1, 2].map(|n| kept(&cache, n)), [true, false, true]);
        let mut cache = Cache::new(None);
        for n in 0..=u8::try_from(MAX_CHECKPOINTS).unwrap() {
            cache.insert(&blob(n, 10), BlobClass::Checkpoint, false);
        }
        assert_eq!([0, 1].map(|n| kept(&cache, n)), [false, true]);
        assert!(cache.shards().is_empty());
    }
}

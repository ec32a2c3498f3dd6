//! What a host keeps on its disk: shards, and the last checkpoint that it had of each trial.

use sojourn_protocol::{
    digest::{BlobRef, Digest},
    ids::{JobId, TrialId},
    unit::{Base, Lease, Unit},
};
use std::collections::{BTreeMap, BTreeSet};

/// What a cached blob is to its host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Name {
    Data(Digest),
    Checkpoint(JobId, TrialId),
}

/// A blob that a unit needs, and under which name it is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Need {
    pub(crate) name: Name,
    pub(crate) blob: BlobRef,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    digest: Digest,
    bytes: u64,
    used: u64,
}

/// Least recently used blobs go first, down to the owner's limit; what a unit in work needs stays.
#[derive(Debug)]
pub(crate) struct Cache {
    entries: BTreeMap<Name, Entry>,
    limit: u64,
    bytes: u64,
    uses: u64,
}

impl Cache {
    pub(crate) fn new(limit: Option<u64>) -> Self {
        Self { entries: BTreeMap::new(), limit: limit.unwrap_or(u64::MAX), bytes: 0, uses: 0 }
    }

    /// Is it here? Then it has been used.
    pub(crate) fn has(&mut self, need: &Need) -> bool {
        self.uses += 1;
        let entry = self.entries.get_mut(&need.name);
        let entry = entry.filter(|entry| entry.digest == need.blob.sha256);
        entry.map(|entry| entry.used = self.uses).is_some()
    }

    /// The most bytes that it may hold.
    pub(crate) const fn limit(&self) -> u64 {
        self.limit
    }

    /// Is there room for so much more within the limit?
    pub(crate) const fn has_room(&self, bytes: u64) -> bool {
        !self.would_overflow(bytes)
    }

    /// Would something have to go for so much more?
    pub(crate) const fn would_overflow(&self, bytes: u64) -> bool {
        self.bytes.saturating_add(bytes) > self.limit
    }

    /// Takes a blob in. What is beyond the limit goes, least recently used first, but nothing that is
    /// `needed`.
    pub(crate) fn insert(&mut self, need: &Need, bytes: u64, needed: &BTreeSet<Name>) -> Evicted {
        self.uses += 1;
        let entry = Entry { digest: need.blob.sha256, bytes, used: self.uses };
        let before = self.entries.insert(need.name, entry);
        self.bytes = self.bytes - before.map_or(0, |entry| entry.bytes) + bytes;
        let mut evicted = Evicted::Nothing;
        while self.bytes > self.limit {
            let free = self.entries.iter().filter(|(name, _)| !needed.contains(name));
            let Some(name) = free.min_by_key(|(_, entry)| entry.used).map(|(name, _)| *name) else {
                break;
            };
            self.remove(&name);
            if matches!(name, Name::Data(_)) {
                evicted = Evicted::Data;
            }
        }
        evicted
    }

    pub(crate) fn remove(&mut self, name: &Name) {
        let gone = self.entries.remove(name);
        self.bytes -= gone.map_or(0, |entry| entry.bytes);
    }

    pub(crate) fn clear(&mut self) {
        self.entries.clear();
        self.bytes = 0;
    }

    /// Digests of the shards, as an inventory tells them.
    pub(crate) fn data(&self) -> Vec<Digest> {
        let data = self.entries.keys().filter_map(|name| match name {
            Name::Data(digest) => Some(*digest),
            Name::Checkpoint(..) => None,
        });
        data.collect()
    }

    /// Bytes of all that is here.
    #[cfg(test)]
    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
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

/// What a unit needs before it can start.
pub(crate) fn needs(lease: &Lease) -> Vec<Need> {
    let unit = &lease.unit;
    let checkpoint = match unit {
        Unit::Train(hop) => match hop.base {
            Base::Checkpoint { blob, .. } => Some(blob),
            Base::Initial { .. } | Base::InitialWeights { .. } => None,
        },
        Unit::Evaluate(evaluation) => Some(evaluation.checkpoint),
    };
    let name = |blob: &BlobRef| match checkpoint {
        Some(checkpoint) if checkpoint == *blob => Name::Checkpoint(unit.job(), unit.trial()),
        _ => Name::Data(blob.sha256),
    };
    unit.blobs().iter().map(|blob| Need { name: name(blob), blob: *blob }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn need(n: u8) -> Need {
        let sha256 = Digest::of(&[n]);
        Need { name: Name::Data(sha256), blob: BlobRef { sha256, bytes: 10 } }
    }

    #[test]
    fn the_least_recently_used_goes_and_what_is_needed_stays() {
        let mut cache = Cache::new(Some(30));
        let none = BTreeSet::new();
        for n in 0..3 {
            assert_eq!(cache.insert(&need(n), 10, &none), Evicted::Nothing);
        }
        assert!(cache.has(&need(0)));
        assert_eq!(cache.insert(&need(3), 10, &none), Evicted::Data);
        assert!(cache.has(&need(0)) && !cache.has(&need(1)));
        let needed = [0, 2, 3, 4].map(|n| need(n).name).into_iter().collect();
        assert_eq!(cache.insert(&need(4), 10, &needed), Evicted::Nothing);
        assert_eq!(cache.bytes(), 40, "over the limit, as there is no other way");
        assert_eq!(cache.insert(&need(4), 10, &none), Evicted::Data);
        assert_eq!(cache.bytes(), 30);
        cache.remove(&need(4).name);
        assert_eq!((cache.bytes(), cache.data().len()), (20, 2));
        // Another checkpoint of the same trial takes the place of the last.
        let name = Name::Checkpoint(JobId(1), TrialId(2));
        let of = |n: u8| Need { name, ..need(n) };
        cache.insert(&of(7), 5, &none);
        cache.insert(&of(8), 5, &none);
        assert_eq!(cache.bytes(), 25);
        assert!(!cache.has(&of(7)) && cache.has(&of(8)));
    }
}

//! Which blobs a cache holds, which are pinned, and which must go: pure accounting, no files.
//!
//! Parts go before checkpoints and those before data, and within a class the least recently used goes
//! first: a part serves nobody yet, a checkpoint is wanted by one later hop at most, a shard by every trial.

use sojourn_protocol::digest::Digest;
use std::collections::{BTreeMap, BTreeSet};

/// Most checkpoints that are kept, however much room there is: older ones have hopped on.
pub(crate) const MAX_CHECKPOINTS: usize = 256;

/// Most data blobs that are reported: the list of a cache with very many small blobs must fit into a request.
pub(crate) const MAX_REPORTED: usize = 10_000;

/// The class of a blob. Those of lower classes are deleted first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Class {
    /// The beginning of a blob whose download was given up.
    Part,
    /// A trial's model.
    Checkpoint,
    /// A shard, or scaling.
    Data,
}

/// The trust in a file's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trust {
    /// Found on disk; not looked at since this process started.
    Unchecked,
    /// This process has seen its digest.
    Checked,
}

/// One blob.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) class: Class,
    pub(crate) bytes: u64,
    pub(crate) trust: Trust,
    pins: u32,
    /// Which pins are of this entry: those of one that was removed before don't count.
    generation: Generation,
    used: u64,
}

/// Tells an entry from those of the same blob before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Generation(u64);

/// A blob that must go to make room.
pub(crate) type Victim = (Digest, Class);

/// The accounts of one cache.
#[derive(Debug)]
pub(crate) struct Index {
    limit: u64,
    /// Bytes of all entries.
    held: u64,
    /// Bytes that downloads have asked for and not yet turned into entries.
    reserved: u64,
    clock: u64,
    entries: BTreeMap<Digest, Entry>,
    /// The unpinned, in the order in which they go.
    order: BTreeSet<(Class, u64, Digest)>,
    checkpoints: usize,
}

impl Index {
    pub(crate) fn new(limit: u64) -> Self {
        Self {
            limit,
            held: 0,
            reserved: 0,
            clock: 0,
            entries: BTreeMap::new(),
            order: BTreeSet::new(),
            checkpoints: 0,
        }
    }

    pub(crate) fn get(&self, digest: &Digest) -> Option<Entry> {
        self.entries.get(digest).copied()
    }

    /// Bytes in all, those on their way included.
    pub(crate) fn used(&self) -> u64 {
        self.held.saturating_add(self.reserved)
    }

    /// The most bytes that there may be.
    pub(crate) fn limit(&self) -> u64 {
        self.limit
    }

    /// From now on there may be so many bytes; [`Index::shrink`] then makes it hold.
    pub(crate) fn set_limit(&mut self, limit: u64) {
        self.limit = limit;
    }

    /// Bytes over the limit.
    pub(crate) fn excess(&self) -> u64 {
        self.used().saturating_sub(self.limit)
    }

    /// Data blobs in the order of their digests: the [`MAX_REPORTED`] that were used last.
    pub(crate) fn data(&self) -> Vec<Digest> {
        let data = self.entries.iter().filter(|(_, entry)| entry.class == Class::Data);
        let mut data: Vec<(u64, Digest)> =
            data.map(|(digest, entry)| (entry.used, *digest)).collect();
        if data.len() > MAX_REPORTED {
            data.sort_unstable_by_key(|(used, _)| std::cmp::Reverse(*used));
            data.truncate(MAX_REPORTED);
            data.sort_unstable_by_key(|(_, digest)| *digest);
        }
        data.into_iter().map(|(_, digest)| digest).collect()
    }

    /// Counts `bytes` that are on their way. [`Index::shrink`] then makes room for them.
    pub(crate) fn reserve(&mut self, bytes: u64) {
        self.reserved = self.reserved.saturating_add(bytes);
    }

    /// The bytes didn't come, or are an entry now.
    pub(crate) fn unreserve(&mut self, bytes: u64) {
        self.reserved = self.reserved.saturating_sub(bytes);
    }

    /// Can `bytes` come in if only checkpoints go for them?
    pub(crate) fn has_room_beside_data(&self, bytes: u64) -> bool {
        let fixed: u64 = self
            .entries
            .values()
            .filter(|entry| entry.class == Class::Data || entry.pins > 0)
            .map(|entry| entry.bytes)
            .sum();
        fixed.saturating_add(self.reserved).saturating_add(bytes) <= self.limit
    }

    /// Takes a blob in, unpinned and most recently used; one that is there already is replaced.
    pub(crate) fn insert(&mut self, digest: Digest, class: Class, bytes: u64, trust: Trust) {
        let old = self.remove(&digest);
        self.clock += 1;
        let new = (0, Generation(self.clock));
        let (pins, generation) = old.map_or(new, |old| (old.pins, old.generation));
        let entry = Entry { class, bytes, trust, pins, generation, used: self.clock };
        self.held = self.held.saturating_add(bytes);
        if class == Class::Checkpoint {
            self.checkpoints += 1;
        }
        if pins == 0 {
            self.order.insert((class, entry.used, digest));
        }
        self.entries.insert(digest, entry);
    }

    /// Forgets a blob, pinned or not.
    pub(crate) fn remove(&mut self, digest: &Digest) -> Option<Entry> {
        let entry = self.entries.remove(digest)?;
        self.order.remove(&(entry.class, entry.used, *digest));
        self.held = self.held.saturating_sub(entry.bytes);
        if entry.class == Class::Checkpoint {
            self.checkpoints -= 1;
        }
        Some(entry)
    }

    /// A blob's digest has been seen.
    pub(crate) fn check(&mut self, digest: &Digest) {
        if let Some(entry) = self.entries.get_mut(digest) {
            entry.trust = Trust::Checked;
        }
    }

    /// A blob's bytes may not be what they were.
    pub(crate) fn doubt(&mut self, digest: &Digest) {
        if let Some(entry) = self.entries.get_mut(digest) {
            entry.trust = Trust::Unchecked;
        }
    }

    /// Keeps a blob from going, and marks it as used. Gives what ends this; none where it isn't there.
    pub(crate) fn pin(&mut self, digest: &Digest) -> Option<Generation> {
        let entry = self.entries.get_mut(digest)?;
        self.order.remove(&(entry.class, entry.used, *digest));
        self.clock += 1;
        entry.used = self.clock;
        entry.pins += 1;
        Some(entry.generation)
    }

    /// Ends one [`Index::pin`]. Nothing where the entry that was pinned is gone, though the blob may be here again.
    pub(crate) fn unpin(&mut self, digest: &Digest, generation: Generation) {
        let entry = self.entries.get_mut(digest);
        let Some(entry) = entry.filter(|entry| entry.generation == generation) else { return };
        entry.pins = entry.pins.saturating_sub(1);
        if entry.pins == 0 {
            self.order.insert((entry.class, entry.used, *digest));
        }
    }

    /// Forgets all that isn't pinned.
    pub(crate) fn clear(&mut self) -> Vec<Victim> {
        let victims: Vec<Victim> =
            self.order.iter().map(|(class, _, digest)| (*digest, *class)).collect();
        for (digest, _) in &victims {
            self.remove(digest);
        }
        victims
    }

    /// Forgets a shard that isn't pinned; nothing where there is no such.
    pub(crate) fn evict(&mut self, digest: &Digest) -> Option<Victim> {
        let is_it =
            |(class, _, known): &&(Class, u64, Digest)| known == digest && *class == Class::Data;
        let (class, _, digest) = *self.order.iter().find(is_it)?;
        self.remove(&digest);
        Some((digest, class))
    }

    /// Forgets what would go first, and says what that was; nothing where all is pinned.
    pub(crate) fn forget_one(&mut self) -> Option<Victim> {
        let (class, _, digest) = *self.order.first()?;
        self.remove(&digest);
        Some((digest, class))
    }

    /// Forgets what must go for the limits to hold. What is pinned stays, so [`Index::excess`] may be left.
    pub(crate) fn shrink(&mut self) -> Vec<Victim> {
        let mut victims = Vec::new();
        loop {
            let next = if self.excess() > 0 {
                self.order.first()
            } else if self.checkpoints > MAX_CHECKPOINTS {
                self.order.iter().find(|(class, ..)| *class == Class::Checkpoint)
            } else {
                None
            };
            let Some((class, _, digest)) = next.copied() else { break };
            self.remove(&digest);
            victims.push((digest, class));
        }
        victims
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Debug, Clone)]
    enum Step {
        Reserve(u64),
        Unreserve(u64),
        Insert(u8, Class, u64),
        Remove(u8),
        Pin(u8),
        Unpin(u8),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let class = prop_oneof![Just(Class::Part), Just(Class::Checkpoint), Just(Class::Data)];
        let step = prop_oneof![
            1 => (0u64..50).prop_map(Step::Reserve),
            1 => (0u64..50).prop_map(Step::Unreserve),
            4 => (0u8..12, class, 0u64..60).prop_map(|(d, c, b)| Step::Insert(d, c, b)),
            1 => (0u8..12).prop_map(Step::Remove),
            3 => (0u8..12).prop_map(Step::Pin),
            2 => (0u8..12).prop_map(Step::Unpin),
        ];
        proptest::collection::vec(step, 1..120)
    }

    fn digest(n: u8) -> Digest {
        Digest([n; 32])
    }

    proptest! {
        #[test]
        fn only_pins_exceed_the_limit_and_the_right_one_goes(steps in steps()) {
            let mut index = Index::new(100);
            let mut reserved = 0u64;
            let mut pins: BTreeMap<u8, u32> = BTreeMap::new();
            let mut generations: BTreeMap<u8, Generation> = BTreeMap::new();
            let mut stale: BTreeMap<u8, Generation> = BTreeMap::new();
            for step in steps {
                match step {
                    Step::Reserve(bytes) => { index.reserve(bytes); reserved += bytes; }
                    Step::Unreserve(bytes) => {
                        let bytes = bytes.min(reserved);
                        index.unreserve(bytes);
                        reserved -= bytes;
                    }
                    Step::Insert(d, class, bytes) => {
                        index.insert(digest(d), class, bytes, Trust::Checked);
                    }
                    Step::Remove(d) => {
                        index.remove(&digest(d));
                        pins.remove(&d);
                        stale.extend(generations.remove(&d).map(|generation| (d, generation)));
                    }
                    Step::Pin(d) => if let Some(generation) = index.pin(&digest(d)) {
                        *pins.entry(d).or_default() += 1;
                        generations.insert(d, generation);
                    },
                    Step::Unpin(d) => if let Some(count) = pins.get_mut(&d) && *count > 0 {
                        *count -= 1;
                        index.unpin(&digest(d), generations[&d]);
                    } else if let Some(generation) = stale.get(&d) {
                        index.unpin(&digest(d), *generation);
                    },
                }
                let before = index.entries.clone();
                let victims = index.shrink();
                for (position, (victim, class)) in victims.iter().enumerate() {
                    let gone = before[victim];
                    prop_assert_eq!(gone.pins, 0);
                    prop_assert_eq!(gone.class, *class);
                    // Nothing that stays unpinned should have gone before it.
                    for (other, entry) in &index.entries {
                        prop_assert!(entry.pins > 0 || (entry.class, entry.used) > (gone.class, gone.used),
                            "{other:?} should have gone before {victim:?} ({position})");
                    }
                }
                let sum: u64 = index.entries.values().map(|entry| entry.bytes).sum();
                prop_assert_eq!(index.used(), sum + reserved);
                let all_pinned = index.entries.values().all(|entry| entry.pins > 0);
                prop_assert!(index.excess() == 0 || all_pinned);
                for (d, count) in &pins {
                    let kept = index.get(&digest(*d)).map(|entry| entry.pins);
                    prop_assert!(*count == 0 || kept == Some(*count));
                }
                prop_assert_eq!(
                    index.order.len(),
                    index.entries.values().filter(|entry| entry.pins == 0).count()
                );
            }
        }
    }

    #[test]
    fn checkpoints_are_bounded_in_number_too() {
        let mut index = Index::new(u64::MAX);
        let name = |n: usize| Digest::of(&n.to_le_bytes());
        for n in 0..=MAX_CHECKPOINTS {
            index.insert(name(n), Class::Checkpoint, 1, Trust::Checked);
        }
        index.insert(digest(1), Class::Data, 1, Trust::Checked);
        index.insert(digest(2), Class::Part, 1, Trust::Unchecked);
        assert_eq!(index.shrink(), [(name(0), Class::Checkpoint)]);
        assert_eq!(index.shrink(), []);
    }

    #[test]
    fn only_the_most_recently_used_shards_are_reported() {
        let mut index = Index::new(u64::MAX);
        let name = |n: usize| Digest::of(&n.to_le_bytes());
        for n in 0..MAX_REPORTED + 2 {
            index.insert(name(n), Class::Data, 1, Trust::Checked);
        }
        index.pin(&name(0));
        let reported = index.data();
        assert_eq!(reported.len(), MAX_REPORTED);
        assert!(reported.is_sorted(), "the same set is reported in the same order");
        assert!(reported.contains(&name(0)) && reported.contains(&name(3)));
        assert!(!reported.contains(&name(1)) && !reported.contains(&name(2)));
    }
}

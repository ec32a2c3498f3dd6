//! Blob references: who still needs which blob, and the way of one that nobody needs.
//!
//! ```text
//!   published --(unreferenced for a while)--> condemned --(a while)--> doomed --> gone
//!       ^------------ published again ------------'          (deletion under way: no way back)
//! ```
//!
//! A blob that nothing has referred to yet waits longer: its job's other data is still being sent.

use super::FoldFault;
use serde::{Deserialize, Serialize};
use sojourn_protocol::{
    digest::{BlobRef, Digest},
    time::{Millis, UnixMillis},
};
use std::collections::{BTreeMap, BTreeSet};

/// Every blob in the store.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blobs {
    blobs: BTreeMap<Digest, Blob>,
    /// Published and no longer referred to, since when.
    idle: BTreeSet<(UnixMillis, Digest)>,
    /// Published and not yet referred to, since when.
    awaited: BTreeSet<(UnixMillis, Digest)>,
    /// Condemned, since when.
    condemned: BTreeSet<(UnixMillis, Digest)>,
    /// Referred to and lost.
    lost: BTreeSet<Digest>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Blob {
    bytes: u64,
    references: u32,
    status: BlobStatus,
    since: UnixMillis,
}

/// Where a blob stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BlobStatus {
    /// In the store.
    Published,
    /// In the store, to be deleted; it must be published again before it may be referred to.
    Condemned,
    /// Being deleted.
    Doomed,
    /// The store should have it and hasn't; it must be published again.
    Lost,
}

impl Blobs {
    /// Where a blob stands; `None` where the store hasn't got it.
    #[must_use]
    pub fn status(&self, digest: &Digest) -> Option<BlobStatus> {
        self.blobs.get(digest).map(|blob| blob.status)
    }

    /// In the store to stay, with this size?
    #[must_use]
    pub fn is_published(&self, blob: &BlobRef) -> bool {
        self.blobs
            .get(&blob.sha256)
            .is_some_and(|known| known.status == BlobStatus::Published && known.bytes == blob.bytes)
    }

    /// Every blob that is in the store to stay, in the order of digests.
    pub fn all_published(&self) -> impl Iterator<Item = BlobRef> + '_ {
        let published = self.blobs.iter().filter(|(_, blob)| blob.status == BlobStatus::Published);
        published.map(|(sha256, blob)| BlobRef { sha256: *sha256, bytes: blob.bytes })
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.blobs.len()
    }

    /// References to a blob.
    #[must_use]
    pub fn references(&self, digest: &Digest) -> u32 {
        self.blobs.get(digest).map_or(0, |blob| blob.references)
    }

    /// Every blob that is referred to, with the count.
    pub fn referenced(&self) -> impl Iterator<Item = (Digest, u32)> + '_ {
        let counts = self.blobs.iter().map(|(digest, blob)| (*digest, blob.references));
        counts.filter(|(_, references)| *references > 0)
    }

    /// Blobs whose deletion is under way.
    pub fn doomed(&self) -> impl Iterator<Item = Digest> + '_ {
        let all = self.blobs.iter();
        all.filter(|(_, blob)| blob.status == BlobStatus::Doomed).map(|(digest, _)| *digest)
    }

    /// The longest unreferenced published blob, and since when.
    #[must_use]
    pub fn oldest_idle(&self) -> Option<(UnixMillis, Digest)> {
        self.idle.first().copied()
    }

    /// The blob that has waited longest for its first reference, and since when.
    #[must_use]
    pub fn oldest_awaited(&self) -> Option<(UnixMillis, Digest)> {
        self.awaited.first().copied()
    }

    /// Has the store lost any that is referred to?
    #[must_use]
    pub fn any_lost(&self) -> bool {
        !self.lost.is_empty()
    }

    /// The blobs that are referred to and lost.
    pub fn all_lost(&self) -> impl Iterator<Item = BlobRef> + '_ {
        let size = |digest| self.blobs.get(digest).map(|blob| blob.bytes);
        self.lost.iter().filter_map(move |lost| Some(BlobRef { sha256: *lost, bytes: size(lost)? }))
    }

    /// Has the store lost this one?
    #[must_use]
    pub fn is_lost(&self, blob: &Digest) -> bool {
        self.lost.contains(blob)
    }

    /// The first of these that is lost.
    pub fn first_lost(&self, mut blobs: impl Iterator<Item = Digest>) -> Option<Digest> {
        blobs.find(|blob| self.is_lost(blob))
    }

    /// The longest condemned blob, and since when.
    #[must_use]
    pub fn oldest_condemned(&self) -> Option<(UnixMillis, Digest)> {
        self.condemned.first().copied()
    }

    pub(super) fn published(&mut self, blob: BlobRef, at: UnixMillis) {
        let known = self.blobs.get(&blob.sha256).map(|known| known.references);
        let references = known.unwrap_or(0);
        if known.is_some() {
            self.forget_place(&blob.sha256);
        }
        let status = BlobStatus::Published;
        self.blobs.insert(blob.sha256, Blob { bytes: blob.bytes, references, status, since: at });
        if references == 0 {
            self.awaited.insert((at, blob.sha256));
        }
    }

    pub(super) fn condemn(&mut self, digest: Digest, at: UnixMillis) -> Result<(), FoldFault> {
        self.set_status(digest, BlobStatus::Condemned, at)?;
        self.condemned.insert((at, digest));
        Ok(())
    }

    pub(super) fn doom(&mut self, digest: Digest, at: UnixMillis) -> Result<(), FoldFault> {
        self.set_status(digest, BlobStatus::Doomed, at)
    }

    pub(super) fn lost(&mut self, digest: Digest, at: UnixMillis) -> Result<(), FoldFault> {
        self.set_status(digest, BlobStatus::Lost, at)?;
        if self.references(&digest) == 0 {
            self.blobs.remove(&digest);
        } else {
            self.lost.insert(digest);
        }
        Ok(())
    }

    pub(super) fn deleted(&mut self, digest: Digest) -> Result<(), FoldFault> {
        self.known(&digest)?;
        self.forget_place(&digest);
        self.blobs.remove(&digest);
        Ok(())
    }

    /// Fails where the store hasn't got the blob.
    pub(super) fn known(&self, digest: &Digest) -> Result<(), FoldFault> {
        let known = self.blobs.contains_key(digest);
        known.then_some(()).ok_or(FoldFault::UnknownBlob(*digest))
    }

    fn set_status(
        &mut self,
        digest: Digest,
        status: BlobStatus,
        at: UnixMillis,
    ) -> Result<(), FoldFault> {
        self.known(&digest)?;
        self.forget_place(&digest);
        let blob = self.blobs.get_mut(&digest).ok_or(FoldFault::UnknownBlob(digest))?;
        (blob.status, blob.since) = (status, at);
        Ok(())
    }

    /// One more reference to a blob.
    pub(super) fn retain(&mut self, digest: Digest) -> Result<(), FoldFault> {
        let blob = self.blobs.get_mut(&digest).ok_or(FoldFault::UnknownBlob(digest))?;
        if blob.references == 0 && !self.awaited.remove(&(blob.since, digest)) {
            self.idle.remove(&(blob.since, digest));
        }
        blob.references += 1;
        Ok(())
    }

    /// One reference less.
    pub(super) fn release(&mut self, digest: Digest, at: UnixMillis) -> Result<(), FoldFault> {
        let blob = self.blobs.get_mut(&digest).ok_or(FoldFault::UnknownBlob(digest))?;
        let below_zero = FoldFault::CountBelowZero("references to a blob");
        blob.references = blob.references.checked_sub(1).ok_or(below_zero)?;
        if blob.references == 0 && blob.status == BlobStatus::Lost {
            self.blobs.remove(&digest);
            self.lost.remove(&digest);
        } else if blob.references == 0 {
            blob.since = at;
            self.idle.insert((at, digest));
        }
        Ok(())
    }

    /// Grace periods end so much later.
    pub(super) fn skip_time(&mut self, skipped: Millis) {
        for places in [&mut self.idle, &mut self.awaited, &mut self.condemned] {
            *places = std::mem::take(places)
                .into_iter()
                .map(|(since, digest)| {
                    let since = since + skipped;
                    if let Some(blob) = self.blobs.get_mut(&digest) {
                        blob.since = since;
                    }
                    (since, digest)
                })
                .collect();
        }
    }

    fn forget_place(&mut self, digest: &Digest) {
        if let Some(blob) = self.blobs.get(digest) {
            self.idle.remove(&(blob.since, *digest));
            self.awaited.remove(&(blob.since, *digest));
            self.lost.remove(digest);
            self.condemned.remove(&(blob.since, *digest));
        }
    }
}

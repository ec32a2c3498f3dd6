//! How much disk the blobs take that are kept because of a job: kept from event to event, so that a list of jobs needn't
//! look at every trial.

use super::{ExtraEvaluation, Job, Trial};
use sojourn_protocol::digest::{BlobRef, Digest};
use std::collections::{BTreeMap, BTreeSet};

/// Bytes that are kept because of a job. They follow from its trials, so they aren't stored.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct KeptBytes {
    /// Bytes of the job's data, and of the models that it starts from: each blob once.
    data: u64,
    /// The checkpoints of its trials: each blob once for each trial.
    checkpoints: u64,
}

impl KeptBytes {
    /// A trial kept `less` bytes of checkpoints, and keeps `more` now.
    pub(super) fn change_checkpoints(&mut self, less: u64, more: u64) {
        self.checkpoints = self.checkpoints.saturating_sub(less).saturating_add(more);
    }
}

/// Bytes of these blobs, each counted once. They are few: a trial's.
pub(super) fn distinct_bytes(blobs: &[BlobRef]) -> u64 {
    let is_first = |(n, blob): &(usize, &BlobRef)| {
        !blobs.iter().take(*n).any(|earlier| earlier.sha256 == blob.sha256)
    };
    let first = blobs.iter().enumerate().filter(is_first);
    first.map(|(_, blob)| blob.bytes).fold(0, u64::saturating_add)
}

impl Trial {
    pub(super) fn kept_bytes(&self) -> u64 {
        distinct_bytes(&self.blobs().collect::<Vec<_>>())
    }
}

impl Job {
    /// Bytes of the blobs that are kept because of it: data, models that it starts from, checkpoints. A blob that several
    /// of its trials have counts for each of them.
    #[must_use]
    pub fn disk(&self) -> u64 {
        self.kept.data.saturating_add(self.checkpoint_bytes())
    }

    /// Bytes of the checkpoints among them.
    #[must_use]
    pub fn checkpoint_bytes(&self) -> u64 {
        // An evaluation's checkpoint is its trial's, as a rule.
        let is_apart = |extra: &&ExtraEvaluation| {
            let trial = self.trial(extra.name.trial);
            !trial.is_some_and(|trial| trial.blobs().any(|blob| blob == extra.checkpoint))
        };
        let extras = self.extras.iter().filter(is_apart).map(|extra| extra.checkpoint.bytes);
        extras.fold(self.kept.checkpoints, u64::saturating_add)
    }

    /// The bytes that are kept because of it, counted anew.
    pub(super) fn count_kept(&self) -> KeptBytes {
        let data: BTreeMap<Digest, u64> =
            self.blobs().map(|blob| (blob.sha256, blob.bytes)).collect();
        let data = data.into_values().fold(0, u64::saturating_add);
        let trials = self.trials.iter().map(Trial::kept_bytes);
        KeptBytes { data, checkpoints: trials.fold(0, u64::saturating_add) }
    }

    /// The same, but for data that other jobs have in common, which is in `counted`. Its own is counted from now on.
    pub fn disk_beside(&self, counted: &mut BTreeSet<Digest>) -> u64 {
        let data = self.blobs().filter(|blob| counted.insert(blob.sha256)).map(|blob| blob.bytes);
        data.fold(self.kept.checkpoints, u64::saturating_add)
    }

    /// Are they those of a recount?
    pub fn is_kept_right(&self) -> bool {
        self.kept == self.count_kept()
    }
}

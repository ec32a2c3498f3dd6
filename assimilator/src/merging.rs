//! Merging a result into its trial's version: what is read for that, and what is kept in memory for the next.
//!
//! Nothing that is made depends on what is kept: it saves reading what was made a moment ago, and the pages of fresh
//! memory.

use crate::queue::Unit;
use bytes::Bytes;
use sojourn_blobs::{BlobError, BlobStore};
use sojourn_model::{CheckpointLayout, ModelError, base_checkpoint};
use sojourn_protocol::{
    digest::{BlobRef, Digest},
    unit::{Base, Merge},
};
use sojourn_rules::{Arrival, MergeError, Merger, Spare, Update};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::runtime::Handle;

/// Why there is no merged version.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MergingError {
    #[error("can't read a blob")]
    Store(#[from] BlobError),
    #[error("can't make version 0")]
    Model(#[from] ModelError),
    #[error("the rules refuse it")]
    Rules(#[from] MergeError),
}

/// A blob to publish.
#[derive(Debug, Clone)]
pub(crate) struct File {
    pub(crate) blob: BlobRef,
    pub(crate) bytes: Bytes,
}

/// A merged version.
#[derive(Debug, Clone)]
pub(crate) struct Files {
    pub(crate) checkpoint: File,
    pub(crate) state: File,
}

/// Makes merged versions out of stored ones.
#[derive(Debug)]
pub(crate) struct Merging {
    blobs: BlobStore,
    runtime: Handle,
    kept: Mutex<Kept>,
}

/// Of the versions that were made last, of whichever trials.
#[derive(Debug, Default)]
struct Kept {
    /// What the next merge most often begins with.
    last: Option<Files>,
    /// The memory of one before it.
    spare: Spare,
}

impl Merging {
    pub(crate) fn new(blobs: BlobStore, runtime: Handle) -> Self {
        Self { blobs, runtime, kept: Mutex::default() }
    }

    /// The version that a screened upload makes. Nothing is published.
    pub(crate) fn merge(
        &self,
        unit: &Unit,
        merge: &Merge,
        layout: CheckpointLayout,
        upload: &[u8],
    ) -> Result<Files, MergingError> {
        let merger = Merger::new(&merge.spec, layout)?;
        let current = self.base(unit, merge.current)?;
        let base = if unit.hop.base == merge.current {
            current.clone()
        } else {
            self.base(unit, unit.hop.base)?
        };
        let state = merge.state.map(|state| self.read(state)).transpose()?;
        let update = Update {
            base: &base,
            current: &current,
            returned: upload,
            state: state.as_deref(),
            version: merge.current.version(),
            arrival: Arrival {
                staleness: merge.staleness,
                epoch: unit.hop.start.epoch.0.saturating_add(1),
                in_flight: merge.in_flight,
                flush: merge.flush,
            },
            position: merge.position,
        };
        let spare = std::mem::take(&mut self.kept().spare);
        let made = merger.merge_over(&update, spare)?.made;
        drop((base, current, state));
        let (checkpoint, state) = rayon::join(|| file(made.checkpoint), || file(made.state));
        let files = Files { checkpoint, state };
        let mut kept = self.kept();
        if let Some(before) = kept.last.replace(files.clone()) {
            kept.spare = before.into_spare();
        }
        Ok(files)
    }

    fn base(&self, unit: &Unit, base: Base) -> Result<Bytes, MergingError> {
        base_checkpoint(&unit.hop.context, base, |blob| self.read(blob))
    }

    fn read(&self, blob: BlobRef) -> Result<Bytes, MergingError> {
        let known = self.kept().last.as_ref().and_then(|last| last.find(blob.sha256));
        match known {
            Some(bytes) => Ok(bytes),
            None => Ok(self.runtime.block_on(self.blobs.bytes(blob.sha256))?),
        }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        // Each change is one assignment, so a poisoned lock is as good as another.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Files {
    fn find(&self, blob: Digest) -> Option<Bytes> {
        let mut files = [&self.checkpoint, &self.state].into_iter();
        files.find(|file| file.blob.sha256 == blob).map(|file| file.bytes.clone())
    }

    fn into_spare(self) -> Spare {
        // Where somebody still reads it, the bytes would only be copied.
        let memory = |file: File| file.bytes.try_into_mut().map(Vec::from).unwrap_or_default();
        Spare { checkpoint: memory(self.checkpoint), state: memory(self.state) }
    }
}

fn file(bytes: Vec<u8>) -> File {
    let sha256 = Digest::of(&bytes);
    let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    File { blob: BlobRef { sha256, bytes: length }, bytes: Bytes::from(bytes) }
}

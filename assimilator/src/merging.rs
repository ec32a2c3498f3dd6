//! Merging a result into its trial's version: what is read for that, and what is kept in memory for the next.
//!
//! Nothing that is made depends on what is kept: it saves reading what was made a moment ago, and the pages of fresh
//! memory.

use crate::{
    canary::{Canaries, Contents, LossError, Losses},
    queue::Unit,
};
use bytes::Bytes;
use sojourn_blobs::{BlobError, BlobStore, Named};
use sojourn_model::{CheckpointLayout, ModelError, base_checkpoint};
use sojourn_protocol::{
    digest::{BlobRef, Digest},
    unit::{Base, Canary, Merge},
};
use sojourn_rules::{Arrival, MergeError, Merger, Refusal, Spare, Update};
use std::{
    error::Error,
    io,
    sync::{Mutex, MutexGuard, PoisonError},
};
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
    #[error("its loss is too high")]
    Canary(#[source] Refusal),
    #[error("its loss on held-out rows isn't known")]
    Loss(#[from] LossError),
    #[error("the upload can't be read")]
    Upload(#[source] Box<dyn Error + Send + Sync>),
    #[error("there is no range {0} in it")]
    NoRange(u32),
    #[error("a range can't be packed")]
    Pack(#[source] io::Error),
    #[error("a range that another has made can't be read")]
    Piece(#[source] BlobError),
    #[error("its ranges aren't a version")]
    Index,
    #[error("its job has losses looked at before results are merged, and there is no trainer here")]
    NoTrainer,
}

/// A merged version.
#[derive(Debug, Clone)]
pub(crate) struct Files {
    pub(crate) checkpoint: Named,
    pub(crate) state: Named,
}

/// Makes merged versions out of stored ones.
#[derive(Debug)]
pub(crate) struct Merging {
    blobs: BlobStore,
    runtime: Handle,
    kept: Mutex<Kept>,
    canaries: Option<Canaries>,
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
        Self { blobs, runtime, kept: Mutex::default(), canaries: None }
    }

    pub(crate) fn look_at_losses(&mut self, losses: impl Losses) {
        self.canaries = Some(Canaries::new(losses));
    }

    pub(crate) const fn looks_at_losses(&self) -> bool {
        self.canaries.is_some()
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
        if let Some(canary) = &merge.canary {
            self.look(unit, canary, (merge.current, &current), upload)?;
        }
        let state = merge.state.map(|state| self.read(state)).transpose()?;
        let update = Update {
            base: &base,
            current: &current,
            returned: upload,
            state: state.as_deref(),
            version: merge.current.version(),
            arrival: Arrival::of(merge, unit.hop.start.epoch),
            position: merge.position,
        };
        let spare = std::mem::take(&mut self.kept().spare);
        let made = merger.merge_over(&update, spare)?.made;
        drop((base, current, state));
        let name = |bytes: Vec<u8>| Named::of(Bytes::from(bytes));
        let (checkpoint, state) = rayon::join(|| name(made.checkpoint), || name(made.state));
        let files = Files { checkpoint, state };
        let mut kept = self.kept();
        if let Some(before) = kept.last.replace(files.clone()) {
            kept.spare = before.into_spare();
        }
        Ok(files)
    }

    /// Looks at the loss of a screened upload, where its job asks for that, before it is merged elsewhere than here.
    pub(crate) fn look_before(
        &self,
        unit: &Unit,
        merge: &Merge,
        upload: &[u8],
    ) -> Result<(), MergingError> {
        let Some(canary) = &merge.canary else { return Ok(()) };
        let current = self.base(unit, merge.current)?;
        self.look(unit, canary, (merge.current, &current), upload)
    }

    /// Lets pass what doesn't make the loss on held-out rows explode.
    fn look(
        &self,
        unit: &Unit,
        canary: &Canary,
        (of, current): (Base, &Bytes),
        upload: &[u8],
    ) -> Result<(), MergingError> {
        let canaries = self.canaries.as_ref().ok_or(MergingError::NoTrainer)?;
        let data = Canaries::data(unit, canary);
        let data = data.into_iter().map(|blob| Ok((blob, self.read(blob)?)));
        let data = data.collect::<Result<Vec<(BlobRef, Bytes)>, MergingError>>()?;
        let blob = match of {
            Base::Checkpoint { blob, .. } => blob,
            Base::Initial { .. } | Base::Given { .. } => Named::of(current.clone()).blob(),
        };
        let current = Contents { blob, bytes: current };
        let result = Contents { blob: unit.trained.checkpoint, bytes: upload };
        let data: Vec<Contents<'_>> =
            data.iter().map(|(blob, bytes)| Contents { blob: *blob, bytes }).collect();
        let both = ((of.version(), current), result);
        let refusal = canaries.refuses(unit, canary, both, &data)?;
        refusal.map_or(Ok(()), |refusal| Err(MergingError::Canary(refusal)))
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
        files.find(|file| file.blob().sha256 == blob).map(|file| file.bytes().clone())
    }

    fn into_spare(self) -> Spare {
        // Where somebody still reads it, the bytes would only be copied.
        let memory =
            |file: Named| file.into_bytes().try_into_mut().map(Vec::from).unwrap_or_default();
        Spare { checkpoint: memory(self.checkpoint), state: memory(self.state) }
    }
}

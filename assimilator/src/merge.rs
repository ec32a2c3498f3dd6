//! Merges a result into its trial's current version, in memory.
//!
//! The version that was made last stays in memory, since the next merge mostly begins with it; so does the memory of the
//! one before. No result depends on either.

use crate::{
    canary::{CanaryCheck, Contents, LossError, Losses},
    queue::Unit,
};
use bytes::Bytes;
use parking_lot::Mutex;
use sojourn_blobs::{BlobError, BlobStore, HashedBytes, Prepared};
use sojourn_model::{CheckpointLayout, ModelError, base_checkpoint};
use sojourn_protocol::{
    digest::{BlobRef, Digest},
    unit::{Base, Canary, Merge},
};
use sojourn_rules::{Arrival, MergeError, Merger, Refusal, Spare, Update};
use std::{error::Error, io};
use tokio::runtime::Handle;

/// Why there is no merged version.
#[derive(Debug, thiserror::Error)]
pub(crate) enum VersionError {
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
    #[error("a range of another process can't be read")]
    Piece(#[source] BlobError),
    #[error("its ranges aren't a version")]
    Index,
    #[error("its job checks losses before results are merged, and there is no trainer here")]
    NoTrainer,
}

/// The files of a merged version, to be published.
#[derive(Debug)]
pub(crate) struct MergedVersion {
    pub(crate) checkpoint: Prepared,
    pub(crate) state: Prepared,
}

/// Merges uploads into stored versions.
#[derive(Debug)]
pub(crate) struct VersionMerger {
    blobs: BlobStore,
    runtime: Handle,
    cache: Mutex<MergeCache>,
    canaries: Option<CanaryCheck>,
}

/// The versions that were made last, of any trial.
#[derive(Debug, Default)]
struct MergeCache {
    /// The last one: the next merge mostly begins with it.
    last: Option<KnownVersion>,
    /// The memory of the one before, for the next one's bytes.
    spare: Spare,
}

/// The files of a version that are in memory.
#[derive(Debug)]
struct KnownVersion {
    checkpoint: HashedBytes,
    state: HashedBytes,
}

impl VersionMerger {
    pub(crate) fn new(blobs: BlobStore, runtime: Handle) -> Self {
        Self { blobs, runtime, cache: Mutex::default(), canaries: None }
    }

    pub(crate) fn check_losses(&mut self, losses: impl Losses) {
        self.canaries = Some(CanaryCheck::new(losses));
    }

    pub(crate) const fn checks_losses(&self) -> bool {
        self.canaries.is_some()
    }

    /// Merges a screened upload. Nothing is published.
    pub(crate) fn merge(
        &self,
        unit: &Unit,
        merge: &Merge,
        layout: CheckpointLayout,
        upload: &[u8],
    ) -> Result<MergedVersion, VersionError> {
        let merger = Merger::new(&merge.spec, layout)?;
        let current = self.base(unit, merge.current)?;
        let base = if unit.hop.base == merge.current {
            current.clone()
        } else {
            self.base(unit, unit.hop.base)?
        };
        if let Some(canary) = &merge.canary {
            self.check_canary(unit, canary, (merge.current, &current), upload)?;
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
        let spare = std::mem::take(&mut self.cache.lock().spare);
        let made = merger.merge_over(&update, spare)?.made;
        drop((base, current, state));
        let prepare = |bytes: Vec<u8>| self.blobs.prepare(Bytes::from(bytes));
        let both = async { tokio::join!(prepare(made.checkpoint), prepare(made.state)) };
        let (checkpoint, state) = self.runtime.block_on(both);
        let files = MergedVersion { checkpoint: checkpoint?, state: state? };
        let mut cache = self.cache.lock();
        if let Some(before) = cache.last.replace(KnownVersion::of(&files)) {
            cache.spare = before.into_spare();
        }
        Ok(files)
    }

    /// Checks the loss of a screened upload, where its job asks for that, before it is merged by ranges.
    pub(crate) fn check_canary_before(
        &self,
        unit: &Unit,
        merge: &Merge,
        upload: &[u8],
    ) -> Result<(), VersionError> {
        let Some(canary) = &merge.canary else { return Ok(()) };
        let current = self.base(unit, merge.current)?;
        self.check_canary(unit, canary, (merge.current, &current), upload)
    }

    /// Refuses an upload whose loss on held-out rows is much higher than that of the current version.
    fn check_canary(
        &self,
        unit: &Unit,
        canary: &Canary,
        (of, current): (Base, &Bytes),
        upload: &[u8],
    ) -> Result<(), VersionError> {
        let canaries = self.canaries.as_ref().ok_or(VersionError::NoTrainer)?;
        let data = CanaryCheck::data(unit, canary);
        let data = data.into_iter().map(|blob| Ok((blob, self.read(blob)?)));
        let data = data.collect::<Result<Vec<(BlobRef, Bytes)>, VersionError>>()?;
        let blob = match of {
            Base::Checkpoint { blob, .. } => blob,
            Base::Initial { .. } | Base::InitialWeights { .. } => {
                HashedBytes::of(current.clone()).blob()
            }
        };
        let current = Contents { blob, bytes: current };
        let result = Contents { blob: unit.trained.checkpoint, bytes: upload };
        let data: Vec<Contents<'_>> =
            data.iter().map(|(blob, bytes)| Contents { blob: *blob, bytes }).collect();
        let both = ((of.version(), current), result);
        let refusal = canaries.refuses(unit, canary, both, &data)?;
        refusal.map_or(Ok(()), |refusal| Err(VersionError::Canary(refusal)))
    }

    fn base(&self, unit: &Unit, base: Base) -> Result<Bytes, VersionError> {
        base_checkpoint(&unit.hop.context, base, |blob| self.read(blob))
    }

    fn read(&self, blob: BlobRef) -> Result<Bytes, VersionError> {
        let known = self.cache.lock().last.as_ref().and_then(|last| last.find(blob.sha256));
        match known {
            Some(bytes) => Ok(bytes),
            None => Ok(self.runtime.block_on(self.blobs.bytes(blob.sha256))?),
        }
    }
}

impl KnownVersion {
    fn of(files: &MergedVersion) -> Self {
        let (checkpoint, state) = (files.checkpoint.named(), files.state.named());
        Self { checkpoint: checkpoint.clone(), state: state.clone() }
    }

    fn find(&self, blob: Digest) -> Option<Bytes> {
        let mut files = [&self.checkpoint, &self.state].into_iter();
        files.find(|file| file.blob().sha256 == blob).map(|file| file.bytes().clone())
    }

    fn into_spare(self) -> Spare {
        // Where somebody still reads it, the bytes would only be copied.
        let memory =
            |file: HashedBytes| file.into_bytes().try_into_mut().map(Vec::from).unwrap_or_default();
        Spare { checkpoint: memory(self.checkpoint), state: memory(self.state) }
    }
}

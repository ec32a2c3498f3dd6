//! One range of a merge: its bytes are fetched, and what comes of them is stored.
//!
//! A leader does some ranges of its own merge, with the upload in memory; others are told of one, and fetch its bytes of
//! the upload too. Names of pieces are never used twice, so that nobody overwrites what another counts on.

use crate::{
    merging::MergingError,
    queue::Unit,
    source::{SourceError, UploadSource},
};
use bytes::{Bytes, BytesMut};
use rayon::prelude::*;
use sojourn_blobs::{BlobError, BlobStore};
use sojourn_codec::ranges::{Piece, pack};
use sojourn_model::{CheckpointLayout, Lineage, base_checkpoint};
use sojourn_protocol::{
    digest::{BlobRef, Digest},
    ranges::{RangeDecision, RangeMade, RangeTask, RangeWork, StoredPiece},
    unit::{Base, Merge},
};
use sojourn_rules::{Arrival, ByteSpan, Decision, Merger, Pieces};
use std::{
    ops::Range,
    process,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{SystemTime, UNIX_EPOCH},
};
use tokio::runtime::Handle;

/// Does ranges.
#[derive(Debug)]
pub(crate) struct Ranges {
    blobs: BlobStore,
    runtime: Handle,
    /// The version 0 that was made last: it is in no store, and of no use by ranges.
    initial: Mutex<Option<(Unit, Base, Bytes)>>,
    names: Names,
}

/// A merge that is made by ranges.
#[derive(Debug)]
pub(crate) struct Ranged<'a> {
    pub(crate) unit: &'a Unit,
    pub(crate) merge: &'a Merge,
    pub(crate) merger: Merger,
    pub(crate) stretches: Vec<ByteSpan>,
}

/// A piece that is stored, and its bytes.
#[derive(Debug, Clone)]
pub(crate) struct Stored {
    pub(crate) piece: StoredPiece,
    pub(crate) bytes: Option<Bytes>,
}

/// What came of a range, where it was done.
#[derive(Debug)]
pub(crate) enum Done {
    Squares(Vec<f64>),
    /// Of the checkpoint, then of each slot.
    Merged(Vec<Stored>),
}

/// Names for pieces that nobody else uses.
#[derive(Debug)]
struct Names {
    process: String,
    given: AtomicU64,
}

impl<'a> Ranged<'a> {
    pub(crate) fn new(
        unit: &'a Unit,
        merge: &'a Merge,
        layout: CheckpointLayout,
        least: u64,
    ) -> Result<Self, MergingError> {
        let merger = Merger::new(&merge.spec, layout)?;
        let stretches = merger.stretches(least);
        Ok(Self { unit, merge, merger, stretches })
    }

    pub(crate) fn arrival(&self) -> Arrival {
        Arrival::of(self.merge, self.unit.hop.start.epoch)
    }
}

impl Ranges {
    pub(crate) fn new(blobs: BlobStore, runtime: Handle) -> Self {
        Self { blobs, runtime, initial: Mutex::default(), names: Names::new() }
    }

    /// Does a range of a merge that another leads.
    pub(crate) fn help(
        &self,
        work: &RangeWork,
        uploads: &dyn UploadSource,
    ) -> Result<RangeMade, MergingError> {
        let RangeWork { unit, least, left, task } = work;
        let merge = unit.merge.as_ref().ok_or(MergingError::NoRange(left.range))?;
        let layout = CheckpointLayout::of(&unit.hop.context)?;
        let ranged = Ranged::new(unit, merge, layout, *least)?;
        let at = usize::try_from(left.range).ok();
        let stretch = at.and_then(|at| ranged.stretches.get(at));
        let stretch = stretch.ok_or(MergingError::NoRange(left.range))?;
        let upload = unit.trained.checkpoint;
        let read = uploads.read_range(unit.lease, upload, stretch.place.clone());
        let returned = read.map_err(|error| match error {
            SourceError::Lost(_) => MergingError::Store(BlobError::Missing(upload.sha256)),
            SourceError::Trouble(error) => MergingError::Upload(error),
        })?;
        let found = Digest::of(&returned);
        if found != left.upload {
            return Err(BlobError::Altered { blob: upload.sha256, found }.into());
        }
        Ok(match self.do_range(&ranged, stretch, task, &returned)? {
            Done::Squares(squares) => {
                RangeMade::Squares(squares.into_iter().map(f64::to_bits).collect())
            }
            Done::Merged(stored) => {
                let mut pieces = stored.into_iter().map(|stored| stored.piece);
                let checkpoint = pieces.next().ok_or(MergingError::NoRange(left.range))?;
                RangeMade::Merged { checkpoint, slots: pieces.collect() }
            }
        })
    }

    /// Does a range of whose upload these are the bytes.
    pub(crate) fn do_range(
        &self,
        ranged: &Ranged<'_>,
        stretch: &ByteSpan,
        task: &RangeTask,
        returned: &[u8],
    ) -> Result<Done, MergingError> {
        let Ranged { unit, merge, merger, .. } = ranged;
        let base = self.read(unit, unit.hop.base, &stretch.place)?;
        let decision = match task {
            RangeTask::Squares => {
                return Ok(Done::Squares(merger.squares(stretch, &base, returned)?));
            }
            RangeTask::Merge(decision) => decision_of(decision)?,
        };
        let current = if unit.hop.base == merge.current {
            base.clone()
        } else {
            self.read(unit, merge.current, &stretch.place)?
        };
        let slots = self.slots(merge.state, stretch)?;
        let pieces = Pieces { base: &base, current: &current, returned, slots: &slots };
        let made = merger.merge_stretch(&decision, ranged.arrival(), stretch, &pieces)?;
        drop((base, current, slots));
        let mut slots = Bytes::from(made.slots);
        let mut files = vec![Bytes::from(made.checkpoint)];
        for place in &stretch.slots {
            let bytes = usize::try_from(place.end - place.start).unwrap_or(0);
            files.push(slots.split_to(bytes.min(slots.len())));
        }
        Ok(Done::Merged(self.store(unit, files)?))
    }

    /// Stores pieces of the next version, all but empty ones.
    pub(crate) fn store(
        &self,
        unit: &Unit,
        files: Vec<Bytes>,
    ) -> Result<Vec<Stored>, MergingError> {
        let packed: Result<Vec<_>, MergingError> = files
            .into_par_iter()
            .map(|bytes| {
                let sha256 = Digest::of(&bytes);
                let raw = BlobRef { sha256, bytes: bytes.len() as u64 };
                let packed = Bytes::from(pack(&bytes).map_err(MergingError::Pack)?);
                let (name, stored) = (self.names.next(unit), packed.len() as u64);
                let piece = StoredPiece { name, raw, packed: stored };
                Ok((Stored { piece, bytes: Some(bytes) }, packed))
            })
            .collect();
        let mut all = Vec::new();
        for (stored, packed) in packed? {
            if stored.piece.raw.bytes > 0 {
                let piece = piece_of(&stored.piece);
                self.runtime.block_on(self.blobs.put_piece(&piece, packed))?;
            }
            all.push(stored);
        }
        Ok(all)
    }

    /// The bytes of a stored piece of a version that isn't one yet.
    pub(crate) fn piece(&self, piece: &StoredPiece) -> Result<Bytes, BlobError> {
        self.runtime.block_on(self.blobs.piece(piece.raw.sha256, &piece_of(piece)))
    }

    /// Bytes of a version.
    pub(crate) fn read(
        &self,
        unit: &Unit,
        base: Base,
        place: &Range<u64>,
    ) -> Result<Bytes, MergingError> {
        if let Base::Checkpoint { blob, .. } = base {
            return self.read_blob(blob, place);
        }
        let mut initial = self.initial.lock().unwrap_or_else(PoisonError::into_inner);
        let known = initial.as_ref().filter(|(of, made, _)| {
            *made == base && (of.hop.job, of.hop.trial) == (unit.hop.job, unit.hop.trial)
        });
        let whole = match known {
            Some((_, _, bytes)) => bytes.clone(),
            None => base_checkpoint(&unit.hop.context, base, |blob| {
                Ok::<_, MergingError>(self.runtime.block_on(self.blobs.bytes(blob.sha256))?)
            })?,
        };
        *initial = Some((unit.clone(), base, whole.clone()));
        let place = usize::try_from(place.start).ok().zip(usize::try_from(place.end).ok());
        let place = place.filter(|(_, end)| *end <= whole.len());
        Ok(place.map_or_else(Bytes::new, |(start, end)| whole.slice(start..end)))
    }

    fn read_blob(&self, blob: BlobRef, place: &Range<u64>) -> Result<Bytes, MergingError> {
        // One that is shorter isn't the trial's: what there is of it says so.
        let place = place.start.min(blob.bytes)..place.end.min(blob.bytes);
        Ok(self.runtime.block_on(self.blobs.range(blob.sha256, place))?)
    }

    /// What is before a state's slots.
    pub(crate) fn state_head(
        &self,
        state: BlobRef,
        merger: &Merger,
    ) -> Result<Bytes, MergingError> {
        self.read_blob(state, &merger.state_head())
    }

    /// What of a state belongs to a stretch.
    fn slots(&self, state: Option<BlobRef>, stretch: &ByteSpan) -> Result<Bytes, MergingError> {
        let Some(state) = state else { return Ok(Bytes::new()) };
        let mut slots = stretch.slots.iter().filter(|place| !place.is_empty());
        let Some(first) = slots.next() else { return Ok(Bytes::new()) };
        let mut all = BytesMut::from(self.read_blob(state, first)?);
        for place in slots {
            all.extend_from_slice(&self.read_blob(state, place)?);
        }
        Ok(all.freeze())
    }
}

impl Names {
    fn new() -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let process = format!("{:x}-{now:x}", process::id());
        Self { process, given: AtomicU64::new(0) }
    }

    fn next(&self, unit: &Unit) -> String {
        let (lease, process) = (unit.lease, &self.process);
        format!("lease-{lease}-{process}-{}", self.given.fetch_add(1, Ordering::Relaxed))
    }
}

/// A piece as the store takes it.
pub(crate) fn piece_of(StoredPiece { name, raw, packed }: &StoredPiece) -> Piece {
    Piece { name: name.clone(), raw: *raw, packed: *packed }
}

/// A decision as it is told to others.
pub(crate) fn told(decision: &Decision) -> RangeDecision {
    let Decision { gathered, scale, lineage } = *decision;
    RangeDecision { gathered, scale: scale.to_bits(), lineage: lineage.to_numbers().to_vec() }
}

fn decision_of(told: &RangeDecision) -> Result<Decision, MergingError> {
    let RangeDecision { gathered, scale, lineage } = told;
    let lineage = Lineage::from_numbers(lineage)?;
    Ok(Decision { gathered: *gathered, scale: f64::from_bits(*scale), lineage })
}

//! One range of a merge: reads its bytes, merges them, and stores the result as pieces of the next version.
//!
//! A leader does some ranges of its own merge, with the upload in memory. Another process is given one range, and reads
//! its bytes of the upload too. Names of pieces are never used twice, so no process overwrites a piece that another one
//! counts on.

use crate::{
    merge::VersionError,
    queue::Unit,
    upload_source::{SourceError, UploadSource},
};
use bytes::{Bytes, BytesMut};
use parking_lot::Mutex;
use rayon::prelude::*;
use sojourn_blobs::{BlobError, BlobStore};
use sojourn_codec::ranges::{Piece, pack};
use sojourn_model::{CheckpointLayout, Lineage, base_checkpoint};
use sojourn_protocol::{
    digest::{BlobRef, Digest},
    quantity::to_usize,
    ranges::{RangeDecision, RangeResult, RangeTask, RangeWork, StoredPiece},
    unit::{Base, Merge},
};
use sojourn_rules::{Arrival, ByteSpan, Decision, Merger, Overlap, Pieces};
use std::{
    ops::Range,
    process,
    sync::atomic::{AtomicU64, Ordering},
    time::{SystemTime, UNIX_EPOCH},
};
use tokio::runtime::Handle;

/// Does ranges of merges.
#[derive(Debug)]
pub(crate) struct RangeWorker {
    blobs: BlobStore,
    runtime: Handle,
    /// The version 0 that was built last. It is in no store, and can only be built whole.
    initial: Mutex<Option<(Unit, Base, Bytes)>>,
    names: PieceNames,
}

/// A merge that is done by ranges.
#[derive(Debug)]
pub(crate) struct RangedMerge<'a> {
    pub(crate) unit: &'a Unit,
    pub(crate) merge: &'a Merge,
    pub(crate) merger: Merger,
    pub(crate) spans: Vec<ByteSpan>,
}

/// A piece that is stored, and its bytes where this process has them.
#[derive(Debug, Clone)]
pub(crate) struct FinishedPiece {
    pub(crate) piece: StoredPiece,
    pub(crate) bytes: Option<Bytes>,
}

/// The result of a range.
#[derive(Debug)]
pub(crate) enum RangeOutput {
    /// Sums of squares, by blocks.
    Squares(Vec<f64>),
    /// Pieces: of the checkpoint, then of each slot of the state.
    Merged(Vec<FinishedPiece>),
}

/// Names for pieces that no other process uses.
#[derive(Debug)]
struct PieceNames {
    process: String,
    count: AtomicU64,
}

impl<'a> RangedMerge<'a> {
    pub(crate) fn new(
        unit: &'a Unit,
        merge: &'a Merge,
        layout: CheckpointLayout,
        min_bytes: u64,
    ) -> Result<Self, VersionError> {
        let merger = Merger::new(&merge.spec, layout)?;
        let spans = merger.spans(min_bytes);
        Ok(Self { unit, merge, merger, spans })
    }

    pub(crate) fn arrival(&self) -> Arrival {
        Arrival::of(self.merge, self.unit.hop.start.epoch)
    }
}

impl RangeWorker {
    pub(crate) fn new(blobs: BlobStore, runtime: Handle) -> Self {
        Self { blobs, runtime, initial: Mutex::default(), names: PieceNames::new() }
    }

    /// Does a range of a merge that another process leads.
    pub(crate) fn merge_for_leader(
        &self,
        work: &RangeWork,
        uploads: &dyn UploadSource,
    ) -> Result<RangeResult, VersionError> {
        let RangeWork { unit, least, left, task } = work;
        let merge = unit.merge.as_ref().ok_or(VersionError::NoRange(left.range))?;
        let layout = CheckpointLayout::of(&unit.hop.context)?;
        let ranged = RangedMerge::new(unit, merge, layout, *least)?;
        let at = usize::try_from(left.range).ok();
        let span = at.and_then(|at| ranged.spans.get(at));
        let span = span.ok_or(VersionError::NoRange(left.range))?;
        let upload = unit.trained.checkpoint;
        let read = uploads.read_range(unit.lease, upload, span.place.clone());
        let returned = read.map_err(|error| match error {
            SourceError::Lost(_) => VersionError::Store(BlobError::Missing(upload.sha256)),
            SourceError::Unreadable(error) => VersionError::Upload(error),
        })?;
        let found = Digest::of(&returned);
        if found != left.upload {
            return Err(BlobError::Altered { blob: upload.sha256, found }.into());
        }
        Ok(match self.merge_span(&ranged, span, task, &returned)? {
            RangeOutput::Squares(squares) => {
                RangeResult::Squares(squares.into_iter().map(f64::to_bits).collect())
            }
            RangeOutput::Merged(stored) => {
                let mut pieces = stored.into_iter().map(|stored| stored.piece);
                let checkpoint = pieces.next().ok_or(VersionError::NoRange(left.range))?;
                RangeResult::Merged { checkpoint, slots: pieces.collect() }
            }
        })
    }

    /// Does a range. `returned` holds its bytes of the upload.
    pub(crate) fn merge_span(
        &self,
        ranged: &RangedMerge<'_>,
        span: &ByteSpan,
        task: &RangeTask,
        returned: &[u8],
    ) -> Result<RangeOutput, VersionError> {
        let RangedMerge { unit, merge, merger, .. } = ranged;
        let base = self.read(unit, unit.hop.base, &span.place)?;
        let decision = match task {
            RangeTask::Squares => None,
            RangeTask::Merge(decision) => Some(decode_decision(decision)?),
        };
        let needs_current = decision.is_some() || merger.needs_overlap();
        let current = if unit.hop.base == merge.current || !needs_current {
            base.clone()
        } else {
            self.read(unit, merge.current, &span.place)?
        };
        let Some(decision) = decision else {
            return Ok(RangeOutput::Squares(merger.sums(span, &base, &current, returned)?));
        };
        let slots = self.slots(merge.state, span)?;
        let pieces = Pieces { base: &base, current: &current, returned, slots: &slots };
        let made = merger.merge_span(&decision, ranged.arrival(), span, &pieces)?;
        drop((base, current, slots));
        let mut slots = Bytes::from(made.slots);
        let mut files = vec![Bytes::from(made.checkpoint)];
        for place in &span.slots {
            let bytes = to_usize(place.end - place.start);
            files.push(slots.split_to(bytes.min(slots.len())));
        }
        Ok(RangeOutput::Merged(self.store(unit, files)?))
    }

    /// Packs and stores pieces of the next version. Empty ones aren't stored.
    pub(crate) fn store(
        &self,
        unit: &Unit,
        files: Vec<Bytes>,
    ) -> Result<Vec<FinishedPiece>, VersionError> {
        let packed: Result<Vec<_>, VersionError> = files
            .into_par_iter()
            .map(|bytes| {
                let sha256 = Digest::of(&bytes);
                let raw = BlobRef { sha256, bytes: bytes.len() as u64 };
                let packed = Bytes::from(pack(&bytes).map_err(VersionError::Pack)?);
                let (name, stored) = (self.names.next(unit), packed.len() as u64);
                let piece = StoredPiece { name, raw, packed: stored };
                Ok((FinishedPiece { piece, bytes: Some(bytes) }, packed))
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

    /// The bytes of a stored piece of an unpublished version.
    pub(crate) fn piece(&self, piece: &StoredPiece) -> Result<Bytes, BlobError> {
        self.runtime.block_on(self.blobs.piece(piece.raw.sha256, &piece_of(piece)))
    }

    /// The bytes `place` of a version.
    pub(crate) fn read(
        &self,
        unit: &Unit,
        base: Base,
        place: &Range<u64>,
    ) -> Result<Bytes, VersionError> {
        if let Base::Checkpoint { blob, .. } = base {
            return self.read_blob(blob, place);
        }
        let mut initial = self.initial.lock();
        let known = initial.as_ref().filter(|(of, made, _)| {
            *made == base && (of.hop.job, of.hop.trial) == (unit.hop.job, unit.hop.trial)
        });
        let whole = match known {
            Some((_, _, bytes)) => bytes.clone(),
            None => base_checkpoint(&unit.hop.context, base, |blob| {
                Ok::<_, VersionError>(self.runtime.block_on(self.blobs.bytes(blob.sha256))?)
            })?,
        };
        *initial = Some((unit.clone(), base, whole.clone()));
        let place = usize::try_from(place.start).ok().zip(usize::try_from(place.end).ok());
        let place = place.filter(|(_, end)| *end <= whole.len());
        Ok(place.map_or_else(Bytes::new, |(start, end)| whole.slice(start..end)))
    }

    fn read_blob(&self, blob: BlobRef, place: &Range<u64>) -> Result<Bytes, VersionError> {
        // A shorter blob isn't the trial's checkpoint. The bytes that it has are enough to find that out.
        let place = place.start.min(blob.bytes)..place.end.min(blob.bytes);
        Ok(self.runtime.block_on(self.blobs.range(blob.sha256, place))?)
    }

    /// The head of a rule's state, before its slots.
    pub(crate) fn state_head(
        &self,
        state: BlobRef,
        merger: &Merger,
    ) -> Result<Bytes, VersionError> {
        self.read_blob(state, &merger.state_head())
    }

    /// A span's part of a rule's state: that of each slot, one after the other.
    fn slots(&self, state: Option<BlobRef>, span: &ByteSpan) -> Result<Bytes, VersionError> {
        let Some(state) = state else { return Ok(Bytes::new()) };
        let mut slots = span.slots.iter().filter(|place| !place.is_empty());
        let Some(first) = slots.next() else { return Ok(Bytes::new()) };
        let mut all = BytesMut::from(self.read_blob(state, first)?);
        for place in slots {
            all.extend_from_slice(&self.read_blob(state, place)?);
        }
        Ok(all.freeze())
    }
}

impl PieceNames {
    fn new() -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let process = format!("{:x}-{now:x}", process::id());
        Self { process, count: AtomicU64::new(0) }
    }

    fn next(&self, unit: &Unit) -> String {
        let (lease, process) = (unit.lease, &self.process);
        format!("lease-{lease}-{process}-{}", self.count.fetch_add(1, Ordering::Relaxed))
    }
}

/// A piece as the store knows it.
pub(crate) fn piece_of(StoredPiece { name, raw, packed }: &StoredPiece) -> Piece {
    Piece { name: name.clone(), raw: *raw, packed: *packed }
}

/// A decision as it is sent to other processes.
pub(crate) fn encode_decision(decision: &Decision) -> RangeDecision {
    let Decision { gathered, scale, overlap, lineage } = *decision;
    let overlap = (overlap != Overlap::default())
        .then(|| [overlap.of_change, overlap.of_others].map(f64::to_bits));
    let lineage = lineage.to_numbers().to_vec();
    RangeDecision { gathered, scale: scale.to_bits(), overlap, lineage }
}

fn decode_decision(decision: &RangeDecision) -> Result<Decision, VersionError> {
    let RangeDecision { gathered, scale, overlap, lineage } = decision;
    let lineage = Lineage::from_numbers(lineage)?;
    let overlap = overlap.map_or_else(Overlap::default, |numbers| {
        let [of_change, of_others] = numbers.map(f64::from_bits);
        Overlap { of_change, of_others }
    });
    Ok(Decision { gathered: *gathered, scale: f64::from_bits(*scale), overlap, lineage })
}

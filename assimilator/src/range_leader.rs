//! Leads the merge of a large model: shares its ranges with other processes, does some of them itself, and puts the
//! results together to a version.
//!
//! ```text
//! squares of all ranges -> decide -> merged ranges, stored as pieces -> hashed in order, while more come -> indexes
//! ```
//!
//! Two parts can't be shared: reading and screening the upload, and hashing the version, which is named by the digest
//! of its whole bytes.

use crate::{
    merge::VersionError,
    queue::Queue,
    range_worker::{
        FinishedPiece, RangeOutput, RangeWorker, RangedMerge, encode_decision, piece_of,
    },
};
use bytes::Bytes;
use rayon::prelude::*;
use sojourn_codec::ranges::{Index, Piece};
use sojourn_http::trace::UNITS;
use sojourn_model::Lineage;
use sojourn_protocol::{
    digest::{BlobRef, Digest, Hasher},
    ranges::{LeadAnswer, LeadRequest, RangeDone, RangeResult, RangeTask, RemainingRange},
    time::Millis,
};
use sojourn_rules::{ByteSpan, Merger, Whole};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::mpsc,
    thread,
};

/// The server holds a leader's request open for so long while there is nothing new.
const LEAD_WAIT: Millis = Millis::from_secs(2);

/// A version whose pieces are all stored. It isn't published yet.
#[derive(Debug)]
pub(crate) struct Indexes {
    pub(crate) checkpoint: Index,
    pub(crate) state: Index,
}

/// One merge and its leader.
#[derive(Debug)]
pub(crate) struct Leader<'a, Q> {
    pub(crate) queue: &'a Q,
    pub(crate) ranges: &'a RangeWorker,
    pub(crate) ranged: RangedMerge<'a>,
    /// The whole upload, screened.
    pub(crate) upload: &'a Bytes,
    /// The least bytes of a range.
    pub(crate) min_bytes: u64,
}

/// A piece and its index in its file.
type IndexedPiece = (usize, FinishedPiece);

impl<Q: Queue> Leader<'_, Q> {
    /// Merges the upload, whose lineage this is. All pieces of the version are stored; nothing is published.
    pub(crate) fn merge(&self, lineage: Lineage) -> Result<Indexes, VersionError> {
        let merged = self.merge_all(lineage);
        // However it ended, no range of it is needed any more.
        let request =
            LeadRequest { wait: Millis(0), ..self.request(RangeTask::Squares, Vec::new()) };
        if let Err(error) = self.queue.lead(&request) {
            tracing::debug!(%error, "the end of a shared merge can't be reported");
        }
        merged
    }

    fn merge_all(&self, lineage: Lineage) -> Result<Indexes, VersionError> {
        let RangedMerge { unit, merge, merger, spans } = &self.ranged;
        let left: Vec<RemainingRange> = (0..)
            .zip(spans)
            .collect::<Vec<_>>()
            .into_par_iter()
            .map(|(range, span)| RemainingRange { range, upload: Digest::of(&self.returned(span)) })
            .collect();
        let state = merge.state.map(|state| {
            Ok::<_, VersionError>((self.ranges.state_head(state, merger)?, state.bytes))
        });
        let state = state.transpose()?;
        tracing::debug!(target: UNITS, lease = unit.lease.0, ranges = left.len(), "merge shared");

        let mut squares = BTreeMap::new();
        self.run_all(RangeTask::Squares, &left, |range, done| {
            if let RangeOutput::Squares(of) = done {
                squares.insert(range, of);
            }
        })?;
        let squares: Vec<f64> = squares.into_values().flatten().collect();
        let whole = Whole {
            state: state.as_ref().map(|(head, bytes)| (&head[..], *bytes)),
            version: merge.current.version(),
            arrival: self.ranged.arrival(),
            position: merge.position,
            lineage,
        };
        let decided = merger.decide(&squares, &whole)?;
        tracing::debug!(target: UNITS, lease = unit.lease.0, "merge decided");

        let head = self.ranges.store(unit, vec![Bytes::from(decided.state_head)])?;
        let task = RangeTask::Merge(encode_decision(&decided.decision));
        let slots = spans.first().map_or(0, |span| span.slots.len());
        let (to_checkpoint, checkpoints) = mpsc::channel::<IndexedPiece>();
        let (to_state, states) = mpsc::channel::<IndexedPiece>();
        for stored in head {
            // The receiver lives until the end of this function.
            let _ = to_state.send((0, stored));
        }
        thread::scope(|scope| {
            let checkpoint = scope.spawn(|| self.index(checkpoints, spans.len()));
            let state = scope.spawn(|| self.index(states, 1 + slots * spans.len()));
            let done = self.run_all(task, &left, |range, done| {
                if let RangeOutput::Merged(stored) = done {
                    for (file, stored) in stored.into_iter().enumerate() {
                        // A receiver that has ended early returns its error below.
                        let _ = match file.checked_sub(1) {
                            None => to_checkpoint.send((range, stored)),
                            Some(slot) => to_state.send((1 + slot * spans.len() + range, stored)),
                        };
                    }
                }
            });
            drop((to_checkpoint, to_state));
            let ended = (checkpoint.join(), state.join());
            done?;
            match ended {
                (Ok(checkpoint), Ok(state)) => {
                    Ok(Indexes { checkpoint: checkpoint?, state: state? })
                }
                _ => Err(VersionError::Index),
            }
        })
    }

    /// Has a task done for every range, by this process or another.
    fn run_all(
        &self,
        task: RangeTask,
        all: &[RemainingRange],
        mut on_done: impl FnMut(usize, RangeOutput),
    ) -> Result<(), VersionError> {
        let spans = &self.ranged.spans;
        let mut left: BTreeSet<u32> = all.iter().map(|left| left.range).collect();
        let mut request = self.request(task.clone(), all.to_vec());
        while !left.is_empty() {
            request.left.retain(|of| left.contains(&of.range));
            let answer = self.queue.lead(&request).unwrap_or_else(|error| {
                // No other process can help now: the leader goes on alone.
                tracing::debug!(%error, "a merge can't be shared now");
                LeadAnswer { done: Vec::new(), own: left.first().copied() }
            });
            for RangeDone { range, result } in answer.done {
                let at = usize::try_from(range).ok();
                let done = at.and_then(|at| Some((at, spans.get(at)?))).and_then(|(at, span)| {
                    Some((at, output_of(result, span, &self.ranged.merger, &task)?))
                });
                if let Some((at, done)) = done.filter(|_| left.remove(&range)) {
                    on_done(at, done);
                }
            }
            let own = answer.own.filter(|range| left.contains(range));
            let at = own.and_then(|range| usize::try_from(range).ok());
            if let Some((at, span)) = at.and_then(|at| Some((at, spans.get(at)?))) {
                let returned = self.returned(span);
                let done = self.ranges.merge_span(&self.ranged, span, &task, &returned)?;
                if own.is_some_and(|range| left.remove(&range)) {
                    on_done(at, done);
                }
            }
        }
        Ok(())
    }

    fn request(&self, task: RangeTask, left: Vec<RemainingRange>) -> LeadRequest {
        let unit = self.ranged.unit.clone();
        LeadRequest { unit, least: self.min_bytes, task, left, wait: LEAD_WAIT }
    }

    /// Hashes a file's pieces in order as they come. Those of other processes are read from the store.
    fn index(
        &self,
        pieces: mpsc::Receiver<IndexedPiece>,
        count: usize,
    ) -> Result<Index, VersionError> {
        let (mut hasher, mut waiting, mut next) = (Hasher::default(), BTreeMap::new(), 0);
        let (mut bytes, mut all) = (0u64, Vec::<Piece>::new());
        for (at, stored) in pieces {
            waiting.insert(at, stored);
            while let Some(FinishedPiece { piece, bytes: at_hand }) = waiting.remove(&next) {
                next += 1;
                if piece.raw.bytes > 0 {
                    let raw = match at_hand {
                        Some(raw) => raw,
                        // It isn't part of a published blob yet: its loss fails this merge alone.
                        None => self.ranges.piece(&piece).map_err(VersionError::Piece)?,
                    };
                    hasher.update(&raw);
                    bytes = bytes.saturating_add(piece.raw.bytes);
                    all.push(piece_of(&piece));
                }
            }
        }
        if next != count {
            return Err(VersionError::Index);
        }
        let blob = BlobRef { sha256: hasher.finish(), bytes };
        Index::new(blob, all).map_err(|_| VersionError::Index)
    }

    /// A span of the upload.
    fn returned(&self, span: &ByteSpan) -> Bytes {
        let place = &span.place;
        let place = usize::try_from(place.start).ok().zip(usize::try_from(place.end).ok());
        let place = place.filter(|(_, end)| *end <= self.upload.len());
        place.map_or_else(Bytes::new, |(start, end)| self.upload.slice(start..end))
    }
}

/// The result of another process, if it fits the task.
fn output_of(
    made: RangeResult,
    span: &ByteSpan,
    merger: &Merger,
    task: &RangeTask,
) -> Option<RangeOutput> {
    if !task.fits(&made) {
        return None;
    }
    Some(match made {
        RangeResult::Squares(bits) => {
            let sums: Vec<f64> = bits.into_iter().map(f64::from_bits).collect();
            // Where they can't be right the leader computes them itself.
            if !merger.are_sums(span, &sums) {
                return None;
            }
            RangeOutput::Squares(sums)
        }
        RangeResult::Merged { checkpoint, slots } => {
            let places = [&span.place].into_iter().chain(&span.slots);
            let pieces: Vec<_> = [checkpoint].into_iter().chain(slots).collect();
            let expected = places.map(|place| place.end - place.start);
            if !expected.eq(pieces.iter().map(|piece| piece.raw.bytes)) {
                return None;
            }
            let stored = |piece| FinishedPiece { piece, bytes: None };
            RangeOutput::Merged(pieces.into_iter().map(stored).collect())
        }
    })
}

//! A merge of a large model: whoever took its unit shares it out by ranges, does some of them itself, and makes a
//! version of what comes.
//!
//! ```text
//! squares of all ranges -> decide -> ranges, stored as they are made -> hashed in order, while more come -> indexes
//! ```
//!
//! What can't be shared is the hashing, for a version is named by the digest of its whole bytes, and the reading and
//! checking of the upload before.

use crate::{
    merging::MergingError,
    queue::Queue,
    ranges::{Done, Ranged, Ranges, Stored, piece_of, told},
};
use bytes::Bytes;
use rayon::prelude::*;
use sojourn_codec::ranges::{Index, Piece};
use sojourn_model::Lineage;
use sojourn_protocol::{
    digest::{BlobRef, Digest, Hasher},
    ranges::{LeadAnswer, LeadRequest, RangeDone, RangeLeft, RangeMade, RangeTask},
    time::Millis,
};
use sojourn_rules::{ByteSpan, Whole};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::mpsc,
    thread,
};

/// A leader that has nothing to do looks again after so long.
const WAIT: Millis = Millis::from_secs(2);

/// A version in pieces that are all stored, and not yet a blob.
#[derive(Debug)]
pub(crate) struct Indexes {
    pub(crate) checkpoint: Index,
    pub(crate) state: Index,
}

/// A merge, and what a leader has for it.
#[derive(Debug)]
pub(crate) struct Leader<'a, Q> {
    pub(crate) queue: &'a Q,
    pub(crate) ranges: &'a Ranges,
    pub(crate) ranged: Ranged<'a>,
    /// The whole upload, screened.
    pub(crate) upload: &'a Bytes,
    pub(crate) least: u64,
}

/// A piece and its place in its file's order.
type Placed = (usize, Stored);

impl<Q: Queue> Leader<'_, Q> {
    /// The version that an upload makes which says this of itself. Its pieces are stored; nothing is published.
    pub(crate) fn merge(&self, lineage: Lineage) -> Result<Indexes, MergingError> {
        let merged = self.merge_all(lineage);
        // However it ended: nobody need do any of it any more.
        let request =
            LeadRequest { wait: Millis(0), ..self.request(RangeTask::Squares, Vec::new()) };
        if let Err(error) = self.queue.lead(&request) {
            tracing::debug!(%error, "nobody hears that a merge is shared out no more");
        }
        merged
    }

    fn merge_all(&self, lineage: Lineage) -> Result<Indexes, MergingError> {
        let Ranged { unit, merge, merger, stretches } = &self.ranged;
        let left: Vec<RangeLeft> = (0..)
            .zip(stretches)
            .collect::<Vec<_>>()
            .into_par_iter()
            .map(|(range, stretch)| RangeLeft {
                range,
                upload: Digest::of(&self.returned(stretch)),
            })
            .collect();
        let state = merge.state.map(|state| {
            Ok::<_, MergingError>((self.ranges.state_head(state, merger)?, state.bytes))
        });
        let state = state.transpose()?;
        tracing::debug!(lease = unit.lease.0, ranges = left.len(), "merge shared out");

        let mut squares = BTreeMap::new();
        self.round(RangeTask::Squares, &left, |range, done| {
            if let Done::Squares(of) = done {
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
        tracing::debug!(lease = unit.lease.0, "merge decided");

        let head = self.ranges.store(unit, vec![Bytes::from(decided.state_head)])?;
        let task = RangeTask::Merge(told(&decided.decision));
        let slots = stretches.first().map_or(0, |stretch| stretch.slots.len());
        let (of_checkpoint, checkpoints) = mpsc::channel::<Placed>();
        let (of_state, states) = mpsc::channel::<Placed>();
        for stored in head {
            // Its receiver is there.
            let _ = of_state.send((0, stored));
        }
        thread::scope(|scope| {
            let checkpoint = scope.spawn(|| self.index(checkpoints, stretches.len()));
            let state = scope.spawn(|| self.index(states, 1 + slots * stretches.len()));
            let round = self.round(task, &left, |range, done| {
                if let Done::Merged(stored) = done {
                    for (file, stored) in stored.into_iter().enumerate() {
                        // Who has ended early says why below.
                        let _ = match file.checked_sub(1) {
                            None => of_checkpoint.send((range, stored)),
                            Some(slot) => {
                                of_state.send((1 + slot * stretches.len() + range, stored))
                            }
                        };
                    }
                }
            });
            drop((of_checkpoint, of_state));
            let ended = (checkpoint.join(), state.join());
            round?;
            match ended {
                (Ok(checkpoint), Ok(state)) => {
                    Ok(Indexes { checkpoint: checkpoint?, state: state? })
                }
                _ => Err(MergingError::Index),
            }
        })
    }

    /// Has something done with every range, by whomever.
    fn round(
        &self,
        task: RangeTask,
        all: &[RangeLeft],
        mut arrived: impl FnMut(usize, Done),
    ) -> Result<(), MergingError> {
        let stretches = &self.ranged.stretches;
        let mut left: BTreeSet<u32> = all.iter().map(|left| left.range).collect();
        let mut request = self.request(task.clone(), all.to_vec());
        while !left.is_empty() {
            request.left.retain(|of| left.contains(&of.range));
            let answer = self.queue.lead(&request).unwrap_or_else(|error| {
                // Nobody can help just now; what is done alone is done.
                tracing::debug!(%error, "a merge isn't shared out just now");
                LeadAnswer { made: Vec::new(), own: left.first().copied() }
            });
            for RangeDone { range, made } in answer.made {
                let at = usize::try_from(range).unwrap_or(usize::MAX);
                let done = stretches.get(at).and_then(|stretch| {
                    let blocks = self.ranged.merger.blocks(stretch);
                    done_of(made, (stretch, blocks), &task)
                });
                if let Some(done) = done.filter(|_| left.remove(&range)) {
                    arrived(at, done);
                }
            }
            let own = answer.own.filter(|range| left.contains(range));
            let at = own.and_then(|range| usize::try_from(range).ok());
            if let Some((at, stretch)) = at.and_then(|at| Some((at, stretches.get(at)?))) {
                let returned = self.returned(stretch);
                let done = self.ranges.do_range(&self.ranged, stretch, &task, &returned)?;
                if own.is_some_and(|range| left.remove(&range)) {
                    arrived(at, done);
                }
            }
        }
        Ok(())
    }

    fn request(&self, task: RangeTask, left: Vec<RangeLeft>) -> LeadRequest {
        let unit = self.ranged.unit.clone();
        LeadRequest { unit, least: self.least, task, left, wait: WAIT }
    }

    /// Hashes a file's pieces in order as they come, those of others as they are in the store.
    fn index(&self, pieces: mpsc::Receiver<Placed>, count: usize) -> Result<Index, MergingError> {
        let (mut hasher, mut early, mut next) = (Hasher::default(), BTreeMap::new(), 0);
        let (mut bytes, mut all) = (0u64, Vec::<Piece>::new());
        for (at, stored) in pieces {
            early.insert(at, stored);
            while let Some(Stored { piece, bytes: at_hand }) = early.remove(&next) {
                next += 1;
                if piece.raw.bytes > 0 {
                    let raw = match at_hand {
                        Some(raw) => raw,
                        // It is nobody's blob yet: its loss is no more than this merge's.
                        None => self.ranges.piece(&piece).map_err(MergingError::Piece)?,
                    };
                    hasher.update(&raw);
                    bytes = bytes.saturating_add(piece.raw.bytes);
                    all.push(piece_of(&piece));
                }
            }
        }
        if next != count {
            return Err(MergingError::Index);
        }
        let blob = BlobRef { sha256: hasher.finish(), bytes };
        Index::new(blob, all).map_err(|_| MergingError::Index)
    }

    fn returned(&self, stretch: &ByteSpan) -> Bytes {
        let place = &stretch.place;
        let place = usize::try_from(place.start).ok().zip(usize::try_from(place.end).ok());
        let place = place.filter(|(_, end)| *end <= self.upload.len());
        place.map_or_else(Bytes::new, |(start, end)| self.upload.slice(start..end))
    }
}

/// What another has done, if it is what was to be done.
fn done_of(
    made: RangeMade,
    (stretch, blocks): (&ByteSpan, usize),
    task: &RangeTask,
) -> Option<Done> {
    if !task.fits(&made) {
        return None;
    }
    Some(match made {
        RangeMade::Squares(bits) => {
            let squares: Vec<f64> = bits.into_iter().map(f64::from_bits).collect();
            // A change that is no number would be taken for the host's fault: the leader finds that out itself.
            let are_squares = squares.iter().all(|square| square.is_finite() && *square >= 0.0);
            if squares.len() != blocks || !are_squares {
                return None;
            }
            Done::Squares(squares)
        }
        RangeMade::Merged { checkpoint, slots } => {
            let places = [&stretch.place].into_iter().chain(&stretch.slots);
            let pieces: Vec<_> = [checkpoint].into_iter().chain(slots).collect();
            let expected = places.map(|place| place.end - place.start);
            if !expected.eq(pieces.iter().map(|piece| piece.raw.bytes)) {
                return None;
            }
            let stored = |piece| Stored { piece, bytes: None };
            Done::Merged(pieces.into_iter().map(stored).collect())
        }
    })
}

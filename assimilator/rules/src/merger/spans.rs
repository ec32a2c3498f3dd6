//! A merge by spans of the files, each of which may be done by somebody else: what they make, put together, is
//! byte for byte what one merge of the whole files makes.
//!
//! ```text
//! sums of each span  ->  decide: norm, clipping, counters  ->  merge of each span
//! ```
//!
//! Spans end where tensors or blocks do, so that every block of the whole is a block of one span: sums over
//! blocks are made in the same order then, and no bit depends on how a file was cut.

use super::{Measured, Merger, Update, make::Recipe};
use crate::{
    arrival::Arrival,
    error::{Fit, MergeError},
    kernel::BLOCK,
    overlap::Overlap,
    state::Counters,
};
use sojourn_codec::CodecError;
use sojourn_model::{Lineage, Role};
use sojourn_protocol::{
    ids::Version,
    position::Position,
    quantity::{to_u64, to_usize},
};
use std::ops::Range;

/// A span of every checkpoint of a trial, and what of a state belongs to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ByteSpan {
    /// The span's place in a checkpoint.
    pub place: Range<u64>,
    /// The places in a state of its parameters' numbers, in each of the rule's slots.
    pub slots: Vec<Range<u64>>,
}

/// The part of a merge that concerns whole files.
#[derive(Debug, Clone, Copy)]
pub struct Whole<'a> {
    /// The first bytes of the state that was made with the current version, at least [`Merger::state_head`], and the
    /// size of the whole; none where the version came from hop order.
    pub state: Option<(&'a [u8], u64)>,
    /// The number of the current version.
    pub version: Version,
    /// The circumstances.
    pub arrival: Arrival,
    /// Where the trial stands after the merge.
    pub position: Position,
    /// The lineage of the result.
    pub lineage: Lineage,
}

/// The decision over the whole file that the merge of a span needs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Decision {
    /// Changes in the current version's sum.
    pub gathered: u32,
    /// The factor of the change.
    pub scale: f64,
    /// The change's overlap with what others have changed, where the rule depends on it.
    pub overlap: Overlap,
    /// The lineage of the next version.
    pub lineage: Lineage,
}

/// The decision over the whole file.
#[derive(Debug, Clone, PartialEq)]
pub struct Decided {
    /// For the spans.
    pub decision: Decision,
    /// The number of the next version.
    pub version: Version,
    /// The norm of the change.
    pub norm: f64,
    /// The first bytes of the next version's state; its slots follow.
    pub state_head: Vec<u8>,
}

/// The bytes of one span, of files that are all the trial's.
#[derive(Debug, Clone, Copy)]
pub struct Pieces<'a> {
    /// Of what the host began from.
    pub base: &'a [u8],
    /// Of the current version.
    pub current: &'a [u8],
    /// Of what the host returned.
    pub returned: &'a [u8],
    /// Of the state's slots, one after the other; empty where there is no state.
    pub slots: &'a [u8],
}

/// A span of a version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpanOutput {
    /// Of its checkpoint.
    pub checkpoint: Vec<u8>,
    /// Of its state's slots, one after the other.
    pub slots: Vec<u8>,
}

impl ByteSpan {
    fn bounds(&self) -> Result<Range<usize>, CodecError> {
        crate::state::bounds(&self.place).ok_or_else(|| CodecError::TooLarge("a span".into()))
    }
}

impl<'a> Update<'a> {
    /// The part of the update that concerns whole files; the result was found to say this lineage of itself.
    #[must_use]
    pub fn whole(&self, lineage: Lineage) -> Whole<'a> {
        let Self { state, version, arrival, position, .. } = *self;
        let state = state.map(|state| (state, length(state)));
        Whole { state, version, arrival, position, lineage }
    }
}

impl Merger {
    /// The exact size of every checkpoint of the trial.
    #[must_use]
    pub const fn checkpoint_bytes(&self) -> u64 {
        self.layout.file_bytes()
    }

    /// The part of a state before its slots.
    #[must_use]
    pub fn state_head(&self) -> Range<u64> {
        self.state.head()
    }

    /// The spans of a checkpoint, in order: each has at least so many bytes, but for the last, and few more.
    #[must_use]
    pub fn spans(&self, least: u64) -> Vec<ByteSpan> {
        let least = to_usize(least).max(1);
        let block = BLOCK * size_of::<f32>();
        let end = self.parts.last().map_or(0, |part| part.place.end);
        let borders = self.parts.iter().flat_map(|part| part.place.clone().step_by(block));
        let mut spans = Vec::new();
        let (mut start, mut before) = (0, 0);
        for border in borders.chain([end]) {
            if border == end || border.saturating_sub(start) >= least {
                let place = start..border;
                let parameters = self.parts.iter().filter(|part| part.role == Role::Parameter);
                let within = parameters.filter_map(|part| part.within(&place));
                let bytes = within.map(|bytes| bytes.len()).sum();
                spans.push(self.span(&place, before, bytes));
                (start, before) = (border, before + bytes);
            }
        }
        spans
    }

    /// The span at this place, which has so many bytes of parameters, behind so many.
    fn span(&self, place: &Range<usize>, before: usize, bytes: usize) -> ByteSpan {
        let wide = |bytes: usize| to_u64(bytes);
        let slots = self.state.slot_starts(self.rule.slots().len());
        let slots = slots.map(|start| start + wide(before)..start + wide(before + bytes));
        ByteSpan { place: wide(place.start)..wide(place.end), slots: slots.collect() }
    }

    /// The sums over the change in a span, for [`Merger::decide`].
    ///
    /// # Errors
    /// Bytes that aren't the span's, or not of the trial's files.
    pub fn sums(
        &self,
        span: &ByteSpan,
        base: &[u8],
        current: &[u8],
        returned: &[u8],
    ) -> Result<Vec<f64>, MergeError> {
        self.check_piece("base", span, base)?;
        self.check_piece("current version", span, current)?;
        self.check_piece("result", span, returned)?;
        Ok(self.sums_within(&span.bounds()?, base, current, returned))
    }

    /// Can these be the sums of a span? Numbers that aren't would be blamed on the host.
    #[must_use]
    pub fn are_sums(&self, span: &ByteSpan, sums: &[f64]) -> bool {
        let each = if self.rule.needs_overlap() { 3 } else { 1 };
        // Of three products the second, of change and others' change, has either sign.
        let mut squares = sums.iter().enumerate().filter(|(at, _)| at % each != 1);
        sums.len() == each * self.blocks(span)
            && sums.iter().all(|sum| sum.is_finite())
            && squares.all(|(_, square)| *square >= 0.0)
    }

    /// Blocks of parameters in a span.
    fn blocks(&self, span: &ByteSpan) -> usize {
        let Ok(place) = span.bounds() else { return 0 };
        let parameters = self.parts.iter().filter(|part| part.role == Role::Parameter);
        let places = parameters.filter_map(|part| part.within(&place));
        places.map(|bytes| (bytes.len() / 4).div_ceil(BLOCK)).sum()
    }

    /// Decides what is done in all spans, of whose sums these are all, in order.
    ///
    /// # Errors
    /// A state of another rule or version, and a change too large to be one.
    pub fn decide(&self, sums: &[f64], whole: &Whole<'_>) -> Result<Decided, MergeError> {
        let counters = match whole.state {
            None => Counters::new(whole.version),
            Some((start, bytes)) => self.state.read_head(start, bytes, whole.version)?,
        };
        let Measured { norm, scale, overlap } = self.measure(sums, &counters)?;
        let pass = self.rule.pass(&counters, whole.arrival, overlap).scaled(scale);
        let lineage = Lineage { position: whole.position, ..whole.lineage };
        let decision = Decision { gathered: counters.gathered(), scale, overlap, lineage };
        let counters = counters.after(&pass, norm);
        let state_head = self.state.begin_head(&counters);
        Ok(Decided { decision, version: counters.version(), norm, state_head })
    }

    /// A span of the next version.
    ///
    /// # Errors
    /// Bytes that aren't the span's, or not of the trial's files.
    pub fn merge_span(
        &self,
        decision: &Decision,
        arrival: Arrival,
        span: &ByteSpan,
        pieces: &Pieces<'_>,
    ) -> Result<SpanOutput, MergeError> {
        let Pieces { base, current, returned, slots } = *pieces;
        self.check_piece("base", span, base)?;
        self.check_piece("current version", span, current)?;
        self.check_piece("result", span, returned)?;
        let kept: u64 = span.slots.iter().map(|place| place.end - place.start).sum();
        if !slots.is_empty() {
            check_length("merge state", kept, slots)?;
        }
        let kept = usize::try_from(kept).map_err(|_| CodecError::TooLarge("a span".into()))?;
        // Of all counters the rules ask for this one alone.
        let counters = Counters::new(Version(0)).with_gathered(decision.gathered);
        let recipe = Recipe {
            pass: self.rule.pass(&counters, arrival, decision.overlap).scaled(decision.scale),
            share: self.rule.share(arrival) * decision.scale,
            discount: arrival.discount(),
            lineage: decision.lineage,
            place: span.bounds()?,
            base,
            current,
            returned,
            slots,
        };
        let mut made = SpanOutput { checkpoint: vec![0; current.len()], slots: vec![0; kept] };
        if span.place.start == 0 {
            let header = self.layout.layout().header();
            for (to, from) in made.checkpoint.iter_mut().zip(header) {
                *to = *from;
            }
        }
        self.fill(&recipe, &mut made.checkpoint, &mut made.slots);
        Ok(made)
    }

    fn check_piece(
        &self,
        name: &'static str,
        span: &ByteSpan,
        bytes: &[u8],
    ) -> Result<(), MergeError> {
        if span.place.start == 0 {
            self.check_start(name, bytes, self.layout.file_bytes())?;
        }
        check_length(name, span.place.end - span.place.start, bytes)
    }
}

fn check_length(name: &'static str, expected: u64, bytes: &[u8]) -> Result<(), MergeError> {
    let actual = length(bytes);
    if actual == expected {
        return Ok(());
    }
    Err(Fit::Codec(CodecError::Length { expected, actual }).of(name))
}

pub(super) fn length(bytes: &[u8]) -> u64 {
    to_u64(bytes.len())
}

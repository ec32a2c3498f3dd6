//! Writing a version, or a span of one: every tensor of it from those of the others.

use super::{
    Made, Merger, Spare,
    job::{How, Job, Kept, Rest},
    parts::piece,
};
use crate::{
    error::MergeError,
    pass::Pass,
    state::{Counters, begin},
};
use rayon::prelude::*;
use sojourn_model::{BufferKind, Lineage, Moment, Role};
use sojourn_protocol::spec::OptimizerMerge;
use std::ops::Range;

/// The inputs of a span of a version: the same bytes of all three files.
#[derive(Debug, Clone)]
pub(super) struct Recipe<'a> {
    pub(super) pass: Pass,
    /// The share of what isn't trained, where it is blended.
    pub(super) share: f64,
    /// The factor of the returned first moments, where they are discounted.
    pub(super) discount: f64,
    /// The new version's.
    pub(super) lineage: Lineage,
    /// Where the span lies.
    pub(super) place: Range<usize>,
    pub(super) base: &'a [u8],
    pub(super) current: &'a [u8],
    pub(super) returned: &'a [u8],
    /// Of each slot of the current version's state what belongs to the span, one after the other; may be empty.
    pub(super) slots: &'a [u8],
}

impl Merger {
    /// A whole version, in spare memory where that suffices. Every byte is written.
    pub(super) fn make(
        &self,
        recipe: &Recipe<'_>,
        counters: &Counters,
        spare: Spare,
    ) -> Result<Made, MergeError> {
        let mut checkpoint = begin(self.layout.layout(), spare.checkpoint)?;
        let mut state = self.state.begin(counters, spare.state)?;
        self.fill(recipe, &mut checkpoint, self.state.slots_mut(&mut state));
        Ok(Made { version: counters.version(), checkpoint, state })
    }

    /// Writes a span of a version, all but the file's header, and what of the state's slots belongs to it.
    pub(super) fn fill(&self, recipe: &Recipe<'_>, checkpoint: &mut [u8], slots: &mut [u8]) {
        let Recipe { place, base, current, returned, .. } = recipe;
        let mut jobs = Vec::new();
        let mut kept = Kept::new(self.rule.slots(), recipe.slots, slots);
        let mut rest = Rest(&mut *checkpoint);
        let mut at = 0;
        for part in &self.parts {
            let Some(bytes) = part.within(place) else { continue };
            rest.advance(bytes.start - at);
            let next = rest.advance(bytes.len());
            at = bytes.end;
            let (current, base) = (piece(current, &bytes), piece(base, &bytes));
            let job = Job::new(next, current, base, piece(returned, &bytes));
            let job = if part.role == Role::Parameter { job.with_slots(&mut kept) } else { job };
            job.with(self.how(part.role, recipe)).blocks(&mut jobs);
        }
        jobs.into_par_iter().for_each(Job::run);
        let lineage = self.lineage_part().and_then(|part| part.within(place));
        let lineage = lineage.and_then(|bytes| checkpoint.get_mut(bytes)).unwrap_or_default();
        let numbers = recipe.lineage.to_numbers();
        for (place, number) in lineage.as_chunks_mut::<8>().0.iter_mut().zip(numbers) {
            *place = number.to_le_bytes();
        }
    }

    /// How the tensors of a role are merged.
    fn how(&self, role: Role, recipe: &Recipe<'_>) -> How {
        let blend = |take| How::Pass(Pass::Blend { take, scale: 1.0 });
        match role {
            Role::Parameter => How::Pass(recipe.pass),
            Role::Buffer(BufferKind::Variance | BufferKind::Real) => blend(recipe.share),
            Role::Buffer(BufferKind::Whole) => How::Taken,
            Role::Optimizer(moment) => match (self.optimizer, moment) {
                (OptimizerMerge::Average, _) | (OptimizerMerge::Discount, Moment::Second) => {
                    blend(recipe.share)
                }
                (OptimizerMerge::Discount, Moment::First) => How::Returned(recipe.discount),
                (OptimizerMerge::Last, _) => blend(1.0),
                (OptimizerMerge::Reset, _) => How::Zero,
            },
            Role::Lineage => How::Stays,
        }
    }
}

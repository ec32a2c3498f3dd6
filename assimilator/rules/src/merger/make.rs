//! Writing a version: every tensor of it from those of the others.

use super::{
    Made, Merger, Spare,
    job::{How, Job, Kept, Rest},
    parts::Role,
};
use crate::{
    error::MergeError,
    pass::Pass,
    state::{Counters, begin},
};
use rayon::prelude::*;
use sojourn_model::Lineage;
use sojourn_protocol::spec::OptimizerMerge;

/// All that a version is made from.
#[derive(Debug)]
pub(super) struct Recipe<'a> {
    pub(super) pass: Pass,
    pub(super) current: &'a [u8],
    pub(super) returned: Returned<'a>,
    /// The slots of the current version's state.
    pub(super) slots: &'a [u8],
    /// The new version's.
    pub(super) counters: Counters,
    /// The new version's.
    pub(super) lineage: Lineage,
}

/// What arrived.
#[derive(Debug, Clone, Copy)]
pub(super) struct Returned<'a> {
    pub(super) base: &'a [u8],
    pub(super) file: &'a [u8],
    /// Its share where numbers that aren't trained are blended.
    pub(super) share: f64,
}

impl Merger {
    /// The version that a recipe makes, in spare memory where that suffices. Every byte is written.
    pub(super) fn make(&self, recipe: &Recipe<'_>, spare: Spare) -> Result<Made, MergeError> {
        let mut checkpoint = begin(self.layout.layout(), spare.checkpoint)?;
        let mut state = self.state.begin(&recipe.counters, spare.state)?;
        let Recipe { pass, current, returned, slots, .. } = *recipe;
        let mut jobs = Vec::new();
        let mut kept = Kept::new(self.rule.slots(), slots, self.state.slots_mut(&mut state));
        let mut rest = Rest(&mut checkpoint);
        let mut at = 0;
        for part in &self.parts {
            rest.advance(part.place.start - at);
            let next = rest.advance(part.place.len());
            at = part.place.end;
            let (base, came) = (part.of(returned.base), part.of(returned.file));
            let job = Job::new(next, part.of(current), base, came);
            let job = if part.role == Role::Parameter { job.with_slots(&mut kept) } else { job };
            job.with(self.how(part.role, pass, returned.share)).blocks(&mut jobs);
        }
        jobs.into_par_iter().for_each(Job::run);
        if let Some(part) = self.lineage_part() {
            let place = checkpoint.get_mut(part.place.clone()).unwrap_or_default();
            for (place, number) in
                place.as_chunks_mut::<8>().0.iter_mut().zip(recipe.lineage.to_numbers())
            {
                *place = number.to_le_bytes();
            }
        }
        Ok(Made { version: recipe.counters.version(), checkpoint, state })
    }

    /// What becomes of the tensors of a role.
    fn how(&self, role: Role, pass: Pass, share: f64) -> How {
        let blend = |take| How::Pass(Pass::Blend { take, scale: 1.0 });
        match (role, self.optimizer) {
            (Role::Parameter, _) => How::Pass(pass),
            (Role::Buffer, _) | (Role::Optimizer, OptimizerMerge::Average) => blend(share),
            (Role::Optimizer, OptimizerMerge::Last) => blend(1.0),
            (Role::Optimizer, OptimizerMerge::Reset) => How::Zero,
            (Role::Lineage, _) => How::Stays,
        }
    }
}

//! The place and the role of each tensor of a checkpoint in a merge.

use crate::{error::MergeError, state::bounds};
use sojourn_codec::CodecError;
use sojourn_model::{CheckpointLayout, Role};
use std::ops::Range;

/// A tensor's place in every checkpoint of the trial.
#[derive(Debug, Clone)]
pub(super) struct Part {
    pub(super) role: Role,
    pub(super) place: Range<usize>,
}

impl Part {
    /// The tensor's bytes in a file; none where there is no file.
    pub(super) fn of<'a>(&self, file: &'a [u8]) -> &'a [u8] {
        file.get(self.place.clone()).unwrap_or_default()
    }

    /// The place that the tensor has among the bytes of a span of the file; `None` where it lies outside.
    pub(super) fn within(&self, span: &Range<usize>) -> Option<Range<usize>> {
        let start = self.place.start.max(span.start);
        let end = self.place.end.min(span.end);
        (start < end).then(|| start - span.start..end - span.start)
    }
}

/// The bytes at a place; none where they aren't all there.
pub(super) fn piece<'a>(bytes: &'a [u8], place: &Range<usize>) -> &'a [u8] {
    bytes.get(place.clone()).unwrap_or_default()
}

/// The tensors in name order, which is that of the file.
pub(super) fn parts(layout: &CheckpointLayout) -> Result<Vec<Part>, MergeError> {
    let places = layout.layout().tensors().iter().map(|(_, place)| place);
    let placed = layout.roles().zip(places).map(|((spec, role), place)| {
        let place = bounds(place).ok_or_else(|| CodecError::TooLarge(spec.name.clone()))?;
        Ok(Part { role, place })
    });
    placed.collect()
}

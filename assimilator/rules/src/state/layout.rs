//! Where a state's tensors lie in its file.

use super::{COUNTERS, Counters, StateError};
use crate::{
    error::{Fit, MergeError},
    rule::Slot,
};
use sojourn_codec::{CodecError, Dtype, Layout, TensorSpec, decode};
use sojourn_model::CheckpointLayout;
use sojourn_protocol::{ids::Version, spec::RuleSpec};
use std::ops::Range;

/// The files of one rule and one model: the counters, then each slot's parameters in name order, without gaps.
#[derive(Debug, Clone)]
pub(crate) struct StateLayout {
    rule: RuleSpec,
    layout: Layout,
    specs: Vec<TensorSpec>,
    counters: Range<usize>,
}

/// A state that has been read.
#[derive(Debug, Clone)]
pub(crate) struct StateFile<'a> {
    pub(crate) counters: Counters,
    /// The slots' numbers, none where nothing was kept so far: all are 0 then.
    pub(crate) slots: &'a [u8],
}

impl StateLayout {
    pub(crate) fn new(
        rule: RuleSpec,
        slots: &[Slot],
        model: &CheckpointLayout,
    ) -> Result<Self, CodecError> {
        let count = u64::try_from(Counters::LENGTH).unwrap_or(u64::MAX);
        let mut specs = vec![TensorSpec::new(COUNTERS, Dtype::I64, [count])];
        for slot in slots {
            specs.extend(model.parameters().iter().map(|parameter| TensorSpec {
                name: format!("{}{}", slot.prefix(), parameter.name),
                ..parameter.clone()
            }));
        }
        let layout = Layout::new(specs)?;
        let specs = layout.tensors().iter().map(|(spec, _)| spec.clone()).collect();
        let place = layout.range(COUNTERS).unwrap_or_default();
        let counters = bounds(&place).ok_or_else(|| CodecError::TooLarge(COUNTERS.into()))?;
        Ok(Self { rule, layout, specs, counters })
    }

    /// Size of every state file.
    pub(crate) const fn file_bytes(&self) -> u64 {
        self.layout.file_bytes()
    }

    /// A file with these counters; the slots are still to be written.
    pub(crate) fn begin(&self, counters: &Counters, spare: Vec<u8>) -> Result<Vec<u8>, CodecError> {
        let mut file = begin(&self.layout, spare)?;
        let numbers = counters.to_numbers(&self.rule);
        let place = file.get_mut(self.counters.clone()).unwrap_or_default();
        let (places, _) = place.as_chunks_mut::<8>();
        for (place, number) in places.iter_mut().zip(numbers) {
            *place = number.to_le_bytes();
        }
        Ok(file)
    }

    /// The bytes of all slots in a file of this layout.
    pub(crate) fn slots_mut<'a>(&self, file: &'a mut [u8]) -> &'a mut [u8] {
        file.get_mut(self.counters.end..).unwrap_or_default()
    }

    /// The state of a version; without a file that of one which nothing was merged into.
    pub(crate) fn read<'a>(
        &self,
        file: Option<&'a [u8]>,
        version: Version,
    ) -> Result<StateFile<'a>, MergeError> {
        let Some(file) = file else {
            return Ok(StateFile { counters: Counters::new(version), slots: &[] });
        };
        // Counters first: of another rule's state they say so, where its tensors only differ.
        let tensors = decode(file).map_err(|error| Fit::Codec(error).of("merge state"))?;
        let counters = tensors.iter().find(|tensor| tensor.name == COUNTERS);
        let counters = counters.ok_or(StateError::Format)?;
        let numbers: Vec<i64> = counters.i64s().map_err(|_| StateError::Format)?.collect();
        let counters = Counters::from_numbers(&numbers, &self.rule)?;
        crate::screen::check_tensors(&self.specs, &tensors)
            .map_err(|refusal| Fit::Tensors(Box::new(refusal)).of("merge state"))?;
        if counters.version() != version {
            return Err(
                StateError::Version { expected: version, actual: counters.version() }.into()
            );
        }
        Ok(StateFile { counters, slots: file.get(self.counters.end..).unwrap_or_default() })
    }
}

/// A file of this layout, in spare memory where that suffices; its tensors are still to be written.
pub(crate) fn begin(layout: &Layout, mut spare: Vec<u8>) -> Result<Vec<u8>, CodecError> {
    let too_large = || CodecError::TooLarge("the whole file".into());
    let bytes = usize::try_from(layout.file_bytes()).map_err(|_| too_large())?;
    let mut file = if spare.capacity() < bytes {
        vec![0; bytes]
    } else {
        spare.resize(bytes, 0);
        spare
    };
    for (to, from) in file.iter_mut().zip(layout.header()) {
        *to = *from;
    }
    Ok(file)
}

/// A place in a file as one in memory.
pub(crate) fn bounds(place: &Range<u64>) -> Option<Range<usize>> {
    Some(usize::try_from(place.start).ok()?..usize::try_from(place.end).ok()?)
}

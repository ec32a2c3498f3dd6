//! Where a state's tensors lie in its file.

use super::{COUNTERS, Counters, StateError};
use crate::{
    error::{Fit, MergeError},
    rule::Slot,
};
use sojourn_codec::{CodecError, Dtype, Layout, TensorSpec, decode_header};
use sojourn_model::CheckpointLayout;
use sojourn_protocol::{
    ids::Version,
    quantity::{SaturatingFrom as _, to_u64},
    spec::RuleSpec,
};
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
        let count = u64::saturating_from(Counters::LENGTH);
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
        self.write(counters, &mut file);
        Ok(file)
    }

    /// The part of such a file before its slots.
    pub(crate) fn begin_head(&self, counters: &Counters) -> Vec<u8> {
        let mut head = self.layout.header().to_vec();
        head.resize(self.counters.end, 0);
        self.write(counters, &mut head);
        head
    }

    fn write(&self, counters: &Counters, file: &mut [u8]) {
        let numbers = counters.to_numbers(&self.rule);
        let place = file.get_mut(self.counters.clone()).unwrap_or_default();
        let (places, _) = place.as_chunks_mut::<8>();
        for (place, number) in places.iter_mut().zip(numbers) {
            *place = number.to_le_bytes();
        }
    }

    /// Where that is.
    pub(crate) fn head(&self) -> Range<u64> {
        let end = self.layout.range(COUNTERS).unwrap_or_default().end;
        0..end
    }

    /// Where each of so many slots begins.
    pub(crate) fn slot_starts(&self, slots: usize) -> impl Iterator<Item = u64> + use<> {
        let (start, end) = (self.head().end, self.layout.file_bytes());
        let slots = to_u64(slots);
        let bytes = end.saturating_sub(start) / slots.max(1);
        (0..slots).map(move |slot| start + slot * bytes)
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
        let counters = self.read_head(file, to_u64(file.len()), version)?;
        Ok(StateFile { counters, slots: file.get(self.counters.end..).unwrap_or_default() })
    }

    /// The counters of a version's state, which has this size and begins so.
    pub(crate) fn read_head(
        &self,
        start: &[u8],
        bytes: u64,
        version: Version,
    ) -> Result<Counters, MergeError> {
        // Counters first: of another rule's state they say so, where its tensors only differ.
        let found = header_of(start, bytes).map_err(|error| Fit::Codec(error).of("merge state"))?;
        let mut tensors = found.tensors().iter();
        let place = tensors.find(|(spec, _)| spec.name == COUNTERS && spec.dtype == Dtype::I64);
        let place = place.and_then(|(_, place)| bounds(place));
        let numbers = place.and_then(|place| start.get(place)).ok_or(StateError::Format)?;
        let numbers: Vec<i64> =
            numbers.as_chunks().0.iter().map(|bytes| i64::from_le_bytes(*bytes)).collect();
        let counters = Counters::from_numbers(&numbers, &self.rule)?;
        crate::screen::check_specs(&self.specs, found.tensors().iter().map(|(spec, _)| spec))
            .map_err(|refusal| Fit::Tensors(Box::new(refusal)).of("merge state"))?;
        if counters.version() != version {
            return Err(
                StateError::Version { expected: version, actual: counters.version() }.into()
            );
        }
        Ok(counters)
    }
}

/// The layout that a file of this size says which begins so.
pub(crate) fn header_of(start: &[u8], bytes: u64) -> Result<Layout, CodecError> {
    let layout = decode_header(start)?;
    if layout.file_bytes() != bytes {
        return Err(CodecError::Length { expected: layout.file_bytes(), actual: bytes });
    }
    Ok(layout)
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

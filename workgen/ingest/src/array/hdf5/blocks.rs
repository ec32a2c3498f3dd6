//! The bytes of a dataset, a block of rows after the other.

use super::{
    Array, Dtype,
    elements::{FixedText, Number},
    told,
};
use crate::bounds::{SharedBounds, admit_unpacked};
use hdf5_reader::{Dataset, H5Type, SliceInfo, SliceInfoElem, error::Error};
use sojourn_protocol::quantity::to_u64;
use std::io::{self, Read};

/// Bytes of a block, where rows and chunks are no larger.
const BLOCK: u64 = 4 << 20;
/// Most bytes of a block that has whole chunks.
const CHUNKED_BLOCK: u64 = 64 << 20;

/// Bytes that a text takes in memory at least, while its block is read.
const TEXT_IN_MEMORY: u64 = 64;

/// The rows of a dataset.
pub(super) struct Blocks {
    dataset: Dataset,
    dtype: Dtype,
    rows: u64,
    /// The first row that no block has had.
    next: u64,
    /// Rows of a block.
    most: u64,
    block: Vec<u8>,
    /// Bytes of the block that have been given.
    given: usize,
    bounds: SharedBounds,
}

impl Blocks {
    pub(super) fn new(dataset: Dataset, array: &Array) -> Self {
        let is_text = matches!(array.encoding.dtype, Dtype::Text(_));
        let stride = array.stride().max(if is_text { TEXT_IN_MEMORY } else { 1 });
        let few = (BLOCK / stride).max(1);
        // A chunk that two blocks share would be unpacked twice.
        let chunk = dataset.chunks().and_then(|sides| sides.first().copied()).map_or(1, u64::from);
        let whole = few.div_ceil(chunk.max(1)).saturating_mul(chunk.max(1));
        let most = if whole.saturating_mul(stride) <= CHUNKED_BLOCK { whole } else { few };
        Self {
            dataset,
            dtype: array.encoding.dtype,
            rows: if array.shape.is_empty() { 1 } else { array.rows() },
            next: 0,
            most,
            block: Vec::new(),
            given: 0,
            bounds: SharedBounds::clone(array.file.bounds()),
        }
    }

    /// Reads the next block; an empty one behind the last row.
    fn advance(&mut self) -> io::Result<()> {
        self.block.clear();
        self.given = 0;
        let end = self.next.saturating_add(self.most).min(self.rows);
        if end <= self.next {
            return Ok(());
        }
        let mut selected = SliceInfo::all(self.dataset.ndim());
        if let Some(rows) = selected.selections.first_mut() {
            *rows = SliceInfoElem::Slice { start: self.next, end, step: 1 };
        }
        let (dataset, into) = (&self.dataset, &mut self.block);
        told(|| match self.dtype {
            Dtype::Bool | Dtype::U8 | Dtype::I8 => numbers::<1>(dataset, &selected, into),
            Dtype::U16 | Dtype::I16 | Dtype::F16 | Dtype::Bf16 => {
                numbers::<2>(dataset, &selected, into)
            }
            Dtype::U32 | Dtype::I32 | Dtype::F32 => numbers::<4>(dataset, &selected, into),
            Dtype::U64 | Dtype::I64 | Dtype::F64 => numbers::<8>(dataset, &selected, into),
            Dtype::Text(_) | Dtype::Utf32(_) => {
                each(dataset, &selected, |FixedText(text)| into.extend_from_slice(text))
            }
        })?;
        self.next = end;
        admit_unpacked(&self.bounds, to_u64(self.block.len()))
    }
}

fn numbers<const N: usize>(
    dataset: &Dataset,
    selected: &SliceInfo,
    into: &mut Vec<u8>,
) -> Result<(), Error> {
    each(dataset, selected, |Number::<N>(bytes)| into.extend_from_slice(bytes))
}

fn each<T: H5Type>(
    dataset: &Dataset,
    selected: &SliceInfo,
    take: impl FnMut(&T),
) -> Result<(), Error> {
    dataset.read_slice::<T>(selected)?.iter().for_each(take);
    Ok(())
}

impl Read for Blocks {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.given >= self.block.len() {
            self.advance()?;
        }
        let mut left = self.block.get(self.given..).unwrap_or_default();
        let count = left.read(buffer)?;
        self.given += count;
        Ok(count)
    }
}

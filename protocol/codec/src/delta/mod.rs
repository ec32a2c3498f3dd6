//! Deltas: a checkpoint as its lossless difference from another one. Pure: bytes in, bytes out.
//!
//! Both are canonical files with the same header. Floats are subtracted as ordered integers, so that a small step over
//! a power of two stays small. Each number is split where its noise begins: the upper part becomes a symbol of one
//! byte, which compresses well, and the rest is stored as it is. Each tensor chooses how its numbers are compared with
//! the base's, because some, such as a momentum, have little in common with it.
//!
//! ```text
//! | `SJDELTA` | version: u8 = 1 | SHA-256 of base | SHA-256 of result | bytes of result: u64 |
//! | bits | 3 streams | coding of each tensor | size of bits: u64 | sizes of streams: 3 x u64 |
//!
//! bits    what follows each symbol, tensor after tensor, the lowest bits first, in words of 32
//! coding  kind: u8, offset: u8, where the kind is 1 its bias: u32   kinds  0: step   1: ratio   2: plain
//! stream  the symbols of all tensors of one kind: a zstd frame, or nothing where there are none
//! ```
//!
//! All is little-endian; whatever a tensor's type, its numbers are its words of 32 bits. Memory: [`encode`]
//! and [`decode`] hold a byte for each number, the symbols, beside their arguments and what they return.
//! No size that a delta declares is believed before the base's own sizes allow it.

mod bits;
mod choice;
mod coding;
mod error;
mod read;
#[cfg(test)]
mod tests;
mod write;

pub use error::DeltaError;
pub use read::{Head, decode};
pub use write::{Encoded, choose, encode};

use crate::{CodecError, Dtype, TensorSpec, decode::decode_header, layout::Layout};
use sojourn_protocol::quantity::{to_u64, to_usize};
use std::ops::Range;

const MAGIC: &[u8; 7] = b"SJDELTA";
const VERSION: u8 = 1;

/// A checkpoint and the digest that names it. Whoever makes one vouches that they belong together.
#[derive(Debug, Clone, Copy)]
pub struct Named<'a> {
    /// SHA-256 of the bytes.
    pub digest: [u8; 32],
    /// A canonical file.
    pub bytes: &'a [u8],
}

/// The layout of a base, which must be a whole file without elements of fewer than four bytes: no checkpoint has any.
fn layout_of(base: &[u8]) -> Result<Layout, DeltaError> {
    let layout = decode_header(base).map_err(DeltaError::Base)?;
    let actual = to_u64(base.len());
    let expected = layout.file_bytes();
    if expected != actual {
        return Err(DeltaError::Base(CodecError::Length { expected, actual }));
    }
    // Differences are of four bytes each.
    let is_short = |spec: &TensorSpec| spec.dtype.bytes() < 4;
    if let Some((spec, _)) = layout.tensors().iter().find(|(spec, _)| is_short(spec)) {
        let (tensor, expected) = (spec.name.clone(), Dtype::F32);
        return Err(DeltaError::Base(CodecError::WrongDtype {
            tensor,
            expected,
            actual: spec.dtype,
        }));
    }
    Ok(layout)
}

/// Where the tensors' bytes lie in a file that is in memory, hence can be counted by `usize`.
fn places(layout: &Layout) -> impl Iterator<Item = Range<usize>> {
    let at = |place| to_usize(place);
    layout.tensors().iter().map(move |(_, range)| at(range.start)..at(range.end))
}

/// Takes so many bytes from the front.
fn take<'a, const N: usize>(bytes: &mut &'a [u8]) -> Option<&'a [u8; N]> {
    let (first, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(first)
}

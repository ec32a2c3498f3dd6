//! Reading a delta back. Never panics, whatever the bytes; what comes out has the declared digest.

use super::{
    DeltaError, MAGIC, Named, VERSION,
    bits::BitReader,
    coding::{Coding, Kind},
    layout_of, places, take,
};
use sha2::{Digest as _, Sha256};

/// The header of a delta.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// SHA-256 of the base that it needs.
    pub base: [u8; 32],
    /// SHA-256 of what it gives.
    pub result: [u8; 32],
    /// Length of what it gives.
    pub bytes: u64,
}

impl Head {
    /// Bytes of a head, which is all that [`Head::read`] looks at.
    pub const BYTES: usize = 80;

    /// Reads the head of a delta whose rest need not be there yet.
    ///
    /// # Errors
    /// Too few bytes, bytes that are no delta, and unknown versions.
    pub fn read(delta: &[u8]) -> Result<Self, DeltaError> {
        Self::split(delta).map(|(head, _)| head)
    }

    fn split(mut delta: &[u8]) -> Result<(Self, &[u8]), DeltaError> {
        let rest = &mut delta;
        if take(rest) != Some(MAGIC) {
            return Err(DeltaError::NotADelta);
        }
        let short = || DeltaError::Damaged("its head is cut off");
        let [version] = *take(rest).ok_or_else(short)?;
        if version != VERSION {
            return Err(DeltaError::Version(version));
        }
        let base = *take(rest).ok_or_else(short)?;
        let result = *take(rest).ok_or_else(short)?;
        let bytes = u64::from_le_bytes(*take(rest).ok_or_else(short)?);
        Ok((Self { base, result, bytes }, delta))
    }
}

/// The checkpoint that a delta makes of its base, of at most `limit` bytes. Its digest is
/// [`Head::result`]; whether that is the one that was asked for is for the caller to say.
///
/// # Errors
/// A delta of another base, one that declares more than `limit` or another length than the base's, a damaged
/// one, one whose result isn't what it declares; a base that is no canonical file.
pub fn decode(base: Named<'_>, delta: &[u8], limit: u64) -> Result<Vec<u8>, DeltaError> {
    let (head, body) = Head::split(delta)?;
    if head.base != base.digest {
        return Err(DeltaError::OtherBase);
    }
    let layout = layout_of(base.bytes)?;
    let allowed = layout.file_bytes().min(limit);
    if head.bytes > allowed || head.bytes != layout.file_bytes() {
        return Err(DeltaError::Length { declared: head.bytes, allowed });
    }
    let ([bits, streams @ ..], mut codings) =
        parts(body).ok_or(DeltaError::Damaged("it is cut off"))?;
    let mut tensors = Vec::with_capacity(layout.tensors().len());
    let mut numbers = [0usize; Kind::COUNT];
    for place in places(&layout) {
        let coding = Coding::read(&mut codings).ok_or(DeltaError::Damaged("a coding is none"))?;
        if let Some(count) = numbers.get_mut(usize::from(coding.kind.index())) {
            *count += place.len() / 4;
        }
        tensors.push((place, coding));
    }
    if !codings.is_empty() {
        return Err(DeltaError::Damaged("more tensors have codings than there are"));
    }
    let mut symbols: [Vec<u8>; Kind::COUNT] = Default::default();
    for ((symbols, stream), numbers) in symbols.iter_mut().zip(streams).zip(numbers) {
        *symbols = unpack(stream, numbers)?;
    }
    let mut symbols = symbols.each_ref().map(Vec::as_slice);

    // Begun as the base, whose numbers the result's replace one by one.
    let mut result = base.bytes.to_vec();
    let mut bits = BitReader::new(bits);
    for (place, coding) in tensors {
        let (numbers, _) = result.get_mut(place).unwrap_or_default().as_chunks_mut();
        let symbols = symbols.get_mut(usize::from(coding.kind.index()));
        let symbols = symbols.and_then(|symbols| symbols.split_off(..numbers.len()));
        for (number, symbol) in numbers.iter_mut().zip(symbols.unwrap_or_default()) {
            let base = u32::from_le_bytes(*number);
            *number = coding.number(base, *symbol, &mut bits).to_le_bytes();
        }
    }
    if !bits.ended() {
        return Err(DeltaError::Damaged("its bits don't fit"));
    }
    let digest: [u8; 32] = Sha256::digest(&result).into();
    if digest != head.result {
        return Err(DeltaError::OtherResult);
    }
    Ok(result)
}

/// The parts whose sizes are at the end, and the codings, which are what is left.
fn parts(body: &[u8]) -> Option<([&[u8]; 1 + Kind::COUNT], &[u8])> {
    const SIZES: usize = 8 * (1 + Kind::COUNT);
    let (mut rest, sizes) = body.split_last_chunk::<SIZES>()?;
    let mut parts = [[].as_slice(); 1 + Kind::COUNT];
    for (part, size) in parts.iter_mut().zip(sizes.as_chunks().0) {
        *part = rest.split_off(..usize::try_from(u64::from_le_bytes(*size)).ok()?)?;
    }
    Some((parts, rest))
}

/// A stream's symbols, of which there must be so many.
fn unpack(stream: &[u8], numbers: usize) -> Result<Vec<u8>, DeltaError> {
    if numbers == 0 && stream.is_empty() {
        return Ok(Vec::new());
    }
    // Into a buffer of the right size, which is zstd's window too: no frame can ask for more.
    match zstd::bulk::decompress(stream, numbers) {
        Ok(symbols) if symbols.len() == numbers => Ok(symbols),
        _ => Err(DeltaError::Damaged("a stream doesn't unpack to its symbols")),
    }
}

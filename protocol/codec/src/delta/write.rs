//! Making a delta, or the smaller of a delta and the whole.

use super::{
    DeltaError, Head, MAGIC, Named, VERSION, bits::BitWriter, choice, coding::Kind, layout_of,
    places,
};
use sojourn_protocol::quantity::to_u64;
use zstd::bulk::Compressor;

/// Symbols hardly repeat: more than zstd's entropy coder finds nothing, and takes longer.
const SYMBOL_LEVEL: i32 = 1;
/// Of a checkpoint sent whole; higher levels find no more in floats.
const WHOLE_LEVEL: i32 = 1;

/// A checkpoint as it goes over the wire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Encoded {
    /// The file in one zstd frame.
    Whole(Vec<u8>),
    /// A delta for [`super::decode`].
    Delta(Vec<u8>),
}

impl Encoded {
    /// The bytes to send.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Whole(bytes) | Self::Delta(bytes) => bytes,
        }
    }
}

/// The smaller of a checkpoint's delta and the whole, compressed; the whole where there is no base, or
/// one with other tensors.
///
/// # Errors
/// As [`encode`], but for a base with other tensors.
pub fn choose(base: Option<Named<'_>>, new: Named<'_>) -> Result<Encoded, DeltaError> {
    let delta = match base.map(|base| encode(base, new)) {
        None | Some(Err(DeltaError::OtherTensors)) => None,
        Some(delta) => Some(delta?),
    };
    let whole = zstd::bulk::compress(new.bytes, WHOLE_LEVEL).map_err(DeltaError::Zstd)?;
    Ok(match delta {
        Some(delta) if delta.len() < whole.len() => Encoded::Delta(delta),
        _ => Encoded::Whole(whole),
    })
}

/// The delta from `base` to `new`.
///
/// # Errors
/// [`DeltaError::OtherTensors`] where the two don't have the same header and length; a base that is no
/// canonical file; want of memory.
pub fn encode(base: Named<'_>, new: Named<'_>) -> Result<Vec<u8>, DeltaError> {
    let layout = layout_of(base.bytes)?;
    if new.bytes.len() != base.bytes.len() || !new.bytes.starts_with(layout.header()) {
        return Err(DeltaError::OtherTensors);
    }
    let mut out = Vec::with_capacity(new.bytes.len());
    out.extend_from_slice(MAGIC);
    out.push(VERSION);
    out.extend_from_slice(&base.digest);
    out.extend_from_slice(&new.digest);
    out.extend_from_slice(&layout.file_bytes().to_le_bytes());

    let mut bits = BitWriter::behind(out);
    let mut codings = Vec::new();
    let mut symbols: [Vec<u8>; Kind::COUNT] = Default::default();
    for place in places(&layout) {
        let base = base.bytes.get(place.clone()).unwrap_or_default().as_chunks().0;
        let new = new.bytes.get(place).unwrap_or_default().as_chunks().0;
        let coding = choice::cheapest(base, new);
        coding.write(&mut codings);
        if let Some(symbols) = symbols.get_mut(usize::from(coding.kind.index())) {
            symbols.extend(base.iter().zip(new).map(|(base, new)| {
                let code = coding.code(u32::from_le_bytes(*base), u32::from_le_bytes(*new));
                bits.put(code.bits, code.width);
                code.symbol
            }));
        }
    }
    let mut out = bits.finish();
    let mut sizes = vec![out.len() - Head::BYTES];
    let mut compressor = Compressor::new(SYMBOL_LEVEL).map_err(DeltaError::Zstd)?;
    for symbols in symbols {
        let before = out.len();
        if !symbols.is_empty() {
            out.append(&mut compressor.compress(&symbols).map_err(DeltaError::Zstd)?);
        }
        sizes.push(out.len() - before);
    }
    out.append(&mut codings);
    for size in sizes {
        out.extend(to_u64(size).to_le_bytes());
    }
    Ok(out)
}

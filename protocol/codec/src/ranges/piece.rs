//! One range: its bytes as they are stored, and back.

use sojourn_protocol::{
    digest::{BlobRef, Digest},
    quantity::{to_u64, to_usize},
};
use std::io::{self, Read as _};

/// The most bytes of one piece.
pub const MAX_PIECE_BYTES: u64 = 1 << 30;
/// Weights are noise but for their exponents, which the fastest level finds.
const LEVEL: i32 = 1;
/// Room that is made before anything has come, for each packed byte and at least.
const ROOM: (usize, usize) = (2, 1 << 20);

/// A range of a blob, and where its bytes are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// The name under which it is stored: letters, digits and dashes.
    pub name: String,
    /// The digest and size of the range's raw bytes.
    pub raw: BlobRef,
    /// The size of the piece as it is stored, in bytes.
    pub packed: u64,
}

/// Why stored bytes aren't a piece's.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says it")]
pub enum PieceError {
    #[error("the range's bytes can't be unpacked")]
    Zstd(#[source] io::Error),
    #[error("the range has {actual} bytes or more, its index says {expected}")]
    Length { expected: u64, actual: u64 },
    #[error("the range's bytes are `{found}`, not `{expected}`")]
    Digest { expected: Digest, found: Digest },
}

/// Raw bytes as they are stored.
///
/// # Errors
/// Where zstd finds no memory.
pub fn pack(raw: &[u8]) -> io::Result<Vec<u8>> {
    zstd::bulk::compress(raw, LEVEL)
}

impl Piece {
    /// The raw bytes of what is stored. However much the index promises, no more memory is taken than the bytes that
    /// are there can fill.
    ///
    /// # Errors
    /// Bytes that aren't the piece's.
    pub fn unpack(&self, packed: &[u8]) -> Result<Vec<u8>, PieceError> {
        let expected = self.raw.bytes;
        let (times, least) = ROOM;
        let room = packed.len().saturating_mul(times).max(least);
        let mut raw = Vec::with_capacity(room.min(to_usize(expected)));
        let decoder = zstd::stream::read::Decoder::with_buffer(packed).map_err(PieceError::Zstd)?;
        let mut decoder = decoder.take(expected.saturating_add(1));
        decoder.read_to_end(&mut raw).map_err(PieceError::Zstd)?;
        let actual = to_u64(raw.len());
        if actual != expected {
            return Err(PieceError::Length { expected, actual });
        }
        let found = Digest::of(&raw);
        if found != self.raw.sha256 {
            return Err(PieceError::Digest { expected: self.raw.sha256, found });
        }
        Ok(raw)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn piece(raw: &[u8], packed: &[u8]) -> Piece {
        let raw = BlobRef { sha256: Digest::of(raw), bytes: raw.len() as u64 };
        Piece { name: "a-1".into(), raw, packed: packed.len() as u64 }
    }

    proptest! {
        #[test]
        fn bytes_come_back(raw in prop::collection::vec(any::<u8>(), 0..5000), zeros in 0usize..100_000) {
            let raw = [raw, vec![0; zeros]].concat();
            let packed = pack(&raw).unwrap();
            prop_assert_eq!(piece(&raw, &packed).unpack(&packed).unwrap(), raw);
        }

        #[test]
        fn other_bytes_are_refused(
            raw in prop::collection::vec(any::<u8>(), 1..500),
            at in any::<prop::sample::Index>(),
            to in any::<u8>(),
        ) {
            let good = pack(&raw).unwrap();
            let piece = piece(&raw, &good);
            let mut bad = good.clone();
            *at.get_mut(&mut bad) = to;
            // A header may say the same in other bits; the bytes are right or refused.
            if let Ok(same) = piece.unpack(&bad) {
                prop_assert_eq!(same, raw);
            }
            prop_assert!(piece.unpack(&good[..at.index(good.len())]).is_err());
        }
    }

    #[test]
    fn a_promise_of_many_bytes_takes_no_memory_and_few_that_unpack_to_many_are_cut() {
        let packed = pack(b"few").unwrap();
        let few = Piece {
            raw: BlobRef { sha256: Digest::of(b"few"), bytes: u64::MAX },
            ..piece(b"few", &packed)
        };
        let refused = few.unpack(&packed).unwrap_err();
        assert!(matches!(refused, PieceError::Length { actual: 3, .. }), "{refused}");
        let many = pack(&vec![0; 50 << 20]).unwrap();
        let refused = piece(b"few", &many).unpack(&many).unwrap_err();
        assert!(matches!(refused, PieceError::Length { expected: 3, actual: 4 }), "{refused}");
        let refused = piece(b"few", &packed).unpack(&pack(b"new").unwrap()).unwrap_err();
        assert!(matches!(refused, PieceError::Digest { .. }), "{refused}");
    }
}

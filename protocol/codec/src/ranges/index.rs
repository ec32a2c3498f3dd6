//! Which ranges a blob consists of.

use super::piece::{MAX_PIECE_BYTES, Piece};
use sojourn_protocol::digest::{BlobRef, Digest};
use std::{fmt::Write as _, ops::Range};

/// The beginning of the first line; the number is the format's version.
const FIRST: &str = "sojourn ranges 1 ";
const LAST: &str = "end ";
const MAX_NAME_LENGTH: usize = 100;

/// A blob's pieces, which together are all of its bytes, in order; none is empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Index {
    blob: BlobRef,
    pieces: Vec<Piece>,
}

/// Why pieces are no blob, or bytes no index.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says it")]
pub enum IndexError {
    #[error("the index is damaged")]
    Damaged,
    #[error("not an index that this version of Sojourn can read")]
    Format,
    #[error("`{0}` can't be a range of a blob")]
    Piece(String),
    #[error("the ranges have {actual} bytes, the blob has {expected}")]
    Length { expected: u64, actual: u64 },
}

impl Index {
    /// The index of a blob that consists of these pieces.
    ///
    /// # Errors
    /// Pieces that are empty, too large, named by what is no name, or not as many bytes as the blob.
    pub fn new(blob: BlobRef, pieces: Vec<Piece>) -> Result<Self, IndexError> {
        let mut actual = 0u64;
        for Piece { name, raw, .. } in &pieces {
            let is_name = |name: &str| {
                let plain = |symbol: char| symbol.is_ascii_alphanumeric() || symbol == '-';
                (1..=MAX_NAME_LENGTH).contains(&name.len()) && name.chars().all(plain)
            };
            if !is_name(name) || !(1..=MAX_PIECE_BYTES).contains(&raw.bytes) {
                return Err(IndexError::Piece(name.chars().take(MAX_NAME_LENGTH).collect()));
            }
            actual = actual.saturating_add(raw.bytes);
        }
        if actual != blob.bytes {
            return Err(IndexError::Length { expected: blob.bytes, actual });
        }
        Ok(Self { blob, pieces })
    }

    /// The blob.
    #[must_use]
    pub const fn blob(&self) -> BlobRef {
        self.blob
    }

    /// The pieces, in order.
    #[must_use]
    pub fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// The pieces that have bytes of this range, each with those of its own bytes that lie in it.
    pub fn within(&self, range: Range<u64>) -> impl Iterator<Item = (&Piece, Range<u64>)> {
        let mut end = 0u64;
        self.pieces.iter().filter_map(move |piece| {
            let start = end;
            end = start.saturating_add(piece.raw.bytes);
            let (from, to) = (range.start.max(start), range.end.min(end));
            (from < to).then(|| (piece, from - start..to - start))
        })
    }

    /// The index as it is stored.
    #[must_use]
    pub fn write(&self) -> String {
        let BlobRef { sha256, bytes } = self.blob;
        let mut text = format!("{FIRST}{sha256} {bytes}\n");
        for Piece { name, raw, packed } in &self.pieces {
            // Writing to a text doesn't fail.
            let _ = writeln!(text, "{name} {} {packed} {}", raw.bytes, raw.sha256);
        }
        let digest = Digest::of(text.as_bytes());
        text + &format!("{LAST}{digest}\n")
    }

    /// Reads an index.
    ///
    /// # Errors
    /// Whatever [`Index::write`] hasn't written.
    pub fn read(bytes: &[u8]) -> Result<Self, IndexError> {
        let text = str::from_utf8(bytes).map_err(|_| IndexError::Format)?;
        if !text.starts_with(FIRST) {
            return Err(IndexError::Format);
        }
        let damaged = || IndexError::Damaged;
        let lines = text.strip_suffix('\n').ok_or_else(damaged)?;
        let (body, last) = lines.rsplit_once('\n').ok_or_else(damaged)?;
        let body = text.get(..body.len().saturating_add(1)).ok_or_else(damaged)?;
        let says = last.strip_prefix(LAST).and_then(|digest| digest.parse().ok());
        if says != Some(Digest::of(body.as_bytes())) {
            return Err(IndexError::Damaged);
        }
        let mut lines = body.lines();
        let first = lines.next().and_then(|line| line.strip_prefix(FIRST)).ok_or_else(damaged)?;
        let (sha256, bytes) = first.split_once(' ').ok_or_else(damaged)?;
        let blob = sha256.parse().ok().zip(bytes.parse().ok());
        let (sha256, bytes) = blob.ok_or_else(damaged)?;
        let pieces = lines.map(|line| piece_of(line).ok_or_else(damaged));
        Self::new(BlobRef { sha256, bytes }, pieces.collect::<Result<_, _>>()?)
    }
}

fn piece_of(line: &str) -> Option<Piece> {
    let mut words = line.split(' ');
    let name = words.next()?.to_owned();
    let (bytes, packed) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    let sha256 = words.next()?.parse().ok()?;
    words.next().is_none().then_some(Piece { name, raw: BlobRef { sha256, bytes }, packed })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn index() -> impl Strategy<Value = Index> {
        let piece = ("[a-zA-Z0-9-]{1,20}", 1u64..5000, any::<u64>(), any::<[u8; 32]>());
        let piece = piece.prop_map(|(name, bytes, packed, digest)| {
            let raw = BlobRef { sha256: Digest(digest), bytes };
            Piece { name, raw, packed }
        });
        (any::<[u8; 32]>(), prop::collection::vec(piece, 0..20)).prop_map(|(digest, pieces)| {
            let bytes = pieces.iter().map(|piece| piece.raw.bytes).sum();
            Index::new(BlobRef { sha256: Digest(digest), bytes }, pieces).unwrap()
        })
    }

    proptest! {
        #[test]
        fn an_index_is_read_as_it_was_written(index in index()) {
            prop_assert_eq!(Index::read(index.write().as_bytes()), Ok(index));
        }

        #[test]
        fn any_other_byte_is_found_out(
            index in index(),
            at in any::<prop::sample::Index>(),
            by in 1u8..,
        ) {
            let written = index.write().into_bytes();
            let mut changed = written.clone();
            *at.get_mut(&mut changed) ^= by;
            prop_assert!(Index::read(&changed).is_err());
            prop_assert!(Index::read(&written[..at.index(written.len())]).is_err());
            prop_assert!(Index::read(&[&written[..], b"\n"].concat()).is_err());
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Index::read(&bytes);
            let _ = Index::read(&[FIRST.as_bytes(), &bytes].concat());
        }

        #[test]
        fn a_range_is_in_the_pieces_that_have_its_bytes(index in index(), a: u16, b: u16) {
            let [a, b] = [a, b].map(|end| u64::from(end) % (index.blob().bytes + 1));
            let range = a.min(b)..a.max(b);
            let mut at = 0;
            let mut found = Vec::new();
            for piece in index.pieces() {
                let within = (at..at + piece.raw.bytes).filter(|byte| range.contains(byte));
                found.extend(within.map(|byte| (piece, byte - at)));
                at += piece.raw.bytes;
            }
            let says = index.within(range).flat_map(|(piece, of)| of.map(move |byte| (piece, byte)));
            prop_assert!(says.collect::<Vec<_>>() == found);
        }
    }

    #[test]
    fn pieces_that_are_no_blob_are_refused() {
        let of = |bytes| BlobRef { sha256: Digest([7; 32]), bytes };
        let piece = |name: &str, bytes| Piece { name: name.into(), raw: of(bytes), packed: 1 };
        let wrong = Index::new(of(5), vec![piece("a", 2), piece("b", 2)]).unwrap_err();
        assert_eq!(wrong, IndexError::Length { expected: 5, actual: 4 });
        for name in ["", "../a", "a/b", "a b", "a\n", &"a".repeat(101)] {
            let wrong = Index::new(of(1), vec![piece(name, 1)]);
            assert!(matches!(wrong, Err(IndexError::Piece(_))), "{name}");
        }
        for bytes in [0, MAX_PIECE_BYTES + 1] {
            let wrong = Index::new(of(bytes), vec![piece("a", bytes)]);
            assert!(matches!(wrong, Err(IndexError::Piece(_))), "{bytes}");
        }
        let vast = vec![piece("a", MAX_PIECE_BYTES); 3];
        let wrong = Index::new(of(1), vast).unwrap_err();
        assert_eq!(wrong, IndexError::Length { expected: 1, actual: 3 << 30 });
    }

    /// Of format 1, as it lies in stores.
    #[test]
    fn an_old_index_is_read() {
        let old = concat!(
            "sojourn ranges 1 ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad 3\n",
            "lease-7-0 2 11 fb8e20fc2e4c3f248c60c39bd652f3c1347298bb977b8b4d5903b85055620603\n",
            "lease-7-1 1 10 2e7d2c03a9507ae265ecf5b5356885a53393a2029d241394997265a1a25aefc6\n",
        );
        let old = format!("{old}end {}\n", Digest::of(old.as_bytes()));
        let index = Index::read(old.as_bytes()).unwrap();
        assert_eq!(index.blob(), BlobRef { sha256: Digest::of(b"abc"), bytes: 3 });
        let pieces: Vec<(&str, BlobRef)> =
            index.pieces().iter().map(|piece| (piece.name.as_str(), piece.raw)).collect();
        let raw = |bytes: &[u8]| BlobRef { sha256: Digest::of(bytes), bytes: bytes.len() as u64 };
        assert_eq!(pieces, [("lease-7-0", raw(b"ab")), ("lease-7-1", raw(b"c"))]);
        assert_eq!(index.write(), old);
    }
}

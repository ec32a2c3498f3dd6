//! zstd whose output is bounded by a declared size: a few bytes that unpack to a disk full of
//! zeros stop at the size that was declared and checked before the first of them was read.

use crate::error::CodecError;
use std::io::{self, BufRead, BufReader, Read};

/// The level that checkpoints are packed with: floats gain little from more.
const LEVEL: i32 = 3;
/// The largest window that a stream may ask for, as a power of two: 8 MiB of memory.
const WINDOW_LOG_MAX: u32 = 23;

/// Unpacks a zstd stream to exactly the declared number of bytes.
///
/// Reading fails with [`io::ErrorKind::InvalidData`] and a [`CodecError`] inside as soon as the
/// stream goes on after the declared size, ends before it, or is no zstd. Memory is bounded by the
/// window limit (8 MiB), whatever the stream asks for.
pub struct BoundedDecoder<'a, R: BufRead> {
    inner: zstd::stream::read::Decoder<'a, R>,
    declared: u64,
    taken: u64,
}

impl<R: Read> BoundedDecoder<'_, BufReader<R>> {
    /// Unpacks `packed`, which was declared to hold `declared` bytes.
    ///
    /// # Errors
    /// Where zstd can't start for want of memory.
    pub fn new(packed: R, declared: u64) -> io::Result<Self> {
        let mut inner = zstd::stream::read::Decoder::new(packed)?;
        inner.window_log_max(WINDOW_LOG_MAX)?;
        Ok(Self { inner, declared, taken: 0 })
    }
}

impl<R: BufRead> Read for BoundedDecoder<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        let left = self.declared - self.taken;
        if left == 0 {
            // All is here; one byte more would be too many.
            return match self.unpack(&mut [0])? {
                0 => Ok(0),
                _ => Err(invalid(CodecError::OverDeclared { declared: self.declared })),
            };
        }
        let room = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let count = self.unpack(buffer.get_mut(..room).unwrap_or_default())?;
        if count == 0 {
            let (declared, actual) = (self.declared, self.taken);
            return Err(invalid(CodecError::UnderDeclared { declared, actual }));
        }
        self.taken += u64::try_from(count).unwrap_or(left);
        Ok(count)
    }
}

impl<R: BufRead> BoundedDecoder<'_, R> {
    fn unpack(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.inner.read(buffer).map_err(|error| match error.kind() {
            // zstd's own complaints come as `Other`, a cut-off stream as `UnexpectedEof`; whatever
            // else there is comes from the reader below.
            io::ErrorKind::Other | io::ErrorKind::UnexpectedEof => {
                invalid(CodecError::Zstd(error.to_string()))
            }
            _ => error,
        })
    }
}

fn invalid(error: CodecError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

/// Unpacks `packed` to exactly `declared` bytes; memory grows with what comes, not with what is declared.
///
/// # Errors
/// [`CodecError::OverDeclared`], [`CodecError::UnderDeclared`] or [`CodecError::Zstd`].
pub fn decompress_bounded(packed: &[u8], declared: u64) -> Result<Vec<u8>, CodecError> {
    let as_codec = |error: io::Error| {
        let text = error.to_string();
        error.downcast::<CodecError>().unwrap_or(CodecError::Zstd(text))
    };
    let mut decoder = BoundedDecoder::new(packed, declared).map_err(as_codec)?;
    let mut bytes = Vec::new();
    decoder.read_to_end(&mut bytes).map_err(as_codec)?;
    Ok(bytes)
}

/// Packs bytes so that [`BoundedDecoder`] unpacks them.
///
/// # Errors
/// [`CodecError::Zstd`] for want of memory.
pub fn compress(bytes: &[u8]) -> Result<Vec<u8>, CodecError> {
    zstd::bulk::compress(bytes, LEVEL).map_err(|error| CodecError::Zstd(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_bomb_stops_at_its_declared_size() {
        let bomb = compress(&vec![0u8; 64 << 20]).unwrap();
        assert!(bomb.len() < 16 << 10);
        let mut decoder = BoundedDecoder::new(bomb.as_slice(), 1000).unwrap();
        let mut taken = 0;
        let mut buffer = [0u8; 256];
        let error = loop {
            match decoder.read(&mut buffer) {
                Ok(count) => taken += count,
                Err(error) => break error,
            }
        };
        assert_eq!(taken, 1000);
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        assert_eq!(
            decompress_bounded(&bomb, 1000),
            Err(CodecError::OverDeclared { declared: 1000 })
        );
    }

    #[test]
    fn a_stream_that_ends_early_or_is_none_is_refused() {
        let packed = compress(b"hello").unwrap();
        let early = CodecError::UnderDeclared { declared: 6, actual: 5 };
        assert_eq!(decompress_bounded(&packed, 6), Err(early));
        assert!(matches!(
            decompress_bounded(&packed[..packed.len() - 1], 5),
            Err(CodecError::Zstd(_))
        ));
        assert!(matches!(decompress_bounded(b"no zstd at all", 5), Err(CodecError::Zstd(_))));
        let mut altered = packed.clone();
        altered.extend_from_slice(b"and garbage");
        assert!(matches!(decompress_bounded(&altered, 5), Err(CodecError::Zstd(_))));
        assert_eq!(decompress_bounded(&compress(b"").unwrap(), 0).unwrap(), b"");
    }

    #[test]
    fn a_window_over_the_limit_is_refused() {
        let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 1).unwrap();
        encoder.window_log(27).unwrap();
        std::io::Write::write_all(&mut encoder, &[7; 100]).unwrap();
        let packed = encoder.finish().unwrap();
        assert!(matches!(decompress_bounded(&packed, 100), Err(CodecError::Zstd(_))));
    }

    proptest! {
        #[test]
        fn what_is_packed_unpacks(bytes in prop::collection::vec(any::<u8>(), 0..5000)) {
            let packed = compress(&bytes).unwrap();
            prop_assert_eq!(decompress_bounded(&packed, bytes.len() as u64).unwrap(), bytes);
        }

        #[test]
        fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = decompress_bounded(&bytes, 100);
        }
    }
}

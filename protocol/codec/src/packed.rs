//! A blob as one zstd frame: how shards travel, and how a cache keeps them to save room.
//!
//! A reader knows the blob's size beforehand, and unpacks no more than that.

use sojourn_protocol::quantity::to_u64;
use std::io;
use zstd::stream::raw::{DParameter, Decoder, InBuffer, Operation as _, OutBuffer};

/// A frame is worth it where it saves one part in so many of the bytes.
const LEAST_SAVED_PART: u64 = 10;
/// zstd's default level. It packs 200 MB/s and more on one core.
const LEVEL: i32 = zstd::DEFAULT_COMPRESSION_LEVEL;
/// The largest window that a frame may ask for, as a power of two: 8 MiB. [`LEVEL`] needs no more.
const MAX_WINDOW_LOG: u32 = 23;
/// Bytes that are unpacked at once.
const UNPACKED_AT_ONCE: usize = 128 << 10;

/// Raw bytes as one frame; `None` where that saves less than a tenth, or zstd finds no memory.
#[must_use]
pub fn pack(raw: &[u8]) -> Option<Vec<u8>> {
    let bytes = to_u64(raw.len());
    let most = bytes - bytes.div_ceil(LEAST_SAVED_PART);
    let packed = zstd::bulk::compress(raw, LEVEL).ok()?;
    (to_u64(packed.len()) <= most).then_some(packed)
}

/// Why packed bytes can't be unpacked.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says it")]
pub enum UnpackError {
    #[error("the bytes are no zstd frame")]
    Zstd(#[source] io::Error),
    #[error("the bytes unpack to more than {bytes} bytes")]
    TooLong { bytes: u64 },
    #[error("the unpacked bytes can't be written")]
    Sink(#[source] io::Error),
}

/// Unpacks a frame as its bytes come.
pub struct Unpacker {
    decoder: Decoder<'static>,
    bytes: u64,
    done: u64,
    buffer: Vec<u8>,
}

impl std::fmt::Debug for Unpacker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Unpacker").field("done", &self.done).finish_non_exhaustive()
    }
}

impl Unpacker {
    /// For a blob of so many raw bytes.
    ///
    /// # Errors
    /// Where zstd finds no memory.
    pub fn new(bytes: u64) -> io::Result<Self> {
        let mut decoder = Decoder::new()?;
        decoder.set_parameter(DParameter::WindowLogMax(MAX_WINDOW_LOG))?;
        Ok(Self { decoder, bytes, done: 0, buffer: vec![0; UNPACKED_AT_ONCE] })
    }

    /// Takes the next packed bytes, and gives what they unpack to.
    ///
    /// # Errors
    /// Bytes that are no frame, or unpack to more than the blob has; an error of `sink`.
    pub fn push(
        &mut self,
        packed: &[u8],
        sink: &mut dyn FnMut(&[u8]) -> io::Result<()>,
    ) -> Result<(), UnpackError> {
        let mut input = InBuffer::around(packed);
        loop {
            let mut output = OutBuffer::around(self.buffer.as_mut_slice());
            let before = input.pos();
            self.decoder.run(&mut input, &mut output).map_err(UnpackError::Zstd)?;
            let made = output.as_slice();
            self.done = self.done.saturating_add(to_u64(made.len()));
            if self.done > self.bytes {
                return Err(UnpackError::TooLong { bytes: self.bytes });
            }
            let (is_idle, is_full) =
                (made.is_empty() && input.pos() == before, made.len() == UNPACKED_AT_ONCE);
            sink(made).map_err(UnpackError::Sink)?;
            if is_idle || (input.pos() == packed.len() && !is_full) {
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn unpack(packed: &[u8], bytes: u64, at_once: usize) -> Result<Vec<u8>, UnpackError> {
        let mut unpacker = Unpacker::new(bytes).unwrap();
        let mut raw = Vec::new();
        for chunk in packed.chunks(at_once) {
            unpacker.push(chunk, &mut |bytes| {
                raw.extend_from_slice(bytes);
                Ok(())
            })?;
        }
        Ok(raw)
    }

    proptest! {
        #[test]
        fn bytes_come_back_however_they_are_cut(
            noise in prop::collection::vec(any::<u8>(), 0..2000),
            zeros in 20_000usize..400_000,
            at_once in 1usize..5000,
        ) {
            let raw = [noise, vec![0; zeros]].concat();
            let packed = pack(&raw).unwrap();
            prop_assert_eq!(unpack(&packed, raw.len() as u64, at_once).unwrap(), raw);
        }

        #[test]
        fn any_bytes_unpack_to_no_more_than_they_may(
            noise in prop::collection::vec(any::<u8>(), 0..500),
            bytes in 0u64..1000,
        ) {
            let frame = zstd::bulk::compress(&noise, 1).unwrap();
            for packed in [noise, frame] {
                if let Ok(raw) = unpack(&packed, bytes, 64) {
                    prop_assert!(raw.len() as u64 <= bytes);
                }
            }
        }
    }

    #[test]
    fn what_saves_less_than_a_tenth_is_not_packed() {
        let noise: Vec<u8> =
            (0..4000u32).flat_map(|n| (n.wrapping_mul(2_654_435_761)).to_le_bytes()).collect();
        assert_eq!(pack(&noise), None);
        assert!(pack(&[7; 1000]).is_some());
        assert_eq!(pack(b""), None, "nothing can be saved of nothing");
    }

    #[test]
    fn few_bytes_that_unpack_to_many_are_refused_before_these_are_written() {
        let bomb = zstd::bulk::compress(&vec![0; 64 << 20], 19).unwrap();
        assert!(bomb.len() < 10_000);
        let refused = unpack(&bomb, 1000, bomb.len()).unwrap_err();
        assert!(matches!(refused, UnpackError::TooLong { bytes: 1000 }), "{refused}");
    }

    #[test]
    fn a_frame_that_asks_for_much_memory_is_refused() {
        let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 19).unwrap();
        encoder.window_log(27).unwrap();
        std::io::Write::write_all(&mut encoder, &[0; 1000]).unwrap();
        let packed = encoder.finish().unwrap();
        assert!(matches!(unpack(&packed, 1 << 30, 50).unwrap_err(), UnpackError::Zstd(_)));
    }
}

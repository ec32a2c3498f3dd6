//! Inputs that would take long to unpack.

use std::io::Read as _;

/// Packed inputs that unpack to more are left out: they only take time.
const MAX_UNPACKED: u64 = 8 << 20;

/// Does it unpack to more than [`MAX_UNPACKED`]?
pub(crate) fn unpacks_to_too_much(input: &[u8]) -> bool {
    let mut unpacked: Box<dyn std::io::Read + '_> = match input {
        [0x1f, 0x8b, ..] => Box::new(flate2::bufread::MultiGzDecoder::new(input)),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => match zstd::stream::read::Decoder::with_buffer(input) {
            Ok(decoder) => Box::new(decoder),
            Err(_) => return false,
        },
        _ => return false,
    };
    let mut bytes = unpacked.by_ref().take(MAX_UNPACKED + 1);
    // What can't be unpacked is the reader's to refuse.
    let _ = std::io::copy(&mut bytes, &mut std::io::sink());
    bytes.limit() == 0
}

//! The framing of a TFRecord file: length, checksum of the length, bytes, checksum of the bytes.
//!
//! Source: `tensorflow/core/lib/io/record_writer.h` and `tensorflow/core/lib/hash/crc32c.h`: little-endian numbers, and CRC-32C
//! that is rotated and offset, so that the checksum of bytes that have checksums in them is no simple one.

use sojourn_protocol::quantity::to_u64;

const MASK_DELTA: u32 = 0xa282_ead8;

fn masked_crc(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes).rotate_right(15).wrapping_add(MASK_DELTA)
}

/// Appends a record with these bytes.
pub(super) fn append(file: &mut Vec<u8>, bytes: &[u8]) {
    let length = to_u64(bytes.len()).to_le_bytes();
    file.extend(length);
    file.extend(masked_crc(&length).to_le_bytes());
    file.extend(bytes);
    file.extend(masked_crc(bytes).to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_has_the_checksums_of_tensorflow() {
        let mut file = Vec::new();
        append(&mut file, b"");
        // The CRC-32C of nothing is 0, which is masked to the delta.
        assert_eq!(file[..8], [0; 8]);
        assert_eq!(file[12..], MASK_DELTA.to_le_bytes());
        // RFC 3720, B.4: 32 bytes of zeros.
        assert_eq!(crc32c::crc32c(&[0; 32]), 0x8a91_36aa);
        append(&mut file, &[0; 32]);
        assert_eq!(file.len(), 16 + 16 + 32);
        let masked = 0x8a91_36aa_u32.rotate_right(15).wrapping_add(MASK_DELTA);
        assert_eq!(file[60..], masked.to_le_bytes());
    }
}

//! Recognises Parquet.

/// The first bytes of a file.
pub(super) const MAGIC: &[u8] = b"PAR1";
/// The same where the footer is encrypted.
pub(super) const ENCRYPTED: &[u8] = b"PARE";

/// Does a file begin as one of this kind?
pub(crate) fn begins(start: &[u8]) -> bool {
    start.starts_with(MAGIC) || start.starts_with(ENCRYPTED)
}

//! How a workbook begins.

/// The member of the archive that says what the others are, which programs write first.
const CONTENTS: &[u8] = b"[Content_Types].xml";

/// Does a file begin as a workbook?
pub(crate) fn begins(start: &[u8]) -> bool {
    start.starts_with(b"PK\x03\x04") && start.windows(CONTENTS.len()).any(|bytes| bytes == CONTENTS)
}

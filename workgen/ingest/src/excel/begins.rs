//! How a workbook begins.

/// The place of the first member's name in an archive, behind the length of it.
const NAME: usize = 30;
/// The members with which programs begin a workbook.
const FIRST: [&[u8]; 4] = [b"[Content_Types].xml", b"_rels/", b"docProps/", b"xl/"];

/// Does a file begin as a workbook?
pub(crate) fn begins(start: &[u8]) -> bool {
    let name = start.get(NAME..).unwrap_or_default();
    start.starts_with(b"PK\x03\x04") && FIRST.iter().any(|first| name.starts_with(first))
}

//! The records of a segment, written and read. A record is a line of text, and a put is followed by the file's bytes.
//!
//! ```text
//! sojourn write-ahead log 1
//! put <check> <sha256> <bytes> uploads/lease-12.<sha256>.<bytes>.done
//! <the file's bytes>
//! remove <check> uploads/lease-12.<sha256>.<bytes>.done
//! ```
//!
//! The check is the begin of the SHA-256 of the rest of the line, so that a torn line isn't read as a record. The bytes
//! are checked by their own digest.

use crate::hashed_bytes::HashedBytes;
use sojourn_protocol::{
    digest::{BlobRef, Digest},
    quantity::to_usize,
};
use std::path::{Component, Path};

/// The first line of each segment, with the version of the format.
pub(super) const FIRST_LINE: &[u8] = b"sojourn write-ahead log 1\n";
/// The longest line of a record, in bytes.
const MAX_LINE_BYTES: usize = 4096;

/// One record of a segment.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Record<'a> {
    /// The file at this path has these bytes.
    Put { path: &'a str, bytes: &'a [u8] },
    /// The file at this path was removed.
    Remove { path: &'a str },
    /// The file at this path was put, and the record's bytes were altered since.
    Damaged { path: &'a str },
}

/// The record of a file, without the file's bytes, which follow it.
pub(super) fn put(path: &str, named: &HashedBytes) -> Vec<u8> {
    let BlobRef { sha256, bytes } = named.blob();
    line("put", &format!("{sha256} {bytes} {path}"))
}

/// The record of a file's removal.
pub(super) fn remove(path: &str) -> Vec<u8> {
    line("remove", path)
}

/// Whether a path can be written to a record.
pub(super) fn is_path(path: &str) -> bool {
    let is_inside = |part| matches!(part, Component::Normal(_));
    !path.is_empty()
        && path.len() < MAX_LINE_BYTES / 2
        && !path.contains('\n')
        && Path::new(path).components().all(is_inside)
}

/// Reads the records after a segment's first line. They end at the first line that isn't whole: a power cut tears the
/// records that weren't synced.
pub(super) const fn read(records: &[u8]) -> Records<'_> {
    Records { left: records }
}

/// The records of a segment, in order.
pub(super) struct Records<'a> {
    left: &'a [u8],
}

impl<'a> Records<'a> {
    /// The bytes that weren't read as records.
    pub(super) const fn left(&self) -> &'a [u8] {
        self.left
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Record<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        let (record, rest) = next(self.left)?;
        self.left = rest;
        Some(record)
    }
}

fn line(kind: &str, rest: &str) -> Vec<u8> {
    format!("{kind} {} {rest}\n", check(kind, rest)).into_bytes()
}

fn check(kind: &str, rest: &str) -> String {
    Digest::of(format!("{kind} {rest}").as_bytes()).short()
}

fn next(records: &[u8]) -> Option<(Record<'_>, &[u8])> {
    let end = records.iter().take(MAX_LINE_BYTES).position(|byte| *byte == b'\n')?;
    let (line, after) = records.split_at_checked(end)?;
    let after = after.get(1..)?;
    let (kind, line) = str::from_utf8(line).ok()?.split_once(' ')?;
    let (found, rest) = line.split_once(' ')?;
    if found != check(kind, rest) {
        return None;
    }
    if kind == "remove" {
        return is_path(rest).then_some((Record::Remove { path: rest }, after));
    }
    let mut words = rest.splitn(3, ' ');
    let sha256: Digest = words.next()?.parse().ok()?;
    let bytes: u64 = words.next()?.parse().ok()?;
    let path = words.next().filter(|path| kind == "put" && is_path(path))?;
    let (bytes, after) = after.split_at_checked(to_usize(bytes))?;
    let is_whole = Digest::of(bytes) == sha256;
    let record = if is_whole { Record::Put { path, bytes } } else { Record::Damaged { path } };
    Some((record, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(bytes: &'static [u8]) -> HashedBytes {
        HashedBytes::of(bytes.into())
    }

    fn three() -> Vec<u8> {
        let one = [put("a/one", &named(b"1\n1")), b"1\n1".to_vec()].concat();
        let two = [put("two words", &named(b"")), remove("a/one")].concat();
        [one, two].concat()
    }

    #[test]
    fn records_are_read_as_they_were_written() {
        let records = three();
        let read: Vec<Record<'_>> = read(&records).collect();
        assert_eq!(
            read,
            [
                Record::Put { path: "a/one", bytes: b"1\n1" },
                Record::Put { path: "two words", bytes: b"" },
                Record::Remove { path: "a/one" },
            ]
        );
    }

    #[test]
    fn a_torn_record_ends_the_list() {
        let records = three();
        let whole: Vec<Record<'_>> = read(&records).collect();
        for end in 0..records.len() {
            let found: Vec<Record<'_>> = read(&records[..end]).collect();
            assert!(found.len() < whole.len());
            assert_eq!(found, whole[..found.len()], "cut at {end}");
        }
    }

    #[test]
    fn a_changed_bit_is_never_read_as_another_record() {
        let records = three();
        let whole: Vec<Record<'_>> = read(&records).collect();
        for at in 0..records.len() * 8 {
            let mut damaged = records.clone();
            damaged[at / 8] ^= 1 << (at % 8);
            for found in read(&damaged) {
                let is_damaged = found == Record::Damaged { path: "a/one" };
                assert!(is_damaged || whole.contains(&found), "bit {at}: {found:?}");
            }
        }
    }

    #[test]
    fn damaged_bytes_do_not_hide_the_records_after_them() {
        let mut records = three();
        let at = put("a/one", &named(b"1\n1")).len();
        records[at] ^= 1;
        let found: Vec<Record<'_>> = read(&records).collect();
        assert_eq!(found[0], Record::Damaged { path: "a/one" });
        assert_eq!(found.len(), 3);
    }

    #[test]
    fn paths_outside_the_folder_are_refused() {
        for path in ["", "/etc/x", "../x", "a/../../x", "a\nb"] {
            assert!(!is_path(path), "{path:?}");
        }
        let outside = remove("../x");
        assert_eq!(read(&outside).count(), 0);
    }
}

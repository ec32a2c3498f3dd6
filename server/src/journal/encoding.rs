//! Records and snapshots as bytes, and the versions of what wrote them.

use super::{ChainHash, JournalError, storage::Row};
use sojourn_core::{JournalPosition, Record};
use sojourn_protocol::digest::Digest;
use std::ops::RangeInclusive;

/// Refuses a group of records that doesn't follow `tail` without a gap.
pub(super) fn in_order(tail: JournalPosition, records: &[Record]) -> Result<(), JournalError> {
    let mut expected = tail.0;
    for record in records {
        expected += 1;
        if record.position.0 != expected {
            let expected = JournalPosition(expected);
            return Err(JournalError::OutOfOrder { expected, given: record.position });
        }
    }
    Ok(())
}

/// A record as JSON. It is read back before it is used: one that can't be read would stop every later start.
pub(super) fn encode(record: &Record) -> Result<Vec<u8>, JournalError> {
    let position = record.position;
    let unwritable = |reason: String| JournalError::Unwritable { position, reason };
    let payload = serde_json::to_vec(record).map_err(|error| unwritable(error.to_string()))?;
    let back: Record =
        serde_json::from_slice(&payload).map_err(|error| unwritable(error.to_string()))?;
    if back != *record {
        return Err(unwritable("it reads back as something else".to_owned()));
    }
    Ok(payload)
}

/// The record of a row.
pub(super) fn decode(row: &Row) -> Result<Record, JournalError> {
    let position = row.position;
    let corrupt = |reason: String| JournalError::Corrupt { position, reason };
    let record: Record = serde_json::from_slice(&row.payload)
        .map_err(|error| corrupt(format!("it is no event of this version ({error})")))?;
    if record.position != position {
        return Err(corrupt(format!("it says that it is at {}", record.position.0)));
    }
    Ok(record)
}

/// A snapshot's digest covers its position, so that one snapshot can't pass for another.
pub(super) fn snapshot_digest(position: JournalPosition, bytes: &[u8]) -> Digest {
    Digest(ChainHash::default().then(position, bytes).0)
}

/// Refuses a version that this program doesn't know.
pub(super) fn known_version(
    what: &'static str,
    found: &str,
    known: RangeInclusive<u32>,
) -> Result<(), JournalError> {
    match found.parse() {
        Ok(version) => supported(what, version, known),
        Err(_) => Err(unknown(what, found.to_owned(), &known)),
    }
}

/// As [`known_version`], of a version that is stored as a number.
pub(super) fn supported(
    what: &'static str,
    found: u32,
    known: RangeInclusive<u32>,
) -> Result<(), JournalError> {
    if known.contains(&found) { Ok(()) } else { Err(unknown(what, found.to_string(), &known)) }
}

fn unknown(what: &'static str, found: String, known: &RangeInclusive<u32>) -> JournalError {
    let (first, last) = (known.start(), known.end());
    let known = if first == last { first.to_string() } else { format!("{first} to {last}") };
    JournalError::UnknownVersion { what, found, known }
}

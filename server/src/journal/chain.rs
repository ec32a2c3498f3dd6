//! The chain of hashes that ties each record to all records before it.

use super::{JournalError, storage::Row};
use sha2::{Digest as _, Sha256};
use sojourn_core::JournalPosition;

/// SHA-256 over the hash before, the position and the payload. All zeros before the first record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ChainHash(pub [u8; 32]);

impl ChainHash {
    /// The hash of the record that follows: `position` and `payload` are that record's.
    #[must_use]
    pub fn then(self, position: JournalPosition, payload: &[u8]) -> Self {
        let mut hash = Sha256::new();
        hash.update(self.0);
        hash.update(position.0.to_le_bytes());
        hash.update(payload);
        Self(hash.finalize().into())
    }
}

/// A position of the chain and the hash of the record there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Mark {
    /// The position.
    pub position: JournalPosition,
    /// The hash of the record at the position.
    pub hash: ChainHash,
}

/// Where a chain begins and ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Marks {
    /// The last record that was dropped; position 0 where none was.
    pub anchor: Mark,
    /// The last record.
    pub tail: Mark,
}

impl Mark {
    /// The mark of the record that follows this one.
    #[must_use]
    pub fn then(self, payload: &[u8]) -> Self {
        let position = next(self.position);
        Self { position, hash: self.hash.then(position, payload) }
    }

    /// Verifies that rows follow this mark without a gap and as they were written. Gives the last one's mark.
    pub(super) fn verify(self, rows: &[Row]) -> Result<Self, JournalError> {
        let mut mark = self;
        for row in rows {
            mark = mark.then(&row.payload);
            let position = mark.position;
            if row.position != position {
                return Err(missing(position));
            }
            if row.hash != mark.hash {
                let reason = "it was altered".to_owned();
                return Err(JournalError::Corrupt { position, reason });
            }
        }
        Ok(mark)
    }
}

pub(super) const fn next(position: JournalPosition) -> JournalPosition {
    JournalPosition(position.0 + 1)
}

/// The error of a record that should be there.
pub(super) fn missing(position: JournalPosition) -> JournalError {
    JournalError::Corrupt { position, reason: "it is missing".to_owned() }
}

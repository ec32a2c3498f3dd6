//! The chain that ties each record to all before it.

use sha2::{Digest as _, Sha256};
use sojourn_core::JournalPosition;

/// SHA-256 over the check before, the position and the payload. All zeros before the first record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Check(pub [u8; 32]);

impl Check {
    /// The check of the record that comes after this one.
    #[must_use]
    pub fn then(self, position: JournalPosition, payload: &[u8]) -> Self {
        let mut hash = Sha256::new();
        hash.update(self.0);
        hash.update(position.0.to_le_bytes());
        hash.update(payload);
        Self(hash.finalize().into())
    }
}
